"""What charges add up to: against brute force over points, and against exact losses."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay.errors import BudgetExceeded, SettingInvalid
from fedassay.ledger import Budget, Charge, Ledger, Part, Status, Window, composition
from fedassay.ledger.budget import balance
from fedassay.ledger.spend import Cover, cost, loads
from fedassay.mechanisms import Neighbours, Unit, UnitKind
from tests.surveys import local_survey
from tests.unit.test_shuffler import shuffled_survey

START = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 8
EXAMPLE = Unit()


def day(number: int | None) -> datetime | None:
    return None if number is None else START + timedelta(days=number)


@st.composite
def windows(draw: st.DrawFn) -> tuple[int | None, int | None]:
    first, last = sorted(draw(st.sets(st.integers(0, DAYS), min_size=2, max_size=2)))
    return (
        draw(st.sampled_from([first, None])),
        draw(st.sampled_from([last, None])),
    )


CHARGES = st.lists(
    st.tuples(
        st.fractions(min_value=0, max_value=2, max_denominator=7),
        windows(),
        st.sampled_from([None, "a", "b"]),
    ),
    max_size=8,
)
Drawn = tuple[Fraction, tuple[int | None, int | None], str | None]


def covers_point(charge: Drawn, instant: float, group: str) -> bool:
    _, (first, last), wanted = charge
    return (
        (first is None or first <= instant)
        and (last is None or instant < last)
        and wanted in (None, group)
    )


@given(CHARGES, windows(), st.sampled_from([None, "a", "b", "unseen"]))
def test_the_sweep_finds_the_point_that_spent_most(
    charges: list[Drawn], within: tuple[int | None, int | None], group: str | None
) -> None:
    """Brute force: every half day from before the first window to after the last one."""
    instants = [x / 2 - 2 for x in range(2 * DAYS + 9)]
    groups = ["a", "b", "neither"] if group is None else [group]
    points = [
        (instant, name)
        for instant in instants
        for name in groups
        if covers_point((Fraction(0), within, None), instant, name)
    ]
    expected = max(
        sum((c[0] for c in charges if covers_point(c, instant, name)), Fraction(0))
        for instant, name in points
    )
    covering = [Cover(c[0], Window(*map(day, c[1])), c[2]) for c in charges]
    found = list(loads(covering, Window(*map(day, within)), group))
    assert max((load.total for load in found), default=Fraction(0)) == expected
    for load in found:
        assert sum(paid * times for paid, times in load.costs) == load.total


@given(CHARGES)
def test_a_split_never_spends_more_and_never_less_than_the_dearest_charge(
    charges: list[Drawn],
) -> None:
    made = [charge_of(c[0], Part("d", Window(*map(day, c[1])), c[2])) for c in charges]
    spent = [
        balance(made, Budget("d", None, split_windows=w, split_groups=g), "d").spent
        for w, g in product((False, True), repeat=2)
    ]
    assert spent[0] == sum((c[0] for c in charges), Fraction(0))
    assert max((c[0] for c in charges), default=0) <= spent[3] <= min(spent[1:3])
    assert max(spent) == spent[0]


def charge_of(
    epsilon: Fraction,
    part: Part,
    unit: Unit = EXAMPLE,
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
) -> Charge:
    return Charge(
        part=part,
        survey="ab" * 32,
        epsilon=epsilon,
        unit=unit,
        neighbours=neighbours,
        model=None,
        status=Status.CHARGED,
    )


# One survey's cost for another unit, against the exact privacy loss


def noise(value: int, scale: float) -> float:
    """Discrete Laplace mass with ratio e^(-1/scale)."""
    a = math.exp(-1 / scale)
    return (1 - a) / (1 + a) * a ** abs(value)


def law_of_client(data: Sequence[int], most: int, epsilon: float) -> dict[tuple[int, ...], float]:
    """The exact law of what a client's survey reveals: `most` examples drawn, then noise."""
    cells, error_quantile = 3, 5
    samples = list(combinations(data, most)) if len(data) > most else [tuple(data)]
    law = dict.fromkeys(product(range(-error_quantile, error_quantile + 1), repeat=cells), 0.0)
    for sample in samples:
        counts = np.bincount(sample, minlength=cells)
        for seen in law:
            mass = math.prod(
                noise(s - int(c), most / epsilon) for s, c in zip(seen, counts, strict=True)
            )
            law[seen] += mass / len(samples)
    return law


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_client_survey_costs_an_example_what_the_ledger_says(most: int) -> None:
    """One example more or less, over all clients (or patients) of at most 3 examples in 3 cells."""
    epsilon, worst = 1.0, 0.0
    for size in range(4):
        for data in combinations_with_replacement(range(3), size):
            before = law_of_client(data, most, epsilon)
            after = law_of_client((*data, 0), most, epsilon)
            worst = max(worst, *(abs(math.log(after[x] / before[x])) for x in before))
    for kind in (UnitKind.CLIENT, UnitKind.PATIENT):
        charge = charge_of(Fraction(1), Part("d"), Unit(kind, most))
        claimed = cost(charge, UnitKind.EXAMPLE, Neighbours.ADD_OR_REMOVE)
        assert claimed is not None
        assert worst <= claimed + 1e-9
    # For a single example the survey's own epsilon would be too little.
    assert (worst > epsilon + 0.3) == (most == 1)


