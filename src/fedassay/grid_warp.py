"""Edges warped to a public reference sample: cells of about equal mass."""

import numpy as np
import numpy.typing as npt

from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray, checked_labels, checked_scores
from fedassay.grid_rules import EPS
from fedassay.grid_table import FINEST_BITS

ISOLATION = 2.0**-20
"""How far below a spike the cell that isolates it begins, at most."""


def warped_edges(reference: npt.ArrayLike, cells: int, labels: npt.ArrayLike | None) -> FloatArray:
    """All edges, from 0 to 1, of at most so many cells; see `Grid.warped`."""
    scores = checked_scores(reference)
    if len(scores) == 0:
        raise SettingInvalid(
            "a warped grid needs a reference sample; found no scores. "
            "Pass the training scores, or use a uniform grid."
        )
    values, place = np.unique(scores, return_inverse=True)
    weights = balanced_weights(len(scores), labels)
    mass: FloatArray = np.bincount(place, weights=weights) / weights.sum()
    if 2 * len(values) < cells:
        heavy = np.ones(len(values), dtype=bool)
    elif len(values) <= cells:
        heavy = np.zeros(len(values), dtype=bool)
    else:
        heavy = mass > 2.0 / cells
    cuts = np.concatenate(
        [
            _just_below(values)[heavy],
            values[heavy],
            _quantile_cuts(values[~heavy], mass[~heavy], cells - 2 * int(heavy.sum())),
        ]
    )
    # A cut at 0 would be no cell at all; this one parts 0 from what log loss tells apart.
    cuts = np.where(cuts == 0.0, EPS, cuts)
    cuts = np.unique(cuts[cuts < 1.0])
    return np.concatenate([[0.0], _rounded(cuts, values[heavy]), [1.0]])


def balanced_weights(rows: int, labels: npt.ArrayLike | None) -> FloatArray:
    """One for each row, or with labels such that either class weighs half.

    >>> balanced_weights(3, [0, 0, 1]).tolist()
    [0.25, 0.25, 0.5]
    """
    if labels is None:
        return np.ones(rows)
    positive = checked_labels(labels).astype(bool)
    if len(positive) != rows:
        raise SettingInvalid(
            f"a reference needs one label per score; found {len(positive)} labels and "
            f"{rows} scores."
        )
    if positive.all() or not positive.any():
        return np.ones(rows)
    weights: FloatArray = np.where(positive, 0.5 / positive.sum(), 0.5 / (~positive).sum())
    return weights


def _just_below(values: FloatArray) -> FloatArray:
    """A lower edge for the cell that isolates each value from its neighbours."""
    previous = np.concatenate([[0.0], values[:-1]])
    below = np.maximum(previous, values - ISOLATION)
    # Scores of exactly 0 keep company only with what log loss clips to the same value.
    return np.where(values <= EPS, EPS, below)


def _quantile_cuts(values: FloatArray, mass: FloatArray, cells: int) -> FloatArray:
    if len(values) <= cells:
        # The last value needs no cut: what lies above it is empty, or has a cut of its own.
        return values[: max(cells - 1, 0)]
    if cells <= 1:
        return np.zeros(0)
    share = np.cumsum(mass) / mass.sum()
    cuts = np.searchsorted(share, np.arange(1, cells) / cells * (1.0 - 1e-12))
    chosen: FloatArray = values[np.minimum(cuts, len(values) - 1)]
    return chosen


def _rounded(cuts: FloatArray, keep: FloatArray) -> FloatArray:
    """Raise cuts to multiples of 2^-18 where that moves them little: counting is then faster.

    Never down: a cut at a value must stay at or above it.
    """
    if len(cuts) == 0:
        return cuts
    snapped = np.ceil(cuts * 2.0**FINEST_BITS) / 2.0**FINEST_BITS
    gaps = np.diff(np.concatenate([[0.0], cuts, [1.0]]))
    room = np.minimum(gaps[:-1], gaps[1:]) / 64
    moves = (np.abs(snapped - cuts) < room) & ~np.isin(cuts, keep)
    return np.where(moves, snapped, cuts)
