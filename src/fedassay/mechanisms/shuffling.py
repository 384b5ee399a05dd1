"""What a crowd adds to locally private reports once they are shuffled.

The bound is the privacy blanket (Balle, Bell, Gascon and Nissim 2019) with nothing rounded
inwards; `docs/threat-model-shuffled.md` has the proof. Every report of a mechanism is, with
probability `share`, drawn from one law that is the same for all inputs: its blanket. Tell the
observer which of the others' reports are not, and take these away. Left are M ~ Binomial(n - 1,
share) reports of the blanket and the one that is asked about. Whether it came from input a or b
shows only in how often, among the M + 1, what a and what b would say is said: with U the law
of M + 1 blanket reports, input a has the density

    L_a = share + (1 - share) H_a / (hit (M + 1)),

and delta(epsilon) = E_U[max(L_a - e^epsilon L_b, 0)], averaged over M; H_a counts the reports
that say a, each with probability `hit` under U.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, expm1, sqrt

import numpy as np

from fedassay.examples import FloatArray
from fedassay.mechanisms.binomials import far_off, log_binomial, mean_excess

_OUTWARD = 1.0 + 1e-6
"""Far above the rounding of all floating-point sums here, which is below one part in 10^8."""
_MOST_HITS = 50_000.0
"""A crowd in which more say what one input would is counted as so many only: it protects more."""
_BUCKETS = (-4.5, -3.5, -2.5, -1.5, -0.5, 0.5, 1.5)
"""Where the number of blanket reports is cut, in standard deviations from its mean."""


@dataclass(frozen=True, slots=True)
class Blanket:
    """What all inputs of a local mechanism have in common."""

    share: Fraction
    """The probability with which a report does not depend on its input at all."""
    hit: Fraction
    """The probability that such a report says what one given input would."""
    says_one: bool
    """Whether a report says one thing, so that two counts exclude each other."""


@lru_cache(maxsize=4096)
def shuffled_delta(blanket: Blanket, epsilon: float, reports: int, *, least: float) -> float:
    """A delta with which `reports` shuffled ones, all honest, are (epsilon, delta)-private.

    An upper bound: rounding and everything left out are added, the latter up to `least`.

    >>> from fedassay.mechanisms import RandomizedResponse
    >>> blanket = RandomizedResponse(Fraction(3), 2).blanket
    >>> 1e-4 < shuffled_delta(blanket, 0.5, 1000, least=1e-9) < 1e-3
    True
    >>> shuffled_delta(blanket, 0.5, 10_000, least=1e-9) < 1e-8
    True
    """
    others = min(reports - 1, _most_others(blanket))
    cuts, masses, below = _crowds(blanket, others, least)
    deltas = _crowd_deltas(blanket, epsilon, cuts, least)
    total = below + sum(mass * delta for mass, delta in zip(masses, deltas, strict=True))
    return min(total * _OUTWARD, 1.0)


def guessed_delta(blanket: Blanket, epsilon: float, reports: int, *, least: float) -> float:
    """Near `shuffled_delta`, from one number of blanket reports, a little unlucky: no bound.

    >>> from fedassay.mechanisms import UnaryEncoding
    >>> guessed_delta(UnaryEncoding(Fraction(5)).blanket, 1.0, 10_000, least=1e-9) < 1e-8
    True
    """
    share = float(blanket.share)
    mean = min(reports - 1, _most_others(blanket)) * share
    unlucky = max(mean - sqrt(mean * (1.0 - share)), 0.0)
    return _crowd_deltas(blanket, epsilon, [int(unlucky)], least)[0]


def _most_others(blanket: Blanket) -> int:
    return ceil(_MOST_HITS / float(blanket.share * blanket.hit))


def _crowds(blanket: Blanket, others: int, least: float) -> tuple[list[int], list[float], float]:
    """Cuts of M, the probability of M from each to the next, and that of M below the first.

    One more blanket report only ever hides more, so that the delta at a cut bounds those above.
    """
    share, rest = float(blanket.share), float(1 - blanket.share)
    mean, sd = others * share, sqrt(others * share * rest)
    low, high = _window(mean, sd, least / 8.0, others)
    counts = np.arange(low, high + 1, dtype=np.float64)
    trials = np.full_like(counts, float(others))
    chances = np.exp(log_binomial(counts, trials, share, rest))
    upto = np.concatenate([[0.0], chances.cumsum()])
    first = int(np.searchsorted(upto, least / 8.0, side="right")) - 1
    # Where the number hardly varies, one cut is as good as several.
    wide = [] if low > 0.98 * mean else [round(mean + z * sd) - low for z in _BUCKETS]
    places = [first, *(place for place in wide if place > first)]
    edges = [*places, len(chances)]
    masses = [float(chances[a:b].sum()) for a, b in pairwise(edges)]
    outside = 2.0 * least / 8.0
    return [low + place for place in places], masses, float(upto[first]) + outside


def _window(mean: float, sd: float, tail: float, most: int) -> tuple[int, int]:
    """Where a binomial lies but for a probability of `tail` on either side."""
    far = float(far_off(np.array(sd**2), tail))
    return max(0, int(mean - far)), min(most, ceil(mean + far))


def _crowd_deltas(
    blanket: Blanket, epsilon: float, crowds: Sequence[int], least: float
) -> list[float]:
    """Delta among so many blanket reports and one more, for several crowds at once."""
    share, hit = float(blanket.share), float(blanket.hit)
    rest = float(1 - blanket.share)
    if rest <= 0.0:
        return [0.0] * len(crowds)
    more = expm1(epsilon)
    outer_p = 2.0 * hit if blanket.says_one else hit
    outer_rest = float(1 - (2 if blanket.says_one else 1) * blanket.hit)
    # What lies outside weighs at most as much as the largest density, which is below 1/hit.
    tail = least * hit / 8.0
    windows = [_outer_window(others + 1, outer_p, outer_rest, tail) for others in crowds]
    sizes = [len(window) for window in windows]
    outer = np.concatenate(windows)
    messages = np.repeat([others + 1.0 for others in crowds], sizes)
    weights = [rest / (hit * (others + 1)) for others in crowds]
    beyond = np.repeat([more * share / weight for weight in weights], sizes)
    chances = np.exp(log_binomial(outer, messages, outer_p, outer_rest))
    if blanket.says_one:
        # Given how many say a or b, each of them says a with probability one half.
        over = ((1.0 + more) * outer + beyond) / (2.0 + more)
        excess = (2.0 + more) * mean_excess(outer, 0.5, 0.5, over)
    else:
        over = (1.0 + more) * outer + beyond
        excess = mean_excess(messages, hit, float(1 - blanket.hit), over)
    sums = np.add.reduceat(chances * excess, np.cumsum([0, *sizes[:-1]]))
    return [
        weight * each + 2.0 * tail / hit
        for weight, each in zip(weights, sums.tolist(), strict=True)
    ]


def _outer_window(messages: int, p: float, rest: float, tail: float) -> FloatArray:
    """How many of the messages say what one of both inputs would, but for the tails."""
    low, high = _window(messages * p, sqrt(messages * p * rest), tail, messages)
    return np.arange(low, high + 1, dtype=np.float64)
