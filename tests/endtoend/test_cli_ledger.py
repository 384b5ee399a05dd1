"""The ledger's commands as a privacy officer and a client use them."""

import csv
import hashlib
import json
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from fedassay.cli import main
from fedassay.ledger import Ledger, Part, Status
from tests.surveys import local_pair, local_survey, shared_pair, small_survey
from tests.unit.test_shuffler import shuffled_survey

CANARY = "0.7312345"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the program in this process, in a folder with surveys and a scored table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    rows = "\n".join(f"{CANARY},{i % 2}" for i in range(20))
    Path("scores.csv").write_text(f"score,label\n{rows}\n")
    local_survey(Fraction(1, 3)).save(Path("third.json"))
    local_survey(Fraction(1, 3), cells=8).save(Path("other.json"))
    local_survey(Fraction(1)).save(Path("one.json"))
    small_survey().save(Path("exact.json"))

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fedassay", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        captured = capsys.readouterr()
        assert CANARY not in captured.out + captured.err
        assert "Traceback" not in captured.err
        assert max(map(len, captured.out.splitlines()), default=0) <= 80 or "--json" in arguments
        return code, captured.out, captured.err

    return call


ANSWER = ("answer", "third.json", "scores.csv", "-o", "report.fa", "--ledger", "ledger.db")


def test_a_client_answers_within_its_budget_and_then_refuses(run: Run) -> None:
    assert run("ledger", "new", "ledger.db")[0] == 0
    code, out, _ = run("ledger", "budget", "ledger.db", "--data-id", "w", "--epsilon", "2/3")
    assert code == 0
    assert "epsilon 2/3 per example" in out
    code, out, _ = run(*ANSWER, "--data-id", "w", "--who", "trial 7")
    assert code == 0
    assert "Charged epsilon 1/3 to data 'w'." in out
    assert "Spent 1/3 of 2/3 per example, left 1/3 (replace neighbours)." in out
    assert Ledger(Path("ledger.db")).read().head in out
    sent = Path("report.fa").read_bytes()
    code, out, _ = run(*ANSWER, "--data-id", "w")
    assert code == 0
    assert "Nothing is charged" in out
    assert Path("report.fa").read_bytes() == sent
    assert run(*ANSWER, "--data-id", "w", "--again")[0] == 0
    assert Path("report.fa").read_bytes() != sent
    for survey, word in (("other.json", "BudgetExceeded"), ("exact.json", "exact sums")):
        code, _, err = run(
            "answer", survey, "scores.csv", "-o", "new.fa", "--ledger", "ledger.db",
            "--data-id", "w",
        )  # fmt: skip
        assert code == 2
        assert word in err
        assert not Path("new.fa").exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--data-id", "w", "-o", "nowhere/report.fa"), "cannot be written"),
        (("--data-id", "w", "-o", "ledger.db"), "is an input itself"),
        (("--data-id", "w", "-o", "ledger.db.mark"), "is an input itself"),
        (("--data-id", "w", "-o", "scores.csv"), "is an input itself"),
        (("--data-id", "w", "--window", "2026"), "FROM..TO"),
        (("--data-id", "w", "--score", "nothing"), "ColumnMissing"),
        (("--data-id", "w", "--largest-epsilon", "1/4"), "SurveyRefused"),
        (("--data-id", ""), "printable"),
        ((), "--data-id"),
    ],
)
def test_what_fails_before_the_answer_is_not_charged(
    run: Run, arguments: tuple[str, ...], word: str
) -> None:
    run("ledger", "new", "ledger.db")
    code, _, err = run(*ANSWER, *arguments)
    assert code == 2
    assert word in err
    assert len(err.strip().splitlines()) == 1
    assert len(Ledger(Path("ledger.db")).entries()) == 0


def test_options_of_a_ledger_without_one_are_refused(run: Run) -> None:
    for option in (("--data-id", "w"), ("--again",), ("--window", ".."), ("--witness", "x")):
        code, _, err = run("answer", "third.json", "scores.csv", "-o", "r.fa", *option)
        assert code == 2
        assert f"{option[0]} goes with a ledger" in err
    code, _, err = run(*ANSWER, "--data-id", "w")
    assert code == 2
    assert "fedassay ledger new" in err
    assert not Path("ledger.db").exists()


def test_a_server_charges_a_survey_when_it_is_issued(run: Run) -> None:
    run("ledger", "new", "ledger.db")
    run("ledger", "budget", "ledger.db", "--epsilon", "1")
    new = (
        "survey", "new", "--privacy", "local", "--epsilon", "1", "--clients", "500",
        "--ledger", "ledger.db", "--data-id", "phones",
    )  # fmt: skip
    code, out, _ = run(*new, "-o", "survey.json", "--who", "analyst")
    assert code == 0
    assert "Charged epsilon 1 to data 'phones'." in out
    code, _, err = run(*new, "-o", "again.json", "--again")
    assert code == 2
    assert "BudgetExceeded" in err
    assert not Path("again.json").exists()
    _, out, _ = run("ledger", "history", "ledger.db")
    assert "issued" in out
    assert "analyst" in out


