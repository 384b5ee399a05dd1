"""A charge: what one survey spends on one part of the data."""

import hashlib
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any

from fedassay.checks import require_type
from fedassay.errors import FileInvalid
from fedassay.files import Fields, canonical
from fedassay.ledger.steps import (
    FirstCharge,
    SecondCharge,
    StepCharge,
    TableSeal,
    step_charge,
    step_charge_from_json,
)
from fedassay.ledger.texts import check_text, digest, one_of, rational
from fedassay.ledger.window import EVER, Window
from fedassay.mechanisms import Guarantee, Keep, Neighbours, Unit, UnitKind
from fedassay.mechanisms.law import MAX_EXAMPLES
from fedassay.survey import Survey

STAMP_FIELDS = ("time", "who", "clock_went_back")
"""What every entry has, whatever it holds."""
_ANY_SURVEY = "0" * 64


class Status(Enum):
    """What stood behind a charge."""

    CHARGED = "charged"
    """A client was about to answer."""
    AGAIN = "charged again"
    """A client was about to answer what it had answered before, and was told to."""
    ISSUED = "issued"
    """A server was about to hand out the survey."""


@dataclass(frozen=True, slots=True)
class Part:
    """Which data: an id, a time window and a group of clients (None for all)."""

    data: str
    window: Window = EVER
    group: str | None = None

    def __post_init__(self) -> None:
        check_text(self.data, "a data id")
        require_type(self.window, Window, "a part's window", 'Use Window.parse("FROM..TO").')
        if self.group is not None:
            check_text(self.group, "a group")

    def overlaps(self, other: "Part") -> bool:
        """Whether they may have data in common."""
        return (
            self.data == other.data
            and self.window.overlaps(other.window)
            and (self.group is None or other.group in (None, self.group))
        )

    def __str__(self) -> str:
        window = "" if self.window.is_ever else f", window {self.window}"
        group = "" if self.group is None else f", group {self.group!r}"
        return f"data {self.data!r}{window}{group}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Several surveys that are asked as one, and what they promise together.

    >>> import fedassay
    >>> survey = fedassay.new_survey(privacy="local", epsilon=1, height=2)
    >>> asked = Question(fingerprint=survey.fingerprint, guarantee=survey.guarantee)
    >>> Charge.of(asked, Part("ward"), Status.CHARGED).epsilon
    Fraction(1, 1)
    """

    fingerprint: bytes
    guarantee: Guarantee
    model_digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What one survey spends on one part of the data, recorded before anything leaves."""

    part: Part
    survey: str
    epsilon: Fraction | None
    """What one unit spends, exactly; None for an exact sum, which no epsilon covers."""
    unit: Unit
    neighbours: Neighbours | None
    model: str | None
    status: Status
    delta: Fraction | None = None
    """The chance that epsilon says nothing about; None where it holds always."""
    step: StepCharge | None = None
    """Where it is for one of two surveys; the first one's charge pays for both."""

    @classmethod
    def of(
        cls, survey: Survey | Question, part: Part, status: Status, table: TableSeal | None = None
    ) -> "Charge":
        """What a survey spends by its own guarantee, and what it announces with it."""
        promise = survey.guarantee
        step = None
        if isinstance(survey, Survey):
            step = step_charge(survey, table=table, issued=status is Status.ISSUED)
        return cls(
            part=part,
            survey=survey.fingerprint.hex(),
            epsilon=step.total if isinstance(step, FirstCharge) else promise.epsilon,
            # Which of a patient's rows count makes no difference to what they cost.
            unit=replace(promise.unit, keep=Keep.RANDOM),
            neighbours=promise.neighbours,
            delta=promise.delta,
            model=survey.model_digest,
            status=status,
            step=step,
        )

    @property
    def kind(self) -> "Charge":
        """The charge without what makes no difference to a budget: survey, model, status, step."""
        return replace(self, survey=_ANY_SURVEY, model=None, status=Status.CHARGED, step=None)

    @property
    def key(self) -> str:
        """A short hash of the survey and the part of the data: equal for a repeat."""
        return self._key("survey", self.survey)

    @property
    def reservation_key(self) -> str | None:
        """The key of the first of two surveys, which this charge is for or follows."""
        if isinstance(self.step, SecondCharge):
            return self._key("survey", self.step.first)
        return None if self.step is None else self.key

    @property
    def turn_key(self) -> str | None:
        """A key that all second surveys after the same first share: one of them is foreseen."""
        if isinstance(self.step, SecondCharge):
            return self._key("second", self.step.first)
        return None

    @property
    def answers(self) -> tuple[str, ...]:
        """The keys under which a repeat of this charge is found."""
        return (self.key,) if self.turn_key is None else (self.key, self.turn_key)

    @property
    def keys(self) -> tuple[str, ...]:
        """What a decision about this charge must know of earlier ones."""
        first = self.reservation_key
        return self.answers if first is None else (*self.answers, first)

    def _key(self, what: str, survey: str) -> str:
        content = {what: survey, **_part_json(self.part)}
        return hashlib.sha256(canonical(content)).hexdigest()[:32]

    def to_json(self) -> dict[str, Any]:
        """The content of an entry."""
        step = {} if self.step is None else {"step": self.step.to_json()}
        return {
            "kind": "charge",
            **_part_json(self.part),
            "survey": self.survey,
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "delta": None if self.delta is None else str(self.delta),
            "unit": {"kind": self.unit.kind.value, "max_examples": self.unit.max_examples},
            "neighbours": None if self.neighbours is None else self.neighbours.value,
            "model": self.model,
            "status": self.status.value,
            **step,
        }

    @classmethod
    def from_json(cls, fields: Fields) -> "Charge":
        """Read it back; anything unknown is refused."""
        fields.only(
            "kind", "data", "window", "group", "survey", "epsilon", "delta", "unit", "neighbours",
            "model", "status", *(["step"] if fields.has("step") else []), *STAMP_FIELDS,
        )  # fmt: skip
        epsilon, model, delta = fields.get("epsilon"), fields.get("model"), fields.get("delta")
        neighbours = fields.get("neighbours")
        unit = Fields(fields.get("unit"), "unit")
        unit.only("kind", "max_examples")
        if (epsilon is None) != (neighbours is None):
            raise FileInvalid("a charge has epsilon and neighbours, or neither.")
        if delta is not None and (epsilon is None or not 0 < rational(fields.text("delta")) < 1):
            raise FileInvalid("a charge's delta lies between 0 and 1, beside an epsilon.")
        charge = cls(
            part=_part_from_json(fields),
            survey=digest(fields.text("survey")),
            epsilon=None if epsilon is None else rational(fields.text("epsilon")),
            unit=Unit(
                one_of(UnitKind, unit.text("kind")), unit.integer("max_examples", 1, MAX_EXAMPLES)
            ),
            neighbours=None if neighbours is None else one_of(Neighbours, neighbours),
            delta=None if delta is None else rational(fields.text("delta")),
            model=None if model is None else digest(fields.text("model")),
            status=one_of(Status, fields.text("status")),
            step=step_charge_from_json(fields.inside("step")) if fields.has("step") else None,
        )
        _check_step(charge)
        return charge


def _check_step(charge: Charge) -> None:
    """What one of two surveys costs follows from what its charge says of them."""
    match charge.step:
        case None:
            return
        case FirstCharge() as step:
            fits = charge.epsilon in (step.total, step.spends)
        case SecondCharge() as step:
            fits = charge.epsilon == (0 if step.reserved else step.spends)
    if not fits:
        raise FileInvalid("what one of two surveys costs must be what its charge says of them.")


def _part_json(part: Part) -> dict[str, Any]:
    window = None if part.window.is_ever else str(part.window)
    return {"data": part.data, "window": window, "group": part.group}


def _part_from_json(fields: Fields) -> Part:
    group = fields.get("group")
    return Part(
        fields.text("data"),
        window_from_json(fields),
        None if group is None else fields.text("group"),
    )


def window_from_json(fields: Fields) -> Window:
    """A window, or all time."""
    return EVER if fields.get("window") is None else Window.parse(fields.text("window"))
