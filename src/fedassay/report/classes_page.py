"""The page about more than two classes: figures of all and of each, who is taken for whom."""

from pathlib import Path

from fedassay.calibration.calibration_error import ece
from fedassay.checks import require_type
from fedassay.classes.confusion_matrix import ConfusionMatrix
from fedassay.classes.result import ClassAssessment
from fedassay.classes.survey_file import class_fingerprint
from fedassay.estimate import Estimate, NotEnoughData
from fedassay.files import as_path, write_whole
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.delta_method import why_one_class
from fedassay.metrics.scores import prevalence
from fedassay.report.calibration_figures import reliability_figure
from fedassay.report.forest_figure import MOST_ROWS, Row, rows_figure
from fedassay.report.markup import Content, Markup, element, joined, named
from fedassay.report.material import ReportDetails
from fedassay.report.shell import whole_page
from fedassay.report.survey_facts import promise_section
from fedassay.report.wording import HEAD, interval_text, pairs, section, table, value_text

_TITLE = "Assessment of a classifier of several classes"
_OVERALL = {
    "accuracy": ("Accuracy", "how often the most probable class is the right one"),
    "roc_auc/macro": ("ROC AUC, macro", "of a class against the rest, all classes alike"),
    "roc_auc/weighted": ("ROC AUC, weighted", "the same, by how common each class is"),
    "roc_auc/micro": ("ROC AUC, micro", "of all pairs of a row and a class together"),
    "average_precision/macro": ("Average precision, macro", "all classes alike"),
    "log_loss": ("Log loss", "minus the logarithm of the right class's probability, on average"),
    "brier": ("Brier score", "squared distances summed over classes, from 0 to 2"),
    "ece/classwise": ("ECE, classwise", "mean over classes of distances of score and rate"),
    "ece/top": ("ECE of the top label", "of the most probable class's probability"),
}
MOST_SQUARES = 20
"""Classes whose confusion matrix is drawn whole; of more the most frequent mistakes are listed."""
_MOST_MISTAKES = 40
_MOST_CURVES = 8
_MOST_CLASSES = 200


def write_classes_report(
    assessment: ClassAssessment, path: str | Path, *, details: ReportDetails | None = None
) -> int:
    """Write the page, whole or not at all; returns how many bytes it has."""
    return write_whole(as_path(path), classes_page(assessment, details=details).encode())


def classes_page(assessment: ClassAssessment, *, details: ReportDetails | None = None) -> str:
    """The page as text; raises `TooFewReports` below the minimum of any part."""
    require_type(assessment, ClassAssessment, "what is reported on", "fedassay.load reads files.")
    told = ReportDetails() if details is None else details
    require_type(told, ReportDetails, "a report's details", "Write ReportDetails(model=...).")
    survey = assessment.survey
    made = {
        "summary": ("In words", _summary(assessment, told)),
        "classes": ("Each class", _each_class(assessment)),
        "confusion": ("Confusion", _confusion(assessment)),
        "calibration": ("Calibration", _calibration(assessment)),
        "promise": (
            "What was counted",
            promise_section(
                survey.parts[0].survey,
                assessment.guarantee,
                reports=assessment.reports,
                fingerprint=class_fingerprint(survey),
                Parts=f"{len(survey.parts):,}, of which each client answers "
                f"{'one' if survey.draws_one_part else 'all'} (design {survey.design.value})",
            ),
        ),
    }
    return whole_page(told.title or _TITLE, made)


def _summary(assessment: ClassAssessment, details: ReportDetails) -> Markup:
    found = assessment.estimates()
    names = assessment.survey.names
    listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    facts: dict[str, Content] = {
        "Model": named(details.model) if details.model else None,
        "Outcome": named(details.outcome) if details.outcome else None,
        "Rows of": named(details.population) if details.population else None,
        "Period": named(details.period) if details.period else None,
        "Clients invited": None if details.invited is None else f"{details.invited:,}",
        "Classes": joined(f"{len(names):,}: ", named(listed)),
        "Reports counted": f"{assessment.reports:,}",
    }
    right = found["accuracy"]
    story = (
        f"The most probable class is the right one for {100 * right.value:.1f} % of rows "
        f"({_percents(right)})."
        if right.is_available
        else "How often the most probable class is right cannot be said."
    )
    rows = [_figure_row(*_OVERALL[name], found[name]) for name in _OVERALL]
    missing = {
        each.reason for name in _OVERALL if isinstance(each := found[name], NotEnoughData)
    }  # fmt: skip
    return section(
        "summary",
        "In words",
        element("p", story, class_="lead"),
        pairs({term: value for term, value in facts.items() if value is not None}),
        table(HEAD, rows, caption="Figures of all classes"),
        *(element("p", reason, class_="missing") for reason in sorted(missing)),
    )


def _percents(each: Estimate) -> str:
    low, high = each.interval()
    return f"{100 * low:.1f} to {100 * high:.1f}"


def _figure_row(called: str, meaning: str, each: Estimate) -> Markup:
    return element(
        "tr",
        element("th", called, element("small", meaning), scope="row"),
        element("td", value_text("", each), class_="number"),
        element("td", interval_text("", each), class_="number"),
    )


