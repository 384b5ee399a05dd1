"""ROC AUC against buckets and against clients (`fig:auc`, `fig:auc-pop`)."""

from collections import defaultdict

import numpy as np

from fedassay.examples import Examples, IntArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.roc_auc import even_area, likely_area
from fedassay.reproduction.datasets import Dataset
from fedassay.reproduction.federations import (
    default_design,
    default_histogram,
    paper_design,
    paper_histogram,
    repetitions,
)
from fedassay.reproduction.results import Point, points_of
from fedassay.reproduction.settings import BUCKETS, Model, Settings

QUANTILE, UNIFORM, WORST = "quantile buckets", "uniform buckets (Sun et al.)", "worst case, Σ p n"
DEFAULT, HALF, THIRD = "our default", "1/(2B)", "1/(3B²)"


def by_buckets(
    data: Dataset, model: Model, settings: Settings, generator: np.random.Generator
) -> list[Point]:
    """Errors of every repetition, all numbers of buckets read from the same tree."""
    clients = len(data.examples)
    paper, default = paper_design(model, clients), default_design(model, clients)
    values: dict[tuple[str, float], list[float]] = defaultdict(list)
    for rows in repetitions(
        data.examples, clients, times=settings.repetitions, generator=generator
    ):
        truth = exact_area(rows)
        leaves = paper_histogram(paper, rows, generator)
        ours = abs(likely_area(default_histogram(default, rows, generator)).value - truth)
        for buckets in settings.buckets:
            deep = leaves.equi_depth(buckets)
            values[QUANTILE, buckets].append(abs(even_area(deep)[0] - truth))
            even = uniform_buckets(leaves, buckets)
            values[UNIFORM, buckets].append(abs(even_area(even)[0] - truth))
            values[WORST, buckets].append(worst_case(deep))
            values[DEFAULT, buckets].append(ours)
    for buckets in settings.buckets:
        values[HALF, buckets] = [1.0 / (2.0 * buckets)]
        values[THIRD, buckets] = [1.0 / (3.0 * buckets**2)]
    return points_of(data.name, model.name, values)


def by_clients(
    data: Dataset, model: Model, clients: int, settings: Settings, generator: np.random.Generator
) -> list[Point]:
    """Errors with so many clients, 100 buckets of a tree of height 10."""
    paper, default = paper_design(model, clients), default_design(model, clients)
    values: dict[tuple[str, float], list[float]] = defaultdict(list)
    for rows in repetitions(
        data.examples, clients, times=settings.repetitions, generator=generator
    ):
        truth = exact_area(rows)
        deep = paper_histogram(paper, rows, generator).equi_depth(BUCKETS)
        values[model.name, clients].append(abs(even_area(deep)[0] - truth))
        ours = likely_area(default_histogram(default, rows, generator)).value
        values[f"{model.name}: default", clients].append(abs(ours - truth))
    return points_of(data.name, "ROC AUC", values)


def exact_area(examples: Examples) -> float:
    """The rows' own ROC AUC.

    >>> exact_area(Examples([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]))
    0.75
    """
    # A bucket for every distinct score hides nothing but ties, which count one half.
    distinct, place = np.unique(examples.scores, return_inverse=True)
    cell = place + len(distinct) * examples.labels.astype(np.int64)
    counts = np.bincount(cell, minlength=2 * len(distinct))
    edges = np.linspace(0.0, 1.0, len(distinct) + 1)
    return even_area(ScoreHistogram(edges, counts.reshape(2, -1).astype(np.float64)))[0]


def uniform_buckets(leaves: ScoreHistogram, buckets: int) -> ScoreHistogram:
    """So many buckets of alike width, as Sun et al. have them, on the tree's own edges.

    >>> h = ScoreHistogram.from_scores([0, 1] * 50, [i / 100 for i in range(100)])
    >>> uniform_buckets(h, 4).buckets
    4
    """
    places: IntArray = np.rint(np.linspace(0, leaves.buckets, buckets + 1)).astype(np.int64)
    return leaves.merge(np.unique(places))


def worst_case(deep: ScoreHistogram) -> float:
    """Half of the pairs within buckets, over all pairs: the bound of `lem:auc`.

    >>> worst_case(ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.array([[3.0, 1.0], [1.0, 3.0]])))
    0.1875
    """
    within = np.maximum(deep.positives, 0.0) @ np.maximum(deep.negatives, 0.0)
    return float(within / (2.0 * deep.total_positives * deep.total_negatives))
