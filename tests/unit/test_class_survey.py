"""What one example costs in all parts together, from exact probabilities."""

from dataclasses import replace
from fractions import Fraction
from math import log

import numpy as np
import pytest

from fedassay.classes.class_design import ClassDesign
from fedassay.classes.class_survey import (
    ClassSurvey,
    build_part,
    class_survey,
)
from fedassay.classes.design import design_classes
from fedassay.classes.encodings import Part, PartKind, part_examples
from fedassay.classes.rows import ClassRows
from fedassay.errors import SettingInvalid
from fedassay.grid import Grid
from fedassay.mechanisms import Polya, Privacy, RandomizedResponse, UnaryEncoding, Unit, UnitKind
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SystemRandomness
from tests.class_rows import drawn_rows
from tests.laws import discrete_laplace

NAMES = ("0", "1", "2", "3")
EPSILON = Fraction(3, 2)
GRID = Grid.uniform(4)


def request(privacy: Privacy, **others: object) -> SurveyRequest:
    asked = SurveyRequest(
        privacy=privacy, epsilon=EPSILON, clients=5000, dropouts=Fraction(0), minimum_reports=100
    )
    return replace(asked, **others)  # type: ignore[arg-type]  # settings by name


def moved(part: Part, rows: ClassRows) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """How one row moves the part's counters."""
    return part.survey.grid.count(part_examples(part, rows, randomness=SystemRandomness()))


def added_row_loss(survey: ClassSurvey, rows: ClassRows) -> float:
    """The largest log ratio of all noisy sums' probability with and without the rows.

    The sum of a counter's noise shares is a discrete Laplace variable; counters are independent,
    so that the log ratios of single counters add up.
    """
    values = np.arange(-60, 61)
    losses = []
    for part in survey.parts:
        (mechanism,) = part.survey.mechanisms
        assert isinstance(mechanism, Polya)
        pmf = discrete_laplace(float(mechanism.epsilon) / mechanism.sensitivity)
        total = 0.0
        for shift in moved(part, rows).ravel().tolist():
            total += float(np.abs(np.log(pmf(values) / pmf(values - shift))).max())
        losses.append(total)
    return max(losses) if survey.draws_one_part else sum(losses)


ROW = ClassRows([2], [[0.1, 0.2, 0.4, 0.3]], NAMES)


@pytest.mark.parametrize("design", ClassDesign)
def test_one_example_costs_epsilon_in_all_parts_together(design: ClassDesign) -> None:
    survey = class_survey(request(Privacy.DISTRIBUTED), NAMES, design, GRID)
    assert added_row_loss(survey, ROW) == pytest.approx(float(EPSILON), rel=1e-9)
    assert survey.epsilon == EPSILON
    assert survey.guarantee.epsilon == EPSILON


@pytest.mark.parametrize("design", [ClassDesign.EVERY, ClassDesign.OWN])
def test_sites_that_add_the_whole_noise_spend_epsilon_too(design: ClassDesign) -> None:
    survey = class_survey(request(Privacy.SITE, minimum_reports=None), NAMES, design, GRID)
    assert added_row_loss(survey, ROW) == pytest.approx(float(EPSILON), rel=1e-9)


def full_epsilon_each(survey: ClassSurvey) -> ClassSurvey:
    """A planted bug: every class's histogram at all of epsilon."""
    whole = [
        build_part(
            request(Privacy.DISTRIBUTED), part.kind, part.survey.grid, share=Fraction(1),
            drawn=False, about=f"{part.kind} {part.number}", number=part.number,
        )
        for part in survey.parts
    ]  # fmt: skip
    return replace(survey, parts=tuple(whole))


def test_all_of_epsilon_on_each_class_is_caught_and_told() -> None:
    survey = class_survey(request(Privacy.DISTRIBUTED), NAMES, ClassDesign.EVERY, GRID)
    wrong = full_epsilon_each(survey)
    assert added_row_loss(wrong, ROW) == pytest.approx(6 * float(EPSILON), rel=1e-9)
    assert wrong.epsilon == 6 * EPSILON


