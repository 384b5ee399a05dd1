"""What reports of a client in another language are held to: surveys, rows, and their exact laws."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy import stats

from fedassay import Grid, Survey
from fedassay.hierarchy import Interleaved
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import RandomizedResponse, UnaryEncoding
from fedassay.mechanisms.grr import values_of
from fedassay.wire import Block
from tests.laws import chi_square
from tests.vectors.surveys import local

FALSE_ALARM = 1e-8
IntArray = npt.NDArray[np.int64]

FLAT = {
    "oue at 1": local("oue", Fraction(1), Grid.uniform(6)),
    "oue at 5": local("oue", Fraction(5), Grid.uniform(6)),
    "grr at 1": local("grr", Fraction(1), Grid.uniform(6)),
    "grr at 5, empty clients": local("grr", Fraction(5), Grid.uniform(6), allow_empty=True),
    "oue at 1, empty clients": local("oue", Fraction(1), Grid.uniform(6), allow_empty=True),
}
ROWS = 60_000
PLACES = {
    "spread": np.random.default_rng(8).integers(0, 10, ROWS),
    "alike": np.full(ROWS, 8),
}
"""Label x cell of every row; some cells are left empty."""


def rows_at(places: IntArray) -> list[tuple[int, float]]:
    """Examples in the middle of six even cells."""
    return [(int(place >= 6), (int(place) % 6 + 0.5) / 6) for place in places]


EXAMPLES = rows_at(PLACES["spread"])


def follows_the_law(survey: Survey, blocks: list[Block], places: IntArray) -> bool:
    """Sums over 60,000 reports have the law of sums of two binomials, of bias p and q.

    False alarm: 1e-8 over all 12 counters, and 1e-8 over the bits of nobody's cells together,
    or over all values.
    """
    (mechanism,) = survey.mechanisms
    assert isinstance(mechanism, UnaryEncoding | RandomizedResponse)
    rows = np.concatenate([block.rows for block in blocks])
    sums = mechanism.sums(rows, 12)
    truth = np.bincount(places, minlength=12)
    p = 0.5 if isinstance(mechanism, UnaryEncoding) else float(mechanism.p)
    q = float(mechanism.q)
    tails = [
        tail_of_two(int(total), (int(hits), p), (ROWS - int(hits), q))
        for total, hits in zip(sums, truth, strict=True)
    ]
    if isinstance(mechanism, UnaryEncoding):
        nobodys = sums[truth == 0]
        whole = tail_of_two(int(nobodys.sum()), (0, p), (nobodys.size * ROWS, q))
    else:
        whole = values_tail(values_of(rows), mechanism, truth)
    return len(rows) == ROWS and min(tails) > FALSE_ALARM / 12 and whole > FALSE_ALARM


def tail_of_two(total: int, own: tuple[int, float], other: tuple[int, float]) -> float:
    """How likely a sum of two binomials is so far from its mean, on both sides.

    Normal, as hundreds of coins at least show heads and hundreds tails.
    """
    mean = own[0] * own[1] + other[0] * other[1]
    variance = sum(n * share * (1 - share) for n, share in (own, other))
    return float(2 * stats.norm.sf(abs(total - mean) / variance**0.5))


def values_tail(values: IntArray, mechanism: RandomizedResponse, truth: IntArray) -> float:
    """Chi-square of all values against the exact mixture that the rows call for."""
    p, q = float(mechanism.p), float(mechanism.q)
    shares = q + (p - q) * np.append(truth, [0] * (mechanism.values - truth.size)) / ROWS

    def pmf(k: IntArray) -> npt.NDArray[np.float64]:
        inside = (k >= 0) & (k < mechanism.values)
        return np.where(inside, shares[np.where(inside, k, 0)], 0.0)

    return chi_square(values, pmf)


LEVELS = local(
    "oue grr oue",
    Fraction(5),
    Grid.cubic(7),
    Interleaved(7, 3),
    level_policy=OneLevel((Fraction(1, 7), Fraction(2, 7), Fraction(4, 7))),
)


def early_tail(values: IntArray) -> float:
    """How likely so many, or so few, ones are in the first half."""
    law = stats.hypergeom(len(values), int(values.sum()), len(values) // 2)
    early = int(values[: len(values) // 2].sum())
    return float(2 * min(law.cdf(early), law.sf(early - 1)))
