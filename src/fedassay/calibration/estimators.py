"""The calibrators as scikit-learn estimators; scikit-learn itself is not needed."""

import inspect
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from fedassay.calibration.auto import fit
from fedassay.calibration.calibrator import Calibrator, Method
from fedassay.errors import SettingInvalid
from fedassay.examples import Examples, FloatArray
from fedassay.extras import needed_for
from fedassay.grid import Grid
from fedassay.histogram import ScoreHistogram


class HistogramCalibrator:
    """Fits a calibrator from rows, or from a histogram that nobody has rows for.

    All doors fit alike, by `fedassay.calibration.fit` and its table of methods. Parameters are
    stored as given and checked when fitting, so that `sklearn.base.clone`,
    pipelines and searches work. A fitted one has `calibrator_` and `classes_`.

    >>> model = IsotonicCalibrator().fit([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    >>> model.predict_proba([0.9]).shape
    (1, 2)
    """

    _method: ClassVar[Method | None] = None

    def __init__(self, *, noise_aware: bool = True, monotone: bool = False) -> None:
        self.noise_aware = noise_aware
        self.monotone = monotone

    def fit(
        self,
        scores: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit to rows: one column of scores in [0, 1], or `predict_proba` output."""
        column = _positive_column(scores)
        if sample_weight is None:
            return self.fit_histogram(ScoreHistogram.from_scores(y, column))
        examples = Examples(y, column).require_rows()
        weights = _checked_weights(sample_weight, len(examples))
        grid = Grid.fine()
        cells = grid.locate(examples.scores) + grid.cells * examples.labels.astype(np.int64)
        counts = np.bincount(cells, weights, 2 * grid.cells).astype(np.float64)
        return self.fit_histogram(ScoreHistogram(grid.edges, counts.reshape(2, -1)))

    def fit_histogram(self, histogram: ScoreHistogram) -> Self:
        """Fit to a histogram, exact or noisy."""
        self.calibrator_ = fit(
            histogram, self._method, noise_aware=self.noise_aware, monotone=self.monotone
        )
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = 1
        return self

    def predict_proba(self, scores: npt.ArrayLike) -> FloatArray:
        """Probabilities of both classes, row x class."""
        return _both_classes(self._fitted().predict(_positive_column(scores)))

    def predict(self, scores: npt.ArrayLike) -> FloatArray:
        """The positive class's probability, as scikit-learn's own calibrators answer."""
        return self._fitted().predict(_positive_column(scores))

    def transform(self, scores: npt.ArrayLike) -> FloatArray:
        """The same as one column, for pipelines."""
        return self.predict(scores)[:, None]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name."""
        for name, value in params.items():
            if name not in self._names():
                raise SettingInvalid(
                    f"{type(self).__name__} has no parameter {name!r}. "
                    f"It has: {', '.join(self._names())}."
                )
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        return _tags()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "calibrator_")

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def _fitted(self) -> Calibrator:
        if not hasattr(self, "calibrator_"):
            raise SettingInvalid("this calibrator is not fitted. Call fit or fit_histogram first.")
        return self.calibrator_


class AutoCalibrator(HistogramCalibrator):
    """The method with the smallest expected error, or the score as it is.

    It may decline: a map that follows noise does harm.

    >>> scores, labels = [0.2] * 10 + [0.8] * 10, [0] * 9 + [1] + [0] * 4 + [1] * 6
    >>> AutoCalibrator().fit(100 * scores, 100 * labels).predict([0.2, 0.8]).round(2)
    array([0.1, 0.6])
    """


class BinningCalibrator(HistogramCalibrator):
    """Rates of equi-depth buckets.

    >>> scores, labels = [0.2] * 10 + [0.8] * 10, [0] * 9 + [1] + [0] * 4 + [1] * 6
    >>> BinningCalibrator().fit(scores, labels).predict([0.2, 0.8]).round(2)
    array([0.1, 0.6])
    """

    _method = Method.BINNING


class BBQCalibrator(HistogramCalibrator):
    """Bayesian binning into quantiles.

    >>> scores, labels = [0.2] * 10 + [0.8] * 10, [0] * 9 + [1] + [0] * 4 + [1] * 6
    >>> BBQCalibrator().fit(scores, labels).predict([0.2, 0.8]).round(2)
    array([0.1, 0.6])
    """

    _method = Method.BBQ


class IsotonicCalibrator(HistogramCalibrator):
    """The nearest rising map.

    >>> scores, labels = [0.2] * 10 + [0.8] * 10, [0] * 9 + [1] + [0] * 4 + [1] * 6
    >>> IsotonicCalibrator().fit(scores, labels).predict([0.2, 0.8]).round(2)
    array([0.1, 0.6])
    """

    _method = Method.ISOTONIC


