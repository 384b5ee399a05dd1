"""A figure's page in Markdown, from its file alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedassay.reproduction.figures import Figure
from fedassay.reproduction.results import Point


def page(figure: Figure, content: Mapping[str, Any], points: Sequence[Point]) -> str:
    """Title, settings, picture, the tables' origin, and every mean with its interval."""
    repeated = max((len(point.values) for point in points), default=0)
    size = "a quick run, for a first look" if content["quick"] else "the paper's settings"
    sections = [
        f"# {figure.title}",
        f"The paper's `{figure.label}`, by `fedassay reproduce {figure.name}`: {size}, {repeated} "
        f"repetitions. {figure.note}".strip(),
        f"![{figure.title}]({figure.name}.png)",
        f"Error bars: {figure.bars}. Tables: mean ± half of its 95 % interval over repetitions.",
        data_table(content["data"]),
        *_slopes(figure, points),
        *_tables(figure, points),
        f"Sources {content['sources'][:12]}, "
        f"{content['seconds']:.0f} s of measuring; seeds stand in `{figure.name}.json`.",
    ]
    return "\n\n".join(sections) + "\n"


def markdown_table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Rows under a header; all columns but the first are numbers.

    >>> print(markdown_table(["B", "error"], [["5", "0.1"]]))
    | B | error |
    | --- | ---: |
    | 5 | 0.1 |
    """
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *body))


def figure_text(point: Point) -> str:
    """The mean, and half of its interval where there is one.

    >>> figure_text(Point(data="", panel="", curve="", x=1.0, values=(0.012,), spread=0.0))
    '0.012'
    """
    if point.half_width == 0.0:
        return f"{point.mean:.2g}"
    return f"{point.mean:.2g} ± {point.half_width:.1g}"


def data_table(data: Sequence[Mapping[str, Any]]) -> str:
    """What the tables are: origin, size, share of positives, ROC AUC, calibration error."""
    body = [
        [
            each["name"],
            each["about"],
            f"{each['rows']:,}",
            f"{each['positive_rate']:.3f}",
            f"{each['roc_auc']:.4f}",
            f"{each['ece']:.4f}",
        ]
        for each in data
    ]
    header = ["table", "what it is", "scored rows", "positives", "ROC AUC", "ECE, 20 bins"]
    return markdown_table(header, body)


def _tables(figure: Figure, points: Sequence[Point]) -> list[str]:
    """One table for every panel and table of rows: x down, curves across."""
    sections = []
    for panel, data in dict.fromkeys((point.panel, point.data) for point in points):
        here = [point for point in points if (point.panel, point.data) == (panel, data)]
        curves = list(dict.fromkeys(point.curve for point in here))
        at = {(point.curve, point.x): figure_text(point) for point in here}
        body = [
            [
                f"{x:,.4g}" if x < 1000 else f"{x:,.0f}",
                *(at.get((curve, x), "–") for curve in curves),
            ]
            for x in sorted({point.x for point in here})
        ]
        sections.append(f"## {data}: {panel}\n\n{markdown_table([figure.x, *curves], body)}")
    return sections


def slope(points: Sequence[Point]) -> float | None:
    """The log-log slope of a curve by least squares, where it has two points above zero.

    >>> from fedassay.reproduction.results import points_of
    >>> slope(points_of("", "", {("a", 1.0): [1.0], ("a", 9.0): [1 / 9]}))
    -1.0
    """
    x = np.array([point.x for point in points if point.mean > 0.0])
    y = np.array([point.mean for point in points if point.mean > 0.0])
    if len(set(x)) < 2:
        return None
    return round(float(np.polyfit(np.log(x), np.log(y), 1)[0]), 12)


def _slopes(figure: Figure, points: Sequence[Point]) -> list[str]:
    """Log-log slopes beside those of theory, where there are any."""
    if not figure.slopes:
        return []
    tables = list(dict.fromkeys(point.data for point in points))
    body = []
    for panel, curves in figure.slopes.items():
        for curve, theory in curves.items():
            found = [
                slope([p for p in points if (p.panel, p.curve, p.data) == (panel, curve, data)])
                for data in tables
            ]
            shown = ["–" if each is None else f"{each:.2f}" for each in found]
            body.append([f"{panel}: {curve}", *shown, f"{theory:.2f}"])
    return [f"## Slopes\n\n{markdown_table(['log-log slope', *tables, 'theory'], body)}"]
