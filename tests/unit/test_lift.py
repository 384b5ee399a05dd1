"""Gain and lift, against rows taken one by one from the highest score down."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedassay import Grid, ScoreHistogram
from fedassay.errors import SettingInvalid
from fedassay.estimate import TooCoarse
from fedassay.metrics import gain, lift
from tests.oracles import gain_of, rare
from tests.tables import Table, tables
from tests.unit.test_delta_method import UnitNoise


@settings(max_examples=60)
@given(
    tables(),
    st.sampled_from([Grid.fine(2**12), Grid.uniform(16), Grid.uniform(3)]),
    st.floats(0.02, 1.0) | st.sampled_from([0.1, 0.25, 0.5, 1.0]),
)
def test_gain_of_any_rows_lies_within_its_binning_bound(
    table: Table, grid: Grid, share: float
) -> None:
    found = gain(ScoreHistogram.from_scores(*table, grid=grid), share)
    if found.is_available:
        assert abs(found.value - gain_of(table, share)) <= found.binning_bound + 1e-9


@pytest.mark.parametrize("rate", [None, 0.01])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_lift_of_real_and_crowded_rows_is_that_of_the_rows(
    real_table: Table, rate: float | None, share: float
) -> None:
    table = real_table if rate is None else rare(real_table, rate)
    few = Table(table.labels[:20_000], np.round(table.scores[:20_000], 4))
    exact = gain_of(few, share)
    for grid in (Grid.fine(), Grid.warped(few.scores, 200)):
        h = ScoreHistogram.from_scores(*few, grid=grid)
        found = gain(h, share)
        assert abs(found.value - exact) <= found.binning_bound + 1e-9
        assert abs(found.value - exact) <= 5.0 * found.binning_sd + 0.3 * found.sampling_sd
        times = lift(h, share)
        assert times.value == pytest.approx(found.value / share)
        assert times.interval() == pytest.approx([end / share for end in found.interval()])


def test_of_ten_scores_a_tie_counts_in_part(sample: Table) -> None:
    table = Table(sample.labels, np.clip(np.round(sample.scores, 1), 0.1, 0.9))
    h = ScoreHistogram.from_scores(*table)
    for share in (0.05, 0.1, 0.3):
        assert gain(h, share).value == pytest.approx(gain_of(table, share), abs=1e-9)


def test_acting_on_everybody_finds_all_and_at_random_as_many_as_its_share() -> None:
    rng = np.random.default_rng(1)
    h = ScoreHistogram.from_scores((rng.random(20_000) < 0.2).astype(int), rng.random(20_000))
    assert gain(h, 1.0).value == pytest.approx(1.0)
    found = lift(h, 0.1)
    assert 1.0 in found.interval(0.999)
    # Conditional on the 4,000 positives, each is among the tenth with a chance of a tenth.
    assert found.sampling_sd == pytest.approx(10 * np.sqrt(0.09 / 4000 * 0.8), rel=0.1)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.01, float("nan")])
def test_the_share_to_act_on_is_a_share(share: float) -> None:
    h = ScoreHistogram.from_scores([0, 1], [0.2, 0.8])
    with pytest.raises(SettingInvalid):
        gain(h, share)


def test_without_positives_or_clear_of_noise_there_is_no_lift() -> None:
    assert not lift(ScoreHistogram.from_scores([0, 0], [0.2, 0.8]), 0.5).is_available
    noisy = ScoreHistogram(np.arange(11) / 10, np.full((2, 10), 3.0), UnitNoise())
    found = lift(noisy, 0.01)
    assert not found.is_available
    assert "the highest 0.01 of examples must stand clear" in str(found)


def test_gain_that_cells_hide_is_too_coarse() -> None:
    """Five of 100 are taken from a cell that half of all rows share: they may be its positives."""
    counts = np.array([[5000.0, 5000.0], [100.0, 900.0]])
    coarse = ScoreHistogram(np.array([0.0, 0.5, 1.0]), counts)
    assert isinstance(gain(coarse, 0.05), TooCoarse)
    assert isinstance(lift(coarse, 0.05), TooCoarse)
    assert gain(coarse, 0.6).is_available
