"""A federation about classes finds the figures of its rows, in every privacy model."""

from fractions import Fraction

import numpy as np
import pytest

import fedassay
from fedassay.classes.class_design import ClassDesign
from fedassay.classes.class_survey import (
    class_survey,
)
from fedassay.classes.confusion_matrix import ConfusionMatrix
from fedassay.classes.design import design_classes
from fedassay.classes.exact_figures import exact_confusion, exact_figures
from fedassay.classes.result import simulate_cohort
from fedassay.classes.rows import ClassRows
from fedassay.classes.tallies import ClassCohort
from fedassay.errors import SettingInvalid
from fedassay.estimate import NotEnoughData
from fedassay.grid import Grid
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Privacy
from fedassay.metrics import prevalence
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SimulatedRandomness
from tests.class_rows import drawn_rows

ROWS = drawn_rows(4000, (4.0, 2.0, 1.0), sharpness=1.3)
EXACT = exact_figures(ROWS)


def seeded(seed: int = 0) -> SimulatedRandomness:
    return SimulatedRandomness(np.random.SeedSequence(seed))


def asked(privacy: Privacy, epsilon: int | None = None) -> SurveyRequest:
    return SurveyRequest(
        privacy=privacy,
        epsilon=None if epsilon is None else Fraction(epsilon),
        clients=len(ROWS),
        dropouts=Fraction(0),
        smallest_cell=None if privacy.spends_epsilon else 0,
    )


def test_without_noise_every_figure_is_that_of_the_rows() -> None:
    survey = design_classes(asked(Privacy.SECURE), ROWS.names)
    found = simulate_cohort(survey, ClassCohort.of(ROWS), randomness=seeded(), exact=EXACT)
    assert set(found) == set(EXACT)
    for name, estimate in found.estimates().items():
        exact = EXACT[name] or 0.0
        if not name.startswith("ece"):
            assert abs(estimate.value - exact) <= min(estimate.binning_bound + 1e-9, 2e-4), name
        assert exact in estimate.interval(0.999), name
        assert estimate.sampling_sd > 0.0, name
    confusion = found.confusion
    assert isinstance(confusion, ConfusionMatrix)
    counts = [[round(share.value * confusion.total) for share in row] for row in confusion.shares]
    assert counts == exact_confusion(ROWS).tolist()


@pytest.mark.parametrize(
    ("privacy", "design"),
    [
        (Privacy.DISTRIBUTED, ClassDesign.EVERY),
        (Privacy.DISTRIBUTED, ClassDesign.DRAWN),
        (Privacy.DISTRIBUTED, ClassDesign.OWN),
        (Privacy.LOCAL, ClassDesign.DRAWN),
        (Privacy.LOCAL, ClassDesign.OWN),
    ],
)
def test_under_noise_intervals_hold_the_figures_of_the_rows(
    privacy: Privacy, design: ClassDesign
) -> None:
    survey = class_survey(asked(privacy, 8), ROWS.names, design, Grid.uniform(12))
    found = simulate_cohort(survey, ClassCohort.of(ROWS), randomness=seeded(1), exact=EXACT)
    for name in ("roc_auc/0", "roc_auc/macro", "roc_auc/micro", "accuracy", "brier"):
        assert EXACT[name] in found[name].interval(0.9999), name
        assert found[name].noise_sd > 0.0, name


def test_reports_made_one_by_one_give_the_same_sums_without_noise() -> None:
    survey = design_classes(asked(Privacy.SECURE), ROWS.names)
    cohort = ClassCohort.of(ROWS, np.arange(len(ROWS)) % 7)
    at_once = simulate_cohort(survey, cohort, randomness=seeded(), exact=EXACT)
    each = simulate_cohort(survey, cohort, randomness=seeded(), exact=EXACT, each_client=True)
    for one, other in zip(at_once.tallies, each.tallies, strict=True):
        assert one.counters.tolist() == other.counters.tolist()
        assert one.reports == other.reports == (7,)


def test_units_that_draw_a_part_answer_exactly_one() -> None:
    survey = class_survey(asked(Privacy.LOCAL, 8), ROWS.names, ClassDesign.DRAWN, Grid.uniform(8))
    found = simulate_cohort(survey, ClassCohort.of(ROWS), randomness=seeded(), exact=EXACT)
    assert sum(tally.reports[0] for tally in found.tallies) == len(ROWS)
    every = class_survey(asked(Privacy.LOCAL, 8), ROWS.names, ClassDesign.EVERY, Grid.uniform(8))
    found = simulate_cohort(every, ClassCohort.of(ROWS), randomness=seeded(), exact=EXACT)
    assert {tally.reports[0] for tally in found.tallies} == {len(ROWS)}


