"""Curves that rise: a monotone cubic through cumulative counts, and the nearest rising row.

The cubic says what lies inside a bucket, if scores are smooth.
"""

import numpy as np

from fedassay.examples import FloatArray

_BACKWARDS = slice(None, None, -1)
# A cubic that starts or ends with more than so many times its mean slope may fall between.
_STEEPEST = 3.0


def monotone_slopes(
    widths: FloatArray, counts: FloatArray, heaps: tuple[bool, bool] = (False, False)
) -> FloatArray:
    """Slopes of the monotone cubic (PCHIP) through cumulative counts, at every edge.

    Weighted harmonic means of neighbouring densities inside, one-sided three-point
    estimates at the ends (Fritsch and Butland 1984). Where the first or the last cell is a heap,
    no stretch of scores, the others' curve ends beside it.

    >>> widths, counts = np.array([2.0**-52, 0.5, 0.5]), np.array([9.0, 1.0, 1.0])
    >>> monotone_slopes(widths, counts)[1:].round(6).tolist()
    [6.0, 2.0, 2.0]
    >>> monotone_slopes(widths, counts, (True, False))[1:].tolist()
    [2.0, 2.0, 2.0]
    """
    slopes = _slopes(widths, counts)
    first, last = int(heaps[0]), len(widths) - int(heaps[1])
    if first == 0 and last == len(widths):
        return slopes
    slopes[..., first : last + 1] = _slopes(widths[first:last], counts[..., first:last])
    for heap, edge in ((0, first), (-1, last)):
        if heaps[heap]:
            # No steeper than a curve through a heap may be that hardly anybody is in.
            most = np.maximum(_STEEPEST * counts[..., heap] / widths[heap], 0.0)
            slopes[..., edge] = np.minimum(slopes[..., edge], most)
    return slopes


def _slopes(widths: FloatArray, counts: FloatArray) -> FloatArray:
    density = counts / widths
    cells = density.shape[-1]
    if cells == 1:
        return np.repeat(density, 2, axis=-1)
    left, right = density[..., :-1], density[..., 1:]
    weight_left = 2.0 * widths[1:] + widths[:-1]
    weight_right = widths[1:] + 2.0 * widths[:-1]
    signs = np.sign(density)
    rising = signs[..., :-1] * signs[..., 1:] > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = (weight_left + weight_right) / (weight_left / left + weight_right / right)
    slopes = np.empty((*density.shape[:-1], cells + 1))
    slopes[..., 1:-1] = np.where(rising, inner, 0.0)
    # The outermost two and those beside them, from either end; slices cost less than lists do.
    outer = slice(None, None, cells - 1)
    beside = slice(1, -1, cells - 3) if cells > 3 else slice(1, 2) if cells == 3 else _BACKWARDS
    slopes[..., ::cells] = _end_slopes(
        widths[outer], widths[beside], density[..., outer], density[..., beside]
    )
    return slopes


def _end_slopes(
    near: FloatArray, far: FloatArray, first: FloatArray, second: FloatArray
) -> FloatArray:
    slope = ((2.0 * near + far) * first - near * second) / (near + far)
    sign = np.sign(first)
    slope = np.where(np.sign(slope) != sign, 0.0, slope)
    overshoots = (sign != np.sign(second)) & (np.abs(slope) > 3.0 * np.abs(first))
    return np.where(overshoots, 3.0 * first, slope)


def nearest_rising(values: FloatArray) -> FloatArray:
    """The row without a fall that is nearest to another by least squares.

    Neighbours that fall are pooled, each pool at its mean (pool adjacent violators). Written
    out here because scipy.optimize takes longer to load than a survey to plan.

    >>> nearest_rising(np.array([1.0, 3.0, 2.0, 5.0])).tolist()
    [1.0, 2.5, 2.5, 5.0]
    """
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        mean, size = value, 1
        while means and means[-1] >= mean:
            before = sizes.pop()
            mean = (means.pop() * before + mean * size) / (before + size)
            size += before
        means.append(mean)
        sizes.append(size)
    return np.repeat(means, sizes)


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
