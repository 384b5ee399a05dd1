"""Counters of exactly 0 and 1: kept where somebody is clear of the noise, else read as nobody."""

from fractions import Fraction

import numpy as np
import pytest

from fedassay.decoding import DecodeOptions, decode
from fedassay.examples import Examples
from fedassay.grid_rules import EPS
from fedassay.hierarchy import Hierarchy
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Privacy
from fedassay.noise import NoNoise, TreeNoise
from fedassay.planning.forecast import expected_histogram, model_for
from fedassay.planning.request import Steps, SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.quiet_ends import without_quiet_ends
from fedassay.tally import Tally

EDGES = np.array([0.0, EPS, 0.3, 0.6, 1.0 - EPS, 1.0])
VARIANCE = 4.0
NOISE = TreeNoise(Hierarchy.flat(5), (np.full((2, 5), VARIANCE),))
QUIET = np.array([[3.0, 80.0, 40.0, 9.0, -3.0], [-2.0, 10.0, 30.0, 60.0, 3.9]])


def request(
    privacy: Privacy, *, epsilon: str = "1", clients: int = 4, reference: Examples | None = None
) -> SurveyRequest:
    """Four hospitals with 2,500 rows."""
    return SurveyRequest(
        privacy=privacy,
        epsilon=Fraction(epsilon),
        clients=clients,
        examples=2500,
        steps=Steps.ONE,
        reference=reference,
    )


def test_ends_that_noise_explains_are_left_out_and_their_neighbours_reach_the_end() -> None:
    read = without_quiet_ends(ScoreHistogram(EDGES, QUIET, NOISE))
    assert read.edges.tolist() == [0.0, 0.3, 0.6, 1.0]
    assert read.counts.tolist() == QUIET[:, 1:4].tolist()


def test_half_of_a_left_out_counters_variance_stays_with_its_neighbour() -> None:
    read = without_quiet_ends(ScoreHistogram(EDGES, QUIET, NOISE))
    for label in (0, 1):
        for bucket, expected in enumerate((1.5 * VARIANCE, VARIANCE, 1.5 * VARIANCE)):
            weights = np.zeros((2, 3))
            weights[label, bucket] = 1.0
            assert read.noise.variance(weights) == pytest.approx(expected)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("end", [0, -1])
def test_one_clear_class_keeps_the_counters_of_both_at_its_end(label: int, end: int) -> None:
    counts = QUIET.copy()
    counts[label, end] = 4.1
    read = without_quiet_ends(ScoreHistogram(EDGES, counts, NOISE))
    kept = slice(0, 4) if end == 0 else slice(1, 5)
    assert read.counts.tolist() == counts[:, kept].tolist()
    assert read.edges[[0, -1]].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("count", "deviations"), [(4.2, 4.2 / 1.96), (9.8, 9.8 / 1.96), (11.0, 2.0)]
)
def test_what_noise_may_have_made_reaches_to_nobody_and_what_it_cannot_does_not(
    count: float, deviations: float
) -> None:
    """A counter that was kept for being large is not believed as one that was not chosen."""
    counts = QUIET.copy()
    counts[1, 0] = count
    read = without_quiet_ends(ScoreHistogram(EDGES, counts, NOISE))
    for label, expected in ((0, 2.0), (1, deviations)):
        weights = np.zeros((2, 4))
        weights[label, 0] = 1.0
        assert np.sqrt(read.noise.variance(weights)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    "noise",
    [
        NoNoise(),
        TreeNoise(Hierarchy.flat(5), NOISE.variances, total_is_known=True),
        TreeNoise(Hierarchy.flat(5), NOISE.variances, table=np.abs(QUIET)),
    ],
    ids=["exact", "known total", "sampled"],
)
def test_counts_without_a_noise_of_their_own_stay_as_they_are(noise: NoNoise | TreeNoise) -> None:
    histogram = ScoreHistogram(EDGES, QUIET, noise)
    assert without_quiet_ends(histogram) is histogram


def test_levels_that_were_fitted_to_each_other_stay_as_they_are() -> None:
    tree = Hierarchy(6, (2, 3))
    variances = tuple(np.ones((2, cells)) for cells in tree.cells_per_level)
    edges = np.array([0.0, EPS, 0.2, 0.3, 0.6, 1.0 - EPS, 1.0])
    histogram = ScoreHistogram(edges, np.zeros((2, 6)), TreeNoise(tree, variances))
    assert without_quiet_ends(histogram) is histogram


def test_an_end_cell_that_holds_more_than_one_score_is_no_counter_of_it() -> None:
    edges = np.array([0.0, 2.0**-40, 0.3, 0.6, 1.0 - 2.0**-40, 1.0])
    histogram = ScoreHistogram(edges, QUIET, NOISE)
    assert without_quiet_ends(histogram) is histogram


@pytest.mark.parametrize("epsilon", ["1/10", "3/10", "1"])
def test_small_surveys_with_shared_noise_count_exactly_0_and_1_apart(epsilon: str) -> None:
    edges = design_survey(request(Privacy.DISTRIBUTED, epsilon=epsilon)).survey.grid.edges
    assert (edges[1], edges[-2]) == (EPS, 1.0 - EPS)


def test_a_reference_says_by_itself_where_scores_lie() -> None:
    scores = np.random.default_rng(3).beta(2.0, 5.0, 500)
    reference = Examples(np.arange(500) % 4 == 0, scores)
    edges = design_survey(request(Privacy.DISTRIBUTED, reference=reference)).survey.grid.edges
    assert EPS not in edges


@pytest.mark.parametrize("privacy", [Privacy.LOCAL, Privacy.SITE])
def test_where_sites_are_added_up_or_every_cell_is_dear_there_are_no_such_cells(
    privacy: Privacy,
) -> None:
    asked = request(privacy, clients=2500 if privacy is Privacy.LOCAL else 4)
    assert EPS not in design_survey(asked).survey.grid.edges


def test_a_default_of_0_is_decoded_in_a_bucket_of_its_own_and_nobody_in_none() -> None:
    survey = design_survey(request(Privacy.DISTRIBUTED)).survey
    cells = survey.grid.cells
    for at_zero, buckets in ((0, cells - 2), (40, cells - 1)):
        counts = np.full((2, cells), 50)
        counts[:, [0, -1]] = 0
        counts[1, 0] = at_zero
        tally = Tally(survey.fingerprint, (4,), counts.ravel())
        read = decode(survey, tally, decode_options=DecodeOptions())
        assert read.buckets == buckets
        assert read.total == counts.sum()


def test_a_plan_expects_what_is_read_where_nobody_has_such_a_score() -> None:
    asked = request(Privacy.DISTRIBUTED)
    survey = design_survey(asked).survey
    expected = expected_histogram(survey, model_for(asked), clients=4)
    assert expected.buckets == survey.grid.cells - 2
