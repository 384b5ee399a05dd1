"""What a user asks of a survey, checked once."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import floor

import numpy as np

from fedassay.checks import (
    check_model_digest,
    require_fraction,
    require_member,
    require_number,
    require_thresholds,
    require_type,
    require_whole,
)
from fedassay.decoding import MAX_BUCKETS
from fedassay.errors import SettingInvalid
from fedassay.examples import Examples, FloatArray, checked_scores
from fedassay.group_names import GroupNames
from fedassay.mechanisms import Privacy, Unit, UnitKind, check_epsilon
from fedassay.mechanisms.shuffled_promise import check_delta
from fedassay.nesting import MOST_SMALLEST_CELL
from fedassay.planning.crowd_rules import check_crowd, check_of_shuffled
from fedassay.survey import MAX_CLIENTS
from fedassay.survey_moments import FEWEST_HONEST, SiteMoments

SMALLEST_CELL = 10
"""Of exact sums, unless a survey says otherwise: what hospitals' rules ask for."""
ROWS_ASSUMED = 10_000
"""That exact sums are over, where nobody says how many."""


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


class Steps(Enum):
    """How many surveys ask for the scores: the first of two finds where they lie."""

    AUTO = "auto"
    """Two where that is predicted to pay."""
    ONE = "1"
    TWO = "2"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyRequest:
    """What a user asks of a survey; None leaves the choice to the planner.

    >>> SurveyRequest(privacy="local")
    Traceback (most recent call last):
    fedassay.errors.SettingInvalid: a request's privacy must be a Privacy; found 'local'. Write ...
    """

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
    steps: Steps = Steps.ONE
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
    smallest_cell: int | None = None
    """Of exact sums no smaller count is published; 0 or 1 for any, None for 10."""
    colluders: int = 0
    allow_empty: bool = False
    level_by_hash: bool = False
    model_digest: str | None = None
    sum_only: bool = False
    """Under site privacy: whether nobody may see more than the sum over sites all the same."""
    groups: GroupNames | None = None
    """Which groups are told apart, each with cells of its own."""
    site_moments: bool = False
    """Whether sites add moments of their metrics to exact sums, so that their spread shows."""
    delta: Fraction | None = None
    """Under shuffled privacy: the chance that epsilon says nothing about; None for 1e-8."""
    largest_local_epsilon: Fraction | None = None
    """Under shuffled privacy: the most that a report may cost alone; None for 5."""

    def __post_init__(self) -> None:
        """Refuse what can never be kept; what is still open is left to `open_settings`."""
        _check_types(self)
        _check_ranges(self)
        given = {name: getattr(self, name) for name in ("delta", "largest_local_epsilon")}
        check_of_shuffled(self.privacy, given)
        _check_contradictions(self)

    @property
    def fixes_levels(self) -> str:
        """What the request says that only one survey can keep; nothing where two may do."""
        given = {
            "a reference": self.reference is not None,
            "the paper preset": self.preset is Preset.PAPER,
            "a height": self.height is not None,
            "a budget": self.budget is not None,
            "batches": self.levels is LevelChoice.BATCHES,
            "groups": self.groups is not None,
            "shuffled privacy": self.privacy is Privacy.SHUFFLED,
            "exact sums": not self.privacy.spends_epsilon,
            "unit patient under local privacy": self.privacy.is_local
            and self.unit.kind is UnitKind.PATIENT,
        }
        return next((name for name, is_given in given.items() if is_given), "")

    @property
    def smallest(self) -> int:
        """The smallest cell that is published, 0 where none is too small or noise protects all.

        >>> SurveyRequest().smallest, SurveyRequest(smallest_cell=1).smallest
        (10, 0)
        """
        if self.privacy.spends_epsilon or (self.smallest_cell or 2) < 2:
            return 0
        return SMALLEST_CELL if self.smallest_cell is None else self.smallest_cell

    @property
    def rows_expected(self) -> int:
        """How many rows exact sums hold together: as said, or at least some thousands.

        >>> SurveyRequest(clients=14).rows_expected
        10000
        """
        return self.examples or max(self.clients or 0, ROWS_ASSUMED)

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


def simulated_smallest(preset: Preset, height: int | None, smallest_cell: int | None) -> int | None:
    """A simulation's smallest cell: none on the paper's grid and on even ones, as it then says.

    >>> simulated_smallest(Preset.PAPER, None, None), simulated_smallest(Preset.DEFAULT, None, 5)
    (0, 5)
    """
    is_even = preset is Preset.PAPER or height is not None
    return 0 if smallest_cell is None and is_even else smallest_cell


