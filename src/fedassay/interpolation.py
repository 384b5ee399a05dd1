"""A monotone cubic through cumulative counts: what lies inside a bucket, if scores are smooth."""

import numpy as np

from fedassay.examples import FloatArray


def monotone_slopes(widths: FloatArray, counts: FloatArray) -> FloatArray:
    """Slopes of the monotone cubic (PCHIP) through cumulative counts, at every edge.

    Weighted harmonic means of neighbouring densities inside, one-sided three-point
    estimates at the ends (Fritsch and Butland 1984).
    """
    density = counts / widths
    if density.shape[-1] == 1:
        return np.repeat(density, 2, axis=-1)
    left, right = density[..., :-1], density[..., 1:]
    weight_left = 2.0 * widths[1:] + widths[:-1]
    weight_right = widths[1:] + 2.0 * widths[:-1]
    rising = np.sign(left) * np.sign(right) > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = (weight_left + weight_right) / (weight_left / left + weight_right / right)
    slopes = np.empty((*density.shape[:-1], density.shape[-1] + 1))
    slopes[..., 1:-1] = np.where(rising, inner, 0.0)
    slopes[..., 0] = _end_slope(widths[0], widths[1], density[..., 0], density[..., 1])
    slopes[..., -1] = _end_slope(widths[-1], widths[-2], density[..., -1], density[..., -2])
    return slopes


def _end_slope(near: float, far: float, first: FloatArray, second: FloatArray) -> FloatArray:
    slope = ((2.0 * near + far) * first - near * second) / (near + far)
    slope = np.where(np.sign(slope) != np.sign(first), 0.0, slope)
    overshoots = (np.sign(first) != np.sign(second)) & (np.abs(slope) > 3.0 * np.abs(first))
    return np.where(overshoots, 3.0 * first, slope)


def cubic(
    part: float | FloatArray, rise: FloatArray, start: FloatArray, end: FloatArray
) -> FloatArray:
    """Hermite cubic from 0 to `rise`, with end slopes per unit of `part`."""
    square, cube = part * part, part * part * part
    return (
        (cube - 2.0 * square + part) * start
        + (3.0 * square - 2.0 * cube) * rise
        + (cube - square) * end
    )
