"""Rounds of secure aggregation in one process: exact sums, or a typed abort."""

import os
from collections.abc import Callable

import numpy as np

from fedassay import Report, Survey, SystemRandomness
from fedassay.client import Answer
from fedassay.engines.federation import Site, run_round
from fedassay.examples import IntArray
from fedassay.secagg import Named
from fedassay.secagg.state import Stage
from fedassay.wire import REPORT_ID_BYTES
from tests.surveys import small_survey

RANDOM = SystemRandomness()
STAGES = (Stage.KEYS, Stage.SHARES, Stage.MASKED, Stage.CONFIRMED, Stage.UNMASKED)
RUNS = 1000 if os.environ.get("FEDASSAY_VERIFY") else 100


def counted(survey: Survey, counters: IntArray) -> Callable[[], Answer]:
    report = Report(survey.fingerprint, bytes(REPORT_ID_BYTES), counters)
    return lambda: Answer((report,))


def test_five_clients_sum() -> None:
    survey = small_survey(8, minimum_reports=3)
    generator = np.random.default_rng(1)
    counts = generator.integers(0, 100, (5, survey.hierarchy.width))
    sites = {
        str(i): Site(Named(str(i)), counted(survey, counts[i]), Stage.MASKED if i == 2 else None)
        for i in range(5)
    }
    outcome = run_round(survey, sites, randomness=RANDOM)
    kept = [0, 1, 3, 4]
    assert sorted(outcome.survivors) == [str(i) for i in kept]
    assert outcome.total[survey.hierarchy.levels :].tolist() == counts[kept].sum(axis=0).tolist()
