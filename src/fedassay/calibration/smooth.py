"""Calibration by smooth curves of every roughness, averaged by how well each explains the rates."""

from dataclasses import dataclass

import numpy as np

from fedassay.calibration.calibrator import Calibrator, Method
from fedassay.calibration.logit import expit, log_odds, off_ends
from fedassay.calibration.parametric import knots
from fedassay.calibration.products import matrix_product, row_product
from fedassay.calibration.rates import MOST_BUCKETS, BucketRates, bucket_rates
from fedassay.examples import FloatArray, IntArray
from fedassay.extras import needed_for
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.delta_method import weighted_sum

_WAVES = 40
_STEPS = 50
_SETTLED = 1e-6
_PIECES = 4
_ALL_PIECES = 800
# What a point where nobody is weighs, as a share of all examples.
_NOBODY = 1e-9
# A map that a rising one cannot follow nearer than this for so many examples is worth a word.
_FLATTENED = 0.02
# Standard deviations of what a curve may add to the log-odds: of the multiples of known
# functions, and of its first wave; further waves fall as a rough or as a smooth path's do.
_LEANS = (0.1, 0.3, 1.0)
_BENDING_LEAN = 0.5
_BENDS = ((0.03, 1.0), (0.1, 1.0), (0.3, 1.0), (0.1, 2.0), (0.3, 2.0), (1.0, 2.0))


@dataclass(frozen=True, slots=True, eq=False)
class Averaged:
    """The average of all curves, and how probable it is that the raw score needs none."""

    calibrator: Calibrator
    raw_share: float


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Rates to explain, as a function of the weights of the features."""

    rates: BucketRates
    log_odds: FloatArray
    features: FloatArray
    precision: FloatArray | None
    """Inverse covariance of the rates; without, they err apart, as so many examples would."""
    effective: FloatArray

    @classmethod
    def of(cls, rates: BucketRates) -> "_Problem":
        scores = off_ends(rates.piece_scores)
        covariance = rates.covariance
        precision = None if covariance is None else _inverse(covariance)
        return cls(rates, log_odds(scores), _features(scores), precision, rates.effective)

    def loss(self, weights: FloatArray) -> float:
        """Minus the log-likelihood."""
        shown = self.rates.averaged(expit(self.log_odds + row_product(weights, self.features)))
        observed = self.rates.rates
        if self.precision is not None:
            rest = observed - shown
            return 0.5 * weighted_sum(row_product(rest, self.precision), rest)
        mean = np.clip(shown, 1e-300, 1.0 - 1e-16)
        each = observed * np.log(mean) + (1.0 - observed) * np.log1p(-mean)
        return -weighted_sum(self.effective, each)

    def score(self, weights: FloatArray, used: IntArray) -> tuple[FloatArray, FloatArray]:
        """The likelihood's slope by the weights in use, and its Fisher information."""
        shown = expit(self.log_odds + row_product(weights, self.features))
        mean = self.rates.averaged(shown)
        slope = self.rates.averaged(shown * (1.0 - shown) * self.features[used])
        if self.precision is not None:
            weighted = matrix_product(slope, self.precision)
        else:
            weighted = slope * (self.effective / np.maximum(mean * (1.0 - mean), 1e-12))
        rest = self.rates.rates - mean
        return row_product(rest, weighted.T), matrix_product(weighted, slope.T)


def fit_smooth(histogram: ScoreHistogram, *, noise_aware: bool = True) -> Calibrator:
    """A rising smooth map, as rough as the rates ask for beyond their sampling and noise."""
    rates = bucket_rates(histogram, most=MOST_BUCKETS)
    return smooth_from(rates if noise_aware else rates.without_noise()).calibrator


