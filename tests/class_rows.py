"""Rows of many classes for tests: calibrated or not, common and rare."""

import numpy as np

from fedassay.classes.rows import ClassRows


def drawn_rows(
    count: int,
    shares: tuple[float, ...] = (5.0, 2.0, 1.0),
    *,
    sharpness: float = 1.0,
    seed: int = 0,
) -> ClassRows:
    """Probabilities from a Dirichlet law, labels drawn from them; told with another sharpness."""
    generator = np.random.default_rng(seed)
    true = generator.dirichlet(shares, size=count)
    labels = (generator.random((count, 1)) > np.cumsum(true, axis=1)).sum(axis=1)
    told = true**sharpness
    told /= told.sum(axis=1, keepdims=True)
    return ClassRows(np.minimum(labels, len(shares) - 1), told, range(len(shares)))
