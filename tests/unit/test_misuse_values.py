"""Values that cannot be are refused wherever they are made, with what was found and a remedy."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

import fedassay
from fedassay import (
    Calibrator,
    Examples,
    Grid,
    Guarantee,
    Hierarchy,
    NotEnoughData,
    OneLevel,
    Privacy,
    RandomizedResponse,
    ScoreHistogram,
    Survey,
    Unit,
    UnitKind,
)
from fedassay.api_columns import client_codes
from fedassay.api_inputs import as_reference, as_shares, as_unit
from fedassay.api_rows import Rows
from fedassay.calibration.calibration_error import ece, mce, signed_gap
from fedassay.calibration.estimators import CalibratedModel, IsotonicCalibrator
from fedassay.calibration.gap_intervals import LargestSize, _falling
from fedassay.calibration.rates import quantile_boundaries
from fedassay.errors import ColumnTypeInvalid, FedassayError, SettingInvalid, SurveyMismatch
from fedassay.estimate import check_confidence
from fedassay.examples import ScoredClients
from fedassay.level_draw import hashed_level
from fedassay.mechanisms.law import Neighbours
from fedassay.mechanisms.plain_words import plain_words
from fedassay.metrics.roc_auc import auc_guideline
from fedassay.planning.request import SurveyRequest
from fedassay.planning.score_model import binormal
from fedassay.planning.solve import Target, epsilon_needed
from fedassay.wire import local_mechanism
from tests.surveys import flat_survey

THREE = Examples(np.array([0, 1, 1]), np.array([0.1, 0.5, 0.9]))
HALVES = np.array([0.0, 0.5, 1.0])
LONG = Fraction(1, 10**12 + 39)
EXACT = flat_survey(Grid.uniform(4))
RESPONSE = RandomizedResponse(Fraction(1), 4)


def responses(**fields: Any) -> Survey:
    made: dict[str, Any] = {
        "privacy": Privacy.LOCAL,
        "grid": Grid.uniform(4),
        "hierarchy": Hierarchy.flat(4),
        "mechanisms": (RESPONSE,),
        "minimum_reports": 1,
    }
    return Survey(**made | fields)


REFUSED: dict[str, tuple[Callable[[], object], type[FedassayError], str]] = {
    "rows without clients": (
        lambda: ScoredClients(THREE, None, 2),
        SettingInvalid,
        "each of 3 rows is a client; found 2 clients. Say which client holds each row",
    ),
    "a client too many": (
        lambda: ScoredClients(THREE, np.array([0, 1, 2]), 2),
        SettingInvalid,
        "from 0 to 1, for each of 3 rows; found something else. Number the clients from 0",
    ),
    "a client below 0": (
        lambda: ScoredClients(THREE, np.array([0, 1, -1]), 2),
        SettingInvalid,
        "Number the clients from 0",
    ),
    "clients of two rows": (
        lambda: ScoredClients(THREE, np.array([0, 1]), 2),
        SettingInvalid,
        "Number the clients from 0",
    ),
    "edges that fall": (
        lambda: ScoreHistogram(HALVES[::-1].copy(), np.zeros((2, 2))),
        SettingInvalid,
        "must rise strictly",
    ),
    "one edge": (
        lambda: ScoreHistogram(np.array([0.5]), np.zeros((2, 0))),
        SettingInvalid,
        "must rise strictly",
    ),
    "edges in percent": (
        lambda: ScoreHistogram(100.0 * HALVES, np.zeros((2, 2))),
        SettingInvalid,
        "must lie in [0, 1]; found 0 to 100. Map scores to [0, 1] first",
    ),
    "counts that are missing": (
        lambda: ScoreHistogram(HALVES, np.array([[1.0, np.nan], [1.0, 1.0]])),
        SettingInvalid,
        "must be finite",
    ),
    "no level": (lambda: OneLevel(()), SettingInvalid, "must be one or more; found none"),
    "a level's endless share": (
        lambda: OneLevel((LONG, 1 - LONG)),
        SettingInvalid,
        "denominators below 1e12), so that a file can hold them; found a longer one. Round them",
    ),
    "responses over other cells": (
        lambda: responses(grid=Grid.uniform(3), hierarchy=Hierarchy.flat(3)),
        SettingInvalid,
        "randomised response must fit its level of 3 cells",
    ),
    "responses without nothing": (
        lambda: responses(allow_empty=True),
        SettingInvalid,
        "whether empty clients answer; it does not",
    ),
    "a confidence in words": (
        lambda: check_confidence("0.95"),
        SettingInvalid,
        "a confidence lies between 0 and 1; found '0.95'. Usual is 0.95",
    ),
    "a budget of one number": (
        lambda: as_shares(3),  # type: ignore[arg-type]  # what a user may pass
        SettingInvalid,
        "a budget is weights such as (2, 1); found 3",
    ),
    "clients by name without a table": (
        lambda: client_codes("ward", None),
        SettingInvalid,
        "clients names a column, but there is no table",
    ),
    "rows of different lengths": (
        lambda: fedassay.simulate([0, 1], [[0.1], [0.2, 0.3]], seed=0),
        ColumnTypeInvalid,
        "one column of numbers; found rows of different lengths",
    ),
    "no buckets": (
        lambda: quantile_boundaries(np.array([1.0, 2.0]), 0),
        SettingInvalid,
        "buckets must be at least 1; found 0",
    ),
    "no buckets for a guideline": (
        lambda: auc_guideline(0),
        SettingInvalid,
        "buckets must be at least 1; found 0",
    ),
    "an AUC of chance": (
        lambda: binormal(examples=100, positive_rate=0.3, auc=0.5),
        SettingInvalid,
        "an assumed AUC must lie between 0.5 and 1; found 0.5",
    ),
    "an epsilon for exact sums": (
        lambda: epsilon_needed(SurveyRequest(clients=1000), Target("roc_auc", 0.02)),
        SettingInvalid,
        "exact sums spend no epsilon; there is none to find",
    ),
    "rows of local privacy for counters": (
        lambda: local_mechanism(EXACT, 0),
        SurveyMismatch,
        "this survey's reports hold counters; found rows of local privacy",
    ),
    "a model without that parameter": (
        lambda: CalibratedModel(None, Calibrator.identity()).set_params(depth=3),
        SettingInvalid,
        "CalibratedModel has no parameter 'depth'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused(name: str) -> None:
    call, error, says = REFUSED[name]
    with pytest.raises(error) as refused:
        call()
    assert says in str(refused.value)


def test_what_a_message_withholds_are_scores() -> None:
    with pytest.raises(ColumnTypeInvalid) as refused:
        fedassay.simulate([0, 1], [[0.137], [0.2, 0.3]], seed=0)
    assert "0.137" not in str(refused.value)


@pytest.mark.parametrize("kind", ["examples", "file", "pair", "scores"])
def test_a_reference_is_rows_a_file_two_columns_or_scores(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("label,score\n0,0.1\n1,0.5\n1,0.9\n")
    given = {
        "examples": THREE,
        "file": str(path),
        "pair": ([0, 1, 1], [0.1, 0.5, 0.9]),
        "scores": [0.1, 0.5, 0.9],
    }
    read = as_reference(given[kind])
    if kind == "scores":
        assert isinstance(read, np.ndarray)
        assert read.tolist() == [0.1, 0.5, 0.9]
        return
    assert isinstance(read, Examples)
    assert (read.labels.tolist(), read.scores.tolist()) == ([0, 1, 1], [0.1, 0.5, 0.9])


def test_a_column_of_pandas_that_may_be_missing_is_numbers_and_nan(tmp_path: Path) -> None:
    scores = pd.Series([0.25, 0.5, 0.75], dtype=object)
    assert Rows([0, 1, 1], scores).examples().scores.tolist() == [0.25, 0.5, 0.75]
    with pytest.raises(fedassay.errors.ValueMissing):
        Rows([0, 1, 1], pd.Series([0.25, None, 0.75], dtype=object)).examples()
    with pytest.raises(ColumnTypeInvalid):
        Rows([0, 1, 1], pd.Series([0.25, "high", 0.75], dtype=object)).examples()
    path = tmp_path / "t.csv"
    path.write_text("y,s\n0,0.25\n1,0.5\n")
    assert Rows("y", "s", path).examples().scores.tolist() == [0.25, 0.5]


def test_a_unit_may_be_one_already() -> None:
    unit = Unit(UnitKind.CLIENT, 7)
    assert as_unit(unit, 1) is unit
    assert as_unit("client", 7) == unit


EMPTY = ScoreHistogram(HALVES, np.zeros((2, 2)))


@pytest.mark.parametrize(
    "metric",
    [ece, mce, signed_gap, partial(ece, debiased=False), partial(mce, debiased=False)],
    ids=["ece", "mce", "signed_gap", "plain ece", "plain mce"],
)
def test_without_rows_a_calibration_error_is_not_enough_data(metric: Callable[..., Any]) -> None:
    estimate = metric(EMPTY)
    assert isinstance(estimate, NotEnoughData)
    assert "examples" in estimate.reason
    assert not estimate.is_available


def test_where_no_bin_stands_clear_the_largest_error_may_be_anything() -> None:
    assert LargestSize(value=0.0, noise_sd=0.0, sampling_sd=0.0).interval() == (0.0, 1.0)


def test_a_crossing_that_never_comes_is_at_the_end() -> None:
    assert _falling(lambda _: 1.0, 0.5, 7.0) == 7.0
    assert _falling(lambda _: 0.4, 0.5, 7.0) == 0.0
    assert _falling(lambda size: 1.0 - size / 7.0, 0.5, 7.0) == pytest.approx(3.5)


def test_a_calibrated_model_is_a_classifier_that_stays_as_it_was_fitted() -> None:
    X, y = [[-2.0], [-1.0], [1.0], [2.0]] * 25, [0, 0, 1, 1, 0, 1, 0, 1] * 12 + [0, 0, 1, 1]
    model = LogisticRegression().fit(X, y)
    calibrator = IsotonicCalibrator().fit(model.predict_proba(X), y)
    made = CalibratedModel(model, calibrator)
    check_is_fitted(made)
    assert is_classifier(made)
    before = made.predict_proba(X).tolist()
    assert made.fit(X, [1 - label for label in y]) is made
    assert made.predict_proba(X).tolist() == before
    plain = made.set_params(calibrator=Calibrator.identity())
    assert plain is made
    assert np.allclose(plain.predict_proba(X), model.predict_proba(X))
    assert set(clone(made).get_params()) == {"estimator", "calibrator"}


def test_a_calibrator_that_leaves_scores_alone_says_so() -> None:
    assert repr(Calibrator.identity()) == "<no calibrator: scores stay as they are>"


def test_a_promise_says_its_epsilon_and_its_delta() -> None:
    unit = Unit(UnitKind.EXAMPLE)
    pure = Guarantee(
        epsilon=Fraction(1, 2),
        neighbours=Neighbours.REPLACE,
        unit=unit,
        trust="nobody",
        minimum_reports=1,
    )
    approximate = replace(pure, delta=Fraction(1, 10**6))
    assert (pure.strength, approximate.strength) == ("0.5", "(0.5, 1e-06)")
    assert EXACT.guarantee.strength == "no"
    failing = "That may fail with probability 1e-06."
    assert failing in list(plain_words(approximate))
    assert failing not in list(plain_words(pure))


def test_where_clients_report_on_every_level_a_hash_points_to_the_first() -> None:
    assert hashed_level(EXACT, "anybody") == 0