def test_show_and_budget_say_what_is_left(run: Run) -> None:
    run("ledger", "new", "ledger.db", "--witness", "other.mark")
    assert "No budget is set" in run("ledger", "budget", "ledger.db")[1]
    run(
        "ledger", "budget", "ledger.db", "--data-id", "w", "--epsilon", "1", "--split", "windows",
        "--split", "groups", "--exact-sums", "1", "--witness", "other.mark",
    )  # fmt: skip
    for survey in ("third.json", "exact.json"):
        run(
            "answer", survey, "scores.csv", "-o", f"{survey}.fa", "--ledger", "ledger.db",
            "--data-id", "w", "--window", "2026-01-01..2026-02-01", "--group", "a", "--witness",
            "other.mark", "--exact-sums", "--smallest-cell", "0",
        )  # fmt: skip
    _, out, _ = run("ledger", "budget", "ledger.db")
    assert "epsilon 1 per example, split by windows and groups, 1 exact sum(s)" in " ".join(
        out.split()
    )
    _, out, _ = run("ledger", "show", "ledger.db", "--witness", "other.mark")
    cells = out.splitlines()[1].split()
    assert cells[:4] == ["w", "1", "1/3", "2/3"]
    assert cells[-2:] == ["2", "1"]
    _, out, _ = run("ledger", "show", "ledger.db", "--json")
    found = json.loads(out)
    assert found["format"] == "fedassay.ledger-balance/1"
    assert found["balances"][0]["left"] == "2/3"
    assert found["head"] == Ledger(Path("ledger.db")).read().head
    assert run("ledger", "show", "ledger.db", "--expect-head", found["head"])[0] == 0
    assert run("ledger", "show", "ledger.db", "--expect-head", "ab" * 32)[0] == 2
    run("ledger", "budget", "ledger.db", "--data-id", "w", "--no-limit")
    assert "no limit" in run("ledger", "budget", "ledger.db", "--data-id", "w")[1]


def test_contradictory_budgets_are_refused(run: Run) -> None:
    run("ledger", "new", "ledger.db")
    for options, word in (
        (("--epsilon", "1", "--no-limit"), "both"),
        (("--split", "windows"), "needs an epsilon"),
        (("--epsilon", "1", "--split", "days"), "windows or groups"),
        (("--epsilon", "1", "--unit", "client", "--split", "windows"), "every window"),
        (("--epsilon", "1", "--window", "2026-01-01.."), "--split windows"),
        (("--epsilon", "one"), "number"),
        (("--epsilon", "-1"), "negative"),
        (("--epsilon", "1", "--delta", "1"), "between 0 and 1"),
    ):
        code, _, err = run("ledger", "budget", "ledger.db", *options)
        assert code == 2
        assert word in err, err
    assert len(Ledger(Path("ledger.db")).entries()) == 0


