"""A whole federation in one process."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from fedassay.client import make_report
from fedassay.decode import Readout, decode
from fedassay.engines.tables import Cohort
from fedassay.examples import Examples
from fedassay.histogram import ScoreHistogram
from fedassay.randomness import SimulatedRandomness
from fedassay.survey import Survey
from fedassay.tally import Tally, TallyBuilder
from fedassay.wire import decode as decode_report
from fedassay.wire import encode as encode_report

Progress = Callable[[int], None]


def simulate(
    survey: Survey, cohort: Cohort, *, readout: Readout, randomness: SimulatedRandomness
) -> ScoreHistogram:
    """From checked rows to a score histogram; metrics are functions of it."""
    return decode(survey, tally_cohort(survey, cohort, randomness=randomness), readout=readout)


def tally_cohort(survey: Survey, cohort: Cohort, *, randomness: SimulatedRandomness) -> Tally:
    """The walk of one example, for all of them at once.

    The tally has the same distribution as that of `tally_each_client`.
    """
    # Examples were checked when the cohort was read; the grid finds their leaf cells,
    leaves = survey.grid.count(cohort.examples)
    # the hierarchy sums cells up to its levels,
    per_level = survey.hierarchy.climb(leaves)
    # the mechanisms randomise what clients send, here summed over all clients,
    sums = [
        mechanism.cohort(counts, reports=cohort.clients, generator=randomness.generator)
        for mechanism, counts in zip(survey.mechanisms, per_level, strict=True)
    ]
    # and the tally is what arrives.
    counters = np.concatenate([counts.ravel() for counts in sums])
    return Tally(survey.fingerprint, cohort.clients, counters)


def tally_each_client(
    survey: Survey,
    cohort: Cohort,
    *,
    randomness: SimulatedRandomness,
    progress: Progress | None = None,
) -> Tally:
    """Make, encode, decode and add every client's report."""
    builder = TallyBuilder(Tally.zero(survey), survey)
    for examples in clients(cohort):
        counts = survey.grid.count(examples)
        message = encode_report(make_report(survey, counts, randomness=randomness))
        builder.add(decode_report(message, survey))
        if progress is not None:
            progress(1)
    return builder.tally()


def clients(cohort: Cohort) -> Iterator[Examples]:
    """Each client's examples, one client after the other."""
    examples = cohort.examples
    if cohort.client_of_row is None:
        for row in range(len(examples)):
            yield Examples(examples.labels[row : row + 1], examples.scores[row : row + 1])
        return
    order = np.argsort(cohort.client_of_row, kind="stable")
    labels, scores = examples.labels[order], examples.scores[order]
    starts = np.searchsorted(cohort.client_of_row[order], np.arange(cohort.clients + 1))
    for first, last in pairwise(starts):
        yield Examples(labels[first:last], scores[first:last])
