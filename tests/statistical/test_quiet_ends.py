"""Four hospitals whose unscored rows were given a 0: what counters of exactly 0 and 1 are for.

False alarms: if intervals hold 93 %, `FEWEST` of 60 or fewer do so with a chance below 1e-6.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from experiments.resampled import SortedRows, exact_metrics
from experiments.trials import Reader, Setting, small_settings
from scipy.stats import binom

from fedassay.estimate import Estimate
from fedassay.examples import Examples
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.planning.build import build_survey
from fedassay.planning.search import design_survey

ROWS, SITES, TRIALS, ASKED = 2500, 4, 60, (0.1, 0.5)
FEWEST = int(binom.ppf(1e-6, TRIALS, 0.93))
_, LITTLE, ONE, _ = small_settings(SITES)
NAMES = ("roc_auc", "log_loss", "calibration_slope", "calibration_intercept")


@cache
def unscored(share: float) -> SortedRows:
    """Scores in hundredths, calibrated, and a share of the rows at 0 with 15 % positives."""
    generator = np.random.default_rng(5)
    odds = generator.normal(-2.0, 1.3, ROWS)
    rate = 1.0 / (1.0 + np.exp(-odds))
    is_default = generator.random(ROWS) < share
    labels = generator.random(ROWS) < np.where(is_default, 0.15, rate)
    # The lowest true score is 0.01: whoever has 0 was not scored.
    scores = np.where(is_default, 0.0, np.maximum(np.round(rate, 2), 0.01))
    return SortedRows.of(Examples(labels.astype(np.int8), scores))


@cache
def held(share: float, setting: Setting, *, has_ends: bool) -> dict[str, tuple[int, int]]:
    """How many intervals held the rows' own values, of how many that there were."""
    rows, read_at = unscored(share), {str(at): at for at in ASKED}
    request = setting.request(ROWS, ASKED)
    design = design_survey(request)
    if not has_ends:
        edges = design.survey.grid.edges
        grid = Grid(np.concatenate([edges[:1], edges[2:-2], edges[-1:]]))
        survey = build_survey(request, grid, Hierarchy.flat(grid.cells))
        design = replace(design, survey=survey)
    reader, found = Reader(design, rows, ASKED, SITES), dict[str, list[bool]]()
    for trial in range(TRIALS):
        generator = np.random.default_rng([14, trial])
        counts = rows.drawn(generator)
        truth = exact_metrics(rows, counts, read_at)
        for name, estimate in reader.estimates(counts, NAMES, read_at, generator).items():
            if estimate.is_available:
                found.setdefault(name, []).append(_holds(estimate, truth[name]))
    return {name: (sum(each), len(each)) for name, each in found.items()}


def _holds(estimate: Estimate, truth: float) -> bool:
    low, high = estimate.interval(population=False)
    return low <= truth <= high


@pytest.mark.parametrize("setting", [LITTLE, ONE], ids=lambda each: each.name)
@pytest.mark.parametrize("share", [0.0, 0.06])
def test_intervals_hold_with_unscored_rows_at_0_and_without(share: float, setting: Setting) -> None:
    for name, (inside, answers) in held(share, setting, has_ends=True).items():
        assert answers >= TRIALS // 2, name
        assert inside >= FEWEST - (TRIALS - answers), name


@pytest.mark.parametrize("setting", [LITTLE, ONE], ids=lambda each: each.name)
def test_without_such_counters_they_are_rejected(setting: Setting) -> None:
    """The planted twin: the same cells, but for those of exactly 0 and 1."""
    inside, answers = held(0.06, setting, has_ends=False)["calibration_intercept"]
    assert answers >= TRIALS // 2
    assert inside < FEWEST - (TRIALS - answers)
