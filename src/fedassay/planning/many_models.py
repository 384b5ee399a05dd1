"""The noise of one survey under several models of the scores at once: a search asks it often."""

from functools import lru_cache

import numpy as np

from fedassay.cut_levels import AnyLevels
from fedassay.examples import FloatArray
from fedassay.hierarchy import Hierarchy
from fedassay.planning.forecast import expected_levels
from fedassay.survey import Survey


def noise_variances(
    survey: Survey, counts: FloatArray, weights: FloatArray, *, clients: float
) -> FloatArray:
    """Variances of sums of weights x counts, model x sum, as `expected_histogram` has them.

    `counts` are expected ones on the survey's grid (model x label x cell), `weights` are of
    several sums for each model (model x sum x label x cell).

    >>> import fedassay
    >>> asked = {"privacy": "distributed", "epsilon": 1, "minimum_reports": 1000, "height": 1}
    >>> survey = fedassay.new_survey(**asked)
    >>> variances = noise_variances(survey, np.ones((1, 2, 2)), np.ones((1, 1, 2, 2)), clients=1e3)
    >>> variances.round(2).tolist()  # of four counters, 2 e / (e - 1)^2 each
    [[7.37]]
    """
    of_levels = [
        variances[:, np.newaxis]
        for _, variances in expected_levels(survey, counts, clients, survey.grid)
    ]
    if isinstance(survey.hierarchy, Hierarchy):
        form = _of_tree(survey.hierarchy, of_levels, weights, given_total=survey.total_is_known)
    else:
        form = _of_any(survey, of_levels, weights)
    if survey.samples_clients:
        # The part that the table of all clients has too is no noise.
        table = counts[:, np.newaxis]
        weighted = table * weights
        totals = np.maximum(table.sum(axis=(2, 3)), 1.0)
        form = (
            form - (weighted * weights).sum(axis=(2, 3)) + weighted.sum(axis=(2, 3)) ** 2 / totals
        )
    return np.maximum(form, 0.0)


def _of_tree(
    tree: Hierarchy, variances: list[FloatArray], weights: FloatArray, *, given_total: bool
) -> FloatArray:
    """As `noise.TreeNoise.variance`, where the recursion is told."""
    own = variances[-1]
    s, t, q = own, own * weights, own * weights**2
    for level in range(tree.levels - 2, -1, -1):
        own, starts = variances[level], tree.child_starts(level)
        s, t, q = (np.add.reduceat(x, starts, axis=-1) for x in (s, t, q))
        whole = s + own
        s, t, q = s * own / whole, t * own / whole, q - t**2 / whole
    form: FloatArray = q.sum(axis=(2, 3))
    return form - t.sum(axis=(2, 3)) ** 2 / s.sum(axis=(2, 3)) if given_total else form


@lru_cache(maxsize=64)
def _all_rows(levels: AnyLevels) -> FloatArray:
    """How the counters of all levels add leaves up, label x counter x leaf."""
    rows = np.concatenate([levels.rows(level) for level in range(levels.levels)], axis=1)
    rows.flags.writeable = False
    return rows


def _of_any(survey: Survey, variances: list[FloatArray], weights: FloatArray) -> FloatArray:
    """As `noise.DenseNoise.variance` of `reconcile.fit_leaves`, without the covariances."""
    rows = _all_rows(survey.hierarchy)
    own = np.concatenate(variances, axis=-1)[:, 0, :, :, np.newaxis]
    precision = rows.swapaxes(1, 2) @ (rows / own)
    ones = np.ones((len(weights), 1, 2, rows.shape[-1]))
    asked = np.concatenate([weights, ones], axis=1).transpose(0, 2, 3, 1)
    solved = np.linalg.solve(precision, asked)
    form: FloatArray = np.einsum("mlns,mlns->ms", asked, solved)
    if not survey.total_is_known:
        return form[:, :-1]
    with_total: FloatArray = np.einsum("mlns,mln->ms", asked, solved[..., -1])
    return form[:, :-1] - with_total[:, :-1] ** 2 / form[:, -1:]