@pytest.mark.parametrize("most", [1, 2])
def test_a_client_survey_costs_a_patient_twice_its_epsilon(most: int) -> None:
    """A patient is any of a client's rows: without them others are drawn in their place."""
    worst = 0.0
    for data in combinations_with_replacement(range(3), 3):
        before = law_of_client(data, most, 1.0)
        for size in range(3):
            for rest in combinations(data, size):
                after = law_of_client(rest, most, 1.0)
                worst = max(worst, *(abs(math.log(after[x] / before[x])) for x in before))
    charge = charge_of(Fraction(1), Part("d"), Unit(UnitKind.CLIENT, most))
    claimed = cost(charge, UnitKind.PATIENT, Neighbours.ADD_OR_REMOVE)
    assert claimed == 2
    assert worst <= 2 + 1e-9
    # Three rows are too few to replace two.
    assert (worst > 1.3) == (most == 1)


def test_a_patient_survey_costs_a_patient_its_epsilon_and_says_nothing_of_a_client() -> None:
    charge = charge_of(Fraction(1), Part("d"), Unit(UnitKind.PATIENT, 3))
    assert cost(charge, UnitKind.PATIENT, Neighbours.ADD_OR_REMOVE) == 1
    assert cost(charge, UnitKind.PATIENT, Neighbours.REPLACE) == 2
    assert cost(charge, UnitKind.CLIENT, Neighbours.ADD_OR_REMOVE) is None
    of_rows = charge_of(Fraction(1), Part("d"))
    assert cost(of_rows, UnitKind.PATIENT, Neighbours.ADD_OR_REMOVE) is None


def test_replacing_costs_twice_what_adding_does() -> None:
    before, after = (law_of_client((cell,), 1, 1.0) for cell in (0, 1))
    worst = max(abs(math.log(after[x] / before[x])) for x in before)
    claimed = cost(charge_of(Fraction(1), Part("d")), UnitKind.EXAMPLE, Neighbours.REPLACE)
    assert claimed == 2
    assert worst == pytest.approx(2)


def test_nothing_bounds_an_exact_sum_or_a_client_of_any_size() -> None:
    charge = charge_of(Fraction(1), Part("d"))
    assert cost(charge, UnitKind.CLIENT, Neighbours.REPLACE) is None


# Tighter composition


def optimal_delta(epsilon: float, one: float, times: int) -> float:
    """Optimal composition of pure privacy (Kairouz, Oh and Viswanath 2015), in closed form."""
    total = 0.0
    for hits in range(times + 1):
        loss = (2 * hits - times) * one
        if loss > epsilon:
            weight = comb(times, hits) / (1 + math.exp(one)) ** times
            total += weight * (math.exp(hits * one) - math.exp(epsilon + (times - hits) * one))
    return total


def optimal_epsilon(delta: float, one: float, times: int) -> float:
    low, high = 0.0, one * times
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if optimal_delta(middle, one, times) <= delta else (middle, high)
    return high


@pytest.mark.parametrize(
    ("one", "times", "delta"),
    [
        (Fraction(1, 10), 40, Fraction(1, 10**6)),
        (Fraction(1, 10), 100, Fraction(1, 10**6)),
        (Fraction(1, 3), 30, Fraction(1, 10**4)),
        (Fraction(1), 20, Fraction(1, 10**3)),
        (Fraction(1, 100), 300, Fraction(1, 10**9)),
        (Fraction(1, 2), 3, Fraction(1, 100)),
    ],
)
def test_tighter_composition_is_never_below_the_optimal_one_and_close_to_it(
    one: Fraction, times: int, delta: Fraction
) -> None:
    found = float(composition.composed(frozenset([(one, times)]), delta))
    truth = optimal_epsilon(float(delta), float(one), times)
    assert truth <= found <= float(one * times)
    assert found <= truth + 1e-5


def test_tighter_composition_of_unequal_charges_is_never_below_brute_force() -> None:
    """Every outcome of eight randomised responses of three sizes, enumerated."""
    sizes = [Fraction(1, 3)] * 3 + [Fraction(1, 2)] * 3 + [Fraction(1)] * 2
    found = float(
        composition.composed(
            frozenset({(Fraction(1, 3), 3), (Fraction(1, 2), 3), (Fraction(1), 2)}),
            Fraction(1, 100),
        )
    )
    losses = []
    for signs in product((1, -1), repeat=len(sizes)):
        mass = math.prod(
            math.exp(float(e) * (s > 0)) / (1 + math.exp(float(e)))
            for e, s in zip(sizes, signs, strict=True)
        )
        losses.append((mass, float(sum(e * s for e, s in zip(sizes, signs, strict=True)))))

    def delta_at(epsilon: float) -> float:
        return sum(m * (1 - math.exp(epsilon - x)) for m, x in losses if x > epsilon)

    assert delta_at(found) <= 0.01
    assert delta_at(found - 0.02) > 0.01


