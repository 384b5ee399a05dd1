"""The decision curve drawn: net benefit by threshold, beside acting on all and on nobody."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fedassay.estimate import Estimate
from fedassay.examples import FloatArray
from fedassay.grid import Grid
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.displays import Display, axes_or_new, once
from fedassay.metrics.net_benefit import DecisionCurve, decision_curve

# Acting on everybody falls without end: only so much of it is in the picture.
_BELOW = 0.25


@dataclass(slots=True, eq=False, repr=False)
class DecisionCurveDisplay(Display):
    """Net benefit by threshold with a pointwise 95 % band.

    `from_histogram` and `from_predictions` compute and draw; `plot` draws again on other axes.
    """

    curve: DecisionCurve
    name: str = "federation"
    ax_: Any = None

    @classmethod
    def from_histogram(
        cls,
        histogram: ScoreHistogram,
        *,
        thresholds: Sequence[float] | None = None,
        name: str = "federation",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the curve and draw it; thresholds are 0.01 to 0.99 unless given."""
        return cls(decision_curve(histogram, thresholds), name).plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        y_score: npt.ArrayLike,
        *,
        thresholds: Sequence[float] | None = None,
        name: str = "rows",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the curve of rows at hand and draw it."""
        points = np.arange(1, 100) / 100 if thresholds is None else np.asarray(thresholds)
        grid = Grid.fine().with_edges_at([float(point) for point in points if 0.0 < point < 1.0])
        histogram = ScoreHistogram.from_scores(y_true, y_score, grid=grid)
        return cls.from_histogram(histogram, thresholds=thresholds, name=name, ax=ax, **kwargs)

    def figures(self) -> str:
        """Between which thresholds acting on scores is surely better than both simple ways."""
        better = self.curve.thresholds[self.curve.is_better()]
        if not len(better):
            return "nowhere surely better than acting on all or on nobody"
        return f"surely better than both simple ways at {len(better)} of " + (
            f"{len(self.curve.thresholds)} thresholds, {better.min():.3g} to {better.max():.3g}"
        )

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw on the given axes, or on new ones; what is left over goes to the line."""
        self.ax_ = axes_or_new(ax)
        at = self.curve.thresholds
        low, value, high = _band(self.curve.net_benefit)
        _, everybody, _ = _band(self.curve.treat_all)
        (line,) = self.ax_.plot(at, value, **{"label": self.name, **kwargs})
        self.ax_.fill_between(
            at,
            low,
            high,
            color=line.get_color(),
            alpha=0.25,
            linewidth=0,
            label=once(self.ax_, "95 % pointwise band"),
        )
        both = (once(self.ax_, "act on all"), once(self.ax_, "act on nobody"))
        self.ax_.plot(at, everybody, linestyle="--", color="grey", linewidth=1, label=both[0])
        self.ax_.axhline(0.0, linestyle=":", color="black", linewidth=1, label=both[1])
        top = max(float(np.nanmax(value)), float(np.nanmax(everybody)), 1e-3)
        self.ax_.set(
            xlabel="Threshold",
            ylabel="Net benefit per example",
            xlim=(0.0, 1.0),
            ylim=(-_BELOW * top, 1.1 * top),
        )
        self.ax_.legend(loc="upper right", frameon=False)
        return self


def _band(estimates: Sequence[Estimate]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lower ends, values and upper ends; nothing where there is no value."""
    ends = [estimate.interval() for estimate in estimates]
    low, high = (np.array(each, dtype=np.float64) for each in zip(*ends, strict=True))
    known = np.isfinite(low) & np.isfinite(high)
    value = np.array([estimate.value for estimate in estimates])
    return np.where(known, low, np.nan), value, np.where(known, high, np.nan)
