"""No noise: the counts themselves (the paper's Federated case)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedassay.examples import IntArray
from fedassay.files import Fields
from fedassay.mechanisms.base import LevelSetting, SharingMechanism
from fedassay.mechanisms.law import Law
from fedassay.randomness import Randomness


@dataclass(frozen=True, slots=True)
class Exact(SharingMechanism):
    """Leave the counts alone.

    Guarantee: none by itself. Secure aggregation hides single reports; the sum is
    revealed exactly, so whoever knows all other inputs learns the last
    (`sec:privacymodels`).
    """

    kind: ClassVar[str] = "exact"

    @property
    def epsilon_spent(self) -> None:
        """Nothing is randomised."""
        return

    def law(self) -> Law:
        """Sums are the true counts."""
        return Law(gain=1.0, offset=0.0, variance_per_report=0.0, variance_per_hit=0.0)

    def share(self, counts: IntArray, *, randomness: Randomness) -> IntArray:
        """Return a client's counters as they are."""
        return counts

    def cohort(self, counts: IntArray, *, reports: int, generator: np.random.Generator) -> IntArray:
        """The sum of all clients' shares, given the sum of their counts."""
        return counts

    def to_json(self) -> dict[str, Any]:
        """Its name says it all."""
        return {"kind": self.kind}

    @classmethod
    def from_json(cls, fields: Fields, setting: LevelSetting) -> "Exact":
        """Nothing but the name."""
        fields.only("kind")
        return cls()
