"""Assay binary classifiers on data nobody may collect.

Metrics, curves and calibration from score histograms gathered under secure aggregation,
distributed or local differential privacy, after Cormode and Markov, "Federated
Calibration and Evaluation of Binary Classifiers".

>>> import fedassay
>>> survey = fedassay.design_survey(fedassay.SurveyRequest()).survey
>>> survey.guarantee.epsilon is None
True
"""

from fractions import Fraction

from fedassay.assessment import Assessment
from fedassay.client import Answer, ClientPolicy, answer
from fedassay.decoding import DecodeOptions, decode
from fedassay.errors import FedassayError
from fedassay.estimate import Estimate, Interval, NotEnoughData
from fedassay.examples import Examples
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy, Interleaved
from fedassay.histogram import ScoreHistogram
from fedassay.ledger import Budget, Ledger, LedgerAccount, Part, Window
from fedassay.mechanisms import (
    Exact,
    Guarantee,
    Law,
    Polya,
    Privacy,
    RandomizedResponse,
    UnaryEncoding,
    Unit,
    UnitKind,
)
from fedassay.planning.request import LevelChoice, Preset, SurveyRequest
from fedassay.planning.search import (
    SurveyDesign,
    design_survey,
)
from fedassay.randomness import SystemRandomness
from fedassay.survey import EveryLevel, OneLevel, Survey
from fedassay.tally import Tally
from fedassay.wire import Block, Report

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Assessment",
    "Block",
    "Budget",
    "ClientPolicy",
    "DecodeOptions",
    "Estimate",
    "EveryLevel",
    "Exact",
    "Examples",
    "FedassayError",
    "Fraction",
    "Grid",
    "Guarantee",
    "Hierarchy",
    "Interleaved",
    "Interval",
    "Law",
    "Ledger",
    "LedgerAccount",
    "LevelChoice",
    "NotEnoughData",
    "OneLevel",
    "Part",
    "Polya",
    "Preset",
    "Privacy",
    "RandomizedResponse",
    "Report",
    "ScoreHistogram",
    "Survey",
    "SurveyDesign",
    "SurveyRequest",
    "SystemRandomness",
    "Tally",
    "UnaryEncoding",
    "Unit",
    "UnitKind",
    "Window",
    "__version__",
    "answer",
    "decode",
    "design_survey",
]
