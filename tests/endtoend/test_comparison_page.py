"""Comparison and history pages in a real browser: the figures of the library, and nothing else."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import fedassay
from fedassay import Assessment
from fedassay.comparison.side_by_side import compare
from fedassay.report.comparison_page import write_comparison
from fedassay.report.history_page import write_history
from fedassay.report.page import write_report
from fedassay.tracking.alarms import Watch, find_alarms
from fedassay.tracking.history import History
from tests.browser import Browser, find_axe, start_browser
from tests.class_rows import drawn_rows
from tests.pages import assessment
from tests.program import Run

HOSTILE = "<script>document.title='taken'</script><img src=x onerror=alert(1)>\u202e\u05d0\"'"
METRICS = ("roc_auc", "recall@0.5")


@cache
def month(separation: float, seed: int) -> Assessment:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, 2000)
    logits = separation * (labels - 0.5) + generator.normal(size=2000)
    return fedassay.simulate(
        labels, 1 / (1 + np.exp(-logits)), privacy="distributed", epsilon=1, steps=1, height=3,
        seed=seed,
    )  # fmt: skip


@cache
def history() -> History:
    return History({f"2026-{at:02}": month(2.0 if at < 9 else 1.0, at) for at in range(1, 13)})


@cache
def grouped() -> Assessment:
    generator = np.random.default_rng(1)
    labels = generator.integers(0, 2, 3000)
    logits = 1.5 * (labels - 0.5) + generator.normal(size=3000)
    return fedassay.simulate(
        labels, 1 / (1 + np.exp(-logits)), group=generator.choice([HOSTILE[:40], "men"], 3000),
        privacy="distributed", epsilon=1, height=3, seed=1,
    )  # fmt: skip


def write(kind: str, path: Path, name: str = "new") -> None:
    if kind == "compare":
        pair = {"old": assessment("secure"), name: assessment("distributed")}
        write_comparison(compare(pair), path, title="" if name == "new" else name)
    elif kind == "history":
        write_history(history(), path, watch=Watch(METRICS), title=name)
    elif kind == "pair":
        generator = np.random.default_rng(1)
        scores = generator.beta(1.2, 2.0, (2, 2000))
        both = {"old": scores[0], "new": scores.mean(axis=0)}
        found = fedassay.simulate(generator.random(2000) < scores[0], both, seed=1)
        fedassay.write_report(found, path)
    elif kind == "classes":
        rows = drawn_rows(2000)
        named = fedassay.simulate_classes(
            rows.labels, rows.scores, privacy="distributed", epsilon=2, seed=1
        )
        fedassay.write_report(named, path)
    else:
        write_report(grouped(), path)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with start_browser() as started:
        yield started


@pytest.mark.parametrize(
    ("kind", "dark", "width"),
    [
        *((kind, dark, width) for kind, dark in (("compare", False), ("history", True))
          for width in (360, 1400)),
        ("pair", False, 360),
        ("classes", True, 360),
    ],
)  # fmt: skip
def test_pages_have_no_fault_fit_their_window_and_keep_to_themselves(
    browser: Browser, tmp_path: Path, kind: str, dark: bool, width: int
) -> None:
    path = tmp_path / "page.html"
    write(kind, path)
    browser.look(width=width, dark=dark)
    browser.open(path)
    browser.run(f"{find_axe().read_text()};0")
    assert browser.run("axe.run().then((all) => all.violations.map(({ id }) => id))") == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]
    assert path.stat().st_size < 400_000
    browser.look()


def test_the_section_of_groups_has_no_fault(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write("groups", path)
    browser.open(path)
    browser.run(f"{find_axe().read_text()};0")
    assert browser.run("axe.run('#groups').then((all) => all.violations.map(({ id }) => id))") == []
    assert browser.complaints() == []
    assert HOSTILE[:40] in browser.run("document.getElementById('groups').textContent")


@pytest.mark.parametrize("kind", ["compare", "history"])
def test_names_from_outside_are_text(browser: Browser, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "page.html"
    write(kind, path, HOSTILE)
    browser.open(path)
    assert browser.run("document.scripts.length") == 0
    assert browser.run("document.images.length") == 0
    assert HOSTILE in browser.run("document.body.textContent")
    assert browser.complaints() == []


def test_the_differences_are_those_of_the_library(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write("compare", path)
    browser.open(path)
    rows = browser.run(
        "[...document.querySelectorAll('#differences tbody tr')].map("
        "(row) => [...row.cells].map((cell) => cell.textContent))"
    )
    old, new = assessment("secure")["roc_auc"].value, assessment("distributed")["roc_auc"].value
    assert rows[0][:3] == ["ROC AUC", f"{old:.4f}", f"{new:.4f}"]
    assert float(rows[0][3].rstrip(" *")) == pytest.approx(new - old, abs=1e-4)
    assert "new and old cannot be told apart in roc_auc" in browser.run("document.body.textContent")


def test_alarms_and_advice_are_on_the_page_and_in_the_picture(
    browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    write("history", path)
    browser.open(path)
    text = browser.run("document.getElementById('verdict').textContent")
    alarms = find_alarms(history(), Watch(METRICS))
    assert any(alarm.metric == "roc_auc" for alarm in alarms)
    for alarm in alarms:
        assert alarm.sentence() in text
    assert "retrain" in text
    assert browser.run("document.querySelectorAll('#time-roc_auc circle.bin').length") == 12
    own = [alarm for alarm in alarms if alarm.metric == "roc_auc"]
    assert browser.run("document.querySelectorAll('#time-roc_auc path.band').length") == len(own)


def test_the_commands_write_both_pages(run: Run, assessment_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(assessment_file.read_bytes())
    page, folder = tmp_path / "compare.html", tmp_path / "history"
    done = run("compare", assessment_file, other, "--metric", "roc_auc", "-o", page)
    assert done.code == 0, done.err
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert run("compare", assessment_file, other, "-o", page).code == 2
    assert run("track", "add", folder, assessment_file, "--at", "2026-10").code == 0
    done = run("track", "report", folder, "-o", tmp_path / "h.html", "--metric", "roc_auc")
    assert done.code == 0, done.err
    assert "One model over time" in (tmp_path / "h.html").read_text()
