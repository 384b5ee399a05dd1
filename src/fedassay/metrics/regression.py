"""A logistic regression on a histogram: parameters with their errors, binning's among them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, sqrt

import numpy as np

from fedassay.estimate import FINER, REACH, Estimate, NotEnoughData, TooCoarse
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.copies import copies_of
from fedassay.metrics.crowding import crowded_sums
from fedassay.metrics.delta_method import counts_estimate
from fedassay.metrics.lattices import lattice, lone_heaps, unseen_shifts
from fedassay.metrics.log_odds import PiecedHistogram, log_odds
from fedassay.metrics.logistic import LogisticFit, fit_logistic, probabilities
from fedassay.metrics.placements import Placement, at_ends, crowded
from fedassay.metrics.score_reach import ScoreTest

_LABELS = np.array([0.0, 1.0])[:, None, None]
_COARSE = 1.0 / 3.0
_BEYOND = 1.25
_ROUNDS = 4
_SETTLED = 1.001
OPEN = (
    "noise may have put all the rows where they contradict the scores, without which the logistic "
    "curve would lie elsewhere. More reports would tell, or a larger epsilon."
)
CELLS_RUN_OFF = (
    "the grid is too coarse for these scores: where they lie inside its cells decides whether the "
    f"logistic curve has a most likely place. {FINER}"
)


@dataclass(frozen=True, slots=True, eq=False)
class LogisticModel:
    """What the log-odds of a positive are taken to be, as a function of the score's."""

    features: Callable[[FloatArray], FloatArray]
    """Parameter x point, from log-odds at points."""
    start: FloatArray
    """The parameters of a calibrated score."""
    has_offset: bool = False
    """Whether the score's own log-odds are added, with a slope of 1."""

    def fit(self, odds: FloatArray, counts: FloatArray) -> LogisticFit | NotEnoughData:
        """The most likely parameters for counts (label x point) at given log-odds."""
        return fit_logistic(
            self.features(odds),
            counts,
            start=self.start,
            offset=odds if self.has_offset else None,
        )

    def share(self, odds: FloatArray, parameters: FloatArray) -> FloatArray:
        """The model's share of positives at given log-odds."""
        shift = odds if self.has_offset else 0.0
        return probabilities(shift + parameters @ self.features(odds))


