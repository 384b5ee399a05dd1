"""Tighter composition when a delta is allowed, by Google's dp-accounting (an extra)."""

import math
from fractions import Fraction
from importlib.util import find_spec

from fedassay.errors import SettingInvalid

_STEP = 1e-4
_SLACK = Fraction(1, 10**6)
"""Added to the result, far above the rounding of its floating-point convolutions."""


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


def composed(costs: frozenset[tuple[Fraction, int]], delta: Fraction) -> Fraction:
    """An epsilon such that answers of these costs, so often each, are (epsilon, delta)-private.

    Guarantee: an upper bound of the optimal composition of pure differential privacy (Kairouz,
    Oh and Viswanath 2015; Murtagh and Vadhan 2016): each answer is dominated by randomised
    response with its epsilon, whose privacy losses are convolved with rounding upwards. Never
    more than the plain sum.
    """
    total = sum((paid * times for paid, times in costs), Fraction(0))
    if sum(times for _, times in costs) < 2:
        return total
    require()
    from dp_accounting.pld import common, privacy_loss_distribution

    whole = None
    for paid, times in sorted(costs):
        upwards = math.nextafter(float(paid), math.inf)
        one = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(upwards, 0.0),
            value_discretization_interval=_STEP,
        ).self_compose(times)
        whole = one if whole is None else whole.compose(one)
    allowed = math.nextafter(float(delta), 0.0)
    epsilon = float("inf") if whole is None else whole.get_epsilon_for_delta(allowed)
    return min(total, Fraction(epsilon) + _SLACK) if math.isfinite(epsilon) else total