def test_all_rows_of_a_client_are_in_the_part_that_it_draws() -> None:
    request = SurveyRequest(
        privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=2000, dropouts=Fraction(0)
    )
    survey = class_survey(request, ROWS.names, ClassDesign.DRAWN, Grid.uniform(8))
    owners = np.repeat(np.arange(2000), 2)
    found = simulate_cohort(survey, ClassCohort.of(ROWS, owners), randomness=seeded(), exact=EXACT)
    assert sum(tally.reports[0] for tally in found.tallies) == 2000


def test_a_class_that_never_occurs_says_so_and_leaves_the_weighted_average_alone() -> None:
    seen = ROWS.labels != 2
    rows = ClassRows(ROWS.labels[seen], ROWS.scores[seen], ROWS.names)
    exact = exact_figures(rows)
    for smallest in (0, 10):
        request = SurveyRequest(clients=len(rows), smallest_cell=smallest)
        survey = design_classes(request, rows.names)
        found = simulate_cohort(survey, ClassCohort.of(rows), randomness=seeded())
        assert isinstance(found["roc_auc/2"], NotEnoughData)
        macro = found["roc_auc/macro"]
        assert isinstance(macro, NotEnoughData)
        assert "needs every one; 2 has no value" in macro.reason
        assert exact["log_loss"] in found["log_loss"].interval()
        assert found["roc_auc/weighted"].value == pytest.approx(exact["roc_auc/weighted"], abs=1e-3)
        assert found["accuracy"].value == pytest.approx(exact["accuracy"], abs=1e-9)
    # Of the last one, with a smallest cell: that the class never occurs is no secret.
    assert isinstance(macro, NotEnoughData)
    assert "no row is of this class: it never occurs" in macro.reason


def test_no_count_below_the_smallest_cell_is_in_a_published_confusion_matrix() -> None:
    survey = design_classes(SurveyRequest(clients=len(ROWS), smallest_cell=60), ROWS.names)
    found = simulate_cohort(survey, ClassCohort.of(ROWS), randomness=seeded(), exact=EXACT)
    exact, confusion = exact_confusion(ROWS), found.confusion
    assert (exact < 60).any()
    assert isinstance(confusion, ConfusionMatrix)
    for counts, row in zip(exact, confusion.shares, strict=True):
        hidden = np.array([not share.is_available for share in row])
        assert hidden[counts < 60].all()
        # What is hidden is no difference to a sum that others know either.
        assert not hidden.any() or counts[hidden].sum() >= 60


def test_what_is_about_one_score_is_refused_with_classes() -> None:
    for setting in ({"steps": 2}, {"height": 4}, {"preset": "paper"}, {"buckets": 20}):
        with pytest.raises(SettingInvalid, match=r"the planner chooses|two steps|does not go with"):
            fedassay.simulate_classes(ROWS.labels, ROWS.scores, **setting)
    with pytest.raises(SettingInvalid, match="every site answers every part"):
        fedassay.simulate_classes(
            ROWS.labels, ROWS.scores, clients=ROWS.labels, privacy="site", epsilon=1,
            design="drawn",
        )  # fmt: skip


def test_a_thousand_classes_are_possible() -> None:
    generator = np.random.default_rng(0)
    matrix = generator.dirichlet(np.full(1000, 0.05), size=2000)
    labels = (generator.random((2000, 1)) > np.cumsum(matrix, axis=1)).sum(axis=1)
    rows = ClassRows(np.minimum(labels, 999), matrix, range(1000))
    request = SurveyRequest(
        privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=2000, dropouts=Fraction(0)
    )
    survey = class_survey(request, rows.names, ClassDesign.OWN, Grid.uniform(6))
    assert survey.epsilon == 1
    found = simulate_cohort(survey, ClassCohort.of(rows), randomness=seeded(), exact={})
    top = found.tables.top
    assert isinstance(top, ScoreHistogram)
    assert abs(prevalence(top).value - np.mean(rows.predicted == rows.labels)) < 0.1
    reason = found.confusion
    assert isinstance(reason, NotEnoughData)
    assert "1,000,000 cells" in reason.reason