def _check_types(request: SurveyRequest) -> None:
    """Choices are members of their types, never texts that look like them."""
    door = "fedassay.new_survey"
    require_member(request.privacy, Privacy, "a request's privacy", door=door)
    require_member(request.preset, Preset, "a request's preset", door=door)
    require_member(request.levels, LevelChoice, "a request's levels", door=door)
    require_member(request.steps, Steps, "a request's steps", door=door)
    require_type(request.unit, Unit, "a request's unit", "Write Unit(UnitKind.CLIENT, 10).")
    for name in ("allow_empty", "level_by_hash", "sum_only", "site_moments"):
        require_type(getattr(request, name), bool, f"a request's {name}", "Pass True or False.")
    require_type(request.thresholds, tuple, "a request's thresholds", "Write them as (0.5,).")
    if request.budget is not None:
        require_type(request.budget, tuple, "a budget", "Write (Fraction(2, 3), Fraction(1, 3)).")
        for share in request.budget:
            require_fraction(share, "a share of the budget")
        if min(request.budget, default=0) <= 0 or sum(request.budget) != 1:
            raise SettingInvalid(
                "shares of a budget must be positive and add up to 1; found "
                f"{', '.join(map(str, request.budget)) or 'none'}. Divide each by their sum."
            )
    if request.groups is not None:
        require_type(request.groups, GroupNames, "groups", 'Write GroupNames("sex", ("F", "M")).')
    check_model_digest(request.model_digest)
    if isinstance(request.reference, np.ndarray):
        checked_scores(request.reference)
    elif request.reference is not None:
        remedy = "Pass Examples(y, s), or an array of scores."
        require_type(request.reference, Examples, "a reference", remedy)


def _check_ranges(request: SurveyRequest) -> None:
    for epsilon in (request.epsilon, request.largest_local_epsilon):
        if epsilon is not None:
            check_epsilon(epsilon)
    if request.delta is not None:
        check_delta(request.delta)
    if request.height is not None:
        require_whole(request.height, "height", 1, 20)
    if request.fanout is not None:
        require_whole(request.fanout, "fan-out", 2, 1024)
    check_buckets(request.buckets)
    for name in ("clients", "examples", "minimum_reports"):
        value = getattr(request, name)
        if value is not None:
            require_whole(value, name, 1, MAX_CLIENTS)
    require_whole(request.colluders, "colluders", 0, MAX_CLIENTS)
    require_fraction(request.dropouts, "the share of dropouts")
    if not 0 <= request.dropouts < 1:
        raise SettingInvalid(
            f"the share of dropouts must be from 0 to below 1; found {float(request.dropouts):g}. "
            "Write Fraction(1, 10) where one client in ten may stay away."
        )
    rate, auc = request.positive_rate, request.auc
    if rate is not None and not 0.0 < require_number(rate, "a positive rate") < 1.0:
        raise SettingInvalid(
            f"a positive rate must lie between 0 and 1; found {rate}. Write 0.3 for 30 %."
        )
    if auc is not None and not 0.5 < require_number(auc, "an assumed AUC") < 1.0:
        raise SettingInvalid(
            f"an assumed AUC must lie between 0.5 and 1; found {auc}. Swap the labels below 0.5."
        )
    if request.smallest_cell is not None:
        require_whole(request.smallest_cell, "the smallest cell", 0, MOST_SMALLEST_CELL)
    check_thresholds(request.thresholds)


def _check_contradictions(request: SurveyRequest) -> None:
    if request.fanout is not None and request.height is None and request.preset is Preset.DEFAULT:
        raise SettingInvalid(
            "a fan-out needs a height: the leaves are fanout ** height; found none. Add a height."
        )
    if request.preset is Preset.PAPER and request.reference is not None:
        raise SettingInvalid(
            "the paper preset uses a uniform grid; a reference does not go with it. "
            "Drop the reference, or use the default preset."
        )
    if request.auc is not None and request.reference is not None:
        raise SettingInvalid(
            "a reference says how good the classifier is; an assumed AUC does not go with it. "
            "Drop one of the two."
        )
    if request.steps is Steps.TWO and request.fixes_levels:
        raise SettingInvalid(
            f"a first survey finds where scores lie; {request.fixes_levels} does not go with two "
            "steps. Drop it, or use steps=1 (--steps 1)."
        )
    _check_smallest(request)
    if request.sum_only and request.privacy is not Privacy.SITE:
        raise SettingInvalid(
            "sum_only goes with site privacy, where a report might be seen; found it with "
            f"{request.privacy.value} privacy. Drop it, or choose site privacy."
        )
    if request.site_moments:
        SiteMoments().check(request.privacy, honest=FEWEST_HONEST, on_one_level=False)
    _check_model(request)


