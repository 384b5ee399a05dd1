from collections.abc import Callable
from math import exp, factorial

import numpy as np
import pytest
from scipy import stats

from fedassay.mechanisms.sampling import Dice
from fedassay.randomness import SimulatedRandomness
from tests.laws import FALSE_ALARM, FloatArray, IntArray, chi_square

DRAWS = 20_000
Draw = Callable[[Dice], int]
Pmf = Callable[[IntArray], FloatArray]


def poisson(mean: float) -> Pmf:
    return lambda k: np.asarray(stats.poisson.pmf(k, mean))


def geometric(step: float) -> Pmf:
    return lambda k: np.where(k >= 0, -np.expm1(-step) * np.exp(-step * np.maximum(k, 0)), 0.0)


def coin(chance: float) -> Pmf:
    return lambda k: np.where(k == 1, chance, np.where(k == 0, 1.0 - chance, 0.0))


def even(limit: int) -> Pmf:
    return lambda k: np.where((k >= 0) & (k < limit), 1.0 / limit, 0.0)


LAWS: dict[str, tuple[Draw, Pmf]] = {
    "three bits": (lambda d: d.bits(3), even(8)),
    "below 1": (lambda d: d.below(1), even(1)),
    "below 7": (lambda d: d.below(7), even(7)),
    "below 64": (lambda d: d.below(64), even(64)),
    "bernoulli 2/7": (lambda d: d.bernoulli(2, 7), coin(2 / 7)),
    "bernoulli 0": (lambda d: d.bernoulli(0, 5), coin(0.0)),
    "bernoulli 1": (lambda d: d.bernoulli(5, 5), coin(1.0)),
    "exp(-0)": (lambda d: d.bernoulli_exp(0, 3), coin(1.0)),
    "exp(-1/3)": (lambda d: d.bernoulli_exp(1, 3), coin(exp(-1 / 3))),
    "exp(-1)": (lambda d: d.bernoulli_exp(1, 1), coin(exp(-1))),
    "geometric 1/10": (lambda d: d.geometric_exp(1, 10), geometric(0.1)),
    "geometric 1": (lambda d: d.geometric_exp(1, 1), geometric(1.0)),
    "geometric 7/3": (lambda d: d.geometric_exp(7, 3), geometric(7 / 3)),
    "half geometric": (lambda d: d.half_geometric(), geometric(float(np.log(2)))),
    "poisson 1/50": (lambda d: d.poisson(1, 50), poisson(0.02)),
    "poisson 1/2": (lambda d: d.poisson(1, 2), poisson(0.5)),
    "poisson 3/5": (lambda d: d.poisson(3, 5), poisson(0.6)),
    "poisson 17/2": (lambda d: d.poisson(17, 2), poisson(8.5)),
    **{
        f"single of poisson {a}/{b}": (
            lambda d, a=a, b=b: d.single_of_poisson(a, b),  # type: ignore[misc]  # bound when made
            coin(a / b / np.expm1(a / b)),
        )
        for a, b in ((1, 100), (1, 2), (1, 1), (3, 2), (10, 1))
    },
}

# One step beside each law: what a slip in the sampler would give.
WRONG: dict[str, tuple[Draw, Pmf]] = {
    "a closed interval": (lambda d: d.below(7), even(8)),
    "a remainder": (lambda d: d.bits(4) % 7, even(7)),
    "geometric from one": (lambda d: 1 + d.geometric_exp(1, 1), geometric(1.0)),
    "geometric of twice": (lambda d: d.geometric_exp(2, 10), geometric(0.1)),
    "poisson without k!": (lambda d: d.half_geometric(), poisson(1.0)),
    "poisson of more": (lambda d: d.poisson(21, 40), poisson(0.6)),
    "exp(-x) by its first term": (lambda d: d.bernoulli(2, 3), coin(exp(-1 / 3))),
    "any poisson": (lambda d: d.poisson(1, 1) == 1, coin(1 / np.expm1(1))),
}


def p_value(draw: Draw, pmf: Pmf) -> float:
    dice = Dice(SimulatedRandomness(1))
    return chi_square([int(draw(dice)) for _ in range(DRAWS)], pmf)


@pytest.mark.statistical
@pytest.mark.parametrize(("draw", "pmf"), LAWS.values(), ids=LAWS.keys())
def test_dice_follow_the_exact_law(draw: Draw, pmf: Pmf) -> None:
    # False alarms: 1e-6 each, on a fixed stream. Draws: 20,000.
    assert p_value(draw, pmf) > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize(("draw", "pmf"), WRONG.values(), ids=WRONG.keys())
def test_a_slip_in_a_sampler_is_seen(draw: Draw, pmf: Pmf) -> None:
    assert p_value(draw, pmf) < FALSE_ALARM


def test_bits_are_used_once_and_in_order() -> None:
    class Counting:
        is_secret = False
        served = 0

        def bytes(self, count: int) -> bytes:
            self.served += count
            return bytes(i % 251 for i in range(self.served - count, self.served))

    source = Counting()
    dice = Dice(source)
    drawn = [dice.bits(width) for width in (3, 13, 0, 64, 1000, 8)]
    stream = int.from_bytes(bytes(i % 251 for i in range(source.served)), "little")
    for width, value in zip((3, 13, 0, 64, 1000, 8), drawn, strict=True):
        assert value == stream & ((1 << width) - 1)
        stream >>= width


def test_huge_fractions_stay_exact() -> None:
    dice = Dice(SimulatedRandomness(2))
    top, bottom = factorial(40), factorial(40) + 1
    assert all(dice.bernoulli(top, bottom) for _ in range(200))
    assert not any(dice.bernoulli(1, bottom) for _ in range(200))
