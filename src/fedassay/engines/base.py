"""What an engine is: the one seam between a survey and its tally."""

from enum import Enum
from typing import Protocol

from fedassay.survey import Survey
from fedassay.tally import Tally


class RowCounter(Enum):
    """What counts a client's rows: fedassay's own reader, or an engine for many of them."""

    PLAIN = "plain"
    SPARK = "spark"


class Engine(Protocol):
    """Brings about the tally of a survey, from clients that it knows how to reach.

    Any split of the same rows into clients gives the identical counters;
    `tests/contract/test_engines.py` holds every engine to that. An engine goes through
    `client.answer`, so that policies are checked and accounts charged before noise is drawn.
    """

    def tally(self, survey: Survey) -> Tally:
        """Ask all clients and add up what they answer."""
        ...
