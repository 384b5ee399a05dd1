"""At a threshold: the slider, and every figure that moves with it."""

from fedassay.estimate import Estimate
from fedassay.metrics import confusion_counts
from fedassay.report.markup import Markup, element, joined
from fedassay.report.material import Material
from fedassay.report.wording import (
    HEAD,
    estimate_row,
    interval_text,
    section,
    table,
    value_text,
)

FIGURES = (
    "recall",
    "specificity",
    "precision",
    "npv",
    "f1",
    "accuracy",
    "net_benefit",
    "flagged",
)


def at_a_threshold(material: Material) -> Markup:
    """The controls, and the table that the page's script writes again when they move."""
    offered = material.table.thresholds
    controls = element(
        "div",
        element("label", "Threshold", for_="slider"),
        element(
            "input",
            id="slider",
            type="range",
            min=0,
            max=len(offered) - 1,
            step=1,
            value=offered.index(material.start),
            aria_valuetext=f"{material.start:g}",
        ),
        element("label", "Threshold, as a number", for_="number", class_="unseen"),
        element(
            "input", id="number", type="number", min=0, max=1, step="any", value=material.start
        ),
        class_="controls",
    )
    counts = confusion_counts(material.histogram, material.start)
    rows = [estimate_row(name, material.at_start(name), data_figure=name) for name in FIGURES]
    return section(
        "threshold",
        "At a threshold",
        element(
            "p",
            "A row is flagged when its score is above the threshold. Move it: the figures are "
            "computed in this page, and the point moves on every curve.",
        ),
        element("noscript", element("p", "Without JavaScript the threshold stays where it is.")),
        controls,
        element("p", _offered(material), id="nearest", class_="note"),
        element("p", "", id="said", class_="unseen", role="status"),
        element(
            "div",
            table(HEAD, rows, caption="Figures at the threshold", at=_at(material.start)),
            _matrix(counts, _at(material.start)),
            class_="figures",
        ),
    )


def _offered(material: Material) -> str:
    offered, wanted = material.table, len(set(material.assessment.thresholds))
    words = (
        f"The page holds {len(offered.thresholds):,} thresholds from 0 to 1, more of them where "
        "the scores lie; of what you type the nearest is taken."
    )
    if offered.named < wanted:
        words += (
            f" The assessment names {wanted:,}; {offered.named:,} of them, spread evenly, are "
            "here, and fedassay show has all."
        )
    return words


def _at(threshold: float) -> Markup:
    return joined(" ", element("span", f"{threshold:g}", class_="at"))


def _matrix(counts: dict[str, Estimate], at: Markup) -> Markup:
    """The confusion matrix, with an interval for each count."""
    body = [
        element(
            "tr",
            element("th", title, scope="row"),
            *(_cell(name, counts[name]) for name in names),
        )
        for title, names in (("flagged", ("tp", "fp")), ("not flagged", ("fn", "tn")))
    ]
    return table(["rows", "positive", "negative"], body, caption="Confusion matrix", at=at)


def _cell(name: str, estimate: Estimate) -> Markup:
    return element(
        "td",
        element("b", value_text(name, estimate)),
        element("span", interval_text(name, estimate)),
        class_="number count",
        data_figure=name,
    )
