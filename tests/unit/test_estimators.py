"""The scikit-learn estimators: columns, weights, classes, parameters."""

import pickle

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.linear_model import LogisticRegression

from fedassay import Grid, ScoreHistogram
from fedassay.calibration import (
    BBQCalibrator,
    BinningCalibrator,
    CalibratedModel,
    Calibrator,
    IsotonicCalibrator,
    Method,
    SigmoidCalibrator,
    fit,
)
from fedassay.errors import SettingInvalid
from fedassay.hierarchy import Hierarchy
from fedassay.noise import TreeNoise

Floats = npt.NDArray[np.float64]


def drawn(rows: int, *, seed: int = 0) -> tuple[Floats, npt.NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    scores = generator.beta(1.2, 1.8, rows)
    return scores, (generator.random(rows) < scores**1.5).astype(np.int64)


def test_two_columns_are_negative_and_positive_probabilities() -> None:
    scores, labels = drawn(500)
    both = np.column_stack([1.0 - scores, scores])
    one, two = SigmoidCalibrator().fit(scores, labels), SigmoidCalibrator().fit(both, labels)
    assert (one.predict(scores) == two.predict(both)).all()
    # A higher score is more probable, and the columns are in scikit-learn's order.
    low, high = two.predict_proba([[0.9, 0.1], [0.1, 0.9]])
    assert low[1] < 0.3 < high[1]
    assert low.sum() == pytest.approx(1.0)
    assert (two.transform(both)[:, 0] == two.predict(both)).all()


@pytest.mark.parametrize("kind", [IsotonicCalibrator, BBQCalibrator, BinningCalibrator])
def test_rows_without_weight_are_rows_that_are_not_there(kind: type[IsotonicCalibrator]) -> None:
    scores, labels = drawn(600)
    weights = (np.arange(600) < 300).astype(np.float64)
    weighted = kind().fit(scores, labels, sample_weight=weights)
    fewer = kind().fit(scores[:300], labels[:300])
    every = kind().fit(scores, labels)
    assert (weighted.predict(scores) == fewer.predict(scores)).all()
    assert (weighted.predict(scores) != every.predict(scores)).any()


@pytest.mark.parametrize("wrong", [[1.0], [1.0, -1.0], [1.0, np.nan], [[1.0, 1.0]]])
def test_weights_that_cannot_be_are_refused(wrong: object) -> None:
    with pytest.raises(SettingInvalid, match="sample_weight must hold 2"):
        IsotonicCalibrator().fit([0.1, 0.9], [0, 1], sample_weight=np.asarray(wrong))


def test_an_estimator_that_is_to_ignore_the_noise_does() -> None:
    scores, labels = drawn(2_000)
    exact = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(16))
    noise = np.full((2, 16), 1.0)
    noise[:, ::2] = 900.0
    drawn_noise = np.random.default_rng(1).normal(0.0, np.sqrt(noise))
    model = TreeNoise(Hierarchy.flat(16), (noise,))
    histogram = ScoreHistogram(exact.edges, exact.counts + drawn_noise, model)
    aware, blind = (
        IsotonicCalibrator(noise_aware=aware).fit_histogram(histogram).calibrator_
        for aware in (True, False)
    )
    asked = np.linspace(0.0, 1.0, 50)
    assert (aware.predict(asked) != blind.predict(asked)).any()
    assert (blind.values == fit(histogram, Method.ISOTONIC, noise_aware=False).values).all()


def test_a_calibrated_model_answers_with_the_class_that_is_more_probable() -> None:
    """The map turns scores above 0.3 into probabilities above one half."""
    X = np.linspace(-3.0, 3.0, 40)[:, None]
    model = LogisticRegression().fit(X, np.where(X[:, 0] > 0.0, "yes", "no"))
    steep = Calibrator(Method.ISOTONIC, np.array([0.0, 0.3, 1.0]), np.array([0.0, 0.5, 1.0]))
    both = CalibratedModel(model, steep)
    score = model.predict_proba(X)[:, 1]
    assert ((score > 0.3) & (score < 0.5)).any()
    assert both.predict(X).tolist() == np.where(score > 0.3, "yes", "no").tolist()
    assert both.predict_proba(X)[:, 1] == pytest.approx(np.interp(score, [0, 0.3, 1], [0, 0.5, 1]))


def test_estimators_refuse_parameters_that_they_do_not_have_and_survive_pickling() -> None:
    with pytest.raises(SettingInvalid, match="It has: noise_aware, monotone"):
        IsotonicCalibrator().set_params(depth=3)
    with pytest.raises(SettingInvalid, match="no parameter"):
        CalibratedModel(None, Calibrator.identity()).set_params(depth=3)
    fitted = SigmoidCalibrator().fit(*drawn(300))
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301  # our own bytes
    assert (again.predict([0.1, 0.7]) == fitted.predict([0.1, 0.7])).all()
