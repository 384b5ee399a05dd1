"""What two models' scores may look like together before anybody has counted them."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from fedassay.examples import Examples, FloatArray
from fedassay.extras import needed_for
from fedassay.histogram import ScoreHistogram
from fedassay.pair_grid import PairGrid
from fedassay.planning.forecast import expected_examples
from fedassay.planning.request import SurveyRequest
from fedassay.planning.score_model import binormal, from_reference, on_grid

ASSUMED_CORRELATION = 0.8
"""Of the normal scores of both models' ranks, within a label: two good models of the same rows."""
# Where nobody said how rare positives are, nor how good the models: (rate, AUC).
_UNKNOWN = ((0.3, 0.8), (0.1, 0.7), (0.03, 0.85))
_NODES = 8
_CROWDED = -6.0
"""As far off as the scorer of one model's surveys takes log-odds to be where nobody says."""

References = tuple[Examples, Examples]


@dataclass(frozen=True, slots=True, eq=False)
class PairModel:
    """Both models' expected counts, and how they go together: a correlation, or public rows."""

    first: ScoreHistogram
    second: ScoreHistogram
    correlation: float = ASSUMED_CORRELATION
    references: References | None = None
    described: tuple[float, float] = (0.0, 0.0)
    """How rare positives are and how good the models, where nobody gave rows."""

    def leaves(self, grid: PairGrid) -> FloatArray:
        """Expected counts of joint cells, label x (row x column)."""
        if self.references is None:
            return self._correlated(grid)
        seen = grid.count(grid.examples(*self.references)).astype(np.float64)
        rows = np.array([[self.first.total_negatives], [self.first.total_positives]])
        scaled: FloatArray = seen * rows / seen.sum(axis=1, keepdims=True)
        return scaled

    def _correlated(self, grid: PairGrid) -> FloatArray:
        """As in a Gaussian copula: given a first score, the second's normal score is normal."""
        with needed_for("planning"):
            from scipy.special import ndtr, ndtri

        joint = []
        one, other = on_grid(self.first, grid.first), on_grid(self.second, grid.second)
        inside = (np.arange(_NODES) + 0.5) / _NODES
        for label in (0, 1):
            share = one[label] / one[label].sum()
            start = np.cumsum(share) - share
            at = np.clip(start[:, None] + share[:, None] * inside, 1e-12, 1.0 - 1e-12)
            ends = ndtri(np.clip(np.cumsum(other[label]) / other[label].sum(), 0.0, 1.0))
            ends[-1] = np.inf
            spread = sqrt(1.0 - self.correlation**2)
            below = ndtr((ends - self.correlation * ndtri(at)[..., None]) / spread).mean(axis=1)
            cells = np.diff(below, axis=1, prepend=0.0)
            joint.append((one[label][:, None] * cells).ravel())
        return np.stack(joint)


def pair_models(request: SurveyRequest, references: References | None) -> list[PairModel]:
    """Models of two scores that a request describes, or its public rows.

    >>> [round(model.first.total) for model in pair_models(SurveyRequest(clients=50), None)]
    [50, 50, 50]
    """
    examples, rate, auc = expected_examples(request), request.positive_rate, request.auc
    if references is not None:
        first, second = (
            from_reference(each, examples=examples, positive_rate=rate) for each in references
        )
        return [PairModel(first, second, references=references)]
    described = [(rate or usual, auc or likely) for usual, likely in _UNKNOWN]
    models = []
    for some_rate, some_auc in dict.fromkeys(described):
        one = binormal(examples=examples, positive_rate=some_rate, auc=some_auc)
        models.append(PairModel(one, one, described=(some_rate, some_auc)))
    return models


def crowded_pair(request: SurveyRequest) -> PairModel:
    """Two models whose log-odds are far too small, so that scores crowd near 0.

    >>> crowd = crowded_pair(SurveyRequest(clients=50)).first
    >>> bool(crowd.counts[:, crowd.edges[1:] < 0.1].sum() > 49)
    True
    """
    rate, auc = request.positive_rate or 0.1, request.auc or 0.8
    one = binormal(examples=expected_examples(request), positive_rate=rate, auc=auc, shift=_CROWDED)
    return PairModel(one, one, described=(rate, auc))
