"""How claims are read from points: intervals of slopes and ratios, verdicts, closed forms."""

from math import exp, log, sqrt

import numpy as np
import pytest
from scipy import stats

from fedassay.reproduction.findings import (
    Curves,
    crossing,
    local_prefix_variance,
    ratio_and_reach,
    shared_prefix_variance,
    slope_and_reach,
    within,
)
from fedassay.reproduction.readings import (
    alike_elsewhere,
    at_least,
    best_within,
    changes,
    comparable,
    falls_per_level,
    first_below,
    flat_beyond,
    in_order,
    largest_of,
    meets,
    near_to,
    slower,
    worse_elsewhere,
)
from fedassay.reproduction.results import Point, points_of


def points(panel: str, values: dict[tuple[str, float], list[float]]) -> list[Point]:
    return points_of("made", panel, values)


@pytest.mark.parametrize(
    ("value", "verdict"), [(0.5, True), (0.9, None), (1.1, None), (1.3, False), (-0.3, False)]
)
def test_a_verdict_needs_the_whole_interval(value: float, verdict: bool | None) -> None:
    assert within(value, 0.2, 0.0, 1.0) is verdict


def test_a_slopes_interval_covers_the_slope_as_often_as_it_says() -> None:
    """False-alarm rate below 1e-6: 600 intervals of 95 %, with repetitions of 40 each."""
    generator = np.random.default_rng(1)
    places, hits = (1.0, 10.0, 100.0), 0
    for _ in range(600):
        drawn = {("c", x): list(generator.gamma(4.0, x**-1.0 / 4.0, 40)) for x in places}
        found = slope_and_reach(points("", drawn))
        assert found is not None
        hits += abs(found[0] + 1.0) <= found[1]
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], 600, [0.93, 0.97])
    assert low <= hits <= high


def test_a_ratio_of_points_that_share_their_luck_has_a_narrow_interval() -> None:
    generator = np.random.default_rng(2)
    luck = generator.gamma(2.0, 1.0, 30)
    one, other = points("", {("a", 1.0): list(3.0 * luck), ("b", 1.0): list(luck)})
    ratio, reach = ratio_and_reach(one, other)
    assert ratio == pytest.approx(3.0)
    assert reach == pytest.approx(0.0, abs=1e-12)
    apart = points("", {("c", 1.0): list(generator.gamma(2.0, 1.0, 29))})[0]
    ratio, reach = ratio_and_reach(one, apart)
    relative = [each.half_width / each.mean for each in (one, apart)]
    assert reach == pytest.approx(ratio * sqrt(relative[0] ** 2 + relative[1] ** 2))


def test_the_best_height_is_open_where_another_cannot_be_told_from_it() -> None:
    find = best_within("p", "recall", 7, 9)
    noisy = {("recall", 5.0): [0.9, 1.1, 1.0], ("recall", 8.0): [0.8, 1.3, 1.0]}
    assert find(Curves(points("p", noisy))).agrees is None
    clear = noisy | {("recall", 8.0): [2.0, 2.1, 2.2]}
    assert find(Curves(points("p", clear))).agrees is False
    best = noisy | {("recall", 8.0): [0.5, 0.6, 0.5]}
    assert find(Curves(points("p", best))).agrees is True


def test_flat_is_a_change_below_a_factor_of_two_in_all_of_its_interval() -> None:
    find = flat_beyond("p", "c", 20)
    flat = points("p", {("c", 20.0): [1.0, 2.0], ("c", 200.0): [0.9, 1.8]})
    falling = points("p", {("c", 20.0): [1.0, 2.0], ("c", 200.0): [0.1, 0.2]})
    assert find(Curves(flat)).agrees is True
    assert find(Curves(falling)).agrees is False
    assert find(Curves(falling)).preset == "0.10 ± 0.00 times from 20 to 200"


def test_order_is_open_where_neighbours_overlap() -> None:
    find = in_order("p", ["a", "b"], lambda name: name)
    apart = points("p", {("a", 1.0): [0.10, 0.11], ("b", 1.0): [0.90, 0.91]})
    turned = points("p", {("a", 1.0): [0.90, 0.91], ("b", 1.0): [0.10, 0.11]})
    overlap = points("p", {("a", 1.0): [0.1, 0.9], ("b", 1.0): [0.2, 0.9]})
    assert [find(Curves(each)).agrees for each in (apart, turned, overlap)] == [True, False, None]


