"""Logistic regression of labels on functions of the score, from counts at points.

The model says that a positive has probability p(x) = 1 / (1 + exp(-offset - b'f(x))). With n0 and
n1 negatives and positives at each point, the most likely b solves U(b) = 0, where

    U(b) = sum over points of f (n1 - (n0 + n1) p),    H(b) = sum of f f' (n0 + n1) p (1 - p).

U is linear in the counts, so privacy noise makes it vary and does not bias it, and negative
counts need no clipping; how b moves with a count is H^-1 f (label - p).
"""

from dataclasses import dataclass

import numpy as np

from fedassay.estimate import NotEnoughData
from fedassay.examples import FloatArray

_STEPS = 100
_PIECE = 2**15
_SETTLED = 1e-20
_ROUNDED = 1e-12
_STEEPEST = 60.0
_SINGULAR = 1e-12
_SMALLEST_STEP = 2.0**-20
_NOTHING = 1e-30
# Where the model is sure of every row, it would rather be surer still.
_CERTAIN = 1e-6

RUNS_OFF = (
    "the logistic curve must have a most likely place; on these counts it runs off to infinity, "
    "because the score separates the classes or has hardly more than one value. Gather reports "
    "from more clients, or of a larger epsilon."
)


@dataclass(frozen=True, slots=True, eq=False)
class LogisticFit:
    """The most likely parameters, and what they rest on."""

    parameters: FloatArray
    probabilities: FloatArray
    """The model's, at every point."""
    inverse: FloatArray
    """The inverse of the information H."""


def fit_logistic(
    features: FloatArray,
    counts: FloatArray,
    *,
    start: FloatArray,
    offset: FloatArray | None = None,
) -> LogisticFit | NotEnoughData:
    """The most likely parameters for features (parameter x point) and counts (label x point).

    >>> x = np.array([-1.0, 1.0])
    >>> counts = np.array([[3.0, 1.0], [1.0, 3.0]])
    >>> fit = fit_logistic(np.stack([np.ones(2), x]), counts, start=np.array([0.0, 1.0]))
    >>> round(float(fit.parameters[1]), 4)  # log-odds of 3 to 1
    1.0986
    """
    shift = np.zeros(features.shape[1]) if offset is None else offset
    totals = counts[0] + counts[1]
    parameters = start.astype(np.float64)
    state = _State.at(parameters, features, counts, totals, shift)
    for _ in range(_STEPS):
        if state is None:
            return NotEnoughData(reason=RUNS_OFF)
        if state.distance <= _SETTLED * max(abs(float(totals.sum())), 1.0):
            return _settled(parameters, state, totals)
        scale, better = 1.0, None
        while better is None and scale >= _SMALLEST_STEP:
            tried = parameters + scale * state.step
            better = _State.at(tried, features, counts, totals, shift)
            if better is not None and not better.distance < state.distance:
                better = None
            scale *= 0.5
        if better is None:
            # Rounding leaves no better place: either this is it, or there is none.
            if state.distance <= _ROUNDED * max(abs(float(totals.sum())), 1.0):
                return _settled(parameters, state, totals)
            return NotEnoughData(reason=RUNS_OFF)
        parameters, state = tried, better
        if not np.abs(parameters).max() < _STEEPEST:
            return NotEnoughData(reason=RUNS_OFF)
    return NotEnoughData(reason=RUNS_OFF)


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """One place: its probabilities, the inverse information, Newton's step and its length."""

    probabilities: FloatArray
    inverse: FloatArray
    step: FloatArray
    distance: float

    @classmethod
    def at(
        cls,
        parameters: FloatArray,
        features: FloatArray,
        counts: FloatArray,
        totals: FloatArray,
        shift: FloatArray,
    ) -> "_State | None":
        """None where the information is not positive: nothing is known there."""
        p = np.empty(features.shape[1])
        slope, information = np.zeros(len(features)), np.zeros((len(features), len(features)))
        # In pieces that stay in the processor's cache: many rows at once cost three times as long.
        for start in range(0, len(p), _PIECE):
            here = slice(start, start + _PIECE)
            own, all_here = features[:, here], totals[here]
            p[here] = likely = probabilities(shift[here] + parameters @ own)
            slope += own @ (counts[1, here] - all_here * likely)
            information += (own * (all_here * likely * (1.0 - likely))) @ own.T
        sizes = np.sqrt(np.maximum(np.diag(information), 0.0))
        if not (sizes > _NOTHING).all():
            return None
        scaled = _inverse_of_scaled(information / sizes / sizes[:, None])
        if scaled is None:
            return None
        inverse = scaled / sizes / sizes[:, None]
        step = inverse @ slope
        return cls(p, inverse, step, float(slope @ step))


def _inverse_of_scaled(matrix: FloatArray) -> FloatArray | None:
    """Of a matrix with ones on its diagonal; None where it is not clearly positive.

    Of a line's two parameters its eigenvalues are 1 - r and 1 + r: no library is called for them.
    """
    if len(matrix) == 2:
        r = float(matrix[0, 1])
        if not 1.0 - abs(r) > _SINGULAR:
            return None
        return np.array([[1.0, -r], [-r, 1.0]]) / ((1.0 - r) * (1.0 + r))
    if not np.linalg.eigvalsh(matrix)[0] > _SINGULAR:
        return None
    return np.linalg.inv(matrix).astype(np.float64, copy=False)


def _settled(
    parameters: FloatArray, state: _State, totals: FloatArray
) -> LogisticFit | NotEnoughData:
    p = state.probabilities
    if float(totals @ (p * (1.0 - p))) < _CERTAIN:
        return NotEnoughData(reason=RUNS_OFF)
    return LogisticFit(parameters, p, state.inverse)


def probabilities(odds: FloatArray) -> FloatArray:
    """1 / (1 + exp(-x)), which never overflows.

    >>> probabilities(np.array([-800.0, 0.0])).tolist()
    [0.0, 0.5]
    """
    small = np.exp(-np.abs(odds))
    shares: FloatArray = np.where(odds >= 0.0, 1.0, small) / (1.0 + small)
    return shares
