"""One model over time: a history of assessments, alarms that know their noise, and advice."""

from fedassay.tracking.advice import Action, Advice, advise
from fedassay.tracking.alarms import Alarm, Watch
from fedassay.tracking.delay import median_delay
from fedassay.tracking.history import History
from fedassay.tracking.trends import trend

__all__ = ["Action", "Advice", "Alarm", "History", "Watch", "advise", "median_delay", "trend"]
