"""The ledger's file: it lasts, it only grows, and what happened to it is noticed."""

import os
import threading
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fedassay import ClientPolicy, Examples, Grid, Survey
from fedassay.client import answer
from fedassay.errors import (
    BudgetExceeded,
    FedassayError,
    SettingInvalid,
    SurveyRefused,
    SurveyRepeated,
)
from fedassay.ledger import Budget, Charge, Ledger, LedgerAccount, Part, Window
from fedassay.mechanisms import UnitKind
from fedassay.randomness import Randomness
from tests.surveys import flat_survey, local_survey, small_survey

THIRD = Fraction(1, 3)
WARD = Part("ward")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.db")


def third(cells: int) -> Survey:
    """A survey that spends 1/3; another for each number of cells."""
    return local_survey(THIRD, cells=cells)


def spent(ledger: Ledger, data: str = "ward") -> Fraction:
    (found,) = ledger.balances(data)
    return found.spent


def test_a_third_three_times_is_exactly_one(ledger: Ledger) -> None:
    ledger.set_budget(Budget("ward", Fraction(1)))
    for cells in (2, 3, 4):
        receipt = ledger.charge(third(cells), WARD)
    assert spent(ledger) == 1
    assert receipt.balances[0].left == 0
    with pytest.raises(BudgetExceeded, match=r"budget of epsilon 1 .* spent 1 .* asks for 1/3"):
        ledger.charge(third(5), WARD)
    assert spent(ledger) == 1


def test_epsilon_of_any_length_is_kept_exactly(ledger: Ledger) -> None:
    parts = [Fraction(10**8 + 3, 10**9 - k) for k in (1, 3, 11, 33)]
    for part in parts:
        ledger.charge(local_survey(part), WARD)
    assert spent(ledger) == sum(parts)
    assert len(str(spent(ledger))) > 60


def test_a_client_is_charged_after_its_checks_and_before_any_noise(ledger: Ledger) -> None:
    """No random byte is drawn until the charge is on the disk."""
    drawn: list[Fraction] = []

    class Watched(Randomness):
        is_secret = True

        def bytes(self, count: int) -> bytes:
            drawn.append(spent(ledger))
            return os.urandom(count)

    account = LedgerAccount(ledger, WARD)
    rows = Examples([1, 0], [0.3, 0.6])
    policy = ClientPolicy(largest_epsilon=THIRD)
    nothing = Examples([], [])
    for survey, examples in ((local_survey(Fraction(2)), rows), (third(4), nothing)):
        with pytest.raises(SurveyRefused):
            answer(survey, examples, randomness=Watched(), policy=policy, account=account)
    assert len(ledger.entries()) == 0
    answer(third(4), rows, randomness=Watched(), policy=policy, account=account)
    assert len(drawn) > 0
    assert set(drawn) == {THIRD}
    count = len(drawn)
    with pytest.raises(SurveyRepeated):
        answer(third(4), rows, randomness=Watched(), policy=policy, account=account)
    assert len(drawn) == count


def test_a_repeat_is_charged_only_when_allowed(ledger: Ledger) -> None:
    ledger.charge(third(4), WARD)
    with pytest.raises(SurveyRepeated, match="--again"):
        ledger.charge(third(4), WARD)
    receipt = ledger.charge(third(4), WARD, again=True)
    assert isinstance(receipt.entry.content, Charge)
    assert receipt.entry.content.status.value == "charged again"
    assert spent(ledger) == 2 * THIRD


def test_an_exact_sum_is_recorded_and_needs_leave_where_there_is_a_budget(ledger: Ledger) -> None:
    ledger.charge(small_survey(4), WARD)
    assert ledger.balances("ward")[0].unbounded == 1
    ledger.set_budget(Budget("ward", Fraction(1)))
    with pytest.raises(BudgetExceeded, match="no epsilon covers"):
        ledger.charge(small_survey(8), WARD)
    ledger.set_budget(Budget("ward", Fraction(1), exact_sums=2))
    ledger.charge(small_survey(8), WARD)
    assert ledger.balances("ward")[0].unbounded == 2


def test_exact_sums_are_counted_whatever_survey_asks_for_them(ledger: Ledger) -> None:
    """An edge moved by one bit is another fingerprint, and the same rows."""
    edges = [0.0, 0.25, 0.5, 1.0]
    moved = [0.0, 0.25, float(np.nextafter(0.5, 1.0)), 1.0]
    first, second = (flat_survey(Grid.explicit(e)) for e in (edges, moved))
    assert first.fingerprint != second.fingerprint
    january = Part("ward", Window.parse("2026-01-01..2026-02-01"))
    february = Part("ward", Window.parse("2026-02-01..2026-03-01"))
    ledger.charge(first, january)
    for part in (january, WARD):
        for again in (False, True):
            with pytest.raises(BudgetExceeded, match="--exact-sums 2"):
                ledger.charge(second, part, again=again)
    # Other rows, and other data, are another matter.
    ledger.charge(second, february)
    ledger.charge(second, Part("other"))
    ledger.set_budget(Budget("ward", None, exact_sums=3))
    ledger.charge(second, WARD)
    with pytest.raises(BudgetExceeded, match="answered 3"):
        ledger.charge(first, WARD)


def test_the_budget_for_any_data_holds_where_there_is_no_other(ledger: Ledger) -> None:
    ledger.set_budget(Budget(None, THIRD))
    ledger.set_budget(Budget("other", Fraction(1)))
    ledger.charge(third(4), WARD)
    with pytest.raises(BudgetExceeded):
        ledger.charge(third(5), WARD)
    ledger.charge(third(4), Part("other"))
    ledger.charge(third(5), Part("other"))
    ledger.set_budget(Budget("ward", None))
    ledger.charge(third(5), WARD)