@dataclass(frozen=True, eq=False)
class Regression:
    """A model fitted to a histogram's pieces."""

    pieced: PiecedHistogram
    model: LogisticModel
    fit: LogisticFit

    @classmethod
    def of(cls, pieced: PiecedHistogram, model: LogisticModel) -> "Regression | NotEnoughData":
        """Fit; where there is no most likely place, why."""
        fit = model.fit(pieced.odds.ravel(), pieced.counts.reshape(2, -1))
        return fit if isinstance(fit, NotEnoughData) else cls(pieced, model, fit)

    @property
    def histogram(self) -> ScoreHistogram:
        """What it was fitted to."""
        return self.pieced.histogram

    @cached_property
    def influence(self) -> FloatArray:
        """How parameters move with a row more, parameter x label x bucket x piece."""
        return self._moved(self.pieced.odds)

    def estimate(self, index: int) -> Estimate:
        """One parameter, with its errors."""
        filled = int((self.histogram.counts.sum(axis=0) != 0.0).sum())
        binning_sd = self._binning_sd(index) if filled >= len(self.fit.parameters) else inf
        bound = self._bound(index)
        if not binning_sd < inf or (filled == 1 and not bound < inf):
            return TooCoarse(reason=CELLS_RUN_OFF)
        found = counts_estimate(
            self.histogram,
            float(self.fit.parameters[index]),
            self.gradients[index],
            binning_bound=bound,
            binning_sd=binning_sd,
        )
        return self._beyond_first_order(found, index)

    def _beyond_first_order(self, found: Estimate, index: int) -> Estimate:
        """The same, with noise that reaches as far as a test of the parameter does.

        With the slope known there is none where that is further than four times first order:
        rows that noise put on the wrong side may be all that holds the curve.
        """
        if self.histogram.noise.is_zero:
            return found
        odds, parameters = self.pieced.odds.ravel(), self.fit.parameters
        if not self.model.has_offset:
            test = ScoreTest(self.pieced, self.model.features(odds), parameters, index)
        else:
            features = np.vstack([self.model.features(odds), odds])
            test = ScoreTest(self.pieced, features, np.append(parameters, 1.0), index, True)
            if test.is_open(found.noise_sd):
                return NotEnoughData(reason=OPEN)
        return replace(found, noise_sd=test.noise_sd(found.noise_sd))

    @cached_property
    def _mean_influence(self) -> FloatArray:
        """The same on average over each bucket's examples, parameter x label x bucket."""
        return self.pieced.mean(self.influence)

    @cached_property
    def _at_cuts(self) -> FloatArray:
        """The same at the cuts, parameter x label x bucket x cut."""
        return self._moved(self.pieced.ends)

    @cached_property
    def _at_likely_cuts(self) -> FloatArray:
        return self._moved(self.pieced.likely_ends)

    @cached_property
    def gradients(self) -> FloatArray:
        """How each parameter moves with each count, parameter x label x bucket."""
        return self.pieced.gradients(self.influence)

    def _moved(self, odds: FloatArray) -> FloatArray:
        """How parameters move with a row more at given log-odds, parameter x label x ..."""
        flat = odds.ravel()
        inverse = self.fit.inverse
        along = (inverse @ self.model.features(flat)).reshape(len(inverse), *odds.shape)
        share = self.model.share(flat, self.fit.parameters).reshape(odds.shape)
        return along[:, None] * (_LABELS - share)

    def _binning_sd(self, index: int) -> float:
        """The likely error: scores by chance within buckets, spikes, crowds, a third of the bend.

        What towers in the first or last bucket may have scores that are exactly 0 or 1.
        """
        counts, spikes = np.maximum(self.histogram.counts, 0.0), self.histogram.spikes
        mean = self._mean_influence[index]
        within = np.diff(self._at_likely_cuts[index], axis=-1) ** 2 / 12.0
        between = (self.influence[index] - mean[..., None]) ** 2
        even = np.diff(self.pieced.cuts, axis=1)
        variance = ((within + between) * even).sum(axis=-1)
        loose = float(((copies_of(self.histogram) * counts + spikes**2) * variance).sum())
        wide = self.pieced.doubt(self.influence[index])
        aligned = self._aligned(index)
        beside = crowded_sums(self.histogram, lambda s: self._moved(log_odds(s))[index], mean)
        crowds = max(self._moved_by(self._crowded, index) ** 2, float((beside**2).sum()))
        towers = max((self._moved_by(each, index) for each in self._at_ends), default=0.0) / REACH
        loose += wide**2 + aligned**2 + crowds + towers**2
        return sqrt(loose) + _COARSE * abs(self._bend(index))

    def _aligned(self, index: int) -> float:
        """The same if scores are round, as edges often are, and all lie at the same side.

        Ties that show may be a whole bucket's width off, all others half of a rounding that no
        bucket shows.
        """
        histogram, mean = self.histogram, self._mean_influence[index]
        sides = self._at_cuts[index][:, 1:-1, [0, -1]] - mean[:, 1:-1, None]
        ties = lattice(histogram).likely(histogram)[:, 1:-1, None]
        likely = float(np.abs((ties * sides).sum(axis=(0, 1))).max())
        part = (unseen_shifts(histogram) / histogram.widths)[1:-1]
        across = part * (sides[..., 1] - sides[..., 0])
        rows = np.maximum(histogram.counts[:, 1:-1], 0.0)
        lone = np.abs((lone_heaps(histogram)[:, 1:-1, None] * sides).sum(axis=0)).max(initial=0.0)
        return max(likely, abs(float((rows * across).sum())), float(lone)) / REACH

    @cached_property
    def _crowded(self) -> LogisticFit | NotEnoughData:
        """The regression if rows crowd to the denser sides of their buckets."""
        return self._placed(crowded(self.pieced))

    @cached_property
    def _at_ends(self) -> list[LogisticFit | NotEnoughData]:
        """The regressions if what towers next to 0 or 1 has exactly these scores."""
        return [self._placed(each) for each in at_ends(self.pieced)]

    def _placed(self, placement: Placement) -> LogisticFit | NotEnoughData:
        return self.model.fit(placement.flat_odds, placement.flat_counts)

    def _moved_by(self, other: LogisticFit | NotEnoughData, index: int) -> float:
        """How far another guess at where rows lie takes a parameter; anywhere, if it runs off."""
        if isinstance(other, NotEnoughData):
            return inf
        return abs(float(other.parameters[index] - self.fit.parameters[index]))

    def _bend(self, index: int) -> float:
        """How far the parameter is from that of scores evenly spread in their buckets."""
        if self.pieced.pieces == 1:
            return 0.0
        even = self.model.fit(self.pieced.odds.ravel(), self.pieced.even_counts.reshape(2, -1))
        if isinstance(even, NotEnoughData):
            return 0.0
        return float(self.fit.parameters[index] - even.parameters[index])

    def _bound(self, index: int) -> float:
        """How far it can be, however scores lie: all rows of a bucket and a label at one place.

        To first order that is the sum of what each row can do. Where buckets are wide the curve
        is also fitted again with every row at its worst place, which then may be another, and the
        furthest taken; a quarter more is for what that leaves out.
        """
        lean = self._lean(index, self)
        first = float((np.maximum(self.histogram.counts, 0.0) * np.abs(lean).max(axis=-1)).sum())
        if self.pieced.pieces == 1:
            return _BEYOND * first
        return _BEYOND * max(first, *(self._worst(index, sign) for sign in (1.0, -1.0)))

    def _lean(self, index: int, at: "Regression") -> FloatArray:
        """What a row does at each cut more than at its bucket's mean, label x bucket x cut."""
        lean: FloatArray = at._at_cuts[index] - at._mean_influence[index][..., None]
        return lean

    def _worst(self, index: int, sign: float) -> float:
        """The furthest that placing all rows where they lean most, again and again, comes."""
        counts = np.maximum(self.histogram.counts, 0.0)
        buckets, furthest, at = counts.shape[1], 0.0, self
        placed = np.zeros((2, counts.size))
        placed[0, :buckets], placed[1, buckets:] = counts
        for _ in range(_ROUNDS):
            worst = (sign * self._lean(index, at)).argmax(axis=-1)[..., None]
            odds = np.take_along_axis(self.pieced.ends[None], worst, axis=-1)[..., 0]
            refit = self.model.fit(odds.ravel(), placed)
            if isinstance(refit, NotEnoughData):
                return inf
            moved = abs(float(refit.parameters[index] - self.fit.parameters[index]))
            if moved <= furthest * _SETTLED:
                break
            furthest, at = moved, replace(self, fit=refit)
        return furthest
