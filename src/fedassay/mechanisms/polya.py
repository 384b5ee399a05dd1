"""Noise shares that add up to discrete Laplace noise (the paper's Distributed DP)."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, log
from typing import Any, ClassVar

import numpy as np

from fedassay.checks import require_fraction, require_whole
from fedassay.errors import SettingInvalid
from fedassay.examples import IntArray
from fedassay.files import Fields
from fedassay.mechanisms.base import LevelSetting, SharingMechanism
from fedassay.mechanisms.law import Law
from fedassay.mechanisms.sampling import Dice
from fedassay.randomness import Randomness

LARGEST_EPSILON = 50


@dataclass(frozen=True, slots=True)
class Polya(SharingMechanism):
    """Each client adds to every counter the difference of two Polya(1/shares, a) variables.

    Over at least `noise_shares` honest clients the differences sum to discrete Laplace noise
    with a = exp(-epsilon / sensitivity), or to that plus independent noise
    (`sec:privacymodels`; Balle et al. 2020).

    Guarantee: the sum of one level's counters over all clients is epsilon-differentially
    private when adding or removing one unit changes the counters by at most
    `sensitivity` in all, if at least `noise_shares` honest clients' reports are in the sum and only
    the sum is revealed. Proof: the discrete Laplace pmf falls by a factor of at most a per
    step, so by at most exp(-epsilon) over `sensitivity` steps; further independent
    noise is post-processing.
    """

    kind: ClassVar[str] = "polya"

    epsilon: Fraction
    sensitivity: int
    noise_shares: int

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        require_whole(self.sensitivity, "a mechanism's sensitivity", 1)
        require_whole(self.noise_shares, "the number of noise shares", 1)

    @property
    def epsilon_spent(self) -> Fraction:
        """Epsilon itself."""
        return self.epsilon

    @property
    def step(self) -> Fraction:
        """-log a: the loss of privacy when a counter changes by one."""
        return self.epsilon / self.sensitivity

    def law(self) -> Law:
        """Unbiased; each report brings its share of the discrete Laplace variance."""
        a = exp(-float(self.step))
        return Law(1.0, 0.0, 2.0 * a / (1.0 - a) ** 2 / self.noise_shares, 0.0)

    def share(self, counts: IntArray, *, randomness: Randomness) -> IntArray:
        """Return the client's counters with its exact share of the noise."""
        return counts + self.noise(counts.size, randomness=randomness).reshape(counts.shape)

    def noise(self, size: int, *, randomness: Randomness) -> IntArray:
        """Draw one client's noise for `size` counters, at a cost that follows the nonzeros.

        A Polya difference jumps by +k and by -k at rates a^k / (k shares). Candidate jumps
        k = 1 + Geometric(a) come at the rate 2 size / (shares x), with x = -log a, and are
        kept with probability (1 / k) (x / (e^x - 1)).
        """
        dice = Dice(randomness)
        x_top, x_bottom = self.step.numerator, self.step.denominator
        rate = self.expected_draws(size)
        noise = np.zeros(size, dtype=np.int64)
        for _ in range(dice.poisson(rate.numerator, rate.denominator)):
            jump = 1 + dice.geometric_exp(x_top, x_bottom)
            if dice.bernoulli(1, jump) and dice.single_of_poisson(x_top, x_bottom):
                noise[dice.below(size)] += jump if dice.bits(1) else -jump
        return noise

    def expected_draws(self, size: int) -> Fraction:
        """Candidate jumps for `size` counters, on average: the work of `noise`."""
        return Fraction(2 * size, self.noise_shares) / self.step

    def largest_noise(self, size: int, bits: int) -> int:
        """What no share on `size` counters passes, except with probability 2^-bits.

        A Polya variable with a shape of at most 1 lies below a geometric one, so that a share
        reaches m with probability at most 2 a^m, and one of `size` with 2 size a^m.
        """
        return ceil((log(2 * size) + bits * log(2)) / self.step)

    def cohort(self, counts: IntArray, *, reports: int, generator: np.random.Generator) -> IntArray:
        """Draw the sum of `reports` clients' shares at once; for simulation only."""
        if reports == 0:
            return counts
        shape = reports / self.noise_shares
        success = -np.expm1(-float(self.step))
        up = generator.negative_binomial(shape, success, counts.shape)
        down = generator.negative_binomial(shape, success, counts.shape)
        return counts + up - down

    def to_json(self) -> dict[str, Any]:
        """Epsilon alone: sensitivity and noise shares follow from the survey."""
        return {"kind": self.kind, "epsilon": str(self.epsilon)}

    @classmethod
    def from_json(cls, fields: Fields, setting: LevelSetting) -> "Polya":
        """Sized for the survey's fewest honest reports."""
        fields.only("kind", "epsilon")
        return cls(fields.fraction("epsilon"), setting.sensitivity, setting.noise_shares)


def check_epsilon(epsilon: Fraction) -> None:
    """Raise unless epsilon is exact, positive and small enough to mean something."""
    require_fraction(epsilon, "epsilon")
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise SettingInvalid(
            f"epsilon must be above 0 and at most {LARGEST_EPSILON}; found {float(epsilon):g}. "
            "Common choices lie between 0.1 and 10."
        )
    if epsilon.denominator > 10**9:
        raise SettingInvalid(
            "epsilon must be a simple fraction or decimal (denominator at most 1e9); found "
            f"{epsilon}. Round it."
        )
