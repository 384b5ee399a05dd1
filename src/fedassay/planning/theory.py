"""The paper's results as functions: rates, best numbers of buckets, heights (`tab:results`).

Every function gives what stands inside the O(); `measured` gives the factor before it, as
`python -m experiments.theory` measured it on a balanced classifier, written to
`data/theory.json` and never typed. All rates assume balanced input (`sec:defs`).
"""

import json
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from importlib.resources import files
from math import exp, sqrt
from typing import Literal

from fedassay.calibration.binning import bucket_guideline
from fedassay.checks import require_member, require_number
from fedassay.errors import SettingInvalid
from fedassay.mechanisms import Privacy

_HEIGHTS = range(1, 31)
PaperModel = Literal[Privacy.SECURE, Privacy.DISTRIBUTED, Privacy.LOCAL]
PAPER_MODELS: tuple[PaperModel, ...] = (Privacy.SECURE, Privacy.DISTRIBUTED, Privacy.LOCAL)
"""The privacy models that the paper has results for."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a rate depends on."""

    privacy: Privacy
    clients: int
    epsilon: float = 1.0
    _: KW_ONLY
    buckets: int = 100
    height: int = 10

    def __post_init__(self) -> None:
        require_member(self.privacy, Privacy, "a case's privacy", door="fedassay.plan")
        for name in ("clients", "epsilon", "buckets", "height"):
            value = require_number(getattr(self, name), f"a case's {name}")
            if not value > 0:
                raise SettingInvalid(f"{name} must be positive; found {value:g}. Raise it.")

    @property
    def model(self) -> PaperModel:
        """The privacy model, which must be one that the paper has results for."""
        match self.privacy:
            case Privacy.SECURE | Privacy.DISTRIBUTED | Privacy.LOCAL:
                return self.privacy
            case Privacy.SITE | Privacy.SHUFFLED:
                raise SettingInvalid(
                    "the paper has results for secure, distributed and local privacy; found "
                    f"{self.privacy.value}. fedassay.plan predicts errors for all."
                )


def ratio_bound(ratio: float, *, above: float, below: float) -> float:
    """How far a ratio can be off (`fact:ratio`, `eq:approxbound`).

    `above` and `below` are the errors of its numerator and denominator as shares of the true
    denominator; `below` may be at most one half.

    >>> ratio_bound(0.5, above=0.1, below=0.1)
    0.22...
    """
    if not 0.0 <= below <= 0.5 or above < 0.0:
        raise SettingInvalid(
            "the denominator's error must be at most half of it, and errors not negative; found "
            f"{below:g} and {above:g}."
        )
    return 2.0 * ratio * below + above + 2.0 * above * below


def given_classifier(case: Case) -> float:
    """Precision, recall and accuracy of a given classifier (`sec:pramain`, its lemma).

    >>> given_classifier(Case(Privacy.DISTRIBUTED, 1000))
    0.001
    """
    match case.model:
        case Privacy.SECURE:
            return 0.0
        case Privacy.DISTRIBUTED:
            return 1.0 / (case.epsilon * case.clients)
        case Privacy.LOCAL:
            return 1.0 / (case.epsilon * sqrt(case.clients))


def threshold_metrics(case: Case) -> float:
    """Precision, recall and accuracy at any threshold, with the best buckets (`thm:pra`).

    >>> threshold_metrics(Case(Privacy.SECURE, 1000, buckets=50))
    0.02
    """
    match case.model:
        case Privacy.SECURE:
            return 1.0 / case.buckets
        case Privacy.DISTRIBUTED:
            return _power(case.epsilon * case.clients, -2 / 3)
        case Privacy.LOCAL:
            return _power(case.epsilon, -2 / 3) * _power(case.clients, -1 / 3)


def threshold_buckets(case: Case) -> int:
    """How many buckets balance noise and binning (proof of `thm:pra`).

    >>> threshold_buckets(Case(Privacy.LOCAL, 1_000_000))
    100
    """
    match case.model:
        case Privacy.SECURE:
            raise SettingInvalid("without noise more buckets are always better (`thm:pra`).")
        case Privacy.DISTRIBUTED:
            best = _power(case.epsilon * case.clients, 2 / 3)
        case Privacy.LOCAL:
            best = _power(case.epsilon, 2 / 3) * _power(case.clients, 1 / 3)
    return max(1, round(best))


def threshold_shift(case: Case) -> float:
    """Delta: how far the threshold answered for may be from the one asked for (`thm:pra`).

    It is also how well bucket boundaries are found (`app:scorehist`).

    >>> threshold_shift(Case(Privacy.SECURE, 1000, height=4))
    0.0625
    """
    resolution = _power(2.0, -case.height)
    match case.model:
        case Privacy.SECURE:
            return resolution
        case Privacy.DISTRIBUTED:
            return _power(case.height, 1.5) / (case.epsilon * case.clients) + resolution
        case Privacy.LOCAL:
            return case.height / (case.epsilon * sqrt(case.clients)) + resolution


