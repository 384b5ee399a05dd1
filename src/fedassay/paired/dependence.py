"""How two models' scores go together inside joint cells, where these are coarser than margins.

Between joint cells the counts tell. Inside them scores are taken to go together as in a Gaussian
copula: of each label, the normal scores of both models' ranks have one correlation rho, the one
that gives the joint counts' own. For functions f and g of the two normal scores,

    E[f(X) g(Y)] = sum over k of rho^k f_k g_k,

with f_k and g_k their coefficients in normalised Hermite polynomials (Mehler 1866).
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from fedassay.examples import FloatArray, IntArray
from fedassay.extras import needed_for

_TERMS = 96
_CLOSEST = 0.995


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One model's scores of one label: fine pieces of its margin, and the groups they make up."""

    counts: FloatArray
    """Rows in each piece, none below zero."""
    group: IntArray
    """The group of joint cells that each piece lies in."""
    basis: FloatArray
    """Of each piece, the integrals of Hermite polynomials against the normal: term x piece."""

    @classmethod
    def of(cls, counts: FloatArray, group: IntArray) -> "Axis":
        """Pieces at the normal scores of their ranks."""
        with needed_for("paired intervals"):
            from scipy.special import ndtri

        held = np.maximum(counts, 0.0) + 1e-12
        below = np.cumsum(held)[:-1] / held.sum()
        inner = np.clip(ndtri(np.clip(below, 0.0, 1.0)), -8.0, 8.0)
        return cls(held, group, _integrals(inner))

    def means(self, values: FloatArray) -> FloatArray:
        """The mean over each group's rows of what each piece has."""
        groups = int(self.group[-1]) + 1
        size = np.bincount(self.group, self.counts, groups)
        sums = np.bincount(self.group, self.counts * values, groups)
        return np.asarray(sums / size, dtype=np.float64)

    def coefficients(self, values: FloatArray) -> FloatArray:
        """In Hermite polynomials, from the first on: the mean is left out."""
        found: FloatArray = self.basis @ values
        return found

    @property
    def ranks(self) -> FloatArray:
        """The mean normal score of each group's rows, piece by piece."""
        share = self.counts / self.counts.sum()
        return self.means(self.basis[0] / share)[self.group]


def _integrals(inner: FloatArray) -> FloatArray:
    """Integrals over pieces between -inf, inner edges and inf: term x piece.

    The integral of h_k phi from a to b is (h_{k-1}(a) phi(a) - h_{k-1}(b) phi(b)) / sqrt(k).
    """
    density = np.exp(-0.5 * inner**2) / sqrt(2.0 * np.pi)
    before, here = np.zeros_like(inner), density
    rows = np.empty((_TERMS, len(inner) + 1))
    for k in range(1, _TERMS + 1):
        padded = np.concatenate([[0.0], here, [0.0]])
        rows[k - 1] = (padded[:-1] - padded[1:]) / sqrt(k)
        before, here = here, (inner * here - sqrt(k - 1) * before) / sqrt(k)
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class Dependence:
    """Two models' scores of one label, with what joint counts say of them together."""

    first: Axis
    second: Axis
    joint: FloatArray
    """Rows of each pair of groups, as counted: noisy ones may be negative."""
    rho: float

    @classmethod
    def of(cls, first: Axis, second: Axis, joint: FloatArray) -> "Dependence":
        """With the correlation of normal scores that gives that of the joint counts."""
        total = float(joint.sum())
        if total <= 0.0:
            return cls(first, second, joint, 0.0)
        one, other = first.ranks, second.ranks
        seen = float(first.means(one) @ joint @ second.means(other)) / total
        products = first.coefficients(one) * second.coefficients(other)
        if not products.any() or min(joint.shape) == 1:
            # One group tells nothing of how scores go together: taken as if they did not.
            return cls(first, second, joint, 0.0)
        low, high = -_CLOSEST, _CLOSEST
        powers = np.arange(1, _TERMS + 1)
        for _ in range(40):
            middle = 0.5 * (low + high)
            above = float((middle**powers * products).sum()) < seen
            low, high = (middle, high) if above else (low, middle)
        return cls(first, second, joint, 0.5 * (low + high))

    def product(self, one: FloatArray, other: FloatArray) -> float:
        """The sum over rows of what a piece of the first has times what one of the second has."""
        means = self.first.means(one), self.second.means(other)
        between = float(means[0] @ self.joint @ means[1])
        fine = self.first.coefficients(one) * self.second.coefficients(other)
        coarse = self.first.coefficients(means[0][self.first.group])
        coarse = coarse * self.second.coefficients(means[1][self.second.group])
        powers = self.rho ** np.arange(1, _TERMS + 1)
        inside = float((powers * (fine - coarse)).sum())
        return between + max(float(self.joint.sum()), 0.0) * inside
