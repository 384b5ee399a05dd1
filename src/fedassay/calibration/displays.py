"""Reliability diagrams, drawn as scikit-learn draws them."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fedassay.calibration.bins import Bins, ReliabilityDiagram, reliability_diagram
from fedassay.calibration.calibration_error import ece
from fedassay.calibration.calibrator import Calibrator
from fedassay.estimate import Estimate
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.displays import Display, axes_or_new, once


@dataclass(slots=True, eq=False, repr=False)
class CalibrationDisplay(Display):
    """Observed against predicted rates with 95 % intervals, and where examples lie.

    `from_histogram` computes and draws; `plot` draws again on other axes.
    """

    diagram: ReliabilityDiagram
    ece: Estimate
    name: str = "federation"
    ax_: Any = None

    @classmethod
    def from_histogram(
        cls,
        histogram: ScoreHistogram,
        *,
        bins: int = 20,
        strategy: Bins = Bins.WIDTH,
        calibrator: Calibrator | None = None,
        name: str = "federation",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the diagram and draw it; what is left over goes to the points and their bars."""
        diagram = reliability_diagram(
            histogram, bins=bins, strategy=strategy, calibrator=calibrator
        )
        error = ece(histogram, bins=bins, strategy=strategy, calibrator=calibrator)
        return cls(diagram, error, name).plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        y_prob: npt.ArrayLike,
        *,
        bins: int = 20,
        strategy: Bins = Bins.WIDTH,
        name: str = "rows",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the diagram of rows at hand and draw it."""
        histogram = ScoreHistogram.from_scores(y_true, y_prob)
        return cls.from_histogram(
            histogram, bins=bins, strategy=strategy, name=name, ax=ax, **kwargs
        )

    def figures(self) -> str:
        """The calibration error."""
        return f"ECE {self.ece}"

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw on the given axes, or on new ones; what is left over goes to points and bars."""
        self.ax_ = ax = axes_or_new(ax)
        shown = self.diagram
        low, high = (np.clip(end, 0.0, 1.0) for end in (shown.low, shown.high))
        error = "ECE = {:.4f} [{:.4f}, {:.4f}]".format(self.ece.value, *self.ece.interval())
        label = f"{self.name} ({error})"
        # Only what is shown is clipped to where a rate can lie.
        true = np.clip(shown.prob_true, 0.0, 1.0)
        ideal = once(ax, "calibrated")
        ax.plot([0, 1], [0, 1], linestyle=":", color="grey", linewidth=1, label=ideal)
        ax.errorbar(
            shown.prob_pred,
            true,
            yerr=[true - np.minimum(low, true), np.maximum(high, true) - true],
            **{"marker": "o", "markersize": 4, "linewidth": 1, "label": label, **kwargs},
        )
        largest = max(float(shown.share.max()), 1e-300) if len(shown.share) else 1.0
        ax.vlines(
            shown.prob_pred,
            0.0,
            0.15 * shown.share / largest,
            color="grey",
            alpha=0.4,
            linewidth=5,
            label=once(ax, "share of examples"),
        )
        ax.set(
            xlabel="Predicted probability",
            ylabel="Observed share of positives",
            xlim=(-0.01, 1.01),
            ylim=(-0.01, 1.01),
            aspect="equal",
        )
        # Above the picture: where rates are uncertain, intervals reach into every corner.
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False)
        return self
