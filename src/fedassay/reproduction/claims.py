"""What the paper says of its figures, and how each claim is read from ours."""

from dataclasses import dataclass
from math import inf, sqrt

from fedassay.reproduction import areas, calibration_errors, costs, sweeps, threshold_errors
from fedassay.reproduction.figures import FIGURES
from fedassay.reproduction.findings import Find, local_prefix_variance, shared_prefix_variance
from fedassay.reproduction.readings import (
    alike_at,
    alike_elsewhere,
    at_least,
    at_most,
    best_within,
    changes,
    comparable,
    falls_per_level,
    first_below,
    flat_beyond,
    in_order,
    largest_gain,
    largest_of,
    meets,
    near_to,
    slope_within,
    slower,
    worse_elsewhere,
)
from fedassay.reproduction.settings import DISTRIBUTED, LOCAL, MODELS

_SECURE, _DISTRIBUTED, _LOCAL = (model.name for model in MODELS)
_HEIGHTS = (
    "A threshold within a leaf is read here by a straight line through the leaf, so that its width "
    "costs only its curvature, and the chance on which side its rows lie, which halves with every "
    "second level: the error is smaller from the start and falls more slowly, and shorter trees "
    "do. The rows *read at the nearest edge* are the same trees without that line, as Delta of "
    "`thm:pra` has it."
)
_ISOTONIC = (
    "Fitted to hundreds of thousands of rows that trained nothing, isotonic regression maps as "
    "well as binning does. With few rows it errs as in the paper, which does not say how many it "
    "had: its curve in `calib-pop` has the error for each number of rows."
)
_FANOUTS = (
    "It is the closed form that holds: a prefix takes (f - 1)/2 nodes of each level, and with "
    "fan-out 4 there are half as many levels to share epsilon or clients. Where cells are wide, "
    "as with few leaves, their width hides the gain, and ten repetitions do not show it."
)
_WHY_RATES = {
    sweeps.CALIBRATION: "The judging half's own sampling is in every ECE, and does not fall with "
    "the clients who fitted the map: once they are many, nothing falls any more.",
    sweeps.RATES: "Where hardly any row is above a threshold, as on November at the highest ones, "
    "precision is a ratio of noise, wrong by as much whatever M and epsilon are, and counts in the "
    "mean. Recall, which is over all positives, falls as it should (`pra-pop`).",
}
_LEAVES, _LAST, _SLACK = 4096, 1e9, 0.15


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


def _bound(slope: float) -> str:
    return f"slope {slope:.2f} or below" if slope else "slope 0"


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


def _locally(*, low: float, high: float) -> Find:
    return changes(
        _LOCAL,
        calibration_errors.RAW,
        calibration_errors.BINNING,
        20,
        calibration_errors.DEFAULT,
        low=low,
        high=high,
    )


