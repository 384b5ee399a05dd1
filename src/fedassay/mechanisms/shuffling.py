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
from itertools import accumulate, pairwise
from math import ceil, expm1, sqrt
from typing import NamedTuple

import numpy as np

from fedassay.examples import FloatArray
from fedassay.mechanisms.binomials import far_off, log_binomial, log_multinomial, mean_excess

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
def shuffled_delta(
    blanket: Blanket, epsilon: float, reports: int, *, least: float, enough: float = 0.0
) -> float:
    """A delta with which `reports` shuffled ones, all honest, are (epsilon, delta)-private.

    An upper bound: rounding and everything left out are added, the latter up to `least`. Where a
    coarse one is not above `enough`, it is not made finer.

    >>> from fedassay.mechanisms import RandomizedResponse
    >>> blanket = RandomizedResponse(Fraction(3), 2).blanket
    >>> 1e-4 < shuffled_delta(blanket, 0.5, 1000, least=1e-9) < 1e-3
    True
    >>> shuffled_delta(blanket, 0.5, 10_000, least=1e-9) < 1e-8
    True
    """
    law = _in_floats(blanket)
    others = min(reports - 1, law.most)
    cuts, masses, below = _crowds(law, others, least)
    crowds = [(law, cut) for cut in cuts]
    deltas = _crowd_deltas(crowds[:1], epsilon, least)
    # One more blanket report only ever hides more: the first cut's delta bounds those above.
    coarse = (below + deltas[0]) * _OUTWARD
    if coarse <= enough:
        return coarse
    deltas += _crowd_deltas(crowds[1:], epsilon, least) if crowds[1:] else []
    total = below + sum(mass * delta for mass, delta in zip(masses, deltas, strict=True))
    return min(total * _OUTWARD, 1.0)


def guessed_deltas(
    blankets: Sequence[Blanket], epsilon: float, reports: Sequence[int], *, least: float
) -> list[float]:
    """Near `shuffled_delta`, from one number of blanket reports, a little unlucky: no bound.

    Several blankets of one mechanism, each with its number of reports, take hardly longer than one.

    >>> from fedassay.mechanisms import UnaryEncoding
    >>> guessed_deltas([UnaryEncoding(Fraction(5)).blanket], 1.0, [10_000], least=1e-9)[0] < 1e-8
    True
    """
    crowds = []
    for blanket, count in zip(blankets, reports, strict=True):
        law = _in_floats(blanket)
        mean = min(count - 1, law.most) * law.share
        unlucky = max(mean - sqrt(mean * (1.0 - law.share)), 0.0)
        crowds.append((law, int(unlucky)))
    return _crowd_deltas(crowds, epsilon, least)


def _crowds(law: "_Floats", others: int, least: float) -> tuple[list[int], list[float], float]:
    """Cuts of M, the probability of M from each to the next, and that of M below the first."""
    share, rest = law.share, law.rest
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


class _Floats(NamedTuple):
    """A blanket's numbers, each rounded once."""

    share: float
    rest: float
    hit: float
    outer: float
    """The probability that what one of both inputs would say is said, where only one can be."""
    neither: float
    says_one: bool
    most: int
    """So many other reports are counted, and no more."""


def _in_floats(blanket: Blanket) -> _Floats:
    kinds = 2 if blanket.says_one else 1
    # Quotients of whole numbers, as floats of fractions are: searches make thousands of them.
    (a, b), (c, d) = blanket.share.as_integer_ratio(), blanket.hit.as_integer_ratio()
    return _Floats(
        share=a / b,
        rest=(b - a) / b,
        hit=c / d,
        outer=kinds * (c / d),
        neither=(d - kinds * c) / d,
        says_one=blanket.says_one,
        most=ceil(_MOST_HITS / (a * c / (b * d))),
    )


def _crowd_deltas(
    crowds: Sequence[tuple[_Floats, int]], epsilon: float, least: float
) -> list[float]:
    """Delta among so many blanket reports and one more, for several crowds at once."""
    laws = [law for law, _ in crowds]
    if any(law.rest <= 0.0 for law in laws):
        return [
            0.0 if law.rest <= 0.0 else _crowd_deltas([(law, others)], epsilon, least)[0]
            for law, others in crowds
        ]
    more = expm1(epsilon)
    windows, weights, tails, of_crowds = [], [], [], []
    for law, others in crowds:
        # What lies outside weighs at most as much as the largest density, which is below 1/hit.
        tails.append(least * law.hit / 8.0)
        windows.append(_outer_window(others + 1, law.outer, law.neither, tails[-1]))
        weights.append(law.rest / (law.hit * (others + 1)))
        beyond = more * law.share / weights[-1]
        of_crowds.append((others + 1.0, beyond, law.hit, law.outer, law.neither))
    sizes, outer = [len(window) for window in windows], np.concatenate(windows)
    messages, beyonds, hit, either, neither = np.repeat(np.array(of_crowds).T, sizes, axis=1)
    if laws[0].says_one:
        # Given how many say a or b, each of them says a with probability one half.
        over = ((1.0 + more) * outer + beyonds) / (2.0 + more)

        def joint(a: FloatArray) -> FloatArray:
            counts = (a, outer - a, messages - outer)
            return log_multinomial(counts, messages, (hit, hit, neither))

        excess = (2.0 + more) * mean_excess(outer, 0.5, 0.5, over, log_chance=joint)
    else:
        over = (1.0 + more) * outer + beyonds
        excess = mean_excess(messages, hit, neither, over)
        excess *= np.exp(log_binomial(outer, messages, either, neither))
    sums = np.add.reduceat(excess, list(accumulate([0, *sizes[:-1]])))
    return [
        weight * each + 2.0 * tail / law.hit
        for weight, each, tail, law in zip(weights, sums.tolist(), tails, laws, strict=True)
    ]


def _outer_window(messages: int, p: float, rest: float, tail: float) -> FloatArray:
    """How many of the messages say what one of both inputs would, but for the tails."""
    low, high = _window(messages * p, sqrt(messages * p * rest), tail, messages)
    return np.arange(low, high + 1, dtype=np.float64)
