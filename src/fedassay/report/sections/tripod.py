"""Reporting checklists: what the tool knows is filled in, what it cannot know is marked open."""

from fedassay.report.markup import Markup, element
from fedassay.report.material import Material
from fedassay.report.wording import table

_OPEN = "open: for you to write"
_CLUSTERS = "intervals are for new rows of these clients, not for a new one"


def checklist(material: Material) -> Markup:
    """Items of TRIPOD+AI (2024) and TRIPOD-Cluster (2023) that concern a validation."""
    rows = [
        element(
            "tr",
            element("th", item, scope="row"),
            element("td", topic),
            element("td", text or _OPEN, class_=None if text else "open"),
        )
        for item, topic, text in items(material)
    ]
    head = ["item", "what is asked for", "in this report"]
    return table(head, rows, caption="TRIPOD+AI and TRIPOD-Cluster items of a validation")


def items(material: Material) -> list[tuple[str, str, str]]:
    """Item, topic, and what is known of it; an empty text is open."""
    assessment, details = material.assessment, material.details
    rows, events = f"{material.rows} rows", f"{material.events} events"
    return [
        ("TRIPOD+AI 1", "Title: validation, model, population, outcome", details.title),
        ("TRIPOD+AI 3", "Background: why this model, for whom", ""),
        ("TRIPOD+AI 5a", "Source of data", ""),
        ("TRIPOD+AI 5b", "Dates of the data", details.period),
        ("TRIPOD+AI 6a", "Setting, number and places of centres", details.population),
        ("TRIPOD+AI 6b", "Eligibility", ""),
        ("TRIPOD+AI 8a", "Outcome and when it was assessed", details.outcome),
        ("TRIPOD+AI 10", "Sample size", f"{rows}, {events}; fedassay plan has the arithmetic"),
        ("TRIPOD+AI 11", "Missing data", ""),
        ("TRIPOD+AI 12e", "Measures of performance", "Discrimination, Calibration, At a threshold"),
        ("TRIPOD+AI 12f", "Updating of the model", _updating(material)),
        ("TRIPOD+AI 13", "Class imbalance", "none corrected; the prevalence stands beside curves"),
        ("TRIPOD+AI 14", "Fairness between groups", ""),
        ("TRIPOD+AI 17", "Ethical approval", ""),
        ("TRIPOD+AI 18e", "Availability of data", "rows never left their clients; sums: this page"),
        ("TRIPOD+AI 18f", "Availability of code", _code(material)),
        ("TRIPOD+AI 20a", "Flow of participants", "Flow"),
        ("TRIPOD+AI 23a", "Performance with intervals", "In words, and all sections after it"),
        ("TRIPOD+AI 26", "Limitations", ""),
        ("TRIPOD+AI 23b", "Differences in performance between clusters", ""),
        ("TRIPOD-Cluster", "How clusters were identified and chosen", ""),
        ("TRIPOD-Cluster", "Clusters and participants", f"{assessment.reports:,} reports, {rows}"),
        ("TRIPOD-Cluster", "How clustering was dealt with in the analysis", _CLUSTERS),
    ]


def _updating(material: Material) -> str:
    if material.calibrator is None:
        return ""
    return f"recalibrated by {material.calibrator.method.value}; see Calibration"


def _code(material: Material) -> str:
    digest = material.assessment.survey.model_digest
    return "fedassay, Apache-2.0" + (f"; the model's SHA-256 is {digest[:12]}…" if digest else "")
