"""What the paper says of its figures, each held against ours: a row of the results page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from fedassay.reproduction import areas, calibration_errors, costs
from fedassay.reproduction.findings import (
    Curves,
    Find,
    alike_at,
    at_most,
    best_within,
    changes,
    flat_beyond,
    in_order,
    largest_gain,
    local_prefix_variance,
    shared_prefix_variance,
    slope_within,
    worse_elsewhere,
)
from fedassay.reproduction.pages import markdown_table
from fedassay.reproduction.results import Point
from fedassay.reproduction.settings import MODELS

_SECURE, _DISTRIBUTED, _LOCAL = (model.name for model in MODELS)
_VERDICTS = {True: "yes", False: "**no**", None: "cannot tell"}
_HEIGHTS = (
    "A threshold within a leaf is read here by a straight line through the leaf, so that its width "
    "costs only its curvature, and shorter trees do. Read at the nearest edge, as Delta of "
    "`thm:pra` has it, the best heights are the paper's: 12 under distributed privacy (0.00015; "
    "0.00008 by the line, at 8), 7 to 9 under local privacy (0.0036; 0.0023 by the line, at 4), "
    "all on October."
)
_ISOTONIC = (
    "Fitted to hundreds of thousands of rows that trained nothing, isotonic regression maps as "
    "well as binning does. An error of 0.04 is what a few hundred rows give (300: 0.05, 1,000: "
    "0.03, 10,000: 0.01 on each of the three tables); the paper does not say which rows it had."
)
_FANOUTS = (
    "It is the closed form that holds: a prefix takes (f - 1)/2 nodes of each level, and with "
    "fan-out 4 there are half as many levels to share epsilon or clients. Where cells are wide, "
    "as with few leaves, their width hides the gain, and ten repetitions do not show it."
)
_LEAVES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim: in our words, the paper's figure, and how it is read from a figure's points."""

    figure: str
    text: str
    paper: str
    find: Find
    table: str | None = None
    """The one of the paper's tables that it speaks of; None for all."""
    why: str = ""
    """What explains a disagreement, where there is one."""

    def speaks_of(self, table: str) -> bool:
        """Whether it is about a table: original files have their stand-in's name first."""
        return self.table is None or table.startswith(self.table)


def _default(name: str) -> str:
    return f"{name}: default"


def _isotonic(*, low: float, high: float) -> Find:
    return changes(
        _SECURE,
        calibration_errors.RAW,
        calibration_errors.ISOTONIC,
        20,
        calibration_errors.DEFAULT,
        low=low,
        high=high,
    )


