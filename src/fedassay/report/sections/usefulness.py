"""Usefulness: is acting on the score better than acting on everybody, or on nobody?"""

import numpy as np

from fedassay.histogram import ScoreHistogram
from fedassay.metrics import DecisionCurve, decision_curve
from fedassay.report.curve_figures import decision_figure
from fedassay.report.markup import Markup, element
from fedassay.report.material import Material
from fedassay.report.wording import section

_POINTS = 60
_LEAST_FLAGGED = 0.005
_LAST = 0.99


def usefulness(material: Material) -> Markup:
    """The decision curve over a range that the reader sets."""
    if material.why_no_curves:
        return section(
            "usefulness",
            "Usefulness",
            element("p", f"There is no decision curve: {material.why_no_curves}", class_="missing"),
        )
    start, end = useful_range(material.histogram)
    points = np.linspace(start, end, _POINTS)
    curve = decision_curve(material.histogram, points.tolist())
    at = material.at_start("net_benefit")
    is_inside = at.is_available and start <= material.start <= end
    return section(
        "usefulness",
        "Usefulness",
        element(
            "p",
            "Whoever acts above a threshold of T finds a true positive worth (1 − T) / T false "
            "ones. Net benefit counts true positives per row less false ones at that price; the "
            "score is useful where it lies above both simple ways.",
        ),
        element("p", sentence(curve), id="useful"),
        element(
            "div",
            element("label", "Thresholds from", for_="range-from"),
            _field("range-from", start),
            element("label", "to", for_="range-to"),
            _field("range-to", end),
            class_="controls script",
        ),
        decision_figure(
            points.tolist(),
            curve.net_benefit,
            curve.treat_all,
            (material.start, at.value) if is_inside else None,
        ),
    )


def useful_range(histogram: ScoreHistogram) -> tuple[float, float]:
    """From 0 to where hardly any row is flagged, in steps of a twentieth.

    >>> useful_range(ScoreHistogram.from_scores([0, 1], [0.2, 0.33]))
    (0.0, 0.35)
    """
    rising = np.maximum.accumulate(histogram.cumulative.sum(axis=0))
    wanted = (1.0 - _LEAST_FLAGGED) * rising[-1]
    last = float(np.interp(wanted, rising, histogram.edges))
    step = 0.05 if last > 0.05 else 0.005
    return 0.0, min(round(float(np.ceil(last / step + 1e-9)) * step, 6), _LAST)


def sentence(curve: DecisionCurve) -> str:
    """Between which thresholds acting on scores is surely better than both simple ways."""
    better = curve.thresholds[curve.is_better()]
    if not len(better):
        return "In this range it is nowhere surely better than acting on everybody or on nobody."
    return (
        f"In this range it is surely better than both simple ways (95 %, pointwise) at "
        f"{len(better)} of {len(curve.thresholds)} thresholds, from {better.min():.3g} to "
        f"{better.max():.3g}."
    )


def _field(name: str, value: float) -> Markup:
    return element(
        "input", id=name, type="number", min=0, max=_LAST, step="any", value=f"{value:g}"
    )
