"""Where a metric is going: its straight line over time, with what luck and noise may make of it."""

from datetime import date
from math import sqrt

import numpy as np

from fedassay.checks import require_type
from fedassay.estimate import Estimate, NotEnoughData
from fedassay.examples import FloatArray
from fedassay.tracking.history import History

FEWEST_LOOKS = 3
_DAYS = 365.25


def trend(history: History, metric: str) -> Estimate:
    """How much a metric changes in a year, by weighted least squares over all looks.

    On the scale where errors are normal, with weights w = 1 / variance and times t in years, the
    slope is sum w (t - mean t) y / sum w (t - mean t)^2, and its variance 1 over that sum. Where
    looks lie further from the line than their errors say (X^2 of them over n - 2 above 1), that
    much more (Birge 1932). It is told in the metric's own units, at its mean.

    >>> import fedassay
    >>> labels, scores = [0, 1] * 500, [i / 1000 for i in range(1000)]
    >>> same = fedassay.simulate(labels, scores, seed=0)
    >>> history = History({f"2026-0{month}": same for month in (1, 2, 3)})
    >>> abs(trend(history, "roc_auc").value) < 1e-9
    True
    """
    require_type(history, History, "a history", "History.load reads a folder.")
    effects = history.effects(metric)
    if len(effects.effects) < FEWEST_LOOKS:
        return NotEnoughData(
            reason=f"a trend needs {FEWEST_LOOKS} looks that have the figure; found "
            f"{len(effects.effects)}. Add the next."
        )
    weights = 1.0 / effects.variances
    times = years_of([each.site for each in effects.effects])
    middle, mean = (float((weights * x).sum() / weights.sum()) for x in (times, effects.values))
    away = times - middle
    squares = float((weights * away**2).sum())
    slope = float((weights * away * effects.values).sum()) / squares
    left = effects.values - mean - slope * away
    spread = float((weights * left**2).sum()) / (len(times) - 2)
    per_unit = 1.0 / effects.scale.slope(effects.scale.back(mean))
    return Estimate(slope * per_unit, sampling_sd=abs(per_unit) * sqrt(max(spread, 1.0) / squares))


def years_of(times: list[str]) -> FloatArray:
    """Months and days in years since the first; a month stands for its first day.

    >>> years_of(["2026-01-01", "2026-01-31"]).round(3).tolist()
    [0.0, 0.082]
    """
    days = [
        date.fromisoformat(time if len(time) > len("2026-10") else f"{time}-01") for time in times
    ]
    return np.array([(day - days[0]).days / _DAYS for day in days])