CLAIMS = (
    *(
        Claim(figure="table1", paper=_bound(theory),
              text=f"{curve.capitalize()}, rate with M: {panel}",
              find=slope_within(panel, curve, -inf, theory + _SLACK), why=_WHY_RATES.get(panel, ""))
        for panel, curves in FIGURES["table1"].slopes.items()
        for curve, theory in curves.items()
    ),
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
          "million clients that is beyond 40 buckets, at an error far below the paper's 0.001; "
          "`auc-pop` has the clients for which the preset's error is that, and with the 40,000 of "
          "`--quick` it is flat from 20 buckets on."),
    Claim(figure="auc", text="Distributed: many uniform buckets do as well", paper="alike",
          find=comparable(_DISTRIBUTED, areas.UNIFORM, areas.QUANTILE, 200)),
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
    Claim(figure="auc-pop", text="Distributed: far above exact sums at 10,000 clients",
          paper="orders of magnitude",
          find=largest_of("ROC AUC", _DISTRIBUTED, [_SECURE], 10_000, least=10.0)),
    Claim(figure="auc-pop", text="Distributed would reach the error of exact sums",
          paper="at several million", find=meets("ROC AUC", _DISTRIBUTED, _SECURE, 1e6, 1e7),
          why="The preset's noise is smaller here than the paper's error of 0.001 at 100 buckets "
          "would have it (see above), so that fewer clients do."),
    Claim(figure="pra", text="Secure: precision at height 14", paper="below 1e-4",
          find=at_most(_SECURE, "precision", 14, 1e-4, "precision: default")),
    Claim(figure="pra", text="Secure: recall at height 14", paper="below 1e-4",
          find=at_most(_SECURE, "recall", 14, 1e-4, "recall: default")),
    Claim(figure="pra", text="Secure: accuracy at height 14", paper="below 1e-4",
          find=at_most(_SECURE, "accuracy", 14, 1e-4, "accuracy: default")),
    Claim(figure="pra", text="Secure: recall's error falls as 2^-h", paper="a tenth in 3.3 levels",
          find=falls_per_level(_SECURE, "recall", 2.5, 4.5), why=_HEIGHTS),
    Claim(figure="pra", text="Secure: recall's error falls as 2^-h, read at the nearest edge",
          paper="a tenth in 3.3 levels",
          find=falls_per_level(_SECURE, threshold_errors.NEAREST, 2.5, 4.5)),
    Claim(figure="pra", text="Secure: precision errs most, at height 10", paper="slightly more",
          find=largest_of(_SECURE, "precision", ("recall", "accuracy"), 10),
          why="Which of them errs most hangs on where positives lie: recall's error is over the "
          "positives alone, and where these are half of the rows it is twice that of accuracy, "
          "and above precision's wherever most rows are flagged."),
    Claim(figure="pra", text="Distributed: best height for recall", paper="10 to 12",
          find=best_within(_DISTRIBUTED, "recall", 9, 12), why=_HEIGHTS),
    Claim(figure="pra", text="Distributed: best height for recall, read at the nearest edge",
          paper="10 to 12", find=best_within(_DISTRIBUTED, threshold_errors.NEAREST, 9, 12)),
    Claim(figure="pra", text="Distributed: accuracy at height 10", paper="about 0.001",
          find=at_most(_DISTRIBUTED, "accuracy", 10, 2e-3, "accuracy: default")),
    Claim(figure="pra", text="Local: best height for recall", paper="8",
          find=best_within(_LOCAL, "recall", 7, 9), why=_HEIGHTS),
    Claim(figure="pra", text="Local: best height for recall, read at the nearest edge", paper="8",
          find=best_within(_LOCAL, threshold_errors.NEAREST, 7, 9)),
    Claim(figure="pra", text="Local: accuracy at height 8", paper="about 0.005",
          find=at_most(_LOCAL, "accuracy", 8, 1e-2, "accuracy: default")),
    Claim(figure="pra-pop", text="Secure: recall has no trend with M", paper="slope 0",
          find=slope_within(_SECURE, "recall", -0.25, 0.25, "recall: default"),
          why="Repetitions draw rows again, and on which side of a threshold its leaf's rows lie "
          "is chance: that adds at most 0.5/√(2^h P) for P positives, which falls as 1/√M."),
    Claim(figure="pra-pop", text="Distributed: recall's error falls as 1/M", paper="slope -1",
          find=slope_within(_DISTRIBUTED, "recall", -1.3, -0.7, "recall: default")),
    Claim(figure="pra-pop", text="Local: recall's error falls as 1/M", paper="slope -1",
          find=slope_within(_LOCAL, "recall", -1.3, -0.7, "recall: default"),
          why="Under local privacy every report brings noise of its own, which adds up to √M, or "
          "1/√M of the rows: with trees of one height the slope is -1/2. `thm:pra` itself has "
          "M^(-1/3) there."),
    Claim(figure="pra-pop", text="Distributed: clients for recall within 0.01",
          paper="above 10,000",
          find=first_below(_DISTRIBUTED, "recall", "recall: default", 0.01,
                           within_clients=(3e3, 3e4))),
    Claim(figure="pra-pop", text="Local: clients for recall within 0.01", paper="above 100,000",
          find=first_below(_LOCAL, "recall", "recall: default", 0.01,
                           within_clients=(3e4, 3e5))),
    Claim(figure="calib", text="Secure: ECE in 20 bins", paper="about 0.01",
          find=at_most(_SECURE, calibration_errors.BINNING, 20, 0.015,
                       calibration_errors.DEFAULT)),
    Claim(figure="calib", text="Secure: the number of bins matters little, 10 to 200",
          paper="flat", find=flat_beyond(_SECURE, calibration_errors.BINNING, 10),
          why="In ever narrower bins the judging half's own sampling shows: ECE of a perfect map "
          "grows nearly as the square root of the bins."),
    Claim(figure="calib", text="Secure: BBQ in 20 bins", paper="about 0.01",
          find=at_most(_SECURE, calibration_errors.BBQ, 20, 0.015, calibration_errors.DEFAULT)),
    Claim(figure="calib", text="Secure: one binning has nearly all of BBQ's weight",
          paper="often, all",
          find=at_least(_SECURE, calibration_errors.WEIGHT, 20, 0.8)),
    Claim(figure="calib", table="september", text="Uncalibrated scores", paper="0.1",
          find=near_to(_SECURE, calibration_errors.RAW, 20, 0.1)),
    Claim(figure="calib", table="november", text="Uncalibrated scores", paper="0.08",
          find=near_to(_SECURE, calibration_errors.RAW, 20, 0.08)),
    Claim(figure="calib", text="Distributed noise changes little", paper="alike",
          find=alike_elsewhere(_DISTRIBUTED, _SECURE, calibration_errors.BINNING, 20,
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
    Claim(figure="calib", table="september", text="Local: calibration in 20 buckets helps",
          paper="much better", find=_locally(low=0.0, high=0.7)),
    Claim(figure="calib", table="october", text="Local: calibration in 20 buckets does harm",
          paper="worse", find=_locally(low=1.0, high=inf)),
    Claim(figure="calib", table="november", text="Local: calibration in 20 buckets helps",
          paper="much better", find=_locally(low=0.0, high=0.7)),
    Claim(figure="calib", table="september", text="Isotonic regression on all rows helps little",
          paper="0.1 before, 0.04 after",
          find=_isotonic(low=0.3, high=inf), why=_ISOTONIC),
    Claim(figure="calib", table="october", text="Isotonic regression on all rows does harm",
          paper="worse", find=_isotonic(low=1.0, high=inf), why=_ISOTONIC),
    Claim(figure="calib", table="november", text="Isotonic regression on all rows helps",
          paper="better", find=_isotonic(low=0.0, high=0.7), why=_ISOTONIC),
    Claim(figure="calib-pop", text="Secure, distributed, local stand in that order",
          paper="in order",
          find=in_order(calibration_errors.PANEL, [model.name for model in MODELS], _default)),
    *(
        Claim(figure="calib-pop", text=f"{model.privacy.value.capitalize()}: falls with M",
              paper="falls",
              find=slope_within(calibration_errors.PANEL, model.name, -inf, 0.0,
                                _default(model.name)))
        for model in MODELS
    ),
    Claim(figure="calib-pop", text="Distributed converges to exact sums", paper="alike at last",
          find=comparable(calibration_errors.PANEL, _DISTRIBUTED, _SECURE, _LAST)),
    Claim(figure="calib-pop", text="Local falls more slowly than exact sums", paper="more slowly",
          find=slower(calibration_errors.PANEL, _LOCAL, _SECURE),
          why="Noise of local privacy falls as 1/√M with 20 buckets. Exact sums begin near the "
          "error that the judging half's own sampling leaves, below which nothing falls: theirs "
          "is the flatter curve, and the lower one."),
    *(
        Claim(figure="epsilon", paper=f"slope {theory:.2f} or below",
              text=f"{name.capitalize()}: {panel} follows the bound",
              find=slope_within(panel, name, -inf, theory + _SLACK, _default(name)),
              why=_WHY_RATES.get(panel, ""))
        for panel, theory in ((sweeps.AREA, -1.0), (sweeps.RATES, -2 / 3))
        for name in (DISTRIBUTED.privacy.value, LOCAL.privacy.value)
    ),
    Claim(figure="epsilon", text="Distributed: calibration does not hang on epsilon",
          paper="slope 0",
          find=slope_within(sweeps.CALIBRATION, DISTRIBUTED.privacy.value, -0.25, 0.25,
                            _default(DISTRIBUTED.privacy.value)),
          why="It does where noise is not small against a bucket's rows: the preset takes noisy "
          "counts at face value. With more clients the dependence moves to smaller epsilons."),
    Claim(figure="fanout", text="Distributed: fan-out 4 gains nothing, 4,096 leaves",
          paper="no gain", why=_FANOUTS,
          find=alike_at(_DISTRIBUTED, "fan-out 4", "fan-out 2", _LEAVES, predicted=sqrt(
              shared_prefix_variance(4, 6) / shared_prefix_variance(2, 12)))),
    Claim(figure="fanout", text="Local: fan-out 4 gains nothing, 4,096 leaves",
          paper="no gain", why=_FANOUTS,
          find=alike_at(_LOCAL, "fan-out 4", "fan-out 2", _LEAVES, predicted=sqrt(
              local_prefix_variance(4, 6, 5.0) / local_prefix_variance(2, 12, 5.0)))),
    *(
        Claim(figure="cost", text=f"A client's cost in ms, {model.privacy.value}",
              paper="milliseconds",
              find=at_most(costs.REPORT, model.name, 200, 10.0, _default(model.name)))
        for model in MODELS
    ),
)  # fmt: skip
"""In the order of the figures."""
