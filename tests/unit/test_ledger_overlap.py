"""Repeated and overlapping surveys, as the table in docs/ledger.md says; the rows are run."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fedassay import Grid, Hierarchy, Polya, Survey, SystemRandomness, Unit
from fedassay.client import OPEN_POLICY, answer_counts
from fedassay.errors import BudgetExceeded, SurveyRepeated
from fedassay.ledger import EVER, Budget, Ledger, LedgerAccount, Part, Window
from fedassay.mechanisms import Privacy, UnitKind
from tests.surveys import local_survey, second_after, shared_pair, small_survey
from tests.tables import ROOT

ONE = Fraction(1)
EXAMPLE = Unit()


def distributed(unit: Unit) -> Survey:
    noise = Polya(ONE, unit.sensitivity, 5)
    return Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(4),
        hierarchy=Hierarchy.flat(4),
        mechanisms=(noise,),
        unit=unit,
        minimum_reports=5,
    )


FIRST, SECOND = shared_pair()
SURVEYS = {
    "local": local_survey(ONE),
    "local grid": local_survey(ONE, cells=8),
    "local model": replace(local_survey(ONE), model_digest="ab" * 32),
    "local minimum": replace(local_survey(ONE), minimum_reports=9),
    "local 1/2": local_survey(Fraction(1, 2)),
    "local 1/1000000": local_survey(Fraction(1, 10**6)),
    "local client": replace(local_survey(ONE), unit=Unit(UnitKind.CLIENT, 1)),
    "local client grid": replace(local_survey(ONE, cells=8), unit=Unit(UnitKind.CLIENT, 1)),
    "distributed": distributed(EXAMPLE),
    "distributed grid": replace(
        distributed(EXAMPLE), grid=Grid.uniform(8), hierarchy=Hierarchy.flat(8)
    ),
    "client of 1": distributed(Unit(UnitKind.CLIENT, 1)),
    "client of 5": distributed(Unit(UnitKind.CLIENT, 5)),
    "exact": small_survey(4),
    "first": FIRST,
    "second": SECOND,
    "second cut elsewhere": second_after(FIRST, Fraction(4, 5), cut=3),
    "greedy second": second_after(FIRST, Fraction(9, 10)),
}
PLACES = {
    "Jan": Window.parse("2026-01-01..2026-02-01"),
    "Feb": Window.parse("2026-02-01..2026-03-01"),
    "Jan-Feb": Window.parse("2026-01-01..2026-03-01"),
    "mid-Jan to mid-Feb": Window.parse("2026-01-15..2026-02-15"),
}


def rows() -> list[tuple[str, ...]]:
    text = (ROOT / "docs" / "ledger.md").read_text().split("<!-- cases -->")[1]
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line[:2] == "| "]
    return [tuple(cell.strip() for cell in line) for line in lines[1:]]


def budget_of(text: str, data: str | None = "A") -> Budget:
    """Read "2 per client, groups split, exact allowed"."""
    limit, *words = text.split(", ")
    amount, _, unit = limit.partition(" per ")
    known = {"windows split", "groups split", "exact allowed"}
    assert set(words) <= known, words
    return Budget(
        data=data,
        epsilon=None if amount == "none" else Fraction(amount),
        unit=UnitKind(unit or "example"),
        split_windows="windows split" in words,
        split_groups="groups split" in words,
        exact_sums=int("exact allowed" in words),
    )


def charge(path: Path, text: str) -> None:
    """Do "local, Jan, group a, again": a client answers, by its account."""
    name, *words = text.split(", ")
    window, group, data, again, year = EVER, None, "A", False, 2026
    for word in words:
        if word in PLACES:
            window = PLACES[word]
        elif word.startswith("group "):
            group = word.removeprefix("group ")
        elif word.startswith("data "):
            data = word.removeprefix("data ")
        elif word == "clock a year back":
            year = 2025
        else:
            assert word == "again", word
            again = True
    ledger = Ledger(path, clock=lambda: datetime(year, 6, 1, tzinfo=UTC))
    survey = SURVEYS[name]
    answer_counts(
        survey,
        np.ones((2, survey.grid.cells), dtype=np.int64),
        randomness=SystemRandomness(),
        policy=OPEN_POLICY,
        account=LedgerAccount(ledger, Part(data, window, group), again=again),
    )


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_each_case_is_charged_or_refused_as_documented(
    tmp_path: Path, row: tuple[str, ...]
) -> None:
    _, budgets, before, asked, outcome = row
    ledger = Ledger.create(tmp_path / "ledger.db")
    first, *later = budgets.split("; then ")
    ledger.set_budget(budget_of(first))
    for act in [] if before == "-" else before.split("; "):
        charge(ledger.path, act)
    for text in later:
        ledger.set_budget(budget_of(text))
    entries = len(ledger.entries())
    if outcome.startswith("refused"):
        kind = SurveyRepeated if outcome == "refused: repeat" else BudgetExceeded
        reason = {
            "refused: repeat": "charged before",
            "refused: budget": "budget of epsilon",
            "refused: exact sum": "exact sums",
            "refused: unit": "budget per client",
            "refused: no budget": "has no budget",
            "refused: reserved": "reserved for the second survey",
        }[outcome]
        with pytest.raises(kind, match=reason):
            charge(ledger.path, asked)
        assert len(ledger.entries()) == entries
        return
    charge(ledger.path, asked)
    assert len(ledger.entries()) == entries + 1
    wanted = re.fullmatch(r"charged: (\S+) spent(?:, (\d) exact)?", outcome)
    assert wanted is not None, outcome
    data = "B" if "data B" in asked else "A"
    (balance,) = ledger.balances(data)
    assert (str(balance.spent), balance.unbounded) == (wanted[1], int(wanted[2] or 0))


def test_the_table_has_at_least_twenty_cases() -> None:
    assert len(rows()) >= 20
    assert len({row[1:4] for row in rows()}) == len(rows())
