"""Assay binary classifiers on data nobody may collect.

Metrics, curves and calibration from score histograms gathered under secure aggregation,
distributed or local differential privacy, after Cormode and Markov, "Federated
Calibration and Evaluation of Binary Classifiers".

>>> import fedassay
>>> result = fedassay.simulate([0, 1, 0, 1] * 50, [0.1, 0.3, 0.6, 0.9] * 50, seed=0)
>>> print(result["recall@0.5"])
0.500 [0.404, 0.596]

Names are loaded when they are first used: `import fedassay` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

    from fedassay import calibration, errors, ledger, metrics, planning, sites, tracking
    from fedassay.api import (
        answer,
        new_survey,
        plan,
        simulate,
        tally_answers,
        write_report,
    )
    from fedassay.api_classes import simulate_classes
    from fedassay.api_files import load, shuffle_answers
    from fedassay.api_pairs import tally_pair
    from fedassay.assessment import Assessment
    from fedassay.calibration.calibrator import Calibrator, Method
    from fedassay.client import Answer, ClientPolicy
    from fedassay.comparison.gate import Baseline, check
    from fedassay.comparison.side_by_side import compare
    from fedassay.decoding import DecodeOptions
    from fedassay.errors import FedassayError
    from fedassay.estimate import Estimate, Interval, NotEnoughData, TooCoarse
    from fedassay.examples import Examples
    from fedassay.grid import Grid
    from fedassay.groups.gaps import compare_groups
    from fedassay.hierarchy import Hierarchy, Interleaved
    from fedassay.histogram import ScoreHistogram
    from fedassay.ledger import Budget, Ledger, LedgerAccount, Part, Window
    from fedassay.level_policy import EveryLevel, OneLevel
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
    from fedassay.paired.assessment import PairedAssessment
    from fedassay.planning.plan import Plan
    from fedassay.planning.request import LevelChoice, Preset, Steps, SurveyRequest
    from fedassay.planning.search import SurveyDesign
    from fedassay.randomness import SystemRandomness
    from fedassay.survey import Survey
    from fedassay.tally import Tally
    from fedassay.wire import Block, Report

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Assessment",
    "Baseline",
    "Block",
    "Budget",
    "Calibrator",
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
    "Method",
    "NotEnoughData",
    "OneLevel",
    "PairedAssessment",
    "Part",
    "Plan",
    "Polya",
    "Preset",
    "Privacy",
    "RandomizedResponse",
    "Report",
    "ScoreHistogram",
    "Steps",
    "Survey",
    "SurveyDesign",
    "SurveyRequest",
    "SystemRandomness",
    "Tally",
    "TooCoarse",
    "UnaryEncoding",
    "Unit",
    "UnitKind",
    "Window",
    "__version__",
    "answer",
    "calibration",
    "check",
    "compare",
    "compare_groups",
    "errors",
    "ledger",
    "load",
    "metrics",
    "new_survey",
    "plan",
    "planning",
    "shuffle_answers",
    "simulate",
    "simulate_classes",
    "sites",
    "tally_answers",
    "tally_pair",
    "tracking",
    "write_report",
]

_ROOMS = ("calibration", "errors", "ledger", "metrics", "planning", "sites", "tracking")
# Where each name lives; a test compares this with the imports above.
_NAMES_OF = {
    "fractions": ("Fraction",),
    "fedassay.api": (
        "answer",
        "new_survey",
        "plan",
        "simulate",
        "tally_answers",
        "write_report",
    ),
    "fedassay.api_classes": ("simulate_classes",),
    "fedassay.api_files": ("load", "shuffle_answers"),
    "fedassay.api_pairs": ("tally_pair",),
    "fedassay.assessment": ("Assessment",),
    "fedassay.calibration.calibrator": ("Calibrator", "Method"),
    "fedassay.client": ("Answer", "ClientPolicy"),
    "fedassay.comparison.gate": ("Baseline", "check"),
    "fedassay.comparison.side_by_side": ("compare",),
    "fedassay.decoding": ("DecodeOptions",),
    "fedassay.errors": ("FedassayError",),
    "fedassay.estimate": ("Estimate", "Interval", "NotEnoughData", "TooCoarse"),
    "fedassay.examples": ("Examples",),
    "fedassay.grid": ("Grid",),
    "fedassay.groups.gaps": ("compare_groups",),
    "fedassay.hierarchy": ("Hierarchy", "Interleaved"),
    "fedassay.histogram": ("ScoreHistogram",),
    "fedassay.ledger": ("Budget", "Ledger", "LedgerAccount", "Part", "Window"),
    "fedassay.mechanisms": (
        "Exact",
        "Guarantee",
        "Law",
        "Polya",
        "Privacy",
        "RandomizedResponse",
        "UnaryEncoding",
        "Unit",
        "UnitKind",
    ),
    "fedassay.paired.assessment": ("PairedAssessment",),
    "fedassay.planning.plan": ("Plan",),
    "fedassay.planning.request": ("LevelChoice", "Preset", "Steps", "SurveyRequest"),
    "fedassay.planning.search": ("SurveyDesign",),
    "fedassay.randomness": ("SystemRandomness",),
    "fedassay.survey": ("EveryLevel", "OneLevel", "Survey"),
    "fedassay.tally": ("Tally",),
    "fedassay.wire": ("Block", "Report"),
}
_HOME_OF = {name: home for home, names in _NAMES_OF.items() for name in names}


if not TYPE_CHECKING:  # so that a checker sees what is not there

    def __getattr__(name: str) -> object:
        if name in _ROOMS:
            return import_module(f"fedassay.{name}")
        if name not in _HOME_OF:
            raise AttributeError(f"module 'fedassay' has no attribute {name!r}")
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