class SigmoidCalibrator(HistogramCalibrator):
    """Platt's sigmoid of the log-odds.

    >>> scores, labels = [0.2] * 10 + [0.8] * 10, [0] * 9 + [1] + [0] * 4 + [1] * 6
    >>> SigmoidCalibrator().fit(scores, labels).predict([0.2, 0.8]).round(2)
    array([0.1, 0.6])
    """

    _method = Method.SIGMOID


class BetaCalibrator(HistogramCalibrator):
    """Beta calibration.

    >>> scores, labels = [0.2] * 10 + [0.8] * 10, [0] * 9 + [1] + [0] * 4 + [1] * 6
    >>> BetaCalibrator().fit(scores, labels).predict([0.2, 0.8]).round(2)
    array([0.1, 0.6])
    """

    _method = Method.BETA


class SmoothCalibrator(HistogramCalibrator):
    """Smooth curves of every roughness, averaged.

    With few rows it stays near the score.

    >>> scores, labels = [0.2] * 10 + [0.8] * 10, [0] * 9 + [1] + [0] * 4 + [1] * 6
    >>> SmoothCalibrator().fit(100 * scores, 100 * labels).predict([0.2, 0.8]).round(2)
    array([0.1, 0.6])
    """

    _method = Method.SMOOTH


class TemperatureCalibrator(HistogramCalibrator):
    """One temperature for the log-odds.

    It keeps 0.5 where it is.

    >>> scores, labels = [0.2] * 10 + [0.8] * 10, [0] * 9 + [1] + [0] * 4 + [1] * 6
    >>> TemperatureCalibrator().fit(scores, labels).predict([0.2, 0.8]).round(2)
    array([0.25, 0.75])
    """

    _method = Method.TEMPERATURE


class CalibratedModel:
    """A fitted model whose probabilities go through a calibrator.

    Takes any model with `predict_proba`, a FrozenEstimator too, and a `Calibrator` or a fitted
    estimator of this module. Fitting again would undo both, so `fit` does nothing.

    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]] * 25, [0, 0, 1, 1, 0, 1, 0, 1] * 12 + [0, 0, 1, 1]
    >>> model = LogisticRegression().fit(X, y)
    >>> calibrator = IsotonicCalibrator().fit(model.predict_proba(X), y)
    >>> CalibratedModel(model, calibrator).predict([[-2.0], [2.0]])
    array([0, 1])
    """

    def __init__(self, estimator: Any, calibrator: Calibrator | HistogramCalibrator) -> None:
        self.estimator = estimator
        self.calibrator = calibrator

    @property
    def classes_(self) -> Any:
        """The model's own classes, the positive one last."""
        return self.estimator.classes_

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Nothing to do: model and calibrator are fitted already."""
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Calibrated probabilities of both classes, row x class."""
        scores = _positive_column(self.estimator.predict_proba(X))
        return _both_classes(self.calibrator.predict(scores))

    def predict(self, X: Any) -> Any:
        """The class whose calibrated probability is above one half."""
        above = self.predict_proba(X)[:, 1] > 0.5
        return np.asarray(self.classes_)[above.astype(np.int64)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Model and calibrator."""
        return {"estimator": self.estimator, "calibrator": self.calibrator}

    def set_params(self, **params: Any) -> Self:
        """Put in another model or calibrator."""
        for name, value in params.items():
            if name not in ("estimator", "calibrator"):
                raise SettingInvalid(f"CalibratedModel has no parameter {name!r}.")
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        return _tags()


def _tags() -> Any:
    """What scikit-learn asks an estimator about itself; only it calls this."""
    with needed_for("scikit-learn's tags"):
        from sklearn.utils import ClassifierTags, Tags, TargetTags

    return Tags(
        estimator_type="classifier",
        target_tags=TargetTags(required=True),
        transformer_tags=None,
        classifier_tags=ClassifierTags(multi_class=False),
        regressor_tags=None,
    )


def _positive_column(scores: npt.ArrayLike) -> npt.ArrayLike:
    """The second of two columns, or the only one."""
    raw = np.asarray(scores)
    return raw[:, 1] if raw.ndim == 2 and raw.shape[1] == 2 else raw


def _both_classes(positive: FloatArray) -> FloatArray:
    """Probabilities of the negative and the positive class, row x class."""
    return np.column_stack([1.0 - positive, positive])


def _checked_weights(sample_weight: npt.ArrayLike, rows: int) -> FloatArray:
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (rows,) or not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise SettingInvalid(
            f"sample_weight must hold {rows} finite numbers that are not negative; found shape "
            f"{weights.shape}, or others."
        )
    return weights