def test_an_export_holds_everything_and_its_chain_can_be_checked_by_anyone(run: Run) -> None:
    run("ledger", "new", "ledger.db")
    run("ledger", "budget", "ledger.db", "--epsilon", "1", "--who", "=cmd()")
    run(*ANSWER, "--data-id", "w", "--window", "2026-01-01..2026-02-01")
    assert run("ledger", "export", "ledger.db", "-o", "out.jsonl")[0] == 0
    first, *lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    head = hashlib.sha256(f"fedassay.ledger/1 {first['ledger']}".encode()).digest()
    for line in lines:
        claimed, _ = line.pop("head"), line.pop("number")
        text = json.dumps(line, sort_keys=True, separators=(",", ":"))
        head = hashlib.sha256(head + text.encode()).digest()
        assert claimed == head.hex()
    assert first["head"] == head.hex()
    assert first["entries"] == len(lines) == 2
    assert run("ledger", "export", "ledger.db", "-o", "out.csv")[0] == 0
    with Path("out.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["epsilon"] for row in rows] == ["1", "1/3"]
    assert rows[0]["who"] == "'=cmd()"
    assert rows[1]["window"] == "2026-01-01..2026-02-01"
    code, _, err = run("ledger", "export", "ledger.db", "-o", "out.txt")
    assert code == 2
    assert ".jsonl or .csv" in err
    assert run("ledger", "export", "ledger.db", "-o", "ledger.db")[0] == 2


def test_history_can_be_narrowed(run: Run) -> None:
    run("ledger", "new", "ledger.db")
    assert "No entries" in run("ledger", "history", "ledger.db")[1]
    ledger = Ledger(Path("ledger.db"))
    for cells in (2, 3, 4):
        ledger.charge(local_survey(cells=cells), Part("w[red]" * 8), who="a very long name " * 5)
        ledger.charge(local_survey(cells=cells), Part("v"))
    code, out, _ = run("ledger", "history", "ledger.db", "--data-id", "v", "--last", "2")
    assert code == 0
    assert len(out.splitlines()) == 3
    _, out, _ = run("ledger", "history", "ledger.db")
    assert "w[red]" in out
    _, out, _ = run("ledger", "history", "ledger.db", "--json")
    assert len(json.loads(out)["entries"]) == 6


def test_an_older_copy_is_refused_until_its_loss_is_accepted(run: Run) -> None:
    run("ledger", "new", "ledger.db")
    older = Path("ledger.db").read_bytes()
    run(*ANSWER, "--data-id", "w")
    Path("ledger.db").write_bytes(older)
    for command in (("ledger", "show", "ledger.db"), (*ANSWER, "--data-id", "w")):
        code, _, err = run(*command)
        assert code == 2
        assert "LedgerRolledBack" in err
    assert run("ledger", "accept", "ledger.db", "--who", "officer")[0] == 0
    code, _, err = run("ledger", "show", "ledger.db")
    assert code == 0
    assert "at least what is shown" in " ".join(err.split())
    assert run("ledger", "accept", "ledger.db", "--who", "officer")[1].startswith("Nothing is")


def test_what_is_left_names_its_neighbours_before_the_same_is_counted_twice(run: Run) -> None:
    """Without the word, "left 1/3" and then "nothing is left" would contradict each other."""
    run("ledger", "new", "ledger.db")
    run("ledger", "budget", "ledger.db", "--data-id", "w", "--epsilon", "1")
    new = ("survey", "new", "--privacy", "distributed", "--epsilon", "2/3", "-o", "shared.json")
    assert run(*new, "--minimum-reports", "9")[0] == 0
    answer = ("answer", "shared.json", "scores.csv", "-o", "shared.fa", "--ledger", "ledger.db")
    code, out, _ = run(*answer, "--data-id", "w")
    assert code == 0
    assert "Spent 2/3 of 1 per example, left 1/3 (add or remove neighbours)." in out
    code, _, err = run(*ANSWER, "--data-id", "w")
    assert code == 2
    assert "spent 4/3 (replace neighbours), which was 2/3 before it" in err
    assert "Nothing is left for this survey, and 1/3 for one like the earlier ones" in err


def test_data_without_a_budget_is_charged_only_where_the_ledger_says_so(run: Run) -> None:
    run("ledger", "new", "ledger.db")
    run("ledger", "budget", "ledger.db", "--data-id", "ward-3", "--epsilon", "1")
    code, _, err = run(*ANSWER, "--data-id", "ward_3")
    assert code == 2
    assert "BudgetMissing" in err
    assert "Did you mean 'ward-3'?" in err
    assert "--unlimited" in err
    assert not Path("report.fa").exists()
    unlimited = ("ledger", "budget", "ledger.db", "--data-id", "ward_3", "--unlimited")
    code, out, _ = run(*unlimited, "--who", "officer")
    assert code == 0
    assert "Set for data 'ward_3': no limit" in out
    code, out, _ = run(*ANSWER, "--data-id", "ward_3")
    assert code == 0
    assert "Charged epsilon 1/3 to data 'ward_3'." in out
    assert "left" not in out
    _, out, _ = run("ledger", "show", "ledger.db", "--data-id", "ward_3", "--json")
    (balance,) = json.loads(out)["balances"]
    assert (balance["epsilon"], balance["spent"], balance["left"]) == (None, "1/3", None)
    _, out, _ = run("ledger", "history", "ledger.db", "--data-id", "ward_3")
    assert "officer" in out
    for more, word in ((("--epsilon", "1"), "both"), (("--json",), None)):
        code, out, err = run(*unlimited, *more)
        assert code == (2 if word else 0)
        assert word is None or word in err


def test_verify_reads_every_entry_and_names_a_changed_one(run: Run) -> None:
    run("ledger", "new", "ledger.db")
    run(*ANSWER, "--data-id", "w")
    head = Ledger(Path("ledger.db")).read().head
    code, out, _ = run("ledger", "verify", "ledger.db")
    assert code == 0
    assert out.startswith("1 entries")
    assert head in out
    code, out, _ = run("ledger", "verify", "ledger.db", "--json")
    assert json.loads(out)["head"] == head
    assert run("ledger", "verify", "ledger.db", "--quiet") == (0, "", "")
    changed = Path("ledger.db").read_bytes().replace(b'"epsilon":"1/3"', b'"epsilon":"1/9"')
    assert changed != Path("ledger.db").read_bytes()
    Path("ledger.db").write_bytes(changed)
    code, _, err = run("ledger", "verify", "ledger.db")
    assert code == 2
    assert len(err.strip().splitlines()) == 1


def test_two_surveys_are_one_charge_on_both_sides_and_show_as_such(run: Run) -> None:
    first, second = local_pair(Fraction(1, 2))
    first.save(Path("first.json"))
    second.save(Path("second.json"))
    run("ledger", "new", "ledger.db")
    run("ledger", "budget", "ledger.db", "--data-id", "w", "--epsilon", "1/2")
    answers = {
        name: ("answer", f"{name}.json", "scores.csv", "-o", f"{name}.fa", "--ledger", "ledger.db",
               "--data-id", "w")
        for name in ("first", "second")
    }  # fmt: skip
    code, out, _ = run(*answers["first"])
    assert code == 0
    flat = " ".join(out.split())
    assert (
        "Charged epsilon 1/2 to data 'w': each row answers one of two surveys, this one or the "
        "second, for which 1/2 is reserved." in flat
    )
    code, out, _ = run("ledger", "show", "ledger.db")
    waits = f"1/2 waits for the second survey after {first.fingerprint.hex()[:8]}"
    assert waits in " ".join(out.split())
    _, out, _ = run("ledger", "show", "ledger.db", "--json")
    (reserved,) = json.loads(out)["reserved"]
    assert reserved["survey"] == first.fingerprint.hex()
    # The table changed, and then it is what it was.
    table = Path("scores.csv").read_text()
    Path("scores.csv").write_text(table + f"{CANARY},1\n")
    code, _, err = run(*answers["second"])
    assert code == 2
    assert "a row might answer both" in err
    assert not Path("second.fa").exists()
    Path("scores.csv").write_text(table)
    code, out, _ = run(*answers["second"])
    assert code == 0
    assert (
        "Charged epsilon 0 to data 'w': the second of two surveys spends 1/2, which was paid"
        in (" ".join(out.split()))
    )
    sent = Path("second.fa").read_bytes()
    code, out, _ = run(*answers["second"])
    assert (code, Path("second.fa").read_bytes()) == (0, sent)
    assert "Nothing is charged" in out
    _, out, _ = run("ledger", "show", "ledger.db")
    assert "waits for" not in out
    assert Ledger(Path("ledger.db")).balances("w")[0].spent == Fraction(1, 2)
    _, out, _ = run("ledger", "history", "ledger.db")
    told = " ".join(out.split())
    assert "first of two" in told
    assert "second:" in told
    run("ledger", "export", "ledger.db", "-o", "ledger.csv")
    lines = Path("ledger.csv").read_text().splitlines()
    steps = [row["step"] for row in csv.DictReader(lines) if row["step"]]
    assert [json.loads(step)["kind"] for step in steps] == ["first", "second"]
    assert run("ledger", "verify", "ledger.db")[0] == 0


def test_a_server_is_charged_once_for_the_two_surveys_that_it_hands_out(run: Run) -> None:
    first, second = shared_pair(Fraction(1, 2))
    ledger = Ledger.create(Path("server.db"))
    for survey in (first, second):
        ledger.charge(survey, Part("w"), status=Status.ISSUED)
    code, out, _ = run("ledger", "history", "server.db")
    assert code == 0
    assert "issued" in out
    assert ledger.balances("w")[0].spent == Fraction(1, 2)


def test_a_shuffled_survey_charges_a_delta_that_is_shown_beside_the_budgets(run: Run) -> None:
    survey = shuffled_survey()
    survey.save(Path("shuffled.json"))
    epsilon, delta = survey.guarantee.epsilon, survey.guarantee.delta
    assert epsilon is not None
    assert delta is not None
    run("ledger", "new", "ledger.db")
    ask = (
        "answer", "shuffled.json", "scores.csv", "-o", "report.fa", "--ledger", "ledger.db",
        "--data-id", "w", "--largest-epsilon", 10, "--largest-local", 10, "--client-id", "a",
    )  # fmt: skip
    run("ledger", "budget", "ledger.db", "--data-id", "w", "--epsilon", 5)
    code, _, said = run(*ask)
    assert code == 2
    assert "allows no delta" in said
    assert "delta" not in run("ledger", "show", "ledger.db")[1]
    run("ledger", "budget", "ledger.db", "--data-id", "w", "--epsilon", 5, "--delta", "1e-3")
    code, out, said = run(*ask)
    assert code == 0, said
    assert f"Charged epsilon {epsilon} at delta {float(delta):g} to data 'w'." in out
    assert f"{float(delta):g} of 0.001" in run("ledger", "show", "ledger.db")[1]
    (balance,) = json.loads(run("ledger", "show", "ledger.db", "--json")[1])["balances"]
    assert Fraction(balance["spent_delta"]) == delta
    assert f"({epsilon}, {float(delta):g})" in run("ledger", "history", "ledger.db")[1]
