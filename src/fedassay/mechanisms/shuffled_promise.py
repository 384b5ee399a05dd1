"""The promise of shuffled reports, and the local epsilon that keeps it."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log
from typing import Protocol

from fedassay.checks import require_fraction
from fedassay.errors import SettingInvalid
from fedassay.files import Fields
from fedassay.mechanisms.polya import check_epsilon
from fedassay.mechanisms.shuffling import Blanket, guessed_delta, shuffled_delta

DEFAULT_DELTA = Fraction(1, 10**8)
LARGEST_LOCAL = Fraction(5)
"""What remains of a report if shuffler and collector collude, unless a survey says otherwise."""
_SMALLEST_DELTA = Fraction(1, 10**15)
_FINEST = 1000
_NEAR = 8
"""So many thousandths may be given away, to search for less long."""
_FAR_BELOW = -30.0
_LEFT_OUT = 0.01
"""The share of delta that the tails of sums may take, instead of being computed."""


class Blanketed(Protocol):
    """What has a local epsilon and a blanket: a local mechanism."""

    @property
    def epsilon_spent(self) -> Fraction:
        """The local epsilon."""

    @property
    def blanket(self) -> Blanket:
        """What all inputs have in common."""


@dataclass(frozen=True, slots=True)
class ShuffledPromise:
    """What reports promise together, once they are shuffled."""

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)

    def is_kept(self, mechanism: Blanketed, reports: int) -> bool:
        """Whether so many honest reports of a mechanism keep it, shuffled.

        >>> from fedassay.mechanisms import UnaryEncoding
        >>> promise = ShuffledPromise(Fraction(1), Fraction(1, 10**8))
        >>> [promise.is_kept(UnaryEncoding(Fraction(5)), reports) for reports in (1000, 10_000)]
        [False, True]
        """
        # A report that keeps it alone keeps it among any others.
        alone = mechanism.epsilon_spent <= self.epsilon
        return alone or self._delta(shuffled_delta, mechanism, reports) <= float(self.delta)

    def excess(self, mechanism: Blanketed, reports: int) -> float:
        """The log of how many times too large delta is, by a guess: no bound."""
        guess = self._delta(guessed_delta, mechanism, reports)
        return log(guess / float(self.delta))

    def _delta(self, of: Callable[..., float], mechanism: Blanketed, reports: int) -> float:
        least = _LEFT_OUT * float(self.delta)
        return of(mechanism.blanket, float(self.epsilon), reports, least=least)

    def to_json(self) -> dict[str, str]:
        """What a survey's file says of it."""
        return {"epsilon": str(self.epsilon), "delta": str(self.delta)}

    @classmethod
    def from_json(cls, fields: Fields) -> "ShuffledPromise":
        """Read it back; anything unknown is refused."""
        fields.only("epsilon", "delta")
        return cls(fields.fraction("epsilon"), fields.fraction("delta"))


def check_delta(delta: Fraction) -> None:
    """Raise unless a delta lies strictly between 0 and 1, with room for rounding.

    >>> check_delta(Fraction(1, 10**8))
    """
    require_fraction(delta, "delta")
    if not _SMALLEST_DELTA <= delta < 1:
        raise SettingInvalid(
            f"delta must lie between 0 and 1, and not below {float(_SMALLEST_DELTA):g}; found "
            f"{float(delta):g}. It is the chance that epsilon says nothing about: far below one "
            "over the number of clients."
        )


def largest_local(
    make: Callable[[Fraction], Blanketed], promise: ShuffledPromise, *, reports: int, cap: Fraction
) -> Fraction:
    """The largest local epsilon, up to `cap`, with which so many honest reports keep a promise.

    At least the promise's own epsilon, which every report then keeps alone; else a whole number
    of thousandths.

    >>> from fedassay.mechanisms import RandomizedResponse
    >>> promise = ShuffledPromise(Fraction(1), Fraction(1, 10**6))
    >>> make = lambda epsilon: RandomizedResponse(epsilon, 8)
    >>> [str(largest_local(make, promise, reports=n, cap=Fraction(6))) for n in (1, 10**6)]
    ['1', '6']
    """
    least = min(promise.epsilon, cap)
    if least >= cap:
        return cap
    above = promise.excess(make(cap), reports)
    if above <= 0.0 and promise.is_kept(make(cap), reports):
        return cap
    low, high = floor(least * _FINEST), ceil(cap * _FINEST)
    below, above = _FAR_BELOW, max(above, 1.0)
    while high - low > _NEAR:
        # Regula falsi, halved where one end stays (Illinois): the log of delta bends slowly.
        at = low + (high - low) * min(max(below / (below - above), 0.05), 0.95)
        middle = min(max(round(at), low + 1), high - 1)
        found = promise.excess(make(Fraction(middle, _FINEST)), reports)
        if found > 0.0:
            high, above, below = middle, found, below / 2.0
        else:
            low, below, above = middle, found, above / 2.0
    step = _NEAR
    while low > least * _FINEST:
        if promise.is_kept(make(Fraction(low, _FINEST)), reports):
            return Fraction(low, _FINEST)
        low, step = low - step, 2 * step
    return least
