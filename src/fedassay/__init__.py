"""Assay binary classifiers on data nobody may collect.

Metrics, curves and calibration from score histograms gathered under secure aggregation,
distributed or local differential privacy, after Cormode and Markov, "Federated
Calibration and Evaluation of Binary Classifiers".

>>> import fedassay
>>> survey = fedassay.choose(fedassay.Request()).survey
>>> survey.guarantee.epsilon is None
True
"""

from fedassay.assessment import Assessment
from fedassay.client import ClientPolicy, answer
from fedassay.decode import Readout, decode
from fedassay.errors import FedassayError
from fedassay.estimate import Estimate, Interval, NotEnoughData
from fedassay.examples import Examples
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Exact, Guarantee, Law, Unit
from fedassay.planner import Choice, Preset, Privacy, Request, choose
from fedassay.randomness import SystemRandomness
from fedassay.survey import Survey
from fedassay.tally import Tally
from fedassay.wire import Report

__version__ = "0.1.0"

__all__ = [
    "Assessment",
    "Choice",
    "ClientPolicy",
    "Estimate",
    "Exact",
    "Examples",
    "FedassayError",
    "Grid",
    "Guarantee",
    "Hierarchy",
    "Interval",
    "Law",
    "NotEnoughData",
    "Preset",
    "Privacy",
    "Readout",
    "Report",
    "Request",
    "ScoreHistogram",
    "Survey",
    "SystemRandomness",
    "Tally",
    "Unit",
    "__version__",
    "answer",
    "choose",
    "decode",
]
