"""The gaps that ECE sums, over time: against rows, drawn laws and changes that are known."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from fedassay import Assessment, DecodeOptions, Grid, ScoreHistogram, Tally
from fedassay.calibration import ece
from fedassay.calibration.gap_intervals import nil_score
from fedassay.examples import FloatArray
from fedassay.tracking.advice import Action, advise
from fedassay.tracking.alarms import Watch, find_alarms
from fedassay.tracking.gap_series import GapSeries, cuts_among, gaps_between
from fedassay.tracking.history import History
from tests.laws import FALSE_ALARM
from tests.surveys import flat_survey

RIGHT = np.array([[350, 187, 75, 20], [50, 113, 125, 140]])
"""Each cell's share of positives is about its middle score."""
LOW = np.array([[290, 130, 45, 10], [110, 170, 155, 150]])
"""Of the same rows more came true than was said."""
WATCH = Watch(("ece",))


def look(counts: np.ndarray, seed: int, grid: Grid | None = None) -> Assessment:
    survey = flat_survey(grid or Grid.uniform(4))
    drawn = np.random.default_rng(seed).poisson(4 * counts)
    tally = Tally(survey.fingerprint, (10,), drawn.ravel().astype(np.int64))
    return Assessment(survey, tally, DecodeOptions())


def history(*looks: Assessment) -> History:
    return History({f"{2020 + i // 12}-{1 + i % 12:02}": each for i, each in enumerate(looks)})


def months(*kinds: np.ndarray) -> History:
    return history(*(look(each, seed) for seed, each in enumerate(kinds)))


def test_a_loss_of_calibration_is_noticed_where_it_began_and_calls_for_a_new_map() -> None:
    changed = months(*[RIGHT] * 10, *[LOW] * 4)
    (alarm,) = find_alarms(changed, WATCH)
    assert (alarm.at, alarm.since) == ("2020-11", "2020-11")
    # Of the rows' own gaps: nil before, and after 60, 57, 30 and 10 more of 1,060 came true.
    assert alarm.before < 0.02
    assert alarm.after == pytest.approx(157 / 1060, abs=0.03)
    assert "ece rose" in alarm.sentence()
    assert advise(changed, WATCH).action is Action.RECALIBRATE


def test_calibration_that_came_back_calls_for_nothing() -> None:
    mended = months(*[RIGHT] * 8, *[LOW] * 8, *[RIGHT] * 4)
    alarms = find_alarms(mended, WATCH)
    assert [each.after > each.before for each in alarms] == [True, False]
    assert advise(mended, WATCH).action is Action.WAIT


def test_other_rows_that_scores_follow_move_no_gap() -> None:
    """Half as many of the rows have high scores, and as many of these come true."""
    seldom = np.array([[700, 187, 37, 10], [100, 113, 63, 70]])
    assert find_alarms(months(*[RIGHT] * 10, *[seldom] * 6), WATCH) == []


def test_gaps_are_those_of_rows_between_the_cuts() -> None:
    generator = np.random.default_rng(5)
    scores = generator.choice(np.linspace(0.005, 0.995, 100), 3000)
    labels = (generator.random(3000) < scores**2).astype(int)
    histogram = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(100))
    cuts = np.array([0.0, 0.13, 0.4, 1.0])
    expected = [
        (labels - scores)[(scores > low) & (scores < high)].sum() / 3000
        for low, high in pairwise(cuts)
    ]
    found = gaps_between(histogram, cuts)
    assert found.sizes == pytest.approx(expected, abs=2e-4)
    assert found.mass.sum() == pytest.approx(1.0)
    # Rows' own variance of (label - score) / n, for each bin.
    spread = [
        ((labels - scores)[(scores > low) & (scores < high)] ** 2).sum() / 3000**2
        for low, high in pairwise(cuts)
    ]
    assert np.diag(found.covariance) == pytest.approx(spread, rel=0.1)


