"""What to do about a history: wait, recalibrate or retrain, and why."""

from dataclasses import dataclass
from enum import Enum

from fedassay.tracking.alarms import Alarm, Watch, find_alarms
from fedassay.tracking.history import History

_IDEAL = {
    "calibration_in_the_large": 0.0,
    "calibration_intercept": 0.0,
    "calibration_slope": 1.0,
    "oe_ratio": 1.0,
    "ece": 0.0,
    "ici": 0.0,
    "e50": 0.0,
    "e90": 0.0,
    "emax": 0.0,
}
"""What metrics of calibration are where scores mean what they say."""
_ORDER = frozenset({"roc_auc", "average_precision", "ks", "recall@specificity", "gain", "lift"})


class Action(Enum):
    """What a history calls for."""

    WAIT = "wait"
    RECALIBRATE = "recalibrate"
    RETRAIN = "retrain"


@dataclass(frozen=True, slots=True)
class Advice:
    """An action with its reason."""

    action: Action
    reason: str

    def __str__(self) -> str:
        return f"{self.action.value}: {self.reason}"


def advise(history: History, watch: Watch) -> Advice:
    """What the alarms call for.

    A model that ranks worse than it did needs other features or weights; one that ranks as
    before and whose calibration is further off needs a new map from scores to probabilities only.
    Where only prevalence, the scores' distribution or what follows from these moved, other rows
    came, and the model needs nothing. The last alarm of each metric counts.

    >>> import fedassay
    >>> labels, scores = [0, 1] * 500, [i / 1000 for i in range(1000)]
    >>> same = fedassay.simulate(labels, scores, seed=0)
    >>> print(advise(History({"2026-09": same}), Watch()))
    wait: one look says nothing about change. Add the next.
    """
    if len(history) < 2:
        return Advice(Action.WAIT, "one look says nothing about change. Add the next.")
    # What each metric did last: what fell and rose again calls for nothing any more.
    latest = {alarm.metric: alarm for alarm in find_alarms(history, watch)}
    worse = [alarm for alarm in latest.values() if _ranks_worse(alarm)]
    if worse:
        return Advice(Action.RETRAIN, f"the order of scores got worse. {worse[-1].sentence()}")
    moved = [alarm for alarm in latest.values() if not _is_of_order(alarm)]
    off = [alarm for alarm in moved if _is_off(alarm)]
    if not _IDEAL.keys() & set(watch.metrics):
        # Nobody watches calibration itself: levels that moved are the sign that there is.
        off = moved
    if off:
        return Advice(
            Action.RECALIBRATE,
            f"ranks hold, levels moved. {off[-1].sentence()} Fit a map to the latest look: "
            "fedassay calibrate.",
        )
    if moved:
        return Advice(
            Action.WAIT,
            f"the rows changed, and the model follows: order and calibration hold. "
            f"{moved[-1].sentence()} Look at thresholds and at how many are acted on.",
        )
    return Advice(
        Action.WAIT,
        f"no change stands out of noise in {len(history)} looks, at "
        f"{100 * watch.false_alarms:g} % false alarms a year.",
    )


def _is_of_order(alarm: Alarm) -> bool:
    return alarm.metric.partition("=")[0].partition("@0")[0] in _ORDER


def _ranks_worse(alarm: Alarm) -> bool:
    return _is_of_order(alarm) and alarm.after < alarm.before


def _is_off(alarm: Alarm) -> bool:
    """Whether calibration is further from where it should be than it was."""
    ideal = _IDEAL.get(alarm.metric)
    return ideal is not None and abs(alarm.after - ideal) > abs(alarm.before - ideal)
