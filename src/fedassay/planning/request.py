"""What a user asks of a survey, checked once."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import floor

from fedassay.errors import SettingInvalid
from fedassay.examples import Examples, FloatArray
from fedassay.mechanisms import Privacy, Unit, check_epsilon
from fedassay.survey import MAX_CLIENTS


class Preset(Enum):
    """Which choices fill in what the user leaves open."""

    DEFAULT = "default"
    """The best we know."""
    PAPER = "paper"
    """As the paper did it: binary tree of height 10, naive prefix sums, 100 quantile buckets."""


class LevelChoice(Enum):
    """How a tree's levels share the clients (`app:scorehist`)."""

    EVERY = "every"
    """Every client reports on every level; epsilon is split."""
    BATCHES = "batches"
    """Clients are split into batches with one level each; each pays epsilon once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyRequest:
    """What a user asks of a survey; None leaves the choice to the planner."""

    privacy: Privacy = Privacy.SECURE
    epsilon: Fraction | None = None
    clients: int | None = None
    """How many reports are expected."""
    examples: int | None = None
    """How many examples they hold together; None means one each."""
    positive_rate: float | None = None
    auc: float | None = None
    """What ROC AUC to assume, of a calibrated binormal classifier; instead of a reference."""
    preset: Preset = Preset.DEFAULT
    levels: LevelChoice = LevelChoice.EVERY
    height: int | None = None
    fanout: int | None = None
    budget: tuple[Fraction, ...] | None = None
    """Shares of epsilon per level, top down."""
    buckets: int | None = None
    thresholds: tuple[float, ...] = ()
    reference: Examples | FloatArray | None = None
    unit: Unit = Unit()
    minimum_reports: int | None = None
    dropouts: Fraction = Fraction(1, 10)
    """Share of the clients that may stay away, where minimum_reports is left open."""
    colluders: int = 0
    allow_empty: bool = False
    level_by_hash: bool = False
    model_digest: str | None = None

    @property
    def fewest_reports(self) -> int:
        """What shared noise is sized for: minimum_reports, or all clients but the dropouts.

        >>> SurveyRequest(clients=1000).fewest_reports
        900
        """
        if self.minimum_reports is not None:
            return self.minimum_reports
        clients = self.clients or 2
        return max(floor(clients * (1 - self.dropouts)), min(clients, self.colluders + 1), 2)


def check_request(request: SurveyRequest) -> None:
    """Raise `SettingInvalid` unless the request can be kept.

    >>> check_request(SurveyRequest(clients=100))
    """
    height, fanout = request.height, request.fanout
    if height is not None and not 1 <= height <= 20:
        raise SettingInvalid(f"height must be from 1 to 20; found {height}.")
    if fanout is not None and not 2 <= fanout <= 1024:
        raise SettingInvalid(f"fan-out must be from 2 to 1024; found {fanout}.")
    if fanout is not None and height is None and request.preset is Preset.DEFAULT:
        raise SettingInvalid("a fan-out needs a height: the leaves are fanout ** height.")
    check_buckets(request.buckets)
    if not 0 <= request.dropouts < 1:
        raise SettingInvalid(
            f"the share of dropouts must be from 0 to below 1; found {float(request.dropouts):g}."
        )
    if request.preset is Preset.PAPER and request.reference is not None:
        raise SettingInvalid(
            "the paper preset uses a uniform grid; a reference does not go with it. "
            "Drop --reference, or use the default preset."
        )
    if request.minimum_reports is not None and request.minimum_reports < 1:
        raise SettingInvalid(
            f"minimum_reports must be at least 1; found {request.minimum_reports}."
        )
    for name, value in (("clients", request.clients), ("examples", request.examples)):
        if value is not None and not 1 <= value <= MAX_CLIENTS:
            raise SettingInvalid(f"{name} must be from 1 to {MAX_CLIENTS}; found {value}.")
    rate = request.positive_rate
    if rate is not None and not 0.0 < rate < 1.0:
        raise SettingInvalid(f"a positive rate must lie between 0 and 1; found {rate}.")
    if request.auc is not None:
        _check_auc(request)
    check_thresholds(request.thresholds)
    _check_privacy(request)


def _check_auc(request: SurveyRequest) -> None:
    if request.reference is not None:
        raise SettingInvalid(
            "a reference says how good the classifier is; an assumed AUC does not go with it. "
            "Drop --auc or --reference."
        )
    if request.auc is not None and not 0.5 < request.auc < 1.0:
        raise SettingInvalid(f"an assumed AUC must lie between 0.5 and 1; found {request.auc}.")


def _check_privacy(request: SurveyRequest) -> None:
    if request.privacy is Privacy.SECURE:
        if request.epsilon is not None:
            raise SettingInvalid(
                "exact sums spend no epsilon; found one. "
                "Use --privacy distributed or local, or drop --epsilon."
            )
        return
    if request.epsilon is None:
        raise SettingInvalid(
            f"{request.privacy.value} differential privacy needs an epsilon. Add --epsilon 1."
        )
    check_epsilon(request.epsilon)
    if request.privacy is Privacy.LOCAL:
        if request.colluders:
            raise SettingInvalid(
                "local privacy holds whatever others do; colluders do not go with it. Drop them."
            )
        return
    minimum, clients = request.minimum_reports, request.clients
    if minimum is None and clients is None:
        raise SettingInvalid(
            "noise shares are sized for a number of reports; found neither minimum_reports nor "
            "clients. Add --minimum-reports N, the fewest that may arrive."
        )
    sized_for = clients if minimum is None else minimum
    if sized_for is not None and sized_for < 2:
        raise SettingInvalid(
            f"minimum_reports must be at least 2; found {sized_for}. One client alone is local "
            "differential privacy."
        )
    if request.colluders >= (minimum or clients or 0):
        raise SettingInvalid(
            f"colluders must be fewer than the {minimum or clients} reports that noise is sized "
            f"for; found {request.colluders}. Raise minimum_reports, or trust more clients."
        )
    if minimum is not None and clients is not None and minimum > clients:
        raise SettingInvalid(
            f"minimum_reports must not exceed the {clients} clients there are; found {minimum}. "
            "Lower it, or find more clients."
        )


def check_buckets(buckets: int | None) -> None:
    """Raise unless a number of buckets, where one is given, is from 1 to 65536.

    >>> check_buckets(100)
    """
    if buckets is not None and not 1 <= buckets <= 2**16:
        raise SettingInvalid(f"buckets must be from 1 to 65536; found {buckets}.")


def check_thresholds(thresholds: Sequence[float]) -> None:
    """Raise unless all thresholds lie in [0, 1].

    >>> check_thresholds([0.2, 0.8])
    """
    for threshold in thresholds:
        if not 0.0 <= threshold <= 1.0:
            raise SettingInvalid(f"a threshold must lie in [0, 1]; found {threshold}. Scores do.")