def _check_model(request: SurveyRequest) -> None:
    """What the privacy model rules out."""
    match request.privacy:
        case Privacy.SECURE:
            if request.epsilon is not None:
                raise SettingInvalid(
                    "exact sums spend no epsilon; found one. "
                    "Choose distributed, site or local privacy, or drop epsilon."
                )
        case Privacy.DISTRIBUTED:
            _check_noise_shares(request)
        case Privacy.SITE:
            _check_sites(request)
        case Privacy.LOCAL:
            if request.colluders:
                raise SettingInvalid(
                    "local privacy holds whatever others do; colluders do not go with it. "
                    "Drop them."
                )
        case Privacy.SHUFFLED:
            check_crowd(
                request.minimum_reports,
                reports_of(request),
                colluders=request.colluders,
                largest_local=request.largest_local_epsilon,
            )


def reports_of(request: SurveyRequest) -> int | None:
    """How many locally private reports are expected, where the request says: one a row or client.

    >>> reports_of(SurveyRequest(privacy=Privacy.LOCAL, clients=20, examples=5000))
    5000
    """
    if request.unit.kind is UnitKind.CLIENT:
        return request.clients
    return request.examples or request.clients


def _check_smallest(request: SurveyRequest) -> None:
    """A smallest cell goes with exact sums, and these are then asked on one nesting of cells."""
    if request.privacy.spends_epsilon and (request.smallest_cell or 0) > 1:
        raise SettingInvalid(
            f"a smallest cell is for exact sums; found one with {request.privacy.value} privacy, "
            "whose noise protects single rows. Leave it out."
        )
    given = "the paper preset" if request.preset is Preset.PAPER else "a height"
    if request.smallest and (request.preset is Preset.PAPER or request.height is not None):
        raise SettingInvalid(
            "exact sums with a smallest cell are asked on one nesting of cells, the same for all "
            f"surveys; {given} does not go with it. Leave it out, or switch the smallest cell off "
            "knowingly (smallest_cell=0, --smallest-cell 0)."
        )


def _check_sites(request: SurveyRequest) -> None:
    """What speaks of others, or of a share of the sites, has no meaning where each stands alone."""
    if request.colluders and not request.sum_only:
        raise SettingInvalid(
            "site privacy holds whatever others do; colluders do not go with it. Drop them, or "
            "set sum_only (--sum-only): they then learn no more than the others' sum."
        )
    if request.unit.kind is UnitKind.CLIENT:
        raise SettingInvalid(
            "site privacy protects what is inside a site, not whole sites; unit client does not "
            "go with it. Use unit example, or distributed privacy."
        )
    if request.levels is LevelChoice.BATCHES:
        raise SettingInvalid(
            "under site privacy every site reports on every level; batches do not go with it. "
            "Use levels=every (--levels every)."
        )
    if request.allow_empty:
        raise SettingInvalid(
            "under site privacy a site without rows answers with noise like any other; "
            "allow_empty does not go with it. Drop it."
        )


def _check_noise_shares(request: SurveyRequest) -> None:
    minimum, clients = request.minimum_reports, request.clients
    sized_for = clients if minimum is None else minimum
    if sized_for is None:
        return
    if sized_for < 2:
        raise SettingInvalid(
            f"minimum_reports must be at least 2; found {sized_for}. One client alone adds the "
            "whole noise itself: choose site privacy."
        )
    if request.colluders >= sized_for:
        raise SettingInvalid(
            f"colluders must be fewer than the {sized_for} reports that noise is sized "
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
    if buckets is not None:
        require_whole(buckets, "buckets", 1, MAX_BUCKETS)


def check_thresholds(thresholds: Sequence[float]) -> None:
    """Raise unless all thresholds lie in [0, 1].

    >>> check_thresholds([0.2, 0.8])
    """
    require_thresholds(thresholds)
