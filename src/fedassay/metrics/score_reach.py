"""How far noise may have moved a parameter of a logistic curve, by tests of other values for it.

A slope is no linear function of the counts. Where noise puts rows on the wrong side, the fitted
curve is flat; a flat curve rests on many rows, and what noise does to it looks small. The true,
steep one rests on few, to which noise does far more: the variance at the fit does not tell. But
U(b) of `metrics.logistic` is linear in the counts, whatever b is: at the true parameters it is
noise around 0, of a variance that is known. So a value is possible while U there, with
the other parameter fitted again, is less than 1.96 deviations from 0 (Rao's score test).
"""

from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

import numpy as np

from fedassay.estimate import REACH
from fedassay.examples import FloatArray
from fedassay.metrics.delta_method import CLEAR_OF_NOISE
from fedassay.metrics.log_odds import PiecedHistogram
from fedassay.metrics.logistic import probabilities
from fedassay.noise import is_smoothed

_LABELS = np.array([0.0, 1.0])[:, None, None]
# Smoothed counts may bend three times as far as usual in their covariance: most of it is there.
_SMOOTHED = 2.0
_HALVINGS = 6
_STEPS = 40
_LONGEST_STEP = 2.0
_SETTLED = 1e-7
_NOTHING = 1e-300


class _Score(NamedTuple):
    """U of one parameter, given the other, with the deviation of its noise and its slope."""

    size: float
    noise_sd: float
    information: float


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTest:
    """Tests of values for one of the two parameters of a curve; the other may be known."""

    pieced: PiecedHistogram
    features: FloatArray
    """Parameter x point."""
    parameters: FloatArray
    """The fitted ones, or others."""
    tested: int
    other_is_known: bool = False

    @property
    def other(self) -> int:
        """The parameter that is fitted again for every value."""
        return 1 - self.tested

    def noise_sd(self, first_order: float) -> float:
        """How far the furthest possible value is from the fitted one, over 1.96.

        No less than at the fit to first order, and, since a curve may be as steep as it likes
        where noise hides the rows at its middle, at most four times that; of smoothed counts twice.
        """
        here = self._score()
        if here is None or here.noise_sd <= 0.0:
            return first_order
        # A count also moves where its neighbours' rows lie: as much more noise as at the fit.
        most = REACH * first_order * here.information / here.noise_sd
        step = REACH * first_order
        return first_order * max(self._times(side * step, most) for side in (1.0, -1.0))

    def is_open(self, first_order: float) -> bool:
        """Whether a value is possible that is further away than any interval reaches."""
        here = self._score()
        if here is None or here.noise_sd <= 0.0:
            return False
        far = CLEAR_OF_NOISE * REACH * first_order
        return any(self._is_possible(side * far, REACH) for side in (1.0, -1.0))

    def _times(self, step: float, most: float) -> float:
        """How many such steps the last possible value on one side is away, from one on."""
        near, far = 1.0, _SMOOTHED if is_smoothed(self.pieced.histogram.noise) else CLEAR_OF_NOISE
        if not self._is_possible(near * step, most):
            return near
        if self._is_possible(far * step, most):
            return far
        for _ in range(_HALVINGS):
            middle = 0.5 * (near + far)
            near, far = (middle, far) if self._is_possible(middle * step, most) else (near, middle)
        return far if near > 1.0 else near

    def _is_possible(self, moved: float, most: float) -> bool:
        """Whether a value so far away leaves U within that many deviations, or is out of sight."""
        there = self._at(float(self.parameters[self.tested]) + moved)
        score = None if there is None else there._score()
        return score is None or abs(score.size) < most * score.noise_sd

    def _at(self, value: float) -> "ScoreTest | None":
        """Another value, with the best of the other parameter; None where that is not known."""
        parameters = self.parameters.copy()
        parameters[self.tested] = value
        if self.other_is_known:
            return replace(self, parameters=parameters)
        for _ in range(_STEPS):
            rest, _, information = self._sums(parameters)
            slope = float(information[self.other, self.other])
            if not slope > _NOTHING:
                return None
            step = float(np.clip(rest[self.other] / slope, -_LONGEST_STEP, _LONGEST_STEP))
            parameters[self.other] += step
            if abs(step) < _SETTLED:
                return replace(self, parameters=parameters)
        return None

    def _score(self) -> _Score | None:
        """What U of the tested parameter is once the other's part is taken out of it."""
        rest, share, information = self._sums(self.parameters)
        part = 0.0
        if not self.other_is_known:
            if not information[self.other, self.other] > _NOTHING:
                return None
            part = information[self.tested, self.other] / information[self.other, self.other]
        left = information[self.tested, self.tested] - part * information[self.tested, self.other]
        along = (self.features[self.tested] - part * self.features[self.other]).reshape(share.shape)
        weights = self.pieced.mean(along * (_LABELS - share))
        return _Score(
            float(rest[self.tested] - part * rest[self.other]),
            sqrt(self.pieced.histogram.noise.variance(weights)),
            float(left),
        )

    def _sums(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """U, the model's share of positives by bucket x piece, and H."""
        negatives, positives = self.pieced.counts.reshape(2, -1)
        share = probabilities(parameters @ self.features)
        rows = negatives + positives
        information = (self.features * (rows * share * (1.0 - share))) @ self.features.T
        rest = self.features @ (positives - rows * share)
        return rest, share.reshape(self.pieced.odds.shape), information
