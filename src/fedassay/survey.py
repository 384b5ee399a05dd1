"""The survey: what both sides agree on before anything is counted."""

import hashlib
import re
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.files import Fields, canonical, check_format, read_json, write_json
from fedassay.grid import MAX_CELLS, Grid
from fedassay.hierarchy import MAX_LEVELS, Hierarchy, Interleaved
from fedassay.mechanisms import (
    Exact,
    Guarantee,
    LocalMechanism,
    Neighbours,
    Polya,
    RandomizedResponse,
    UnaryEncoding,
    Unit,
    UnitKind,
)
from fedassay.mechanisms.law import MAX_EXAMPLES

AnyLevels = Hierarchy | Interleaved
AnyMechanism = Exact | Polya | UnaryEncoding | RandomizedResponse

SURVEY_FORMAT = "fedassay.survey/1"
MAX_CLIENTS = 2**31
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class EveryLevel:
    """Each client reports on every level; what the levels cost adds up."""


@dataclass(frozen=True, slots=True)
class OneLevel:
    """Each client reports on one level, drawn with these shares.

    It draws at random, or with `by_hash` from a public hash of its id, so that anybody can
    check that it did not choose.

    Guarantee: the choice does not depend on the data, so a client pays for one level only.
    """

    shares: tuple[Fraction, ...]
    by_hash: bool = False

    def __post_init__(self) -> None:
        if min(self.shares) <= 0 or sum(self.shares) != 1:
            raise SettingInvalid(
                "the levels' shares of clients must be positive and add up to 1; found "
                f"{', '.join(map(str, self.shares))}."
            )


LevelPolicy = EveryLevel | OneLevel


