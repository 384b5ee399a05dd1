"""Put before other paths, this sets the clock that Flower sees ahead by SKEW_SECONDS."""

import datetime
import os

from flwr.supercore import date

_AHEAD = datetime.timedelta(seconds=float(os.environ["SKEW_SECONDS"]))


def _now() -> datetime.datetime:
    return datetime.datetime.now(tz=datetime.UTC) + _AHEAD


date.now = _now
