"""Tables as people have them, and what the terminal is shown of them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.program import Result, Run, check_refused, write_csv

ROWS = [((i * 37 % 101) / 101, int(i % 3 == 0)) for i in range(60)]


def table(path: Path, header: str, line: str) -> Path:
    """Sixty rows, each `line` with s, its comma version c, percentage p, label y and word w."""
    rows = "\n".join(
        line.format(s=f"{s:.4f}", c=f"{s:.4f}".replace(".", ","), p=f"{100 * s:.2f}", y=y,
                    w="yes" if y else "no", i=i)
        for i, (s, y) in enumerate(ROWS)
    )  # fmt: skip
    return write_csv(path, rows, header=header)


def exact(result: Result) -> object:
    assert result.code == 0, result.err
    return json.loads(result.out)["exact"]


@pytest.mark.parametrize(
    ("header", "line", "options"),
    [
        ("score;label", "{c};{y}", ("--decimal", ",")),
        ("score\tlabel", "{s}\t{y}", ("--separator", "tab")),
        ("score,label", "{s},{w}", ("--positive", "yes")),
        ("score,label", "{p},{y}", ("--scale", 100)),
        ("age,risk,died", "{i},{s},{y}", ()),
    ],
    ids=["decimal comma", "tab", "yes and no", "percent", "by content"],
)
def test_every_notation_of_one_table_gives_the_same(
    run: Run, tmp_path: Path, header: str, line: str, options: tuple[object, ...]
) -> None:
    plain = table(tmp_path / "plain.csv", "score,label", "{s},{y}")
    odd = table(tmp_path / "odd.csv", header, line)
    wanted = exact(run("simulate", plain, "--json"))
    assert exact(run("simulate", odd, "--json", *options)) == pytest.approx(wanted)


def test_what_was_chosen_by_content_is_said(run: Run, tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "age,risk,died", "{i},{s},{y}")
    result = run("simulate", path)
    assert 'scores from column "risk" and labels from column "died"' in result.err
    assert run("simulate", path, "--quiet") == Result(0, "", "")
    two = table(tmp_path / "two.csv", "risk,other,died", "{s},0.{i:02},{y}")
    check_refused(run("simulate", two), "risk, other", "--score COL")
    sexes = table(tmp_path / "sexes.csv", "sex,risk,died", "{w},{s},{y}")
    check_refused(run("simulate", sexes), "sex, died", "--label COL")


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_a_file_without_a_header_is_never_quoted(run: Run, tmp_path: Path, separator: str) -> None:
    path = write_csv(tmp_path / "bare.csv", f"0.7312345{separator}smith\n0.5{separator}x", "")
    for options in ((), ("--score", "s"), ("--separator", "tab")):
        result = run("simulate", path, *options)
        check_refused(result, "ColumnMissing", "withheld")
        assert "smith" not in result.err


def test_missing_values_are_counted_over_the_whole_file(run: Run, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "gaps.csv", "0.1,0\n,1\nnan,1\n0.4,\n0.5,0")
    check_refused(run("simulate", path), "of 5 rows", '2 in column "score"', '1 in column "label"')


def test_a_label_that_is_not_there_is_no_positive(run: Run, tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "score,label", "{s},{w}")
    check_refused(run("simulate", path, "--positive", "Yes"), "neither")
    check_refused(run("simulate", path), "--positive VALUE")
    three = write_csv(tmp_path / "three.csv", "0.1,a\n0.2,b\n0.3,c")
    check_refused(run("simulate", three, "--positive", "a"), "two values")


def test_a_wrong_separator_is_pointed_out(run: Run, tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "score;label", "{c};{y}")
    check_refused(run("simulate", path), "--separator ';'")


def test_the_rows_that_a_unit_of_clients_keeps_are_said(run: Run, tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "score,label,site", "{s},{y},{w}")
    options = ("--client", "site", "--unit", "client", "--max-examples", 7, "--smallest-cell", 0)
    assert "Counted 14 of these rows" in run("simulate", path, *options).out
    assert json.loads(run("simulate", path, *options, "--json").out)["rows_kept"] == 14


def test_escape_sequences_reach_no_terminal(run: Run, tmp_path: Path) -> None:
    path = table(tmp_path / "a\x1b[31m\u202e.csv", "x\x1b]0;y\x07,died", "{s},{y}")
    for result in (
        run("simulate", path), run("simulate", path, "--score", "z"), run("show", path, path),
    ):  # fmt: skip
        shown = (result.out + result.err).replace("\n", "")
        assert shown.isprintable(), shown
        # A box may break the name over two lines.
        assert r"\x1b" in re.sub(r"[│\s]", "", shown)


def test_results_are_not_replaced_unless_told(run: Run, tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "score,label", "{s},{y}")
    folder = tmp_path / "result"
    assert run("simulate", path, "--out", folder).code == 0
    check_refused(run("simulate", path, "--out", folder), "--force")
    assert run("simulate", path, "--out", folder, "--force").code == 0


def test_a_full_device_costs_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fedassay", "plan", "--help"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=dict(os.environ),
        )  # fmt: skip
    check_refused(Result(done.returncode, "", done.stderr), "No space left")