def test_places_inside_buckets_count_where_they_may_be_others() -> None:
    """Rows at one place of a bucket of width 1/4: the mean score may be 1/4 / sqrt(12) off."""
    histogram = look(RIGHT, 0).histogram()
    cuts = np.array([0.0, 0.5, 1.0])
    more = np.diag(gaps_between(histogram, cuts, tied=True).covariance)
    more = more - np.diag(gaps_between(histogram, cuts).covariance)
    share = histogram.counts.sum(axis=0) / histogram.counts.sum()
    squares = (share * 0.25) ** 2 / 12.0
    assert more == pytest.approx([squares[:2].sum(), squares[2:].sum()])


def test_bins_end_where_buckets_of_all_looks_do() -> None:
    edges = np.array([0.0, 0.3, 0.52, 1.0])
    assert cuts_among(edges).tolist() == edges.tolist()
    fine = np.linspace(0.0, 1.0, 401)
    assert cuts_among(fine) == pytest.approx(np.linspace(0.0, 1.0, 21))


def test_another_grid_is_no_change_and_leaves_what_was_told() -> None:
    """Cells of a quarter, then of a half: one edge in common."""
    halves = Grid.uniform(2)
    merged = RIGHT.reshape(2, 2, 2).sum(axis=2)
    before = [look(RIGHT, seed) for seed in range(8)]
    after = [look(merged, 100 + seed, halves) for seed in range(8)]
    both = GapSeries.of(history(*before, *after))
    assert find_alarms(history(*before, *after), WATCH) == []
    assert both.residuals(0)[:7] == pytest.approx(GapSeries.of(history(*before)).residuals(0))
    assert len(both.residuals(0)) == 15


def test_finer_cells_that_show_what_was_hidden_are_no_change() -> None:
    """Cells of a tenth, then of a twentieth, whose gaps are up and down by a fifth in turn."""
    middles = (np.arange(20) + 0.5) / 20
    rate = np.clip(middles + np.where(np.arange(20) % 2, 0.2, -0.2), 0.01, 0.99)
    fine = 500 * np.stack([1.0 - rate, rate])
    coarse = fine.reshape(2, 10, 2).sum(axis=2)
    before = [look(coarse, seed, Grid.uniform(10)) for seed in range(8)]
    after = [look(fine, 100 + seed, Grid.uniform(20)) for seed in range(8)]
    assert find_alarms(history(*before, *after), WATCH) == []


def test_a_change_is_noticed_across_grids() -> None:
    """40 cells, then 60: every second edge and every third are the same."""
    before = [look(np.repeat(RIGHT, 10, axis=1) / 10, each, Grid.uniform(40)) for each in range(8)]
    after = [look(np.repeat(LOW, 15, axis=1) / 15, each, Grid.uniform(60)) for each in range(8)]
    assert find_alarms(history(*before, *after), WATCH)[0].since == "2020-09"


def test_a_look_without_rows_to_divide_by_is_left_out() -> None:
    nothing = look(np.zeros((2, 4)), 0)
    series = GapSeries.of(history(look(RIGHT, 0), nothing, look(RIGHT, 1)))
    assert series.times == ["2020-01", "2020-03"]


@pytest.mark.parametrize("together", [0.0, 0.6])
def test_a_sum_of_sizes_as_a_normal_figure_is_one(together: float) -> None:
    """Sizes of 12 normal figures of unequal spread, drawn: the score's quantiles are normal's.

    The gamma law is near and not exact: 0.05 is allowed for it, and 4,000 draws' own error at one
    in a million. A score that forgot the covariance would spread by 1.5.
    """
    generator = np.random.default_rng(7)
    sds = np.linspace(0.2, 1.0, 12)
    covariance = np.outer(sds, sds) * (together + (1.0 - together) * np.eye(12))
    drawn: FloatArray = generator.multivariate_normal(np.zeros(12), covariance, 4000)
    scores = np.array([nil_score(each, covariance) for each in drawn])
    far = stats.kstwo.isf(FALSE_ALARM, len(scores))
    assert stats.kstest(scores, "norm").statistic < far + 0.05
    alone = np.array([nil_score(each, np.diag(sds**2)) for each in drawn])
    assert (stats.kstest(alone, "norm").statistic > far + 0.05) == (together > 0.0)


def test_ece_is_a_looks_figure_by_name() -> None:
    seen = look(LOW, 0)
    assert seen["ece"].interval() == ece(seen.histogram()).interval()
