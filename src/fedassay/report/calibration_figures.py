"""Calibration as pictures: observed against predicted rates, and where the scores lie."""

from dataclasses import dataclass

import numpy as np

from fedassay.calibration import Calibrator, Method, reliability_diagram
from fedassay.estimate import NotEnoughData, normal_quantile
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.calibration_curve import calibration_curve, hats
from fedassay.report.curve_figures import BAND
from fedassay.report.markup import Markup, element
from fedassay.report.svg import Frame, legend

_POINTS = 101
_BINS = 50
_LEAST_SHARE = 0.999
_REACHES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class SmoothRates:
    """The smooth calibration curve at many scores, with its standard deviation."""

    scores: FloatArray
    rates: FloatArray
    sd: FloatArray

    def band(self) -> tuple[FloatArray, FloatArray]:
        """Both ends, pointwise, at 95 %."""
        half = normal_quantile(0.975) * self.sd
        return self.rates - half, self.rates + half


def smooth_rates(histogram: ScoreHistogram) -> SmoothRates | None:
    """The curve that ICI is read from, over the scores that most rows have; None without one."""
    curve = calibration_curve(histogram)
    if isinstance(curve, NotEnoughData):
        return None
    low, high = _middle(histogram)
    scores = np.linspace(low, high, _POINTS)
    features = hats(scores, curve.nodes)
    covariance = curve.sampling + curve.noise + curve.placing
    variance = np.einsum("ns,nm,ms->s", features, covariance, features)
    rates = scores + curve.gaps @ features
    return SmoothRates(scores, rates, np.sqrt(np.maximum(variance, 0.0)))


def score_reach(histogram: ScoreHistogram) -> float:
    """How far to the right the picture goes, so that nearly all rows are in it.

    >>> score_reach(ScoreHistogram.from_scores([0, 1], [0.03, 0.07]))
    0.1
    """
    rising = np.maximum.accumulate(histogram.cumulative.sum(axis=0))
    for reach in _REACHES:
        share = float(np.interp(reach, histogram.edges, rising)) / max(float(rising[-1]), 1e-300)
        if share >= _LEAST_SHARE:
            return reach
    return 1.0


def reliability_figure(histogram: ScoreHistogram, name: str, title: str) -> Markup:
    """Observed against predicted rate in bins, of one class or of the most probable one."""
    reach = score_reach(histogram)
    frame = Frame(x=(0.0, reach), y=(0.0, reach))
    return frame.figure(
        name,
        title,
        "Observed share against the probability; on the diagonal probabilities are right.",
        frame.axes("probability", "observed share"),
        frame.line([0, reach], [0, reach], class_="chance"),
        *_bins(frame, histogram, None, "bin"),
        legend=legend(("chance", "right"), ("bin", "bins with 95 % intervals")),
    )


def calibration_figure(
    histogram: ScoreHistogram, smooth: SmoothRates | None, calibrator: Calibrator | None
) -> Markup:
    """Observed against predicted rate: a smooth curve with its band, and bins."""
    reach = score_reach(histogram)
    frame = Frame(x=(0.0, reach), y=(0.0, reach))
    parts = [
        frame.axes("score (predicted probability)", "observed share of positives"),
        frame.line([0, reach], [0, reach], class_="chance"),
    ]
    keys = [("chance", "right")]
    if smooth is not None:
        low, high = smooth.band()
        parts.append(frame.band(list(smooth.scores), list(low), list(high)))
        parts.append(frame.line(smooth.scores, smooth.rates))
        keys += [("line", "smooth curve"), BAND]
    parts += _bins(frame, histogram, None, "bin")
    keys.append(("bin", "bins with 95 % intervals"))
    if calibrator is not None and calibrator.method is not Method.NONE:
        parts += _bins(frame, histogram, calibrator, "after")
        keys.append(("after", "bins after calibration"))
    return frame.figure(
        "calibration-curve",
        "Calibration curve",
        "Observed share of positives against the score; on the diagonal scores are right.",
        *parts,
        element("line", class_="cut", x1=0, x2=0, y1=0, y2=0, visibility="hidden"),
        legend=legend(*keys, ("cut", "this threshold")),
    )


def _bins(
    frame: Frame, histogram: ScoreHistogram, calibrator: Calibrator | None, class_: str
) -> list[Markup]:
    diagram = reliability_diagram(histogram, calibrator=calibrator)
    parts = []
    for x, y, low, high in zip(
        diagram.prob_pred, diagram.prob_true, diagram.low, diagram.high, strict=True
    ):
        if frame.x[0] <= x <= frame.x[1] and low <= frame.y[1] and high >= frame.y[0]:
            parts.append(frame.upright(x, low, high, class_=class_))
            if frame.y[0] <= y <= frame.y[1]:
                parts.append(frame.dot(x, y, class_=class_, r=3.5))
    return parts


def distribution_figure(histogram: ScoreHistogram) -> Markup:
    """Where the scores of positives lie (upwards), and those of negatives (downwards)."""
    reach = score_reach(histogram)
    edges = np.linspace(0.0, reach, _BINS + 1)
    rising = np.maximum.accumulate(histogram.cumulative, axis=1)
    below = np.stack([np.interp(edges, histogram.edges, row) for row in rising])
    shares = np.diff(below, axis=1) / np.maximum(below[:, -1:], 1e-300)
    negative, positive = (max(float(row.max()), 1e-3) for row in shares)
    frame = Frame(x=(0.0, reach), y=(-negative, positive), height=200.0)
    bars = []
    for label, class_ in ((1, "positives"), (0, "negatives")):
        for start, end, share in zip(edges[:-1], edges[1:], shares[label], strict=True):
            if share > 0.0:
                bars.append(_bar(frame, start, end, share if label else -share, class_))
    return frame.figure(
        "distribution",
        "Where the scores lie",
        "Share of the positives, upwards, and of the negatives, downwards, by score.",
        frame.axes("score", "share of class", yticks=[0.0]),
        *bars,
        element("line", class_="cut", x1=0, x2=0, y1=0, y2=0, visibility="hidden"),
        legend=legend(
            ("positives", f"positives, upwards (at most {100 * positive:.0f} % in a bar)"),
            ("negatives", f"negatives, downwards (at most {100 * negative:.0f} %)"),
        ),
    )


def _bar(frame: Frame, start: float, end: float, share: float, class_: str) -> Markup:
    zero, top = frame.at_y(0.0), frame.at_y(share)
    left = frame.at_x(start)
    return element(
        "rect",
        class_=class_,
        x=f"{left:.1f}",
        width=f"{max(frame.at_x(end) - left - 0.6, 0.6):.1f}",
        y=f"{min(zero, top):.1f}",
        height=f"{abs(top - zero):.1f}",
    )


def _middle(histogram: ScoreHistogram) -> tuple[float, float]:
    """Scores between which all but a thousandth of the rows at either end lie."""
    rising = np.maximum.accumulate(histogram.cumulative.sum(axis=0))
    wanted = np.array([1.0 - _LEAST_SHARE, _LEAST_SHARE]) * rising[-1]
    low, high = np.searchsorted(rising, wanted)
    return float(histogram.edges[max(low - 1, 0)]), float(histogram.edges[high])
