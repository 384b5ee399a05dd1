"""What the paper says of its figures, each held against ours: a row of the results page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fedassay.reproduction import areas, calibration_errors, costs
from fedassay.reproduction.pages import figure_text, markdown_table, slope
from fedassay.reproduction.results import Point
from fedassay.reproduction.settings import MODELS

_SECURE, _DISTRIBUTED, _LOCAL = (model.name for model in MODELS)
NO_DEFAULT = "–"
_VERDICTS = {True: "yes", False: "**no**", None: "cannot tell"}


@dataclass(frozen=True, slots=True)
class Finding:
    """What we measured for a claim on one table."""

    preset: str
    default: str
    agrees: bool | None
    """None where the measurement's interval holds both."""


class Curves:
    """The points of one figure on one table, by panel and curve."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._points = points

    def curve(self, panel: str, name: str) -> list[Point]:
        """A curve from left to right; empty where it was not measured."""
        found = [p for p in self._points if (p.panel, p.curve) == (panel, name)]
        return sorted(found, key=lambda point: point.x)

    def near(self, panel: str, name: str, x: float) -> Point:
        """The point of a curve nearest to x."""
        return min(self.curve(panel, name), key=lambda point: abs(point.x - x))


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim: in our words, the paper's figure, and how it is read from a figure's points."""

    figure: str
    text: str
    paper: str
    find: Callable[[Curves], Finding]


def at_most(
    panel: str, curve: str, x: float, bound: float, default: str | None = None
) -> Callable[[Curves], Finding]:
    """The error at x is at most a bound."""

    def find(curves: Curves) -> Finding:
        point = curves.near(panel, curve, x)
        ours = NO_DEFAULT if default is None else figure_text(curves.near(panel, default, x))
        return Finding(figure_text(point), ours, _is_below(point, bound))

    return find


def _is_below(point: Point, bound: float) -> bool | None:
    """Whether all of the mean's interval is below a bound; None where the bound is within."""
    if point.mean + point.half_width <= bound:
        return True
    return False if point.mean - point.half_width > bound else None


def slope_within(
    panel: str, curve: str, low: float, high: float, default: str | None = None
) -> Callable[[Curves], Finding]:
    """The log-log slope lies between two figures."""

    def find(curves: Curves) -> Finding:
        found = slope(curves.curve(panel, curve))
        ours = None if default is None else slope(curves.curve(panel, default))
        return Finding(
            "–" if found is None else f"slope {found:.2f}",
            NO_DEFAULT if ours is None else f"slope {ours:.2f}",
            found is not None and low <= found <= high,
        )

    return find


def best_within(panel: str, curve: str, low: float, high: float) -> Callable[[Curves], Finding]:
    """The smallest error lies between two places."""

    def find(curves: Curves) -> Finding:
        best = min(curves.curve(panel, curve), key=lambda point: point.mean)
        shown = f"{best.x:g}, with {figure_text(best)}"
        return Finding(shown, NO_DEFAULT, low <= best.x <= high)

    return find


def flat_beyond(panel: str, curve: str, x: float) -> Callable[[Curves], Finding]:
    """From x on more buckets change the error by less than a factor of two."""

    def find(curves: Curves) -> Finding:
        start, end = curves.near(panel, curve, x), curves.curve(panel, curve)[-1]
        ratio = end.mean / start.mean
        return Finding(f"{ratio:.2f} times from {start.x:g} to {end.x:g}", "–", 0.5 < ratio < 2.0)

    return find


def _quantiles_beat_even_ones(curves: Curves) -> Finding:
    pairs = zip(
        curves.curve(_SECURE, areas.UNIFORM), curves.curve(_SECURE, areas.QUANTILE), strict=True
    )
    ratio, buckets = max((even.mean / deep.mean, deep.x) for even, deep in pairs)
    return Finding(f"up to {ratio:.1f} times, at B = {buckets:g}", NO_DEFAULT, ratio >= 2.0)


