"""The list of planted bugs fits the code, and a sample of it is caught; see tests/planted/."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.planted.bugs import ROOT, Bug, EntryWrong, check_entry, chosen, read_bugs, sample_of
from tests.planted.workshop import Workshop

BUGS = read_bugs()
SAMPLE = 12
"""Entries 0, n/12, 2n/12, ... of the list: about a minute on one core."""


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.room}-{bug.id}")
def test_an_entry_fits_the_code_and_names_tests_that_exist(bug: Bug) -> None:
    check_entry(bug)


def test_a_sample_of_planted_bugs_is_caught() -> None:
    command = [sys.executable, "-m", "tests.planted", "--sample", str(SAMPLE), "--jobs", "2"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    said = re.search(r"(\d+) of (\d+) planted bugs caught", run.stdout)
    assert said is not None
    assert said[1] == said[2] == str(min(SAMPLE, len(BUGS)))


# The runner's own twins: a bug that nobody notices must be told from one that is caught.

REAL = chosen(BUGS, "sec_coll")[0]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with closing(Workshop(tmp_path_factory.mktemp("planted"))) as made:
        yield made


def test_a_bug_is_caught_and_taken_away_again(workshop: Workshop) -> None:
    path = workshop.folder / REAL.file
    before = path.read_text()
    assert workshop.judge(REAL).is_caught
    assert path.read_text() == before == (ROOT / REAL.file).read_text()
    assert workshop.failures_without_bugs(REAL.tests) == []


def test_a_change_that_no_test_sees_survives(workshop: Workshop) -> None:
    harmless = replace(REAL, after=REAL.before + "  # as it was")
    assert "passed with the bug in place" in workshop.judge(harmless).trouble


def test_each_named_test_must_fail_not_only_one(workshop: Workshop) -> None:
    other = "tests/unit/test_secagg_terms.py::test_a_client_accepts_no_smaller_corrupt_share"
    trouble = workshop.judge(replace(REAL, tests=(*REAL.tests, other))).trouble
    assert trouble == f"{other}: passed with the bug in place"


def test_a_module_that_does_not_import_catches_nothing_unless_the_entry_says_so(
    workshop: Workshop,
) -> None:
    broken = replace(REAL, after="if this is no Python")
    assert "could not be imported" in workshop.judge(broken).trouble
    assert workshop.judge(replace(broken, breaks_import=True)).is_caught


def test_a_bug_that_hangs_its_tests_is_not_caught(workshop: Workshop) -> None:
    hanging = replace(REAL, after="while True: pass\n        if False:")
    with workshop._planted(hanging):
        assert workshop.run(REAL.tests, seconds=8.0) == {}
    assert workshop.failures_without_bugs(REAL.tests) == []


def test_a_test_that_fails_without_a_bug_is_told(workshop: Workshop) -> None:
    missing = "tests/unit/test_secagg_terms.py::test_that_nobody_wrote"
    assert workshop.failures_without_bugs([missing]) == [missing]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"before": "no such text"}, "found 0 times"),
        ({"before": "colluders"}, "must stand exactly once"),
        ({"file": "src/fedassay/secagg/nowhere.py"}, "there is no file"),
        ({"tests": ("tests/unit/test_secagg_terms.py::test_nothing",)}, "there is no test"),
        ({"tests": ("tests/unit/test_nothing.py::test_nothing",)}, "there is no file"),
    ],
)
def test_an_entry_that_does_not_fit_is_an_error(change: dict[str, object], message: str) -> None:
    with pytest.raises(EntryWrong, match=message):
        check_entry(replace(REAL, **change))  # type: ignore[arg-type]  # settings by name


def test_an_id_stands_for_one_bug(tmp_path: Path) -> None:
    entry = '[[bug]]\nid = "x"\nfile = "f"\nbefore = "a"\nafter = "b"\ntest = "t"\nwhy = "w"\n'
    (tmp_path / "one.toml").write_text(entry)
    assert [bug.room for bug in read_bugs(tmp_path)] == ["one"]
    (tmp_path / "two.toml").write_text(entry)
    with pytest.raises(EntryWrong, match="these stand for more: x"):
        read_bugs(tmp_path)


def test_a_sample_is_spread_evenly() -> None:
    many = [replace(REAL, id=str(i)) for i in range(100)]
    assert [bug.id for bug in sample_of(many, 4)] == ["0", "25", "50", "75"]
    assert sample_of(many[:3], 12) == many[:3]
