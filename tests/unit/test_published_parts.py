"""What of exact sums about classes is published: nothing small, and nothing small by difference."""

from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from fedassay.classes.design import design_classes
from fedassay.classes.encodings import PartKind
from fedassay.classes.published_parts import (
    ConfusionTally,
    hidden_cells,
    published_parts,
    withheld_classes,
)
from fedassay.classes.result import ClassAssessment, simulate_cohort
from fedassay.classes.rows import ClassRows
from fedassay.classes.tallies import ClassCohort
from fedassay.errors import FileInvalid
from fedassay.estimate import NotEnoughData
from fedassay.files import read_object, write_json
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SimulatedRandomness
from tests.class_rows import drawn_rows

ROWS = drawn_rows(900, (6.0, 3.0, 1.0))
SURVEY = design_classes(SurveyRequest(clients=900, smallest_cell=20), ROWS.names)


def assessed(rows: ClassRows) -> ClassAssessment:
    randomness = SimulatedRandomness(np.random.SeedSequence(0))
    return simulate_cohort(SURVEY, ClassCohort.of(rows), randomness=randomness, exact={})


def sums_known(counts: npt.NDArray[np.int64], hidden: npt.NDArray[np.bool_]) -> list[int]:
    """Sums of hidden counts that follow from rows and from how many are right."""
    diagonal = np.eye(len(counts), dtype=bool)
    groups = [*(np.arange(len(counts))[:, None] == row for row in range(len(counts)))]
    every = [*(np.broadcast_to(each, counts.shape) for each in groups), diagonal, ~diagonal]
    return [int(counts[hidden & each].sum()) for each in every if (hidden & each).any()]


@pytest.mark.parametrize("seed", range(6))
def test_no_sum_of_hidden_cells_that_others_tell_is_small(seed: int) -> None:
    generator = np.random.default_rng(seed)
    counts = generator.poisson(generator.choice([2, 12, 60], size=(5, 5))) + 20 * np.eye(
        5, dtype=int
    )
    hidden = hidden_cells(counts, np.zeros(5, dtype=np.bool_), 10)
    assert hidden[counts < 10].all()
    assert all(known >= 10 for known in sums_known(counts, hidden))


def test_a_small_count_on_the_diagonal_does_not_follow_from_accuracy() -> None:
    counts = np.array([[3, 40, 50], [40, 80, 45], [50, 45, 70]])
    hidden = hidden_cells(counts, np.zeros(3, dtype=np.bool_), 10)
    assert np.diag(hidden).sum() >= 2
    assert all(known >= 10 for known in sums_known(counts, hidden))


def test_a_rare_class_is_withheld_with_another_unless_it_never_occurs() -> None:
    for rare, common in product((1, 5, 9), (10, 40)):
        rows = np.array([rare, common, 500])
        withheld = withheld_classes(rows, 10)
        assert withheld.tolist() == [True, True, False]
        assert rows.sum() - rows[~withheld].sum() >= 10
    assert withheld_classes(np.array([0, 40, 500]), 10).tolist() == [True, False, False]
    assert not withheld_classes(np.array([10, 40, 500]), 10).any()


def test_a_file_holds_no_count_below_the_smallest_cell_and_reads_back_the_same(
    tmp_path: Path,
) -> None:
    found = assessed(ROWS)
    found.save(tmp_path / "classes.json")
    content = read_object(tmp_path / "classes.json")
    assert isinstance(content, dict)
    for each in content["parts"]:
        shown = [count for count in each.get("counters", []) if count]
        assert min(shown, default=20) >= 20
        assert min((count for count in each.get("together", []) if count > 0), default=20) >= 20
    again = ClassAssessment.load(tmp_path / "classes.json")
    assert again.figures_json() == found.figures_json()
    assert again.reports == found.reports


@pytest.mark.parametrize(("field", "value"), [("rest", 3), ("together", [3, 0, 0]), ("hidden", [])])
def test_a_file_with_smaller_counts_than_promised_is_refused(
    tmp_path: Path, field: str, value: object
) -> None:
    assessed(ROWS).save(tmp_path / "classes.json")
    content = read_object(tmp_path / "classes.json")
    assert isinstance(content, dict)
    assert content["parts"][-1]["hidden"]
    content["parts"][-1][field] = value
    write_json(tmp_path / "other.json", content)
    with pytest.raises(FileInvalid, match="smallest cell, or hidden"):
        ClassAssessment.load(tmp_path / "other.json")


