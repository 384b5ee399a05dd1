"""Years without change, watched by the gaps of ECE alone: how many of them have an alarm.

A model that is off in every bin, distributed noise. As many must have one as of years of standard
normal figures, drawn here: 17 %. More than 75 of 250, or fewer than 17, would come of that rate
once in a million runs. The twin, whose distances forget that the mean of the looks before errs
too, has twice as many.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from fedassay import Assessment, DecodeOptions, Grid, Hierarchy, Polya, Privacy, Survey
from fedassay.draws import draw_tally
from fedassay.tracking import gap_series
from fedassay.tracking.alarms import Watch, find_alarms
from fedassay.tracking.gap_series import Gaps
from fedassay.tracking.history import History
from tests.laws import FALSE_ALARM

SHARES = np.array([[220, 150, 100, 80, 50, 40, 20, 10], [5, 10, 15, 30, 50, 60, 70, 90]]) / 1000
"""Too low throughout: of the first cell's rows a fiftieth is positive, by their scores a
sixteenth; of the last one's nine tenths."""
ROWS, YEARS, LOOKS = 2000, 250, 12
WATCH = Watch(("ece",), 0.4, LOOKS)
SURVEY = Survey(
    privacy=Privacy.DISTRIBUTED,
    grid=Grid.uniform(8),
    hierarchy=Hierarchy.flat(8),
    mechanisms=(Polya(Fraction(1, 2), 1, ROWS),),
    minimum_reports=ROWS,
)


@pytest.fixture(scope="module")
def years() -> list[History]:
    generator = np.random.default_rng(11)
    histories = []
    for _ in range(YEARS):
        looks = {}
        for month in range(LOOKS + 1):
            leaves = generator.multinomial(ROWS, SHARES.ravel()).reshape(SHARES.shape)
            tally = draw_tally(SURVEY, leaves, clients=ROWS, generator=generator)
            time = f"{2026 + month // 12}-{1 + month % 12:02}"
            looks[time] = Assessment(SURVEY, tally, DecodeOptions())
        histories.append(History(looks))
    return histories


def with_alarms(years: list[History]) -> int:
    return sum(bool(find_alarms(year, WATCH)) for year in years)


def chance() -> float:
    """Of an alarm in a first year, by the words of Page's definition."""
    figures = np.random.default_rng(3).standard_normal((200_000, LOOKS))
    level, over = np.zeros(len(figures)), np.zeros(len(figures), dtype=bool)
    for look in figures.T:
        level = np.maximum(0.0, level + look - 0.5)
        over |= level >= WATCH.limit
    return float(over.mean())


def test_years_without_change_have_alarms_of_ece_as_rarely_as_said(years: list[History]) -> None:
    # Of the 0.4 each direction has half, and distances have one direction.
    assert chance() < 0.2
    least = stats.binom.ppf(FALSE_ALARM / 2, YEARS, chance())
    assert least <= with_alarms(years) <= stats.binom.isf(FALSE_ALARM / 2, YEARS, chance())


def test_a_mean_that_is_taken_for_certain_is_noticed(
    years: list[History], monkeypatch: pytest.MonkeyPatch
) -> None:
    mean = gap_series._mean

    def certain(looks: list[Gaps]) -> Gaps:
        found = mean(looks)
        return Gaps(found.sizes, found.mass, 0.0 * found.covariance)

    monkeypatch.setattr(gap_series, "_mean", certain)
    assert with_alarms(years) > stats.binom.isf(FALSE_ALARM / 2, YEARS, chance())
