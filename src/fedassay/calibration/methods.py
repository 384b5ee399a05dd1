"""The table of calibrators: one row per method, read by everything that fits one.

To add a calibrator, write its module, name it in `Method` and give it a row here: `fit`, `auto`,
the scikit-learn estimators and the command line follow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from fedassay.calibration.bbq import bbq_from, fit_bbq
from fedassay.calibration.binning import fit_binning
from fedassay.calibration.calibrator import Calibrator, Method
from fedassay.calibration.isotonic import fit_isotonic, isotonic_from
from fedassay.calibration.parametric import (
    BETA,
    SIGMOID,
    TEMPERATURE,
    Family,
    fit_beta,
    fit_sigmoid,
    fit_temperature,
    parametric_from,
)
from fedassay.calibration.rates import BucketRates
from fedassay.calibration.smooth import fit_smooth, smooth_from
from fedassay.errors import SettingInvalid
from fedassay.histogram import ScoreHistogram

RatesFit = Callable[[BucketRates], Calibrator]


class HistogramFit(Protocol):
    """Fits a histogram, exact or noisy; without `noise_aware` its counts are taken as exact."""

    def __call__(self, histogram: ScoreHistogram, /, *, noise_aware: bool = True) -> Calibrator:
        """The fitted map."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationMethod:
    """What there is to know about one way of calibrating."""

    method: Method
    summary: str
    """One line for people who choose."""
    fit: HistogramFit
    is_monotone: bool
    """Whether its maps never fall."""
    candidate: RatesFit | None
    """How `auto` fits it to rates to compare it with the others; None: `auto` passes it by."""


def method_row(method: object) -> CalibrationMethod:
    """The row of a method; text is for the door and the command line to understand.

    >>> method_row(Method.ISOTONIC).summary
    'the nearest rising map'
    """
    if not isinstance(method, Method):
        members = ", ".join(f"Method.{name}" for name in Method.__members__)
        raise SettingInvalid(
            f"method must be a member of Method, or None to choose by expected error; found "
            f"{str(method)[:40]!r}. There are: {members}."
        )
    return METHODS[method]


def _identity(_: ScoreHistogram, /, *, noise_aware: bool = True) -> Calibrator:  # noqa: ARG001  # called as all fits are
    return Calibrator.identity()


def _same(_: BucketRates) -> Calibrator:
    return Calibrator.identity()


def _family(family: Family) -> RatesFit:
    return lambda rates: parametric_from(rates, family)


def _cautious(rates: BucketRates) -> Calibrator:
    return isotonic_from(rates, cautious=True)


def _averaged(rates: BucketRates) -> Calibrator:
    return smooth_from(rates).calibrator


# From the fewest degrees of freedom to the most.
_ROWS = (
    CalibrationMethod(
        method=Method.NONE,
        summary="the score as it is",
        fit=_identity,
        is_monotone=True,
        candidate=_same,
    ),
    CalibrationMethod(
        method=Method.TEMPERATURE,
        summary="one temperature for the log-odds",
        fit=fit_temperature,
        is_monotone=True,
        candidate=_family(TEMPERATURE),
    ),
    CalibrationMethod(
        method=Method.SIGMOID,
        summary="Platt's sigmoid of the log-odds",
        fit=fit_sigmoid,
        is_monotone=True,
        candidate=_family(SIGMOID),
    ),
    CalibrationMethod(
        method=Method.BETA,
        summary="beta calibration",
        fit=fit_beta,
        is_monotone=True,
        candidate=_family(BETA),
    ),
    CalibrationMethod(
        method=Method.SMOOTH,
        summary="smooth rising curves of every roughness, averaged",
        fit=fit_smooth,
        is_monotone=True,
        candidate=_averaged,
    ),
    CalibrationMethod(
        method=Method.ISOTONIC,
        summary="the nearest rising map",
        fit=fit_isotonic,
        is_monotone=True,
        candidate=_cautious,
    ),
    CalibrationMethod(
        method=Method.BINNING,
        summary="rates of equi-depth buckets",
        fit=fit_binning,
        is_monotone=False,
        candidate=None,
    ),
    CalibrationMethod(
        method=Method.BBQ,
        summary="Bayesian binning into quantiles",
        fit=fit_bbq,
        is_monotone=False,
        candidate=bbq_from,
    ),
)
METHODS = {row.method: row for row in _ROWS}
CANDIDATES = {row.method: row.candidate for row in _ROWS if row.candidate is not None}
"""What `auto` compares, in the same order."""