def test_a_client_of_many_examples_costs_epsilon_in_all_parts_together() -> None:
    unit = Unit(UnitKind.CLIENT, 3)
    asked = request(Privacy.DISTRIBUTED, unit=unit)
    client = ClassRows([2, 2, 1], [[0.1, 0.2, 0.4, 0.3]] * 3, NAMES)
    for design in ClassDesign:
        survey = class_survey(asked, NAMES, design, GRID)
        assert added_row_loss(survey, client) <= float(EPSILON) * (1 + 1e-9)
        # Noise for one example alone does not hide three.
        alone = class_survey(request(Privacy.DISTRIBUTED), NAMES, design, GRID)
        assert added_row_loss(alone, client) > 2 * float(EPSILON)


def report_loss(part: Part) -> float:
    """The largest log ratio of a message's probability under two inputs, of exact fractions."""
    (mechanism,) = part.survey.mechanisms
    if isinstance(mechanism, UnaryEncoding):
        return log((1 - mechanism.q) / mechanism.q)
    assert isinstance(mechanism, RandomizedResponse)
    return log(mechanism.p / mechanism.q)


@pytest.mark.parametrize("design", ClassDesign)
def test_under_local_privacy_one_example_costs_epsilon(design: ClassDesign) -> None:
    survey = class_survey(request(Privacy.LOCAL), NAMES, design, GRID)
    for part in survey.parts:
        assert moved(part, ROW).sum() == 1
    losses = [report_loss(part) for part in survey.parts]
    spent = max(losses) if survey.draws_one_part else sum(losses)
    assert 0.999 * float(EPSILON) < spent <= float(EPSILON)
    # Who answers each part with all of epsilon and does not draw one spends it six times.
    if survey.draws_one_part:
        assert sum(losses) > 4 * float(EPSILON)


def test_a_unit_answers_all_parts_or_exactly_one() -> None:
    survey = class_survey(request(Privacy.LOCAL), NAMES, ClassDesign.DRAWN, GRID)
    with pytest.raises(SettingInvalid, match="each exactly one"):
        replace(survey, parts=survey.parts[1:])
    some = (replace(survey.parts[0], client_fraction=None), *survey.parts[1:])
    with pytest.raises(SettingInvalid, match="each exactly one"):
        replace(survey, parts=some)


def test_a_shuffler_has_no_crowd_for_parts_that_are_asked_one_by_one() -> None:
    asked = request(Privacy.SHUFFLED)
    with pytest.raises(SettingInvalid, match="found shuffled privacy"):
        build_part(asked, PartKind.TOP, GRID, share=Fraction(1, 5), drawn=True, about="top")
    with pytest.raises(SettingInvalid):
        design_classes(asked, NAMES)


def test_reports_of_one_part_do_not_count_in_another() -> None:
    for asked in (request(Privacy.LOCAL), SurveyRequest(clients=5000)):
        survey = design_classes(asked, NAMES)
        prints = {part.survey.fingerprint for part in survey.parts}
        assert len(prints) == len(survey.parts)


def test_every_row_is_one_example_of_every_part() -> None:
    rows = drawn_rows(500, (3.0, 2.0, 1.0, 1.0))
    survey = class_survey(request(Privacy.DISTRIBUTED), NAMES, ClassDesign.OWN, GRID)
    for part in survey.parts:
        counts = moved(part, rows)
        assert counts.sum() == 500
        for number in range(4):
            if part.kind is PartKind.OWN:
                own = counts[1].reshape(4, -1)[number]
                wanted = GRID.count(rows.one_vs_rest(number))[1]
                assert own.tolist() == wanted.tolist()


@pytest.mark.parametrize("score", [0.0, 1.0, 0.25, 1e-300])
def test_probabilities_at_the_ends_stay_among_the_cells_of_their_class(score: float) -> None:
    rest = (1.0 - score) / 3
    for number in range(4):
        row = [rest] * 4
        row[number] = score
        rows = ClassRows([number], [row], NAMES)
        survey = class_survey(request(Privacy.DISTRIBUTED), NAMES, ClassDesign.OWN, GRID)
        (own,) = [part for part in survey.parts if part.kind is PartKind.OWN]
        counts = moved(own, rows)[1].reshape(4, -1)
        assert counts[number].tolist() == GRID.count(rows.one_vs_rest(number))[1].tolist()


def test_the_cheaper_design_is_chosen_by_predicted_error() -> None:
    many = tuple(map(str, range(20)))
    local, shared = (
        design_classes(request(privacy, clients=50_000), many).design
        for privacy in (Privacy.LOCAL, Privacy.DISTRIBUTED)
    )
    assert local is not ClassDesign.EVERY
    assert shared is ClassDesign.OWN
