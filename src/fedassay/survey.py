"""The survey: what both sides agree on before anything is counted."""

import hashlib
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import NoneType
from typing import Any

from fedassay.checks import check_model_digest, require_type
from fedassay.cut_levels import AnyLevels, CutLevels
from fedassay.errors import SettingInvalid
from fedassay.files import PUBLIC, as_path, canonical, write_whole
from fedassay.grid import Grid
from fedassay.group_names import GroupNames
from fedassay.hierarchy import Hierarchy, Interleaved
from fedassay.level_policy import EveryLevel, LevelPolicy, OneLevel, check_local
from fedassay.mechanisms import (
    AnyMechanism,
    Exact,
    Guarantee,
    LocalMechanism,
    Neighbours,
    Polya,
    Privacy,
    Unit,
    UnitKind,
)
from fedassay.mechanisms.model_rules import check_shuffled, check_site
from fedassay.mechanisms.partial_noise import epsilons_of_levels, most_of_partial_noise
from fedassay.mechanisms.shuffled_promise import ShuffledPromise
from fedassay.pair_grid import PairGrid
from fedassay.pair_levels import PairLevels, check_pair, check_smallest
from fedassay.presentation import html_text
from fedassay.survey_moments import SiteMoments
from fedassay.survey_steps import (
    MOST_SHARED_LEVELS,
    FirstOfTwo,
    SecondOfTwo,
    SurveyStep,
    check_step,
    place_in_words,
)

