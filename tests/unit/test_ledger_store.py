"""What the ledger's file keeps beside its entries."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fedassay import Examples
from fedassay.errors import LedgerInvalid
from fedassay.ledger import Ledger, Part
from fedassay.ledger.steps import TableDigest
from tests.surveys import local_pair


@pytest.mark.parametrize("salt", [b"short", "a text of thirty-two letters, no"])
def test_a_secret_that_was_changed_from_outside_seals_nothing(tmp_path: Path, salt: object) -> None:
    path = tmp_path / "ledger.db"
    made = Ledger.create(path)
    first, _ = local_pair()
    table = TableDigest.of(Examples([0, 1], [0.1, 0.4]))
    made.charge(first, Part("ward"), table=table)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE secret SET salt = ?", (salt,))
    with pytest.raises(LedgerInvalid, match=r"ledger\.db"):
        made.charge(replace(first, minimum_reports=3), Part("ward"), table=table)
