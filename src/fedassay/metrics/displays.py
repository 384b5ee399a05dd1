"""Curves drawn as scikit-learn draws them, with a band for what is not known."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fedassay.estimate import Estimate
from fedassay.extras import needed_for
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.average_precision import average_precision
from fedassay.metrics.curves import Curve, precision_recall_curve, roc_curve
from fedassay.metrics.roc_auc import roc_auc


class Display(ABC):
    """What a notebook and a terminal show of a drawing: the figure, and one line."""

    __slots__ = ()
    ax_: Any
    name: str

    @abstractmethod
    def figures(self) -> str:
        """The drawing's main figure, in words."""

    @property
    def figure_(self) -> Any:
        """The figure that it was drawn on; None before."""
        return None if self.ax_ is None else self.ax_.figure

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.figures()}>"

    def _repr_png_(self) -> bytes | None:
        if self.ax_ is None:
            return None
        stream = BytesIO()
        self.ax_.figure.savefig(stream, format="png", dpi=100)
        return stream.getvalue()


class CurveDisplay(Display):
    """A curve of a histogram, or of rows at hand."""

    __slots__ = ()

    @classmethod
    @abstractmethod
    def from_histogram(
        cls, histogram: ScoreHistogram, *, name: str = "federation", ax: Any = None, **kwargs: Any
    ) -> Self:
        """Compute the curve and draw it; what is left over goes to the line."""

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        y_score: npt.ArrayLike,
        *,
        name: str = "rows",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the curve of rows at hand and draw it."""
        histogram = ScoreHistogram.from_scores(y_true, y_score)
        return cls.from_histogram(histogram, name=name, ax=ax, **kwargs)


@dataclass(slots=True, eq=False, repr=False)
class RocCurveDisplay(CurveDisplay):
    """ROC curve with a pointwise 95 % band.

    `from_histogram` computes and draws; `plot` draws again on other axes.
    """

    curve: Curve
    roc_auc: Estimate
    name: str = "federation"
    ax_: Any = None

    @classmethod
    def from_histogram(
        cls, histogram: ScoreHistogram, *, name: str = "federation", ax: Any = None, **kwargs: Any
    ) -> Self:
        """Compute the curve and draw it; what is left over goes to the line."""
        made = cls(roc_curve(histogram, monotone=True), roc_auc(histogram), name)
        return made.plot(ax=ax, **kwargs)

    def figures(self) -> str:
        """The area under the curve."""
        return f"AUC {self.roc_auc}"

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw on the given axes, or on new ones; what is left over goes to the line."""
        self.ax_ = axes_or_new(ax)
        _draw(self.ax_, self.curve, f"{self.name} (AUC = {_shown(self.roc_auc)})", kwargs)
        chance = once(self.ax_, "chance")
        self.ax_.plot([0, 1], [0, 1], linestyle=":", color="grey", linewidth=1, label=chance)
        self.ax_.set(xlabel="False positive rate", ylabel="True positive rate")
        self.ax_.legend(loc="lower right", frameon=False)
        return self


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class PrecisionRecallDisplay(CurveDisplay):
    """Precision-recall curve with a pointwise 95 % band."""

    curve: Curve
    average_precision: Estimate
    prevalence: float
    name: str = "federation"
    ax_: Any = None

    @classmethod
    def from_histogram(
        cls, histogram: ScoreHistogram, *, name: str = "federation", ax: Any = None, **kwargs: Any
    ) -> Self:
        """Compute the curve and draw it; what is left over goes to the line."""
        return cls(
            curve=precision_recall_curve(histogram, monotone=True),
            average_precision=average_precision(histogram),
            prevalence=histogram.total_positives / histogram.total,
            name=name,
        ).plot(ax=ax, **kwargs)

    def figures(self) -> str:
        """The average precision."""
        return f"AP {self.average_precision}"

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw on the given axes, or on new ones; what is left over goes to the line."""
        self.ax_ = axes_or_new(ax)
        _draw(self.ax_, self.curve, f"{self.name} (AP = {_shown(self.average_precision)})", kwargs)
        chance = once(self.ax_, "chance")
        self.ax_.axhline(self.prevalence, linestyle=":", color="grey", linewidth=1, label=chance)
        self.ax_.set(xlabel="Recall", ylabel="Precision")
        self.ax_.legend(loc="best", frameon=False)
        return self


def axes_or_new(ax: Any) -> Any:
    """The given axes, or square ones on a new figure.

    >>> axes_or_new("the axes at hand")
    'the axes at hand'
    """
    if ax is not None:
        return ax
    with needed_for("drawing"):
        import matplotlib.pyplot as plt

    return plt.subplots(figsize=(5, 5), layout="constrained")[1]


def once(ax: Any, label: str) -> str:
    """A legend's entry for what every drawing on these axes has: the first says it.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> _ = ax.plot([0, 1], label="chance")
    >>> once(ax, "chance"), once(ax, "band")
    ('_chance', 'band')
    """
    _, labels = ax.get_legend_handles_labels()
    return f"_{label}" if label in labels else label


def _draw(ax: Any, curve: Curve, label: str, kwargs: Mapping[str, Any]) -> None:
    # Only what is shown is clipped to where a rate can lie.
    low, high = (np.clip(edge, 0.0, 1.0) for edge in curve.band())
    if curve.monotone:
        label += "\nmonotone fit to noisy counts"
    x, y = np.clip(curve.x, 0.0, 1.0), np.clip(curve.y, 0.0, 1.0)
    (line,) = ax.plot(x, y, **{"label": label, **kwargs})
    ax.fill_between(
        np.clip(curve.x, 0.0, 1.0),
        low,
        high,
        color=line.get_color(),
        alpha=0.25,
        linewidth=0,
        label=once(ax, "95 % pointwise band"),
    )
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")


def _shown(estimate: Estimate) -> str:
    low, high = estimate.interval()
    return f"{estimate.value:.3f} [{max(low, 0.0):.3f}, {min(high, 1.0):.3f}]"
