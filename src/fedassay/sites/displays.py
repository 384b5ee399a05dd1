"""A forest plot: every site with its interval, the mean, and what a new site may show."""

from dataclasses import dataclass
from math import isnan
from typing import Any, Self

import numpy as np

from fedassay.checks import require_type
from fedassay.extras import needed_for
from fedassay.metrics.displays import Display
from fedassay.sites.effects import SiteEffects
from fedassay.sites.heterogeneity import Heterogeneity
from fedassay.sites.random_effects import PoolOptions, pool_sites

_ROW_HEIGHT = 0.24
_HEAD_HEIGHT = 1.5
_WIDTH = 8.0
_LARGEST_MARK = 9.0
_SMALLEST_MARK = 3.0


@dataclass(slots=True, eq=False, repr=False)
class ForestDisplay(Display):
    """Sites with 95 % intervals of their own, the mean over sites, and a new site's interval.

    `from_effects` computes and draws; `plot` draws again on other axes.
    """

    effects: SiteEffects
    heterogeneity: Heterogeneity
    name: str = "sites"
    ax_: Any = None

    @classmethod
    def from_effects(
        cls,
        effects: SiteEffects,
        *,
        options: PoolOptions | None = None,
        name: str = "sites",
        ax: Any = None,
    ) -> Self:
        """Pool the sites and draw them."""
        require_type(effects, SiteEffects, "what is drawn", "Use histogram_effects.")
        return cls(effects, pool_sites(effects, options), name).plot(ax=ax)

    def figures(self) -> str:
        """The mean and the interval for a new site."""
        return str(self.heterogeneity)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw on the given axes, or on new ones that have room for every site."""
        rows = len(self.effects) + 2 + len(self.effects.left_out)
        self.ax_ = ax = _tall_axes(rows) if ax is None else ax
        labels, figures = [], []
        largest = max((1.0 / each.variance for each in self.effects.effects), default=1.0)
        for row, effect in enumerate(self.effects.effects):
            low, high = self.effects.interval(effect)
            value = self.effects.scale.back(effect.value)
            share = (1.0 / effect.variance / largest) ** 0.5
            mark = _SMALLEST_MARK + (_LARGEST_MARK - _SMALLEST_MARK) * share
            ax.plot([low, high], [row, row], color="C0", linewidth=1, zorder=2)
            ax.plot([value], [row], "s", color="C0", markersize=mark, zorder=3)
            labels.append(effect.site)
            figures.append(f"{value:.3f} [{low:.3f}, {high:.3f}]")
        for left in self.effects.left_out:
            labels.append(left.site)
            figures.append("not pooled")
        self._draw_mean(len(labels), labels, figures)
        ax.set_yticks(range(len(labels)), labels)
        ax.set(ylim=(len(labels) - 0.3, -0.7), xlabel=self.effects.metric, title=self.name)
        self._frame()
        right = ax.secondary_yaxis("right")
        right.set_yticks(range(len(figures)), figures)
        for side in (ax, right):
            side.tick_params(axis="y", length=0)
        for spine in (*ax.spines.values(), *right.spines.values()):
            spine.set_visible(False)
        ax.spines["bottom"].set_visible(True)
        return self

    def _draw_mean(self, row: int, labels: list[str], figures: list[str]) -> None:
        found, ax = self.heterogeneity, self.ax_
        if isnan(found.effect):
            return
        low, high = found.interval
        ax.fill(
            [low, found.mean, high, found.mean],
            [row, row - 0.3, row, row + 0.3],
            color="C1",
            zorder=3,
            label="mean over sites, 95 %",
        )
        ax.axvline(found.mean, color="C1", linestyle=":", linewidth=1, zorder=1)
        labels.append("mean over sites")
        figures.append(f"{found.mean:.3f} [{low:.3f}, {high:.3f}]")
        low, high = found.prediction
        labels.append("a new site")
        if isnan(low):
            figures.append("cannot be said")
            return
        ax.plot(
            [low, high],
            [row + 1, row + 1],
            color="C3",
            linewidth=4,
            solid_capstyle="butt",
            zorder=3,
            label="a new site, 95 %",
        )
        ax.axvspan(low, high, color="C3", alpha=0.08, linewidth=0, zorder=0)
        figures.append(f"{low:.3f} to {high:.3f}")

    def _frame(self) -> None:
        """Limits that show the new site's interval whole, however wide a small site's is."""
        intervals = [self.effects.interval(each) for each in self.effects.effects]
        ends = np.array([*self.heterogeneity.prediction, *self.heterogeneity.interval])
        values = [self.effects.scale.back(each.value) for each in self.effects.effects]
        inner = np.concatenate([ends[np.isfinite(ends)], values])
        if len(inner) == 0:
            return
        room = max(float(inner.max() - inner.min()), 1e-3)
        low = max(float(inner.min()) - 0.6 * room, min(each.low for each in intervals))
        high = min(float(inner.max()) + 0.6 * room, max(each.high for each in intervals))
        low, high = min(low, float(inner.min())), max(high, float(inner.max()))
        self.ax_.set_xlim(low - 0.03 * room, high + 0.03 * room)


def _tall_axes(rows: int) -> Any:
    with needed_for("drawing"):
        import matplotlib.pyplot as plt

    size = (_WIDTH, _HEAD_HEIGHT + _ROW_HEIGHT * rows)
    return plt.subplots(figsize=size, layout="constrained")[1]
