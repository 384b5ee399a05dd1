"""A survey's place among two: the first finds where scores lie, the second asks there."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from fedassay.checks import require_fraction, require_type
from fedassay.cut_levels import CutLevels
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.files import Fields
from fedassay.hierarchy import Levels
from fedassay.mechanisms import Unit

MOST_SHARED_LEVELS = 4
"""Of either survey, where noise is shared: what a participant learns of both stays bounded."""


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
    """Rebuild a survey's place among two from untrusted JSON.

    >>> place = FirstOfTwo(Fraction(1), Fraction(1))
    >>> step_from_json(Fields(place.to_json(), "survey")) == place
    True
    """
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


def check_step(
    step: SurveyStep | None,
    levels: Levels,
    *,
    epsilon: Fraction | None,
    is_local: bool,
    in_groups: bool = False,
) -> None:
    """Raise unless a survey's levels and epsilon fit its place among two.

    Chosen levels belong to a second survey, or to groups, whose cells they keep apart; what both
    spend is announced by both.

    >>> from fedassay.hierarchy import Hierarchy
    >>> place = FirstOfTwo(Fraction(1), Fraction(1))
    >>> check_step(place, Hierarchy.flat(4), epsilon=Fraction(1, 5), is_local=False)
    """
    if step is not None:
        _check_spending(step, levels.levels, epsilon=epsilon, is_local=is_local)
    if isinstance(levels, CutLevels) != isinstance(step, SecondOfTwo) and not in_groups:
        raise SettingInvalid(
            "levels are chosen for the second of two surveys, and only for that; found one "
            "without the other. Use fedassay.new_survey with after=first."
        )
    if isinstance(levels, CutLevels) and is_local and levels.weights:
        raise SettingInvalid(
            "weighted sums need noise that clients share; under local privacy a client "
            "reports one cell. Drop the weights."
        )


def _check_spending(
    step: SurveyStep, levels: int, *, epsilon: Fraction | None, is_local: bool
) -> None:
    if epsilon is None:
        raise SettingInvalid("exact sums need no second survey; found a place among two. Drop it.")
    if not is_local and levels > MOST_SHARED_LEVELS:
        raise SettingInvalid(
            f"each of two surveys has at most {MOST_SHARED_LEVELS} levels where noise is shared; "
            f"found {levels}. Use fedassay.new_survey with steps=2."
        )
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


def place_in_words(step: SurveyStep | None, epsilon: Fraction | None, unit: Unit) -> str:
    """A survey's place among two as a sentence; nothing where it stands alone.

    >>> place_in_words(FirstOfTwo(Fraction(1), Fraction(1)), Fraction(1, 5), Unit())
    'That is for two surveys together: this one, the first, spends 0.2 of it.'
    """
    if step is None or epsilon is None:
        return ""
    place = "first" if isinstance(step, FirstOfTwo) else "second"
    if step.client_fraction == 1:
        return (
            f"That is for two surveys together: this one, the {place}, spends "
            f"{float(epsilon):g} of it."
        )
    return (
        f"Of two surveys each {unit.kind.value} answers one: this one, the {place}, is for "
        f"{100 * float(step.client_fraction):g} % of them."
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


def coarse_after_both(threshold: float | None) -> str:
    """What helps where cells are too coarse after a second step: at a threshold, or overall.

    >>> coarse_after_both(None)
    'Both steps were run: next time ask more clients, or spend a larger epsilon.'
    """
    named = "" if threshold is None else f"name {threshold:.4g} beforehand (--threshold), "
    return f"Both steps were run: next time {named}ask more clients, or spend a larger epsilon."