def best_height(case: Case) -> int:
    """The height with the smallest Delta (`app:scorehist`).

    >>> best_height(Case(Privacy.DISTRIBUTED, 100_000)), best_height(Case(Privacy.LOCAL, 100_000))
    (14, 8)
    """
    if not case.privacy.spends_epsilon:
        raise SettingInvalid("without noise a taller tree is always better (`app:scorehist`).")
    shifts = {height: threshold_shift(replace(case, height=height)) for height in _HEIGHTS}
    return min(shifts, key=lambda height: shifts[height])


def auc_worst_case(buckets: int) -> float:
    """ROC AUC from B quantile buckets however scores lie inside them (`lem:auc`): 1/(2B).

    >>> auc_worst_case(50)
    0.01
    """
    _check_buckets(buckets)
    return 0.5 / buckets


def auc_well_behaved(buckets: int) -> float:
    """ROC AUC from B quantile buckets of a well-behaved distribution (`thm:aucbetter`).

    >>> auc_well_behaved(100)
    0.0001
    """
    _check_buckets(buckets)
    return 1.0 / buckets**2


def auc(case: Case) -> float:
    """ROC AUC in each model (`thm:aucbetter`, `thm:auccdp`, `thm:aucldp`).

    >>> auc(Case(Privacy.LOCAL, 10_000, epsilon=1.0, height=10))
    0.1
    """
    match case.model:
        case Privacy.SECURE:
            return auc_well_behaved(case.buckets)
        case Privacy.DISTRIBUTED:
            return (1.0 / case.epsilon + 1.0 / case.buckets) / case.clients
        case Privacy.LOCAL:
            return case.height / (case.epsilon * sqrt(case.clients))


def product_variance(mean_x: float, variance_x: float, mean_y: float, variance_y: float) -> float:
    """The variance of a product of independent variables (`eq:varproduct`).

    >>> product_variance(0.0, 2.0, 3.0, 1.0)
    20.0
    """
    return variance_x * variance_y + variance_x * mean_y**2 + variance_y * mean_x**2


def local_variance(epsilon: float, height: int) -> float:
    """V_epsilon of the proof of `thm:aucldp`, as the paper has it.

    Differs: unary encoding's variance per report is four times this, and a cell's own count is
    added (`mechanisms.UnaryEncoding`); the planner uses that.

    >>> from math import log
    >>> round(local_variance(log(2.0), 3), 6)
    18.0
    """
    odds = exp(epsilon)
    return height**2 * odds / (odds - 1.0) ** 2


def auc_buckets_local(case: Case) -> float:
    """Up to how many buckets the noise of products stays small (proof of `thm:aucldp`).

    >>> from math import log
    >>> round(auc_buckets_local(Case(Privacy.LOCAL, 1800, epsilon=log(2.0), height=3)), 6)
    10.0
    """
    return sqrt(case.clients / local_variance(case.epsilon, case.height))


def calibration_error(case: Case) -> float:
    """Expected calibration error after binning (`thm:calib:secagg`, `thm:calib:dp`).

    >>> round(calibration_error(Case(Privacy.SECURE, 1000)), 6)
    0.1
    """
    sampling = _power(case.clients, -1 / 3)
    match case.model:
        case Privacy.SECURE:
            return sampling
        case Privacy.DISTRIBUTED:
            return sampling + 1.0 / (case.epsilon * _power(case.clients, 2 / 3))
        case Privacy.LOCAL:
            return 1.0 / sqrt(case.epsilon * sqrt(case.clients))


def calibration_buckets(case: Case) -> int:
    """How many buckets balance sampling, noise and width (proofs of both theorems).

    >>> calibration_buckets(Case(Privacy.SECURE, 1000))
    10
    """
    local_epsilon = case.epsilon if case.privacy.is_local else None
    return bucket_guideline(case.clients, local_epsilon=local_epsilon)


RESULTS = {
    "given_classifier": given_classifier,
    "threshold_metrics": threshold_metrics,
    "auc": auc,
    "calibration_error": calibration_error,
}
"""The four rows of `tab:results`."""


@dataclass(frozen=True, slots=True)
class Constant:
    """The factor before a rate: mean absolute error over rate, over several cases."""

    mean: float
    """The geometric mean over the cases."""
    smallest: float
    largest: float


@cache
def _constants() -> dict[str, dict[str, Constant]]:
    content = json.loads((files("fedassay") / "data" / "theory.json").read_text("utf-8"))
    return {
        result: {privacy: Constant(**values) for privacy, values in by_privacy.items()}
        for result, by_privacy in content["constants"].items()
    }


def measured(result: str, privacy: Privacy) -> Constant:
    """The constant beside the O() of a row of `tab:results`, as measured.

    >>> measured("auc", Privacy.LOCAL).mean > 0.0
    True
    """
    constants = _constants()
    if result not in constants or privacy.value not in constants[result]:
        raise SettingInvalid(
            f"constants are measured for {', '.join(constants)}; found {result[:40]!r} under "
            f"{privacy.value}. A given classifier is exact under secure."
        )
    return constants[result][privacy.value]


def _power(base: float, exponent: float) -> float:
    return float(base**exponent)


def _check_buckets(buckets: int) -> None:
    if buckets < 1:
        raise SettingInvalid(f"buckets must be at least 1; found {buckets}.")
