"""Calibrators fitted from a score histogram alone, and calibration error read from one."""

from fedassay.calibration.auto import fit, fit_auto
from fedassay.calibration.bbq import fit_bbq
from fedassay.calibration.binning import bucket_guideline, fit_binning
from fedassay.calibration.bins import Bins, ReliabilityDiagram, reliability_diagram
from fedassay.calibration.calibration_error import ece, mce, signed_gap
from fedassay.calibration.calibrator import Calibrator, Interpolation, Method
from fedassay.calibration.decomposition import Decomposition, brier_parts, log_loss_parts
from fedassay.calibration.displays import CalibrationDisplay
from fedassay.calibration.estimators import (
    AutoCalibrator,
    BBQCalibrator,
    BetaCalibrator,
    BinningCalibrator,
    CalibratedModel,
    IsotonicCalibrator,
    SigmoidCalibrator,
    SmoothCalibrator,
    TemperatureCalibrator,
)
from fedassay.calibration.four_displays import FourDisplays
from fedassay.calibration.isotonic import fit_isotonic
from fedassay.calibration.methods import METHODS, CalibrationMethod
from fedassay.calibration.parametric import fit_beta, fit_sigmoid, fit_temperature
from fedassay.calibration.smooth import fit_smooth
from fedassay.metrics.ici import e50, e90, emax, ici
from fedassay.metrics.weak_calibration import (
    calibration_in_the_large,
    calibration_intercept,
    calibration_slope,
    oe_ratio,
)

__all__ = [
    "METHODS",
    "AutoCalibrator",
    "BBQCalibrator",
    "BetaCalibrator",
    "BinningCalibrator",
    "Bins",
    "CalibratedModel",
    "CalibrationDisplay",
    "CalibrationMethod",
    "Calibrator",
    "Decomposition",
    "FourDisplays",
    "Interpolation",
    "IsotonicCalibrator",
    "Method",
    "ReliabilityDiagram",
    "SigmoidCalibrator",
    "SmoothCalibrator",
    "TemperatureCalibrator",
    "brier_parts",
    "bucket_guideline",
    "calibration_in_the_large",
    "calibration_intercept",
    "calibration_slope",
    "e50",
    "e90",
    "ece",
    "emax",
    "fit",
    "fit_auto",
    "fit_bbq",
    "fit_beta",
    "fit_binning",
    "fit_isotonic",
    "fit_sigmoid",
    "fit_smooth",
    "fit_temperature",
    "ici",
    "log_loss_parts",
    "mce",
    "oe_ratio",
    "reliability_diagram",
    "signed_gap",
]
