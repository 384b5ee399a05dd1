"""The log-odds scale, on which calibration curves are drawn."""

import numpy as np

from fedassay.examples import FloatArray
from fedassay.extras import needed_for

# Scores nearer to 0 or 1 say no more about the odds than these.
NEAREST = 2.0**-20


def log_odds(shares: FloatArray) -> FloatArray:
    """log(p / (1 - p))."""
    return np.log(shares) - np.log1p(-shares)


def off_ends(scores: FloatArray) -> FloatArray:
    """Scores kept away from 0 and 1, so that their log-odds are finite."""
    return np.clip(scores, NEAREST, 1.0 - NEAREST)


def expit(odds: FloatArray) -> FloatArray:
    """The probability at given log-odds."""
    with needed_for("calibration"):
        from scipy import special

    probability: FloatArray = special.expit(odds)
    return probability