def test_a_budget_for_one_window_binds_only_there(ledger: Ledger) -> None:
    january = Window.parse("2026-01-01..2026-02-01")
    ledger.set_budget(Budget(None, None))
    ledger.set_budget(Budget("ward", THIRD, january, split_windows=True))
    ledger.charge(third(4), Part("ward", Window.parse("2026-01-15..2026-03-01")))
    ledger.charge(third(5), Part("ward", Window.parse("2026-02-01..2026-03-01")))
    with pytest.raises(BudgetExceeded):
        ledger.charge(third(5), Part("ward", Window.parse("2026-01-31..2026-02-02")))


def test_a_budget_for_one_window_does_not_lift_the_one_for_any_data(ledger: Ledger) -> None:
    january, february = (Window.parse(f"2026-0{m}-01..2026-0{m + 1}-01") for m in (1, 2))
    ledger.set_budget(Budget(None, 2 * THIRD, split_windows=True))
    ledger.set_budget(Budget("ward", THIRD, january, split_windows=True))
    ledger.charge(third(4), Part("ward", january))
    with pytest.raises(BudgetExceeded):
        ledger.charge(third(5), Part("ward", january))
    for cells in (4, 5):
        ledger.charge(third(cells), Part("ward", february))
    with pytest.raises(BudgetExceeded):
        ledger.charge(third(6), Part("ward", february))


def test_a_receipt_says_how_many_charges_overlap(ledger: Ledger) -> None:
    january = Window.parse("2026-01-01..2026-02-01")
    february = Window.parse("2026-02-01..2026-03-01")
    parts = [
        (Part("ward", january, "a"), 0),
        (Part("ward", january, "b"), 0),
        (Part("ward", february), 0),
        (Part("ward", january), 2),
        (Part("ward"), 4),
        (Part("other"), 0),
        (Part("ward", january, "a"), 3),
    ]
    for cells, (part, overlapping) in enumerate(parts, start=2):
        assert ledger.charge(third(cells), part).overlapping == overlapping


def test_reading_and_charging_at_once_raise_no_false_alarm(ledger: Ledger) -> None:
    """A reader never sees a mark that is ahead of what it read."""
    failed: list[Exception] = []
    done = threading.Event()

    def read_on() -> None:
        while not done.is_set():
            try:
                ledger.read()
            except FedassayError as error:
                failed.append(error)

    readers = [threading.Thread(target=read_on) for _ in range(2)]
    for reader in readers:
        reader.start()
    for cells in range(2, 32):
        ledger.charge(third(cells), WARD)
    done.set()
    for reader in readers:
        reader.join()
    assert failed == []
    assert spent(ledger) == 10


@pytest.mark.parametrize(
    "broken",
    [
        lambda: Budget("ward", Fraction(1), unit=UnitKind.CLIENT, split_windows=True),
        lambda: Budget("ward", Fraction(1), unit=UnitKind.PATIENT, split_windows=True),
        lambda: Budget("ward", Fraction(1), Window.parse("2026-01-01..")),
        lambda: Budget("ward", Fraction(-1)),
        lambda: Budget("ward", Fraction(-1, 10**9)),
        lambda: Budget("ward", Fraction(1), delta=Fraction(1)),
        lambda: Budget("ward", Fraction(1), delta=Fraction(0)),
        lambda: Budget("", Fraction(1)),
        lambda: Part("line\nbreak"),
        lambda: Part("ward", group="\x1b[2J"),
        lambda: Part("w" * 201),
        lambda: Window.parse("2026-01-01"),
        lambda: Window.parse("2026-02-01..2026-01-01"),
        lambda: Window.parse("2026-01-01..2026-01-01"),
        lambda: Window.parse("yesterday..today"),
        lambda: Window.parse("0001-01-01T00:00+23:00.."),
        lambda: Window(datetime(2026, 1, 1)),
    ],
)
def test_what_makes_no_sense_is_refused(broken: object) -> None:
    with pytest.raises(SettingInvalid):
        broken()  # type: ignore[operator]  # what a user may pass


def test_a_window_reads_back_as_written() -> None:
    for text in (
        "2026-01-01..2026-02-01", "..2026-02-01", "2026-01-01T06:30:00Z..", "..",
        "2026-01-01T06:30:00.000001Z..2026-01-02",
    ):  # fmt: skip
        assert str(Window.parse(text)) == text
    assert Window.parse("2026-01-01T01:00+01:00..") == Window.parse("2026-01-01..")


# What happens to the file


def test_a_clock_that_goes_back_is_recorded_and_frees_nothing(tmp_path: Path) -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    times = iter([now, now - timedelta(days=400), now - timedelta(days=1), now])
    Ledger.create(tmp_path / "ledger.db")
    ledger = Ledger(tmp_path / "ledger.db", clock=lambda: next(times))
    ledger.set_budget(Budget("ward", 2 * THIRD))
    for cells in (2, 3):
        ledger.charge(third(cells), WARD)
    assert [entry.stamp.clock_went_back for entry in ledger.entries()] == [False, True, True]
    assert [entry.number for entry in ledger.entries()] == [1, 2, 3]
    with pytest.raises(BudgetExceeded):
        ledger.charge(third(4), WARD)


# What happens to the disk
