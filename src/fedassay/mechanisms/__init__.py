"""What happens to a client's counts before they leave it.

Two families: a `SharingMechanism` turns a client's counters into counters that are added up
behind secure aggregation; a `LocalMechanism` turns one example into one message that
protects itself.
"""

from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from fedassay.examples import IntArray
from fedassay.mechanisms.exact import Exact
from fedassay.mechanisms.grr import RandomizedResponse
from fedassay.mechanisms.law import Guarantee, Law, Neighbours, Unit, UnitKind
from fedassay.mechanisms.polya import Polya, check_epsilon
from fedassay.mechanisms.unary import UnaryEncoding
from fedassay.randomness import Randomness


class Mechanism(Protocol):
    """One level's treatment of what clients send."""

    kind: ClassVar[str]

    def law(self) -> Law:
        """The moments of a counter summed over reports."""
        ...

    def cohort(self, counts: IntArray, *, reports: int, generator: np.random.Generator) -> IntArray:
        """Draw the sum over `reports` clients at once; for simulation only."""
        ...


@runtime_checkable
class SharingMechanism(Mechanism, Protocol):
    """Counters in, counters out."""

    def share(self, counts: IntArray, *, randomness: Randomness) -> IntArray:
        """Return the counters (label x cell) that a client may send."""
        ...


@runtime_checkable
class LocalMechanism(Mechanism, Protocol):
    """One example in, one message out."""

    def encode(
        self, hits: IntArray, size: int, *, randomness: Randomness
    ) -> npt.NDArray[np.uint8] | npt.NDArray[np.uint32]:
        """One message for each hit in [0, size), or -1 for a client with nothing."""
        ...


__all__ = [
    "Exact",
    "Guarantee",
    "Law",
    "LocalMechanism",
    "Mechanism",
    "Neighbours",
    "Polya",
    "RandomizedResponse",
    "SharingMechanism",
    "UnaryEncoding",
    "Unit",
    "UnitKind",
    "check_epsilon",
]
