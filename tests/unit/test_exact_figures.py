"""Exact figures of rows of many classes are those of scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics as sk

from fedassay.classes.exact_figures import classwise_ece, exact_confusion, exact_figures
from fedassay.classes.rows import ClassRows
from tests.class_rows import drawn_rows

ROWS = drawn_rows(3000, (4.0, 2.0, 1.0, 0.5), sharpness=1.5)


@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
def test_averaged_areas_are_those_of_scikit_learn(average: str) -> None:
    found = exact_figures(ROWS)
    hot = np.eye(4)[ROWS.labels]
    area = sk.roc_auc_score(hot, ROWS.scores, average=average)
    assert found[f"roc_auc/{average}"] == pytest.approx(area, abs=1e-12)
    precision = sk.average_precision_score(hot, ROWS.scores, average=average)
    assert found[f"average_precision/{average}"] == pytest.approx(precision, abs=1e-12)


def test_areas_of_each_class_are_one_against_the_rest() -> None:
    found = exact_figures(ROWS)
    for number, name in enumerate(ROWS.names):
        of_class = ROWS.labels == number
        area = sk.roc_auc_score(of_class, ROWS.scores[:, number])
        assert found[f"roc_auc/{name}"] == pytest.approx(area, abs=1e-12)


def test_scores_of_all_classes_are_those_of_scikit_learn() -> None:
    found = exact_figures(ROWS)
    assert found["log_loss"] == pytest.approx(sk.log_loss(ROWS.labels, ROWS.scores), abs=1e-12)
    hot = np.eye(4)[ROWS.labels]
    assert found["brier"] == pytest.approx(((hot - ROWS.scores) ** 2).sum(axis=1).mean())
    top = ROWS.scores.argmax(axis=1)
    assert found["accuracy"] == pytest.approx(sk.accuracy_score(ROWS.labels, top))


def test_a_confusion_matrix_is_that_of_scikit_learn() -> None:
    wanted = sk.confusion_matrix(ROWS.labels, ROWS.scores.argmax(axis=1))
    assert (exact_confusion(ROWS) == wanted).all()


def test_classwise_calibration_error_is_the_mean_of_binned_gaps() -> None:
    errors = []
    for number in range(4):
        bins = np.clip(np.ceil(ROWS.scores[:, number] * 20) - 1, 0, 19)
        gap = (ROWS.labels == number) - ROWS.scores[:, number]
        errors.append(sum(abs(gap[bins == b].sum()) for b in range(20)) / len(ROWS))
    assert classwise_ece(ROWS, ROWS.scores) == pytest.approx(np.mean(errors), abs=1e-12)


def test_a_class_that_never_occurs_has_no_area_and_no_macro_average() -> None:
    matrix = np.tile([[0.6, 0.3, 0.1], [0.3, 0.5, 0.2]], (50, 1))
    rows = ClassRows([0, 1] * 50, matrix, [0, 1, 2])
    found = exact_figures(rows)
    assert found["roc_auc/2"] is None
    assert found["roc_auc/macro"] is None
    assert found["roc_auc/weighted"] == 1.0


def test_rows_of_one_class_have_no_area_however_weighted() -> None:
    """Nothing stands against the class: 0 would be the area of a classifier that is all wrong."""
    figures = exact_figures(ClassRows([0] * 4, np.full((4, 3), 1 / 3), [0, 1, 2]))
    assert figures["roc_auc/weighted"] is None
    assert figures["average_precision/weighted"] is None
