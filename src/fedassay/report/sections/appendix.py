"""Appendix: the survey, the promise, what never left, and texts to take away."""

from collections.abc import Iterator

from fedassay.histogram import ScoreHistogram
from fedassay.ledger import Charge
from fedassay.mechanisms.plain_words import plain_words
from fedassay.report.markup import Content, Markup, element, named
from fedassay.report.material import Material
from fedassay.report.sections.tripod import checklist
from fedassay.report.wording import VERSION, pairs, section, table, value_text

_SMALL = 10
CITATION = (
    "G. Cormode and I. L. Markov, Federated Calibration and Evaluation of Binary Classifiers, "
    "arXiv:2210.12526, 2022."
)


def appendix(material: Material) -> Markup:
    """What an ethics board, a journal or a colleague asks for next."""
    return section(
        "appendix",
        "Appendix",
        element("h3", "Survey"),
        pairs(_survey(material)),
        element("h3", "What the promise means"),
        element(
            "ul", *(element("li", each) for each in plain_words(material.assessment.guarantee))
        ),
        element("p", _left(material)),
        *_ledger(material),
        element("h3", "Methods, to paste"),
        element("blockquote", element("p", methods(material))),
        element("h3", "Model card"),
        pairs(_card(material)),
        element("h3", "Checklists"),
        checklist(material),
        element("h3", "How to cite"),
        element("p", f"fedassay {VERSION}. The method: {CITATION}"),
    )


def _survey(material: Material) -> dict[str, Content]:
    survey, first = material.assessment.survey, material.assessment.first
    promise = material.assessment.guarantee
    facts: dict[str, Content] = {
        "Fingerprint": element("code", survey.fingerprint.hex()),
        "Fingerprint of the first step": None
        if first is None
        else element("code", first.survey.fingerprint.hex()),
        "Privacy model": survey.privacy.value,
        "Epsilon": "none: sums are exact" if promise.in_all is None else promise.strength,
        "For": str(survey.unit),
        "Fewest reports": f"{survey.minimum_reports:,}",
        "Colluders withstood": f"{survey.colluders:,}",
        "Cells": f"{survey.grid.cells:,} in {survey.hierarchy.levels:,} level(s)",
        "Smallest cell": smallest_cell(material.histogram, survey.smallest_cell),
    }
    return {term: value for term, value in facts.items() if value is not None}


def _ledger(material: Material) -> list[Markup]:
    """What a ledger says was charged for this assessment's surveys; nothing where none is given."""
    if not material.ledger:
        return []
    assessment = material.assessment
    both = [assessment] if assessment.first is None else [assessment.first, assessment]
    surveys = {each.survey.fingerprint.hex() for each in both}
    rows = [
        element(
            "tr",
            element("th", f"{entry.number:,}", scope="row"),
            element("td", f"{entry.stamp.time:%Y-%m-%d %H:%M} UTC", class_="number"),
            element("td", named(entry.content.part.data)),
            element("td", named(entry.stamp.who)),
            element("td", _spent(entry.content), class_="number"),
            element("td", entry.content.status.value),
        )
        for entry in material.ledger
        if isinstance(entry.content, Charge) and entry.content.survey in surveys
    ]
    heading = element("h3", "Ledger")
    if not rows:
        return [heading, element("p", "The ledger that was given has no entry about this survey.")]
    head = ["entry", "time", "data", "who", "epsilon", "state"]
    return [heading, table(head, rows, caption="What was charged for this survey")]


def _spent(charge: Charge) -> str:
    return "exact sum" if charge.epsilon is None else str(charge.epsilon)


def smallest_cell(histogram: ScoreHistogram, wanted: int = 0) -> str:
    """How small the counts are that can be read from the assessment.

    >>> smallest_cell(ScoreHistogram.from_scores([0, 0, 1], [0.2, 0.2, 0.7]))
    'counts are exact; 2 of them are from 1 to 9, the smallest 1'
    """
    if not histogram.noise.is_zero:
        return "counts carry privacy noise, so that none is a number of people"
    if wanted:
        return f"counts are exact, and published in cells of {wanted:,} rows of each label or more"
    filled = histogram.counts[histogram.counts > 0.0]
    small = int((filled < _SMALL).sum())
    if not small:
        return f"counts are exact; none is from 1 to {_SMALL - 1}"
    return (
        f"counts are exact; {small:,} of them are from 1 to {_SMALL - 1}, the smallest "
        f"{filled.min():,.0f}"
    )


def _left(material: Material) -> str:
    survey = material.assessment.survey
    if survey.is_local:
        return (
            "What left a client: one randomised report for each row that it counted. What never "
            "left: scores, labels, rows, and anything from which one of them follows for certain."
        )
    how = (
        "with noise of its own" if survey.reports_may_be_seen else "to be added up with all others"
    )
    return (
        f"What left a client: counts of scores by cell and label, {how}. What never left: rows, "
        "single scores and labels, and identities."
    )


def methods(material: Material) -> str:
    """A paragraph for the methods section of a paper."""
    return " ".join(_methods(material))


def _methods(material: Material) -> Iterator[str]:
    assessment, survey = material.assessment, material.assessment.survey
    yield (
        f"Performance was assessed on {material.rows} rows without collecting them. Each "
        f"client counted its scores by outcome in {survey.grid.cells:,} cells, and "
        f"{assessment.reports:,} reports were added up (fedassay {VERSION}; Cormode and "
        "Markov, 2022)."
    )
    if assessment.steps > 1:
        yield "A first survey found where scores lie, and a second one asked there."
    yield assessment.guarantee.sentence()
    yield (
        "Estimates are read from the summed histogram; 95 % intervals join sampling, privacy noise "
        "and the width of cells by the delta method, score intervals for proportions, and "
        "log-odds for the area under the ROC curve."
    )


def _card(material: Material) -> dict[str, Content]:
    details, overall = material.details, material.overall
    return {
        "Model": named(details.model) if details.model else "open",
        "Intended use": "open",
        "Outcome": named(details.outcome) if details.outcome else "open",
        "Evaluated on": f"{material.rows} rows" + (f", {details.period}" if details.period else ""),
        "ROC AUC": value_text("roc_auc", overall["roc_auc"]),
        "Observed / expected": value_text("oe_ratio", overall["oe_ratio"]),
        "Calibration slope": value_text("calibration_slope", overall["calibration_slope"]),
        "Out of scope": "open",
        "Groups that were looked at": "none in this assessment",
    }
