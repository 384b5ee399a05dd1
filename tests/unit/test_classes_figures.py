"""Classes of which little or nothing is known, and what is shown of them."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedassay import ScoreHistogram
from fedassay.calibration.calibrator import Method
from fedassay.classes import class_survey
from fedassay.classes.class_survey import exact_survey
from fedassay.classes.confusion_matrix import ConfusionMatrix, confusion_matrix
from fedassay.classes.design import check_class_request
from fedassay.classes.encodings import PartKind
from fedassay.classes.figures import class_estimates
from fedassay.classes.held_out_rows import held_out_classes
from fedassay.classes.multi_calibrators import ClassMethod, calibrate_cohort
from fedassay.classes.one_vs_rest import ClassTables
from fedassay.classes.result import ClassAssessment, simulate_cohort
from fedassay.classes.rows import ClassRows
from fedassay.classes.table import read_class_cohort
from fedassay.classes.tallies import ClassCohort
from fedassay.errors import ColumnTypeInvalid, NoRows, SettingInvalid, ValueMissing
from fedassay.estimate import NotEnoughData, TooCoarse
from fedassay.mechanisms import Privacy, Unit, UnitKind
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SimulatedRandomness
from fedassay.tables.columns import Columns
from tests.class_rows import drawn_rows

NAMES = ("a", "b", "c")
FEW = NotEnoughData(reason="too few")
SHARES = [[0.7, 0.2, 0.1], [0.1, 0.5, 0.4]]


def of_histograms(*counts: list[list[float]]) -> ClassTables:
    """Each class against the rest in two cells; nothing else was asked."""
    edges = np.array([0.0, 0.5, 1.0])
    return ClassTables(
        names=NAMES[: len(counts)] if counts else NAMES,
        histograms=tuple(ScoreHistogram(edges, np.array(each)) for each in counts) or (FEW,) * 3,
        top=FEW,
        confusion=FEW,
    )


def test_where_no_class_is_known_no_average_is() -> None:
    estimates = class_estimates(of_histograms())
    assert not any(each.is_available for each in estimates.values())
    weighted = estimates["roc_auc/weighted"]
    assert isinstance(weighted, NotEnoughData)
    assert weighted.reason == "no class stands clear of the privacy noise"


def test_an_average_names_the_class_that_has_no_value() -> None:
    """Two cells hide the areas of all three; a is the first of those that have rows."""
    seen = [[30.0, 10.0], [10.0, 30.0]]
    for counts, first in (
        ((seen, seen, seen), "a"),
        (([[30.0, 10.0], [0.0, 0.0]], seen, seen), "b"),
    ):
        found = class_estimates(of_histograms(*counts))["roc_auc/weighted"]
        assert isinstance(found, NotEnoughData)
        assert f"needs every one; {first} and " in found.reason


def test_cells_that_are_too_coarse_are_told_with_what_helps_classes() -> None:
    """All in the first of two cells: neither two steps nor a reference go with classes."""
    crowded = [[900.0, 0.0], [300.0, 0.0]]
    found = class_estimates(of_histograms(crowded, crowded, crowded))["roc_auc/a"]
    assert isinstance(found, TooCoarse)
    assert "--steps" not in found.reason
    assert "assess one class against the rest (--score)" in found.reason


def test_where_no_class_ever_occurs_the_pooled_area_says_so() -> None:
    nothing = [[5.0, 5.0], [0.0, 0.0]]
    micro = class_estimates(of_histograms(nothing, nothing))["roc_auc/micro"]
    assert isinstance(micro, NotEnoughData)
    assert "positive" in micro.reason


def test_shares_of_the_confusion_matrix_are_of_all_rows() -> None:
    counts = np.array([[1.0, 2.0, 30.0, 40.0], np.zeros(4)])
    confusion = ScoreHistogram(np.arange(5) / 4, counts)
    found = confusion_matrix(replace(of_histograms(), names=("a", "b"), confusion=confusion))
    assert isinstance(found, ConfusionMatrix)
    assert repr(found) == "<ConfusionMatrix: 2 classes>"
    assert [each.value for row in found.shares for each in row] == pytest.approx(counts[0] / 73.0)


def test_beyond_the_most_classes_nobody_is_asked_who_is_taken_for_whom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    survey = exact_survey(SurveyRequest(), NAMES)
    assert repr(survey) == "<ClassSurvey: 3 classes, every>"
    assert survey.privacy is Privacy.SECURE
    monkeypatch.setattr(class_survey, "MOST_CONFUSED", 2)
    kinds = [
        [part.kind for part in each.parts]
        for each in (survey, exact_survey(SurveyRequest(), NAMES))
    ]
    assert kinds[0] == [*kinds[1], PartKind.CONFUSION]


def test_a_patient_cannot_be_protected_by_rows_that_answer_different_parts() -> None:
    asked = SurveyRequest(
        privacy=Privacy.LOCAL, epsilon=Fraction(1), unit=Unit(UnitKind.PATIENT, 1)
    )
    with pytest.raises(SettingInvalid, match=r"a patient's rows would answer several"):
        check_class_request(asked, None)


def test_an_assessment_of_classes_is_shown_with_all_its_figures() -> None:
    rows = ClassRows(["a", "c"], SHARES, NAMES)
    survey = exact_survey(SurveyRequest(clients=2), NAMES)
    randomness = SimulatedRandomness(np.random.SeedSequence(0))
    found = simulate_cohort(survey, ClassCohort.of(rows), randomness=randomness, exact={})
    assert isinstance(found, ClassAssessment)
    assert len(found) == len(found.estimates())
    assert repr(found) == f"<ClassAssessment: 3 classes, {len(found)} figures>"
    assert found._repr_html_().count("<tr") == 1 + len(found)
    assert repr(rows) == "<ClassRows: 2 rows of 3 classes>"


def test_a_class_with_fewer_rows_than_the_smallest_cell_keeps_its_probabilities() -> None:
    rows = ClassRows([0, 1] * 30, SHARES * 30, range(3))
    request = SurveyRequest(clients=60, smallest_cell=10)
    made = calibrate_cohort(
        request,
        ClassCohort.of(rows),
        ClassMethod.BINNING,
        randomness=SimulatedRandomness(np.random.SeedSequence(0)),
    )
    assert repr(made) == "<ClassCalibrator: binning, 3 classes>"
    assert made.maps[2].method is Method.NONE
    assert made.reason == "left as they are: 2"


def test_halves_of_clients_are_held_out_with_all_of_their_rows() -> None:
    rows, owners = drawn_rows(60), np.repeat(np.arange(12), 5)
    request = SurveyRequest(clients=12, smallest_cell=0)
    cohort = ClassCohort.of(rows, owners)
    (tested,) = held_out_classes(request, cohort, seed=0, methods=[ClassMethod.FEDTEMP])
    assert tested.rows == 30


def test_dates_are_no_labels() -> None:
    labels = np.array(["2026-01-01", "2026-01-02"], "datetime64[D]")
    with pytest.raises(ColumnTypeInvalid, match=r"names or numbers of classes; found type date"):
        ClassRows(labels, SHARES, NAMES)


def test_a_class_is_called_by_a_text_or_a_number() -> None:
    with pytest.raises(SettingInvalid, match=r"called by a text or a number; found"):
        ClassRows([0, 1], SHARES, ("a", "b", ("c",)))


def test_a_table_without_a_label_or_without_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    scores = {f"p{name}": [row[place] for row in SHARES] for place, name in enumerate(NAMES)}
    table = pa.table({"label": ["a", None], **scores})
    pq.write_table(table, path)
    with pytest.raises(ValueMissing, match=r'a label; 1 of 2 in column "label" are missing'):
        read_class_cohort(path, "p*", Columns())
    pq.write_table(table.slice(0, 0), path)
    with pytest.raises(NoRows, match=r"at least one row is needed; found none"):
        read_class_cohort(path, "p*", Columns())
