"""The difference of two estimates of different rows, with its interval."""

from dataclasses import dataclass
from math import hypot, inf, sqrt

from fedassay.checks import require_type
from fedassay.estimate import (
    Estimate,
    Interval,
    NotEnoughData,
    check_confidence,
    normal_quantile,
    p_value_of,
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure minus another, of two tallies whose errors are independent.

    Where the same rows answered both, their luck is shared and the true interval is
    narrower: this one still covers.

    >>> d = Difference(Estimate(0.80, sampling_sd=0.003), Estimate(0.79, sampling_sd=0.004))
    >>> round(d.value, 4), d.told_apart()
    (0.01, True)
    >>> d.interval()
    Interval(low=0.0002..., high=0.0197...)
    """

    minuend: Estimate
    subtrahend: Estimate

    def __post_init__(self) -> None:
        for each in (self.minuend, self.subtrahend):
            require_type(each, Estimate, "an estimate", "fedassay.load(...)['roc_auc'] is one.")

    @property
    def value(self) -> float:
        """The first minus the second."""
        return self.minuend.value - self.subtrahend.value

    @property
    def is_available(self) -> bool:
        """Whether both have a value."""
        return self.minuend.is_available and self.subtrahend.is_available

    @property
    def reason(self) -> str:
        """Why there is no value, where there is none."""
        lacking = (each for each in (self.minuend, self.subtrahend) if not each.is_available)
        return next((each.reason for each in lacking if isinstance(each, NotEnoughData)), "")

    def interval(self, confidence: float = 0.95) -> Interval:
        """Cover the difference of the populations' values (Zou and Donner 2008).

        Each end is as far from the difference as both intervals' ends are from their values
        together: squares add up, each side for itself.
        """
        check_confidence(confidence)
        if not self.is_available:
            return Interval(-inf, inf)
        first, second = self.minuend.interval(confidence), self.subtrahend.interval(confidence)
        below = hypot(self.minuend.value - first.low, second.high - self.subtrahend.value)
        above = hypot(first.high - self.minuend.value, self.subtrahend.value - second.low)
        return Interval(self.value - below, self.value + above)

    def told_apart(self, confidence: float = 0.95) -> bool:
        """Whether the interval leaves out that there is no difference."""
        return 0.0 not in self.interval(confidence)

    @property
    def p_value(self) -> float:
        """Two-sided, of no difference: where the interval's confidence just reaches nil."""
        return p_value_of(self.told_apart) if self.is_available else 1.0


@dataclass(frozen=True, slots=True)
class Growth:
    """How an estimate's errors fall when there are more reports like those that came."""

    falls_as_root: bool
    """Noise of local reports falls as sampling does; noise that is added once falls twice as
    fast against the counts."""

    def factor(self, estimates: tuple[Estimate, ...], distance: float, confidence: float) -> float:
        """How many times the reports it takes to tell a distance; infinite if none do.

        Binning errors stay, however many answer.

        >>> figure = Estimate(0.8, sampling_sd=0.02)
        >>> round(Growth(True).factor((figure,), 0.0196, 0.95), 2)
        4.0
        >>> Growth(True).factor((Estimate(0.8, binning_sd=0.02),), 0.01, 0.95)
        inf
        """
        check_confidence(confidence)
        wanted = (distance / normal_quantile(0.5 + confidence / 2.0)) ** 2
        stays = sum(each.binning_sd**2 for each in estimates)
        root = sum(each.sampling_sd**2 for each in estimates)
        noise = sum(each.noise_sd**2 for each in estimates)
        if self.falls_as_root:
            root, noise = root + noise, 0.0
        room = wanted - stays
        if room <= 0.0:
            return inf
        # root / f + noise / f^2 = room.
        return (root + sqrt(root**2 + 4.0 * room * noise)) / (2.0 * room)