@dataclass(frozen=True, slots=True)
class Survey:
    """One question to all clients: grid, hierarchy, mechanism per level, and the promise.

    Both sides hold the same canonical JSON; its SHA-256 is the fingerprint that every
    report carries.
    """

    grid: Grid
    hierarchy: AnyLevels
    mechanisms: tuple[AnyMechanism, ...]
    levels: LevelPolicy = EveryLevel()
    unit: Unit = Unit()
    minimum_reports: int = 2
    """Below this many reports on a level, nothing is decoded and no noise guarantee holds."""
    colluders: int = 0
    """How many clients may pool their knowledge, and withhold their noise, at no loss."""
    allow_empty: bool = False
    """Whether a client without examples answers too, and cannot be told from the others."""
    model_digest: str | None = None
    fingerprint: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.hierarchy, Interleaved) and not isinstance(self.levels, OneLevel):
            raise SettingInvalid(
                "interleaved levels are for clients that report on one level each; found every "
                "level. Use a tree."
            )
        if self.hierarchy.leaves != self.grid.cells:
            raise SettingInvalid(
                f"the hierarchy must stand on the grid's {self.grid.cells} cells; found "
                f"{self.hierarchy.leaves} leaves."
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
        if isinstance(self.levels, OneLevel) and len(self.levels.shares) != self.hierarchy.levels:
            raise SettingInvalid(
                f"there must be one share of clients for each of {self.hierarchy.levels} levels; "
                f"found {len(self.levels.shares)}."
            )
        self._check_noise()
        self._check_local()
        if self.model_digest is not None and not _DIGEST.fullmatch(self.model_digest):
            raise SettingInvalid(
                "a model digest is 64 lower-case hexadecimal digits (SHA-256 of the model file). "
                "Make it with: sha256sum model.bin"
            )
        digest = hashlib.sha256(canonical(self.to_json())).digest()
        object.__setattr__(self, "fingerprint", digest)

    def _check_noise(self) -> None:
        for mechanism in self.mechanisms:
            if not isinstance(mechanism, Polya):
                continue
            if self.minimum_reports < 2:
                raise SettingInvalid(
                    "distributed noise needs minimum_reports of at least 2; found "
                    f"{self.minimum_reports}. One client alone is local differential privacy."
                )
            if mechanism.shares != self.minimum_reports - self.colluders:
                raise SettingInvalid(
                    "noise must be sized for minimum_reports - colluders = "
                    f"{self.minimum_reports - self.colluders} shares; found {mechanism.shares}."
                )
            if mechanism.sensitivity != self.unit.sensitivity:
                raise SettingInvalid(
                    f"the sensitivity for {self.unit} is {self.unit.sensitivity}; found "
                    f"{mechanism.sensitivity}."
                )

    def _check_local(self) -> None:
        local = [m for m in self.mechanisms if isinstance(m, LocalMechanism)]
        if not local:
            return
        if len(local) < len(self.mechanisms):
            raise SettingInvalid("a survey is local on every level or on none; found a mixture.")
        if len(local) > 1 and not isinstance(self.levels, OneLevel):
            raise SettingInvalid(
                "under local privacy a client reports on one level; found every level. "
                "Give each level a share of the clients."
            )
        for mechanism, cells in zip(self.mechanisms, self.hierarchy.cells_per_level, strict=True):
            if isinstance(mechanism, RandomizedResponse) and (
                mechanism.cells != cells or mechanism.nothing != self.allow_empty
            ):
                raise SettingInvalid(
                    f"randomised response must fit its level of {cells} cells and whether empty "
                    "clients answer; it does not."
                )

    @property
    def is_local(self) -> bool:
        """Whether every report protects itself."""
        return isinstance(self.mechanisms[0], LocalMechanism)

    @property
    def samples_clients(self) -> bool:
        """Whether a level hears from clients drawn at random, each with its own noise."""
        return self.is_local or isinstance(self.levels, OneLevel)

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
        epsilon = self.epsilon
        sum_only = "secure aggregation, or whoever adds up the reports, to reveal only the sum"
        neighbours = Neighbours.REPLACE if self.is_local else Neighbours.ADD_OR_REMOVE
        return Guarantee(
            epsilon=epsilon,
            neighbours=None if epsilon is None else neighbours,
            unit=self.unit,
            trust="nobody" if self.is_local else sum_only,
            minimum_reports=self.minimum_reports,
            colluders=self.colluders,
        )

    @property
    def epsilon(self) -> Fraction | None:
        """What one unit spends in all, or None when a level is exact."""
        spent = [m.epsilon for m in self.mechanisms if not isinstance(m, Exact)]
        if len(spent) < len(self.mechanisms):
            return None
        return max(spent) if isinstance(self.levels, OneLevel) else sum(spent, Fraction(0))

    def to_json(self) -> dict[str, Any]:
        """The canonical content, from which the fingerprint is made."""
        return {
            "format": SURVEY_FORMAT,
            "grid": _grid_json(self.grid),
            "hierarchy": _hierarchy_json(self.hierarchy),
            "levels": _levels_json(self.levels),
            "mechanisms": [_mechanism_json(mechanism) for mechanism in self.mechanisms],
            "unit": {"kind": self.unit.kind.value, "max_examples": self.unit.max_examples},
            "minimum_reports": self.minimum_reports,
            "colluders": self.colluders,
            "allow_empty": self.allow_empty,
            "model_digest": self.model_digest,
        }

    @classmethod
    def from_json(cls, content: object, *, where: str = "survey") -> "Survey":
        """Rebuild a survey from untrusted JSON; anything unknown is refused."""
        fields = Fields(check_format(content, SURVEY_FORMAT, where), where)
        fields.only(
            "format", "grid", "hierarchy", "levels", "mechanisms", "unit", "minimum_reports",
            "colluders", "allow_empty", "model_digest",
        )  # fmt: skip
        try:
            grid = _grid_from_json(Fields(fields.get("grid"), f"{where}, grid"))
            hierarchy = _hierarchy_from_json(
                Fields(fields.get("hierarchy"), f"{where}, hierarchy"), grid.cells
            )
            digest = fields.get("model_digest")
            unit = _unit_from_json(Fields(fields.get("unit"), f"{where}, unit"))
            minimum = fields.integer("minimum_reports", 1, MAX_CLIENTS)
            colluders = fields.integer("colluders", 0, minimum - 1)
            return cls(
                grid=grid,
                hierarchy=hierarchy,
                mechanisms=_mechanisms_from_json(fields, hierarchy, unit, minimum - colluders),
                levels=_levels_from_json(Fields(fields.get("levels"), f"{where}, levels")),
                unit=unit,
                minimum_reports=minimum,
                colluders=colluders,
                allow_empty=fields.boolean("allow_empty"),
                model_digest=None if digest is None else fields.text("model_digest"),
            )
        except SettingInvalid as error:
            raise FileInvalid(f"{where}: {error}") from error

    def save(self, path: Path) -> None:
        """Write the survey file."""
        write_json(path, self.to_json())

    @classmethod
    def load(cls, path: Path) -> "Survey":
        """Read a survey file."""
        return cls.from_json(read_json(path, SURVEY_FORMAT), where=str(path))


def _grid_json(grid: Grid) -> dict[str, Any]:
    if grid == Grid.uniform(grid.cells):
        return {"kind": "uniform", "cells": grid.cells}
    return {"kind": "edges", "edges": grid.edges.tolist()}


def _grid_from_json(fields: Fields) -> Grid:
    if fields.text("kind") == "uniform":
        fields.only("kind", "cells")
        return Grid.uniform(fields.integer("cells", 1, MAX_CELLS))
    fields.only("kind", "edges")
    return Grid.explicit(np.array(fields.numbers("edges", MAX_CELLS + 1)))


def _hierarchy_json(hierarchy: AnyLevels) -> dict[str, Any]:
    if isinstance(hierarchy, Interleaved):
        return {"kind": "interleaved", "step": hierarchy.step}
    return {"kind": "tree", "fanouts": list(hierarchy.fanouts)}


def _hierarchy_from_json(fields: Fields, leaves: int) -> AnyLevels:
    if fields.text("kind") == "interleaved":
        fields.only("kind", "step")
        return Interleaved(leaves, fields.integer("step", 1, MAX_LEVELS))
    fields.only("kind", "fanouts")
    return Hierarchy(leaves, tuple(fields.integers("fanouts", MAX_LEVELS)))


def _mechanism_json(mechanism: AnyMechanism) -> dict[str, Any]:
    if isinstance(mechanism, Exact):
        return {"kind": mechanism.kind}
    return {"kind": mechanism.kind, "epsilon": str(mechanism.epsilon)}


def _mechanisms_from_json(
    fields: Fields, hierarchy: AnyLevels, unit: Unit, shares: int
) -> tuple[AnyMechanism, ...]:
    raw = fields.get("mechanisms")
    if not isinstance(raw, list) or len(raw) != hierarchy.levels:
        raise FileInvalid('"mechanisms" must list one mechanism per level.')
    allow_empty = fields.boolean("allow_empty")
    found: list[AnyMechanism] = []
    for item, cells in zip(raw, hierarchy.cells_per_level, strict=True):
        inner = Fields(item, "mechanism")
        kind = inner.text("kind")
        if kind == Exact.kind:
            inner.only("kind")
            found.append(Exact())
            continue
        inner.only("kind", "epsilon")
        epsilon = inner.fraction("epsilon")
        if kind == Polya.kind:
            found.append(Polya(epsilon, unit.sensitivity, shares))
        elif kind == UnaryEncoding.kind:
            found.append(UnaryEncoding(epsilon))
        elif kind == RandomizedResponse.kind:
            found.append(RandomizedResponse(epsilon, cells, allow_empty))
        else:
            raise FileInvalid(
                f"mechanisms are exact, polya, oue or grr; found {kind[:40]!r}. "
                "Use the fedassay version that wrote the survey."
            )
    return tuple(found)


def _levels_json(levels: LevelPolicy) -> dict[str, Any]:
    if isinstance(levels, OneLevel):
        shares = [str(share) for share in levels.shares]
        return {"policy": "one", "shares": shares, "by_hash": levels.by_hash}
    return {"policy": "every"}


def _levels_from_json(fields: Fields) -> LevelPolicy:
    if fields.text("policy") == "every":
        fields.only("policy")
        return EveryLevel()
    fields.only("policy", "shares", "by_hash")
    return OneLevel(tuple(fields.fractions("shares", MAX_LEVELS)), fields.boolean("by_hash"))


def _unit_from_json(fields: Fields) -> Unit:
    fields.only("kind", "max_examples")
    kinds = {kind.value: kind for kind in UnitKind}
    kind = fields.text("kind")
    if kind not in kinds:
        raise FileInvalid(f"the unit of privacy is one of {sorted(kinds)}; found {kind[:40]!r}.")
    return Unit(kinds[kind], fields.integer("max_examples", 1, MAX_EXAMPLES))
