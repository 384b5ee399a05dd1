"""What a liar can move: how far any metric goes when somebody adds false rows.

Secure sums hide whose rows are false, and that they are. What can be said is how much damage a
number of false rows does at most, wherever they are put: for each metric the lowest and highest
value that the honest counts and up to `rows` rows of the worst kind can have together.

- At a threshold all metrics rise with tp and tn and fall with fp and fn, so that the worst is a
  split of the rows over tp and tn, or over fp and fn; every split is tried.
- ROC AUC: with a positives above and b negatives below everybody, the wrongly ordered pairs stay
  as many and all pairs become (P + a)(N + b); the other way round the rightly ordered ones do.
- Average precision: positives on top raise it most. Negatives on top lower the precision at each
  true positive to i / (rank + b), and a false positive's own precision is at least 0.
- KS: the two distribution functions move by at most a / (P + a) and b / (N + b).
- Brier score, log loss and prevalence are means: false rows have the least or the largest loss.

Counts stand for rows, so ROC AUC and KS of the rows themselves, tied where a cell is
interpolated, may leave their range by what binning leaves open.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import isnan, log, nan

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray
from fedassay.grid_rules import EPS_BITS
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.confusion import confusion
from fedassay.metrics.named import OVERALL, metric_name

MOST_ROWS = 10**6
_TRIED = 256
Range = tuple[float, float]


def manipulation(
    histogram: ScoreHistogram, thresholds: Sequence[float], *, rows: int
) -> dict[str, Range]:
    """The lowest and the highest value of each metric once up to `rows` rows are false.

    Negative counts, which noise makes, are taken for none.

    >>> h = ScoreHistogram.from_scores([0] * 90 + [1] * 10, [0.2] * 90 + [0.8] * 10)
    >>> low, high = manipulation(h, [0.5], rows=10)["recall@0.5"]
    >>> low, high
    (0.5, 1.0)
    """
    if not 0 <= rows <= MOST_ROWS:
        raise SettingInvalid(f"false rows are from 0 to {MOST_ROWS:,}; found {rows}.")
    ranges = {name: _OVERALL[name](histogram, rows) for name in OVERALL}
    for threshold in thresholds:
        at = tuple(max(count, 0.0) for count in confusion(histogram, threshold).counts)
        for name, formula in _AT_THRESHOLD.items():
            ranges[metric_name(name, threshold)] = _over_splits(formula, at, rows)
    return ranges


def _over_splits(formula: Callable[..., FloatArray], at: Sequence[float], rows: int) -> Range:
    """A formula's extremes over all splits; it rises with tp and tn, and falls with fp and fn."""
    tp, fp, fn, tn = at
    part = np.arange(rows + 1, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        high = formula(tp + part, fp, fn, tn + part[::-1])
        low = formula(tp, fp + part, fn + part[::-1], tn)
    return _end(np.min, low), _end(np.max, high)


def _end(end: Callable[[FloatArray], float], values: FloatArray) -> float:
    """An extreme among the values that there are; nan where there is none."""
    known = values[~np.isnan(values)]
    return float(end(known)) if len(known) else nan


def _mcc(tp: FloatArray, fp: FloatArray, fn: FloatArray, tn: FloatArray) -> FloatArray:
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / np.sqrt(product)


_AT_THRESHOLD: Mapping[str, Callable[..., FloatArray]] = {
    "precision": lambda tp, fp, fn, tn: tp / (tp + fp),
    "recall": lambda tp, fp, fn, tn: tp / (tp + fn),
    "accuracy": lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn),
    "f1": lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn),
    "specificity": lambda tp, fp, fn, tn: tn / (tn + fp),
    "balanced_accuracy": lambda tp, fp, fn, tn: (tp / (tp + fn) + tn / (tn + fp)) / 2,
    "mcc": _mcc,
}


def _totals(histogram: ScoreHistogram) -> tuple[float, float]:
    return max(histogram.total_positives, 0.0), max(histogram.total_negatives, 0.0)


def _roc_auc(histogram: ScoreHistogram, rows: int) -> Range:
    p, n = _totals(histogram)
    value = OVERALL["roc_auc"](histogram).value
    if isnan(value) or not (p and n):
        return 0.0, 1.0
    area, part = min(max(value, 0.0), 1.0), np.arange(rows + 1, dtype=np.float64)
    kept = p * n / float(np.max((p + part) * (n + part[::-1])))
    return area * kept, 1.0 - (1.0 - area) * kept


def _average_precision(histogram: ScoreHistogram, rows: int) -> Range:
    """Within a bucket positives come first for the highest value, and last for the lowest.

    The j-th of m there has precision f(j) = (A + j) / (C + j), which rises and is concave:
    its mean lies from (f(1) + f(m)) / 2 to f((m + 1) / 2).
    """
    m, negatives = (np.maximum(h[::-1], 0.0) for h in (histogram.positives, histogram.negatives))
    p = float(m.sum())
    if p == 0.0:
        return 0.0, 1.0
    before = np.cumsum(m) - m
    called = before + np.cumsum(negatives) - negatives
    middle = (m + 1.0) / 2.0
    highest = float((m * (before + rows + middle) / (called + rows + middle)).sum())

    def lowest(b: int) -> float:
        first, under = np.minimum(m, 1.0), called + negatives + b
        with np.errstate(invalid="ignore"):
            ends = (before + first) / (under + first) + (before + m) / (under + m)
        return float(np.nansum(m * ends / 2.0))

    tried = np.unique(np.linspace(0, rows, min(rows, _TRIED) + 1).astype(np.int64)).tolist()
    # Between two that are tried, the sum is at least the later's and the fraction the earlier's.
    pairs = pairwise(tried) if rows > _TRIED else zip(tried, tried, strict=True)
    low = min(lowest(late) / (p + rows - early) for early, late in pairs)
    return low, (rows + highest) / (p + rows)


def _ks(histogram: ScoreHistogram, rows: int) -> Range:
    p, n = _totals(histogram)
    value = OVERALL["ks"](histogram).value
    if isnan(value) or not (p and n):
        return 0.0, 1.0
    part = np.arange(rows + 1, dtype=np.float64)
    moved = float(np.max(part / (p + part) + part[::-1] / (n + part[::-1])))
    return max(value - moved, 0.0), min(value + moved, 1.0)


def _mean(name: str, largest: float) -> Callable[[ScoreHistogram, int], Range]:
    def bounds(histogram: ScoreHistogram, rows: int) -> Range:
        total = sum(_totals(histogram))
        value = OVERALL[name](histogram).value
        if isnan(value) or total == 0.0:
            return 0.0, largest
        whole = total + rows
        return value * total / whole, (value * total + rows * largest) / whole

    return bounds


_OVERALL: Mapping[str, Callable[[ScoreHistogram, int], Range]] = {
    "roc_auc": _roc_auc,
    "average_precision": _average_precision,
    "brier": _mean("brier", 1.0),
    "log_loss": _mean("log_loss", EPS_BITS * log(2.0)),
    "ks": _ks,
    "prevalence": _mean("prevalence", 1.0),
}
