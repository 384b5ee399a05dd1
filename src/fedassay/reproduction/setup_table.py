"""The tables themselves, beside the paper's (`tab:exp_setup`): size, ranking and calibration."""

import numpy as np

from fedassay.reproduction.datasets import Dataset
from fedassay.reproduction.results import Point, points_of
from fedassay.reproduction.settings import BINS

OBSERVED, IDEAL = "observed share of positives", "calibrated"
PANEL = "uncalibrated scores"


def reliability(data: Dataset, generator: np.random.Generator) -> list[Point]:
    """The share of positives against the mean score, in 20 bins of equal width.

    Nothing is drawn: the generator is that of every part.
    """
    del generator
    scores, labels = data.examples.scores, data.examples.labels
    place = np.clip(np.ceil(scores * BINS).astype(np.int64) - 1, 0, BINS - 1)
    size = np.bincount(place, minlength=BINS)
    means = np.bincount(place, scores, BINS) / np.maximum(size, 1)
    shares = np.bincount(place, labels, BINS) / np.maximum(size, 1)
    there = np.flatnonzero(size)
    values = {(OBSERVED, float(means[i])): [float(shares[i])] for i in there}
    values |= {(IDEAL, float(means[i])): [float(means[i])] for i in there}
    return points_of(data.name, PANEL, values)
