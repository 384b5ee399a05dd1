"""Rows with two scores each, simulated at once or report by report."""

import numpy as np
import pytest

from fedassay import Examples
from fedassay.errors import LabelInvalid
from fedassay.examples import ScoredClients
from fedassay.planning.pair_search import design_pair
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.pairs import PairedClients, assess_pair

LABELS, ONE, TWO = [0, 1, 1], [0.1, 0.6, 0.9], [0.7, 0.2, 0.8]


def test_both_models_score_the_same_rows() -> None:
    first = ScoredClients(Examples(LABELS, ONE), None, 3)
    with pytest.raises(LabelInvalid, match=r"found 3 scores of the first and 2 of the second"):
        PairedClients(first, Examples([0, 1], [0.7, 0.2]))


@pytest.mark.parametrize("each_client", [False, True])
def test_report_by_report_and_at_once_count_the_same_pairs(each_client: bool) -> None:
    clients = PairedClients(ScoredClients(Examples(LABELS, ONE), None, 3), Examples(LABELS, TWO))
    design = design_pair(SurveyRequest(clients=3, smallest_cell=0))
    randomness = SimulatedRandomness(np.random.SeedSequence(0))
    found = assess_pair(
        design, clients, thresholds=(0.5,), randomness=randomness, each_client=each_client
    )
    assert found.reports == 3
    counts = found.reclassification(0.5).counts
    assert counts is not None
    # Label x first model above x second model above.
    assert counts.tolist() == [[[0, 1], [0, 0]], [[0, 0], [1, 1]]]
