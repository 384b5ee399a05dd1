"""The history: one page about a model over time, with alarms and what to do."""

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

from fedassay.checks import require_type
from fedassay.estimate import Estimate
from fedassay.files import as_path, write_whole
from fedassay.report.comparison_page import promises
from fedassay.report.markup import Markup, element
from fedassay.report.sections.groups import label
from fedassay.report.shell import whole_page
from fedassay.report.svg import Frame, legend, short
from fedassay.report.wording import section, table
from fedassay.tracking.advice import advise
from fedassay.tracking.alarms import Alarm, Watch, find_alarms
from fedassay.tracking.history import History
from fedassay.tracking.trends import trend

_TITLE = "One model over time"
_MOST_TICKS = 6


def write_history(history: History, path: str | Path, *, watch: Watch, title: str = "") -> int:
    """Write the page, whole or not at all; returns how many bytes it has."""
    return write_whole(as_path(path), history_page(history, watch=watch, title=title).encode())


def history_page(history: History, *, watch: Watch, title: str = "") -> str:
    """The page as text: the advice, every watched metric over time, all looks, what was counted."""
    require_type(history, History, "a history", "History.load reads a folder.")
    require_type(watch, Watch, "a watch", "Use Watch().")
    alarms = find_alarms(history, watch)
    figures = {metric: history.estimates(metric) for metric in watch.metrics}
    made = {
        "verdict": ("In words", _verdict(history, watch, alarms)),
        "time": ("Over time", _over_time(figures, alarms)),
        "looks": ("All looks", _all_looks(history, figures)),
        "promises": (
            "What was counted",
            section(
                "promises",
                "What was counted",
                promises(dict(history.looks), caption="Looks, and what each promised"),
            ),
        ),
    }
    return whole_page(title or _TITLE, made)


def _verdict(history: History, watch: Watch, alarms: Sequence[Alarm]) -> Markup:
    advice = advise(history, watch)
    told = [element("li", alarm.sentence()) for alarm in alarms]
    note = (
        f"While nothing changes, at most {100 * watch.false_alarms:g} % of years have any alarm, "
        f"over {len(watch.metrics)} metrics, both directions and {watch.looks_per_year} looks."
    )
    return section(
        "verdict",
        "In words",
        element("p", f"Advice: {advice}", class_="lead"),
        element("ul", *told) if told else element("p", "No alarm was raised."),
        element("p", note, class_="note"),
    )


def _over_time(figures: Mapping[str, Mapping[str, Estimate]], alarms: Sequence[Alarm]) -> Markup:
    drawn = [
        time_figure(metric, each, [alarm for alarm in alarms if alarm.metric == metric])
        for metric, each in figures.items()
    ]
    return section("time", "Over time", element("div", *drawn, class_="figures"))


def time_figure(metric: str, figures: Mapping[str, Estimate], alarms: Sequence[Alarm]) -> Markup:
    """One metric at every look with its 95 % interval; since when it seems to have changed."""
    times = list(figures)
    known = {place: each for place, each in enumerate(figures.values()) if each.is_available}
    ends = [end for each in known.values() for end in each.interval() if isfinite(end)]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    room = 0.06 * max(high - low, 1e-3)
    frame = Frame(x=(-0.6, len(times) - 0.4), y=(low - room, high + room), height=300.0, left=60.0)
    # On a phone some forty letters stand side by side.
    most = min(_MOST_TICKS, max(40 // (max(map(len, times), default=1) + 2), 1))
    step = -(-len(times) // most)
    parts = [frame.axes("", label(metric), xticks=[])]
    for alarm in alarms:
        since, at = times.index(alarm.since), times.index(alarm.at)
        edges = [since - 0.5, at + 0.5]
        parts.append(frame.band(edges, [frame.y[0]] * 2, [frame.y[1]] * 2))
    for place in range(0, len(times), step):
        x, y = short(frame.at_x(place)), short(frame.height - 24)
        parts.append(element("text", times[place], x=x, y=y, text_anchor="middle"))
    for place, each in known.items():
        parts.append(
            element(
                "g",
                element("title", f"{times[place]}: {each}"),
                frame.upright(place, *each.interval(), class_="bin"),
                frame.dot(place, each.value, class_="bin", r=3.5),
            )
        )
    name = "time-" + metric.replace("@", "-").replace(".", "-").replace("=", "-")
    words = f"{label(metric)} at {len(times)} looks with 95 % intervals; {len(alarms)} alarms."
    keys = [("bin", "a look, 95 %")] + (
        [("band", "since a change, to its alarm")] if alarms else []
    )
    return frame.figure(name, label(metric), words, *parts, legend=legend(*keys))


def _all_looks(history: History, figures: Mapping[str, Mapping[str, Estimate]]) -> Markup:
    rows = [
        element(
            "tr",
            element("th", time, scope="row"),
            *(
                element("td", str(each[time]) if each[time].is_available else "–", class_="number")
                for each in figures.values()
            ),
        )
        for time in history
    ]
    trends = [trend(history, metric) for metric in figures]
    rows.append(
        element(
            "tr",
            element("th", "trend, a year", scope="row"),
            *(
                element("td", str(each) if each.is_available else "–", class_="number")
                for each in trends
            ),
        )
    )
    head = ["look", *(label(metric) for metric in figures)]
    return section(
        "looks", "All looks", table(head, rows, caption="Every look, with 95 % intervals")
    )
