"""Answers leave when the survey says, by a clock that the tests turn."""

from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedassay import Grid, Hierarchy, Polya, Survey
from fedassay.cli.app import app
from fedassay.engines import departure
from fedassay.engines.departure import Departure, slot_seconds
from fedassay.mechanisms import Privacy
from fedassay.randomness import Randomness
from tests.clock import Clock
from tests.surveys import local_survey, small_survey


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    turned = Clock(100.0)
    monkeypatch.setattr(departure, "time", turned)
    return turned


def noisy(epsilon: Fraction) -> Survey:
    return Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(4),
        hierarchy=Hierarchy.flat(4),
        mechanisms=(Polya(epsilon, 1, 4),),
        minimum_reports=4,
    )


@pytest.mark.parametrize("work", [0.0, 0.001, 0.2, 0.249, 0.25])
def test_what_is_done_within_a_slot_leaves_at_its_end(clock: Clock, work: float) -> None:
    begun = Departure.begin()
    clock.now += work
    assert begun.wait(0.25) == 1
    assert clock.now == pytest.approx(100.25, abs=1e-12)


@pytest.mark.parametrize(("work", "slots"), [(0.26, 2), (0.5, 2), (0.51, 3), (10.1, 41)])
def test_what_takes_longer_leaves_at_the_end_of_a_later_slot(
    clock: Clock, work: float, slots: int
) -> None:
    begun = Departure.begin()
    clock.now += work
    assert begun.wait(0.25) == slots
    assert clock.now == pytest.approx(100 + 0.25 * slots, abs=1e-9)


def test_a_slot_has_room_for_the_noise_of_its_survey() -> None:
    """A draw takes some 15 microseconds; 4,000 on average, 8 sd more make 4,506."""
    assert slot_seconds(noisy(Fraction(1, 1000))) == pytest.approx(0.25 + 5e-5 * 4505.96, rel=1e-6)
    assert slot_seconds(small_survey()) == slot_seconds(local_survey()) == slot_seconds(None)


@pytest.mark.parametrize("seconds", [0.0001, 0.03, 0.2])
def test_a_report_file_appears_when_the_survey_says_however_long_its_noise_took(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    survey, true = noisy(Fraction(1)), Polya.noise
    survey.save(tmp_path / "survey.json")
    (tmp_path / "scores.csv").write_text("score,label\n0.2,0\n0.7,1\n")

    def slow(self: Polya, size: int, *, randomness: Randomness) -> object:
        clock.now += seconds
        return true(self, size, randomness=randomness)

    monkeypatch.setattr(Polya, "noise", slow)
    arguments = ["answer", "survey.json", "scores.csv", "-o", "report.fa", "--quiet"]
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, arguments).exit_code == 0
    # 2 x 8 / 4 draws: 0.25 s and room for 4 + 8 x 2.
    assert clock.now == pytest.approx(100 + 0.25 + 20 * 5e-5, abs=1e-9)
