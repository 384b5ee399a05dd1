"""Files of a survey of classes as people come across them: again, too few, of another survey."""

import json
from pathlib import Path

import pytest

from tests.class_rows import drawn_rows
from tests.program import Result, Run, check_refused

ROWS = drawn_rows(200, (4.0, 2.0, 1.0))
NAMES = ("early", "late", "lost")
COLUMNS = ("--scores", "p_*", "--label", "y")


class Study:
    """A survey of three classes, one table, and commands about them."""

    def __init__(self, run: Run, folder: Path) -> None:
        self.run, self.folder = run, folder
        self.survey, self.tally = folder / "survey.json", folder / "out.tally"
        self.output = folder / "out.json"
        self.table = folder / "rows.csv"
        lines = ["p_early,p_late,p_lost,y"]
        for label, row in zip(ROWS.labels, ROWS.scores, strict=True):
            lines.append(",".join([*(f"{p:.9f}" for p in row), NAMES[label]]))
        self.table.write_text("\n".join(lines) + "\n")
        self.new(self.survey)

    def new(self, path: Path, *options: object) -> Result:
        made = self.run("survey", "new", "--scores", "p_early,p_late,p_lost", "--privacy",
                        "distributed", "--epsilon", 1, "--clients", 3, "--minimum-reports", 2,
                        "--examples", 600, "-o", path, *options)  # fmt: skip
        assert made.code == 0, made.err
        return made

    def answer(self, name: str, *options: object) -> Result:
        place = self.folder / name
        return self.run("answer", self.survey, self.table, *COLUMNS, "-o", place, *options)

    def answered(self, *names: str) -> list[Path]:
        for name in names:
            assert self.answer(name).code == 0
        return [self.folder / name for name in names]


@pytest.fixture
def study(run: Run, tmp_path: Path) -> Study:
    return Study(run, tmp_path)


def test_a_survey_of_classes_says_what_it_asks_and_promises(study: Study) -> None:
    shown = study.run("survey", "show", study.survey)
    assert shown.code == 0, shown.err
    assert "distributed privacy, 3 classes (early, late, lost)" in shown.out
    assert "1-differential privacy" in shown.out
    content = json.loads(study.run("survey", "show", study.survey, "--json").out)
    assert content["classes"] == list(NAMES)
    assert content["epsilon"] == "1"
    for sentence in content["plain_words"]:
        assert sentence in " ".join(shown.out.split())


