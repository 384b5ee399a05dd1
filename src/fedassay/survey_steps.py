"""A survey's place among two: the first finds where scores lie, the second asks there."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from fedassay.checks import require_fraction, require_type
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.files import Fields


@dataclass(frozen=True, slots=True)
class FirstOfTwo:
    """A second survey follows.

    Guarantee: both together cost a unit at most `total_epsilon`: what each spends adds up,
    or, under local privacy, each client answers one of them.

    >>> FirstOfTwo(Fraction(1), Fraction(1)).to_json()
    {'kind': 'first', 'total_epsilon': '1', 'client_fraction': '1'}
    """

    total_epsilon: Fraction
    client_fraction: Fraction
    """The share of the clients that answer this one; 1 where all answer both."""

    def __post_init__(self) -> None:
        _check(self.total_epsilon, self.client_fraction)

    def to_json(self) -> dict[str, Any]:
        """What a survey's file says of it."""
        return {
            "kind": "first",
            "total_epsilon": str(self.total_epsilon),
            "client_fraction": str(self.client_fraction),
        }


@dataclass(frozen=True, slots=True)
class SecondOfTwo:
    """Made from what the first survey revealed, and read together with it.

    >>> SecondOfTwo(Fraction(1), Fraction(1), bytes(32)).first.hex()[:4]
    '0000'
    """

    total_epsilon: Fraction
    client_fraction: Fraction
    """The share of the clients that answer this one; 1 where all answer both."""
    first: bytes
    """The fingerprint of the first survey."""

    def __post_init__(self) -> None:
        _check(self.total_epsilon, self.client_fraction)
        require_type(self.first, bytes, "the first survey's fingerprint")
        if len(self.first) != 32:
            raise SettingInvalid(
                f"a survey's fingerprint has 32 bytes; found {len(self.first)}. "
                "Pass first.fingerprint."
            )

    def to_json(self) -> dict[str, Any]:
        """What a survey's file says of it."""
        return {
            "kind": "second",
            "total_epsilon": str(self.total_epsilon),
            "client_fraction": str(self.client_fraction),
            "first": self.first.hex(),
        }


SurveyStep = FirstOfTwo | SecondOfTwo


def step_from_json(fields: Fields) -> SurveyStep:
    """Rebuild a survey's place among two from untrusted JSON."""
    kind = fields.text("kind")
    if kind not in ("first", "second"):
        raise FileInvalid(
            f"a survey is the first or the second of two; found {kind[:40]!r}. "
            "Use the fedassay version that wrote the survey."
        )
    shared = ("kind", "total_epsilon", "client_fraction")
    fields.only(*shared, *(["first"] if kind == "second" else []))
    total, part = fields.fraction("total_epsilon"), fields.fraction("client_fraction")
    if kind == "first":
        return FirstOfTwo(total, part)
    try:
        first = bytes.fromhex(fields.text("first"))
    except ValueError as error:
        raise FileInvalid("a fingerprint is 64 hexadecimal digits; found another text.") from error
    return SecondOfTwo(total, part, first)


def check_step(step: SurveyStep, *, epsilon: Fraction | None, is_local: bool) -> None:
    """Raise unless a survey's own epsilon fits what it and the other spend together."""
    if epsilon is None:
        raise SettingInvalid("exact sums need no second survey; found a place among two. Drop it.")
    if is_local:
        fits = epsilon == step.total_epsilon and step.client_fraction < 1
        rule = "under local privacy a client answers one of the two, with the whole epsilon"
    else:
        fits = epsilon < step.total_epsilon and step.client_fraction == 1
        rule = "all clients answer both surveys, and each spends a part of the total"
    if not fits:
        raise SettingInvalid(
            f"{rule}; found epsilon {float(epsilon):g} of {float(step.total_epsilon):g} for a "
            f"share of {float(step.client_fraction):g} of the clients. "
            "Use fedassay.new_survey with steps=2."
        )


def _check(total_epsilon: Fraction, client_fraction: Fraction) -> None:
    require_fraction(total_epsilon, "the epsilon of both surveys")
    require_fraction(client_fraction, "a step's share of the clients")
    if total_epsilon <= 0:
        raise SettingInvalid(
            f"the epsilon of both surveys must be positive; found {float(total_epsilon):g}."
        )
    if not 0 < client_fraction <= 1:
        raise SettingInvalid(
            "a step's share of the clients must be above 0 and at most 1; found "
            f"{float(client_fraction):g}."
        )
    if client_fraction.denominator >= 10**6:
        raise SettingInvalid(
            "a step's share of the clients must be a simple fraction (denominator below 1e6); "
            "found a longer one. Round it."
        )
