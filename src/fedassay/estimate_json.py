"""Estimates in JSON's terms, and their names for experiment trackers."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from fedassay.estimate import Estimate, NotEnoughData, TooCoarse


def tracker_name(name: str) -> str:
    """A metric's name with letters only that experiment trackers accept.

    >>> tracker_name("recall@specificity=0.9")
    'recall_at_specificity_0.9'
    """
    return name.replace("@", "_at_").replace("=", "_")


def estimates_json(estimates: Mapping[str, Estimate]) -> dict[str, dict[str, Any]]:
    """Estimates by name, in JSON's terms: what is not finite becomes null."""
    return {name: estimate_json(estimate) for name, estimate in estimates.items()}


def estimate_json(estimate: Estimate) -> dict[str, Any]:
    """One estimate with its 95 % interval for the population's value."""
    low, high = estimate.interval(0.95)
    content: dict[str, Any] = {
        "value": _finite(estimate.value),
        "low": _finite(low),
        "high": _finite(high),
        "noise_sd": _finite(estimate.noise_sd),
        "binning_bound": _finite(estimate.binning_bound),
        "binning_sd": _finite(estimate.binning_sd),
        "sampling_sd": _finite(estimate.sampling_sd),
    }
    if isinstance(estimate, NotEnoughData):
        content["kind"] = "too coarse" if isinstance(estimate, TooCoarse) else "not enough data"
        content["reason"] = estimate.reason
    return content


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None