def _misled(curves: Curves) -> Finding:
    noisy = curves.near(_LOCAL, calibration_errors.BBQ, 20)
    exact = curves.near(_SECURE, calibration_errors.BBQ, 20)
    ours = curves.near(_LOCAL, calibration_errors.DEFAULT, 20)
    shown = f"{figure_text(noisy)} with noise, {figure_text(exact)} without"
    return Finding(shown, figure_text(ours), noisy.mean > 1.5 * exact.mean)


def _isotonic_does_not_help(curves: Curves) -> Finding:
    raw = curves.near(_SECURE, calibration_errors.RAW, 20)
    fitted = curves.near(_SECURE, calibration_errors.ISOTONIC, 20)
    ours = curves.near(_SECURE, calibration_errors.DEFAULT, 20)
    shown = f"{figure_text(raw)} before, {figure_text(fitted)} after"
    return Finding(shown, figure_text(ours), fitted.mean > 0.9 * raw.mean)


def _ordered(curves: Curves) -> Finding:
    panel = calibration_errors.PANEL
    last = [curves.curve(panel, model.name)[-1] for model in MODELS]
    ours = [curves.curve(panel, f"{model.name}: default")[-1] for model in MODELS]
    means = [point.mean for point in last]
    return Finding(
        ", ".join(f"{mean:.3f}" for mean in means),
        ", ".join(f"{point.mean:.3f}" for point in ours),
        means == sorted(means),
    )


def fanouts_alike(panel: str) -> Callable[[Curves], Finding]:
    """The best tree of fan-out 3 or 4 is within a tenth of the best binary one."""

    def find(curves: Curves) -> Finding:
        best = {
            fanout: min(point.mean for point in curves.curve(panel, f"fan-out {fanout}"))
            for fanout in (2, 3, 4)
        }
        ratio = min(best[3], best[4]) / best[2]
        shown = ", ".join(f"{fanout}: {error:.2g}" for fanout, error in best.items())
        return Finding(f"{shown} (best over 2: {ratio:.2f})", NO_DEFAULT, 0.9 <= ratio <= 1.1)

    return find


def _areas(name: str) -> str:
    return f"{name}: default"


