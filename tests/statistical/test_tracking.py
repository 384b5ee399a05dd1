"""A thousand years without change: how many of them have any alarm at all.

Three metrics in both directions, 12 looks a year under shared noise. Said: at most 10 %. By
Bonferroni and by caution about binning it is fewer. More than 140 of 1,000 would come of a rate of
10 % once in 20,000 runs; fewer than 30 would mean limits that notice nothing. The twin, whose
limits forget that there are three metrics and two directions, has some 300.
"""

from fractions import Fraction

import numpy as np
import pytest

from fedassay import Assessment, DecodeOptions, Grid, Hierarchy, Polya, Privacy, Survey
from fedassay.draws import draw_tally
from fedassay.tracking.alarms import Watch, find_alarms
from fedassay.tracking.history import History

SHARES = np.array([[300, 200, 100, 50], [20, 60, 100, 170]]) / 1000
ROWS, YEARS, LOOKS = 2000, 1000, 12
METRICS = ("precision@0.5", "prevalence", "recall@0.5")
SURVEY = Survey(
    privacy=Privacy.DISTRIBUTED,
    grid=Grid.uniform(4),
    hierarchy=Hierarchy.flat(4),
    mechanisms=(Polya(Fraction(1, 4), 1, ROWS),),
    minimum_reports=ROWS,
)


@pytest.fixture(scope="module")
def years() -> list[History]:
    """Each is a history of its own, whose first look is the one before it began."""
    generator = np.random.default_rng(4)
    histories = []
    for _ in range(YEARS):
        looks = {}
        for month in range(LOOKS + 1):
            leaves = generator.multinomial(ROWS, SHARES.ravel()).reshape(2, 4)
            tally = draw_tally(SURVEY, leaves, clients=ROWS, generator=generator)
            time = f"{2026 + month // 12}-{1 + month % 12:02}"
            looks[time] = Assessment(SURVEY, tally, DecodeOptions())
        histories.append(History(looks))
    return histories


def with_alarms(years: list[History], watch: Watch) -> int:
    return sum(bool(find_alarms(year, watch)) for year in years)


def test_years_without_change_have_alarms_as_rarely_as_said(years: list[History]) -> None:
    assert 30 <= with_alarms(years, Watch(METRICS, 0.10, LOOKS)) <= 140


def test_a_watch_that_forgets_how_much_it_watches_is_noticed(years: list[History]) -> None:
    assert with_alarms(years, Watch(METRICS, 0.6, LOOKS)) > 140
