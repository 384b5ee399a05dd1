"""A ledger of any size decides as if it read every entry, and reads few."""

import sqlite3
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fedassay.errors import BudgetExceeded, LedgerInvalid, SurveyRepeated
from fedassay.ledger import Budget, Charge, Checkpoint, Ledger, Part, Window, store
from fedassay.ledger.budget import tab_of
from fedassay.ledger.entry import decode as entry_decode
from tests.surveys import local_survey

WARD = Part("ward")
EPSILON = Fraction(1, 7)
EVERY = 64


def grown(path: Path, charges: int, *, budget: int = 1000) -> Ledger:
    ledger = Ledger.create(path / "ledger.db")
    ledger.set_budget(Budget("ward", Fraction(budget)))
    for number in range(charges):
        ledger.charge(local_survey(EPSILON, cells=2 + number), WARD)
    return ledger


def changed(ledger: Ledger, *statements: str) -> None:
    """Change the file from outside, triggers or not."""
    connection = sqlite3.connect(ledger.path)
    for trigger in ("entries_stay", "entries_last", "entries_follow"):
        connection.execute(f"DROP TRIGGER {trigger}")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_tab_from_the_checkpoint_is_the_tab_of_all_entries(tmp_path: Path) -> None:
    """Random charges and budgets over several data ids; after each, both ways to know agree."""
    generator = np.random.default_rng(5)
    ledger = Ledger.create(tmp_path / "ledger.db")
    ids = ["ward", "icu", "x"]
    ledger.set_budget(Budget(None, None))
    for turn in range(3 * EVERY):
        data = str(generator.choice(ids))
        if generator.random() < 0.15:
            whose = data if generator.random() < 0.5 else None
            split = bool(generator.random() < 0.5)
            amount = int(generator.integers(900, 1000))
            epsilon = None if turn % 3 == 0 else Fraction(amount)
            ledger.set_budget(Budget(whose, epsilon, split_windows=split))
            continue
        month = int(generator.integers(1, 12))
        window = Window.parse(f"2026-{month:02}-01..2026-{month + 1:02}-01")
        group = str(generator.choice(["a", "b"])) if generator.random() < 0.3 else None
        cells = int(generator.integers(2, 60))
        charge = local_survey(Fraction(1, int(generator.integers(1, 9))), cells=cells)
        ledger.charge(charge, Part(data, window, group), again=True)
        if turn % 16:
            continue
        with store.transaction(ledger.path, writable=False) as reader:
            entries = reader.snapshot().entries
            for name in [*ids, "never charged"]:
                expected = tab_of(entries, name)
                keys = [e.content.key for e in entries if isinstance(e.content, Charge)]
                tab = reader.tab(name, keys[0])
                assert dict(tab.charges) == dict(expected.charges)
                assert tab.budgets == expected.budgets
                assert tab.limited == expected.limited
                assert tab.balances() == expected.balances()
                asked = [key for key in keys[::9] if key in reader.tab(name, key).answered]
                assert all(key in keys for key in asked)
                assert set(keys[::9]) & expected.answered <= set(asked)
    kinds = [type(entry.content) for entry in ledger.entries()]
    assert kinds.count(Checkpoint) >= 2
    ledger.verify()


def test_a_charge_reads_no_more_entries_when_there_are_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = grown(tmp_path, 3 * EVERY)
    read = 0
    decode = entry_decode

    def counting(content: object, where: str) -> object:
        nonlocal read
        read += 1
        return decode(content, where)

    monkeypatch.setattr(store, "decode", counting)
    most = []
    for number in range(EVERY + 1):
        read = 0
        ledger.charge(local_survey(EPSILON, cells=1000 + number), WARD)
        most.append(read)
    # Those since the checkpoint, it itself, and what is added; never all of them.
    assert max(most) <= EVERY + 3
    assert len(ledger.entries()) > 4 * EVERY


def test_a_budget_and_a_repeat_are_known_beyond_the_checkpoint(tmp_path: Path) -> None:
    ledger = grown(tmp_path, 70, budget=10)
    assert ledger.balances("ward")[0].spent == 10
    with pytest.raises(BudgetExceeded, match="spent 10"):
        ledger.charge(local_survey(EPSILON, cells=500), WARD)
    ledger.set_budget(Budget("ward", Fraction(11)))
    with pytest.raises(SurveyRepeated):
        ledger.charge(local_survey(EPSILON, cells=2), WARD)
    ledger.charge(local_survey(EPSILON, cells=500), WARD)


def test_a_changed_state_is_refused_and_can_be_rebuilt(tmp_path: Path) -> None:
    ledger = grown(tmp_path, 70, budget=11)
    changed(ledger, "UPDATE state SET content = replace(content, '[[', '[ [')")
    for attempt in (
        lambda: ledger.charge(local_survey(EPSILON, cells=500), WARD),
        lambda: ledger.would_refuse(local_survey(EPSILON, cells=500), WARD),
        ledger.verify,
    ):
        with pytest.raises(LedgerInvalid, match="--rebuild"):
            attempt()
    ledger.verify(rebuild=True)
    ledger.charge(local_survey(EPSILON, cells=500), WARD)
    assert ledger.balances("ward")[0].spent == 71 * EPSILON


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE checkpoint SET hashes = zeroblob(8192)",
        "UPDATE checkpoint SET number = number - 1",
        "UPDATE checkpoint SET number = 'x'",
        "INSERT INTO checkpoint SELECT * FROM checkpoint",
        "UPDATE entries SET content = replace(content, '1/7', '1/8') WHERE number = 70",
        "UPDATE entries SET content = replace(content, 'state', 'stale') WHERE number = 65",
        "DELETE FROM entries WHERE number = 72",
        "DELETE FROM checkpoint",
    ],
)
def test_what_a_charge_rests_on_cannot_be_changed(tmp_path: Path, statement: str) -> None:
    ledger = grown(tmp_path, 70)
    assert isinstance(ledger.entries()[64].content, Checkpoint)
    if statement == "DELETE FROM checkpoint":
        # Without it everything is read again, so that nothing is gained either.
        changed(ledger, statement, "DELETE FROM state")
        ledger.charge(local_survey(EPSILON, cells=500), WARD)
        assert ledger.balances("ward")[0].spent == 71 * EPSILON
        return
    changed(ledger, statement)
    with pytest.raises(LedgerInvalid):
        ledger.charge(local_survey(EPSILON, cells=500), WARD)


def test_an_old_entry_that_was_changed_frees_nothing_and_is_found_by_verify(
    tmp_path: Path,
) -> None:
    ledger = grown(tmp_path, 70, budget=10)
    changed(ledger, "UPDATE entries SET content = replace(content, '1/7', '0') WHERE number < 60")
    with pytest.raises(BudgetExceeded, match="spent 10"):
        ledger.charge(local_survey(EPSILON, cells=500), WARD)
    for attempt in (ledger.verify, ledger.entries, lambda: ledger.verify(rebuild=True)):
        with pytest.raises(LedgerInvalid, match="does not follow"):
            attempt()


def test_a_mark_from_before_the_checkpoint_still_vouches(tmp_path: Path) -> None:
    """A process killed after the entry and before the mark leaves an older mark."""
    ledger = grown(tmp_path, 62)
    mark = ledger.path.with_name("ledger.db.mark")
    kept = mark.read_bytes()
    ledger.charge(local_survey(EPSILON, cells=500), WARD)
    assert isinstance(ledger.entries()[-1].content, Checkpoint)
    mark.write_bytes(kept)
    ledger.charge(local_survey(EPSILON, cells=501), WARD)
    assert ledger.balances("ward")[0].spent == 64 * EPSILON
