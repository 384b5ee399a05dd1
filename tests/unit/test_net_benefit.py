"""Net benefit and the decision curve, against rows counted one by one."""

import numpy as np
import pytest
from hypothesis import given, settings

from fedassay import Grid, ScoreHistogram
from fedassay.errors import SettingInvalid
from fedassay.metrics import (
    decision_curve,
    net_benefit,
    net_benefit_of_all,
    net_benefit_over_all,
)
from tests.oracles import rare
from tests.tables import Table, scores, tables


def worth(table: Table, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """What each row adds when acting on its score, and when acting on everybody."""
    each = np.where(table.labels == 1, 1.0, -threshold / (1.0 - threshold))
    return each * (table.scores > threshold), each


@settings(max_examples=40)
@given(tables(), scores().filter(lambda t: 0.0 < t < 0.999))
def test_on_an_edge_net_benefit_is_the_mean_worth_of_rows(table: Table, threshold: float) -> None:
    h = ScoreHistogram.from_scores(*table, grid=Grid.uniform(16).with_edges_at([threshold]))
    model, everybody = worth(table, threshold)
    for found, rows in (
        (net_benefit(h, threshold), model),
        (net_benefit_of_all(h, threshold), everybody),
        (net_benefit_over_all(h, threshold), model - everybody),
    ):
        assert found.value == pytest.approx(rows.mean(), rel=1e-9, abs=1e-12)
        assert found.binning_bound == 0.0


@pytest.mark.parametrize("rate", [None, 0.01])
def test_the_sampling_error_is_that_of_a_mean_also_of_the_difference(
    real_table: Table, rate: float | None
) -> None:
    table = real_table if rate is None else rare(real_table, rate)
    threshold = 0.3 if rate is None else 0.02
    h = ScoreHistogram.from_scores(*table, grid=Grid.fine().with_edges_at([threshold]))
    model, everybody = worth(table, threshold)
    rows = np.sqrt(len(model))
    assert net_benefit(h, threshold).sampling_sd == pytest.approx(model.std() / rows, rel=1e-6)
    assert net_benefit_over_all(h, threshold).sampling_sd == pytest.approx(
        (model - everybody).std() / rows, rel=1e-6
    )
    apart = np.hypot(model.std(), everybody.std()) / rows
    assert net_benefit_over_all(h, threshold).sampling_sd < 0.95 * apart


def test_a_curve_is_net_benefit_at_each_threshold_and_better_where_both_ends_say_so() -> None:
    rng = np.random.default_rng(3)
    values = rng.random(2000)
    table = Table((rng.random(2000) < values).astype(np.int64), values)
    h = ScoreHistogram.from_scores(*table)
    curve = decision_curve(h)
    assert curve.thresholds.tolist() == pytest.approx([k / 100 for k in range(1, 100)])
    for place in (0, 40, 98):
        at = float(curve.thresholds[place])
        assert curve.net_benefit[place].value == net_benefit(h, at).value
        assert curve.treat_all[place].value == net_benefit_of_all(h, at).value
        assert curve.over_all[place].value == net_benefit_over_all(h, at).value
    better = curve.is_better()
    # A calibrated score is better than both ways, surely so where much depends on it.
    assert better[20:60].all()
    assert not better.all()
    assert better.sum() > curve.is_better(0.9999).sum()


def test_acting_on_everybody_may_be_better_and_then_no_threshold_is() -> None:
    rng = np.random.default_rng(4)
    labels = (rng.random(500) < 0.5).astype(np.int64)
    curve = decision_curve(ScoreHistogram.from_scores(labels, rng.random(500)), [0.1, 0.2])
    assert not curve.is_better().any()
    assert curve.over_all[0].interval().high < 0.0


def test_where_nobody_is_flagged_the_next_one_might_be() -> None:
    h = ScoreHistogram.from_scores([0] * 90 + [1] * 10, [0.2] * 100)
    found = net_benefit(h, 0.5)
    assert found.value == 0.0
    # Half an example of worth 1 or -1.
    assert found.sampling_sd == pytest.approx(np.sqrt(0.5) / 100)


def test_a_threshold_of_1_has_infinite_odds_and_is_refused_in_words() -> None:
    h = ScoreHistogram.from_scores([0, 1], [0.2, 0.8])
    assert "infinite at 1. Choose a threshold below 1." in str(net_benefit(h, 1.0))
    for thresholds in ([0.5, 1.0], []):
        with pytest.raises(SettingInvalid, match="thresholds from 0 to below 1"):
            decision_curve(h, thresholds)


def test_nobody_has_no_net_benefit() -> None:
    empty = ScoreHistogram(np.array([0.0, 1.0]), np.zeros((2, 1)))
    assert not net_benefit(empty, 0.5).is_available
    assert not net_benefit_over_all(empty, 0.5).is_available
