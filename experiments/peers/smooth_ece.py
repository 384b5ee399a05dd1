"""Smooth ECE (Błasiok and Nakkiran 2023, arXiv 2309.12236): no bins, no choice to make.

Residuals y - f are smoothed over [0, 1] by a Gaussian kernel reflected at both ends; smECE at
width sigma is the integral of the absolute value, and smECE the width that equals its own value.
"""

from math import ceil

import numpy as np

from fedassay.examples import FloatArray

_PLACES = 4096
_STEPS = 40


def smooth_ece(counts: FloatArray, scores: FloatArray) -> float:
    """Of counts by label x score: the fixed point of `smoothed_residual`, by halving."""
    residual = (counts[1] - scores * counts.sum(axis=0)) / counts.sum()
    cells = _on_places(residual, scores)
    low, high = 1.0 / _PLACES, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        # The smoothed value falls with the width, so that there is one crossing.
        low, high = (middle, high) if smoothed_residual(cells, middle) > middle else (low, middle)
    return high


def smoothed_residual(cells: FloatArray, width: float) -> float:
    """The integral of |residuals smoothed by a reflected Gaussian|, on even places of [0, 1]."""
    reach = ceil(6.0 * width * _PLACES)
    around = np.arange(-reach, reach + 1) / _PLACES / width
    kernel = np.exp(-(around**2) / 2.0)
    kernel /= kernel.sum()
    size = len(cells) + 2 * reach
    smooth = np.fft.irfft(np.fft.rfft(cells, 2 * size) * np.fft.rfft(kernel, 2 * size), 2 * size)
    return float(np.abs(_folded(smooth[: len(cells) + 2 * reach], reach, len(cells))).sum())


def _folded(line: FloatArray, reach: int, places: int) -> FloatArray:
    """What fell beyond an end comes back mirrored at it, as often as it must."""
    at = np.arange(len(line)) - reach
    period = 2 * places
    at = np.mod(at, period)
    at = np.where(at >= places, period - 1 - at, at)
    folded: FloatArray = np.bincount(at, line, places).astype(np.float64)
    return folded


def _on_places(residual: FloatArray, scores: FloatArray) -> FloatArray:
    """Each residual at the nearest of the even places."""
    place = np.minimum((scores * _PLACES).astype(np.int64), _PLACES - 1)
    cells: FloatArray = np.bincount(place, residual, _PLACES).astype(np.float64)
    return cells
