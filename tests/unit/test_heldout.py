"""A calibrator is judged on clients that did not fit it."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

from fedassay import Examples, SurveyRequest
from fedassay.calibration import Method
from fedassay.errors import SettingInvalid
from fedassay.metrics.exact_rows import row_calibration
from fedassay.planning.search import design_survey
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.heldout import held_out, split_clients
from tests.surveys import cohort_of

ROWS = 3000


def test_errors_before_and_after_are_those_of_the_other_half() -> None:
    rng = np.random.default_rng(5)
    # The fitting half is always wrong by its square root; the testing half is right as it is.
    truth = rng.random(2 * ROWS)
    labels = (rng.random(2 * ROWS) < truth).astype(int)
    fitting = cohort_of(Examples(labels[:ROWS], np.sqrt(truth[:ROWS])))
    testing = cohort_of(Examples(labels[ROWS:], truth[ROWS:]))
    result = held_out(
        design_survey(SurveyRequest(clients=ROWS)),
        fitting,
        testing,
        randomness=SimulatedRandomness(0),
        method=Method.ISOTONIC,
    )
    assert (result.fitting_clients, result.rows) == (ROWS, ROWS)
    assert result.before["brier"] == pytest.approx(brier_score_loss(labels[ROWS:], truth[ROWS:]))
    # A map that squares makes right scores wrong: it was fitted on the other half.
    assert result.before["ece"] < 0.05
    assert result.after["ece"] == pytest.approx(1 / 2 - 1 / 3, abs=0.04)


def test_calibration_of_rows_is_that_of_bins_and_of_scikit_learn() -> None:
    labels = np.array([0, 0, 1, 0, 0, 1, 1])
    # 0.05 and 0.1 are upper edges, so that 0.1 and 0.07 share a bin; 0 belongs to the first.
    predictions = np.array([0.0, 0.05, 0.1, 0.1, 0.07, 0.92, 1.0])
    values = row_calibration(Examples(labels, predictions), predictions)
    # Bins (0, 0.05], (0.05, 0.1], (0.9, 0.95], (0.95, 1]: 0.05, 0.73, 0.08 and 0 of 7.
    assert values["ece"] == pytest.approx((0.05 + 0.73 + 0.08) / 7)
    assert values["brier"] == pytest.approx(brier_score_loss(labels, predictions))
    assert values["log_loss"] == pytest.approx(log_loss(labels, predictions))


def test_one_client_cannot_be_split() -> None:
    one = cohort_of(Examples([0, 1], [0.1, 0.9]), [0, 0])
    with pytest.raises(SettingInvalid, match="at least 2 clients"):
        split_clients(one, np.random.default_rng(0))


@pytest.mark.parametrize("owned", [False, True])
def test_halves_of_the_clients_share_none_and_miss_none(owned: bool) -> None:
    examples = Examples(np.arange(60) % 2, (np.arange(60) + 0.5) / 60)
    owners = (np.arange(60) // 4).tolist() if owned else None
    left, right = split_clients(cohort_of(examples, owners), np.random.default_rng(3))
    assert (left.clients, right.clients) == ((7, 8) if owned else (30, 30))
    rows = [(half.examples.scores * 60).astype(int) for half in (left, right)]
    assert sorted(np.concatenate(rows).tolist()) == list(range(60))
    if owned:
        assert not set(rows[0] // 4) & set(rows[1] // 4)
        for half, of_half in zip((left, right), rows, strict=True):
            assert half.client_of_row is not None
            # The same client, by whatever number: four rows each.
            assert len(set(zip(half.client_of_row, of_half // 4, strict=True))) == half.clients
