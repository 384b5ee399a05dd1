"""Discrimination: does the score rank positives above negatives?"""

from fedassay.report.curve_figures import precision_recall_figure, roc_figure
from fedassay.report.markup import Markup, element
from fedassay.report.material import Material
from fedassay.report.wording import estimates_table, interval_text, reasons, section, value_text


def discrimination(material: Material) -> Markup:
    """ROC and precision-recall curves with bands, their areas, and the prevalence."""
    areas = {
        name: material.overall[name] for name in ("roc_auc", "average_precision", "prevalence")
    }
    parts = [estimates_table(areas, caption="Areas under the curves, and the prevalence")]
    if material.why_no_curves:
        parts.append(
            element("p", f"There are no curves: {material.why_no_curves}", class_="missing")
        )
    else:
        parts.append(_curves(material))
    return section("discrimination", "Discrimination", *parts, reasons(areas))


def _curves(material: Material) -> Markup:
    areas = [(name, material.overall[name]) for name in ("roc_auc", "average_precision")]
    texts = [f"{value_text(*each)} ({interval_text(*each)})" for each in areas]
    recall, specificity, precision = (
        material.at_start(name).value for name in ("recall", "specificity", "precision")
    )
    at = (1.0 - specificity, recall) if 1.0 - specificity + recall >= 0.0 else None
    pr = (recall, precision) if recall + precision >= 0.0 else None
    return element(
        "div",
        roc_figure(material.histogram, texts[0], at),
        precision_recall_figure(material.histogram, texts[1], pr),
        class_="figures",
    )