def smooth_from(rates: BucketRates) -> Averaged:
    """Fit to given rates.

    Every model is a normal prior on what is added to the raw score's log-odds: how far it may
    lean and how much it may bend. Its curve is the most probable one, its weight what Laplace's
    method says of the evidence for it; the raw score counts as much as all models together.
    An averaged curve may fall: a little where noise says so, and far where rates do. The rising
    map nearest to it is taken, where nearest means for the examples, not for the points at which
    the curve is drawn, most of which lie next to 0 and 1.
    """
    problem = _Problem.of(rates.in_pieces(max(min(_PIECES, _ALL_PIECES // len(rates)), 1)))
    scores = knots()
    ends = off_ends(scores)
    basis, raw = _features(ends), log_odds(ends)
    start = np.zeros(len(basis))
    evidence, values = [-problem.loss(start)], [scores]
    for spread in _spreads():
        most_likely, proof = _most_likely(problem, spread)
        evidence.append(proof)
        values.append(expit(raw + row_product(most_likely, basis)))
    weights = np.exp(np.array(evidence) - max(evidence))
    weights[1:] /= len(weights) - 1
    weights /= weights.sum()
    mean = row_product(weights, np.stack(values))
    return Averaged(_rising(rates, scores, mean), float(weights[0]))


def _rising(rates: BucketRates, scores: FloatArray, curve: FloatArray) -> Calibrator:
    """The rising map with the smallest mean square distance to a curve, over the examples."""
    with needed_for("calibration"):
        from scipy.optimize import isotonic_regression

    examples = examples_at(rates, scores)
    weights = np.maximum(examples, _NOBODY * examples.sum())
    rising = np.clip(np.asarray(isotonic_regression(curve, weights=weights).x), 0.0, 1.0)
    moved = float(examples[np.abs(rising - curve) > _FLATTENED].sum() / examples.sum())
    reason = ""
    if moved > _FLATTENED:
        reason = (
            f"rates fall where scores rise: this map, which never falls, is flat instead for "
            f"{moved:.0%} of the examples. A map that may fall (bbq, binning) would be nearer."
        )
    return Calibrator(Method.SMOOTH, scores, rising, reason=reason)


def examples_at(rates: BucketRates, scores: FloatArray) -> FloatArray:
    """Examples by score: each piece of a bucket shared by the two points that it lies between.

    A map that is linear between the points then has the same mean over points and pieces.
    """
    starts = np.append(rates.piece_starts, len(rates.piece_scores))
    sizes = np.repeat(np.maximum(rates.totals, 0.0), np.diff(starts)) * rates.piece_shares
    right = np.clip(np.searchsorted(scores, rates.piece_scores), 1, len(scores) - 1)
    width = scores[right] - scores[right - 1]
    part = np.clip((rates.piece_scores - scores[right - 1]) / width, 0.0, 1.0)
    shared = np.zeros(len(scores))
    np.add.at(shared, right, sizes * part)
    np.add.at(shared, right - 1, sizes * (1.0 - part))
    return shared


def _most_likely(problem: _Problem, spread: FloatArray) -> tuple[FloatArray, float]:
    """The most probable weights under a normal prior, and the evidence by Laplace's method."""
    used = np.flatnonzero(spread)
    prior = 1.0 / spread[used] ** 2
    weights, tried = np.zeros((2, len(spread)))
    loss = problem.loss(weights)
    for _ in range(_STEPS):
        slope, information = problem.score(weights, used)
        slope = slope - prior * weights[used]
        step = np.linalg.solve(information + np.diag(prior), slope)
        if float(step @ slope) < _SETTLED:
            break
        scale = 1.0
        while True:
            tried[used] = weights[used] + scale * step
            new = problem.loss(tried) + 0.5 * float(prior @ tried[used] ** 2)
            if new <= loss or scale < 1e-4:
                break
            scale *= 0.5
        weights, loss = tried.copy(), new
    scaled = np.eye(len(used)) + information * spread[used] * spread[used][:, None]
    ockham = 0.5 * float(np.linalg.slogdet(scaled)[1])
    return weights, -loss - ockham


def _inverse(covariance: FloatArray) -> FloatArray:
    """The inverse, of a matrix that rounding may have made not quite positive."""
    values, vectors = np.linalg.eigh(covariance)
    kept = np.maximum(values, 1e-9 * values[-1])
    return matrix_product(vectors / kept, vectors.T)


def _spreads() -> list[FloatArray]:
    """Prior standard deviations of the features, model by model."""
    spreads = []
    for lean in _LEANS:
        for functions in (slice(0, 1), slice(1, 4)):
            spread = np.zeros(4 + _WAVES)
            spread[functions] = lean
            spreads.append(spread)
    for bend, fall in _BENDS:
        spread = np.zeros(4 + _WAVES)
        spread[1:4] = _BENDING_LEAN
        spread[4:] = bend / np.arange(1, _WAVES + 1) ** fall
        spreads.append(spread)
    return spreads


def _features(scores: FloatArray) -> FloatArray:
    """Log-odds, offset, both logarithms, and waves on the arcsine scale: feature x score."""
    at = np.arcsin(np.sqrt(scores)) * 2.0 / np.pi
    waves = np.sqrt(2.0) * np.cos(np.pi * np.arange(1, _WAVES + 1)[:, None] * at)
    low, high = np.log(scores), -np.log1p(-scores)
    return np.concatenate([np.stack([low + high, np.ones_like(scores), low, high]), waves])