CLAIMS = (
    Claim(figure="auc", text="Secure: error at 100 buckets", paper="1e-5",
          find=at_most(_SECURE, areas.QUANTILE, 100, 5e-5, areas.DEFAULT)),
    Claim(figure="auc", text="Secure: error falls as 1/B²", paper="slope -2",
          find=slope_within(_SECURE, areas.QUANTILE, -2.5, -1.5)),
    Claim(figure="auc", text="Secure: the worst case falls as 1/B", paper="slope -1",
          find=slope_within(_SECURE, areas.WORST, -1.2, -0.8)),
    Claim(figure="auc", text="Secure: quantile buckets beat uniform ones", paper="up to 10 times",
          find=_quantiles_beat_even_ones),
    Claim(figure="auc", text="Distributed: error at 100 buckets", paper="about 0.001",
          find=at_most(_DISTRIBUTED, areas.QUANTILE, 100, 2e-3, areas.DEFAULT)),
    Claim(figure="auc", text="Distributed: flat after 20 to 40 buckets", paper="flat",
          find=flat_beyond(_DISTRIBUTED, areas.QUANTILE, 40)),
    Claim(figure="auc", text="Local: error at 100 buckets", paper="about 0.005",
          find=at_most(_LOCAL, areas.QUANTILE, 100, 1e-2, areas.DEFAULT)),
    Claim(figure="auc", text="Local: flat beyond 20 buckets", paper="flat",
          find=flat_beyond(_LOCAL, areas.QUANTILE, 20)),
    Claim(figure="auc-pop", text="Distributed: error falls as 1/M", paper="slope -1",
          find=slope_within("ROC AUC", _DISTRIBUTED, -1.3, -0.7, _areas(_DISTRIBUTED))),
    Claim(figure="auc-pop", text="Local: falls, faster than the bound's 1/√M", paper="below -0.5",
          find=slope_within("ROC AUC", _LOCAL, -1.3, -0.4, _areas(_LOCAL))),
    Claim(figure="auc-pop", text="Secure: no trend with M", paper="slope 0",
          find=slope_within("ROC AUC", _SECURE, -0.25, 0.25, _areas(_SECURE))),
    Claim(figure="pra", text="Secure: precision at height 14", paper="below 1e-4",
          find=at_most(_SECURE, "precision", 14, 1e-4, "precision: default")),
    Claim(figure="pra", text="Distributed: best height for recall", paper="10 to 12",
          find=best_within(_DISTRIBUTED, "recall", 9, 12)),
    Claim(figure="pra", text="Distributed: accuracy at height 10", paper="about 0.001",
          find=at_most(_DISTRIBUTED, "accuracy", 10, 2e-3, "accuracy: default")),
    Claim(figure="pra", text="Local: best height for recall", paper="8",
          find=best_within(_LOCAL, "recall", 7, 9)),
    Claim(figure="pra", text="Local: accuracy at height 8", paper="about 0.005",
          find=at_most(_LOCAL, "accuracy", 8, 1e-2, "accuracy: default")),
    Claim(figure="pra-pop", text="Distributed: recall's error falls as 1/M", paper="slope -1",
          find=slope_within(_DISTRIBUTED, "recall", -1.3, -0.7, "recall: default")),
    Claim(figure="calib", text="Secure: ECE in 20 bins", paper="about 0.01",
          find=at_most(_SECURE, calibration_errors.BINNING, 20, 0.015,
                       calibration_errors.DEFAULT)),
    Claim(figure="calib", text="Distributed: ECE in 20 bins", paper="about 0.01",
          find=at_most(_DISTRIBUTED, calibration_errors.BINNING, 20, 0.015,
                       calibration_errors.DEFAULT)),
    Claim(figure="calib", text="Local: ECE with 10 buckets", paper="about 0.02",
          find=at_most(_LOCAL, calibration_errors.BINNING, 10, 0.03,
                       calibration_errors.DEFAULT)),
    Claim(figure="calib", text="Local noise misleads BBQ", paper="worse", find=_misled),
    Claim(figure="calib", text="Centralised isotonic regression does not help",
          paper="but for November", find=_isotonic_does_not_help),
    Claim(figure="calib-pop", text="Secure, distributed, local stand in that order",
          paper="in order", find=_ordered),
    Claim(figure="fanout", text="Distributed: fan-outs 3 and 4 gain nothing", paper="no gain",
          find=fanouts_alike(_DISTRIBUTED)),
    Claim(figure="fanout", text="Local: fan-outs 3 and 4 gain nothing", paper="no gain",
          find=fanouts_alike(_LOCAL)),
    Claim(figure="cost", text="A client's cost, local privacy", paper="milliseconds",
          find=at_most(costs.REPORT, _LOCAL, 200, 10.0, f"{_LOCAL}: default")),
)  # fmt: skip
"""In the order of the figures."""


def results_page(figures: Mapping[str, Sequence[Point]], *, quick: bool) -> str:
    """Every claim whose figure was measured, a row for each table."""
    body = []
    for claim in CLAIMS:
        points = figures.get(claim.figure, ())
        for data in dict.fromkeys(point.data for point in points):
            found = claim.find(Curves([point for point in points if point.data == data]))
            verdict = _VERDICTS[found.agrees]
            body.append(
                [claim.text, claim.paper, data, found.preset, found.default, verdict, claim.figure]
            )
    agreed, open_ = (sum(_VERDICTS[each] in row for row in body) for each in (True, None))
    size = "a quick run, for a first look" if quick else "the paper's settings"
    header = ["claim", "paper", "table", "our paper preset", "our default", "agrees", "figure"]
    return (
        "# The paper's claims, measured again\n\n"
        f"Made by `fedassay reproduce` ({size}) from the JSON of its figures: mean ± half "
        "of its 95 % interval over repetitions. The default spends the same epsilon on the same "
        "clients. *Agrees* is whether the paper preset does what the paper says, within a factor "
        f"of two or so: {agreed} of {len(body)} rows do, and {open_} need more repetitions to "
        f"tell.\n\n{markdown_table(header, body)}\n"
    )
