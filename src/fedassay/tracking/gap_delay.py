"""How long a change of ECE goes unnoticed, before there is one."""

from math import inf

import numpy as np

from fedassay.calibration.gap_intervals import NilLaw
from fedassay.checks import require_number, require_whole
from fedassay.errors import SettingInvalid
from fedassay.tracking.alarms import Watch
from fedassay.tracking.cusum import ALLOWANCE
from fedassay.tracking.gap_series import Gaps

_RUNS = 2000
_SEED = 0
_MOST_LOOKS = 600


def median_gap_delay(look: Gaps, shift: float, *, looks_before: int, watch: Watch) -> float:
    """Looks until half of all such changes are noticed; 1 is the first changed look.

    ECE rises by `shift` from nothing, every bin's gap by its share of the rows, as where all
    predictions are too low by so much. It is infinite where most are never noticed.

    >>> look = Gaps(np.zeros(20), np.full(20, 0.05), 1e-6 * np.eye(20))
    >>> median_gap_delay(look, 0.1, looks_before=12, watch=Watch(("ece",)))
    1.0
    """
    if not 0.0 < require_number(shift, "a change of ECE") < 1.0:
        raise SettingInvalid(
            "a change of ece is planned from a calibrated model, whose ece can only rise; found "
            f"{shift:g}. Name a rise between 0 and 1 (--shift 0.02)."
        )
    require_whole(looks_before, "looks before the change", 1, _MOST_LOOKS)
    generator = np.random.default_rng(_SEED)
    law, moved = NilLaw.of(look.covariance), shift * look.mass / look.mass.sum()
    # Alarms allow for what cells hide as for luck, though it is the same at every look.
    varies = look.covariance - np.diag(look.hidden + np.zeros(len(moved)))
    values, vectors = np.linalg.eigh(varies)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    total = np.zeros((_RUNS, len(moved)))
    level, delay = np.zeros(_RUNS), np.full(_RUNS, inf)
    for seen in range(looks_before + _MOST_LOOKS):
        changed = seen >= looks_before
        gaps = moved * changed + generator.standard_normal(total.shape) @ root.T
        if seen:
            # One look's covariance V, and the mean's V / seen: the sum is so much larger.
            sizes = np.abs(gaps - total / seen).sum(axis=1) / np.sqrt(1.0 + 1.0 / seen)
            level = np.maximum(0.0, level + law.scores(sizes) - ALLOWANCE)
        if changed:
            soonest = np.isinf(delay) & (level >= watch.limit)
            delay = np.where(soonest, seen - looks_before + 1.0, delay)
        else:
            level = np.where(level >= watch.limit, 0.0, level)
        total += gaps
        if np.isfinite(delay).mean() > 0.5:
            break
    return float(np.median(delay))
