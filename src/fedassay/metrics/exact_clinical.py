"""What clinics ask, from rows at hand: the values that estimates are compared with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.estimate import NotEnoughData
from fedassay.examples import FloatArray
from fedassay.metrics.calibration_curve import NODES, gap_equations, hats, place_nodes, solve_gaps
from fedassay.metrics.clinical_thresholds import PER
from fedassay.metrics.gap_law import Figure, figure_of
from fedassay.metrics.log_odds import log_odds
from fedassay.metrics.weak_calibration import IN_THE_LARGE, INTERCEPT_AND_SLOPE

_ROUNDING = 1e-9
_PIECE = 2**16


@dataclass(frozen=True, slots=True, eq=False)
class SortedRows:
    """Rows by score: the scores that there are, rising, and how many rows lie below each."""

    scores: FloatArray
    negatives_below: FloatArray
    """One more than there are scores: before the first, and up to each."""
    positives_below: FloatArray

    @property
    def counts(self) -> FloatArray:
        """Negatives and positives at each score, label x score."""
        return np.stack([np.diff(self.negatives_below), np.diff(self.positives_below)])


def calibration_of_rows(rows: SortedRows) -> dict[str, float | None]:
    """Calibration in the large, intercept, slope, O/E, and how far the curve is from the score.

    >>> rows = SortedRows(np.array([0.5]), np.array([0.0, 1.0]), np.array([0.0, 3.0]))
    >>> calibration_of_rows(rows)["oe_ratio"]
    1.5
    """
    scores, counts = rows.scores, rows.counts
    values = _lines(scores, counts)
    totals = counts.sum(axis=0)
    expected = float(totals @ scores)
    values["oe_ratio"] = float(counts[1].sum()) / expected if expected > 0.0 else None
    gaps = _gaps(scores, counts)
    del counts
    order = np.argsort(gaps)
    gaps, totals = gaps[order], totals[order]
    del order
    figures = {"ici": Figure.MEAN, "e50": Figure.HALF, "e90": Figure.MOST, "emax": Figure.LARGEST}
    return values | {
        name: figure_of(gaps, totals, figure, is_sorted=True) for name, figure in figures.items()
    }


def _lines(scores: FloatArray, counts: FloatArray) -> dict[str, float | None]:
    """Calibration in the large, intercept and slope."""
    odds = log_odds(scores)
    large, line = (law.fit(odds, counts) for law in (IN_THE_LARGE, INTERCEPT_AND_SLOPE))
    return {
        "calibration_in_the_large": None
        if isinstance(large, NotEnoughData)
        else float(large.parameters[0]),
        "calibration_intercept": None
        if isinstance(line, NotEnoughData)
        else float(line.parameters[0]),
        "calibration_slope": None if isinstance(line, NotEnoughData) else float(line.parameters[1]),
    }


def clinical_at_threshold(
    tp: float, fp: float, P: int, N: int, *, threshold: float
) -> dict[str, float | None]:
    """Predictive value, likelihood ratios, flagged per 1,000 and net benefit at a threshold.

    >>> clinical_at_threshold(1.0, 0.0, 2, 2, threshold=0.5)["flagged"]
    250.0
    """
    fn, tn = P - tp, N - fp
    odds = threshold / (1.0 - threshold) if threshold < 1.0 else None
    return {
        "npv": tn / (tn + fn) if tn + fn > 0 else None,
        "lr_plus": (tp / P) / (fp / N) if fp > 0 else None,
        "lr_minus": (fn / P) / (tn / N) if tn > 0 else None,
        "flagged": PER * (tp + fp) / (P + N),
        "net_benefit": None if odds is None else (tp - odds * fp) / (P + N),
    }


def at_goal(rows: SortedRows, name: str) -> float | None:
    """A metric at a wanted rate or share, by its name.

    >>> below = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    >>> rows = SortedRows(np.array([0.2, 0.4, 0.6, 0.8]), below, below)
    >>> at_goal(rows, "recall@specificity=0.5"), at_goal(rows, "gain@0.25")
    (0.5, 0.25)
    """
    for begin, value in _AT_GOAL.items():
        if name.startswith(begin):
            return value(rows, float(name.removeprefix(begin)))
    raise SettingInvalid(
        f"a goal is one of {', '.join(_AT_GOAL)} and a number; found {name[:40]!r}."
    )


def _recall_at_specificity(rows: SortedRows, wanted: float) -> float | None:
    """The most recall among thresholds with so much specificity."""
    n, p = rows.negatives_below, rows.positives_below
    if not 1.0 - _ROUNDING <= (1.0 - wanted) * n[-1] <= n[-1] - 1.0 + _ROUNDING:
        return None
    is_enough = n >= wanted * n[-1] - _ROUNDING
    return float(1.0 - p[is_enough][0] / p[-1])


def _specificity_at_recall(rows: SortedRows, wanted: float) -> float | None:
    """The most specificity among thresholds with so much recall."""
    n, p = rows.negatives_below, rows.positives_below
    if not 1.0 - _ROUNDING <= wanted * p[-1] <= p[-1] - 1.0 + _ROUNDING:
        return None
    is_enough = p[-1] - p >= wanted * p[-1] - _ROUNDING
    return float(n[is_enough][-1] / n[-1])


def _gain(rows: SortedRows, share: float) -> float:
    """The positives among the highest scores; of equal ones each counts in part."""
    below = rows.negatives_below + rows.positives_below
    positives = float(np.interp((1.0 - share) * below[-1], below, rows.positives_below))
    return 1.0 - positives / float(rows.positives_below[-1])


_AT_GOAL: Mapping[str, Callable[[SortedRows, float], float | None]] = {
    "recall@specificity=": _recall_at_specificity,
    "specificity@recall=": _specificity_at_recall,
    "gain@": _gain,
    "lift@": lambda rows, share: _gain(rows, share) / share,
}


def _gaps(scores: FloatArray, counts: FloatArray) -> FloatArray:
    """The distance of the calibration curve from each score."""
    totals = counts.sum(axis=0)
    for wanted in range(NODES, 0, -1):
        nodes = place_nodes(scores, totals, wanted)
        normal, right = np.zeros((len(nodes), len(nodes))), np.zeros(len(nodes))
        # Hats of all rows at once would be the largest thing in memory.
        for start in range(0, len(scores), _PIECE):
            here = slice(start, start + _PIECE)
            more, beside = gap_equations(hats(scores[here], nodes), scores[here], counts[:, here])
            normal += more
            right += beside
        gaps = solve_gaps(normal, right)
        if gaps is not None:
            # A sum of hats is the line through its nodes.
            return np.abs(np.interp(scores, nodes, gaps))
    return np.zeros_like(scores)
