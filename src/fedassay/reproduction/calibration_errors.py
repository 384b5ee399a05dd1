"""Calibration on one half of the rows, judged on the other (`fig:calib`, `fig:calib-pop`)."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fedassay.calibration import Method, fit, fit_auto
from fedassay.calibration.binning import fit_binning
from fedassay.examples import Examples, FloatArray
from fedassay.extras import needed_for
from fedassay.metrics.exact_rows import row_calibration
from fedassay.reproduction.datasets import Dataset
from fedassay.reproduction.federations import (
    default_design,
    default_histogram,
    paper_design,
    paper_histogram,
)
from fedassay.reproduction.results import Point, points_of
from fedassay.reproduction.settings import BINS, Model, Settings

BINNING, BBQ = "quantile buckets, as many as bins", "BBQ"
RAW, ISOTONIC, DEFAULT = "uncalibrated", "isotonic, centralised", "our default"
PANEL = "calibration error"
WEIGHT = "BBQ: weight of its heaviest binning"


def by_bins(
    data: Dataset, model: Model, settings: Settings, generator: np.random.Generator
) -> list[Point]:
    """Calibration errors for every number of bins, of all ways to calibrate."""
    clients = len(data.examples) // 2
    paper, default = paper_design(model, clients), default_design(model, clients)
    values: dict[tuple[str, float], list[float]] = defaultdict(list)
    for _ in range(settings.repetitions):
        fitting, testing = halves(data.examples, generator)
        leaves = paper_histogram(paper, fitting, generator)
        ours = fit_auto(default_histogram(default, fitting, generator))
        averaged = fit(leaves, Method.BBQ, noise_aware=False)
        values[WEIGHT, BINS].append(averaged.parameters["heaviest_weight"])
        mapped = {
            RAW: testing.scores,
            ISOTONIC: isotonic(fitting, testing.scores),
            BBQ: averaged.predict(testing.scores),
            DEFAULT: ours.predict(testing.scores),
        }
        for bins in settings.bins:
            binned = fit_binning(leaves, buckets=bins, noise_aware=False)
            mapped[BINNING] = binned.predict(testing.scores)
            for name, predicted in mapped.items():
                values[name, bins].append(ece(testing, predicted, bins))
    return points_of(data.name, model.name, values)


def by_clients(
    data: Dataset, model: Model, clients: int, settings: Settings, generator: np.random.Generator
) -> list[Point]:
    """Calibration errors in 20 bins of maps that so many clients fitted, 20 buckets.

    Isotonic regression has the same rows; as it knows no noise, it is drawn with exact sums alone.
    """
    values: dict[tuple[str, float], list[float]] = defaultdict(list)
    for each in repeated_errors(data, model, clients, settings.repetitions, generator):
        values[model.name, clients].append(each.preset)
        values[f"{model.name}: default", clients].append(each.default)
        if not model.privacy.spends_epsilon:
            raw = each.testing.scores
            values[RAW, clients].append(ece(each.testing, raw, BINS))
            mapped = isotonic(each.fitting, raw)
            values[ISOTONIC, clients].append(ece(each.testing, mapped, BINS))
    return points_of(data.name, PANEL, values)


class Repetition(NamedTuple):
    """One division of the rows, and the errors of both maps on the half that fitted none."""

    fitting: Examples
    testing: Examples
    preset: float
    default: float


def repeated_errors(
    data: Dataset, model: Model, clients: int, times: int, generator: np.random.Generator
) -> Iterator[Repetition]:
    """The paper's binning and our default: errors of every repetition."""
    default = default_design(model, clients)
    for _ in range(times):
        fitting, testing = sampled_halves(data.examples, clients, generator)
        ours = fit_auto(default_histogram(default, fitting, generator))
        preset = binning_error(model, fitting, testing, generator)
        yield Repetition(fitting, testing, preset, ece(testing, ours.predict(testing.scores), BINS))


def binning_error(
    model: Model, fitting: Examples, testing: Examples, generator: np.random.Generator
) -> float:
    """The error in 20 bins of the paper's 20 quantile buckets, fitted by some rows for others."""
    leaves = paper_histogram(paper_design(model, len(fitting)), fitting, generator)
    binned = fit_binning(leaves, buckets=BINS, noise_aware=False)
    return ece(testing, binned.predict(testing.scores), BINS)


def sampled_halves(
    examples: Examples, clients: int, generator: np.random.Generator
) -> tuple[Examples, Examples]:
    """So many clients drawn again from one random half, and the other half."""
    fitting, testing = halves(examples, generator)
    return fitting.rows(generator.integers(len(fitting), size=clients)), testing


def halves(examples: Examples, generator: np.random.Generator) -> tuple[Examples, Examples]:
    """Two random halves: to fit, and to test."""
    order = generator.permutation(len(examples))
    middle = len(examples) // 2
    return examples.rows(order[:middle]), examples.rows(order[middle:])


def isotonic(fitting: Examples, scores: FloatArray) -> FloatArray:
    """Scores mapped by scikit-learn's isotonic regression on the rows themselves."""
    with needed_for("the centralised baseline"):
        from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    model.fit(fitting.scores, fitting.labels)
    return np.asarray(model.predict(scores), dtype=np.float64)


def ece(testing: Examples, predicted: FloatArray, bins: int) -> float:
    """The expected calibration error of predictions, in bins of equal width.

    >>> ece(Examples([0, 1, 1, 1], [0.5] * 4), np.full(4, 0.5), 20)
    0.25
    """
    return row_calibration(testing, predicted, bins=bins)["ece"]