def _each_class(assessment: ClassAssessment) -> Markup:
    found, names = assessment.estimates(), assessment.survey.names[:_MOST_CLASSES]
    rows = []
    for number, name in enumerate(names):
        histogram = assessment.tables.histograms[number]
        ends = ("–", "–")
        if isinstance(histogram, ScoreHistogram):
            ends = (_text(prevalence(histogram)), _text(ece(histogram)))
        areas = (_text(found[f"{metric}/{name}"]) for metric in ("roc_auc", "average_precision"))
        cells = [ends[0], *areas, ends[1]]
        rows.append(
            element(
                "tr",
                element("th", named(name), scope="row"),
                *(element("td", text, class_="number") for text in cells),
            )
        )
    drawn = [
        Row(name, each.value, each.interval(), "site")
        for name in names[:MOST_ROWS]
        if (each := found[f"roc_auc/{name}"]).is_available
    ]
    figure = None
    if drawn:
        words = f"ROC AUC of {len(drawn)} classes, each against the rest, with 95 % intervals."
        figure = rows_figure("classes-roc_auc", "ROC AUC by class", words, drawn)
    head = ["class", "share of rows", "ROC AUC", "average precision", "ECE"]
    left = len(assessment.survey.names) - len(names)
    missing = {each.reason for each in found.values() if isinstance(each, NotEnoughData)}
    return section(
        "classes",
        "Each class",
        element("div", figure, class_="figures"),
        table(head, rows, caption="Each class against the rest, with 95 % intervals"),
        element("p", f"{left:,} more classes are in the assessment.", class_="note")
        if left
        else None,
        *(element("p", reason, class_="missing") for reason in sorted(missing)[:8]),
    )


def _text(each: Estimate) -> str:
    if not each.is_available:
        return interval_text("", each)
    return f"{value_text('', each)} ({interval_text('', each)})"


def _confusion(assessment: ClassAssessment) -> Markup:
    found = assessment.confusion
    if isinstance(found, NotEnoughData):
        shown: Markup = element("p", f"There is no matrix: {found.reason}", class_="missing")
    elif len(found.names) <= MOST_SQUARES:
        shown = _squares(found)
    else:
        shown = _mistakes(found)
    note = (
        "Shares of all rows, in percent: the true class by the most probable one. With privacy "
        "noise a share may lie below zero; a dash is a count too small to publish."
    )
    return section("confusion", "Confusion", shown, element("p", note, class_="note"))


def _squares(found: ConfusionMatrix) -> Markup:
    largest = max((s.value for row in found.shares for s in row if s.is_available), default=1.0)
    rows = [
        element(
            "tr",
            element("th", named(name), scope="row"),
            *(_square(share, largest) for share in row),
        )
        for name, row in zip(found.names, found.shares, strict=True)
    ]
    head = ["true class", *(named(name) for name in found.names)]
    return table(head, rows, caption="The true class by the most probable one, in percent")


def _square(share: Estimate, largest: float) -> Markup:
    if not share.is_available:
        return element("td", "–", class_="number")
    heat = min(4, max(0, int(5.0 * share.value / max(largest, 1e-12))))
    return element(
        "td",
        f"{100 * share.value:.2f}",
        class_=f"number heat{heat}",
        title=f"95 %: {_percents(share)}",
    )


def _mistakes(found: ConfusionMatrix) -> Markup:
    """The most frequent mistakes, where a matrix would not fit a page."""
    wrong = [
        (share, true, taken)
        for true, row in zip(found.names, found.shares, strict=True)
        for taken, share in zip(found.names, row, strict=True)
        if true != taken and share.is_available
    ]
    wrong.sort(key=lambda each: -each[0].value)
    rows = [
        element(
            "tr",
            element("th", named(true), scope="row"),
            element("td", named(taken)),
            element("td", f"{100 * share.value:.2f} ({_percents(share)})", class_="number"),
        )
        for share, true, taken in wrong[:_MOST_MISTAKES]
    ]
    return table(
        ["true class", "taken for", "percent of all rows"],
        rows,
        caption=f"The {len(rows)} most frequent mistakes",
    )


def _calibration(assessment: ClassAssessment) -> Markup:
    tables = assessment.tables
    drawn = {"the most probable class": tables.top}
    drawn |= dict(zip(tables.names[:_MOST_CURVES], tables.histograms, strict=False))
    figures = [
        reliability_figure(each, f"reliability-{place}", f"Reliability of {name[:80]}")
        for place, (name, each) in enumerate(drawn.items())
        if isinstance(each, ScoreHistogram) and why_one_class(each) is None
    ]
    note = (
        "Dots are means of bins with about as many rows each. A class above the diagonal occurs "
        "more often than its probability says. fedassay simulate --scores --calibrate tries "
        "temperature, vector scaling and binning on rows at hand."
    )
    return section(
        "calibration",
        "Calibration",
        element("div", *figures, class_="figures"),
        element("p", note, class_="note"),
    )
