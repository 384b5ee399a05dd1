"""Ties and slopes inside narrow buckets, against rows that have them and rows that have none."""

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.metrics import average_precision_score

from fedassay import ScoreHistogram, metrics
from fedassay.metrics.fine_buckets import fine_buckets

Floats = npt.NDArray[np.float64]
ROWS = 30_000


def rows(seed: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """A table of 3 % positives, whose scores are no two alike."""
    generator = np.random.default_rng(seed)
    labels = (generator.random(ROWS) < 0.03).astype(np.int64)
    return labels, np.where(labels, generator.beta(2, 6, ROWS), generator.beta(1, 9, ROWS))


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_fall_where_they_like_are_not_tied(seed: int) -> None:
    """False-alarm rate: four sums within 5 of their standard deviations, 3e-6."""
    fine = fine_buckets(ScoreHistogram.from_scores(*rows(seed)))
    for pairs, variance in (
        (fine.positives, fine.positives_variance),
        (fine.both, fine.both_variance),
    ):
        assert abs(pairs.sum()) < 5.0 * np.sqrt(variance.sum() + 1.0)
    assert fine.clumps == pytest.approx(1.0, abs=0.2)


def test_rows_that_are_there_twice_are_tied_with_each_other() -> None:
    """Every positive has one other, and so have negatives: two rows come together."""
    labels, scores = (np.repeat(column, 2) for column in rows(1))
    fine = fine_buckets(ScoreHistogram.from_scores(labels, scores))
    assert fine.positives.sum() == pytest.approx(labels.sum(), rel=0.15)
    assert fine.clumps == pytest.approx(2.0, rel=0.15)


def test_scores_of_both_classes_on_a_lattice_are_tied_across() -> None:
    """Pairs of a positive and a negative on the same of 6,000 values, counted one by one."""
    labels, scores = rows(2)
    scores = np.round(scores * 6000) / 6000
    fine = fine_buckets(ScoreHistogram.from_scores(labels, scores))
    values, place = np.unique(scores, return_inverse=True)
    n, p = (np.bincount(place[labels == y], minlength=len(values)) for y in (0, 1))
    # Where they tower they are plain to see; what is hidden is part of the rest.
    assert 0.0 < fine.both.sum() < 1.1 * float((n * p).sum())


@pytest.mark.parametrize("seed", range(6))
def test_average_precision_of_rows_drawn_again_is_scikit_learns(seed: int) -> None:
    """Rows drawn with replacement are tied with themselves, in buckets of a fine grid."""
    labels, scores = rows(seed)
    drawn = np.random.default_rng(100 + seed).integers(0, ROWS, ROWS)
    labels, scores = labels[drawn], scores[drawn]
    estimate = metrics.average_precision(ScoreHistogram.from_scores(labels, scores))
    error = estimate.value - average_precision_score(labels, scores)
    assert abs(error) < 3.0 * estimate.binning_sd < 6e-4


def test_a_narrow_hump_is_not_taken_for_ties() -> None:
    """Nearly all scores within a tenth of 8e-5, in an order that matters: few cells hold them."""
    generator = np.random.default_rng(17)
    labels = (generator.random(100_000) < 0.005).astype(np.int64)
    scores = 8e-5 * np.exp(0.03 * generator.normal(size=100_000) + 0.03 * labels)
    clear = (labels == 1) & (generator.random(100_000) < 0.3)
    scores[clear] = generator.beta(0.5, 3.0, int(clear.sum()))
    estimate = metrics.average_precision(ScoreHistogram.from_scores(labels, scores))
    error = estimate.value - average_precision_score(labels, scores)
    assert abs(error) < 3.0 * estimate.binning_sd < 0.01
