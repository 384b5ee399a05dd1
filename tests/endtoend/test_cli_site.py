"""Site privacy and patients at the command line: files, simulation, two steps, and refusals."""

import json
from pathlib import Path

import numpy as np
import pytest

import fedassay
from fedassay import Assessment
from fedassay.ledger import Charge, Ledger
from tests.program import Run, check_refused

SITES = ("north", "south", "east")
SITE = ("--privacy", "site", "--epsilon", 1)


def table(path: Path, seed: int, rows: int = 600) -> Path:
    """Rows with a patient of three rows each and the day of each row."""
    generator = np.random.default_rng(seed)
    scores = generator.beta(0.8, 2.0, rows)
    labels = generator.random(rows) < scores
    patients, days = np.arange(rows) // 3, np.arange(rows)
    np.savetxt(path, np.c_[scores, labels, patients, days], fmt=["%.17g", "%d", "%d", "%d"],
               delimiter=",", header="score,label,who,day", comments="")  # fmt: skip
    return path


@pytest.fixture
def tables(tmp_path: Path) -> list[Path]:
    return [table(tmp_path / f"{name}.csv", seed) for seed, name in enumerate(SITES)]


def new(run: Run, path: Path, *more: object) -> Path:
    made = run("survey", "new", *SITE, "--clients", 3, "--examples", 1800, *more, "-o", path)
    assert made.code == 0, made.err
    return path


def test_sites_answer_files_and_are_seen_by_name(
    run: Run, tmp_path: Path, tables: list[Path]
) -> None:
    survey = new(run, tmp_path / "s.json", "--height", 3)
    shown = " ".join(run("survey", "show", survey).out.split())
    assert "whatever other sites and the server do" in shown
    ledger = tmp_path / "l.db"
    assert run("ledger", "new", ledger).code == 0
    for path in tables:
        paid = ("--ledger", ledger, "--data-id", path.stem) if path is tables[0] else ()
        assert run("answer", survey, path, *paid, "-o", path.with_suffix(".fa")).code == 0
    entries = [entry.content for entry in Ledger(ledger).entries()]
    assert [str(each.epsilon) for each in entries if isinstance(each, Charge)] == ["1"]
    # One report is enough, and others may come later.
    output = tmp_path / "a.json"
    first = run("tally", survey, tables[0].with_suffix(".fa"), "-o", output)
    assert first.code == 0, first.err
    assert "No report can be added" not in first.out
    assert run("tally", survey, *(p.with_suffix(".fa") for p in tables), "-o", output).code == 0
    assert sorted(json.loads(output.read_text())["sites"]) == sorted(SITES)
    assert sorted(Assessment.load(output).site_histograms()) == sorted(SITES)
    # A site that answers anew under its name is named and left out.
    again = tmp_path / "again"
    again.mkdir()
    assert run("answer", survey, tables[0], "-o", again / "north.fa").code == 0
    refused = run("tally", survey, again / "north.fa", "-o", output)
    assert refused.code == 2
    assert "SiteDuplicate: a site counts once; 'north'" in refused.err
    # Another survey's report is, too.
    other = new(run, tmp_path / "other.json", "--height", 2)
    assert run("answer", other, tables[1], "-o", again / "west.fa").code == 0
    assert "ReportForeign" in run("tally", survey, again / "west.fa", "-o", output).err


def test_two_steps_keep_every_site(run: Run, tmp_path: Path, tables: list[Path]) -> None:
    survey, place = new(run, tmp_path / "first.json", "--steps", 2), tmp_path / "one.json"
    for path in tables:
        assert run("answer", survey, path, "-o", path.with_suffix(".fa")).code == 0
    fed = [path.with_suffix(".fa") for path in tables]
    assert run("tally", survey, *fed, "-o", place).code == 0
    second = tmp_path / "second.json"
    assert run("survey", "new", "--after", place, "-o", second).code == 0
    for path, report in zip(tables, fed, strict=True):
        assert run("answer", second, path, "--force", "-o", report).code == 0
    both = tmp_path / "both.json"
    assert run("tally", second, *fed, "--first", place, "-o", both).code == 0
    found = Assessment.load(both)
    assert found.first is not None
    spent = [each.survey.epsilon for each in (found.first, found)]
    assert sum(each for each in spent if each is not None) == 1
    assert sorted(found.site_histograms()) == sorted(SITES)


