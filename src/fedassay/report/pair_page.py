"""The page about two models on the same rows: what differs, and for whom."""

from collections.abc import Iterator
from pathlib import Path

from fedassay.checks import require_type
from fedassay.estimate import Interval, normal_quantile
from fedassay.files import as_path, write_whole
from fedassay.metrics.delta_method import why_one_class
from fedassay.paired.assessment import PairedAssessment, model_metric
from fedassay.paired.difference import PairedDifference
from fedassay.paired.reclassification import Reclassification
from fedassay.report.curve_figures import roc_pair_figure
from fedassay.report.forest_figure import Row, rows_figure
from fedassay.report.markup import Content, Markup, element, joined, named
from fedassay.report.material import ReportDetails
from fedassay.report.sections.groups import label
from fedassay.report.shell import whole_page
from fedassay.report.survey_facts import promise_section
from fedassay.report.wording import digits_of, interval_text, pairs, section, table, value_text

_TITLE = "Two models on the same rows"
_DRAWN = ("roc_auc", "brier", "precision", "recall", "specificity", "accuracy", "net_benefit")
_COVERS = (
    "Both models score the same rows, so that what both find hard alike cancels: every interval of "
    "a difference is the paired 95 % interval, with privacy noise and the width of cells in it. A "
    "difference with a star is told apart from none by that interval."
)
_COVERS_DRAWN = (
    "Each row answered for one of the models, drawn by chance, which under local noise tells more "
    "than asking for both at once: every interval of a difference is the 95 % interval of "
    "different rows, with privacy noise and the width of cells in it. A difference with a star is "
    "told apart from none by that interval."
)


def write_pair_report(
    assessment: PairedAssessment, path: str | Path, *, details: ReportDetails | None = None
) -> int:
    """Write the page, whole or not at all; returns how many bytes it has."""
    return write_whole(as_path(path), pair_page(assessment, details=details).encode())


def pair_page(assessment: PairedAssessment, *, details: ReportDetails | None = None) -> str:
    """The page as text; raises `TooFewReports` below the survey's minimum."""
    require_type(assessment, PairedAssessment, "what is reported on", "fedassay.load reads files.")
    told = ReportDetails() if details is None else details
    require_type(told, ReportDetails, "a report's details", "Write ReportDetails(model=...).")
    made = {
        "summary": ("In words", _summary(assessment, told)),
        "differences": ("Differences", _differences(assessment)),
        "discrimination": ("Discrimination", _discrimination(assessment)),
        "reclassification": ("Reclassification", _reclassification(assessment)),
        "models": ("Either model", _either(assessment)),
        "promise": (
            "What was counted",
            promise_section(assessment.survey, assessment.guarantee, reports=assessment.reports),
        ),
    }
    return whole_page(told.title or _TITLE, made)


def verdict(assessment: PairedAssessment, metric: str = "roc_auc") -> str:
    """Which model is ahead in a metric, or that they cannot be told apart."""
    first, second = assessment.names
    difference = assessment.differences()[metric]
    if not difference.is_available:
        return f"{label(metric)} cannot be compared: {difference.reason}"
    size = difference_text(difference)
    if not difference.told_apart():
        return f"{first} and {second} cannot be told apart in {label(metric)}: {size}."
    side = "above" if difference.value > 0.0 else "below"
    return f"{first} is {side} {second} in {label(metric)}: {size}, p {p_text(difference)}."


def difference_text(difference: PairedDifference) -> str:
    """A difference with its interval, in as many digits as that deserves.

    >>> from fedassay.estimate import Estimate
    >>> difference_text(PairedDifference(Estimate(0.80), Estimate(0.79), sampling_sd=0.004))
    '+0.010 (+0.002 to +0.018)'
    """
    low, high = difference.interval()
    digits = digits_of(low, high)
    return f"{difference.value:+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})"


def p_text(difference: PairedDifference) -> str:
    """A p-value as journals write it.

    >>> from fedassay.estimate import Estimate
    >>> p_text(PairedDifference(Estimate(0.8), Estimate(0.7), sampling_sd=0.004))
    '< 0.001'
    """
    return f"= {difference.p_value:.3f}" if difference.p_value >= 1e-3 else "< 0.001"


def _summary(assessment: PairedAssessment, details: ReportDetails) -> Markup:
    first, second = assessment.names
    pair = assessment.pair()
    is_noisy = not (pair.first.noise.is_zero or assessment.survey.total_is_known)
    facts: dict[str, Content] = {
        "Models": joined(named(first), " and ", named(second)),
        "Model": named(details.model) if details.model else None,
        "Outcome": named(details.outcome) if details.outcome else None,
        "Rows of": named(details.population) if details.population else None,
        "Period": named(details.period) if details.period else None,
        "Clients invited": None if details.invited is None else f"{details.invited:,}",
        "Reports counted": f"{assessment.reports:,}",
        "Rows": f"{'about ' if is_noisy else ''}{pair.first.total:,.0f}, with two scores each",
    }
    sentences = [verdict(assessment), *(_at(assessment, each) for each in assessment.thresholds)]
    return section(
        "summary",
        "In words",
        element("p", element("bdi", sentences[0]), class_="lead"),
        element("ul", *(element("li", element("bdi", each)) for each in sentences[1:])),
        pairs({term: value for term, value in facts.items() if value is not None}),
        element("p", _COVERS_DRAWN if assessment.pair().is_drawn else _COVERS),
    )


