"""How claims are read from points: intervals of slopes and ratios, verdicts, closed forms."""

from math import exp, log, sqrt

import numpy as np
import pytest
from scipy import stats

from fedassay.reproduction.findings import (
    Curves,
    best_within,
    changes,
    flat_beyond,
    in_order,
    local_prefix_variance,
    ratio_and_reach,
    shared_prefix_variance,
    slope_and_reach,
    within,
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
