"""An answer that was given once is given again to the same question, and to no other."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fedassay.client import OPEN_POLICY, answer_counts
from fedassay.engines.kept_answers import KeptAnswers
from fedassay.errors import FileInvalid
from fedassay.ledger import Part, Window
from fedassay.randomness import SystemRandomness
from fedassay.survey import Survey
from tests.surveys import local_survey, small_survey

SURVEY = small_survey()
JANUARY, FEBRUARY = (Window.parse(text) for text in ("2026-01-01..2026-02-01", "2026-02-01.."))


def answer_to(survey: Survey) -> bytes:
    counts = np.full((2, survey.grid.cells), 3)
    made = answer_counts(survey, counts, randomness=SystemRandomness(), policy=OPEN_POLICY)
    return made.to_bytes()


@pytest.mark.parametrize(
    "part",
    [
        Part("ward"),
        Part("ward", JANUARY),
        Part("ward", group="a"),
        Part("ward", JANUARY, group="a"),
    ],
    ids=["all", "window", "group", "window and group"],
)
def test_an_answer_is_found_by_its_survey_and_part_alone(tmp_path: Path, part: Part) -> None:
    kept, content = KeptAnswers(tmp_path / "answers"), answer_to(SURVEY)
    kept.keep(SURVEY, part, content)
    assert kept.find(SURVEY, part) == content
    others = [
        Part("other", part.window, group=part.group),
        Part("ward", FEBRUARY, group=part.group),
        Part("ward", part.window, group="b"),
    ]
    assert [kept.find(SURVEY, other) for other in others] == [None] * 3
    assert kept.find(local_survey(Fraction(1)), part) is None


def test_an_answer_that_was_given_anew_takes_the_earlier_ones_place(tmp_path: Path) -> None:
    kept, part = KeptAnswers(tmp_path / "answers"), Part("ward")
    first, second = answer_to(SURVEY), answer_to(SURVEY)
    assert first != second
    kept.keep(SURVEY, part, first)
    kept.keep(SURVEY, part, second)
    assert kept.find(SURVEY, part) == second


@pytest.mark.parametrize("damage", [lambda whole: whole[:-1], lambda _: b"", lambda w: b"x" + w])
def test_an_answer_that_was_damaged_is_not_sent(tmp_path: Path, damage: object) -> None:
    kept, part, content = KeptAnswers(tmp_path / "answers"), Part("ward"), answer_to(SURVEY)
    kept.keep(SURVEY, part, content)
    (path,) = kept.folder.iterdir()
    path.write_bytes(damage(content))  # type: ignore[operator]  # one of the three above
    with pytest.raises(FileInvalid, match=r"the answer that was kept is damaged.*spends again"):
        kept.find(SURVEY, part)


def test_answers_are_for_their_owner_alone(tmp_path: Path) -> None:
    kept = KeptAnswers.beside(tmp_path / "ledger.db")
    assert kept.folder == tmp_path / "ledger.db.answers"
    kept.keep(SURVEY, Part("ward"), answer_to(SURVEY))
    assert kept.folder.stat().st_mode & 0o777 == 0o700
    (path,) = kept.folder.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
