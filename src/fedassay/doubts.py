"""What speaks against a smooth curve that noisy counters were read through.

Of several priors each has its evidence, and so a chance: that log-odds bend no more than is usual,
or more, as where one class falls off a cliff; that counts of both labels do, or not, as where
scores are tied. Figures that a cliff or a tie would spoil have its error in their intervals as far
as it is likely.
"""

from dataclasses import dataclass

from fedassay.estimate import REACH, normal_quantile
from fedassay.examples import FloatArray

_MISSED = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Doubts:
    """What counters say against the curve that they were read through."""

    cliffs: float
    """The chance that log-odds bend more than is usual."""
    lumps: float
    """The chance that the counts of both labels together do."""
    skew: FloatArray
    """How many more positives per bucket are to be expected than are likeliest."""


def part_of_error(chance: float) -> float:
    """How much of an error's standard deviation an interval needs, if it is there with a chance.

    A normal error of standard deviation s that is there with the chance p is beyond t in
    p P[|Z| > t / s] of all surveys: in one of twenty at t = s z(1 - 1/(40 p)), and for p of one in
    twenty or less at 0.

    >>> [round(part_of_error(chance), 2) for chance in (1.0, 0.5, 0.1, 0.05, 0.0)]
    [1.0, 0.84, 0.34, 0.0, 0.0]
    """
    if chance <= _MISSED:
        return 0.0
    return normal_quantile(1.0 - 0.5 * _MISSED / min(chance, 1.0)) / REACH
