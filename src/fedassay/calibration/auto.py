"""Which calibrator, if any: by the error that each is expected to make."""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from fedassay.calibration.calibrator import Calibrator, Method
from fedassay.calibration.methods import CANDIDATES, METHODS, RatesFit, method_row
from fedassay.calibration.rates import MOST_BUCKETS, BucketRates, bucket_rates
from fedassay.calibration.smooth import smooth_from
from fedassay.checks import require_type
from fedassay.errors import SettingInvalid, SingleClass
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram, require_histogram

_FOLDS = 5
_FEW = 4 * _FOLDS
_FEWEST = 3
_PIECES = 8
# By how many standard deviations of the difference a map must beat the raw score where curves
# see no need for one, and by how many another method must beat the smooth curves.
_CLEARLY = 3.0
_LIKELY = 2.0
# How probable it may be that no map is needed. Where none is, evidence of a thousand to one
# against it comes up in fewer than one survey in a thousand (Markov's inequality).
_UNNEEDED = 0.001


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedError:
    """What cross-fitting says about one method."""

    method: Method
    mean_square: float
    """Mean squared distance to the true probability; may be negative by chance."""
    predicted: FloatArray
    """For every bucket, by maps that did not see it."""

    def clear_of(self, other: "ExpectedError", rates: BucketRates) -> float:
        """By how many standard deviations of the difference its error is smaller."""
        shares = rates.totals / rates.totals.sum()
        apart = 4.0 * shares**2 * (self.predicted - other.predicted) ** 2 * rates.variance
        sd = sqrt(float(apart.sum()))
        return (other.mean_square - self.mean_square) / sd if sd > 0.0 else 0.0


def fit(
    histogram: ScoreHistogram,
    method: Method | None = None,
    *,
    noise_aware: bool = True,
    monotone: bool = False,
) -> Calibrator:
    """Fit the named method, or the one with the smallest expected error.

    With `monotone`, a map that would change ranks is refused, and never chosen.

    >>> h = ScoreHistogram.from_scores([0, 1] * 500, [i / 1000 for i in range(1000)])
    >>> fit(h, Method.SIGMOID).is_monotone
    True
    """
    require_histogram(histogram)
    for name, flag in (("noise_aware", noise_aware), ("monotone", monotone)):
        require_type(flag, bool, name, "Pass True or False.")
    if method is None:
        return fit_auto(histogram, noise_aware=noise_aware, monotone=monotone)
    calibrator = method_row(method).fit(histogram, noise_aware=noise_aware)
    return calibrator.require_monotone() if monotone else calibrator


def fit_auto(
    histogram: ScoreHistogram, *, noise_aware: bool = True, monotone: bool = False
) -> Calibrator:
    """The method with the smallest expected error, or none with the reason why.

    The average of smooth curves says how probable it is that the raw score needs no map. If that
    is next to nothing, or a method is clearly nearer to the truth in cross-fitting, the scores
    are calibrated: by the smooth average, or by a method that cross-fitting puts before it.
    Otherwise they stay as they are, since a map that follows noise does harm.

    Buckets are dealt into five folds; every method is fitted without one and compared with its
    rates, whose sampling and noise variance is known and taken off. Where buckets are few
    and exact, a method sees them all, and what it gains by following their noise is added
    (Stein 1981): with rates r, variances v and predictions p, the expected square is
    (r - p)^2 + (2 dp/dr - 1) v.
    """
    try:
        rates = bucket_rates(histogram, most=MOST_BUCKETS).in_pieces(_PIECES)
    except SingleClass as error:
        return Calibrator.identity(f"not calibrated: {error}")
    if not noise_aware:
        rates = rates.without_noise()
    if rates.noise_variance.any() and len(rates) < _FEWEST:
        return Calibrator.identity(
            f"not calibrated: the tally has {len(rates)} bucket(s) clear of the privacy noise; at "
            f"least {_FEWEST} are needed to compare calibrators."
        )
    smooth = smooth_from(rates)
    errors = expected_errors(rates, monotone=monotone)
    figures = ", ".join(f"{e.method.value} {_root(e.mean_square)}" for e in errors.values())
    chance = f"The raw score needs no map with probability {smooth.raw_share:.2g}."
    method = _chosen(errors, rates, smooth.raw_share)
    if method is Method.NONE:
        why = "the raw score is expected to be better"
        if smooth.raw_share <= 0.5:
            why = "there is too little evidence that a map would do better than the raw score"
        return Calibrator.identity(
            f"not calibrated: {why}. {chance} Expected distances to the truth: {figures}."
        )
    calibrator = smooth.calibrator if method is Method.SMOOTH else CANDIDATES[method](rates)
    reason = f"{method.value}. {chance} Expected distances to the truth: {figures}."
    return replace(calibrator, reason=f"{reason} {calibrator.reason}".rstrip())


