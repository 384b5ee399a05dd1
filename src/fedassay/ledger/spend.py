"""What the worst-off unit has spent: exact sums over every point of the data."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from fedassay.ledger.charge import Charge
from fedassay.ledger.entry import Budget
from fedassay.ledger.window import EVER, Window
from fedassay.mechanisms import Neighbours, UnitKind

_SIZE = {UnitKind.EXAMPLE: 0, UnitKind.PATIENT: 1, UnitKind.CLIENT: 2}
"""Which unit holds which: a client patients, a patient examples."""


@dataclass(frozen=True, slots=True)
class Cover:
    """A cost, and which points of the data bear it: a window, and a group or all (None)."""

    cost: Fraction
    window: Window = EVER
    group: str | None = None
    times: int = 1
    delta: Fraction = Fraction(0)
    """The chance that the cost says nothing about."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a point bears: the sum of its costs, and how often each occurs."""

    total: Fraction
    costs: frozenset[tuple[Fraction, int]]
    delta: Fraction = Fraction(0)
    """The sum of its deltas: the chance that any of its costs says nothing."""


def cost(charge: Charge, unit: UnitKind, neighbours: Neighbours) -> Fraction | None:
    """What a charge means for a unit and its neighbours, or None where nothing bounds it.

    Guarantee: the charge's answer is cost-differentially private for that unit, by group
    privacy where its own promise is for another unit or other neighbours. An exact sum has no
    bound; nor has a promise for one example when the unit is a client or a patient with any
    number of them, or one for a patient when the unit is a client.
    """
    if charge.epsilon is None or _SIZE[charge.unit.kind] < _SIZE[unit]:
        return None
    if charge.neighbours is Neighbours.REPLACE:
        return charge.epsilon
    # A replacement is a removal and an addition. So is one example more or less where a client
    # or patient gives a single one of its own: it may give another one instead. And so is a
    # patient more or less of a client, which may then give other rows.
    limited = charge.unit.kind is not UnitKind.EXAMPLE
    gives_one = unit is UnitKind.EXAMPLE and limited and charge.unit.max_examples == 1
    is_part = unit is UnitKind.PATIENT and charge.unit.kind is UnitKind.CLIENT
    twice = neighbours is Neighbours.REPLACE or gives_one or is_part
    return charge.epsilon * 2 if twice else charge.epsilon


def common_neighbours(charges: Iterable[Charge]) -> Neighbours:
    """The neighbours for which all these charges state or imply a promise."""
    if any(charge.neighbours is Neighbours.REPLACE for charge in charges):
        return Neighbours.REPLACE
    return Neighbours.ADD_OR_REMOVE


def covers(charges: Mapping[Charge, int], budget: Budget) -> list[Cover]:
    """Which points of a budget's data bear what; undeclared splits count for all points."""
    neighbours = common_neighbours(charges)
    return [
        Cover(
            paid,
            charge.part.window if budget.split_windows else EVER,
            charge.part.group if budget.split_groups else None,
            times,
            charge.delta or Fraction(0),
        )
        for charge, times in charges.items()
        if (paid := cost(charge, budget.unit, neighbours)) is not None
    ]


def loads(covering: Sequence[Cover], within: Window, group: str | None) -> Iterator[Load]:
    """What each kind of point inside a window and group (None: all of them) bears.

    A point is an instant and a group; points with the same covers are one kind. Between two
    neighbouring ends of windows nothing changes, so this sweeps over the ends.
    """
    named = {cover.group for cover in covering} - {None}
    # None stands for the clients that are in no named group.
    for at in [group] if group is not None else [None, *sorted(filter(None, named))]:
        yield from _sweep([c for c in covering if c.group in (None, at)], within)


def _sweep(covering: Sequence[Cover], within: Window) -> Iterator[Load]:
    changes: dict[datetime, list[tuple[Fraction, Fraction, int]]] = {}
    for cover in covering:
        first = max(cover.window.first, within.first)
        last = min(cover.window.last, within.last)
        if first < last:
            changes.setdefault(first, []).append((cover.cost, cover.delta, cover.times))
            changes.setdefault(last, []).append((cover.cost, cover.delta, -cover.times))
    total, delta, costs = Fraction(0), Fraction(0), Counter[Fraction]()
    for instant in sorted(changes):
        for paid, chance, times in changes[instant]:
            total += paid * times
            delta += chance * times
            costs[paid] += times
        yield Load(total, frozenset((+costs).items()), delta)
