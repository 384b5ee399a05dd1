"""Subset selection beside the two oracles in use: does a third one pay?

A client sends k of d values: its own among them with probability p = k e^ε / (k e^ε + d - k),
the rest uniform (Ye and Barg 2017; Wang et al. 2016). With k = 1 it is randomised response.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import exp

import numpy as np

from fedassay.examples import FloatArray, IntArray
from fedassay.mechanisms import Law, RandomizedResponse, UnaryEncoding

EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(5))
SIZES = (8, 16, 32, 64, 128, 512)


@dataclass(frozen=True, slots=True)
class SubsetSelection:
    """The k that minimises the variance is d / (e^ε + 1), rounded."""

    epsilon: float
    size: int

    @property
    def chosen(self) -> int:
        """How many values a message holds."""
        return max(1, round(self.size / (exp(self.epsilon) + 1.0)))

    def law(self) -> Law:
        """The moments of one value's count."""
        k, d = self.chosen, self.size
        p = k * exp(self.epsilon) / (k * exp(self.epsilon) + d - k)
        q = (p * (k - 1) + (1.0 - p) * k) / (d - 1)
        return Law(p - q, q, q * (1.0 - q), p * (1.0 - p) - q * (1.0 - q))

    def sums(self, hits: IntArray, generator: np.random.Generator) -> FloatArray:
        """How often every value is sent."""
        k, d = self.chosen, self.size
        law = self.law()
        keys = generator.random((len(hits), d))
        rows = np.arange(len(hits))
        inside = generator.random(len(hits)) < law.gain + law.offset
        keys[rows, hits] = np.where(inside, -1.0, 2.0)
        sent = np.argpartition(keys, k - 1, axis=1)[:, :k]
        return np.bincount(sent.ravel(), minlength=d).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Row:
    """Variances per report of a cell's debiased count, once the total is known."""

    epsilon: float
    size: int
    chosen: int
    unary: float
    response: float
    subset: float
    simulated: float

    @property
    def gain(self) -> float:
        """How much larger the better oracle's variance is than subset selection's."""
        return min(self.unary, self.response) / self.subset


def per_cell(law: Law, size: int, *, spends_total: bool) -> float:
    """The mean variance of a cell, per report, for evenly filled cells.

    Independent bits gain 1 - 1/d from a known total; counters that always add up to the same
    have it already.
    """
    variance = (law.variance_per_report + law.variance_per_hit / size) / law.gain**2
    return variance * (1.0 - 1.0 / size) if spends_total else variance


def compare(epsilon: Fraction, size: int, *, trials: int, clients: int = 2000) -> Row:
    """The three closed forms, and subset selection by simulation."""
    subset = SubsetSelection(float(epsilon), size)
    law = subset.law()
    generator = np.random.default_rng(size)
    hits = np.arange(clients) % size
    counts = np.bincount(hits, minlength=size)
    errors = [
        (subset.sums(hits, generator) - law.offset * clients) / law.gain - counts
        for _ in range(trials)
    ]
    return Row(
        float(epsilon),
        size,
        subset.chosen,
        per_cell(UnaryEncoding(epsilon).law(), size, spends_total=True),
        per_cell(RandomizedResponse(epsilon, size // 2).law(), size, spends_total=False),
        per_cell(law, size, spends_total=False),
        float(np.mean(np.square(errors))) / clients,
    )
