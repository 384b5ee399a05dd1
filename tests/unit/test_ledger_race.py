"""Processes that charge at once never pass the budget together."""

import os
import subprocess
import sys
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import pytest

from fedassay.errors import LedgerUnwritable
from fedassay.ledger import Budget, Charge, Ledger, Part, store
from fedassay.ledger import ledger as ledger_module
from fedassay.ledger.budget import decide
from tests.surveys import local_survey
from tests.tables import ROOT

CHARGES = """
import sys
from fractions import Fraction
from pathlib import Path
from fedassay.errors import BudgetExceeded
from fedassay.ledger import Charge, Ledger, Part, Status
from tests.surveys import local_survey
import fedassay.ledger.ledger as ledger_module
decide, is_careless = ledger_module.decide, sys.argv[4] == "careless"
ledger, mine, charged = Ledger(Path(sys.argv[1])), int(sys.argv[2]), 0
if is_careless:
    # The planted bug: decides on what it read before it had the lock. All of them read before
    # any is told to go, so that nothing depends on who is faster.
    seen = ledger.read().tab("ward")
    ledger_module.decide = lambda tab, charge, **how: decide(seen, charge, **how)
sys.stdout.write("ready\\n"); sys.stdout.flush(); sys.stdin.readline()
for turn in range(int(sys.argv[3])):
    try:
        # Another survey each time: the epsilon stays, the grid differs.
        survey = local_survey(Fraction(1, 3), cells=2 + mine * 100 + turn)
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
    with ExitStack() as stack:
        running = [
            stack.enter_context(started(ledger, str(mine), str(turns), how))
            for mine in range(processes)
        ]
        for process in running:
            # Whatever fails below, nobody is left over: a pipe that is closed ends its process.
            stack.callback(process.kill)
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in running:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        charged = sum(int(process.communicate(timeout=300)[0]) for process in running)
        assert all(process.returncode == 0 for process in running)
    entries = Ledger(ledger.path).entries()
    assert sum(isinstance(entry.content, Charge) for entry in entries) == charged
    return charged


def started(ledger: Ledger, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHARGES, str(ledger.path), *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip


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
    """The twin: four processes of five turns that all saw an empty ledger make twenty charges."""
    ledger = Ledger.create(tmp_path / "ledger.db")
    assert charge_at_once(ledger, processes=4, turns=5, how="careless") == 20


def test_while_one_decides_nobody_else_charges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No race to be won: the second charge is tried from within the first one's decision."""
    ledger = Ledger.create(tmp_path / "ledger.db")
    tried: list[bool] = []

    def interrupted(*given: object, **how: object) -> None:
        monkeypatch.setattr(ledger_module, "decide", decide)
        with pytest.raises(LedgerUnwritable, match="another process has held it"):
            Ledger(ledger.path).charge(local_survey(cells=3), Part("ward"))
        tried.append(True)
        decide(*given, **how)  # type: ignore[arg-type]  # settings by name

    monkeypatch.setattr(store, "BUSY_SECONDS", 0.0)
    monkeypatch.setattr(ledger_module, "decide", interrupted)
    ledger.charge(local_survey(cells=2), Part("ward"))
    assert tried == [True]
    assert sum(isinstance(entry.content, Charge) for entry in ledger.entries()) == 1
