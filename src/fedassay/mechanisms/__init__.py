"""What happens to a client's counts before they leave it."""

from typing import ClassVar, Protocol

import numpy as np

from fedassay.examples import IntArray
from fedassay.mechanisms.exact import Exact
from fedassay.mechanisms.law import Guarantee, Law, Neighbours, Unit, UnitKind
from fedassay.mechanisms.polya import Polya, check_epsilon
from fedassay.randomness import Randomness


class Mechanism(Protocol):
    """One level's treatment of a client's counters."""

    kind: ClassVar[str]

    def law(self) -> Law:
        """The moments of a counter summed over reports."""
        ...

    def share(self, counts: IntArray, *, randomness: Randomness) -> IntArray:
        """Return the counters (label x cell) that a client may send."""
        ...

    def cohort(self, counts: IntArray, *, reports: int, generator: np.random.Generator) -> IntArray:
        """Draw the sum of `reports` clients' shares at once; for simulation only."""
        ...


__all__ = [
    "Exact",
    "Guarantee",
    "Law",
    "Mechanism",
    "Neighbours",
    "Polya",
    "Unit",
    "UnitKind",
    "check_epsilon",
]
