"""How the page writes figures, and what it calls them."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from math import ceil, isfinite, log10

from fedassay.estimate import Estimate, NotEnoughData, TooCoarse
from fedassay.report.markup import Content, Markup, element

VERSION = version("fedassay")
LABELS: Mapping[str, str] = {
    "roc_auc": "ROC AUC",
    "average_precision": "Average precision",
    "brier": "Brier score",
    "log_loss": "Log loss",
    "prevalence": "Prevalence",
    "calibration_in_the_large": "Calibration in the large",
    "calibration_intercept": "Calibration intercept",
    "calibration_slope": "Calibration slope",
    "oe_ratio": "Observed / expected",
    "ici": "ICI",
    "e50": "E50",
    "e90": "E90",
    "emax": "Emax",
    "ece": "ECE, debiased",
    "recall": "Recall (sensitivity)",
    "specificity": "Specificity",
    "precision": "Precision (PPV)",
    "npv": "NPV",
    "f1": "F1",
    "accuracy": "Accuracy",
    "net_benefit": "Net benefit",
    "flagged": "Flagged per 1,000",
    "ks": "Kolmogorov-Smirnov",
    "balanced_accuracy": "Balanced accuracy",
    "mcc": "Matthews correlation",
    "lr_plus": "Likelihood ratio +",
    "lr_minus": "Likelihood ratio −",
    "gain": "Gain",
    "lift": "Lift",
}
HEAD = ("figure", "estimate", "95 % interval")
MEANINGS: Mapping[str, str] = {
    "roc_auc": "how often a positive scores above a negative",
    "average_precision": "precision, averaged over recall; by chance it is the prevalence",
    "brier": "mean squared distance of score and outcome",
    "prevalence": "share of positives",
    "calibration_intercept": "0 when scores are right on average, given their slope",
    "calibration_slope": "1 when scores are spread as they should be; below 1 they are too extreme",
    "oe_ratio": "events that came, for each that the scores announced; 1 is right",
    "ici": "mean distance of score and observed rate",
    "e90": "distance that nine of ten examples stay below",
    "emax": "the largest distance",
    "ece": "mean distance over 20 bins, without what chance adds",
    "recall": "of the positives, how many are flagged",
    "specificity": "of the negatives, how many are not",
    "precision": "of the flagged, how many are positive",
    "npv": "of the unflagged, how many are negative",
    "f1": "harmonic mean of precision and recall",
    "accuracy": "share that is classified rightly",
    "net_benefit": "true positives per example, less what the false ones cost at these odds",
    "flagged": "how many of 1,000 examples lie above the threshold",
}


def digits_of(low: float, high: float) -> int:
    """As many digits as an interval deserves, from 3 to 5.

    >>> digits_of(0.7812, 0.7879), digits_of(0.2, 0.6)
    (3, 3)
    """
    half = (high - low) / 2.0
    return min(max(ceil(-log10(half)), 3), 5) if isfinite(half) and half > 0.0 else 3


def value_text(name: str, estimate: Estimate) -> str:
    """A figure's value; a dash where there is none."""
    if not estimate.is_available:
        return "–"
    return _number(name, estimate.value, digits_of(*estimate.interval()))


def interval_text(name: str, estimate: Estimate) -> str:
    """Its 95 % interval, or why there is no figure."""
    if isinstance(estimate, NotEnoughData):
        return "too coarse" if isinstance(estimate, TooCoarse) else "not enough data"
    low, high = estimate.interval()
    digits = digits_of(low, high)
    return f"{_number(name, low, digits)} to {_number(name, high, digits)}"


def _number(name: str, value: float, digits: int) -> str:
    if name in ("tp", "fp", "fn", "tn"):
        return f"{value:,.0f}"
    return f"{value:.1f}" if name == "flagged" else f"{value:.{digits}f}"


def estimates_table(estimates: Mapping[str, Estimate], *, caption: str) -> Markup:
    """Figures with intervals, and what each of them says."""
    rows = [estimate_row(name, estimate) for name, estimate in estimates.items()]
    return table(HEAD, rows, caption=caption)


def estimate_row(name: str, estimate: Estimate, **attributes: str) -> Markup:
    """One figure: what it is called and says, its value and its interval."""
    return element(
        "tr",
        element("th", LABELS[name], element("small", MEANINGS[name]), scope="row"),
        element("td", value_text(name, estimate), class_="number"),
        element("td", interval_text(name, estimate), class_="number"),
        **attributes,
    )


def table(
    head: Sequence[Content], rows: Sequence[Markup], *, caption: str, at: Content = None
) -> Markup:
    """A table that scrolls by itself where it is wider than the page.

    `at` stands after its caption, and may change.
    """
    top = element("thead", element("tr", *(element("th", each, scope="col") for each in head)))
    return element(
        "div",
        element("table", element("caption", caption, at), top, element("tbody", *rows)),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=caption,
    )


def pairs(entries: Mapping[str, Content]) -> Markup:
    """A list of terms and what they are."""
    return element(
        "dl",
        *(
            element("div", element("dt", term), element("dd", value))
            for term, value in entries.items()
        ),
    )


def reasons(estimates: Mapping[str, Estimate]) -> Markup | None:
    """Why some figures are missing, each reason once."""
    found = {
        each.reason: LABELS[name]
        for name, each in estimates.items()
        if isinstance(each, NotEnoughData)
    }
    if not found:
        return None
    return element(
        "ul",
        *(element("li", f"{label}: {reason}") for reason, label in found.items()),
        class_="missing",
    )


def section(name: str, title: str, *content: Content) -> Markup:
    """A section with its heading, to which the page's contents lead."""
    heading = element("h2", title, id=f"{name}-heading")
    return element("section", heading, *content, id=name, aria_labelledby=f"{name}-heading")
