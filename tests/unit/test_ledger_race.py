"""Processes that charge at once never pass the budget together."""

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from fedassay.ledger import Budget, Charge, Ledger
from tests.tables import ROOT

CHARGES = """
import sys, time
from fractions import Fraction
from pathlib import Path
from fedassay.errors import BudgetExceeded
from fedassay.ledger import Charge, Ledger, Part, Status
from tests.surveys import local_survey
import fedassay.ledger.ledger as book
decide, careless = book.decide, sys.argv[4] == "careless"
if careless:
    # The planted bug: decides on what it read before it had the lock.
    book.decide = lambda *a, **b: None
ledger, mine, charged = Ledger(Path(sys.argv[1])), int(sys.argv[2]), 0
sys.stdout.write("ready\\n"); sys.stdout.flush(); sys.stdin.readline()
for turn in range(int(sys.argv[3])):
    try:
        # Another survey each time: the epsilon stays, the grid differs.
        survey = local_survey(Fraction(1, 3), cells=2 + mine * 100 + turn)
        if careless:
            tab = ledger.read().tab("ward")
            time.sleep(0.02)
            decide(tab, Charge.of(survey, Part("ward"), Status.CHARGED), again=False)
        ledger.charge(survey, Part("ward"))
        charged += 1
    except BudgetExceeded:
        pass
print(charged)
"""


ALLOWED = 10


def charge_at_once(ledger: Ledger, *, processes: int, turns: int, how: str = "") -> int:
    """Start them together; how many charges they made in all."""
    ledger.set_budget(Budget("ward", Fraction(ALLOWED, 3)))
    running = [
        subprocess.Popen(
            [sys.executable, "-c", CHARGES, str(ledger.path), str(mine), str(turns), how],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        for mine in range(processes)
    ]  # fmt: skip
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    charged = sum(int(process.communicate(timeout=120)[0]) for process in running)
    assert all(process.returncode == 0 for process in running)
    entries = Ledger(ledger.path).entries()
    assert sum(isinstance(entry.content, Charge) for entry in entries) == charged
    return charged


@pytest.mark.parametrize(("processes", "turns"), [(2, 8), (8, 3)])
def test_processes_that_charge_at_once_never_pass_the_budget(
    tmp_path: Path, processes: int, turns: int
) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", witness=tmp_path / "witness.mark")
    assert charge_at_once(ledger, processes=processes, turns=turns) == ALLOWED
    (balance,) = ledger.balances("ward")
    assert balance.spent == Fraction(ALLOWED, 3)
    assert balance.left == 0


def test_a_decision_made_before_the_lock_is_caught(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db")
    assert charge_at_once(ledger, processes=4, turns=5, how="careless") > ALLOWED
