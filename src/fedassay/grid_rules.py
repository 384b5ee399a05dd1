"""Edges that a rule in integers makes: the same in every language, to the last bit.

Every edge is one quotient of whole numbers below 2^53, rounded to the nearest double, as
any language with IEEE 754 division computes it; no sine, no exponential.
"""

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np

from fedassay.checks import require_member, require_whole
from fedassay.examples import FloatArray

MAX_CELLS = 2**20
# n^3 stays far below 2^53.
MOST_CUBIC_CELLS = 2**16
# scikit-learn clips probabilities to [eps, 1 - eps] in its log loss; eps is 2^-52.
EPS_BITS = 52
_MOST_KEPT_CELLS = 2**15


class RuleKind(Enum):
    """How a rule spreads its edges over [0, 1]."""

    UNIFORM = "uniform"
    """Equal widths: i / n (`app:scorehist`)."""
    CUBIC = "cubic"
    """i^2 (3n - 2i) / n^3: finer towards 0 and 1, where scores pile up."""
    FINE = "fine"
    """i / n, and 2^-k and 1 - 2^-k for each k up to 52 with 2^-k < 1/n."""


@dataclass(frozen=True, slots=True)
class GridRule:
    """A named grid: which rule, with how many cells.

    >>> GridRule(RuleKind.CUBIC, 4).edges().tolist()
    [0.0, 0.15625, 0.5, 0.84375, 1.0]
    """

    kind: RuleKind
    cells: int

    def __post_init__(self) -> None:
        require_member(self.kind, RuleKind, "a grid rule's kind")
        most = MOST_CUBIC_CELLS if self.kind is RuleKind.CUBIC else MAX_CELLS
        require_whole(
            self.cells,
            f"the cells of a {self.kind.value} grid",
            1,
            most,
        )

    def edges(self) -> FloatArray:
        """All edges, from 0 to 1."""
        # What strangers ask for is not kept: 64 grids of a million cells are 512 MiB.
        make = _edges if self.cells <= _MOST_KEPT_CELLS else _edges.__wrapped__
        return make(self.kind, self.cells)


@lru_cache(maxsize=64)
def _edges(kind: RuleKind, cells: int) -> FloatArray:
    i = np.arange(cells + 1, dtype=np.int64)
    match kind:
        case RuleKind.UNIFORM:
            edges = i / cells
        case RuleKind.CUBIC:
            edges = (i * i * (3 * cells - 2 * i)) / cells**3
        case RuleKind.FINE:
            tails = 2.0 ** -np.arange(EPS_BITS, 0, -1)
            tails = tails[tails < 1.0 / cells]
            edges = np.concatenate([[0.0], tails, i[1:-1] / cells, 1.0 - tails[::-1], [1.0]])
    edges.flags.writeable = False
    return edges
