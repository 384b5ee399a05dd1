"""Groups on the command line: in a simulation, and over files from survey to assessment."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.program import Run, check_refused

ROWS = 3000
RNG = np.random.default_rng(4)
Y = (RNG.random(ROWS) < 0.35).astype(int)
G = RNG.choice(["F", "M", ""], ROWS, p=[0.5, 0.45, 0.05])
S = 1.0 / (1.0 + np.exp(-(RNG.normal(size=ROWS) + 1.3 * Y - 0.6)))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("groups") / "scores.csv"
    lines = [f"{s!r},{y},{g},{i}" for i, (s, y, g) in enumerate(zip(S.tolist(), Y, G, strict=True))]
    path.write_text("\n".join(["score,label,sex,id", *lines]) + "\n")
    return path


def test_a_simulation_gives_every_groups_figures_beside_the_exact_ones(
    run: Run, table: Path
) -> None:
    done = run("simulate", table, "--group", "sex", "--smallest-cell", "0", "--json", "--seed", "1")
    assert done.code == 0, done.err
    content = json.loads(done.out)
    for name in ("F", "M"):
        value = float(roc_auc_score(Y[name == G], S[name == G]))
        assert content["exact_groups"][name]["roc_auc"] == pytest.approx(value)
        found = content["trials"][0]["groups"][name]["roc_auc"]
        assert found["value"] == pytest.approx(value, abs=2e-3)
        assert found["low"] < value < found["high"]
    assert content["trials"][0]["group_rows"]["(missing)"]["value"] == int((G == "").sum())
    assert content["trials"][0]["group_gaps"]["comparisons"] == 8


def test_groups_go_from_survey_to_assessment_over_files(
    run: Run, table: Path, tmp_path: Path
) -> None:
    survey, report, out = (tmp_path / name for name in ("s.json", "r.fa", "a.json"))
    asked = ["--privacy", "local", "--epsilon", "5", "--clients", str(ROWS)]
    groups = ["--group-column", "sex", "--groups", "F,M"]
    assert run("survey", "new", *asked, *groups, "-o", survey).code == 0
    assert run("answer", survey, table, "-o", report).code == 0
    assert run("tally", survey, report, "-o", out).code == 0
    shown = json.loads(run("show", out, "--json").out)
    missing = shown["group_rows"]["(missing)"]
    assert missing["low"] - 100 < (G == "").sum() < missing["high"] + 100
    assert set(shown["groups"]) >= {"F", "M"}


def test_a_column_of_keys_and_a_second_column_are_refused_in_a_sentence(
    run: Run, table: Path
) -> None:
    check_refused(run("simulate", table, "--group", "id"), 'at most 100 values; "id" has 3,000')
    check_refused(
        run("simulate", table, "--group", "sex", "--group", "id"), "epsilon is spent 2 times"
    )
    check_refused(
        run("survey", "new", "--groups", "F,M", "-o", table.parent / "no.json"),
        "--group-column COL",
    )
