"""A trusted server that adds the noise: to a histogram, or to ROC AUC itself.

Whom to trust: the server, with every row. `noisy_curve` is the histogram that any library of
differential privacy offers. `noisy_area` adds noise to the one figure by its smooth sensitivity
(Nissim, Raskhodnikova and Smith 2007): a row more or less moves ROC AUC by at most
1 / (min(P, N) - 1), which is private itself, so that noise follows a bound that moves slowly.
"""

import numpy as np

from experiments.peers.roc import RocCurve
from fedassay.examples import IntArray

SETTINGS = (20, 100, 500)
"""Even buckets."""
_POWER = 4
_MOST_TRIES = 1_000


def noisy_curve(cells: IntArray, *, epsilon: float, generator: np.random.Generator) -> RocCurve:
    """The curve of counts by label x even cell with Laplace noise; negative counts become zero."""
    noisy = np.maximum(cells + generator.laplace(0.0, 1.0 / epsilon, cells.shape), 0.0)
    return RocCurve.of_counts(noisy)


def noisy_area(
    area: float, smaller_class: int, *, epsilon: float, generator: np.random.Generator
) -> float:
    """ROC AUC with noise of density proportional to 1 / (1 + z^4), pure epsilon."""
    admissible = epsilon / (2.0 * (_POWER + 1))
    bound = smooth_bound(smaller_class, admissible)
    return area + bound / admissible * heavy_tailed(generator)


def smooth_bound(smaller_class: int, beta: float) -> float:
    """The largest e^(-beta k) / (m - 1 - k) over rows changed k, each at most 1."""
    changed = np.arange(smaller_class)
    sensitivity = 1.0 / np.maximum(smaller_class - 1 - changed, 1)
    return float(np.max(np.exp(-beta * changed) * sensitivity))


def heavy_tailed(generator: np.random.Generator) -> float:
    """One draw of density proportional to 1 / (1 + z^4), by rejection from Cauchy's."""
    most = (1.0 + np.sqrt(2.0)) / 2.0  # of (1 + z^2) / (1 + z^4)
    for _ in range(_MOST_TRIES):
        z = float(generator.standard_cauchy())
        if generator.random() < (1.0 + z**2) / (1.0 + z**4) / most:
            return z
    raise RuntimeError("no draw was accepted, which has no chance of happening")
