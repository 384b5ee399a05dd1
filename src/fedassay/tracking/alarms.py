"""Alarms over a history: what has changed, at a stated chance of any false alarm in a year."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedassay.checks import require_type, require_whole
from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray
from fedassay.metrics.named import check_metric, metric_name
from fedassay.sites.effects import SiteEffects
from fedassay.tracking.cusum import cusum, cusum_limit, recursive_residuals
from fedassay.tracking.gap_series import GapSeries
from fedassay.tracking.history import History

MODEL = ("roc_auc", "calibration_in_the_large", "calibration_slope", "prevalence")
"""Order, calibration and how common the outcome is."""
WATCHED = (*MODEL, "brier")
"""What a watch has without a history, from whose scores a threshold could come."""


def usual_metrics(history: History) -> tuple[str, ...]:
    """What is watched unless somebody says: `MODEL`, and where the scores lie.

    Of the scores' distribution, the rows above the first look's middle score. The Brier score
    moves where one of these does.

    >>> import fedassay
    >>> labels, scores = [0, 1] * 500, [i / 1000 for i in range(1000)]
    >>> same = fedassay.simulate(labels, scores, seed=0)
    >>> usual_metrics(History({"2026-09": same}))[-1]
    'flagged@0.5'
    """
    if not history.looks:
        return WATCHED
    histogram = next(iter(history.looks.values())).histogram()
    below = np.append(0.0, np.cumsum(np.maximum(histogram.counts.sum(axis=0), 0.0)))
    middle = float(np.interp(0.5 * below[-1], below, histogram.edges))
    return (*MODEL, metric_name("flagged", float(f"{middle:.2g}")))


@dataclass(frozen=True, slots=True)
class Watch:
    """What is watched, and how seldom chance alone may raise an alarm.

    Guarantee: while nothing changes, the chance of any alarm in a year, over all metrics, both
    directions and all looks, is at most `false_alarms`: each of 2 K CUSUMs has that much
    divided by 2 K.

    >>> round(Watch(metrics=("roc_auc",)).limit, 2)
    4.35
    """

    metrics: tuple[str, ...] = WATCHED
    false_alarms: float = 0.05
    looks_per_year: int = 12

    def __post_init__(self) -> None:
        require_type(self.metrics, tuple, "the metrics to watch", 'Write them as ("roc_auc",).')
        if not self.metrics:
            raise SettingInvalid("a watch needs a metric; found none. Write metrics=('roc_auc',).")
        for name in self.metrics:
            if name != GapSeries.metric:
                check_metric(name)
        if not 0.0 < self.false_alarms < 1.0:
            raise SettingInvalid(
                "the chance of false alarms in a year lies between 0 and 1; found "
                f"{self.false_alarms:g}. Usual is 0.05."
            )
        require_whole(self.looks_per_year, "looks a year", 1, 366)

    @property
    def limit(self) -> float:
        """What a CUSUM must reach."""
        rate = self.false_alarms / (2 * len(self.metrics))
        return cusum_limit(rate, self.looks_per_year)


@dataclass(frozen=True, slots=True)
class Alarm:
    """A metric that is not what it was."""

    metric: str
    at: str
    """The look at which it was raised."""
    since: str
    """The first look that seems to be different."""
    before: float
    """The metric over the looks before, and over those since."""
    after: float

    def sentence(self) -> str:
        """For a terminal or a log."""
        moved = "rose" if self.after > self.before else "fell"
        return (
            f"{self.at}: {self.metric} {moved} from {self.before:.4f} to {self.after:.4f}, "
            f"it seems since {self.since}."
        )


def find_alarms(history: History, watch: Watch) -> list[Alarm]:
    """All alarms of a history, in order of time; after one, its metric is watched anew.

    >>> import fedassay
    >>> from fedassay import Examples
    >>> labels, scores = [0, 1] * 500, [i / 1000 for i in range(1000)]
    >>> same = fedassay.simulate(labels, scores, seed=0)
    >>> find_alarms(History({"2026-09": same, "2026-10": same}), Watch())
    []
    """
    require_type(history, History, "a history", "History.load reads a folder.")
    require_type(watch, Watch, "a watch", "Use Watch().")
    found = [
        alarm
        for metric in watch.metrics
        for alarm in _of_series(_series(history, metric), watch.limit)
    ]
    return sorted(found, key=lambda alarm: (alarm.at, watch.metrics.index(alarm.metric)))


@dataclass(frozen=True, slots=True)
class _Levels:
    """A metric whose error is next to normal, on the scale where it is."""

    signs: ClassVar[tuple[float, ...]] = (1.0, -1.0)
    effects: SiteEffects

    @property
    def metric(self) -> str:
        return self.effects.metric

    @property
    def times(self) -> list[str]:
        return [each.site for each in self.effects.effects]

    def residuals(self, start: int) -> FloatArray:
        return recursive_residuals(self.effects.values[start:], self.effects.variances[start:])

    def figure(self, first: int, last: int) -> float:
        weights = 1.0 / self.effects.variances[first:last]
        mean = float((weights * self.effects.values[first:last]).sum() / weights.sum())
        return self.effects.scale.back(mean)


def _series(history: History, metric: str) -> _Levels | GapSeries:
    if metric == GapSeries.metric:
        return GapSeries.of(history)
    return _Levels(history.effects(metric))


def _of_series(series: _Levels | GapSeries, limit: float) -> Iterator[Alarm]:
    times = series.times
    # From `start` on nothing has changed, so far; from `fresh` on it is watched.
    start, fresh = 0, 1
    while fresh < len(times):
        residuals = series.residuals(start)[fresh - start - 1 :]
        places = [_first_alarm(sign * residuals, limit) for sign in series.signs]
        reached = min((place for place in places if place is not None), default=None)
        if reached is None:
            return
        at, since = fresh + reached[0], fresh + reached[1]
        before, after = series.figure(start, since), series.figure(since, at + 1)
        yield Alarm(series.metric, times[at], times[since], before, after)
        start, fresh = since, at + 1


def _first_alarm(residuals: FloatArray, limit: float) -> tuple[int, int] | None:
    """Where a CUSUM first reaches its limit, and where it last left 0 before that."""
    levels = cusum(residuals)
    over = np.flatnonzero(levels >= limit)
    if len(over) == 0:
        return None
    at = int(over[0])
    zeros = np.flatnonzero(levels[:at] == 0.0)
    return at, int(zeros[-1]) + 1 if len(zeros) else 0
