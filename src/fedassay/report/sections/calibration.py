"""Calibration: is a score of 0.3 a chance of 30 %?"""

from fedassay.calibration import Calibrator, Method, ece
from fedassay.estimate import Estimate
from fedassay.histogram import ScoreHistogram
from fedassay.report.calibration_figures import (
    calibration_figure,
    distribution_figure,
    smooth_rates,
)
from fedassay.report.markup import Markup, element, joined, named
from fedassay.report.material import Material
from fedassay.report.wording import estimates_table, interval_text, reasons, section, value_text

_COMMAND = "fedassay calibrate assessment.json -o calibrator.json"
_FIGURES = ("oe_ratio", "calibration_intercept", "calibration_slope", "ici", "e90", "emax")


def calibration(material: Material) -> Markup:
    """The curve with its bins, the distribution of scores under it, and the figures."""
    histogram = material.histogram
    shown: dict[str, Estimate] = {name: material.overall[name] for name in _FIGURES}
    shown["ece"] = ece(histogram)
    parts = [estimates_table(shown, caption="Calibration figures"), reasons(shown)]
    if material.why_no_curves:
        parts.append(element("p", f"There is no curve: {material.why_no_curves}", class_="missing"))
    else:
        smooth = smooth_rates(histogram)
        figure = calibration_figure(histogram, smooth, material.calibrator)
        parts.append(
            element(
                "div",
                element("div", figure, distribution_figure(histogram), class_="stacked"),
                _after(histogram, shown["ece"], material.calibrator),
                class_="figures",
            )
        )
    return section("calibration", "Calibration", *parts)


def _after(histogram: ScoreHistogram, before: Estimate, calibrator: Calibrator | None) -> Markup:
    """What a calibrator does to the error, or how to get one."""
    if calibrator is None or calibrator.method is Method.NONE:
        told = "No calibrator was given. Fit one to this assessment, at no cost:"
        if calibrator is not None:
            told = "The calibrator leaves the scores as they are. Others can be named:"
        return element(
            "div",
            element("h3", "Before and after a calibrator"),
            element("p", joined("Why: ", named(calibrator.reason))) if calibrator else None,
            element("p", told),
            element("pre", _COMMAND + " --method isotonic" * bool(calibrator), tabindex=0),
        )
    after = ece(histogram, calibrator=calibrator)
    words = [
        f"{value_text('ece', each)} ({interval_text('ece', each)})" for each in (before, after)
    ]
    return element(
        "div",
        element("h3", "Before and after a calibrator"),
        element(
            "p",
            f"By {calibrator.method.value}, the calibration error (ECE, debiased) goes from "
            f"{words[0]} to {words[1]}.",
        ),
        element("p", joined("Why this map: ", named(calibrator.reason)))
        if calibrator.reason
        else None,
        element(
            "p",
            "If the map was fitted to this very assessment, the figure after it is too good; "
            "fedassay calibrate --test judges it on other clients.",
            class_="note",
        ),
    )
