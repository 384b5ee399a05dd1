"""What to do about a history: wait, recalibrate or retrain, and why."""

from dataclasses import dataclass
from enum import Enum

from fedassay.tracking.alarms import Alarm, Watch, find_alarms
from fedassay.tracking.history import History

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
    before and is off in level needs a new map from scores to probabilities only.

    >>> import fedassay
    >>> labels, scores = [0, 1] * 500, [i / 1000 for i in range(1000)]
    >>> same = fedassay.simulate(labels, scores, seed=0)
    >>> print(advise(History({"2026-09": same}), Watch()))
    wait: one look says nothing about change. Add the next.
    """
    if len(history) < 2:
        return Advice(Action.WAIT, "one look says nothing about change. Add the next.")
    alarms = find_alarms(history, watch)
    worse = [alarm for alarm in alarms if _ranks_worse(alarm)]
    if worse:
        return Advice(Action.RETRAIN, f"the order of scores got worse. {worse[-1].sentence()}")
    moved = [alarm for alarm in alarms if not _is_of_order(alarm)]
    if moved:
        return Advice(
            Action.RECALIBRATE,
            f"ranks hold, levels moved. {moved[-1].sentence()} Fit a map to the latest look: "
            "fedassay calibrate.",
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
