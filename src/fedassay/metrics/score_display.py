"""Where the scores of both classes lie, drawn as two histograms."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fedassay.checks import require_whole
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.metrics.displays import Display, axes_or_new

_CLASSES = ("negatives", "positives")


@dataclass(slots=True, eq=False, repr=False)
class ScoreHistogramDisplay(Display):
    """Each class's share of rows by score.

    `from_histogram` and `from_predictions` compute and draw; `plot` draws again on other axes.
    """

    edges: FloatArray
    shares: FloatArray
    """Label x bin; each row adds up to 1 where the class has rows."""
    name: str = "federation"
    ax_: Any = None

    @classmethod
    def from_histogram(
        cls,
        histogram: ScoreHistogram,
        *,
        bins: int = 40,
        name: str = "federation",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Add up buckets into even bins and draw them; noise below 0 is drawn as 0."""
        require_histogram(histogram)
        require_whole(bins, "bins", 1, 10_000, "Usual are 20 to 50.")
        edges = np.linspace(0.0, 1.0, bins + 1)
        rising = histogram.monotone().cumulative
        below = np.stack([np.interp(edges, histogram.edges, row) for row in rising])
        shares = np.diff(below, axis=1) / np.maximum(below[:, -1:], 1e-300)
        return cls(edges, shares, name).plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        y_score: npt.ArrayLike,
        *,
        bins: int = 40,
        name: str = "rows",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Count rows at hand and draw them."""
        histogram = ScoreHistogram.from_scores(y_true, y_score)
        return cls.from_histogram(histogram, bins=bins, name=name, ax=ax, **kwargs)

    def figures(self) -> str:
        """The mean score of each class."""
        middle = 0.5 * (self.edges[1:] + self.edges[:-1])
        means = [f"{float(row @ middle):.3f}" for row in self.shares]
        return f"mean score {means[1]} of positives, {means[0]} of negatives"

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw on the given axes, or on new ones; what is left over goes to both outlines."""
        self.ax_ = ax = axes_or_new(ax)
        for label, colour in enumerate(("C0", "C1")):
            given = {"color": colour, "alpha": 0.45, "label": f"{self.name}, {_CLASSES[label]}"}
            ax.stairs(self.shares[label], self.edges, fill=True, **{**given, **kwargs})
        top = max(float(self.shares.max()), 1e-3)
        ax.set(xlabel="Score", ylabel="Share of class", xlim=(0.0, 1.0), ylim=(0.0, 1.25 * top))
        ax.legend(loc="upper right", frameon=False)
        return self