def _at(assessment: PairedAssessment, threshold: float) -> str:
    return verdict(assessment, f"net_benefit@{threshold!r}")


def _differences(assessment: PairedAssessment) -> Markup:
    first, second = assessment.names
    found = assessment.differences()
    rows = [_difference_row(metric, each) for metric, each in found.items()]
    drawn = [
        Row(_short(metric), each.value, each.interval(), "site")
        for metric, each in found.items()
        if metric.partition("@")[0] in _DRAWN and each.is_available
    ]
    figure = None
    if drawn:
        words = f"{first[:80]} minus {second[:80]} in {len(drawn)} figures, with intervals."
        figure = rows_figure("paired-differences", "Differences", words, drawn)
    head = ["figure", named(first), named(second), "difference (95 %)", "p"]
    reasons = {each.reason for each in found.values() if not each.is_available}
    return section(
        "differences",
        "Differences",
        element("div", figure, class_="figures"),
        table(head, rows, caption="The first model's figures minus the second's"),
        *(element("p", f"Missing: {reason}", class_="missing") for reason in sorted(reasons)),
    )


def _short(metric: str) -> str:
    name, _, threshold = metric.partition("@")
    return f"{name.replace('_', ' ')}{f' {threshold}' if threshold else ''}"


def _difference_row(metric: str, each: PairedDifference) -> Markup:
    name = metric.partition("@")[0]
    values = [value_text(name, estimate) for estimate in (each.first, each.second)]
    if each.is_available:
        star = " *" if each.told_apart() else ""
        told = [f"{difference_text(each)}{star}", p_text(each).removeprefix("= ")]
    else:
        told = ["not enough data", "–"]
    cells = [element("td", text, class_="number") for text in (*values, *told)]
    return element("tr", element("th", label(metric), scope="row"), *cells)


def _discrimination(assessment: PairedAssessment) -> Markup:
    histograms = {name: assessment.histogram(name) for name in assessment.names}
    lacking = [why_one_class(each) for each in histograms.values()]
    missing = next((each for each in lacking if each is not None), None)
    shown: Markup
    if missing is None:
        shown = element("div", roc_pair_figure(histograms), class_="figures")
    else:
        shown = element("p", f"There are no curves: {missing.reason}", class_="missing")
    return section("discrimination", "Discrimination", shown)


def _reclassification(assessment: PairedAssessment) -> Markup:
    parts: list[Markup] = []
    for threshold in assessment.thresholds:
        found = assessment.reclassification(threshold)
        if found.counts is None:
            parts.append(element("p", f"At {threshold:g}: {found.reason}", class_="missing"))
            continue
        first, second = assessment.names
        head = ["rows", "neither", joined(named(second), " only"), joined(named(first), " only"),
                "both"]  # fmt: skip
        rows = [
            element(
                "tr",
                element("th", called, scope="row"),
                *(element("td", text, class_="number") for text in texts),
            )
            for called, texts in zip(("negatives", "positives"), _counts(found), strict=True)
        ]
        parts.append(table(head, rows, caption=f"Above {threshold:g} by which model"))
    note = (
        "Rows in the middle are those that change sides when one model replaces the other. Counts "
        "with privacy noise have its 95 % interval, and may lie below zero."
    )
    return section(
        "reclassification", "Reclassification", *parts, element("p", note, class_="note")
    )


def _counts(found: Reclassification) -> Iterator[list[str]]:
    """Both labels' counts, each with its interval where there is noise."""
    if found.counts is None or found.noise_sd is None:
        return
    for counts, sds in zip(found.counts, found.noise_sd, strict=True):
        yield [_count(count, sd) for count, sd in zip(counts.ravel(), sds.ravel(), strict=True)]


def _count(count: float, sd: float) -> str:
    if sd == 0.0:
        return f"{count:,.0f}"
    half = normal_quantile(0.975) * sd
    ends = Interval(count - half, count + half)
    return f"{count:,.0f} ({ends.low:,.0f} to {ends.high:,.0f})"


def _either(assessment: PairedAssessment) -> Markup:
    found = assessment.estimates()
    first, second = assessment.names
    names = [
        name.replace(f"[{first}]", "", 1)
        for name in found
        if name.partition("@")[0].endswith(f"[{first}]")
    ]
    rows = []
    for metric in names:
        both = [found[model_metric(metric, name)] for name in assessment.names]
        base = metric.partition("@")[0]
        texts = [f"{value_text(base, each)} ({interval_text(base, each)})" for each in both]
        cells = [element("td", text, class_="number") for text in texts]
        rows.append(element("tr", element("th", label(metric), scope="row"), *cells))
    return section(
        "models",
        "Either model",
        table(
            ["figure", named(first), named(second)],
            rows,
            caption="Each model by itself, with 95 % intervals of its own",
        ),
    )