def test_a_budget_with_a_delta_lets_more_through_and_stops_in_time(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db")
    one, delta = Fraction(1, 5), Fraction(1, 100)
    ledger.set_budget(Budget("d", Fraction(3), delta=delta))

    def charge_on() -> None:
        for cells in range(2, 60):
            ledger.charge(local_survey(one, cells=cells), Part("d"))

    with pytest.raises(BudgetExceeded):
        charge_on()
    charged = len(ledger.entries()) - 1
    assert charged > 20
    assert optimal_epsilon(float(delta), float(one), charged) <= 3
    assert optimal_epsilon(float(delta), float(one), charged + 2) > 3


def test_the_worst_point_under_composition_need_not_have_the_largest_sum() -> None:
    """70 charges of 1/20 add up to 3.5 and compose to less than 3; one of 3 stays 3."""
    delta = Fraction(1, 10**6)
    assert optimal_epsilon(float(delta), 0.05, 70) < 2.5
    many, once = Window(day(0), day(1)), Window(day(2), day(3))
    charges = [charge_of(Fraction(1, 20), Part("d", many))] * 70
    charges.append(charge_of(Fraction(3), Part("d", once)))
    split = Budget("d", Fraction(16, 5), delta=delta, split_windows=True)
    assert balance(charges, split, "d").spent == 3


def test_a_budget_per_client_shows_charges_that_protect_single_examples_only() -> None:
    per_client = Budget("d", None, unit=UnitKind.CLIENT)
    charges = [
        charge_of(Fraction(1), Part("d")),
        charge_of(Fraction(1), Part("d"), Unit(UnitKind.CLIENT, 3)),
        charge_of(Fraction(1), Part("d"), EXAMPLE, Neighbours.REPLACE),
    ]
    assert balance(charges, per_client, "d").unbounded == 2
    assert balance(charges, Budget("d", None), "d").unbounded == 0


def test_without_the_extra_a_delta_is_refused_and_plain_sums_still_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.set_budget(Budget("d", Fraction(1), delta=Fraction(1, 10**6)))
    monkeypatch.setattr(composition, "is_available", lambda: False)
    with pytest.raises(SettingInvalid, match=r"fedassay\[accounting\]"):
        ledger.set_budget(Budget("d", Fraction(2), delta=Fraction(1, 10**6)))
    ledger.charge(local_survey(Fraction(1)), Part("d"))
    with pytest.raises(SettingInvalid, match=r"fedassay\[accounting\]"):
        ledger.charge(local_survey(Fraction(1, 2)), Part("d"))
    assert len(ledger.entries()) == 2


def shuffled_charge(epsilon: Fraction, delta: Fraction) -> Charge:
    made = charge_of(epsilon, Part("d"), EXAMPLE, Neighbours.REPLACE)
    return replace(made, delta=delta)


def test_a_budget_without_a_delta_takes_no_charge_with_one(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.set_budget(Budget("d", Fraction(5)))
    with pytest.raises(BudgetExceeded, match=r"allows no delta; .* may fail with .* 1e-08"):
        ledger.charge(shuffled_survey(), Part("d"))
    ledger.set_budget(Budget("d", Fraction(5), delta=Fraction(1, 10**6)))
    ledger.charge(shuffled_survey(), Part("d"))
    charge = ledger.entries()[-1].content
    assert isinstance(charge, Charge)
    assert (charge.epsilon, charge.delta) == (Fraction(1), Fraction(1, 10**8))
    assert charge.neighbours is Neighbours.REPLACE


def test_deltas_add_up_and_stop_a_charge_in_time(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.set_budget(Budget("d", Fraction(50), delta=Fraction(25, 10**9)))
    for minimum in (3, 4):
        ledger.charge(shuffled_survey(minimum), Part("d"))
    with pytest.raises(BudgetExceeded, match=r"allows a delta of 2\.5e-08; .* comes to 3e-08"):
        ledger.charge(shuffled_survey(5), Part("d"))
    assert len(ledger.entries()) == 3


@pytest.mark.parametrize("delta", [Fraction(1, 10_000), Fraction(1, 2000)])
def test_charges_with_deltas_compose_with_what_these_leave_of_the_budget(delta: Fraction) -> None:
    """Exactly: each charge tells all with probability delta, and else is randomised response."""
    times, epsilon, allowed = 12, 0.5, 0.01
    charges = [shuffled_charge(Fraction(1, 2), delta)] * times
    found = balance(charges, Budget("d", Fraction(1), delta=Fraction(1, 100)), "d")
    assert found.delta == times * delta
    p = math.exp(epsilon) / (1 + math.exp(epsilon))

    def delta_at(total: float) -> float:
        kept = (1.0 - float(delta)) ** times
        told = sum(
            comb(times, k)
            * p**k
            * (1 - p) ** (times - k)
            * max(0.0, 1.0 - math.exp(total - epsilon * (2 * k - times)))
            for k in range(times + 1)
        )
        return 1.0 - kept + kept * told

    assert delta_at(float(found.spent)) <= allowed
    assert delta_at(float(found.spent) - 0.15) > allowed
    assert found.spent < times * Fraction(1, 2)
