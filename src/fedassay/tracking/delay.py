"""How long a change goes unnoticed, before there is one."""

from math import inf

import numpy as np

from fedassay.checks import require_number, require_whole
from fedassay.errors import SettingInvalid
from fedassay.tracking.alarms import Watch
from fedassay.tracking.cusum import ALLOWANCE

_RUNS = 4000
_SEED = 0
_MOST_LOOKS = 600


def median_delay(shift: float, *, looks_before: int, watch: Watch, spread: float = 1.0) -> float:
    """Looks until half of all such changes are noticed; 1 is the first changed look.

    The shift is in standard errors of one look, on the metric's scale. It is infinite where
    most are never noticed, because the mean comes to believe in the change. `spread` is how much
    a look truly varies, in standard errors: below 1 where these allow for errors that stay.

    >>> watch = Watch(metrics=("roc_auc",))
    >>> median_delay(6.0, looks_before=24, watch=watch)
    1.0
    """
    if require_number(shift, "a shift") == 0.0:
        raise SettingInvalid("a change must not be 0; found that. Name one that matters.")
    require_whole(looks_before, "looks before the change", 1, _MOST_LOOKS)
    if not 0.0 < require_number(spread, "a spread") <= 1.0:
        raise SettingInvalid(
            f"a spread lies above 0 and is at most 1, the standard error itself; found {spread:g}."
        )
    generator = np.random.default_rng(_SEED)
    limit, size = watch.limit, abs(shift)
    total, level, delay = np.zeros(_RUNS), np.zeros(_RUNS), np.full(_RUNS, inf)
    for seen in range(looks_before + _MOST_LOOKS):
        changed = seen >= looks_before
        value = size * changed + spread * generator.standard_normal(_RUNS)
        if seen:
            # The sum has wandered when the change comes: from where it is, it is sooner there.
            residual = (value - total / seen) / np.sqrt(1.0 + 1.0 / seen)
            level = np.maximum(0.0, level + residual - ALLOWANCE)
        if changed:
            soonest = np.isinf(delay) & (level >= limit)
            delay = np.where(soonest, seen - looks_before + 1.0, delay)
        else:
            level = np.where(level >= limit, 0.0, level)
        total += value
        if np.isfinite(delay).mean() > 0.5:
            break
    return float(np.median(delay))
