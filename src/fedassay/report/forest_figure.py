"""A forest plot of the page: every site, the mean over sites, and what a new site may show."""

from collections.abc import Sequence
from math import inf, isfinite, isnan, nan
from statistics import median
from typing import NamedTuple

from fedassay.estimate import Interval
from fedassay.report.markup import Markup, element
from fedassay.report.svg import Frame, legend, short
from fedassay.report.wording import LABELS
from fedassay.sites import Heterogeneity, SiteEffects

MOST_ROWS = 60
_ROW = 20.0
_LEFT, _RIGHT = 104.0, 150.0
_LONGEST = 15
_ROOM = 0.6
_LARGE = 10.0
# A site whose interval is so many times as wide as the usual one does not stretch the picture.
_VAGUE = 5.0


class Row(NamedTuple):
    """A line of the plot: its name, its value and interval, and how it is drawn."""

    name: str
    value: float
    ends: Interval
    kind: str

    @property
    def figures(self) -> str:
        """Value and interval; of a new site there is no value."""
        low, high = map(_digits, self.ends)
        if self.kind == "new":
            return f"{low} to {high}"
        return f"{_digits(self.value)} [{low}, {high}]"


def forest_figure(effects: SiteEffects, found: Heterogeneity) -> Markup:
    """Sites with 95 % intervals of their own, largest weight first; at most sixty of them."""
    kept = sorted(effects.effects, key=lambda each: each.variance)[:MOST_ROWS]
    rows = [
        Row(each.site, effects.scale.back(each.value), effects.interval(each), "site")
        for each in kept
    ]
    if not isnan(found.effect):
        rows.append(Row("mean over sites", found.mean, found.interval, "mean"))
    if not isnan(found.prediction.low):
        rows.append(Row("a new site", nan, found.prediction, "new"))
    frame = Frame(
        x=limits(rows),
        y=(len(rows) - 0.4, -0.6),
        height=_ROW * len(rows) + 58.0,
        left=_LEFT,
        right=_RIGHT,
        top=8.0,
    )
    label = LABELS.get(effects.metric, effects.metric)
    return frame.figure(
        f"forest-{effects.metric.replace('@', '-')}",
        f"{label} by site",
        f"{label} of {len(effects)} sites with 95 % intervals. {_in_words(found)}",
        frame.axes(label, "", yticks=[]),
        *(drawn_row(frame, place, row) for place, row in enumerate(rows)),
        legend=legend(
            ("bin", "a site, 95 %"), ("mean", "mean over sites"), ("new", "a new site, 95 %")
        ),
    )


def rows_figure(name: str, title: str, description: str, rows: Sequence[Row]) -> Markup:
    """Rows one below the other, each with its interval."""
    frame = Frame(
        x=limits(rows),
        y=(len(rows) - 0.4, -0.6),
        height=_ROW * len(rows) + 58.0,
        left=_LEFT,
        right=_RIGHT,
        top=8.0,
    )
    lines = (drawn_row(frame, place, row) for place, row in enumerate(rows))
    axis = frame.axes(title, "", yticks=[])
    return frame.figure(name, title, description, axis, *lines)


def drawn_row(frame: Frame, place: int, row: Row) -> Markup:
    """A line of the plot: its name, its interval with the value, and both in figures."""
    y = short(frame.at_y(place))
    base = short(frame.at_y(place) + 4)
    low, high = (min(max(end, frame.x[0]), frame.x[1]) for end in row.ends)
    x1, x2 = short(frame.at_x(low)), short(frame.at_x(high))
    is_inside = frame.x[0] <= row.value <= frame.x[1]
    cut = row.name if len(row.name) <= _LONGEST else f"{row.name[: _LONGEST - 1]}…"
    return element(
        "g",
        element("title", f"{row.name[:200]}: {row.figures}"),
        element("text", cut, x=2, y=base),
        element("line", class_=row.kind, x1=x1, x2=x2, y1=y, y2=y),
        element("circle", class_=row.kind, cx=short(frame.at_x(row.value)), cy=y, r=4)
        if is_inside
        else None,
        element("text", row.figures, x=short(frame.width - 2), y=base, text_anchor="end"),
        class_="row",
    )


def limits(rows: Sequence[Row]) -> tuple[float, float]:
    """Ends that show the mean, the new site's interval and every site that is not vague.

    >>> near, vague = Interval(0.7, 0.8), Interval(-400.0, 400.0)
    >>> sites = [Row("a", 0.75, near, "site")] * 3 + [Row("b", 15.0, vague, "site")]
    >>> [round(end, 1) for end in limits(sites)]
    [0.7, 0.8]
    """
    widths = [row.ends.high - row.ends.low for row in rows if row.kind == "site"]
    usual = median(widths) if widths else inf
    clear = [row for row in rows if row.ends.high - row.ends.low <= _VAGUE * usual]
    inner = [row.value for row in clear if isfinite(row.value)]
    inner += [end for row in rows if row.kind != "site" for end in row.ends]
    outer = [*inner, *(end for row in clear for end in row.ends)]
    if not inner:
        return 0.0, 1.0
    room = max(max(inner) - min(inner), usual, 1e-3)
    low = max(min(inner) - _ROOM * room, min(outer))
    high = min(max(inner) + _ROOM * room, max(outer))
    return low - 0.03 * room, high + 0.03 * room


def _digits(value: float) -> str:
    return f"{value:.3f}" if abs(value) < _LARGE else f"{value:.0f}"


def _in_words(found: Heterogeneity) -> str:
    if isnan(found.prediction.low):
        return "What a new site may show cannot be said."
    return "A new site may show {:.3f} to {:.3f}.".format(*found.prediction)
