"""At the door a client is closed, is charged, and is counted once."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

import fedassay
from fedassay import ClientPolicy, Survey
from fedassay.errors import FedassayError, SettingInvalid, SurveyRefused

ROWS = ([0, 1, 0, 1], [0.1, 0.9, 0.4, 0.6])


@dataclass
class Book:
    """An account that remembers what was charged."""

    charged: list[Survey] = field(default_factory=list)

    def charge(self, survey: Survey) -> None:
        self.charged.append(survey)


def test_without_a_policy_exact_sums_are_refused() -> None:
    survey = fedassay.new_survey(clients=10, examples=20_000)
    many = tuple(column * 1000 for column in ROWS)
    with pytest.raises(SurveyRefused):
        fedassay.answer(survey, *many)
    # Nothing else is wrong with it: whoever allows exact sums answers.
    policy = ClientPolicy(exact_sums=True)
    assert fedassay.answer(survey, *many, policy=policy).messages


@pytest.mark.parametrize("from_file", [False, True])
def test_an_answer_is_charged_whether_rows_come_as_columns_or_as_a_file(
    from_file: bool, tmp_path: Path
) -> None:
    survey, book = fedassay.new_survey(privacy="local", epsilon=1, clients=10, height=2), Book()
    if from_file:
        table = tmp_path / "rows.csv"
        lines = [f"{y},{s}" for y, s in zip(*ROWS, strict=True)]
        table.write_text("\n".join(["y,s", *lines]), "utf-8")
        fedassay.answer(survey, "y", "s", data=table, account=book)
    else:
        fedassay.answer(survey, *ROWS, account=book)
    assert book.charged == [survey]


def test_the_same_answer_is_not_counted_twice() -> None:
    survey = fedassay.new_survey(privacy="local", epsilon=1, clients=10, height=2)
    answer = fedassay.answer(survey, *ROWS)
    assert fedassay.tally_answers(survey, [answer]).tally.clients(survey) == 4
    with pytest.raises(FedassayError):
        fedassay.tally_answers(survey, [answer, answer])


def test_a_client_id_is_a_text_that_says_something() -> None:
    survey = fedassay.new_survey(privacy="local", epsilon=1, clients=1000)
    assert len(fedassay.answer(survey, [1], [0.5], client_id="ward 3").messages) == 1
    with pytest.raises(SettingInvalid, match="must not be empty"):
        fedassay.answer(survey, [1], [0.5], client_id="")
