"""Data that no budget speaks of, and why a refusal's figures are what they are."""

from fractions import Fraction
from pathlib import Path

import pytest

from fedassay.errors import BudgetExceeded, BudgetMissing
from fedassay.ledger import Budget, Ledger, Part, Window
from fedassay.mechanisms import Privacy
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.survey import Survey
from tests.surveys import local_survey

THIRD = Fraction(1, 3)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.db")


def third(cells: int) -> Survey:
    """A local survey that spends 1/3; another for each number of cells."""
    return local_survey(THIRD, cells=cells)


def distributed_survey(epsilon: Fraction) -> Survey:
    request = SurveyRequest(
        privacy=Privacy.DISTRIBUTED, epsilon=epsilon, clients=50, minimum_reports=50, height=3
    )
    return design_survey(request).survey


@pytest.mark.parametrize("window", ["2026-02-01..2026-03-01", "2026-01-15..2026-02-02", ".."])
def test_time_outside_every_budget_is_not_without_limit(ledger: Ledger, window: str) -> None:
    january = Window.parse("2026-01-01..2026-02-01")
    ledger.set_budget(Budget("ward", THIRD, january, split_windows=True))
    with pytest.raises(BudgetMissing, match="some of this time only"):
        ledger.charge(third(4), Part("ward", Window.parse(window)))


def test_two_adjacent_windows_cover_one_over_both(ledger: Ledger) -> None:
    for months in ("2026-02-01..2026-03-01", "2026-01-01..2026-02-01"):
        ledger.set_budget(Budget("ward", THIRD, Window.parse(months), split_windows=True))
    ledger.charge(third(4), Part("ward", Window.parse("2026-01-20..2026-02-10")))


def test_a_misspelt_data_id_is_refused_where_others_have_limits(ledger: Ledger) -> None:
    ledger.set_budget(Budget("ward-3", THIRD))
    with pytest.raises(BudgetMissing, match=r"no budget.*Did you mean 'ward-3'.*--unlimited"):
        ledger.charge(third(4), Part("ward_3"))
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("data", ["icu", None])
def test_data_may_be_declared_to_have_no_limit(ledger: Ledger, data: str | None) -> None:
    ledger.set_budget(Budget("ward", THIRD))
    ledger.set_budget(Budget(data, None))
    for cells in (4, 5, 6):
        ledger.charge(third(cells), Part("icu"))


def test_where_every_limit_was_lifted_nothing_is_refused(ledger: Ledger) -> None:
    ledger.set_budget(Budget("ward", THIRD))
    ledger.set_budget(Budget("ward", None))
    ledger.charge(third(4), Part("icu"))


def test_a_refusal_explains_why_earlier_surveys_count_twice(ledger: Ledger) -> None:
    ledger.set_budget(Budget("ward", Fraction(1)))
    ledger.charge(distributed_survey(2 * THIRD), Part("ward"))
    with pytest.raises(BudgetExceeded) as caught:
        ledger.charge(third(4), Part("ward"))
    message = str(caught.value)
    assert "spent 4/3 (replace neighbours), which was 2/3 before it" in message
    assert "count twice" in message
    assert "1/3 for one like the earlier ones, of distributed privacy" in message
