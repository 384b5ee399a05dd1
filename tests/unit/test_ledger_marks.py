"""Copies, restored folders and lost files: what was spent is not forgotten."""

from fractions import Fraction
from pathlib import Path

import pytest

from fedassay import Survey
from fedassay.errors import (
    LedgerInvalid,
    LedgerRolledBack,
)
from fedassay.ledger import Ledger, Loss, Part
from fedassay.ledger.high_water_mark import mark_path
from tests.surveys import local_survey

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


def test_a_ledger_opened_by_a_link_has_the_same_mark(ledger: Ledger, tmp_path: Path) -> None:
    ledger.charge(third(2), WARD)
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "here.db"
    link.symlink_to(ledger.path)
    Ledger(link).charge(third(3), WARD)
    assert spent(ledger) == 2 * THIRD
    assert [item.name for item in link.parent.iterdir()] == ["here.db"]


def test_an_older_copy_is_noticed_and_its_loss_stays_on_record(ledger: Ledger) -> None:
    ledger.charge(third(2), WARD)
    older = ledger.path.read_bytes()
    head = ledger.charge(third(3), WARD).head
    ledger.path.write_bytes(older)
    for attempt in (ledger.entries, lambda: ledger.charge(third(4), WARD)):
        with pytest.raises(LedgerRolledBack, match="older copy: it has 1 entries"):
            attempt()
    entry = ledger.accept_loss(who="officer")
    assert entry is not None
    assert entry.content == Loss(2, head)
    assert ledger.accept_loss(who="officer") is None
    ledger.charge(third(4), WARD)
    assert not ledger.read().had_head(head)
    assert ledger.read().losses == 1


def test_an_older_copy_that_grew_elsewhere_is_noticed(ledger: Ledger, tmp_path: Path) -> None:
    ledger.charge(third(2), WARD)
    elsewhere = tmp_path / "copy"
    elsewhere.mkdir()
    for path in (ledger.path, mark_path(ledger.path)):
        (elsewhere / path.name).write_bytes(path.read_bytes())
    ledger.charge(third(3), WARD)
    copy = Ledger(elsewhere / ledger.path.name)
    copy.charge(third(4), WARD)
    copy.charge(third(5), WARD)
    ledger.path.write_bytes(copy.path.read_bytes())
    with pytest.raises(LedgerRolledBack):
        ledger.charge(third(6), WARD)


def test_a_witness_elsewhere_notices_a_folder_restored_whole(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", witness=tmp_path / "elsewhere.mark")
    ledger.charge(third(2), WARD)
    paths = (ledger.path, mark_path(ledger.path))
    older = [path.read_bytes() for path in paths]
    head = ledger.charge(third(3), WARD).head
    for path, content in zip(paths, older, strict=True):
        path.write_bytes(content)
    with pytest.raises(LedgerRolledBack, match="elsewhere"):
        ledger.charge(third(4), WARD)
    # Without the witness nothing in the folder can tell; a head kept by somebody can.
    found = Ledger(ledger.path).read()
    assert not found.had_head(head)
    assert found.had_head(found.head[:12])
    assert not found.had_head(found.head[:7])


def test_an_accepted_loss_records_the_newest_of_what_the_marks_have_seen(tmp_path: Path) -> None:
    """The folder is restored whole with one entry; only the witness saw all four."""
    ledger = Ledger.create(tmp_path / "ledger.db", witness=tmp_path / "elsewhere.mark")
    ledger.charge(third(2), WARD)
    paths = (ledger.path, mark_path(ledger.path))
    older = [path.read_bytes() for path in paths]
    head = [ledger.charge(third(cells), WARD).head for cells in (3, 4, 5)][-1]
    for path, content in zip(paths, older, strict=True):
        path.write_bytes(content)
    entry = ledger.accept_loss(who="officer")
    assert entry is not None
    assert entry.content == Loss(4, head)


def test_a_missing_mark_or_file_is_noticed(ledger: Ledger) -> None:
    ledger.charge(third(2), WARD)
    mark = mark_path(ledger.path)
    kept = mark.read_bytes()
    mark.unlink()
    with pytest.raises(LedgerRolledBack, match="mark is missing"):
        ledger.charge(third(3), WARD)
    mark.write_bytes(kept)
    ledger.path.unlink()
    with pytest.raises(LedgerInvalid, match="no ledger"):
        ledger.charge(third(3), WARD)
    with pytest.raises(LedgerRolledBack, match="was here"):
        Ledger.create(ledger.path)


def test_a_mark_of_another_ledger_or_kind_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    other = Ledger.create(tmp_path / "other.db")
    with pytest.raises(LedgerInvalid, match="another ledger"):
        Ledger(ledger.path, mark_path(other.path)).charge(third(2), WARD)
    for content in (b"", b"{}", b"\x00" * 100, b'{"format": "fedassay.ledger-mark/2"}'):
        mark_path(ledger.path).write_bytes(content)
        with pytest.raises(LedgerInvalid):
            ledger.charge(third(2), WARD)


def test_a_ledger_removed_before_its_first_entry_leaves_nothing_behind(ledger: Ledger) -> None:
    ledger.path.unlink()
    stale = mark_path(ledger.path).read_bytes()
    again = Ledger.create(ledger.path)
    assert mark_path(again.path).read_bytes() != stale
    again.charge(third(2), WARD)