def test_the_closed_form_counts_the_nodes_of_a_prefix() -> None:
    for fanout, levels in ((2, 6), (4, 3)):
        leaves = fanout**levels
        nodes = [sum(end // fanout**up % fanout for up in range(levels)) for end in range(leaves)]
        variance = 2.0 * levels**2 * float(np.mean(nodes))
        assert variance == pytest.approx(shared_prefix_variance(fanout, levels))


def test_the_local_closed_form_is_what_simulated_clients_give() -> None:
    """False-alarm rate below 1e-6: a variance of 6,000 draws within five and a half of its sds."""
    generator = np.random.default_rng(3)
    levels, rows, epsilon = 4, 400, 2.0
    q = 1.0 / (exp(epsilon) + 1.0)
    # A quarter of the rows is in the prefix, spread over (f - 1) h / 2 = 2 nodes of two levels.
    drawn = []
    for _ in range(6_000):
        level = generator.integers(levels, size=rows)
        total = 0.0
        for node, holds in ((0, 60), (2, 40)):
            asked = level == node
            inside = np.zeros(rows, dtype=bool)
            inside[slice(0, 60) if holds == 60 else slice(60, 100)] = True
            sends = generator.random(rows) < np.where(inside, 0.5, q)
            total += levels * float(((sends - q) * asked).sum()) / (0.5 - q)
        drawn.append(total)
    expected = rows * local_prefix_variance(2, levels, epsilon)
    # Of the rows inside one node, another node takes no share: C h Q of the closed form.
    less = 100 * levels * q * (1.0 - q) / (0.5 - q) ** 2
    ratio = float(np.var(drawn)) / (expected - less)
    assert abs(log(ratio)) < 5.5 * sqrt(2.0 / 6_000)


@pytest.mark.parametrize(("after", "verdict"), [(0.5, True), (0.9, False)])
def test_a_change_is_a_ratio_of_two_curves_at_one_place(after: float, verdict: bool) -> None:
    curves = Curves(
        points(
            "p", {("raw", 10.0): [1.0, 1.0], ("fit", 10.0): [after] * 2, ("ours", 10.0): [0.1] * 2}
        )
    )
    finding = changes("p", "raw", "fit", 10.0, "ours", low=0.3, high=0.7)(curves)
    assert finding.agrees is verdict
    assert "before" in finding.preset
    assert "0.1" in finding.default


@pytest.mark.parametrize(("noisy", "verdict"), [(2.0, True), (1.2, False)])
def test_noise_makes_worse_by_half_or_it_does_not(noisy: float, verdict: bool) -> None:
    curves = Curves(
        points("noisy", {("c", 10.0): [noisy] * 2, ("ours", 10.0): [0.1] * 2})
        + points("exact", {("c", 10.0): [1.0, 1.0]})
    )
    assert worse_elsewhere("noisy", "exact", "c", 10.0, "ours")(curves).agrees is verdict


def test_one_place_has_no_slope() -> None:
    assert slope_and_reach(points("p", {("c", 10.0): [1.0, 1.1]})) is None


def line(name: str, places: tuple[float, ...], power: float, at_one: float = 1.0) -> list[Point]:
    """An exact power law, without luck."""
    return points("p", {(name, x): [at_one * x**power] * 2 for x in places})


@pytest.mark.parametrize(("base", "verdict"), [(2.0, True), (4.0, False), (1.2, False)])
def test_an_error_that_halves_with_every_level_falls_to_a_tenth_in_three_and_a_third(
    base: float, verdict: bool
) -> None:
    found = points("p", {("recall", h): [base**-h] * 2 for h in (4.0, 8.0, 14.0)})
    finding = falls_per_level("p", "recall", 2.5, 4.5)(Curves(found))
    assert finding.agrees is verdict
    assert finding.preset.startswith(f"a tenth in {1.0 / np.log10(base):.1f} ± 0.0")


def test_the_largest_of_curves_must_be_so_against_every_other() -> None:
    shown = points("p", {("a", 1.0): [3.0, 3.1], ("b", 1.0): [1.0, 1.1], ("c", 1.0): [3.9, 4.0]})
    assert largest_of("p", "a", ["b"], 1.0)(Curves(shown)).agrees is True
    assert largest_of("p", "a", ["b", "c"], 1.0)(Curves(shown)).agrees is False
    assert largest_of("p", "a", ["b"], 1.0, least=5.0)(Curves(shown)).agrees is False


@pytest.mark.parametrize(("times", "verdict"), [(1.5, True), (3.0, False), (0.4, False)])
def test_curves_are_comparable_within_a_factor_of_two(times: float, verdict: bool) -> None:
    shown = points("p", {("a", 9.0): [times, 2.0 * times], ("b", 9.0): [1.0, 2.0]})
    assert comparable("p", "a", "b", 1e9)(Curves(shown)).agrees is verdict
    other = points("q", {("a", 9.0): [1.0, 2.0], ("ours", 9.0): [0.5, 0.5]})
    both = Curves(shown + other + points("p", {("ours", 9.0): [0.5, 0.5]}))
    assert alike_elsewhere("p", "q", "a", 9.0, "ours")(both).agrees is verdict


def test_clients_for_a_bound_are_where_the_power_law_passes_it() -> None:
    falling = line("a", (1e3, 1e4, 1e5), -0.5)
    # x^(-1/2) is 0.02 at 2,500.
    assert crossing(falling, 0.02, 0.0) == pytest.approx(2_500)
    assert crossing(falling, 1e-9, 0.0) == np.inf
    assert crossing(falling, 0.5, 0.0) == 1e3, "where it begins is as far as is known"
    curves = Curves(falling + line("ours", (1e3, 1e4, 1e5), -0.5, 0.1))
    for bounds, verdict in (((1e3, 4e3), True), ((3e3, 4e3), False)):
        found = first_below("p", "a", "ours", 0.02, within_clients=bounds)(curves)
        assert (found.agrees, found.preset) == (verdict, "2,500 (2,500 to 2,500)")
        assert found.default == "1,000"
    assert first_below("p", "a", "ours", 1e-6, within_clients=(1e3, 1e9))(curves).preset == (
        "never (never to never)"
    )


def test_clients_for_a_bound_are_open_where_the_intervals_ends_disagree() -> None:
    wide = points("p", {("a", 1e3): [0.1, 0.11], ("a", 1e5): [0.001, 0.011]})
    found = first_below("p", "a", "a", 0.01, within_clients=(1e3, 1e4))(Curves(wide))
    assert (found.agrees, found.preset) == (None, "44,000 (1,000 to never)")


@pytest.mark.parametrize(("goal", "verdict"), [(1e-6, True), (1e-4, False)])
def test_curves_meet_where_the_falling_one_drawn_on_reaches_the_other(
    goal: float, verdict: bool
) -> None:
    curves = Curves(line("down", (1e3, 1e4), -1.0) + line("flat", (1e3, 1e4), 0.0, goal))
    found = meets("p", "down", "flat", 1e5, 1e7)(curves)
    assert found.agrees is verdict
    where = f"{1.0 / goal:,.0f}"
    assert found.preset == f"{where} ({where} to {where})"
    rising = Curves(line("down", (1e3, 1e4), 1.0) + line("flat", (1e3, 1e4), 0.0, goal))
    assert meets("p", "down", "flat", 1e5, 1e7)(rising).agrees is None


def test_a_flatter_curve_is_the_slower_one() -> None:
    both = Curves(line("a", (1.0, 9.0), -0.3) + line("b", (1.0, 9.0), -0.5))
    assert slower("p", "a", "b")(both).agrees is True
    assert slower("p", "b", "a")(both).agrees is False
    assert slower("p", "a", "b")(Curves(line("a", (1.0,), 1.0))).agrees is None


@pytest.mark.parametrize(("value", "near", "above"), [(0.1, True, True), (0.04, False, False)])
def test_a_value_is_near_to_the_papers_or_at_least_a_bound(
    value: float, near: bool, above: bool
) -> None:
    curves = Curves(points("p", {("c", 20.0): [value, value]}))
    assert near_to("p", "c", 20.0, 0.1)(curves).agrees is near
    assert at_least("p", "c", 20.0, 0.05)(curves).agrees is above