SURVEY_FORMAT = "fedassay.survey/2"
SMALLEST_CELL_FORMAT = "fedassay.survey/3"
"""Of surveys with a smallest cell, which an older reader would publish without."""
SURVEY_FORMATS = (SMALLEST_CELL_FORMAT, SURVEY_FORMAT)
OPTIONAL_PARTS = ("step", "moments", "groups", "shuffled")
MAX_CLIENTS = 2**31
_MIXES = "the shuffler to mix the reports and to pass on nothing else"
_SUM_ONLY = "secure aggregation, or whoever adds up the reports, to reveal only the sum"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Survey:
    """One question to all clients: grid, hierarchy, mechanism per level, and the promise.

    Both sides hold the same canonical JSON; its SHA-256 is the fingerprint that every
    report carries.

    >>> survey = Survey(
    ...     privacy=Privacy.SECURE, grid=Grid.uniform(4), hierarchy=Hierarchy.flat(4),
    ...     mechanisms=(Exact(),), minimum_reports=10,
    ... )
    >>> survey.is_exact, len(survey.fingerprint)
    (True, 32)
    """

    privacy: Privacy
    grid: Grid
    hierarchy: AnyLevels
    mechanisms: tuple[AnyMechanism, ...]
    level_policy: LevelPolicy = EveryLevel()
    unit: Unit = Unit()
    minimum_reports: int = 2
    """Below this many reports on a level, nothing is decoded and no noise guarantee holds."""
    colluders: int = 0
    """How many clients may pool their knowledge, and withhold their noise, at no loss."""
    allow_empty: bool = False
    """Whether a client without examples answers too, and cannot be told from the others."""
    model_digest: str | None = None
    smallest_cell: int = 0
    """Of exact sums no count below this is published (`fedassay.published`); 0 for any."""
    sum_only: bool = False
    """Whether sites that add the whole noise still let nobody see more than their sum."""
    step: SurveyStep | None = None
    """Its place, if it is one of two surveys that belong together."""
    moments: SiteMoments | None = None
    """Whether sites add up moments of their metrics, so that their spread shows and no site."""
    groups: GroupNames | None = None
    """Which groups have leaves of their own: those of the first group come first."""
    shuffled: ShuffledPromise | None = None
    """What reports promise together once they are shuffled, under shuffled privacy."""
    _fingerprint: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check_types()
        if isinstance(self.hierarchy, Interleaved) and not isinstance(self.level_policy, OneLevel):
            raise SettingInvalid(
                "interleaved levels are for clients that report on one level each; found every "
                "level. Use a tree."
            )
        if self.hierarchy.leaves != self.leaves:
            raise SettingInvalid(
                f"the hierarchy must stand on the grid's {self.leaves} cells, of all groups; "
                f"found {self.hierarchy.leaves} leaves."
            )
        if len(self.mechanisms) != self.hierarchy.levels:
            raise SettingInvalid(
                f"a survey needs one mechanism for each of its {self.hierarchy.levels} levels; "
                f"found {len(self.mechanisms)}."
            )
        if not 1 <= self.minimum_reports <= MAX_CLIENTS:
            raise SettingInvalid(
                f"minimum_reports must be from 1 to {MAX_CLIENTS}; found {self.minimum_reports}."
            )
        if not 0 <= self.colluders < self.minimum_reports:
            raise SettingInvalid(
                f"colluders must be from 0 to below minimum_reports, which is "
                f"{self.minimum_reports}; found {self.colluders}. Ask for more reports."
            )
        policy, levels = self.level_policy, self.hierarchy.levels
        if isinstance(policy, OneLevel) and len(policy.client_fractions) != levels:
            raise SettingInvalid(
                f"there must be one share of clients for each of {levels} levels; "
                f"found {len(policy.client_fractions)}."
            )
        self._check_privacy()
        self._check_noise()
        on_one_level = isinstance(self.level_policy, OneLevel)
        reports, alone = (self.minimum_reports, self.colluders), not self.sum_only
        check_site(self.privacy, self.unit, reports, on_one_level=on_one_level, alone=alone)
        check_local(self.mechanisms, self.hierarchy, self.level_policy, self.allow_empty)
        if self.is_local and self.step is not None and self.unit.kind is UnitKind.PATIENT:
            raise SettingInvalid(
                "under local privacy rows answer one of two surveys by their numbers, and a "
                "patient's rows would answer both; found unit patient. Ask once (--steps 1)."
            )
        place, grouped = (self.step, self.hierarchy), self.groups is not None
        check_step(*place, epsilon=self.epsilon, is_local=self.is_local, in_groups=grouped)
        honest, once = self.minimum_reports - self.colluders, self.step is None
        check_shuffled(self.privacy, self.shuffled, self.mechanisms, honest=honest, once=once)
        check_model_digest(self.model_digest)
        check_smallest(self.smallest_cell, self.grid, self.hierarchy, self.privacy.spends_epsilon)
        more = self.step or self.moments or self.groups
        may_draw = self.is_local and self.hierarchy.levels > 1
        is_plain = not more and (may_draw or self.level_policy == EveryLevel())
        check_pair(self.grid, self.hierarchy, is_plain=is_plain)
        if self.moments is not None:
            self.moments.check(self.privacy, honest=honest, on_one_level=on_one_level)
        object.__setattr__(self, "_fingerprint", b"")

    def __str__(self) -> str:
        levels = self.hierarchy.levels
        return (
            f"Survey {self.fingerprint.hex()[:12]}: {self.privacy.value} privacy, "
            f"{self.leaves:,} cells in {levels:,} level{'s' if levels > 1 else ''}, at least "
            f"{self.minimum_reports:,} reports. {self.guarantee.sentence()}"
        )

    def __repr__(self) -> str:
        return (
            f"<Survey {self.fingerprint.hex()[:12]}: {self.privacy.value}, "
            f"{self.grid.cells:,} cells>"
        )

    def _repr_html_(self) -> str:
        return html_text(str(self))

    @property
    def fingerprint(self) -> bytes:
        """SHA-256 of the canonical JSON, made when it is first asked for."""
        if not self._fingerprint:
            digest = hashlib.sha256(canonical(self.to_json())).digest()
            object.__setattr__(self, "_fingerprint", digest)
        return self._fingerprint

    def _check_types(self) -> None:
        """Choices are members of their types, never texts that look like them."""
        wanted: dict[str, tuple[type, ...]] = {
            "privacy": (Privacy,),
            "grid": (Grid,),
            "hierarchy": (Hierarchy, Interleaved, CutLevels, PairLevels),
            "step": (FirstOfTwo, SecondOfTwo, NoneType),
            "level_policy": (EveryLevel, OneLevel),
            "unit": (Unit,),
            **dict.fromkeys(("minimum_reports", "colluders", "smallest_cell"), (int,)),
            **dict.fromkeys(("allow_empty", "sum_only"), (bool,)),
            "mechanisms": (tuple,),
            "model_digest": (str, NoneType),
            "moments": (SiteMoments, NoneType),
            "groups": (GroupNames, NoneType),
            "shuffled": (ShuffledPromise, NoneType),
        }
        for name, kinds in wanted.items():
            remedy = "fedassay.new_survey takes texts and numbers."
            require_type(getattr(self, name), kinds, f"a survey's {name}", remedy)

    def _check_privacy(self) -> None:
        """The mechanisms are those of the privacy model."""
        match self.privacy:
            case Privacy.SECURE:
                fitting: type = Exact
            case Privacy.DISTRIBUTED | Privacy.SITE:
                fitting = Polya
            case Privacy.LOCAL | Privacy.SHUFFLED:
                fitting = LocalMechanism
        if not all(isinstance(mechanism, fitting) for mechanism in self.mechanisms):
            kinds = ", ".join(str(getattr(m, "kind", m))[:40] for m in self.mechanisms)
            raise SettingInvalid(
                f"{self.privacy.value} privacy goes with {fitting.__name__} mechanisms on every "
                f"level; found {kinds}."
            )

    def _check_noise(self) -> None:
        for level, mechanism in enumerate(self.mechanisms):
            if not isinstance(mechanism, Polya):
                continue
            if self.privacy.shares_noise and self.minimum_reports < 2:
                raise SettingInvalid(
                    "distributed noise needs minimum_reports of at least 2; found "
                    f"{self.minimum_reports}. One client alone adds the whole noise: site privacy."
                )
            if mechanism.noise_shares != self.noise_shares:
                sized = "minimum_reports - colluders" if self.privacy.shares_noise else "one site"
                raise SettingInvalid(
                    f"noise must be sized for {sized} = {self.noise_shares} shares; found "
                    f"{mechanism.noise_shares}."
                )
            moved = self.unit.sensitivity * self.hierarchy.largest_weight(level)
            if mechanism.sensitivity != moved:
                raise SettingInvalid(
                    f"the sensitivity for {self.unit} is {moved}; found {mechanism.sensitivity}."
                )

    @property
    def total_epsilon(self) -> Fraction | None:
        """What one unit spends on this survey, and on the other one where it is one of two."""
        return self.epsilon if self.step is None else self.step.total_epsilon

    @property
    def leaves(self) -> int:
        """How many cells there are at the bottom: those of the grid, in every part of the rows."""
        return self.grid.cells * (1 if self.groups is None else len(self.groups.parts))

    @property
    def moment_words(self) -> int:
        """How many integers a site adds beside its counters."""
        return 0 if self.moments is None else self.moments.words

    @property
    def is_local(self) -> bool:
        """Whether every report protects itself."""
        return self.privacy.is_local

    @property
    def reports_may_be_seen(self) -> bool:
        """Whether whoever adds up may look at single reports, and keep them."""
        return self.privacy.stands_alone and not self.sum_only

    @property
    def noise_shares(self) -> int:
        """Over how many reports the noise of a level is shared out."""
        return self.privacy.noise_shares(self.minimum_reports - self.colluders)

    @property
    def pair(self) -> PairGrid | None:
        """The grids of two models, where each row has a score of both."""
        return self.grid if isinstance(self.grid, PairGrid) else None

    @property
    def samples_clients(self) -> bool:
        """Whether a level hears from clients drawn at random, each with its own noise."""
        return self.is_local or isinstance(self.level_policy, OneLevel)

    @property
    def total_is_known(self) -> bool:
        """Whether each report stands for exactly one example, so that they can be counted."""
        return self.is_local and not self.allow_empty

    @property
    def is_exact(self) -> bool:
        """Whether sums come through without noise."""
        return all(mechanism.law().is_exact for mechanism in self.mechanisms)

    @property
    def guarantee(self) -> Guarantee:
        """What this survey promises to a client."""
        match self.privacy:
            case Privacy.SECURE:
                neighbours, trust = None, _SUM_ONLY
            case Privacy.DISTRIBUTED:
                neighbours, trust = Neighbours.ADD_OR_REMOVE, _SUM_ONLY
            case Privacy.SITE:
                neighbours, trust = Neighbours.ADD_OR_REMOVE, "nobody"
            case Privacy.LOCAL:
                neighbours, trust = Neighbours.REPLACE, "nobody"
            case Privacy.SHUFFLED:
                neighbours, trust = Neighbours.REPLACE, _MIXES
        return Guarantee(
            epsilon=self.epsilon,
            neighbours=neighbours,
            unit=self.unit,
            trust=trust,
            minimum_reports=self.minimum_reports,
            colluders=self.colluders,
            participant_epsilon=self._participant_epsilon(),
            total_epsilon=None if self.step is None else self.step.total_epsilon,
            smallest_cell=self.smallest_cell,
            place=place_in_words(self.step, self.epsilon, self.unit),
            stands_alone=self.privacy.stands_alone,
            sum_only=self.sum_only,
            delta=None if self.shuffled is None else self.shuffled.delta,
            local_epsilon=None if self.shuffled is None else self.local_epsilon,
        )

    @property
    def own_participant_epsilon(self) -> float | None:
        """What this one costs towards a client that knows its own noise; None if not shared."""
        if not self.privacy.shares_noise:
            return None
        weights = [self.hierarchy.largest_weight(level) for level in range(len(self.mechanisms))]
        most = self.unit.max_examples
        known = epsilons_of_levels(self.mechanisms, weights, examples=most, left=self._noise_left)
        return max(known) if isinstance(self.level_policy, OneLevel) else sum(known)

    @property
    def _noise_left(self) -> Fraction:
        """The share of the noise that is left when one client takes its own away."""
        return Fraction(self.minimum_reports - 1, self.minimum_reports - self.colluders)

    def _participant_epsilon(self) -> float | None:
        """Of this survey and of the other one, where it is one of two, whatever that asks.

        The other one spends what is left on at most `MOST_SHARED_LEVELS` levels, on each of
        which a unit moves as many counters as it has examples.
        """
        own = self.own_participant_epsilon
        if own is None or self.step is None or self.epsilon is None:
            return own
        rest = self.step.total_epsilon - self.epsilon
        counters = MOST_SHARED_LEVELS * self.unit.max_examples
        return own + most_of_partial_noise(rest, counters, self._noise_left)

    @property
    def epsilon(self) -> Fraction | None:
        """What one unit spends in all, or None when a level is exact."""
        return self._mechanisms_epsilon() if self.shuffled is None else self.shuffled.epsilon

    @property
    def local_epsilon(self) -> Fraction | None:
        """What a single report spends by itself, where each is randomised on its own."""
        return self._mechanisms_epsilon() if self.is_local else None

    def _mechanisms_epsilon(self) -> Fraction | None:
        spent = [m.epsilon_spent for m in self.mechanisms if m.epsilon_spent is not None]
        if len(spent) < len(self.mechanisms):
            return None
        return max(spent) if isinstance(self.level_policy, OneLevel) else sum(spent, Fraction(0))

    def to_json(self) -> dict[str, Any]:
        """The canonical content, from which the fingerprint is made."""
        optional = {name: getattr(self, name) for name in OPTIONAL_PARTS}
        smallest = {"smallest_cell": self.smallest_cell} if self.smallest_cell else {}
        alone = {"sum_only": self.sum_only} if self.privacy is Privacy.SITE else {}
        return {
            "format": SMALLEST_CELL_FORMAT if self.smallest_cell else SURVEY_FORMAT,
            "privacy": self.privacy.value,
            "grid": self.grid.to_json(),
            "hierarchy": self.hierarchy.to_json(),
            "level_policy": self.level_policy.to_json(),
            "mechanisms": [mechanism.to_json() for mechanism in self.mechanisms],
            "unit": self.unit.to_json(),
            "minimum_reports": self.minimum_reports,
            "colluders": self.colluders,
            "allow_empty": self.allow_empty,
            "model_digest": self.model_digest,
            **smallest,
            **alone,
            **{name: part.to_json() for name, part in optional.items() if part is not None},
        }

    def save(self, path: str | Path) -> None:
        """Write the survey file, whole or not at all; everybody may read it.

        It is the canonical JSON and a newline: without that newline, the fingerprint is
        the SHA-256 of the file itself.
        """
        write_whole(as_path(path), canonical(self.to_json()) + b"\n", mode=PUBLIC)
