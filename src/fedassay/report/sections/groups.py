"""Groups: every group's figures, and how far they are from each other."""

from fedassay.estimate import Estimate, NotEnoughData
from fedassay.groups.gaps import WORDS, Gap, GroupComparison, compare_groups
from fedassay.report.forest_figure import Row, rows_figure
from fedassay.report.markup import Markup, element, joined, named
from fedassay.report.material import Material
from fedassay.report.wording import LABELS, section, table

_DRAWN = ("roc_auc", "oe_ratio")


def groups(material: Material) -> Markup | None:
    """A forest for each of the first figures, gaps with intervals, and rows of no group."""
    if material.assessment.survey.groups is None:
        return None
    found = compare_groups(material.assessment)
    drawn = [metric for metric in (*_DRAWN, *found.metrics[4:6]) if metric in found.metrics]
    forests = [_forest(found, metric) for metric in drawn]
    return section(
        "groups",
        "Groups",
        element("p", _sentence(found)),
        element("div", *(each for each in forests if each is not None), class_="figures"),
        _gaps(found),
        *(element("p", line, class_="note") for line in found.lines()[:1]),
        _rows(found),
    )


def label(metric: str) -> str:
    """What a metric is called, with its threshold."""
    name, _, threshold = metric.partition("@")
    return f"{LABELS.get(name, name)}{f' at {threshold}' if threshold else ''}"


def _sentence(found: GroupComparison) -> str:
    column = found.counts.groups.column
    sure = [
        f"{label(metric)} of {name}"
        for metric in found.metrics
        for name, gap in found.gaps(metric).items()
        if gap.told_apart
    ]
    if not sure:
        return (
            f"Between the groups of {column} no difference is sure, all {found.family} comparisons "
            "counted; how large one may be is in the intervals."
        )
    listed = "; ".join(sure[:6]) + ("; and others" if len(sure) > 6 else "")
    return f"Groups of {column} differ surely from {found.reference} in: {listed}."


def _forest(found: GroupComparison, metric: str) -> Markup | None:
    figures = {name: each[metric] for name, each in found.estimates.items()}
    rows = [
        Row(name, each.value, each.interval(), "site")
        for name, each in figures.items()
        if each.is_available
    ]
    if not rows:
        return None
    title = f"{label(metric)} by group"
    words = f"{label(metric)} of {len(rows)} groups, each with its own 95 % interval."
    return rows_figure(f"groups-{metric.replace('@', '-').replace('.', '-')}", title, words, rows)


def _gaps(found: GroupComparison) -> Markup:
    rows = []
    for metric in found.metrics:
        for name, gap in found.gaps(metric).items():
            asked = WORDS.get(metric.partition("@")[0], "")
            rows.append(
                element(
                    "tr",
                    element("th", label(metric), element("small", asked), scope="row"),
                    element("td", named(name)),
                    element("td", _value(gap.figure), class_="number"),
                    *(element("td", text, class_="number") for text in _gap_texts(gap)),
                )
            )
    head = ["figure", "group", "value", joined("minus ", named(found.reference)), "ratio"]
    return table(head, rows, caption="Differences and ratios, with intervals for all at once")


def _gap_texts(gap: Gap) -> tuple[str, str]:
    if not gap.difference.is_available:
        return "not enough data", "–"
    low, high = gap.interval
    sure = " *" if gap.told_apart else ""
    ratio, (least, most) = gap.ratio
    by = "–" if ratio != ratio else f"{ratio:.2f} ({least:.2f} to {most:.2f})"  # noqa: PLR0124
    return f"{gap.difference.value:+.3f} ({low:+.3f} to {high:+.3f}){sure}", by


def _rows(found: GroupComparison) -> Markup:
    rows = [
        element(
            "tr",
            element("th", named(name), scope="row"),
            element("td", _counted(each), class_="number"),
        )
        for name, each in found.counts.rows.items()
    ]
    return table(["group", "rows"], rows, caption="Rows of every group, and of none")


def _counted(each: Estimate) -> str:
    if isinstance(each, NotEnoughData):
        return "held back: too few"
    return f"{'about ' if each.noise_sd else ''}{max(each.value, 0.0):,.0f}"


def _value(each: Estimate) -> str:
    return f"{each.value:.3f}" if each.is_available else "–"