def test_only_the_sum_is_kept_where_that_was_promised(
    run: Run, tmp_path: Path, tables: list[Path]
) -> None:
    survey = new(run, tmp_path / "s.json", "--height", 3, "--sum-only", "--minimum-reports", 3)
    for path in tables:
        assert run("answer", survey, path, "-o", path.with_suffix(".fa")).code == 0
    output = tmp_path / "a.json"
    done = run("tally", survey, *(p.with_suffix(".fa") for p in tables), "-o", output)
    assert "No report can be added" in " ".join(done.out.split())
    assert "sites" not in json.loads(output.read_text())
    assert b"north" not in output.with_suffix(".tally").read_bytes()


def test_a_site_says_to_itself_how_many_rows_of_patients_it_left_out(
    run: Run, tmp_path: Path, tables: list[Path]
) -> None:
    unit = ("--unit", "patient", "--max-examples", 2, "--keep", "latest")
    survey = new(run, tmp_path / "s.json", "--height", 3, *unit)
    named = ("--patient", "who", "--time", "day")
    done = run("answer", survey, tables[0], *named, "-o", tmp_path / "r.fa", "--json")
    assert done.code == 0, done.err
    content = json.loads(done.out)
    assert (content["rows"], content["rows_counted"]) == (600, 400)
    told = run("answer", survey, tables[1], *named, "-o", tmp_path / "q.fa")
    assert "Counted 400 of 600 rows, and left out 33 %" in " ".join(told.out.split())
    assert len((tmp_path / "r.fa").read_bytes()) == len((tmp_path / "q.fa").read_bytes())
    for given, words in (((), "--patient COL"), (named[:2], "--time COL")):
        check_refused(run("answer", survey, tables[2], *given, "-o", tmp_path / "x.fa"), words)


def test_a_simulation_of_sites_and_patients(run: Run, tmp_path: Path) -> None:
    rows = [f"{i % 97 / 97},{int(i % 97 > 60)},{i % 4},{i % 50}" for i in range(2000)]
    path = tmp_path / "t.csv"
    path.write_text("score,label,site,who\n" + "\n".join(rows) + "\n")
    whole = ("simulate", path, *SITE, "--steps", 1, "--seed", 3)
    check_refused(run(*whole), "--client COL")
    content = json.loads(run(*whole, "--client", "site", "--json").out)
    assert content["clients"] == 4
    same = fedassay.simulate(
        "label", "score", data=path, clients="site", privacy="site", epsilon=1, steps=1, seed=3
    )
    assert content["trials"][0]["roc_auc"]["value"] == pytest.approx(same["roc_auc"].value)
    assert sorted(same.tally.sites) == ["0", "1", "2", "3"]
    unit = ("--client", "site", "--unit", "patient", "--max-examples", 5)
    check_refused(run(*whole, *unit), "--patient COL")
    content = json.loads(run(*whole, *unit, "--patient", "who", "--json").out)
    # 100 pairs of site and patient, of 20 rows each.
    assert content["rows_kept"] == 500


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--colluders", 1), "site privacy holds whatever others do"),
        (("--unit", "client"), "not whole sites"),
        (("--levels", "batches"), "every site reports on every level"),
        (("--sum-only", "--minimum-reports", 1), "the sum of one report is that report"),
        (("--unit", "example", "--keep", "latest"), "goes with the patient unit"),
    ],
)
def test_what_does_not_go_with_sites_is_one_sentence(
    run: Run, tmp_path: Path, more: tuple[object, ...], words: str
) -> None:
    sites = ("--clients", 4, "--examples", 4000)
    asked = ("survey", "new", *SITE, *sites, *more, "-o", tmp_path / "s.json")
    check_refused(run(*asked), words)


def test_a_site_survey_is_made_for_so_many_sites_and_rows(run: Run, tmp_path: Path) -> None:
    asked = ("survey", "new", *SITE, "-o", tmp_path / "s.json")
    check_refused(run(*asked), "no clients and no examples", "--clients N --examples R")
    check_refused(run(*asked, "--clients", 4), "found no examples")
    check_refused(run("plan", *SITE, "--target-error", 0.01, "--examples", 900), "found no clients")
