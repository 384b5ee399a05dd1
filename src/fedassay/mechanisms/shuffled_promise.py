"""The promise of shuffled reports, and the local epsilon that keeps it."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log
from typing import Protocol

from fedassay.checks import require_fraction
from fedassay.errors import SettingInvalid
from fedassay.files import Fields
from fedassay.mechanisms.polya import check_epsilon
from fedassay.mechanisms.shuffling import Blanket, guessed_deltas, shuffled_delta

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
        if mechanism.epsilon_spent <= self.epsilon:
            return True
        epsilon, delta = float(self.epsilon), float(self.delta)
        least = _LEFT_OUT * delta
        found = shuffled_delta(mechanism.blanket, epsilon, reports, least=least, enough=delta)
        return found <= delta

    def excesses(self, mechanisms: Sequence[Blanketed], reports: Sequence[int]) -> list[float]:
        """The logs of how many times too large their deltas are, by a guess: no bounds."""
        epsilon, delta = float(self.epsilon), float(self.delta)
        blankets = [mechanism.blanket for mechanism in mechanisms]
        guesses = guessed_deltas(blankets, epsilon, reports, least=_LEFT_OUT * delta)
        return [log(guess / delta) for guess in guesses]

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
    return largest_locals([make], promise, reports=[reports], cap=cap)[0]


def largest_locals(
    makes: Sequence[Callable[[Fraction], Blanketed]],
    promise: ShuffledPromise,
    *,
    reports: Sequence[int],
    cap: Fraction,
) -> list[Fraction]:
    """The same for several that one kind of mechanism is made by: guesses are made side by side.

    Each has its own number of reports.

    >>> from fedassay.mechanisms import RandomizedResponse
    >>> promise = ShuffledPromise(Fraction(1), Fraction(1, 10**6))
    >>> makes = [lambda epsilon, n=n: RandomizedResponse(epsilon, n) for n in (4, 8)]
    >>> apart = [largest_local(make, promise, reports=1000, cap=Fraction(6)) for make in makes]
    >>> apart == largest_locals(makes, promise, reports=[1000, 1000], cap=Fraction(6))
    True
    """
    searches = [
        _search(make, promise, count, cap) for make, count in zip(makes, reports, strict=True)
    ]
    found: dict[int, Fraction] = {}
    answers: dict[int, float | None] = dict.fromkeys(range(len(searches)))
    while answers:
        asked: dict[int, Blanketed] = {}
        for place, answer in answers.items():
            try:
                asked[place] = searches[place].send(answer)
            except StopIteration as end:
                found[place] = end.value
        counts = [reports[place] for place in asked]
        guesses = promise.excesses(list(asked.values()), counts) if asked else []
        answers = dict(zip(asked, guesses, strict=True))
    return [found[place] for place in range(len(searches))]


def _search(
    make: Callable[[Fraction], Blanketed], promise: ShuffledPromise, reports: int, cap: Fraction
) -> Generator[Blanketed, float | None, Fraction]:
    """Ask for the excess of one mechanism after the other, until the largest epsilon is found."""
    least = min(promise.epsilon, cap)
    if least >= cap:
        return cap
    above = (yield make(cap)) or 0.0
    if above <= 0.0 and promise.is_kept(make(cap), reports):
        return cap
    low, high = floor(least * _FINEST), ceil(cap * _FINEST)
    below, above = _FAR_BELOW, max(above, 1.0)
    while high - low > _NEAR:
        # Regula falsi, halved where one end stays (Illinois): the log of delta bends slowly.
        at = low + (high - low) * min(max(below / (below - above), 0.05), 0.95)
        middle = min(max(round(at), low + 1), high - 1)
        found = (yield make(Fraction(middle, _FINEST))) or 0.0
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
