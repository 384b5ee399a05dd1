"""A figure from its points alone: a row for every panel, a column for every table."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedassay.extras import needed_for
from fedassay.files import PUBLIC, write_whole
from fedassay.reproduction.figures import Figure
from fedassay.reproduction.results import Point

_GUIDES = {"1/(2B)": ":", "1/(3B²)": "-.", "calibrated": ":"}
_OF_DEFAULT = ": default"
_DPI = 90
_FEW_PLACES = 8


def draw(figure: Figure, points: Sequence[Point], path: Path) -> None:
    """Write the picture, whole or not at all."""
    with needed_for("drawing"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas

    points = [point for point in points if point.curve not in figure.undrawn]
    columns = list(dict.fromkeys(point.data for point in points))
    rows = list(dict.fromkeys(point.panel for point in points))
    curves = list(dict.fromkeys(point.curve for point in points))
    colours = list(dict.fromkeys(curve.removesuffix(_OF_DEFAULT) for curve in curves))
    size = (3.6 * len(columns) + 0.6, 2.7 * len(rows) + 1.2)
    canvas = Canvas(figsize=size, layout="constrained")
    FigureCanvasAgg(canvas)
    grid = canvas.subplots(
        len(rows), len(columns), squeeze=False, sharex=True, sharey=figure.shares_y
    )
    for i, panel in enumerate(rows):
        for j, data in enumerate(columns):
            axes = grid[i][j]
            here = [point for point in points if (point.panel, point.data) == (panel, data)]
            for curve in curves:
                number = colours.index(curve.removesuffix(_OF_DEFAULT))
                _curve(axes, [point for point in here if point.curve == curve], number)
            _dress(axes, figure, here, is_last=i == len(rows) - 1, is_first=j == 0)
            axes.set_title(f"{data}\n{panel}" if len(rows) > 1 else data, fontsize=9)
    handles = {
        label: handle
        for axes in grid.flat
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    canvas.legend(
        handles.values(),
        handles,
        loc="outside lower center",
        ncols=max(2, round(size[0] / 2.6)),
        fontsize=8,
    )
    content = io.BytesIO()
    canvas.savefig(content, format="png", dpi=_DPI, metadata={"Software": None})
    write_whole(path, content.getvalue(), mode=PUBLIC)


def _curve(axes: Any, points: Sequence[Point], number: int) -> None:
    """One curve in its colour; a default has the colour of the preset that it stands beside."""
    if not points:
        return
    curve = points[0].curve
    ordered = sorted(points, key=lambda point: point.x)
    x, y = [point.x for point in ordered], [point.mean for point in ordered]
    if curve in _GUIDES:
        axes.plot(x, y, color="grey", linestyle=_GUIDES[curve], linewidth=1.2, label=curve)
        return
    is_default = curve.endswith("default")
    # An error bar that reaches below zero has no place on a logarithmic axis.
    low = [min(point.spread, 0.95 * abs(point.mean)) for point in ordered]
    axes.errorbar(
        x,
        y,
        yerr=[low, [point.spread for point in ordered]],
        color=f"C{number % 10}",
        linestyle="--" if is_default else "-",
        marker="s" if is_default else "o",
        markersize=3,
        linewidth=1.3,
        elinewidth=0.7,
        capsize=2,
        label=curve,
    )


def _dress(
    axes: Any, figure: Figure, points: Sequence[Point], *, is_last: bool, is_first: bool
) -> None:
    if figure.log_x:
        axes.set_xscale("log")
        places = sorted({point.x for point in points})
        # A few places are named; of many, powers of ten are, as usual.
        if len(places) <= _FEW_PLACES:
            axes.set_xticks(places, [_short(place) for place in places])
            axes.set_xticks([], minor=True)
        else:
            axes.tick_params(axis="x", which="minor", labelbottom=False)
    if figure.log_y:
        axes.set_yscale("log")
    axes.grid(visible=True, which="major", alpha=0.25)
    axes.tick_params(labelsize=8)
    if is_last:
        axes.set_xlabel(figure.x, fontsize=9)
    if is_first:
        axes.set_ylabel(figure.y, fontsize=9)


def _short(number: float) -> str:
    return f"{number / 1000:.3g}k" if number >= 1000.0 else f"{number:.3g}"