CLAIMS = (
    Claim(figure="auc", text="Secure: error at 100 buckets", paper="1e-5",
          find=at_most(_SECURE, areas.QUANTILE, 100, 5e-5, areas.DEFAULT)),
    Claim(figure="auc", text="Secure: error falls as 1/B²", paper="slope -2",
          find=slope_within(_SECURE, areas.QUANTILE, -2.5, -1.5)),
    Claim(figure="auc", text="Secure: the worst case falls as 1/B", paper="slope -1",
          find=slope_within(_SECURE, areas.WORST, -1.2, -0.8)),
    Claim(figure="auc", text="Secure: quantile buckets beat uniform ones", paper="up to 10 times",
          find=largest_gain(_SECURE, areas.UNIFORM, areas.QUANTILE, 2.0),
          why="Scores that spread evenly leave quantile buckets nothing to gain: even buckets are "
          "then nearly deep ones, as on October, whose calibrated scores fill [0, 1]."),
    Claim(figure="auc", text="Distributed: error at 100 buckets", paper="about 0.001",
          find=at_most(_DISTRIBUTED, areas.QUANTILE, 100, 2e-3, areas.DEFAULT)),
    Claim(figure="auc", text="Distributed: flat after 20 to 40 buckets", paper="flat",
          find=flat_beyond(_DISTRIBUTED, areas.QUANTILE, 40),
          why="The curve flattens where noise, which falls as 1/M, meets 1/(3B²). With half a "
          "million clients that is near 60 buckets, at an error far below the paper's 0.001; "
          "0.001 is what the preset gives for 20,000 to 30,000 clients (`auc-pop`), and with "
          "40,000 it is flat from 20 buckets on (`--quick`)."),
    Claim(figure="auc", text="Local: error at 100 buckets", paper="about 0.005",
          find=at_most(_LOCAL, areas.QUANTILE, 100, 1e-2, areas.DEFAULT)),
    Claim(figure="auc", text="Local: flat beyond 20 buckets", paper="flat",
          find=flat_beyond(_LOCAL, areas.QUANTILE, 20)),
    Claim(figure="auc-pop", text="Distributed: error falls as 1/M", paper="slope -1",
          find=slope_within("ROC AUC", _DISTRIBUTED, -1.3, -0.7, _default(_DISTRIBUTED))),
    Claim(figure="auc-pop", text="Local: falls, faster than the bound's 1/√M", paper="below -0.5",
          find=slope_within("ROC AUC", _LOCAL, -1.3, -0.4, _default(_LOCAL))),
    Claim(figure="auc-pop", text="Secure: no trend with M", paper="slope 0",
          find=slope_within("ROC AUC", _SECURE, -0.25, 0.25, _default(_SECURE)),
          why="Repetitions draw rows again, and by chance pairs within a bucket are not half in "
          "order: that adds 0.58/(B√M), which is above the bias of 1/(3B²) for fewer than 3B² "
          "clients, 30,000 here."),
    Claim(figure="pra", text="Secure: precision at height 14", paper="below 1e-4",
          find=at_most(_SECURE, "precision", 14, 1e-4, "precision: default")),
    Claim(figure="pra", text="Secure: recall at height 14", paper="below 1e-4",
          find=at_most(_SECURE, "recall", 14, 1e-4, "recall: default")),
    Claim(figure="pra", text="Secure: accuracy at height 14", paper="below 1e-4",
          find=at_most(_SECURE, "accuracy", 14, 1e-4, "accuracy: default")),
    Claim(figure="pra", text="Distributed: best height for recall", paper="10 to 12",
          find=best_within(_DISTRIBUTED, "recall", 9, 12), why=_HEIGHTS),
    Claim(figure="pra", text="Distributed: accuracy at height 10", paper="about 0.001",
          find=at_most(_DISTRIBUTED, "accuracy", 10, 2e-3, "accuracy: default")),
    Claim(figure="pra", text="Local: best height for recall", paper="8",
          find=best_within(_LOCAL, "recall", 7, 9), why=_HEIGHTS),
    Claim(figure="pra", text="Local: accuracy at height 8", paper="about 0.005",
          find=at_most(_LOCAL, "accuracy", 8, 1e-2, "accuracy: default")),
    Claim(figure="pra-pop", text="Secure: recall has no trend with M", paper="slope 0",
          find=slope_within(_SECURE, "recall", -0.25, 0.25, "recall: default"),
          why="Repetitions draw rows again, and on which side of a threshold its leaf's rows lie "
          "is chance: that adds at most 0.5/√(2^h P) for P positives, which falls as 1/√M."),
    Claim(figure="pra-pop", text="Distributed: recall's error falls as 1/M", paper="slope -1",
          find=slope_within(_DISTRIBUTED, "recall", -1.3, -0.7, "recall: default")),
    Claim(figure="calib", text="Secure: ECE in 20 bins", paper="about 0.01",
          find=at_most(_SECURE, calibration_errors.BINNING, 20, 0.015,
                       calibration_errors.DEFAULT)),
    Claim(figure="calib", text="Distributed: ECE in 20 bins", paper="about 0.01",
          find=at_most(_DISTRIBUTED, calibration_errors.BINNING, 20, 0.015,
                       calibration_errors.DEFAULT)),
    Claim(figure="calib", text="Local: ECE with 10 buckets", paper="about 0.02",
          find=at_most(_LOCAL, calibration_errors.BINNING, 10, 0.03,
                       calibration_errors.DEFAULT)),
    Claim(figure="calib", text="Local noise misleads BBQ", paper="worse",
          find=worse_elsewhere(_LOCAL, _SECURE, calibration_errors.BBQ, 20,
                               calibration_errors.DEFAULT)),
    Claim(figure="calib", table="september", text="Isotonic regression on all rows helps little",
          paper="0.1 before, 0.04 after",
          find=_isotonic(low=0.3, high=np.inf), why=_ISOTONIC),
    Claim(figure="calib", table="october", text="Isotonic regression on all rows does harm",
          paper="worse", find=_isotonic(low=1.0, high=np.inf), why=_ISOTONIC),
    Claim(figure="calib", table="november", text="Isotonic regression on all rows helps",
          paper="better", find=_isotonic(low=0.0, high=0.7), why=_ISOTONIC),
    Claim(figure="calib-pop", text="Secure, distributed, local stand in that order",
          paper="in order",
          find=in_order(calibration_errors.PANEL, [model.name for model in MODELS], _default)),
    Claim(figure="fanout", text="Distributed: fan-out 4 gains nothing, 4,096 leaves",
          paper="no gain", why=_FANOUTS,
          find=alike_at(_DISTRIBUTED, "fan-out 4", "fan-out 2", _LEAVES, predicted=sqrt(
              shared_prefix_variance(4, 6) / shared_prefix_variance(2, 12)))),
    Claim(figure="fanout", text="Local: fan-out 4 gains nothing, 4,096 leaves",
          paper="no gain", why=_FANOUTS,
          find=alike_at(_LOCAL, "fan-out 4", "fan-out 2", _LEAVES, predicted=sqrt(
              local_prefix_variance(4, 6, 5.0) / local_prefix_variance(2, 12, 5.0)))),
    Claim(figure="cost", text="A client's cost, local privacy", paper="milliseconds",
          find=at_most(costs.REPORT, _LOCAL, 200, 10.0, _default(_LOCAL))),
)  # fmt: skip
"""In the order of the figures."""


