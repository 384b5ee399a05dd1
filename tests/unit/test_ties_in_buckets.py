"""What lies in the bucket of a tie, or beside it: figures at either place, from rows themselves."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.metrics import average_precision_score

from fedassay import ScoreHistogram
from fedassay.examples import FloatArray
from fedassay.metrics import (
    accuracy,
    average_precision,
    gain,
    specificity_at_recall,
)
from fedassay.metrics.cutoffs import cutoff
from fedassay.metrics.spans import clear_spikes, possible_pairs, spans
from fedassay.noise import DenseNoise
from tests import oracles
from tests.tables import Table

EDGES = np.array([0.0, 0.2, 0.3, 0.3005, 0.4, 0.7, 1.0])
COUNTS = np.array([[2000, 1500, 1600, 700, 300, 50], [20, 30, 400, 60, 80, 90]])
TIE, LOOSE = 0.3002, 60
"""Of the third bucket's rows all but so many have one score."""


def rows(loose_at: float) -> Table:
    """Those rows, the loose ones of the tie's bucket at one place, all others evenly."""
    labels, scores = [], []
    for label, of_label in enumerate(COUNTS):
        for bucket, count in enumerate(of_label):
            place = EDGES[bucket] + (np.arange(count) + 0.5) / count * np.diff(EDGES)[bucket]
            if bucket == 2:
                place = np.where(np.arange(count) < LOOSE * count / 2000, loose_at, TIE)
            labels.append(np.full(count, label))
            scores.append(place)
    return Table(np.concatenate(labels), np.concatenate(scores))


def noisy(counts: npt.NDArray[Any], sd: float, edges: FloatArray = EDGES) -> ScoreHistogram:
    """Counts known up to so much."""
    return ScoreHistogram(edges, counts.astype(float), DenseNoise(sd**2 * np.eye(counts.size)))


@pytest.mark.parametrize("loose_at", [0.30001, 0.30049])
def test_rows_beside_a_tie_in_its_bucket_may_all_lie_on_one_side(loose_at: float) -> None:
    table, h = rows(loose_at), noisy(COUNTS, 1e-3)
    assert cutoff(h, np.ones(2), 0.3 * COUNTS.sum(), reached=True).is_tied
    wanted = oracles.gain_of(table, 0.3)
    found = gain(h, 0.3)
    assert wanted in found.interval(population=False)
    assert found.binning_sd > 0.0
    wanted = average_precision_score(table.labels, table.scores)
    assert wanted in average_precision(h).interval(population=False)


def test_a_crowd_on_both_sides_of_an_edge_is_no_tie_though_one_bucket_is_narrow() -> None:
    """Half of all rows are below .5 and half above, in a bucket of a thousandth."""
    edges = np.array([0.0, 0.1, 0.5, 0.5 + 2.0**-10, 0.502, 1.0])
    crowd = np.array([[0.0, 26000, 17000, 0, 0], [0.0, 4000, 13000, 0, 0]])
    h = noisy(crowd, 5.0, edges)
    assert h.ties[:, 2].sum() > 20_000
    assert not cutoff(h, np.array([1.0, 0.0]), 4300.0, reached=False).is_tied
    alone = crowd.copy()
    alone[:, 1] = 0.0
    assert cutoff(noisy(alone, 5.0, edges), np.array([1.0, 0.0]), 4300.0, reached=False).is_tied
    # Smooth scores beside it may be steep, and it is a tie nevertheless.
    assert cutoff(noisy(COUNTS, 1.0), np.ones(2), 0.3 * COUNTS.sum(), reached=True).is_tied


def test_a_rate_of_a_classifier_that_says_0_or_1_may_leap_to_that_of_everybody() -> None:
    """905 of 1,000 positives are flagged: where recall is .9, 1 in 3 drawn again has fewer."""
    edges = np.array([0.0, 1e-12, 1.0 - 1e-12, 1.0])
    h = ScoreHistogram(edges, np.array([[900.0, 0, 100], [95.0, 0, 905]]))
    flagged = specificity_at_recall(h, 0.9)
    assert flagged.value == pytest.approx(0.9)
    assert flagged.interval().low <= 0.0
    everybody = specificity_at_recall(h, 0.91)
    assert everybody.value == 0.0
    assert everybody.interval().high >= 0.9


def test_beside_rough_neighbours_a_bucket_may_hold_one_score() -> None:
    """Wide buckets jump below, as of a tree; where the cutoff is they happen to be even."""
    even = np.array([np.linspace(900.0, 200.0, 8), np.linspace(300.0, 400.0, 8)])
    jumps = even.copy()
    jumps[:, [0, 2]] *= 8.0
    widths = {}
    for name, counts in (("even", even), ("jumps", jumps)):
        h = noisy(counts, 10.0, np.arange(9) / 8)
        above = 1.0 - h.cumulative / h.cumulative[:, -1:]
        share = float(0.5 * (above[1, 5] + above[1, 6]))
        low, high = specificity_at_recall(h, share).interval(population=False)
        widths[name] = (high - low) / float(above[0, 5] - above[0, 6])
    # Of six buckets with two neighbours three jump, so that another does with a chance of a half:
    # an interval then has five sixths of what that would make it wider on either side.
    assert widths["jumps"] > 0.8
    assert widths["even"] < 0.8 * widths["jumps"]


@pytest.mark.parametrize("end", [0, -1])
def test_what_towers_in_a_wide_end_bucket_has_an_order_under_noise_too(end: int) -> None:
    """Most of both classes are in the first bucket, or the last, of a fifth of the scale."""
    crowd = np.array([[9000.0, 500, 400], [2000.0, 60, 900]])
    edges = np.array([0.0, 0.2, 0.6, 1.0])
    if end:
        crowd, edges = crowd[::-1, ::-1].copy(), 1.0 - edges[::-1]
    h = noisy(crowd, 2.0, edges)
    assert clear_spikes(h)[:, end].min() > 1900
    # As far as neighbours leave it open, half of all pairs in it may change places.
    n, p = crowd[:, end]
    assert possible_pairs(h) > 0.9 * 0.5 * n * p * spans(h).openness[end]


@pytest.mark.parametrize("score", [0.21, 0.62])
def test_a_threshold_at_a_tied_score_that_nobody_asked_for_is_in_the_interval(score: float) -> None:
    """Scores in hundredths, one in each bucket: all buckets are alike, and none is a tower."""
    generator = np.random.default_rng(5)
    scores = np.round(generator.beta(2.0, 2.0, 5000), 2)
    labels = (generator.random(5000) < scores).astype(np.int64)
    edges = np.append(np.arange(100) / 100.0 + 0.0047, 1.0)
    edges = np.concatenate([[0.0], edges])
    counts = np.stack([np.histogram(scores[labels == label], edges)[0] for label in (0, 1)])
    h = noisy(counts, 2.0, edges)
    exact = float(((scores > score) == labels).mean())
    found = accuracy(h, score)
    low, high = found.interval(population=False)
    assert low <= exact <= high
    # An edge has no such doubt.
    edge = float(edges[np.searchsorted(edges, score)])
    first, last = accuracy(h, edge).interval(population=False)
    assert last - first < 0.8 * (high - low)