def test_too_few_reports_are_kept_and_go_on_where_they_were(study: Study) -> None:
    (first,) = study.answered("a.fa")
    few = study.run("tally", study.survey, first, "-o", study.output, "--json")
    assert few.code == 2
    assert "TooFewReports" in few.err
    assert not study.output.exists()
    content = json.loads(few.out)
    assert (content["reports"], content["state"], content["assessment"]) == (1, "collecting", None)
    shown = study.run("show", study.tally)
    assert "1 clients or rows heard about 3 classes, collecting" in " ".join(shown.out.split())
    assert json.loads(study.run("show", study.tally, "--json").out)["reports"] == 1
    (second,) = study.answered("b.fa")
    done = study.run("tally", study.survey, second, "-o", study.output, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["reports"] == 2
    assert json.loads(done.out)["counted"] == 1


def test_without_an_output_reports_are_collected_alone(study: Study) -> None:
    first, second, third = study.answered("a.fa", "b.fa", "c.fa")
    place = study.folder / "study.tally"
    kept = study.run("tally", study.survey, first, second, "--collect", place, "--json")
    assert kept.code == 0, kept.err
    content = json.loads(kept.out)
    assert (content["reports"], content["state"], content["assessment"]) == (2, "collecting", None)
    done = study.run("tally", study.survey, third, "--from", place, "-o", study.output)
    assert done.code == 0, done.err
    assert json.loads(study.run("show", study.output, "--json").out)["reports"] == 3


def test_a_rejected_report_keeps_a_tally_open_that_release_would_close(study: Study) -> None:
    good = study.answered("a.fa", "b.fa")
    (study.folder / "bad.fa").write_bytes(b"no report")
    held = study.run("tally", study.survey, *good, study.folder / "bad.fa", "-o", study.output)
    assert held.code == 2
    assert "Nothing is released" in held.out
    assert not study.output.exists()
    done = study.run("tally", study.survey, "--from", study.tally, "-o", study.output)
    assert done.code == 0, done.err
    assert study.output.exists()


def test_no_report_and_no_tally_write_nothing(study: Study) -> None:
    missing = study.run("tally", study.survey, "-o", study.output)
    check_refused(missing, "there is no such tally")
    (study.folder / "bad.fa").write_bytes(b"no report")
    none = study.run("tally", study.survey, study.folder / "bad.fa", "-o", study.output)
    assert none.code == 2
    assert "found none that counts" in none.err
    assert not study.tally.exists()


def test_files_of_another_survey_are_not_written_over(study: Study) -> None:
    reports = study.answered("a.fa", "b.fa")
    assert study.run("tally", study.survey, *reports, "-o", study.output).code == 0
    again = study.run("tally", study.survey, "--from", study.tally, "-o", study.output)
    assert again.code == 0, again.err
    other = study.folder / "other.json"
    study.new(other, "--colluders", 0, "--class-design", "drawn")
    moved = study.output.rename(study.folder / "moved.json")
    before = moved.read_bytes()
    for command in (
        ("tally", other, "--from", study.tally, "-o", study.folder / "new.json"),
        ("tally", other, *reports, "-o", moved),
    ):
        check_refused(study.run(*command), "SurveyMismatch", "Choose another file")
    assert moved.read_bytes() == before


def test_an_answer_is_not_replaced_by_a_second_report(study: Study) -> None:
    (first,) = study.answered("a.fa")
    before = first.read_bytes()
    check_refused(study.answer("a.fa"), "SurveyRepeated", "it counts once", "--force")
    assert first.read_bytes() == before
    assert study.answer("a.fa", "--force").code == 0
    assert first.read_bytes() != before
    (study.folder / "notes.txt").write_text("no report\n")
    check_refused(study.answer("notes.txt"), "--force")
    assert (study.folder / "notes.txt").read_text() == "no report\n"


def test_a_given_answer_is_sent_again_though_it_is_there_already(study: Study) -> None:
    ledger = study.folder / "ledger.db"
    assert study.run("ledger", "new", ledger).code == 0
    assert study.run("ledger", "budget", ledger, "--data-id", "w", "--epsilon", 1).code == 0
    charged = ("--ledger", ledger, "--data-id", "w")
    assert study.answer("a.fa", *charged).code == 0
    before = (study.folder / "a.fa").read_bytes()
    again = study.answer("a.fa", *charged, "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)["given_before"] is True
    assert (study.folder / "a.fa").read_bytes() == before


def test_a_survey_that_is_issued_is_charged_before_it_is_written(study: Study) -> None:
    ledger = study.folder / "ledger.db"
    assert study.run("ledger", "new", ledger).code == 0
    assert study.run("ledger", "budget", ledger, "--data-id", "w", "--epsilon", 1).code == 0
    charged = ("--ledger", ledger, "--data-id", "w")
    made = study.new(study.folder / "charged.json", *charged)
    assert "Charged epsilon 1 to data 'w'" in " ".join(made.out.split())
    history = study.run("ledger", "history", ledger)
    assert "issued" in history.out
    second = study.folder / "second.json"
    refused = study.run("survey", "new", "--scores", "a,b,c", "--privacy", "distributed",
                        "--epsilon", 1, "--clients", 3, "--minimum-reports", 2, "--examples", 600,
                        "-o", second, *charged)  # fmt: skip
    check_refused(refused)
    assert not second.exists()


def test_a_refusal_names_the_option_that_allows_it(study: Study) -> None:
    study.new(study.folder / "much.json", "--epsilon", 3)
    much = ("answer", study.folder / "much.json", study.table, *COLUMNS, "-o", study.folder / "x")
    check_refused(study.run(*much), "epsilon 3 together", "--largest-epsilon 3")
    assert study.run(*much, "--largest-epsilon", 3).code == 0
    study.new(study.folder / "most.json", "--epsilon", 11)
    most = ("answer", study.folder / "most.json", study.table, *COLUMNS, "-o", study.folder / "y")
    check_refused(study.run(*most), "epsilon 11 together")
    assert "knowingly" not in study.run(*most).err


def test_no_option_is_named_that_does_not_allow_it(study: Study) -> None:
    """Neither a larger epsilon nor exact sums help where the crowd or a cell is too small."""
    alone = study.answer("x.fa", "--smallest-cohort", 50)
    check_refused(alone, "a crowd of at least 50")
    assert "knowingly" not in alone.err
    exact = study.folder / "exact.json"
    made = study.run("survey", "new", "--scores", "p_early,p_late,p_lost", "--smallest-cell", 5,
                     "--examples", 600, "-o", exact)  # fmt: skip
    assert made.code == 0, made.err
    asked = ("answer", exact, study.table, *COLUMNS, "-o", study.folder / "x.fa")
    check_refused(study.run(*asked), "--exact-sums")
    small = study.run(*asked, "--exact-sums")
    check_refused(small, "no count below 10")
    assert "knowingly" not in small.err


def test_figures_of_classes_take_no_threshold_on_a_page(study: Study) -> None:
    reports = study.answered("a.fa", "b.fa")
    assert study.run("tally", study.survey, *reports, "-o", study.output).code == 0
    page = study.folder / "page.html"
    refused = study.run("report", study.output, "--threshold", 0.3, "-o", page)
    check_refused(refused, "no threshold")
    assert not page.exists()


def test_calibration_of_classes_is_in_the_json_where_it_is_asked_for(study: Study) -> None:
    asked = ("simulate", study.table, *COLUMNS, "--smallest-cell", 0, "--seed", 1, "--json")
    assert "calibration" not in json.loads(study.run(*asked).out)
    content = json.loads(study.run(*asked, "--calibrate").out)
    assert content["calibration"]


def test_exact_sums_of_classes_share_nothing(study: Study) -> None:
    planned = study.run("plan", "--scores", "a,b,c", "--clients", 1000)
    assert planned.code == 0, planned.err
    assert "Exact sums share nothing: every client answers for every class." in planned.out
