"""A gate at its border: how often it passes or fails what it should not.

The population's precision lies exactly on the bound, so that a pass and a failure are both wrong as
often as they are said to be at most: 5 % each. 1,000 surveys of a rate of 5 % show more than 82
once in 100,000; intervals that are 1.25 times too narrow (a rate of 9.4 %) show fewer only once in
10, those of the twin, 1.5 times too narrow (13.6 %), once in 1e6. Below 20, intervals would
be 1.25 times too wide.
"""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from fedassay import Assessment, DecodeOptions, Grid, Hierarchy, Polya, Privacy, Survey
from fedassay.comparison.gate import Verdict, check
from fedassay.draws import draw_tally
from tests.surveys import flat_survey, local_survey

SHARES = np.array([[300, 200, 100, 50], [20, 60, 100, 170]]) / 1000
RULE = f"precision@0.5 >= {270 / 420!r}"
ROWS, SURVEYS = 3000, 1000
MOST, LEAST = 82, 20


def distributed_survey() -> Survey:
    return Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(4),
        hierarchy=Hierarchy.flat(4),
        mechanisms=(Polya(Fraction(1, 4), 1, ROWS),),
        minimum_reports=ROWS,
    )


MODELS: dict[str, Callable[[], Survey]] = {
    "secure": lambda: flat_survey(Grid.uniform(4)),
    "distributed": distributed_survey,
    "local": lambda: local_survey(Fraction(3), kinds="grr"),
}


def verdicts(survey: Survey, *, confidence: float = 0.95) -> Counter[Verdict]:
    generator = np.random.default_rng(11)
    told: Counter[Verdict] = Counter()
    for _ in range(SURVEYS):
        leaves = generator.multinomial(ROWS, SHARES.ravel()).reshape(2, 4)
        tally = draw_tally(survey, leaves, clients=ROWS, generator=generator)
        assessment = Assessment(survey, tally, DecodeOptions())
        told[check(assessment, [RULE], confidence=confidence).verdict] += 1
    return told


@pytest.mark.parametrize("model", MODELS)
def test_at_the_border_passes_and_failures_are_as_rare_as_said_and_no_rarer(model: str) -> None:
    told = verdicts(MODELS[model]())
    assert LEAST <= told[Verdict.PASS] <= MOST
    assert LEAST <= told[Verdict.FAIL] <= MOST


def test_a_gate_whose_intervals_are_too_narrow_is_noticed() -> None:
    """1.645 / 1.5 standard deviations: a one-sided confidence of 0.864."""
    told = verdicts(MODELS["distributed"](), confidence=0.864)
    assert told[Verdict.PASS] > MOST
    assert told[Verdict.FAIL] > MOST
