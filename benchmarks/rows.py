"""Synthetic scored rows: beta scores, labels drawn with the score as their probability."""

import numpy as np
import numpy.typing as npt

Rows = tuple[npt.NDArray[np.int8], npt.NDArray[np.float64]]


def scored_rows(rows: int, *, generator: np.random.Generator) -> Rows:
    """Labels and scores of a perfectly calibrated classifier."""
    scores = generator.beta(2.0, 3.0, rows)
    labels = (generator.random(rows) < scores).astype(np.int8)
    return labels, scores
