"""ROC, precision-recall and decision curves of the page."""

from collections.abc import Mapping, Sequence

import numpy as np

from fedassay.estimate import Estimate
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics import precision_recall_curve, roc_curve
from fedassay.metrics.curves import Curve
from fedassay.report.markup import Markup, element
from fedassay.report.svg import Frame, legend

_POINTS = 160
BAND = ("band", "95 % pointwise band")
POINT = ("point", "this threshold")


def roc_figure(histogram: ScoreHistogram, area: str, at: tuple[float, float] | None) -> Markup:
    """False against true positive rate, with the operating point."""
    curve = roc_curve(histogram, points=_POINTS, monotone=True)
    frame = Frame()
    return frame.figure(
        "roc",
        "ROC curve",
        f"Recall against one minus specificity at every threshold; the area is {area}.",
        frame.axes("1 − specificity (false positive rate)", "recall (true positive rate)"),
        frame.line([0, 1], [0, 1], class_="chance"),
        *_drawn(frame, curve),
        operating_point(frame, at),
        legend=legend(("line", _fitted(curve)), BAND, ("chance", "chance"), POINT),
    )


def roc_pair_figure(histograms: Mapping[str, ScoreHistogram]) -> Markup:
    """Two models' ROC curves in one frame, each with its band."""
    frame = Frame()
    parts = [
        frame.axes("1 − specificity (false positive rate)", "recall (true positive rate)"),
        frame.line([0, 1], [0, 1], class_="chance"),
    ]
    keys = []
    for (name, histogram), class_ in zip(histograms.items(), ("line", "line second"), strict=True):
        curve = roc_curve(histogram, points=_POINTS, monotone=True)
        band, line = _drawn(frame, curve, class_)
        parts += [band, line]
        keys.append((class_, name[:40]))
    return frame.figure(
        "roc-both",
        "ROC curves",
        "Recall against one minus specificity, at every threshold, of "
        f"{' and '.join(name[:80] for name in histograms)}.",
        *parts,
        legend=legend(*keys, BAND, ("chance", "chance")),
    )


def precision_recall_figure(
    histogram: ScoreHistogram, area: str, at: tuple[float, float] | None
) -> Markup:
    """Recall against precision, with the prevalence that chance has."""
    curve = precision_recall_curve(histogram, points=_POINTS, monotone=True)
    share = histogram.total_positives / histogram.total
    frame = Frame()
    return frame.figure(
        "pr",
        "Precision-recall curve",
        f"Precision against recall at every threshold; average precision is {area}, and the "
        f"prevalence, which chance has, {share:.3f}.",
        frame.axes("recall (sensitivity)", "precision (PPV)"),
        frame.line([0, 1], [share, share], class_="chance"),
        *_drawn(frame, curve),
        operating_point(frame, at),
        legend=legend(("line", _fitted(curve)), BAND, ("chance", f"prevalence {share:.3f}"), POINT),
    )


def decision_figure(
    thresholds: Sequence[float],
    model: Sequence[Estimate],
    everybody: Sequence[Estimate],
    at: tuple[float, float] | None,
) -> Markup:
    """Net benefit by threshold beside acting on everybody and on nobody."""
    value = np.array([each.value for each in model])
    low, high = np.array([each.interval() for each in model]).T
    top = max(float(np.nanmax(value, initial=0.0)), everybody[0].value, 1e-3)
    frame = Frame(x=(thresholds[0], thresholds[-1]), y=(-0.25 * top, 1.1 * top))
    return frame.figure(
        "decision",
        "Decision curve",
        "Net benefit of acting above a threshold, of acting on everybody, and on nobody, which "
        "has none.",
        element("g", frame.axes("threshold", "net benefit per example"), class_="replaced"),
        frame.band(thresholds, list(low), list(high)),
        frame.line(thresholds, [each.value for each in everybody], class_="all"),
        frame.line([thresholds[0], thresholds[-1]], [0, 0], class_="nobody"),
        frame.line(thresholds, list(value)),
        operating_point(frame, at),
        legend=legend(
            ("line", "act above the threshold"),
            BAND,
            ("all", "act on everybody"),
            ("nobody", "act on nobody"),
            POINT,
        ),
    )


def operating_point(frame: Frame, at: tuple[float, float] | None) -> Markup:
    """Where the chosen threshold lies; the page's script moves it."""
    if at is None:
        return element("circle", class_="point", cx=0, cy=0, r=6, visibility="hidden")
    return frame.dot(*at, class_="point", r=6)


def _drawn(frame: Frame, curve: Curve, class_: str = "line") -> tuple[Markup, Markup]:
    # Only what is shown is clipped to where a rate can lie.
    low, high = curve.band()
    x = _clipped(curve.x)
    band = frame.band(x, _clipped(low), _clipped(high), class_=class_.replace("line", "band"))
    return band, frame.line(x, _clipped(curve.y), class_=class_)


def _clipped(values: FloatArray) -> list[float]:
    rates: list[float] = np.clip(values, 0.0, 1.0).tolist()
    return rates


def _fitted(curve: Curve) -> str:
    return "rising fit to noisy counts" if curve.monotone else "all clients together"
