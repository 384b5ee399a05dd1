"""What a mechanism does to a count, and what it promises: data that others compute with."""

from dataclasses import KW_ONLY, dataclass, fields
from enum import Enum
from fractions import Fraction
from math import ceil, floor, isfinite, log10
from typing import Any

from fedassay.checks import (
    require_fraction,
    require_member,
    require_number,
    require_type,
    require_whole,
)
from fedassay.errors import SettingInvalid
from fedassay.presentation import html_text

MAX_EXAMPLES = 2**20


@dataclass(frozen=True, slots=True)
class Law:
    """The first two moments of a summed counter.

    For a cell with true count c among m reports: E[sum] = gain*c + offset*m and
    Var[sum] = m*variance_per_report + c*variance_per_hit. Debiasing, intervals and the
    planner share these four numbers.
    """

    gain: float
    offset: float
    variance_per_report: float
    variance_per_hit: float
    _: KW_ONLY
    sums_to_reports: bool = False
    """Whether a level's counters always add up to its reports, so that they are correlated."""

    def __post_init__(self) -> None:
        for name in ("gain", "offset", "variance_per_report", "variance_per_hit"):
            require_number(getattr(self, name), f"a law's {name}")
        require_type(self.sums_to_reports, bool, "sums_to_reports", "Pass True or False.")
        if not self.gain > 0.0 or self.variance_per_report < 0.0:
            raise SettingInvalid(
                "a law's gain must be positive and its variance per report not negative; found "
                f"{self.gain:g} and {self.variance_per_report:g}. Ask a mechanism for its law()."
            )

    @property
    def is_exact(self) -> bool:
        """Whether sums come through unchanged."""
        return self == Law(1.0, 0.0, 0.0, 0.0)


class Privacy(Enum):
    """The privacy models: whom a client must trust with what (`sec:privacymodels`)."""

    SECURE = "secure"
    """Exact sums; single reports are hidden behind secure aggregation."""
    DISTRIBUTED = "distributed"
    """Every client adds a share of the noise; only the noisy sum is revealed."""
    SITE = "site"
    """Every site adds the whole noise to its own counts; each report may be seen."""
    LOCAL = "local"
    """Every row is a report of its own, which protects itself."""
    SHUFFLED = "shuffled"
    """As local, with less noise: a shuffler mixes the reports before anybody else sees them."""

    # What the rest of the library asks of a model. A new one must answer each: no default.

    @property
    def spends_epsilon(self) -> bool:
        """Whether noise is added, so that there is an epsilon to choose and to spend."""
        match self:
            case Privacy.SECURE:
                return False
            case Privacy.DISTRIBUTED | Privacy.SITE | Privacy.LOCAL | Privacy.SHUFFLED:
                return True

    @property
    def is_local(self) -> bool:
        """Whether every row, or client, sends a randomised report of its own."""
        match self:
            case Privacy.SECURE | Privacy.DISTRIBUTED | Privacy.SITE:
                return False
            case Privacy.LOCAL | Privacy.SHUFFLED:
                return True

    @property
    def stands_alone(self) -> bool:
        """Whether every report protects itself, whoever sees it and whatever others do."""
        match self:
            case Privacy.SECURE | Privacy.DISTRIBUTED | Privacy.SHUFFLED:
                return False
            case Privacy.SITE | Privacy.LOCAL:
                return True

    @property
    def shares_noise(self) -> bool:
        """Whether clients add up the noise together, so that epsilon needs enough of them."""
        match self:
            case Privacy.SECURE | Privacy.SITE | Privacy.LOCAL | Privacy.SHUFFLED:
                return False
            case Privacy.DISTRIBUTED:
                return True

    @property
    def needs_crowd(self) -> bool:
        """Whether epsilon holds among enough reports only."""
        return self.shares_noise or self is Privacy.SHUFFLED

    def noise_shares(self, honest: int) -> int:
        """Over how many reports the noise is shared out, where so many honest ones are sure."""
        return honest if self.shares_noise else 1


class Neighbours(Enum):
    """Which two data sets must look alike."""

    ADD_OR_REMOVE = "add or remove"
    REPLACE = "replace"


class UnitKind(Enum):
    """Whose contribution is hidden."""

    EXAMPLE = "example"
    CLIENT = "client"
    PATIENT = "patient"
    """A person inside one site, whose rows are limited before they are counted."""


