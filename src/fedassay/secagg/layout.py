"""A report as the vector that is summed: reports on each level, all counters, moments."""

import numpy as np

from fedassay.client import Answer
from fedassay.errors import SettingInvalid
from fedassay.examples import IntArray
from fedassay.secagg.terms import words
from fedassay.survey import Survey
from fedassay.wire import Report


def vector_of(survey: Survey, answer: Answer) -> IntArray:
    """One client's answer as signed words.

    A report on one level leaves the other levels' words at zero.
    """
    (report,) = answer.messages if len(answer.messages) == 1 else (None,)
    if not isinstance(report, Report) or report.fingerprint != survey.fingerprint:
        raise SettingInvalid(
            "secure aggregation sums one client's one report to its survey; found something "
            "else. Locally private reports are sent as they are."
        )
    levels = survey.hierarchy.levels
    vector = np.zeros(words(survey), dtype=np.int64)
    if report.level is None:
        vector[:levels] = 1
        vector[levels:] = np.concatenate([report.counters, report.moments])
    else:
        vector[report.level] = 1
        vector[levels:][survey.hierarchy.counters(report.level)] = report.counters
    return vector
