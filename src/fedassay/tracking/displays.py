"""A metric over time, with its intervals and what was found to have changed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from fedassay.checks import require_type
from fedassay.estimate import Estimate
from fedassay.extras import needed_for
from fedassay.metrics.displays import Display
from fedassay.tracking.alarms import Alarm
from fedassay.tracking.history import History

_MOST_TICKS = 12


@dataclass(slots=True, eq=False, repr=False)
class HistoryDisplay(Display):
    """One metric at every look with its 95 % interval; alarms are marked.

    `from_history` computes and draws; `plot` draws again on other axes.
    """

    metric: str
    estimates: dict[str, Estimate]
    alarms: Sequence[Alarm] = field(default_factory=tuple)
    name: str = "history"
    ax_: Any = None

    @classmethod
    def from_history(
        cls,
        history: History,
        metric: str = "roc_auc",
        *,
        alarms: Sequence[Alarm] = (),
        name: str = "history",
        ax: Any = None,
    ) -> Self:
        """Draw one metric of a history, with those of the alarms that are about it."""
        require_type(history, History, "a history", "History.load reads a folder.")
        own = tuple(alarm for alarm in alarms if alarm.metric == metric)
        return cls(metric, history.estimates(metric), own, name).plot(ax=ax)

    def figures(self) -> str:
        """How many looks and alarms there are."""
        return f"{self.metric}, {len(self.estimates)} looks, {len(self.alarms)} alarms"

    def plot(self, *, ax: Any = None) -> Self:
        """Draw on the given axes, or on new ones."""
        self.ax_ = ax = _axes() if ax is None else ax
        times = list(self.estimates)
        for place, estimate in enumerate(self.estimates.values()):
            if not estimate.is_available:
                continue
            low, high = estimate.interval()
            ax.plot([place, place], [low, high], color="C0", linewidth=1.5, zorder=2)
            ax.plot([place], [estimate.value], "o", color="C0", markersize=4, zorder=3)
        for alarm in self.alarms:
            at, since = times.index(alarm.at), times.index(alarm.since)
            ax.axvspan(since - 0.5, at + 0.5, color="C3", alpha=0.12, linewidth=0, zorder=0)
            ax.plot([since - 0.5, at + 0.5], [alarm.after] * 2, color="C3", linewidth=2, zorder=4)
        step = -(-len(times) // _MOST_TICKS) if times else 1
        ax.set_xticks(range(0, len(times), step), times[::step], rotation=45, ha="right")
        ax.set(xlim=(-0.7, len(times) - 0.3), ylabel=self.metric)
        ax.grid(axis="y", linewidth=0.3)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        return self


def _axes() -> Any:
    with needed_for("drawing"):
        import matplotlib.pyplot as plt

    return plt.subplots(figsize=(7, 3.2), layout="constrained")[1]
