"""When an answer leaves: at a time that the survey decides, not the noise and not the data.

Exact noise takes as long as it is large: the time of a Polya share alone tells of it. So what
leaves a client, refusals too, is held until the end of a slot, whose length follows from the
survey. Work that takes longer leaves at the end of a later slot: what is then seen is how many.
"""

import time
from dataclasses import dataclass
from math import ceil, sqrt

from fedassay.limits import expected_draws
from fedassay.survey import Survey

SHORTEST_SLOT = 0.25
"""Seconds; time to read a table of a million rows."""
SECONDS_PER_DRAW = 5e-5
"""Three times what a draw takes on a machine of two busy cores."""
_FEW_EXCEED = 8.0
"""Standard deviations of the number of draws: more come once in 10^15 answers."""


def slot_seconds(survey: Survey | None) -> float:
    """How long what leaves is held at least; None for what is said without a survey.

    >>> slot_seconds(None)
    0.25
    """
    if survey is None:
        return SHORTEST_SLOT
    draws = float(expected_draws(survey))
    return SHORTEST_SLOT + SECONDS_PER_DRAW * (draws + _FEW_EXCEED * sqrt(draws))


@dataclass(frozen=True, slots=True)
class Departure:
    """The time from which slots are counted."""

    begun: float

    @classmethod
    def begin(cls) -> "Departure":
        """Count from now."""
        return cls(time.monotonic())

    def wait(self, slot: float) -> int:
        """Wait for the end of the present slot; returns how many went by since the beginning."""
        slots = max(1, ceil((time.monotonic() - self.begun) / slot))
        time.sleep(max(0.0, self.begun + slots * slot - time.monotonic()))
        return slots
