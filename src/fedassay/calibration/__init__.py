"""Calibrators fitted from a score histogram alone, and calibration error read from one."""

from fedassay.calibration.bbq import fit_bbq
from fedassay.calibration.binning import bucket_guideline, fit_binning
from fedassay.calibration.calibrator import Calibrator, Interpolation, Method
from fedassay.calibration.choose import fit, fit_auto
from fedassay.calibration.isotonic import fit_isotonic
from fedassay.calibration.parametric import fit_beta, fit_sigmoid, fit_temperature

__all__ = [
    "Calibrator",
    "Interpolation",
    "Method",
    "bucket_guideline",
    "fit",
    "fit_auto",
    "fit_bbq",
    "fit_beta",
    "fit_binning",
    "fit_isotonic",
    "fit_sigmoid",
    "fit_temperature",
]