def results_page(figures: Mapping[str, Sequence[Point]], *, quick: bool) -> str:
    """Every claim whose figure was measured, a row for each table, and what explains the rest."""
    body, reasons = [], dict[str, str]()
    for claim in CLAIMS:
        points = figures.get(claim.figure, ())
        for data in filter(claim.speaks_of, dict.fromkeys(point.data for point in points)):
            found = claim.find(Curves([point for point in points if point.data == data]))
            verdict = _VERDICTS[found.agrees]
            body.append(
                [claim.text, claim.paper, data, found.preset, found.default, verdict, claim.figure]
            )
            if found.agrees is False and claim.why:
                reasons[claim.text] = claim.why
    agreed, open_ = (sum(_VERDICTS[each] in row for row in body) for each in (True, None))
    size = "a quick run, for a first look" if quick else "the paper's settings"
    header = ["claim", "paper", "table", "our paper preset", "our default", "agrees", "figure"]
    text = (
        "# The paper's claims, measured again\n\n"
        f"Made by `fedassay reproduce` ({size}) from the JSON of its figures: mean ± half "
        "of its 95 % interval over repetitions. The default spends the same epsilon on the same "
        "clients. *Agrees* is whether the paper preset does what the paper says, within a factor "
        f"of two or so: {agreed} of {len(body)} rows do, and {open_} need more repetitions to "
        f"tell.\n\n{markdown_table(header, body)}\n"
    )
    if reasons:
        listed = "\n".join(f"- *{claim}*: {why}" for claim, why in reasons.items())
        text += f"\n## Where ours disagrees, and why\n\n{listed}\n"
    return text
