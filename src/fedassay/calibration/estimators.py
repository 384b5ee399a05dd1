"""The calibrators as scikit-learn estimators; scikit-learn itself is not needed."""

import inspect
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from fedassay.calibration.auto import fit, fit_auto
from fedassay.calibration.calibrator import Calibrator, Method
from fedassay.errors import SettingInvalid
from fedassay.examples import Examples, FloatArray
from fedassay.extras import needed_for
from fedassay.grid import Grid
from fedassay.histogram import ScoreHistogram


class HistogramCalibrator:
    """Fits a calibrator from rows, or from a histogram that nobody has rows for.

    Parameters are stored as given and checked when fitting, so that `sklearn.base.clone`,
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
        examples = Examples.of(y, column).require_rows()
        weights = _checked_weights(sample_weight, len(examples))
        grid = Grid.fine()
        cells = grid.locate(examples.scores) + grid.cells * examples.labels.astype(np.int64)
        counts = np.bincount(cells, weights, 2 * grid.cells).astype(np.float64)
        return self.fit_histogram(ScoreHistogram(grid.edges, counts.reshape(2, -1)))

    def fit_histogram(self, histogram: ScoreHistogram) -> Self:
        """Fit to a histogram, exact or noisy."""
        if self._method is None:
            found = fit_auto(histogram, monotone=self.monotone)
        else:
            found = fit(histogram, self._method, noise_aware=self.noise_aware)
        self.calibrator_ = found.require_monotone() if self.monotone else found
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = 1
        return self

    def predict_proba(self, scores: npt.ArrayLike) -> FloatArray:
        """Probabilities of both classes, row x class."""
        found = self._fitted().predict(_positive_column(scores))
        return np.column_stack([1.0 - found, found])

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
    """The method with the smallest expected error, or the score as it is."""


class BinningCalibrator(HistogramCalibrator):
    """Rates of equi-depth buckets."""

    _method = Method.BINNING


class BBQCalibrator(HistogramCalibrator):
    """Bayesian binning into quantiles."""

    _method = Method.BBQ


class IsotonicCalibrator(HistogramCalibrator):
    """The nearest rising map."""

    _method = Method.ISOTONIC


class SigmoidCalibrator(HistogramCalibrator):
    """Platt's sigmoid of the log-odds."""

    _method = Method.SIGMOID


class BetaCalibrator(HistogramCalibrator):
    """Beta calibration."""

    _method = Method.BETA


class SmoothCalibrator(HistogramCalibrator):
    """Smooth curves of every roughness, averaged."""

    _method = Method.SMOOTH


class TemperatureCalibrator(HistogramCalibrator):
    """One temperature for the log-odds."""

    _method = Method.TEMPERATURE


class CalibratedModel:
    """A fitted model whose probabilities go through a calibrator.

    Takes any model with `predict_proba`, a FrozenEstimator too, and a `Calibrator` or a fitted
    estimator of this module. Fitting again would undo both, so `fit` does nothing.
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
        found = self.calibrator.predict(_positive_column(self.estimator.predict_proba(X)))
        return np.column_stack([1.0 - found, found])

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


def _checked_weights(sample_weight: npt.ArrayLike, rows: int) -> FloatArray:
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (rows,) or not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise SettingInvalid(
            f"sample_weight must hold {rows} finite numbers that are not negative; found shape "
            f"{weights.shape}, or others."
        )
    return weights
