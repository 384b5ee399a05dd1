"""In words: what was assessed, on whose rows, under which promise, and what came out."""

from fedassay.metrics import prevalence
from fedassay.report.markup import Content, Markup, element, joined, named
from fedassay.report.material import Material
from fedassay.report.wording import (
    estimates_table,
    interval_text,
    pairs,
    reasons,
    section,
    value_text,
)

COVERS = (
    "Every interval is a 95 % interval for new rows of these same clients: it covers the chance in "
    "drawing rows, the privacy noise, and what the survey's cells hide. It does not say what a "
    "client that took no part would see."
)
_HEADLINES = ("roc_auc", "average_precision", "oe_ratio", "calibration_slope", "ici", "brier")
_AT_THRESHOLD = ("recall", "precision", "net_benefit")


def summary(material: Material) -> Markup:
    """Which model, which outcome, how much data, whom one must trust, and the headline figures."""
    shown = {name: material.overall[name] for name in _HEADLINES}
    at = {name: material.at_start(name) for name in _AT_THRESHOLD}
    return section(
        "summary",
        "In words",
        element("p", _story(material), class_="lead"),
        pairs(_facts(material)),
        estimates_table(shown, caption="Headline figures"),
        estimates_table(at, caption=f"At threshold {material.start:g}"),
        reasons({**shown, **at}),
        element("p", COVERS),
    )


def _story(material: Material) -> Markup:
    """The result as somebody would tell it."""
    histogram, area = material.histogram, material.overall["roc_auc"]
    share = prevalence(histogram)
    details = material.details
    begin = joined("The model ", named(details.model)) if details.model else "The model"
    aim = joined(" (outcome: ", named(details.outcome), ")") if details.outcome else ""
    told: Content = (
        f"told a positive from a negative in {100 * area.value:.1f} % of all pairs"
        if area.is_available
        else "could not be told to rank positives above negatives, for want of data"
    )
    rows = f" was assessed on {material.rows} rows"
    events = f", {100 * share.value:.1f} % of them positive" if share.is_available else ""
    ratio = material.overall["oe_ratio"]
    balance = f" For each event that it announced, {ratio.value:.2f} came." * ratio.is_available
    return joined(begin, aim, f"{rows}{events}. It ", told, ".", balance)


def _facts(material: Material) -> dict[str, Content]:
    assessment, histogram, details = material.assessment, material.histogram, material.details
    digest = assessment.survey.model_digest
    share = prevalence(histogram)
    known = f"{value_text('prevalence', share)} ({interval_text('prevalence', share)})"
    facts: dict[str, Content] = {
        "Model": named(details.model) if details.model else "not named",
        "Model digest (SHA-256)": element("code", digest) if digest else "not in the survey",
        "Outcome": named(details.outcome) if details.outcome else "not named",
        "Population": named(details.population) if details.population else None,
        "Period": named(details.period) if details.period else "not named",
        "Reports": f"{assessment.reports:,}",
        "Rows": material.rows,
        "Events (positives)": material.events,
        "Prevalence": known,
        "Privacy": assessment.guarantee.sentence(),
    }
    return {term: value for term, value in facts.items() if value is not None}
