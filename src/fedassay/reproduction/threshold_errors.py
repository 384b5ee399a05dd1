"""Precision, recall and accuracy against height, clients and fan-out (`fig:pra`, `fig:pra-pop`)."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from fedassay.examples import Examples, FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.planning.search import SurveyDesign
from fedassay.reproduction.datasets import Dataset
from fedassay.reproduction.federations import (
    default_design,
    default_histogram,
    paper_design,
    paper_histogram,
    repetitions,
)
from fedassay.reproduction.results import Point
from fedassay.reproduction.settings import THRESHOLDS, Model, Settings

FAMILIES = ("precision", "recall", "accuracy")
NEAREST = "recall, read at the nearest edge"
_NEVER_ABOVE = 1e-12
_FANOUT_TIMES = 3
"""Trees of other fan-outs differ by less than ten repetitions tell."""

PerThreshold = dict[str, FloatArray]
"""A value at each of the ten thresholds, for each metric."""


def by_heights(
    data: Dataset, model: Model, settings: Settings, generator: np.random.Generator
) -> list[Point]:
    """Errors of every height on the same rows, and of our default."""
    clients = len(data.examples)
    designs = {height: paper_design(model, clients, height=height) for height in settings.heights}
    default = default_design(model, clients, THRESHOLDS)
    found: dict[tuple[str, float], list[FloatArray]] = defaultdict(list)
    for rows in repetitions(
        data.examples, clients, times=settings.repetitions, generator=generator
    ):
        truth = exact_values(rows)
        ours = errors(default_histogram(default, rows, generator, THRESHOLDS), truth)
        for height, design in designs.items():
            leaves = paper_histogram(design, rows, generator)
            theirs = errors(leaves, truth)
            found[NEAREST, height].append(errors(leaves, truth, nearest_edges(leaves))["recall"])
            for family in FAMILIES:
                found[family, height].append(theirs[family])
                found[f"{family}: default", height].append(ours[family])
    return threshold_points(data.name, model.name, found)


def by_clients(
    data: Dataset, model: Model, clients: int, settings: Settings, generator: np.random.Generator
) -> list[Point]:
    """Errors with so many clients, trees of height 10."""
    paper, default = paper_design(model, clients), default_design(model, clients, THRESHOLDS)
    found: dict[tuple[str, float], list[FloatArray]] = defaultdict(list)
    for rows in repetitions(
        data.examples, clients, times=settings.repetitions, generator=generator
    ):
        truth = exact_values(rows)
        theirs = errors(paper_histogram(paper, rows, generator), truth)
        ours = errors(default_histogram(default, rows, generator, THRESHOLDS), truth)
        for family in FAMILIES:
            found[family, clients].append(theirs[family])
            found[f"{family}: default", clients].append(ours[family])
    return threshold_points(data.name, model.name, found)


def by_fanout(
    data: Dataset, model: Model, settings: Settings, generator: np.random.Generator
) -> list[Point]:
    """Errors of recall for trees of fan-out 2, 3 and 4, against their leaves.

    Recall alone: precision above the highest thresholds hangs on a few rows, and hides the rest.
    """
    clients = len(data.examples)
    designs: dict[tuple[str, float], SurveyDesign] = {
        (f"fan-out {fanout}", fanout**height): paper_design(
            model, clients, height=height, fanout=fanout
        )
        for fanout, heights in settings.trees.items()
        for height in heights
    }
    found: dict[tuple[str, float], list[FloatArray]] = defaultdict(list)
    for rows in repetitions(
        data.examples, clients, times=_FANOUT_TIMES * settings.repetitions, generator=generator
    ):
        truth = exact_values(rows)
        for place, design in designs.items():
            found[place].append(errors(paper_histogram(design, rows, generator), truth)["recall"])
    return threshold_points(data.name, model.name, found)


def exact_values(examples: Examples) -> PerThreshold:
    """The rows' own values; not a number where nothing is above a threshold.

    >>> exact_values(Examples([0, 1, 1, 0], [0.2, 0.4, 0.95, 0.97]))["precision"][[0, 9]].tolist()
    [0.5, 0.5]
    """
    above = examples.scores > np.array(THRESHOLDS)[:, None]
    tp = above[:, examples.labels == 1].sum(axis=1)
    positives = examples.positives
    return _values(tp, above.sum(axis=1) - tp, positives, len(examples) - positives)


def nearest_edges(histogram: ScoreHistogram) -> tuple[float, ...]:
    """The edge nearest to each threshold, where thm:pra reads it: off by the leaf's Delta at most.

    >>> h = ScoreHistogram(np.array([0.0, 0.25, 0.5, 1.0]), np.ones((2, 3)))
    >>> nearest_edges(h)[:3]
    (0.0, 0.25, 0.25)
    """
    gaps = np.abs(histogram.edges - np.array(THRESHOLDS)[:, None])
    return tuple(map(float, histogram.edges[np.argmin(gaps, axis=1)]))


def read_values(histogram: ScoreHistogram, places: Sequence[float] = THRESHOLDS) -> PerThreshold:
    """What a histogram says, within [0, 1], as anybody would read it."""
    below = np.array([histogram.below(place)[0] for place in places])
    negatives, positives = histogram.total_negatives, histogram.total_positives
    values = _values(positives - below[:, 1], negatives - below[:, 0], positives, negatives)
    return {family: np.clip(each, 0.0, 1.0) for family, each in values.items()}


def errors(
    histogram: ScoreHistogram, truth: PerThreshold, places: Sequence[float] = THRESHOLDS
) -> PerThreshold:
    """Absolute errors at every threshold, of what is read there or at places in their stead."""
    found = read_values(histogram, places)
    return {family: np.abs(found[family] - truth[family]) for family in FAMILIES}


def _values(tp: FloatArray, fp: FloatArray, positives: float, negatives: float) -> PerThreshold:
    flagged = np.where(np.abs(tp + fp) > _NEVER_ABOVE, tp + fp, np.nan)
    everybody = positives + negatives
    return {
        "precision": tp / flagged,
        "recall": tp / positives,
        "accuracy": (tp + negatives - fp) / everybody,
    }


def threshold_points(
    data: str, panel: str, found: dict[tuple[str, float], list[FloatArray]]
) -> list[Point]:
    """A value for every repetition, the mean over thresholds; bars are the spread over these."""
    points = []
    for (curve, x), repeated in found.items():
        rows = np.array(repeated)
        rows = rows[:, np.isfinite(rows).all(axis=0)]
        if rows.size == 0:
            continue
        points.append(
            Point(
                data=data,
                panel=panel,
                curve=curve,
                x=float(x),
                values=tuple(map(float, rows.mean(axis=1))),
                spread=float(np.std(rows.mean(axis=0))),
            )
        )
    return points


def mean_error(each: PerThreshold, families: Iterable[str] = FAMILIES) -> float:
    """The mean over metrics and thresholds that have a value.

    >>> mean_error({"recall": np.array([0.1, np.nan, 0.3])}, ["recall"])
    0.2
    """
    return float(np.nanmean([each[family] for family in families]))
