"""The comparison: one page of assessments side by side, with the verdict in a sentence."""

from pathlib import Path

from fedassay.assessment import Assessment
from fedassay.checks import require_type
from fedassay.comparison.difference import Difference
from fedassay.comparison.side_by_side import Comparison
from fedassay.files import as_path, write_whole
from fedassay.report.forest_figure import Row, rows_figure
from fedassay.report.markup import Markup, element, joined, named
from fedassay.report.sections.groups import label
from fedassay.report.shell import whole_page
from fedassay.report.wording import section, table

_TITLE = "Classifiers compared"
_FIRST = ("roc_auc", "average_precision", "brier", "oe_ratio", "calibration_slope")
_MOST_FORESTS = 6


def write_comparison(comparison: Comparison, path: str | Path, *, title: str = "") -> int:
    """Write the page, whole or not at all; returns how many bytes it has."""
    return write_whole(as_path(path), comparison_page(comparison, title=title).encode())


def comparison_page(comparison: Comparison, *, title: str = "") -> str:
    """The page as text: in words, figures side by side, all differences, what each promises."""
    require_type(comparison, Comparison, "a comparison", "fedassay.compare makes one.")
    made = {
        "verdict": ("In words", _verdict(comparison)),
        "figures": ("Side by side", _figures(comparison)),
        "differences": ("Differences", _differences(comparison)),
        "promises": ("What was counted", _promises(comparison)),
    }
    return whole_page(title or _TITLE, made)


def _leading(comparison: Comparison) -> list[str]:
    """The metrics that people ask for first, or those that there are."""
    usual = [metric for metric in _FIRST if metric in comparison.metrics]
    at = [metric for metric in comparison.metrics if metric.startswith(("recall@0", "precision@0"))]
    return [*usual, *at][:_MOST_FORESTS] or list(comparison.metrics[:_MOST_FORESTS])


def _verdict(comparison: Comparison) -> Markup:
    metric = _leading(comparison)[0]
    sentences = [
        element("p", named_words(comparison.verdict(name, metric)), class_="lead")
        for name in comparison.others
    ]
    counts = [
        element("li", named(name), f": {_told(comparison, name)}") for name in comparison.others
    ]
    return section("verdict", "In words", *sentences, element("ul", *counts))


def named_words(words: str) -> Markup:
    """A sentence with names from outside in it."""
    return element("bdi", words)


def _told(comparison: Comparison, name: str) -> str:
    told = [
        each for each in comparison.differences(name).values()
        if each.is_available and each.told_apart(comparison.confidence)
    ]  # fmt: skip
    known = sum(each.is_available for each in comparison.differences(name).values())
    by_chance = (1.0 - comparison.confidence) * known
    return (
        f"{len(told)} of {known} figures can be told apart from the first; about "
        f"{by_chance:.0f} would be by chance alone if nothing differed."
    )


def _figures(comparison: Comparison) -> Markup:
    forests = []
    for metric in _leading(comparison):
        rows = [
            Row(name, each[metric].value, each[metric].interval(comparison.confidence), "site")
            for name, each in comparison.assessments.items()
            if each[metric].is_available
        ]
        if rows:
            words = f"{label(metric)} of {len(rows)} assessments, each with its own interval."
            place = "compared-" + metric.replace("@", "-").replace(".", "-").replace("=", "-")
            forests.append(rows_figure(place, label(metric), words, rows))
    note = (
        "Intervals that overlap may still belong to figures that differ: what counts is the "
        "interval of the difference, below."
    )
    figures = element("div", *forests, class_="figures")
    return section("figures", "Side by side", figures, element("p", note, class_="note"))


def _differences(comparison: Comparison) -> Markup:
    tables = []
    for name in comparison.others:
        rows = [
            _row(metric, each, comparison.confidence)
            for metric, each in comparison.differences(name).items()
        ]
        tables += [
            element("h3", named(name), " against ", named(comparison.first)),
            table(
                ["figure", "first", "this one", "difference", f"{100 * comparison.confidence:g} %"],
                rows,
                caption=f"{name[:80]} less {comparison.first[:80]}",
            ),
        ]
    return section(
        "differences",
        "Differences",
        *tables,
        element("p", comparison.footnote, class_="note"),
    )


def _row(metric: str, difference: Difference, confidence: float) -> Markup:
    def cell(text: str) -> Markup:
        return element("td", text, class_="number")

    values = [
        cell(f"{each.value:.4f}" if each.is_available else "–")
        for each in (difference.subtrahend, difference.minuend)
    ]
    if difference.is_available:
        low, high = difference.interval(confidence)
        star = " *" if difference.told_apart(confidence) else ""
        found = [cell(f"{difference.value:+.4f}{star}"), cell(f"{low:+.4f} to {high:+.4f}")]
    else:
        found = [cell("–"), cell("not enough data")]
    return element("tr", element("th", label(metric), scope="row"), *values, *found)


def _promises(comparison: Comparison) -> Markup:
    return section(
        "promises",
        "What was counted",
        promises(dict(comparison.assessments), caption="Assessments, and what each promised"),
    )


def promises(assessments: dict[str, Assessment], *, caption: str) -> Markup:
    """Every assessment with its privacy model, epsilon, reports, rows and fingerprint."""
    rows = []
    for name, each in assessments.items():
        epsilon = each.survey.total_epsilon
        digest = each.survey.model_digest
        cells = (
            each.survey.privacy.value,
            "–" if epsilon is None else f"{float(epsilon):g}",
            f"{each.reports:,}",
            f"{each.histogram().total:,.0f}",
            each.survey.fingerprint.hex()[:12],
            "–" if digest is None else digest[:12],
        )
        rows.append(
            element(
                "tr",
                element("th", named(name), scope="row"),
                *(element("td", text, class_="number") for text in cells),
            )
        )
    head = ["assessment", "privacy", "epsilon", "reports", "rows", "survey", "model"]
    sentences = dict.fromkeys(each.guarantee.sentence() for each in assessments.values())
    return joined(
        table(head, rows, caption=caption),
        *(element("p", sentence, class_="note") for sentence in sentences),
    )
