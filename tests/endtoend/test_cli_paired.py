"""Two models on the command line: from a table to differences, in one process and over files."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pytest

from tests.program import Run
from tests.tables import ROOT


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rows that two models scored, in scores.csv of the folder where commands run."""
    generator = np.random.default_rng(1)
    labels = generator.integers(0, 2, 4_000)
    common = generator.normal(size=4_000)
    columns: dict[str, npt.NDArray[np.generic]] = {"label": labels}
    for name, gap in (("score_a", 1.6), ("score_b", 1.0)):
        odds = 0.8 * common + 0.5 * generator.normal(size=4_000) + gap * (labels - 0.5)
        columns[name] = 1.0 / (1.0 + np.exp(-odds))
    pa.csv.write_csv(pa.table(columns), tmp_path / "scores.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "scores.csv"


BOTH = ("--score", "a=score_a", "--score", "b=score_b")


def test_the_pages_commands_work_one_after_the_other(run: Run, table: Path) -> None:
    page = (ROOT / "docs" / "paired.md").read_text()
    (block,) = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    commands = [line.removeprefix("$ fedassay ") for line in block.splitlines()]
    assert len(commands) == 8
    for command in commands:
        result = run(*shlex.split(command))
        assert result.code == 0, (command, result.err)
    content = json.loads((table.parent / "pair.json").read_text())
    assert content["differences"]["roc_auc"]["value"] > 0.02
    assert min(content["counters"]) >= 10
    assert 'id="reclassification"' in (table.parent / "pair.html").read_text()


def test_a_trial_has_differences_and_figures_of_each_model(run: Run, table: Path) -> None:
    result = run("simulate", str(table), *BOTH, "--seed", "1", "--trials", "2", "--json")
    content = json.loads(result.out)
    for trial in content["trials"]:
        assert trial["roc_auc[a]"]["value"] > trial["roc_auc[b]"]["value"]
        assert trial["precision[b]@0.5"]["value"] is not None
        difference = trial["differences"]["roc_auc"]
        assert {"value", "low", "high", "p_value"} <= difference.keys()
        assert difference["low"] < content["exact_differences"]["roc_auc"] < difference["high"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--score", "a=score_a", "--score", "b=score_a"), "found 'score_a' for both"),
        ((*BOTH, "--score", "c=label"), "found 3"),
        (("--score", "a=score_a", "--score", "b=nothing"), 'no column "nothing"'),
        (("--score", "score_a", "--score", "score_b"), "Name both"),
        (("--score", "a=score_a", "--score", "a=score_b"), "'a' twice"),
        ((*BOTH, "--calibrate"), "--calibrate goes with the scores of one model"),
        ((*BOTH, "--privacy", "local", "--epsilon", "1", "--steps", "2"), "two steps does not go"),
    ],
)
def test_what_two_models_cannot_be_asked_is_said_in_one_line(
    run: Run, table: Path, options: tuple[str, ...], said: str
) -> None:
    result = run("simulate", str(table), *options)
    assert result.code == 2
    assert said in " ".join(result.err.split())


def test_a_plan_compares_on_public_rows_of_both_models(run: Run, table: Path) -> None:
    asked = ("plan", "--paired", "--clients", "5000", "--reference", str(table))
    told = json.loads(run(*asked, *BOTH, "--json").out)
    assert [case["scores"] for case in told["cases"]] == ["as the reference's"]
    assert told["correlation"] is None
    alone = run("plan", "--clients", "5000", *BOTH)
    assert alone.code == 2
    assert "the scores of one model; found two" in " ".join(alone.err.split())


def test_an_answer_names_the_models_of_its_survey(run: Run, table: Path) -> None:
    asked = ("--privacy", "distributed", "--epsilon", "1", "--clients", "50", "--examples", "9000")
    assert run("survey", "new", "--paired", *asked, "-o", "s.json").code == 0
    for options, said in (
        (("--score", "score_a"), "asks for the scores of two models, a and b"),
        (("--score", "a=score_a", "--score", "c=score_b"), "one of a, b; found 'c'"),
    ):
        result = run("answer", "s.json", str(table), *options, "-o", "r.fa")
        assert result.code == 2
        assert said in " ".join(result.err.split())
    # Whoever takes part names the columns in any order; a survey of one model takes one.
    swapped = ("--score", "b=score_b", "--score", "a=score_a")
    assert run("answer", "s.json", str(table), *swapped, "-o", "r.fa").code == 0
    assert run("survey", "new", *asked[:-2], "--steps", "1", "-o", "one.json").code == 0
    result = run("answer", "one.json", str(table), *BOTH, "-o", "o.fa")
    assert "asks for the scores of one model" in " ".join(result.err.split())
