"""Reports, tallies and assessments as their owners handle them on the command line."""

import json
import re
import stat
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from fedassay.cli import main
from fedassay.client import make_answer
from fedassay.engines import report_files
from fedassay.engines.bulk_tally import BulkBuilder
from fedassay.engines.report_files import collect
from fedassay.examples import Examples
from fedassay.randomness import SystemRandomness
from fedassay.survey import Survey
from fedassay.survey_json import load_survey
from fedassay.tally import Tally
from fedassay.tally_file import KeptTally, State
from fedassay.wire import encode
from tests.singles import as_bytes, made
from tests.surveys import local_survey, report_of, small_survey
from tests.unit.test_unfinished import Stopped, Stopping

SECURE = small_survey(4, minimum_reports=2)


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """What was printed, without line breaks."""
        return " ".join(self.out.split())


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the program in this process, in a folder with surveys and reports to them."""
    monkeypatch.chdir(tmp_path)
    SECURE.save("secure.json")
    local_survey().save("local.json")
    for number in range(4):
        _write_report(SECURE, Path(f"s{number}.fa"), number)
        _write_report(local_survey(), Path(f"l{number}.fa"), number)

    def call(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["fedassay", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Result(code, captured.out, captured.err)

    return call


def _write_report(survey: Survey, path: Path, number: int) -> None:
    scores = np.linspace(0.1, 0.9, 5 + number)
    counts = survey.grid.count(Examples(np.arange(5 + number) % 2, scores))
    path.write_bytes(make_answer(survey, counts, randomness=SystemRandomness()).to_bytes())


def refused(result: Result, *words: str) -> None:
    assert result.code == 2, result
    assert len(result.err.strip().splitlines()) == 1, result.err
    for word in words:
        assert word in result.err


def released(path: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(Path(path).read_text())
    return content


# In the survey's few cells, eleven rows do not give these; nothing else may be said of them.
BEYOND_ELEVEN_ROWS = ["ks", "recall@specificity=0.9", "specificity@recall=0.9"]


def unanswered(err: str) -> list[str]:
    """The metric that each line on standard error is about."""
    return [line.partition(": ")[0] for line in err.splitlines()]


def test_a_report_that_comes_again_is_already_there_and_nothing_is_wrong(run: Run) -> None:
    refused(run("tally", "secure.json", "s0.fa", "-o", "a.json"), "TooFewReports", "1 more")
    assert not Path("a.json").exists()
    again = run("tally", "secure.json", "s0.fa", "s0.fa", "s1.fa", "-o", "a.json")
    assert (again.code, unanswered(again.err)) == (0, BEYOND_ELEVEN_ROWS)
    assert "Counted 1 reports, 2 already there, rejected 0 files" in again.text
    before = released("a.json")
    same = run("tally", "secure.json", "s0.fa", "s1.fa", "-o", "a.json")
    assert (same.code, unanswered(same.err)) == (0, BEYOND_ELEVEN_ROWS)
    assert released("a.json") == before


def test_a_bulk_file_sent_twice_is_one_line_and_not_one_per_report(run: Run) -> None:
    survey = local_survey()
    bulk = b"".join(
        make_answer(survey, np.eye(8, dtype=np.int64)[i % 8].reshape(2, 4),
                    randomness=SystemRandomness()).to_bytes()
        for i in range(500)
    )  # fmt: skip
    Path("bulk.fa").write_bytes(bulk)
    assert run("tally", "local.json", "bulk.fa", "--collect", "a.tally").code == 0
    again = run("tally", "local.json", "bulk.fa", "l0.fa", "--collect", "a.tally")
    assert (again.code, again.err) == (0, "")
    assert "500 already there" in again.text
    foreign = run("tally", "secure.json", "bulk.fa", "s0.fa", "s1.fa", "--collect", "b.tally")
    refused(foreign, "bulk.fa: ReportForeign")


@pytest.mark.parametrize("late", [["s2.fa"], ["s0.fa", "s1.fa", "s2.fa"]])
def test_a_released_tally_is_closed_and_says_why(run: Run, late: list[str]) -> None:
    first = run("tally", "secure.json", "s0.fa", "s1.fa", "-o", "a.json")
    assert first.code == 0
    assert "No report can be added" in first.text
    files = {name: Path(name).read_bytes() for name in ("a.json", "a.tally")}
    for target in (["-o", "a.json"], ["--collect", "a.tally"], ["-o", "a.json", "--force"]):
        result = run("tally", "secure.json", *late, *target)
        refused(result, "TallyClosed", "the difference of two released sums", "--collect")
    assert {name: Path(name).read_bytes() for name in files} == files


def test_the_same_sums_are_released_again_for_other_thresholds(run: Run) -> None:
    assert run("tally", "secure.json", "s0.fa", "s1.fa", "-o", "a.json").code == 0
    assert run("tally", "secure.json", "-o", "a.json", "--threshold", 0.25).code == 0
    assert "recall@0.25" in released("a.json")["estimates"]
    assert run("tally", "secure.json", "--from", "a.tally", "-o", "b.json").code == 0
    assert released("b.json")["counters"] == released("a.json")["counters"]


def test_local_reports_may_be_added_and_released_again(run: Run) -> None:
    assert run("tally", "local.json", "l0.fa", "-o", "a.json").code == 0
    before = sum(released("a.json")["reports"])
    assert run("tally", "local.json", "l0.fa", "l1.fa", "-o", "a.json").code == 0
    assert sum(released("a.json")["reports"]) == before + 6


def test_an_assessment_whose_tally_is_elsewhere_is_not_replaced(run: Run) -> None:
    assert run("tally", "secure.json", "s0.fa", "s1.fa", "-o", "a.json").code == 0
    before = Path("a.json").read_bytes()
    Path("a.tally").rename("kept.tally")
    refused(run("tally", "secure.json", "s2.fa", "s3.fa", "-o", "a.json"), "--from")
    assert Path("a.json").read_bytes() == before
    assert run("tally", "secure.json", "--from", "kept.tally", "-o", "a.json").code == 0


def test_a_run_that_was_stopped_goes_on_and_says_so(run: Run) -> None:
    """A run stopped when it had written two parts of a hundred reports each."""
    survey, place, inbox = local_survey(), Path("study.tally"), Path("many.fa")
    sent = made(survey, 600)
    inbox.write_bytes(as_bytes(sent))
    builder = BulkBuilder(Tally.zero(survey), survey)
    unfinished = Stopping(place, builder, every=100)
    unfinished.stop_after = 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_files, "READ_BYTES", 5000)
        with pytest.raises(Stopped):
            collect(builder, [inbox], unfinished=unfinished)
    assert not place.exists()
    result = run("tally", "local.json", inbox, "--collect", place)
    assert result.code == 0, result.err
    (resumed,) = re.findall(r"Went on after ([0-9]+) reports that an interrupted", result.text)
    assert 200 <= int(resumed) < 600
    assert KeptTally.load(place).tally == Tally.of(survey, sent)
    assert not Path("study.tally.parts").exists()


def test_a_tally_of_nothing_writes_no_file(run: Run) -> None:
    Path("inbox").mkdir()
    for target in (["-o", "a.json"], ["--collect", "a.tally"]):
        refused(run("tally", "secure.json", "inbox", *target), "at least one report")
        refused(run("tally", "secure.json", *target), "no such tally")
    assert not list(Path().glob("a.*"))


def test_tallies_and_what_comes_of_them_are_the_owners_alone(run: Run) -> None:
    assert run("tally", "secure.json", "s0.fa", "--collect", "a.tally").code == 0
    assert stat.S_IMODE(Path("a.tally").stat().st_mode) == 0o600
    shown = run("show", "a.tally")
    assert "collecting" in shown.out
    assert "1 more needed" in shown.text
    content = json.loads(run("show", "a.tally", "--json").out)
    assert (content["state"], content["reports"]) == ("collecting", 1)
    assert "counters" not in content


def test_tallies_merge_and_only_the_whole_is_released(run: Run) -> None:
    for name, reports in {"a": ["s0.fa", "s1.fa"], "b": ["s2.fa", "s3.fa"]}.items():
        assert run("tally", "secure.json", *reports, "--collect", f"{name}.tally").code == 0
    merged = run("merge", "a.tally", "b.tally", "-o", "c.tally", "--json")
    assert merged.code == 0
    assert json.loads(merged.out)["reports"] == 4
    whole = KeptTally.load(Path("c.tally"))
    parts = [KeptTally.load(Path(f"{name}.tally")) for name in "ab"]
    assert whole.tally == parts[0].tally + parts[1].tally
    assert [part.state for part in parts] == [State.MERGED] * 2
    refused(run("tally", "secure.json", "--from", "a.tally", "-o", "a.json"), "TallyClosed")
    assert not Path("a.json").exists()
    assert run("tally", "secure.json", "--from", "c.tally", "-o", "c.json").code == 0
    assert released("c.json")["reports"] == [4, 4]


def test_merging_refuses_overlaps_other_surveys_and_what_was_released(run: Run) -> None:
    assert run("tally", "secure.json", "s0.fa", "s1.fa", "--collect", "a.tally").code == 0
    assert run("tally", "secure.json", "s1.fa", "s2.fa", "--collect", "b.tally").code == 0
    assert run("tally", "local.json", "l0.fa", "--collect", "l.tally").code == 0
    assert run("tally", "secure.json", "s3.fa", "--collect", "d.tally").code == 0
    refused(run("merge", "a.tally", "b.tally", "-o", "c.tally"), "ReportDuplicate", "1 are")
    refused(run("merge", "a.tally", "a.tally", "-o", "c.tally"), "ReportDuplicate")
    refused(run("merge", "a.tally", "l.tally", "-o", "c.tally"), "SurveyMismatch")
    refused(run("merge", "a.tally", "-o", "c.tally"), "two tallies")
    refused(run("merge", "a.tally", "d.tally", "-o", "d.tally", "--force"), "an input itself")
    assert run("tally", "secure.json", "--from", "a.tally", "-o", "a.json").code == 0
    refused(run("merge", "a.tally", "d.tally", "-o", "c.tally"), "TallyClosed")
    assert not Path("c.tally").exists()
    assert KeptTally.load(Path("d.tally")).state is State.COLLECTING


def test_a_report_that_would_overflow_is_named_and_the_others_are_counted(run: Run) -> None:
    huge = [encode(report_of(SECURE, [2**31 - 1], report_id=bytes([i]) * 16)) for i in (1, 2)]
    for number, content in enumerate(huge):
        Path(f"huge{number}.fa").write_bytes(content)
    result = run("tally", "secure.json", "huge0.fa", "huge1.fa", "s0.fa", "--collect", "a.tally")
    assert result.code == 2
    assert "huge1.fa: CountOverflow" in result.err
    assert "huge0.fa" not in result.err
    assert KeptTally.load(Path("a.tally")).reports >= 1


def test_json_and_quiet_say_it_all_or_nothing(run: Run) -> None:
    told = run("tally", "secure.json", "s0.fa", "--collect", "a.tally", "--json")
    content = json.loads(told.out)
    assert content["format"] == "fedassay.tallied/1"
    assert (content["counted"], content["reports"], content["assessment"]) == (1, 1, None)
    silent = run("tally", "secure.json", "s0.fa", "s1.fa", "-o", "b.json", "--quiet")
    assert silent == (0, "", "")
    for command in (["show", "b.json"], ["survey", "show", "secure.json"]):
        assert run(*command, "--quiet") == (0, "", "")
        assert json.loads(run(*command, "--json").out)["guarantee"]
    told = run("tally", "secure.json", "--from", "b.tally", "-o", "b.json", "--json")
    assert json.loads(told.out)["estimates"]["roc_auc"]["value"] is not None


def table(path: str, rows: int) -> str:
    lines = [f"{i / (rows + 1)},{i % 2}" for i in range(rows)]
    Path(path).write_text("\n".join(["score,label", *lines, ""]))
    return path


def test_an_answer_is_not_replaced_by_a_second_one(run: Run) -> None:
    scores = table("t.csv", 9)
    assert run("answer", "local.json", scores, "-o", "r.fa").code == 0
    first = Path("r.fa").read_bytes()
    refused(run("answer", "local.json", scores, "-o", "r.fa"), "SurveyRepeated", "counts once")
    assert Path("r.fa").read_bytes() == first
    refused(run("answer", "local.json", scores, "-o", scores, "--force"), "an input itself")
    refused(run("answer", "local.json", scores, "-o", "secure.json"), "--force")
    assert run("answer", "local.json", scores, "-o", "r.fa", "--force").code == 0
    assert Path("r.fa").read_bytes() != first


def test_with_a_ledger_the_same_question_has_the_same_answer(run: Run) -> None:
    scores = table("t.csv", 9)
    assert run("ledger", "new", "ledger.db").code == 0
    account = ("--ledger", "ledger.db", "--data-id", "ward")
    assert run("answer", "local.json", scores, "-o", "r.fa", *account).code == 0
    again = run("answer", "local.json", scores, "-o", "again.fa", *account)
    assert again.code == 0
    assert "with the same bytes" in again.text
    assert Path("again.fa").read_bytes() == Path("r.fa").read_bytes()
    assert run("answer", "local.json", scores, "-o", "r.fa", *account).code == 0
    entries = json.loads(run("ledger", "history", "ledger.db", "--json").out)["entries"]
    assert [entry["kind"] for entry in entries] == ["charge"]
    counted = run("tally", "local.json", "r.fa", "again.fa", "-o", "a.json")
    assert "Counted 9 reports, 9 already there" in counted.text
    # Another part of the data is another client; --again is charged, and answers anew.
    other = ("--ledger", "ledger.db", "--data-id", "other")
    assert run("answer", "local.json", scores, "-o", "other.fa", *other).code == 0
    assert Path("other.fa").read_bytes() != Path("r.fa").read_bytes()
    assert run("answer", "local.json", scores, "-o", "new.fa", *account, "--again").code == 0
    assert Path("new.fa").read_bytes() != Path("r.fa").read_bytes()
    assert run("answer", "local.json", scores, "-o", "newer.fa", *account).code == 0
    assert Path("newer.fa").read_bytes() == Path("new.fa").read_bytes()
    folder = Path("ledger.db.answers")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_a_kept_answer_that_was_damaged_is_not_sent(run: Run) -> None:
    scores = table("t.csv", 9)
    assert run("ledger", "new", "ledger.db").code == 0
    account = ("--ledger", "ledger.db", "--data-id", "ward")
    assert run("answer", "local.json", scores, "-o", "r.fa", *account).code == 0
    (kept,) = Path("ledger.db.answers").iterdir()
    for content in (kept.read_bytes()[:-1], b""):
        kept.write_bytes(content)
        refused(run("answer", "local.json", scores, "-o", "x.fa", *account), "damaged", "--again")
        assert not Path("x.fa").exists()


def test_a_table_without_rows_answers_where_noise_or_the_sum_hides_it(run: Run) -> None:
    new = ("survey", "new", "--height", 2, "--smallest-cell", 0, "-o", "noisy.json")
    assert run(*new, "--privacy", "distributed", "--epsilon", 1, "--clients", 20).code == 0
    for kind in ("csv", "parquet"):
        empty, full = f"empty.{kind}", f"full.{kind}"
        write_tables(empty, full)
        for survey in ("secure.json", "noisy.json"):
            sizes = []
            for file in (empty, full):
                output = f"{survey}-{file}.fa"
                assert (
                    run(
                        "answer", survey, file, "--exact-sums", "--smallest-cell", 0, "-o", output
                    ).code
                    == 0
                )
                sizes.append(Path(output).stat().st_size)
            assert sizes[0] == sizes[1]
        refused(run("answer", "local.json", empty, "-o", "l.fa"), "SurveyRefused", "has none")


def write_tables(empty: str, full: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if empty.endswith("csv"):
        table(empty, 0)
        table(full, 50)
        return
    columns = pa.schema([("score", pa.float64()), ("label", pa.int64())])
    pq.write_table(pa.table({"score": [], "label": []}, schema=columns), empty)
    pq.write_table(pa.table({"score": [0.25] * 50, "label": [0, 1] * 25}, schema=columns), full)


def test_rows_that_do_not_count_are_said_to_be_left_out(run: Run) -> None:
    scores = table("t.csv", 40)
    new = ("survey", "new", "--privacy", "distributed", "--epsilon", 1, "--height", 2)
    made = run(*new, "--clients", 30, "--unit", "client", "--max-examples", 4, "-o", "c.json")
    assert made.code == 0
    answered = run("answer", "c.json", scores, "-o", "r.fa")
    assert "Counted 4 of 40 rows, and left out 90 %" in answered.text
    told = json.loads(run("answer", "c.json", scores, "-o", "q.fa", "--json").out)
    assert (told["rows"], told["rows_counted"]) == (40, 4)
    whole = run("answer", "secure.json", scores, "--exact-sums", "--smallest-cell", 0, "-o", "s.fa")
    assert "rows" not in whole.out


def test_simulate_says_how_many_rows_counted(run: Run) -> None:
    lines = [f"{i / 41},{i % 2},{i % 5}" for i in range(40)]
    Path("t.csv").write_text("\n".join(["score,label,site", *lines, ""]))
    asked = ("simulate", "t.csv", "--client", "site", "--unit", "client", "--max-examples", 3)
    assert "Counted 15 of these rows" in run(*asked, "--height", 2).text
    assert json.loads(run(*asked, "--height", 2, "--json").out)["rows_kept"] == 15
    whole = run("simulate", "t.csv", "--client", "site", "--height", 2)
    assert "Counted" not in whole.out


@pytest.mark.parametrize(
    ("clients", "colluders", "minimum"),
    [(1000, 0, 900), (15, 0, 13), (10, 9, 10), (2, 0, 2), (3, 0, 2), (100, 20, 90)],
)
def test_one_client_in_ten_may_stay_away_unless_told_otherwise(
    run: Run, clients: int, colluders: int, minimum: int
) -> None:
    new = ("survey", "new", "--privacy", "distributed", "--epsilon", 1, "--height", 2)
    made = run(*new, "--clients", clients, "--colluders", colluders, "-o", "n.json")
    assert made.code == 0
    assert f"below {minimum:,} reports" in made.text
    survey = load_survey(Path("n.json"))
    assert survey.minimum_reports == minimum
    assert [m.noise_shares for m in survey.mechanisms] == [minimum - colluders] * 2  # type: ignore[union-attr]  # the survey has one
    told = run(*new, "--clients", clients, "--minimum-reports", clients, "-o", "m.json")
    assert told.code == 0
    assert load_survey(Path("m.json")).minimum_reports == clients


def test_a_survey_that_was_handed_out_is_not_replaced(run: Run) -> None:
    before = Path("secure.json").read_bytes()
    refused(run("survey", "new", "-o", "secure.json"), "already there", "--force")
    assert Path("secure.json").read_bytes() == before
    assert run("survey", "new", "-o", "secure.json", "--force").code == 0
    assert Path("secure.json").read_bytes() != before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--privacy", "distributed", "--epsilon", 1, "--clients", 100),
         ("2.72 times", "73.2 %", "A row is not a patient", "epsilon 3 only", "as without")),
        (("--privacy", "local", "--epsilon", 2),
         ("7.39 times", "88.1 %", "any other in place", "A row is not a patient")),
        (("--privacy", "distributed", "--epsilon", 1, "--clients", 100, "--unit", "client",
          "--max-examples", 5), ("all rows of one client", "At most 5 row(s)")),
        (("--smallest-cell", 0), ("There is no noise", "all rows but one")),
    ],
    ids=["distributed", "local", "client", "secure"],
)  # fmt: skip
def test_a_survey_says_what_it_promises_in_plain_words(
    run: Run, options: tuple[object, ...], words: tuple[str, ...]
) -> None:
    assert run("survey", "new", "--height", 2, *options, "-o", "n.json").code == 0
    shown = run("survey", "show", "n.json")
    assert load_survey(Path("n.json")).fingerprint.hex()[:12] in shown.text
    for word in (*words, "which clients answered is public"):
        assert word in shown.text
    content = json.loads(run("survey", "show", "n.json", "--json").out)
    assert content["format"] == "fedassay.survey-shown/1"
    assert content["cells_per_level"] == [2, 4]
    assert all(any(word in said for said in content["plain_words"]) for word in words)
    epsilon = load_survey(Path("n.json")).epsilon
    assert content["epsilon"] == (None if epsilon is None else str(Fraction(epsilon)))
