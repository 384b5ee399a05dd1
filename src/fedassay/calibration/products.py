"""Products of matrices in pieces so small that BLAS starts no threads.

Two threads save a fraction of a millisecond on a product of this size where nobody else runs. Where
somebody does, one of them waits for the other, and the product takes a hundred times as long.
"""

import numpy as np

from fedassay.examples import FloatArray

_ALONE = 2**18
"""OpenBLAS multiplies matrices on one thread up to so many multiplications."""
_ALONE_VECTOR = 9_000
"""And a vector and a matrix of up to so many entries: below 9,216."""


def matrix_product(left: FloatArray, right: FloatArray) -> FloatArray:
    """`left @ right` of two matrices.

    >>> matrix_product(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])).tolist()
    [[11.0]]
    """
    step = max(_ALONE // max(left.shape[0] * right.shape[1], 1), 1)
    total = np.zeros((left.shape[0], right.shape[1]))
    for first in range(0, left.shape[1], step):
        total += left[:, first : first + step] @ right[first : first + step]
    return total


def row_product(row: FloatArray, matrix: FloatArray) -> FloatArray:
    """`row @ matrix` of a vector and a matrix.

    >>> row_product(np.array([1.0, 2.0]), np.array([[3.0, 5.0], [4.0, 6.0]])).tolist()
    [11.0, 17.0]
    """
    step = max(_ALONE_VECTOR // max(len(row), 1), 1)
    found = np.empty(matrix.shape[1])
    for first in range(0, len(found), step):
        found[first : first + step] = row @ matrix[:, first : first + step]
    return found
