"""The average of clients' own ROC AUCs, weighted by their rows: what Flower users get today.

Whom to trust: the server, with every client's figure; there is no noise. Pairs of rows at
different clients are never compared, and clients with one class alone have no figure.
"""

import numpy as np

from fedassay.examples import Examples, IntArray


def client_average(examples: Examples, clients: IntArray) -> tuple[float, float]:
    """The average over clients with both classes, and the share of rows that they hold."""
    order = np.argsort(clients, kind="stable")
    starts = np.flatnonzero(np.diff(clients[order], prepend=-1))
    areas, rows = [], []
    for part in np.split(order, starts[1:]):
        part_of = examples.rows(part)
        if 0 < part_of.positives < len(part):
            areas.append(rank_area(part_of))
            rows.append(len(part))
    return float(np.average(areas, weights=rows)), sum(rows) / len(examples)


def rank_area(examples: Examples) -> float:
    """ROC AUC by mean ranks (Mann and Whitney)."""
    _, place, times = np.unique(examples.scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(times) - (times - 1) / 2.0)[place]
    P = examples.positives
    N = len(examples) - P
    return float((ranks[examples.labels == 1].sum() - P * (P + 1) / 2.0) / (P * N))
