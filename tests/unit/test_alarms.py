"""Alarms: on series whose change is known."""

from math import inf

import numpy as np
import pytest

from fedassay import Assessment, DecodeOptions, Grid, Tally
from fedassay.errors import SettingInvalid
from fedassay.tracking.advice import Action, advise
from fedassay.tracking.alarms import Watch, find_alarms, usual_metrics
from fedassay.tracking.cusum import cusum_limit
from fedassay.tracking.delay import median_delay
from fedassay.tracking.history import History
from tests.surveys import flat_survey

SURVEY = flat_survey(Grid.uniform(4))
GOOD = np.array([[300, 200, 100, 50], [20, 60, 100, 170]])
BLURRED = np.array([[250, 190, 120, 90], [50, 80, 100, 120]])
"""As many of each class, in worse order."""
RARER = np.array([[390, 260, 130, 65], [10, 30, 50, 85]])
"""The same order, half the positives."""


def look(counts: np.ndarray, seed: int) -> Assessment:
    drawn = np.random.default_rng(seed).poisson(4 * counts)
    return Assessment(
        SURVEY, Tally(SURVEY.fingerprint, (10,), drawn.ravel().astype(np.int64)), DecodeOptions()
    )


def history(*kinds: np.ndarray) -> History:
    return History(
        {f"{2020 + i // 12}-{1 + i % 12:02}": look(each, i) for i, each in enumerate(kinds)}
    )


def test_a_worse_order_is_noticed_where_it_began_and_calls_for_training() -> None:
    changed = history(*[GOOD] * 10, *[BLURRED] * 4)
    watch = Watch(metrics=("roc_auc", "prevalence"))
    alarms = find_alarms(changed, watch)
    assert [(alarm.metric, alarm.since) for alarm in alarms] == [("roc_auc", "2020-11")]
    assert alarms[0].at in ("2020-11", "2020-12")
    assert alarms[0].before > alarms[0].after
    assert advise(changed, watch).action is Action.RETRAIN


def test_a_better_order_is_told_and_calls_for_nothing() -> None:
    watch = Watch(metrics=("roc_auc",))
    changed = history(*[BLURRED] * 10, *[GOOD] * 4)
    assert "roc_auc rose" in find_alarms(changed, watch)[0].sentence()
    assert advise(changed, watch).action is Action.WAIT


def test_a_moved_level_calls_for_a_new_map() -> None:
    watch = Watch(metrics=("roc_auc", "prevalence"))
    changed = history(*[GOOD] * 10, *[RARER] * 3)
    assert {alarm.metric for alarm in find_alarms(changed, watch)} == {"prevalence"}
    assert advise(changed, watch).action is Action.RECALIBRATE


def test_other_rows_that_scores_follow_call_for_nothing() -> None:
    """Half the positives in every cell's proportion: scores and labels fell together."""
    likely = np.array([[350, 187, 75, 20], [50, 113, 125, 140]])
    seldom = np.array([[700, 187, 37, 10], [100, 113, 63, 70]])
    changed = history(*[likely] * 10, *[seldom] * 3)
    watch = Watch(metrics=("roc_auc", "calibration_in_the_large", "prevalence", "flagged@0.5"))
    assert {"prevalence", "flagged@0.5"} == {each.metric for each in find_alarms(changed, watch)}
    advice = advise(changed, watch)
    assert advice.action is Action.WAIT
    assert "the rows changed, and the model follows" in advice.reason


def test_what_became_worse_and_good_again_calls_for_nothing() -> None:
    watch = Watch(metrics=("roc_auc",))
    mended = history(*[GOOD] * 8, *[BLURRED] * 8, *[GOOD] * 4)
    assert [each.after < each.before for each in find_alarms(mended, watch)] == [True, False]
    assert advise(mended, watch).action is Action.WAIT


def test_calibration_that_came_nearer_calls_for_no_map() -> None:
    watch = Watch(metrics=("oe_ratio",))
    off, right = RARER, np.array([[350, 187, 75, 20], [50, 113, 125, 140]])
    assert advise(history(*[off] * 8, *[right] * 4), watch).action is Action.WAIT
    assert advise(history(*[right] * 8, *[off] * 4), watch).action is Action.RECALIBRATE


def test_the_middle_of_the_first_looks_scores_is_watched() -> None:
    """Of GOOD and BLURRED alike: 320 and 300 of 1,000 rows in the first cell, 260 in the next."""
    seen = history(GOOD, BLURRED)
    rows = next(iter(seen.looks.values())).histogram().counts.sum(axis=0)
    *others, name = usual_metrics(seen)
    assert (*others, "brier") == Watch().metrics
    middle = float(name.removeprefix("flagged@"))
    # Half of the rows lie above it, to what two digits can say.
    above = rows[2:].sum() + rows[1] * (0.5 - middle) / 0.25
    assert above / rows.sum() == pytest.approx(0.5, abs=0.02)
    assert usual_metrics(History({})) == Watch().metrics


def test_nothing_is_said_of_nothing() -> None:
    watch = Watch()
    assert advise(history(GOOD), watch).action is Action.WAIT
    same = history(*[GOOD] * 12)
    assert find_alarms(same, watch) == []
    assert "no change stands out of noise in 12 looks" in str(advise(same, watch))


def test_after_an_alarm_the_new_level_is_what_is_watched() -> None:
    twice = history(*[GOOD] * 8, *[BLURRED] * 8, *[GOOD] * 4)
    alarms = find_alarms(twice, Watch(metrics=("roc_auc",)))
    assert [alarm.since for alarm in alarms] == ["2020-09", "2021-05"]
    assert len({alarm.at for alarm in alarms}) == 2


def test_the_chance_of_false_alarms_is_split_over_metrics_and_directions() -> None:
    both = Watch(metrics=("roc_auc", "brier"), false_alarms=0.04)
    assert both.limit == cusum_limit(0.01, 12)


@pytest.mark.parametrize(
    "settings",
    [{"metrics": ()}, {"metrics": ("auroc",)}, {"false_alarms": 0.0}, {"looks_per_year": 0}],
)
def test_a_watch_that_makes_no_sense_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(SettingInvalid, match="found"):
        Watch(**settings)  # type: ignore[arg-type]  # what a user may pass


@pytest.mark.parametrize("shift", [-1.5, 2.0, 3.0])
def test_the_planned_delay_is_that_of_histories(shift: float) -> None:
    """One series after the other, by the words of the definition."""
    watch, before, runs = Watch(metrics=("roc_auc",)), 12, 600
    generator = np.random.default_rng(9)
    delays = []
    for _ in range(runs):
        values = list(generator.standard_normal(before))
        level, delay = 0.0, inf
        for number in range(1, 400):
            new = shift + generator.standard_normal()
            mean = np.mean(values)
            away = (new - mean) / np.sqrt(1.0 + 1.0 / len(values))
            level = max(0.0, level + np.sign(shift) * away - 0.5)
            values.append(new)
            if level >= watch.limit:
                delay = number
                break
        delays.append(delay)
    planned = median_delay(shift, looks_before=before, watch=watch)
    assert planned == pytest.approx(np.median(delays), rel=0.2, abs=0.51)


def test_a_change_right_after_the_first_look_may_never_be_noticed() -> None:
    assert median_delay(0.2, looks_before=1, watch=Watch()) > 100
    with pytest.raises(SettingInvalid, match="must not be 0"):
        median_delay(0.0, looks_before=1, watch=Watch())