@pytest.mark.parametrize(
    "change",
    [
        {"hidden": [9]},
        {"hidden": [-1]},
        {"together": [0, 0]},
        {"together": [-2, 0, 0]},
        {"counters": [20] * 17},
    ],
)
def test_a_matrix_of_other_sides_than_its_survey_is_refused(
    tmp_path: Path, change: dict[str, object]
) -> None:
    assessed(ROWS).save(tmp_path / "classes.json")
    content = read_object(tmp_path / "classes.json")
    assert isinstance(content, dict)
    content["parts"][-1] |= change
    write_json(tmp_path / "other.json", content)
    with pytest.raises(FileInvalid, match="smallest cell, or hidden"):
        ClassAssessment.load(tmp_path / "other.json")


@pytest.mark.parametrize("parts", [None, [], "all"])
def test_a_file_has_the_sums_of_every_part(tmp_path: Path, parts: object) -> None:
    assessed(ROWS).save(tmp_path / "classes.json")
    content = read_object(tmp_path / "classes.json")
    assert isinstance(content, dict)
    others = content["parts"][1:] if parts is None else parts
    write_json(tmp_path / "other.json", {**content, "parts": others})
    with pytest.raises(FileInvalid, match="the sums of every part"):
        ClassAssessment.load(tmp_path / "other.json")


def rare(count: int) -> ClassRows:
    """The rows with so few of the third class."""
    keep = np.flatnonzero((ROWS.labels != 2) | (np.cumsum(ROWS.labels == 2) <= count))
    return ROWS.rows(keep)


def test_a_withheld_class_is_named_in_the_file_without_a_number_and_reads_back(
    tmp_path: Path,
) -> None:
    found = assessed(rare(7))
    found.save(tmp_path / "classes.json")
    content = read_object(tmp_path / "classes.json")
    assert isinstance(content, dict)
    for number, why in ((1, "another class has too few rows"), (2, "it has fewer than 20 rows")):
        assert list(content["parts"][number]) == ["withheld"]
        assert why in content["parts"][number]["withheld"]
    again = ClassAssessment.load(tmp_path / "classes.json")
    assert again.figures_json() == found.figures_json()
    assert not again["roc_auc/2"].is_available
    assert again["roc_auc/0"].is_available


def test_with_hardly_a_row_right_or_wrong_there_is_no_matrix() -> None:
    counts = np.array([[1, 40, 50], [40, 2, 45], [50, 45, 3]])
    hidden = hidden_cells(counts, np.zeros(3, dtype=np.bool_), 10)
    assert hidden.diagonal().all()
    right = ROWS.rows(np.flatnonzero(ROWS.predicted == ROWS.labels))
    wrong = ROWS.rows(np.flatnonzero(ROWS.predicted != ROWS.labels))
    for rows in (right, wrong):
        (confusion,) = (
            tally
            for part, tally in zip(
                SURVEY.parts, published_parts(SURVEY, assessed(rows).tallies), strict=True
            )
            if part.kind is PartKind.CONFUSION
        )
        assert isinstance(confusion, NotEnoughData)
        assert "fewer rows that are right, or that are wrong" in confusion.reason


def test_what_a_withheld_class_would_show_no_part_shows() -> None:
    rows = rare(7)
    found = assessed(rows)
    parts = dict(
        zip(
            [(p.kind, p.number) for p in SURVEY.parts],
            published_parts(SURVEY, found.tallies),
            strict=True,
        )
    )
    assert isinstance(parts[PartKind.CLASS, 2], NotEnoughData)
    assert isinstance(parts[PartKind.CLASS, 1], NotEnoughData)
    confusion = parts[PartKind.CONFUSION, 0]
    assert isinstance(confusion, ConfusionTally)
    assert confusion.rest == (rows.labels > 0).sum()
    assert confusion.hidden[1:].all()
    assert confusion.total == len(rows)
