"""Small surveys in two steps, with cells and weights as a test wants them."""

from dataclasses import replace
from fractions import Fraction

from fedassay import Grid, Hierarchy, Polya, Survey, Unit
from fedassay.cut_levels import CutLevels
from fedassay.hierarchy import fanouts_for
from fedassay.level_policy import EveryLevel, OneLevel
from fedassay.mechanisms import AnyMechanism, Privacy, RandomizedResponse, UnaryEncoding
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo

ALL = Fraction(1)
ROW = Unit()
CUTS = (((0, 2, 5), (0, 3)), ((0, 4), (0, 1, 2, 4)))
"""Over six leaves: two levels, on each of which the labels have other cells."""
WEIGHTS = ((-3, -2, -2, 0, 1, 3), (-7, -1, 0, 0, 2, 5))


def first_shared(
    *,
    total: Fraction = Fraction(1),
    epsilon: Fraction = Fraction(1, 5),
    leaves: int = 6,
    minimum_reports: int = 4,
    unit: Unit = ROW,
) -> Survey:
    """Distributed privacy: every level of a tree spends as much."""
    hierarchy = Hierarchy(leaves, fanouts_for(leaves, 2))
    each = epsilon / hierarchy.levels
    return Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(leaves),
        hierarchy=hierarchy,
        mechanisms=(Polya(each, unit.sensitivity, minimum_reports),) * hierarchy.levels,
        minimum_reports=minimum_reports,
        unit=unit,
        step=FirstOfTwo(total, ALL),
    )


def second_shared(
    first: Survey,
    levels: CutLevels | None = None,
    *,
    epsilons: tuple[Fraction, ...] | None = None,
) -> Survey:
    """What the first left, spread evenly over chosen levels."""
    levels = levels or CutLevels(first.grid.cells, CUTS, WEIGHTS)
    assert first.step is not None
    assert first.epsilon is not None
    rest = (first.step.total_epsilon - first.epsilon) / levels.levels
    return replace(
        first,
        hierarchy=levels,
        mechanisms=tuple(
            Polya(
                epsilon,
                first.unit.sensitivity * levels.largest_weight(level),
                first.minimum_reports - first.colluders,
            )
            for level, epsilon in enumerate(epsilons or (rest,) * levels.levels)
        ),
        step=SecondOfTwo(first.step.total_epsilon, ALL, first.fingerprint),
    )


def first_local(
    *,
    epsilon: Fraction = Fraction(2),
    leaves: int = 6,
    kinds: str = "grr oue",
    share: Fraction = Fraction(1, 5),
    allow_empty: bool = False,
) -> Survey:
    """Local privacy: some of the clients, with the whole epsilon."""
    hierarchy = Hierarchy(leaves, fanouts_for(leaves, 2))
    return Survey(
        privacy=Privacy.LOCAL,
        grid=Grid.uniform(leaves),
        hierarchy=hierarchy,
        mechanisms=oracles(epsilon, hierarchy.cells_per_level, kinds, allow_empty=allow_empty),
        level_policy=uneven(hierarchy.levels),
        minimum_reports=1,
        allow_empty=allow_empty,
        step=FirstOfTwo(epsilon, share),
    )


def second_local(
    first: Survey, levels: CutLevels | None = None, *, kinds: str = "oue grr"
) -> Survey:
    """The other clients, on chosen levels."""
    levels = levels or CutLevels(first.grid.cells, CUTS)
    assert first.step is not None
    epsilon = first.step.total_epsilon
    return replace(
        first,
        hierarchy=levels,
        mechanisms=oracles(epsilon, levels.cells_per_level, kinds, allow_empty=first.allow_empty),
        level_policy=uneven(levels.levels),
        step=SecondOfTwo(epsilon, 1 - first.step.client_fraction, first.fingerprint),
    )


def oracles(
    epsilon: Fraction, cells: tuple[int, ...], kinds: str, *, allow_empty: bool
) -> tuple[AnyMechanism, ...]:
    """By name, from the first level on: "grr oue"."""
    return tuple(
        UnaryEncoding(epsilon) if kind == "oue" else RandomizedResponse(epsilon, size, allow_empty)
        for kind, size in zip(kinds.split(), cells, strict=True)
    )


def uneven(levels: int) -> EveryLevel | OneLevel:
    """Uneven shares, so that a level taken for another shows."""
    if levels == 1:
        return EveryLevel()
    return OneLevel(
        tuple(Fraction(level + 1, levels * (levels + 1) // 2) for level in range(levels))
    )
