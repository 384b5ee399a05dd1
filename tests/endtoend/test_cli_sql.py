"""From a survey to a query to counts to a report, as somebody with a warehouse does it."""

import json
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from fedassay import Grid
from tests.program import Run, check_refused
from tests.surveys import site_survey

ROWS = 2_000
SITE = ("--privacy", "site", "--epsilon", 1, "--clients", 4, "--examples", ROWS)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    generator = np.random.default_rng(3)
    scores = generator.random(ROWS).round(3)
    labels = generator.random(ROWS) < scores
    path = tmp_path / "scored.csv"
    lines = [f"{score},{int(label)}" for score, label in zip(scores, labels, strict=True)]
    path.write_text("\n".join(["risk,died", *lines]) + "\n")
    return path


def counts_by_query(query: str, table: Path, folder: Path) -> Path:
    path = folder / "counts.csv"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW scored AS SELECT * FROM read_csv('{table}')")
        connection.execute(f"COPY ({query}) TO '{path}' (HEADER)")
    return path


def test_counts_of_a_query_make_the_report_of_the_table(
    run: Run, table: Path, tmp_path: Path
) -> None:
    survey = tmp_path / "survey.json"
    run("survey", "new", "--examples", ROWS, "--minimum-reports", 2, "-o", survey)
    columns = ("--score", "risk", "--label", "died")
    asked = run("sql", survey, "--dialect", "duckdb", "--table", "scored", *columns)
    assert asked.code == 0
    assert asked.out.startswith("WITH ")
    assert asked.out.rstrip().endswith("ORDER BY 1, 2")
    counts = counts_by_query(asked.out, table, tmp_path)
    for name, given in {"counts": ("--counts", counts), "table": (table, *columns)}.items():
        path = tmp_path / f"{name}.fa"
        answered = run("answer", survey, *given, "--exact-sums", "-o", path, "--json")
        content = json.loads(answered.out)
        assert (content["rows"], content["rows_counted"]) == (ROWS, ROWS)
    both = run(
        "tally", survey, tmp_path / "counts.fa", tmp_path / "table.fa",
        "-o", tmp_path / "assessment.json", "--json",
    )  # fmt: skip
    assert both.code == 0, both.err
    counters = json.loads((tmp_path / "assessment.json").read_text())["counters"]
    assert sum(counters) == 2 * ROWS
    assert all(count % 2 == 0 for count in counters)


def test_an_answer_has_one_source(run: Run, table: Path, tmp_path: Path) -> None:
    survey = tmp_path / "survey.json"
    run("survey", "new", *SITE, "-o", survey)
    out = ("-o", tmp_path / "report.fa")
    check_refused(run("answer", survey, *out), "found neither")
    check_refused(run("answer", survey, table, "--counts", table, *out), "found both")
    check_refused(run("answer", survey, "--counts", table, *out), "probably another file")
    assert not (tmp_path / "report.fa").exists()


def test_a_ledger_charges_counts_once(run: Run, table: Path, tmp_path: Path) -> None:
    survey, ledger = tmp_path / "survey.json", tmp_path / "ledger.db"
    run("survey", "new", *SITE, "-o", survey)
    run("ledger", "new", ledger)
    run("ledger", "budget", ledger, "--data-id", "w", "--epsilon", 2)
    query = run(
        "sql", survey, "--dialect", "duckdb", "--table", "scored", "--score", "risk", "--label",
        "died",
    ).out  # fmt: skip
    counts = counts_by_query(query, table, tmp_path)
    charged = ("--ledger", ledger, "--data-id", "w", "--json")
    first = run("answer", survey, "--counts", counts, *charged, "-o", tmp_path / "a.fa")
    assert first.code == 0, first.err
    again = run("answer", survey, "--counts", counts, *charged, "-o", tmp_path / "b.fa")
    assert json.loads(again.out)["given_before"]
    assert (tmp_path / "a.fa").read_bytes() == (tmp_path / "b.fa").read_bytes()


def test_counts_between_other_edges_are_noticed_by_their_mark(
    run: Run, table: Path, tmp_path: Path
) -> None:
    surveys = [tmp_path / "even.json", tmp_path / "uneven.json"]
    for survey, edge in zip(surveys, (0.5, 0.25), strict=True):
        flat_site = replace(site_survey(cells=2), grid=Grid.explicit([0.0, edge, 1.0]))
        flat_site.save(survey)
    asked = ("--dialect", "duckdb", "--table", "scored", "--score", "risk", "--label", "died")
    counts = counts_by_query(run("sql", surveys[0], *asked, "--mark").out, table, tmp_path)
    out = ("-o", tmp_path / "report.fa")
    check_refused(run("answer", surveys[1], "--counts", counts, *out), "between other edges")
    assert not (tmp_path / "report.fa").exists()
    assert run("answer", surveys[0], "--counts", counts, *out).code == 0
