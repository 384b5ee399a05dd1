"""Tighter composition when a delta is allowed, by Google's dp-accounting (an extra)."""

import math
from fractions import Fraction
from functools import lru_cache
from importlib.util import find_spec

from fedassay.errors import SettingInvalid

_LARGEST_STEP = 1e-4
_STEPS = 50_000
"""Into how many steps the whole loss is divided; a charge is rounded up to a whole step."""
_SLACK = Fraction(1, 10**6)
"""Added to the result, far above the rounding of charges and sums in floating point."""


def is_available() -> bool:
    """Whether the extra is installed."""
    return find_spec("dp_accounting") is not None


def require() -> None:
    """Raise unless the extra is installed."""
    if not is_available():
        raise SettingInvalid(
            "a budget with a delta composes by dp-accounting, which is not installed. "
            "Install it (pip install 'fedassay[accounting]'), or set a budget without a delta."
        )


@lru_cache(maxsize=256)
def composed(costs: frozenset[tuple[Fraction, int]], delta: Fraction) -> Fraction:
    """An epsilon such that answers of these costs, so often each, are (epsilon, delta)-private.

    Guarantee: an upper bound of the optimal composition of pure differential privacy (Kairouz,
    Oh and Viswanath 2015; Murtagh and Vadhan 2016): each answer is dominated by randomised
    response with its epsilon, whose privacy losses are convolved with rounding upwards. Never
    more than the plain sum.
    """
    costs = frozenset((paid, times) for paid, times in costs if paid > 0)
    total = sum((paid * times for paid, times in costs), Fraction(0))
    if sum(times for _, times in costs) < 2:
        return total
    require()
    from dp_accounting.pld import common, privacy_loss_distribution

    # A whole number of steps to the smallest charge, so that equal charges are not rounded.
    least = float(min(paid for paid, _ in costs))
    step = least / math.ceil(least / min(_LARGEST_STEP, float(total) / _STEPS))
    whole = None
    for paid, times in sorted(costs):
        one = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(float(paid), 0.0),
            value_discretization_interval=step,
        ).self_compose(times)
        whole = one if whole is None else whole.compose(one)
    allowed = math.nextafter(float(delta), 0.0)
    epsilon = float("inf") if whole is None else whole.get_epsilon_for_delta(allowed)
    return min(total, Fraction(epsilon) + _SLACK) if math.isfinite(epsilon) else total
