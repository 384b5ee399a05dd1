"""A simulated cohort has the law of real reports, and another law is found out.

Sums of real reports are compared with the cohort sampler's by two-sample chi-square, each at a
false alarm of 1e-8. Every check has twins: planted bugs that it must catch. FEDASSAY_VERIFY=1
draws ten times as much.
"""

import os
from dataclasses import replace
from fractions import Fraction
from io import BytesIO

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chi2_contingency

from fedassay import Examples, Survey, Tally
from fedassay.client import make_answer
from fedassay.examples import ScoredClients
from fedassay.hierarchy import Interleaved
from fedassay.mechanisms import AnyMechanism, RandomizedResponse, UnaryEncoding
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import tally_clients, tally_each_client
from fedassay.wire import messages
from tests.surveys import local_survey

pytestmark = pytest.mark.statistical

VERIFY = os.environ.get("FEDASSAY_VERIFY") == "1"
TALLIES = 20_000 if VERIFY else 2000
LIMIT = 1e-8
COHORTS = {
    "oue": local_survey(cells=3, kinds="oue"),
    "grr": local_survey(cells=3, kinds="grr"),
    "grr at 5": local_survey(Fraction(5), cells=3, kinds="grr"),
    "oue over two levels": local_survey(cells=4, fanouts=(2, 2), kinds="oue oue"),
    "grr over two levels": local_survey(Fraction(5), cells=4, fanouts=(2, 2), kinds="grr grr"),
    "grr then oue": local_survey(cells=6, fanouts=(2, 3), kinds="grr oue"),
    "oue with empty clients": local_survey(cells=2, kinds="oue", allow_empty=True),
    "grr with empty clients": local_survey(Fraction(2), cells=2, kinds="grr", allow_empty=True),
    "two levels with empty clients": local_survey(
        Fraction(2), cells=4, fanouts=(2, 2), kinds="grr oue", allow_empty=True
    ),
}
# Levels whose cuts take turns, as default surveys have them.
COHORTS["interleaved levels"] = replace(
    COHORTS["grr then oue"],
    hierarchy=Interleaved(6, 2),
    mechanisms=tuple(
        RandomizedResponse(Fraction(1), cells) for cells in Interleaved(6, 2).cells_per_level
    ),
)
ROWS = Examples([0] * 12 + [1] * 8, [*[0.1] * 7, *[0.45] * 5, *[0.8] * 6, 0.3, 1.0])


def cohort_for(survey: Survey) -> ScoredClients:
    if survey.allow_empty:
        # Three clients in five have nothing.
        few = ROWS.rows(slice(None, None, 5))
        return ScoredClients(few, np.arange(len(few)), 10)
    return ScoredClients(ROWS, None, len(ROWS))


def one_answer(survey: Survey, cohort: ScoredClients, *, randomness: SimulatedRandomness) -> Tally:
    """All rows as one client's: every example still has a report of its own."""
    if survey.allow_empty:
        return tally_each_client(survey, cohort, randomness=randomness)
    counts = survey.grid.count(cohort.examples)
    sent = make_answer(survey, counts, randomness=randomness)
    return Tally.of(survey, messages(BytesIO(sent.to_bytes()), survey))


def features(tallies: list[Tally]) -> npt.NDArray[np.float64]:
    """Every counter, every level's reports, and sums that see correlations."""
    counters = np.array([[*tally.counters, *tally.reports] for tally in tallies])
    signs = np.random.default_rng(5).choice([-1, 1], (counters.shape[1], 4))
    return np.concatenate([counters, counters @ signs], axis=1)


def same_law(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> bool:
    """Chi-square of two samples, feature by feature."""
    pvalues = []
    for x, y in zip(a.T, b.T, strict=True):
        edges = np.unique(np.quantile(np.concatenate([x, y]), np.linspace(0, 1, 11)))
        table = np.stack([np.histogram(s, [-np.inf, *edges, np.inf])[0] for s in (x, y)])
        table = table[:, table.sum(axis=0) > 0]
        # A counter may be the same in every tally: then it must be so in both samples.
        if table.shape[1] > 1:
            pvalues.append(chi2_contingency(table).pvalue)
    return bool(min(pvalues) > LIMIT)


@pytest.mark.parametrize("name", COHORTS)
def test_a_simulated_cohort_has_the_law_of_real_reports(name: str) -> None:
    survey = COHORTS[name]
    cohort = cohort_for(survey)
    real, fast = SimulatedRandomness(1), SimulatedRandomness(2)
    # Real clients one by one cost more.
    count = TALLIES // 4 if survey.allow_empty else TALLIES
    reports = features([one_answer(survey, cohort, randomness=real) for _ in range(count)])
    drawn = features([tally_clients(survey, cohort, randomness=fast) for _ in range(count)])
    assert same_law(reports, drawn)


@pytest.mark.parametrize("name", ["oue", "grr at 5", "grr over two levels"])
def test_a_cohort_of_another_law_is_found_out(name: str) -> None:
    """The twins: half of epsilon; values drawn without their correlation."""
    survey = COHORTS[name]
    cohort = cohort_for(survey)
    randomness = SimulatedRandomness(2)
    drawn = [tally_clients(survey, cohort, randomness=randomness) for _ in range(TALLIES)]
    other = replace(survey, mechanisms=tuple(_noisier(m) for m in survey.mechanisms))
    wrong = [tally_clients(other, cohort, randomness=randomness) for _ in range(TALLIES)]
    assert not same_law(features(drawn), features(wrong))
    loose = features(drawn).copy()
    if name != "oue":
        for column in loose.T:
            randomness.generator.shuffle(column)
        mixed = loose[:, : len(drawn[0].counters) + len(drawn[0].reports)]
        signs = np.random.default_rng(5).choice([-1, 1], (mixed.shape[1], 4))
        assert not same_law(features(drawn), np.concatenate([mixed, mixed @ signs], axis=1))


def _noisier(mechanism: AnyMechanism) -> AnyMechanism:
    assert isinstance(mechanism, UnaryEncoding | RandomizedResponse)
    return replace(mechanism, epsilon=mechanism.epsilon / 2)
