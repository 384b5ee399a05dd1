"""From a tally to a score histogram."""

from dataclasses import dataclass

import numpy as np

from fedassay.errors import TooFewReports
from fedassay.histogram import ScoreHistogram
from fedassay.survey import Survey
from fedassay.tally import Tally


@dataclass(frozen=True, slots=True)
class Readout:
    """How a tally is read: the defaults are the best we know."""

    smooth: bool = True
    buckets: int | None = None


def decode(survey: Survey, tally: Tally, *, readout: Readout) -> ScoreHistogram:
    """Debias the counters with each level's Law and carry the noise along.

    Guarantee: post-processing only; whatever the survey promises still holds. Below the
    survey's minimum nothing is decoded.
    """
    tally.require(survey)
    require_enough(survey, tally)
    leaves = tally.per_level(survey)[-1].astype(np.float64)
    histogram = ScoreHistogram(survey.grid.edges, leaves, smooth=readout.smooth)
    return histogram if readout.buckets is None else histogram.equi_depth(readout.buckets)


def require_enough(survey: Survey, tally: Tally) -> None:
    """Raise `TooFewReports` below the survey's minimum."""
    missing = survey.minimum_reports - tally.reports
    if missing > 0:
        raise TooFewReports(
            f"this survey needs at least {survey.minimum_reports} reports before anything is "
            f"decoded; found {tally.reports}. Wait for {missing} more, or start a survey "
            f"with minimum_reports={max(tally.reports, 1)}."
        )