def _chosen(errors: dict[Method, ExpectedError], rates: BucketRates, raw_share: float) -> Method:
    raw, smooth = errors[Method.NONE], errors[Method.SMOOTH]
    best = min(
        (error for error in errors.values() if error is not raw),
        key=lambda error: error.mean_square,
    )
    if raw_share > _UNNEEDED and best.clear_of(raw, rates) < _CLEARLY:
        return Method.NONE
    return best.method if best.clear_of(smooth, rates) > _LIKELY else Method.SMOOTH


def expected_errors(rates: BucketRates, *, monotone: bool = False) -> dict[Method, ExpectedError]:
    """Every candidate's expected error; those that cannot be fitted are left out."""
    shares = rates.totals / rates.totals.sum()
    errors = {}
    for method, candidate in CANDIDATES.items():
        if monotone and not METHODS[method].is_monotone:
            continue
        try:
            predicted, squares = cross_fitted(rates, candidate)
        except SettingInvalid:
            continue
        errors[method] = ExpectedError(method, float(shares @ squares), predicted)
    return errors


def cross_fitted(rates: BucketRates, candidate: RatesFit) -> tuple[FloatArray, FloatArray]:
    """Predictions for every bucket, and their expected squared distances to the true rates."""
    is_exact = not rates.noise_variance.any()
    scorer = _moved if is_exact and len(rates) < _FEW else _crossed
    predicted, slopes = scorer(rates, candidate)
    return predicted, (rates.rates - predicted) ** 2 + (2.0 * slopes - 1.0) * rates.variance


def _crossed(rates: BucketRates, fitted: RatesFit) -> tuple[FloatArray, FloatArray]:
    """Predictions for every bucket from a map that did not see it, and so did not move with it."""
    # With few buckets, a map has to see all but one.
    folds = _FOLDS if len(rates) >= _FEW else len(rates)
    fold = np.arange(len(rates)) % folds
    predicted = np.empty(len(rates))
    for held in range(folds):
        seen, unseen = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
        test = rates.only(unseen)
        predicted[unseen] = test.averaged(fitted(rates.only(seen)).predict(test.piece_scores))
    return predicted, np.zeros(len(rates))


def _moved(rates: BucketRates, fitted: RatesFit) -> tuple[FloatArray, FloatArray]:
    """Predictions from a map that saw every bucket, and how far each follows its own rate."""
    predicted = rates.averaged(fitted(rates).predict(rates.piece_scores))
    slopes = np.empty(len(rates))
    for bucket, step in enumerate(np.sqrt(rates.variance)):
        # Towards one half, where there is room.
        step = step if rates.rates[bucket] < 0.5 else -step  # noqa: PLW2901  # towards the middle
        positives = rates.positives.copy()
        positives[bucket] += step * rates.totals[bucket]
        other = replace(rates, positives=positives)
        again = rates.averaged(fitted(other).predict(rates.piece_scores))
        slopes[bucket] = (again[bucket] - predicted[bucket]) / step
    return predicted, slopes


def _root(square: float) -> str:
    return f"{sqrt(square):.4f}" if square > 0.0 else "below noise"
