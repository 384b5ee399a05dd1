"""What a mechanism is: the two families, as abstract classes."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedassay.examples import IntArray
from fedassay.mechanisms.law import Law
from fedassay.randomness import Randomness

Rows = npt.NDArray[np.uint8] | npt.NDArray[np.uint32]


class Mechanism(ABC):
    """One level's treatment of what clients send."""

    __slots__ = ()
    kind: ClassVar[str]

    @abstractmethod
    def law(self) -> Law:
        """The moments of a counter summed over reports."""

    @abstractmethod
    def cohort(self, counts: IntArray, *, reports: int, generator: np.random.Generator) -> IntArray:
        """Draw the sum over `reports` clients at once; for simulation only."""


class SharingMechanism(Mechanism):
    """Counters in, counters out: added up behind secure aggregation."""

    __slots__ = ()

    @abstractmethod
    def share(self, counts: IntArray, *, randomness: Randomness) -> IntArray:
        """Return the counters (label x cell) that a client may send."""


class LocalMechanism(Mechanism):
    """One example in, one message out, which protects itself."""

    __slots__ = ()

    @abstractmethod
    def encode(self, hits: IntArray, size: int, *, randomness: Randomness) -> Rows:
        """One message for each hit in [0, size), or -1 for a client with nothing."""
