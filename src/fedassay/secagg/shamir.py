"""Shamir's secret sharing over the field of p = 2^256 - 189.

A secret is the value at 0 of a random polynomial; `threshold` values elsewhere give it back,
fewer say nothing. Shares are values at 1, 2, ... in the order of their holders.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import comb, prod

from fedassay.randomness import Randomness

PRIME = 2**256 - 189
ELEMENT_BYTES = 32


def draw_element(randomness: Randomness) -> int:
    """A uniform field element, by rejection."""
    while True:
        drawn = int.from_bytes(randomness.bytes(ELEMENT_BYTES), "little")
        if drawn < PRIME:
            return drawn


def split(secret: int, holders: int, threshold: int, *, randomness: Randomness) -> list[int]:
    """One share for each holder, of which any `threshold` give the secret back."""
    coefficients = [draw_element(randomness) for _ in range(threshold - 1)]
    shares = []
    for x in range(1, holders + 1):
        # Horner; reduced once at the end, because the points are small.
        value = 0
        for coefficient in coefficients:
            value = value * x + coefficient
        shares.append((value * x + secret) % PRIME)
    return shares


def combine(slots: Sequence[int], shares: Sequence[int]) -> int:
    """The secret from the shares of the holders in these slots, counted from 0."""
    weights = _weights(tuple(slots))
    return sum(weight * share for weight, share in zip(weights, shares, strict=True)) % PRIME


@lru_cache(maxsize=256)
def _weights(slots: tuple[int, ...]) -> tuple[int, ...]:
    """Lagrange's coefficients at 0.

    Of all points 1 ... K the coefficient of x is (-1)^(x-1) C(K, x). A point m that is missing
    takes the factor m / (m - x) away: few are, so this costs their number for each coefficient
    where the product over all others would cost the number of holders.
    """
    points = [slot + 1 for slot in slots]
    row = _binomials(max(points))
    missing = sorted(set(range(1, len(row))).difference(points))
    scale = pow(prod(missing), -1, PRIME)
    return tuple(
        (row[x] if x % 2 else -row[x]) * prod(m - x for m in missing) * scale % PRIME
        for x in points
    )


@lru_cache(maxsize=64)
def _binomials(largest: int) -> tuple[int, ...]:
    return tuple(comb(largest, x) for x in range(largest + 1))