class Keep(Enum):
    """Which rows of a patient count, where there are more than may."""

    RANDOM = "random"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of privacy: one example, or a client or patient with at most `max_examples`."""

    kind: UnitKind = UnitKind.EXAMPLE
    max_examples: int = 1
    keep: Keep = Keep.RANDOM

    def __post_init__(self) -> None:
        require_member(self.kind, UnitKind, "a unit's kind", door="fedassay.new_survey")
        require_member(self.keep, Keep, "which rows of a patient count", door="fedassay.new_survey")
        require_whole(self.max_examples, "max_examples", 1, MAX_EXAMPLES)
        if self.kind is UnitKind.EXAMPLE and self.max_examples != 1:
            raise SettingInvalid(
                f"max_examples goes with the client or the patient unit; found {self.max_examples} "
                "with unit example. Use the client unit (--unit client) or the patient unit "
                "(--unit patient), or leave max_examples out."
            )
        if self.kind is not UnitKind.PATIENT and self.keep is not Keep.RANDOM:
            raise SettingInvalid(
                f"keep={self.keep.value} goes with the patient unit; found it with unit "
                f"{self.kind.value}. Use the patient unit (--unit patient), or leave keep out."
            )

    @property
    def sensitivity(self) -> int:
        """How much a level's counters change in all when one unit is added or removed."""
        return self.max_examples

    def __str__(self) -> str:
        match self.kind:
            case UnitKind.EXAMPLE:
                return "one example"
            case UnitKind.CLIENT:
                return f"one client with at most {self.max_examples} examples"
            case UnitKind.PATIENT:
                chosen = "drawn at random" if self.keep is Keep.RANDOM else "the latest"
                return (
                    f"one patient inside one site with at most {self.max_examples} examples, "
                    f"{chosen}"
                )

    def to_json(self) -> dict[str, Any]:
        """What a survey's file says of it."""
        keep = {"keep": self.keep.value} if self.kind is UnitKind.PATIENT else {}
        return {"kind": self.kind.value, "max_examples": self.max_examples, **keep}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Guarantee:
    """What a survey promises, in numbers and in words.

    `epsilon` is None where nothing is randomised: the sum is then known exactly to
    whoever receives it.
    """

    epsilon: Fraction | None
    neighbours: Neighbours | None
    unit: Unit
    trust: str
    minimum_reports: int
    colluders: int = 0
    participant_epsilon: float | None = None
    """Epsilon towards one other client, who knows its own noise; None where that is no matter."""
    total_epsilon: Fraction | None = None
    """What both surveys spend together, where this is one of two."""
    place: str = ""
    """Its place among two surveys, as a sentence."""
    smallest_cell: int = 0
    """Of exact sums no count below this is published; 0 where any is, or noise protects."""
    stands_alone: bool = False
    """Whether it holds for each report by itself, whoever sees it and whatever others do."""
    sum_only: bool = False
    """Whether, besides, nobody is shown more than the sum; only where it stands alone."""
    delta: Fraction | None = None
    """The chance that epsilon says nothing about; None where the promise is without one."""
    local_epsilon: Fraction | None = None
    """Of shuffled reports: what each keeps by itself, should shuffler and collector collude."""

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            require_fraction(self.epsilon, "a guarantee's epsilon")
        if self.total_epsilon is not None:
            require_fraction(self.total_epsilon, "the epsilon of both surveys")
        require_type(self.place, str, "a place among two surveys", "Say it in words.")
        if self.neighbours is not None:
            require_member(self.neighbours, Neighbours, "neighbours")
        require_type(self.unit, Unit, "a guarantee's unit")
        require_type(self.trust, str, "whom a guarantee trusts", "Say it in words.")
        require_whole(self.minimum_reports, "minimum_reports", 1)
        require_whole(self.colluders, "colluders", 0)
        require_whole(self.smallest_cell, "a guarantee's smallest_cell", 0)
        if self.delta is not None:
            require_fraction(self.delta, "delta")
        if self.local_epsilon is not None:
            require_fraction(self.local_epsilon, "a guarantee's local epsilon")
        if self.delta is not None and not 0 < self.delta < 1:
            raise SettingInvalid(
                f"delta must lie between 0 and 1; found {float(self.delta):g}. Common choices lie "
                "below one over the number of clients."
            )

    @property
    def strength(self) -> str:
        """Epsilon, with delta where there is one, as a sentence begins with it."""
        epsilon = self.in_all
        if epsilon is None:
            return "no"
        if self.delta is None:
            return f"{float(epsilon):g}"
        return f"({float(epsilon):g}, {float(self.delta):g})"

    @property
    def in_all(self) -> Fraction | None:
        """Epsilon of this survey, and of the other one where it is one of two."""
        return self.epsilon if self.total_epsilon is None else self.total_epsilon

    def __str__(self) -> str:
        return self.sentence()

    def __repr__(self) -> str:
        """Without what is as usual."""
        unusual = (
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(self)
            if getattr(self, each.name) != each.default
        )
        return f"Guarantee({', '.join(unusual)})"

    def _repr_html_(self) -> str:
        return html_text(self.sentence())

    def sentence(self) -> str:
        """The promise as one sentence for people."""
        if self.epsilon is None or self.neighbours is None:
            return (
                "The exact sum over all clients is revealed and nothing is randomised; single "
                f"reports stay hidden if you trust {self.trust}. No differential privacy."
                f"{self._cells}"
            )
        withstands = f"at least {self.minimum_reports:,} reports arrive"
        if self.colluders:
            withstands += f" and at most {self.colluders:,} of their clients collude"
        if self.local_epsilon is not None:
            return (
                f"{self.strength}-differential privacy for {self.unit} (replace neighbours) "
                f"towards everybody after the shuffler while {withstands} on every level, if you "
                f"trust {self.trust}. Should it and the collector collude, every report still "
                f"protects itself with epsilon {float(self.local_epsilon):g}.{self._elsewhere}"
            )
        if self.neighbours is Neighbours.REPLACE:
            return (
                f"{self.strength}-local differential privacy for {self.unit} (replace "
                f"neighbours): every report protects itself, whoever sees it.{self._place}"
                f"{self._elsewhere}"
            )
        if self.stands_alone:
            return (
                f"{self.strength}-differential privacy for {self.unit}{self._of_a_site} "
                f"({self.neighbours.value} neighbours): every site adds the whole noise to its own "
                "counts, so that it holds whoever sees its report and whatever other sites and "
                f"the server do.{self._place}{self._elsewhere}"
                f"{self._besides}"
            )
        return (
            f"{self.strength}-differential privacy for {self.unit} "
            f"({self.neighbours.value} neighbours) {self._towards} while {withstands}, if you "
            f"trust {self.trust}.{self._place}{self._elsewhere}{self._participants}"
        )

    @property
    def _cells(self) -> str:
        if not self.smallest_cell:
            return ""
        fewest = f"{self.smallest_cell:,}"
        return f" No count below {fewest} of either label is published but where nobody is."

    @property
    def _towards(self) -> str:
        if self.colluders:
            return "towards outsiders and participants"
        return "towards outsiders"

    @property
    def _place(self) -> str:
        return f" {self.place}" if self.place else ""

    @property
    def _of_a_site(self) -> str:
        return "" if self.unit.kind is UnitKind.PATIENT else " of a site"

    @property
    def _elsewhere(self) -> str:
        if self.unit.kind is not UnitKind.PATIENT:
            return ""
        return " A person at two sites is two patients, and is protected with twice this epsilon."

    @property
    def _besides(self) -> str:
        if not self.sum_only:
            return ""
        withstands = f", {self.colluders:,} of whose clients may collude," if self.colluders else ""
        return (
            f" Besides, only the sum over at least {self.minimum_reports:,} reports{withstands} is "
            "revealed, if you trust secure aggregation, or whoever adds up the reports."
        )

    @property
    def _participants(self) -> str:
        """What another client learns who takes its own noise away, rounded up."""
        if self.participant_epsilon is None or self.colluders:
            return ""
        if not isfinite(self.participant_epsilon):
            return (
                " Towards another participant, who knows its own noise, no epsilon can be told "
                "beforehand: ask for 3 reports or more, or for colluders."
            )
        scale = 10.0 ** (2 - floor(log10(self.participant_epsilon)))
        shown = ceil(self.participant_epsilon * scale) / scale
        return f" Towards another participant, who knows its own noise, it is {shown:g}."
