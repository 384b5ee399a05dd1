from typing import Any

import numpy as np
import pytest

from fedassay import Examples
from fedassay.errors import (
    ColumnTypeInvalid,
    DataError,
    LabelInvalid,
    NoRows,
    ScoreOutOfRange,
    SettingInvalid,
    ValueMissing,
)
from fedassay.examples import ScoredClients, client_names

CANARY = 0.7312345


@pytest.mark.parametrize("bad", [float("inf"), -float("inf"), -CANARY, 1 + CANARY])
def test_a_score_outside_zero_to_one_is_refused_and_withheld(bad: float) -> None:
    with pytest.raises(ScoreOutOfRange, match=r"item 3 of 4") as caught:
        Examples([0, 1, 0, 1], [0.1, 0.2, bad, 0.4])
    assert "7312345" not in str(caught.value)


@pytest.mark.parametrize("bad", [7, -7, 2, 0.5, float("inf")])
def test_a_label_of_neither_class_is_refused_and_withheld(bad: float) -> None:
    with pytest.raises(LabelInvalid, match=r"item 2 of 3") as caught:
        Examples([0, bad, 1], [0.1, 0.2, 0.3])
    assert "7" not in str(caught.value)


def test_a_missing_value_is_called_missing_and_counted() -> None:
    gap = float("nan")
    with pytest.raises(ValueMissing, match=r"a score; 2 of 4 are missing .* Drop these rows"):
        Examples([0, 1, 0, 1], [gap, 0.2, gap, 1.5])
    with pytest.raises(ValueMissing, match=r"a label; 1 of 3 are missing"):
        Examples([0, gap, 7], [0.1, 0.2, 0.3])


def test_two_codings_at_once_are_refused() -> None:
    with pytest.raises(LabelInvalid):
        Examples([-1, 0, 1], [0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, 1],
        [-1, 1, 1],
        [False, True, True],
        [0.0, 1.0, 1.0],
        np.array([0, 1, 1], dtype=np.uint64),
        np.array([-1, 1, 1], dtype=np.int8),
        np.array([[0], [1], [1]]),
    ],
)
def test_every_coding_of_two_classes_means_the_same(labels: list[int]) -> None:
    assert Examples(labels, [0.0, 0.5, 1.0]).labels.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("labels", "scores"),
    [
        (["a", "b"], [0.1, 0.2]),
        ([0, 1], ["0.1", "0.2"]),
        ([0, 1], [[0.1, 0.9], [0.2, 0.8]]),
        ([0, 1], [0.1j, 0.2]),
        ([0, None], [0.1, 0.2]),
        (0, 0.5),
        ([0, 1, 1], [0.1, 0.2]),
    ],
)
def test_wrong_types_and_shapes_are_data_errors(labels: object, scores: object) -> None:
    with pytest.raises(DataError):
        Examples(labels, scores)  # type: ignore[arg-type]  # what a user may pass


def test_the_positive_column_of_predict_proba_is_asked_for() -> None:
    with pytest.raises(ColumnTypeInvalid, match=r"proba\[:, 1\]"):
        Examples([0, 1], [[0.1, 0.9], [0.2, 0.8]])


def test_no_rows_are_refused_where_rows_are_needed() -> None:
    with pytest.raises(NoRows):
        Examples([], []).require_rows()


def test_examples_are_read_only_copies() -> None:
    scores = np.array([0.1, 0.2])
    examples = Examples([0, 1], scores)
    scores[0] = 0.9
    assert examples.scores.tolist() == [0.1, 0.2]
    with pytest.raises(ValueError, match="read-only"):
        examples.scores[0] = 0.5


def test_groups_of_other_rows_are_refused() -> None:
    with pytest.raises(SettingInvalid, match=r"one group per row; found 2 groups and 3 rows"):
        Examples([0, 1, 1], [0.1, 0.2, 0.3]).in_groups(np.array([0, 1]))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"names": ("north",)}, r"one name for each of 3 clients; found 1\. Leave names out"),
        ({"patient_of_row": np.array([0, 1])}, r"one patient for each of 3 rows; found 2\."),
        ({"time_of_row": np.array([0.0])}, r"one time for each of 3 rows; found 1\."),
    ],
)
def test_columns_of_a_cohort_have_a_value_for_each(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingInvalid, match=message):
        ScoredClients(Examples([0, 1, 1], [0.1, 0.2, 0.3]), None, 3, **columns)


@pytest.mark.parametrize("owners", [[0, 1, 3], [-1, 0, 1], [0, 1]])
def test_a_row_belongs_to_a_client_that_is_there(owners: list[int]) -> None:
    rows = Examples([0, 1, 1], [0.1, 0.2, 0.3])
    ScoredClients(rows, np.array([0, 2, 1]), 3)
    with pytest.raises(SettingInvalid, match="from 0 to 2, for each of 3 rows"):
        ScoredClients(rows, np.array(owners), 3)


def test_chosen_rows_keep_whose_they_are_and_when_they_were() -> None:
    rows = Examples([0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4])
    cohort = ScoredClients(
        rows.in_groups(np.array([2, 0, 1, 0])),
        np.array([0, 1, 1, 0]),
        2,
        patient_of_row=np.array([5, 6, 7, 8]),
        time_of_row=np.array([0.5, 1.5, 2.5, 3.5]),
    )
    kept = cohort.rows(np.array([3, 1]))
    assert kept.examples.scores.tolist() == [0.4, 0.2]
    assert kept.examples.labels.tolist() == [0, 1]
    assert kept.examples.groups is not None
    assert kept.examples.groups.tolist() == [0, 0]
    assert kept.client_of_row is not None
    assert kept.client_of_row.tolist() == [0, 1]
    assert kept.patient_of_row is not None
    assert kept.patient_of_row.tolist() == [8, 6]
    assert kept.time_of_row is not None
    assert kept.time_of_row.tolist() == [3.5, 1.5]
    assert kept.clients == 2


def test_two_clients_of_one_name_are_told_apart() -> None:
    assert client_names(["a", "a", "a (2)", "a"]) == ("a", "a (2)", "a (2) (2)", "a (3)")
    long = client_names(["x" * 300, "x" * 300])
    assert len(set(long)) == 2
    assert max(map(len, long)) <= 200
