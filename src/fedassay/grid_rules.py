"""Edges that a rule in integers makes: the same in every language, to the last bit.

Every edge is one quotient of whole numbers below 2^53, rounded to the nearest double, as
any language with IEEE 754 division computes it; no sine, no exponential.
"""

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np

from fedassay.checks import require_member, require_whole
from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray

MAX_CELLS = 2**20
# n^3 stays far below 2^53.
MOST_CUBIC_CELLS = 2**16
# With its finer ends a fine grid of so many even cells stays below MAX_CELLS.
MOST_FINE_CELLS = 2**19
# Octaves reach from 2^-40, about 1e-12, to 1/2; with so many parts c 2^40 stays below 2^53.
OCTAVE_BITS = 40
MOST_PARTS = 2**12
# scikit-learn clips probabilities to [eps, 1 - eps] in its log loss; eps is 2^-52.
EPS_BITS = 52
EPS = 2.0**-EPS_BITS
_CELLS_PER_PART = 2 * (OCTAVE_BITS - 1)
_FINE_PARTS = 64
_MOST_KEPT_CELLS = 2**15


class RuleKind(Enum):
    """How a rule spreads its edges over [0, 1]."""

    UNIFORM = "uniform"
    """Equal widths: i / n (`app:scorehist`)."""
    CUBIC = "cubic"
    """i^2 (3n - 2i) / n^3: finer towards 0 and 1, where scores pile up."""
    FINE = "fine"
    """i / n, with octaves in 64 parts below where that gives fewer, mirrored at 1."""
    OCTAVES = "octaves"
    """Nearly even in log-odds: each octave from 2^-40 to 1/2 in equal parts, mirrored at 1."""


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
        article = "an" if self.kind is RuleKind.OCTAVES else "a"
        what = f"the cells of {article} {self.kind.value} grid"
        require_whole(self.cells, what, 1, _MOST_CELLS[self.kind])
        if self.kind is RuleKind.OCTAVES:
            _check_octave_cells(self.cells)

    @classmethod
    def octaves(cls, parts: int) -> "GridRule":
        """Octaves in so many parts each: 78 cells for each part, and the two ends.

        >>> GridRule.octaves(8).cells
        626
        """
        require_whole(parts, "the parts of an octave", 1, MOST_PARTS)
        return cls(RuleKind.OCTAVES, _CELLS_PER_PART * parts + 2)

    def edges(self) -> FloatArray:
        """All edges, from 0 to 1."""
        # What strangers ask for is not kept: 64 grids of a million cells are 512 MiB.
        make = _edges if self.cells <= _MOST_KEPT_CELLS else _edges.__wrapped__
        return make(self.kind, self.cells)


_MOST_CELLS = {
    RuleKind.UNIFORM: MAX_CELLS,
    RuleKind.CUBIC: MOST_CUBIC_CELLS,
    RuleKind.FINE: MOST_FINE_CELLS,
    RuleKind.OCTAVES: _CELLS_PER_PART * MOST_PARTS + 2,
}


def _check_octave_cells(cells: int) -> None:
    parts, rest = divmod(cells - 2, _CELLS_PER_PART)
    if parts < 1 or rest:
        raise SettingInvalid(
            f"the cells of an octaves grid are {_CELLS_PER_PART} times its parts per octave, and "
            f"2; found {cells}. Use Grid.octaves(parts)."
        )


@lru_cache(maxsize=64)
def _edges(kind: RuleKind, cells: int) -> FloatArray:
    i = np.arange(cells + 1, dtype=np.int64)
    match kind:
        case RuleKind.UNIFORM:
            edges = i / cells
        case RuleKind.CUBIC:
            edges = (i * i * (3 * cells - 2 * i)) / cells**3
        case RuleKind.FINE:
            # The octave from 2^-k has cells / 2^k even cells; these have fewer than 64.
            first = max(2, (cells // _FINE_PARTS).bit_length())
            halves = 2 ** np.arange(OCTAVE_BITS + 1, EPS_BITS + 1, dtype=np.int64)
            octaves = _octave_edges(_FINE_PARTS, first)
            ends = [octaves, 1 / halves, (halves - 1) / halves]
            # An edge that is made twice is the same double: both are rounded once.
            edges = np.unique(np.concatenate([i / cells, *ends]))
        case RuleKind.OCTAVES:
            inner = _octave_edges((cells - 2) // _CELLS_PER_PART, 2)
            edges = np.unique(np.concatenate([[0.0], inner, [1.0]]))
    edges.flags.writeable = False
    return edges


def _octave_edges(parts: int, first: int) -> FloatArray:
    """(c + j) / (c 2^k) for k from `first` to 40 and j up to c, and 1 less these; unsorted."""
    bottom = parts * 2 ** np.arange(first, OCTAVE_BITS + 1, dtype=np.int64)[:, None]
    top = parts + np.arange(parts + 1, dtype=np.int64)
    return np.concatenate([(top / bottom).ravel(), ((bottom - top) / bottom).ravel()])
