"""What a mechanism is: the two families, as abstract classes.

A mechanism owns its law, its guarantee, its rows on the wire and its JSON.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from fedassay.examples import IntArray
from fedassay.files import Fields
from fedassay.mechanisms.law import Law
from fedassay.mechanisms.shuffling import Blanket
from fedassay.randomness import Randomness

Rows = npt.NDArray[np.uint8]
"""Locally private reports as they travel: report x byte."""


@dataclass(frozen=True, slots=True)
class LevelSetting:
    """What a survey says about one level beside its mechanism's own fields."""

    cells: int
    sensitivity: int
    noise_shares: int
    allow_empty: bool


class Mechanism(ABC):
    """One level's treatment of what clients send."""

    __slots__ = ()
    kind: ClassVar[str]

    @property
    @abstractmethod
    def epsilon_spent(self) -> Fraction | None:
        """What one report on this level spends, or None where nothing is randomised."""

    @abstractmethod
    def law(self) -> Law:
        """The moments of a counter summed over reports."""

    @abstractmethod
    def cohort(self, counts: IntArray, *, reports: int, generator: np.random.Generator) -> IntArray:
        """Draw the sum over `reports` clients at once; for simulation only."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """What a survey's file says of this mechanism."""

    @classmethod
    @abstractmethod
    def from_json(cls, fields: Fields, setting: LevelSetting) -> Self:
        """Rebuild the mechanism of a level from untrusted JSON."""


class SharingMechanism(Mechanism):
    """Counters in, counters out: added up behind secure aggregation."""

    __slots__ = ()

    @abstractmethod
    def share(self, counts: IntArray, *, randomness: Randomness) -> IntArray:
        """Return the counters (label x cell) that a client may send."""


class LocalMechanism(Mechanism):
    """One example in, one message out, which protects itself."""

    __slots__ = ()

    @property
    @abstractmethod
    def epsilon_spent(self) -> Fraction:
        """What one report spends, whoever sees it."""

    @property
    @abstractmethod
    def blanket(self) -> Blanket:
        """What reports of all inputs have in common, which is what a shuffler's crowd hides in."""

    @abstractmethod
    def encode(self, hits: IntArray, size: int, *, randomness: Randomness) -> Rows:
        """One row for each hit in [0, size), or -1 for a client with nothing."""

    @abstractmethod
    def row_bytes(self, size: int) -> int:
        """Bytes of one report over `size` = label x cell."""

    @abstractmethod
    def check_rows(self, rows: Rows, size: int) -> None:
        """Raise `ReportMalformed` unless all of these untrusted rows can be reports."""

    @abstractmethod
    def sums(self, rows: Rows, size: int) -> IntArray:
        """What rows that were checked add to each of `size` counters."""
