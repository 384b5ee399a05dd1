"""Which levels of a survey a client reports on."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from fedassay.checks import require_fraction, require_type
from fedassay.cut_levels import AnyLevels
from fedassay.errors import SettingInvalid
from fedassay.mechanisms import AnyMechanism, LocalMechanism, RandomizedResponse


@dataclass(frozen=True, slots=True)
class EveryLevel:
    """Each client reports on every level; what the levels cost adds up."""

    def to_json(self) -> dict[str, Any]:
        """What a survey's file says of it."""
        return {"kind": "every"}


@dataclass(frozen=True, slots=True)
class OneLevel:
    """Each client reports on one level, drawn with these shares.

    It draws at random, or with `by_hash` from a public hash of its id, so that anybody can
    check that it did not choose.

    Guarantee: the choice does not depend on the data, so a client pays for one level only.

    >>> OneLevel((Fraction(1, 3), Fraction(2, 3))).to_json()["client_fractions"]
    ['1/3', '2/3']
    """

    client_fractions: tuple[Fraction, ...]
    by_hash: bool = False

    def to_json(self) -> dict[str, Any]:
        """What a survey's file says of it."""
        fractions = [str(fraction) for fraction in self.client_fractions]
        return {"kind": "one", "client_fractions": fractions, "by_hash": self.by_hash}

    def __post_init__(self) -> None:
        require_type(
            self.client_fractions,
            tuple,
            "the levels' shares of clients",
            "Write them as (Fraction(1, 2), Fraction(1, 2)).",
        )
        if not self.client_fractions:
            raise SettingInvalid(
                "the levels' shares of clients must be one or more; found none. "
                "Use EveryLevel() where clients report on all."
            )
        for fraction in self.client_fractions:
            require_fraction(fraction, "a level's share of clients")
        require_type(self.by_hash, bool, "by_hash")
        if min(self.client_fractions) <= 0 or sum(self.client_fractions) != 1:
            raise SettingInvalid(
                "the levels' shares of clients must be positive and add up to 1; found "
                f"{', '.join(map(str, self.client_fractions))}."
            )
        if max(fraction.denominator for fraction in self.client_fractions) >= 10**12:
            raise SettingInvalid(
                "the levels' shares of clients must be simple fractions (denominators below "
                "1e12), so that a file can hold them; found a longer one. Round them."
            )


LevelPolicy = EveryLevel | OneLevel


def check_local(
    mechanisms: tuple[AnyMechanism, ...], hierarchy: AnyLevels, policy: LevelPolicy, empty: bool
) -> None:
    """Raise unless local mechanisms fit their levels, of which a client reports on one."""
    local = [m for m in mechanisms if isinstance(m, LocalMechanism)]
    if not local:
        return
    if len(local) > 1 and not isinstance(policy, OneLevel):
        raise SettingInvalid(
            "under local privacy a client reports on one level; found every level. "
            "Give each level a share of the clients."
        )
    for mechanism, cells in zip(mechanisms, hierarchy.cells_per_level, strict=True):
        if isinstance(mechanism, RandomizedResponse) and (
            mechanism.cells != cells or mechanism.nothing != empty
        ):
            raise SettingInvalid(
                f"randomised response must fit its level of {cells} cells and whether empty "
                "clients answer; it does not."
            )
