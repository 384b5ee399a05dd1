"""Rows that answer one of two locally private surveys: each of them one, whatever it holds."""

from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedassay import ClientPolicy, Examples, SystemRandomness, Unit
from fedassay.engines.report_files import answer_file
from fedassay.errors import SettingInvalid, SurveyRefused
from fedassay.ledger import Budget, Charge, Ledger, LedgerAccount, Part, TableDigest
from fedassay.mechanisms import UnitKind
from fedassay.tables import sources
from fedassay.tables.columns import Columns
from fedassay.tables.split_rows import count_split_file
from tests.surveys import local_pair

FIRST, SECOND = local_pair(Fraction(1), share=Fraction(1, 3))
COLUMNS = Columns("score", "label")


def rows(count: int) -> Examples:
    generator = np.random.default_rng(count)
    return Examples(generator.integers(0, 2, count), generator.random(count))


def write(path: Path, examples: Examples) -> Path:
    lines = [f"{s!r},{y}" for s, y in zip(examples.scores.tolist(), examples.labels, strict=True)]
    path.write_text("score,label\n" + "\n".join(lines) + "\n")
    return path


def answers_first(name: str) -> bool:
    mark = sha256(FIRST.fingerprint + b"step" + name.encode()).digest()[:8]
    return int.from_bytes(mark) * 3 < 2**64


def test_the_two_surveys_count_every_row_of_a_table_once(tmp_path: Path) -> None:
    examples = rows(500)
    path = write(tmp_path / "rows.csv", examples)
    counted = [count_split_file(path, COLUMNS, survey, "north") for survey in (FIRST, SECOND)]
    turn = np.array([answers_first(f"north:{row}") for row in range(500)])
    for (counts, table), mask in zip(counted, (turn, ~turn), strict=True):
        cells = np.minimum((examples.scores[mask] * 4).astype(int), 3)
        expected = np.bincount(examples.labels[mask] * 4 + cells, minlength=8).reshape(2, 4)
        assert counts.tolist() == expected.tolist()
        assert table == TableDigest.of(examples)


def test_rows_keep_their_numbers_over_the_parts_of_a_large_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.parquet"
    examples = rows(600)
    pq.write_table(pa.table({"score": examples.scores, "label": examples.labels}), path)
    monkeypatch.setattr(sources, "BATCH_ROWS", 100)
    counts, _ = count_split_file(path, COLUMNS, FIRST, "north")
    assert counts.sum() == sum(answers_first(f"north:{row}") for row in range(600))


def test_a_client_as_the_unit_answers_one_survey_and_is_refused_by_the_other(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "rows.csv", rows(5))
    first = replace(FIRST, unit=Unit(UnitKind.CLIENT, 1))
    answered = 0
    for name in map(str, range(30)):
        try:
            counts, _ = count_split_file(path, COLUMNS, first, name)
        except SurveyRefused as error:
            assert "Answer the other" in str(error)  # noqa: PT017  # either may be
        else:
            assert counts.sum() == 5
            answered += 1
    # Binomial with mean 10 and deviation 2.6, for names that never change.
    assert 3 < answered < 20


def test_a_table_without_rows_has_its_turn_by_its_clients_id(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", rows(0))
    turns = []
    for name in map(str, range(30)):
        try:
            count_split_file(path, COLUMNS, FIRST, name)
            turns.append(True)
        except SurveyRefused:
            turns.append(False)
    assert turns == [answers_first(str(name)) for name in range(30)]


def answered(path: Path, ledger: Ledger) -> list[int]:
    """How many reports each of the two surveys gets."""
    account = LedgerAccount(ledger, Part("ward"))
    return [
        sum(
            message.reports
            for message in answer_file(
                survey,
                path,
                COLUMNS,
                randomness=SystemRandomness(),
                policy=ClientPolicy(),
                account=account,
            ).messages
        )
        for survey in (FIRST, SECOND)
    ]


def test_a_client_answers_both_surveys_for_one_charge(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", rows(200))
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.set_budget(Budget("ward", Fraction(1)))
    reports = answered(path, ledger)
    assert sum(reports) == 200
    # The data's name in the ledger is the client's id.
    assert reports[0] == sum(answers_first(f"ward:{row}") for row in range(200))
    charges = [entry.content for entry in ledger.entries() if isinstance(entry.content, Charge)]
    assert [charge.epsilon for charge in charges] == [1, 0]


def test_a_client_whose_table_changed_answers_no_second_survey(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", rows(200))
    ledger = Ledger.create(tmp_path / "ledger.db")
    answered(path, ledger)
    other = write(tmp_path / "rows.csv", rows(201))
    ledger.charge(FIRST, Part("ward"), again=True, table=TableDigest.of(rows(200)))
    with pytest.raises(SurveyRefused, match="a row might answer both"):
        answer_file(
            SECOND,
            other,
            COLUMNS,
            randomness=SystemRandomness(),
            policy=ClientPolicy(),
            account=LedgerAccount(ledger, Part("ward"), again=True),
        )


def test_without_an_id_nobody_knows_which_rows_are_asked(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", rows(9))
    with pytest.raises(SettingInvalid, match="--client-id"):
        answer_file(FIRST, path, COLUMNS, randomness=SystemRandomness(), policy=ClientPolicy())
