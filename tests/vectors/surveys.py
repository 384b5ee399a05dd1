"""The surveys that vectors are about: every kind of grid, levels, mechanism and unit."""

from fractions import Fraction

import numpy as np

from fedassay import Exact, Grid, Hierarchy, Survey, Unit
from fedassay.cut_levels import AnyLevels, CutLevels
from fedassay.hierarchy import Interleaved
from fedassay.level_policy import EveryLevel, OneLevel
from fedassay.mechanisms import (
    AnyMechanism,
    Polya,
    Privacy,
    RandomizedResponse,
    UnaryEncoding,
    UnitKind,
)
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo

ONE, FIVE, FIFTH = Fraction(1), Fraction(5), Fraction(1, 5)
THIRDS = OneLevel((Fraction(1, 3),) * 3)
UNEVEN = OneLevel((Fraction(1, 7), Fraction(6, 7)), by_hash=True)


def secure(grid: Grid, hierarchy: AnyLevels | None = None, **fields: object) -> Survey:
    hierarchy = hierarchy or Hierarchy.flat(grid.cells)
    return Survey(
        privacy=Privacy.SECURE,
        grid=grid,
        hierarchy=hierarchy,
        mechanisms=(Exact(),) * hierarchy.levels,
        **fields,  # type: ignore[arg-type]  # settings by name
    )


def local(
    kinds: str, epsilon: Fraction, grid: Grid, hierarchy: AnyLevels | None = None, **fields: object
) -> Survey:
    hierarchy = hierarchy or Hierarchy.flat(grid.cells)
    nothing = bool(fields.get("allow_empty", False))
    mechanisms: list[AnyMechanism] = [
        UnaryEncoding(epsilon) if kind == "oue" else RandomizedResponse(epsilon, cells, nothing)
        for kind, cells in zip(kinds.split(), hierarchy.cells_per_level, strict=True)
    ]
    return Survey(
        privacy=Privacy.LOCAL,
        grid=grid,
        hierarchy=hierarchy,
        mechanisms=tuple(mechanisms),
        minimum_reports=1,
        **fields,  # type: ignore[arg-type]  # settings by name
    )


def distributed(
    epsilons: list[Fraction], grid: Grid, hierarchy: AnyLevels, **fields: object
) -> Survey:
    return Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=grid,
        hierarchy=hierarchy,
        mechanisms=tuple(
            Polya(epsilon, 20 * hierarchy.largest_weight(level), 900)
            for level, epsilon in enumerate(epsilons)
        ),
        level_policy=EveryLevel(),
        unit=Unit(UnitKind.CLIENT, 20),
        minimum_reports=1000,
        colluders=100,
        **fields,  # type: ignore[arg-type]  # settings by name
    )


FEW = Grid.explicit([0, 1e-9, 0.1, 0.3, 0.5, 0.9, 1])
FIRST_LOCAL = local(
    "grr oue",
    FIVE,
    FEW,
    Hierarchy(6, (2, 3)),
    level_policy=UNEVEN,
    step=FirstOfTwo(FIVE, Fraction(2, 5)),
)
FIRST_EMPTY = local("grr", ONE, FEW, allow_empty=True, step=FirstOfTwo(ONE, Fraction(1, 3)))
FIRST_OF_CLIENTS = local(
    "oue", FIVE, FEW, unit=Unit(UnitKind.CLIENT, 3), step=FirstOfTwo(FIVE, FIFTH)
)
FIRST_SHARED = distributed(
    [Fraction(1, 10)] * 2, FEW, Hierarchy(6, (2, 3)), step=FirstOfTwo(ONE, ONE)
)
CUTS = (((0, 2, 5), (0, 3)), ((0, 4), (0, 1, 2, 4)))
WEIGHTS = ((-3, -2, -2, 0, 1, 3), (-7, -1, 0, 0, 2, 5))

LOCAL: dict[str, Survey] = {
    "oue, one level": local("oue", ONE, Grid.uniform(4)),
    "oue, bits that do not fill their bytes": local("oue", FIVE, Grid.cubic(13)),
    "grr, one level": local("grr", Fraction(1, 3), Grid.uniform(4)),
    "grr, one cell": local("grr", ONE, Grid.uniform(1), Hierarchy(1, (1,))),
    "oue, empty clients": local("oue", ONE, Grid.uniform(3), allow_empty=True),
    "grr, empty clients": local("grr", Fraction(2), Grid.uniform(3), allow_empty=True),
    "tree of two levels, grr then oue, by hash": local(
        "grr oue", FIVE, Grid.uniform(7), Hierarchy(7, (2, 4)), level_policy=UNEVEN
    ),
    "interleaved, three levels": local(
        "grr oue grr", Fraction(5, 2), Grid.cubic(7), Interleaved(7, 3), level_policy=THIRDS
    ),
    "a client is the unit": local(
        "oue", FIVE, Grid.explicit([0, 0.1, 0.5, 1]), unit=Unit(UnitKind.CLIENT, 9)
    ),
    "first of two, by hash": FIRST_LOCAL,
    "second of two, cells for each label": local(
        "oue grr",
        FIVE,
        FEW,
        CutLevels(6, CUTS),
        level_policy=OneLevel((Fraction(1, 4), Fraction(3, 4))),
        step=SecondOfTwo(FIVE, Fraction(3, 5), FIRST_LOCAL.fingerprint),
    ),
    "second of two, as many cells as leaves, empty clients": local(
        "grr",
        ONE,
        FEW,
        CutLevels(6, (((0, 3), (0, 1, 2, 3, 4, 5)),)),
        allow_empty=True,
        step=SecondOfTwo(ONE, Fraction(2, 3), FIRST_EMPTY.fingerprint),
    ),
}
OTHERS: dict[str, Survey] = {
    "default of exact sums": secure(Grid.fine()),
    "fine grid with thresholds": secure(Grid.fine(1000).with_edges_at([0.3, 0.0123456789])),
    "fine grid of one even cell": secure(Grid.fine(1)),
    "fine grid of odd cells": secure(Grid.fine(12_345)),
    "octaves": secure(Grid.octaves(8)),
    "octaves in thirds, with thresholds": secure(
        Grid.octaves(3).with_edges_at([1e-15, 3e-7, 0.3, 1 - 1e-9, float(np.nextafter(1.0, 0.0))])
    ),
    "octaves in the most parts": secure(Grid.octaves(2**12)),
    "cubic grid with ends": secure(Grid.cubic(24).with_ends().with_edges_at([0.1])),
    "largest cubic grid": secure(Grid.cubic(2**16)),
    "thirds and sevenths": secure(Grid.uniform(21), Hierarchy(21, (3, 7))),
    "explicit edges": secure(
        Grid.explicit([0, 5e-324, 1e-7, 0.1, 1 / 3, np.nextafter(1.0, 0.0), 1]),
        model_digest="0123456789abcdef" * 4,
    ),
    "leaves that the fan-outs do not fill": secure(Grid.uniform(45), Hierarchy(45, (4, 4, 4))),
    "distributed, each level pays": distributed(
        [Fraction(1, 3), Fraction(2, 3)], Grid.uniform(16), Hierarchy(16, (4, 4))
    ),
    "first of two, shared noise": FIRST_SHARED,
    "second of two, weighted sums": distributed(
        [Fraction(2, 5), Fraction(1, 5), Fraction(1, 5)],
        FEW,
        CutLevels(6, CUTS, WEIGHTS),
        step=SecondOfTwo(ONE, ONE, FIRST_SHARED.fingerprint),
    ),
    "first of two, a client is the unit": FIRST_OF_CLIENTS,
}
SURVEYS = LOCAL | OTHERS
