"""A model that gets worse in September, and the alarm that says so."""

import numpy as np

import fedassay
from fedassay.tracking import History, Watch
from fedassay.tracking.alarms import find_alarms
from fedassay.tracking.displays import HistoryDisplay

generator = np.random.default_rng(0)


def month(separation: float) -> fedassay.Assessment:
    """Eight thousand rows of one month, at epsilon 1."""
    labels = generator.integers(0, 2, 8000)
    scores = 1 / (1 + np.exp(-(separation * (labels - 0.5) + generator.normal(size=8000))))
    return fedassay.simulate(labels, scores, privacy="distributed", epsilon=1, steps=1, seed=1)


months = {f"2026-{number:02}": month(1.5 if number < 9 else 1.2) for number in range(1, 13)}
history = History(months)
alarms = find_alarms(history, Watch(metrics=("roc_auc",)))
figure = HistoryDisplay.from_history(history, alarms=alarms, name="model").figure_
