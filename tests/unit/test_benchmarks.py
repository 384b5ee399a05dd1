"""What the page of benchmarks is summed up in: exponents, and ratios to peers."""

from pathlib import Path

import benchmarks.__main__ as program
import pytest
from benchmarks import timing
from benchmarks.growth import SIZES, exponent
from benchmarks.page import Section, page
from benchmarks.summary import draw_summary, speedups

SECTIONS = [
    Section(
        title="Rows",
        about="",
        header=("what", "time", "times ours"),
        rows=[
            ("fedassay: all", "1 s", "1.00 ×"),
            ("— of which metrics", "1 s", "0.46 ×"),
            ("other: `area`", "2 s", "1,771 ×"),
        ],
    ),
    Section(
        title="Reports",
        about="",
        header=("what", "speed against pure-ldp"),
        rows=[("GRR: fedassay, one by one", "0.02 ×"), ("GRR: pure-ldp", "1.00 ×")],
    ),
]


def test_ratios_are_of_peers_to_us_whichever_way_a_section_puts_them() -> None:
    assert speedups(SECTIONS) == {
        "Rows: other: area": 1771.0,
        "GRR: fedassay, one by one, against pure-ldp": 0.02,
    }


def test_the_summary_is_a_picture(tmp_path: Path) -> None:
    draw_summary(SECTIONS, tmp_path / "summary.png")
    assert (tmp_path / "summary.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_an_exponent_is_that_of_the_power_law(power: float) -> None:
    for sizes in SIZES.values():
        assert exponent({size: 3e-6 * size**power for size in sizes}) == pytest.approx(power)


def test_a_time_is_the_median_of_all_runs_of_a_task_whatever_one_of_them_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    taken = iter([1.0, 50.0, 3.0, 2.0, 4.0])

    def task() -> None:
        nonlocal now
        now += next(taken)

    monkeypatch.setattr(timing, "perf_counter", lambda: now)
    # Each run is longer than a turn, so that there is one in every turn.
    assert timing.race(5, {"task": task}) == {"task": 3.0}


def test_a_topic_that_fails_costs_no_other_and_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(topic: str, *, quick: bool) -> Section:
        if topic == "streaming":
            raise SystemExit("no room on the disk")
        return SECTIONS[0]

    monkeypatch.setattr(program, "_TOPICS", ("histogram", "streaming", "client"))
    monkeypatch.setattr(program, "_measured", measured)
    sections, failed = program._all_measured(quick=True)
    assert (len(sections), failed) == (2, ["streaming"])
    assert "no room on the disk" in capsys.readouterr().err


def test_the_page_names_machine_load_duration_and_versions() -> None:
    text = page(SECTIONS, load_before=0.1, seconds=600.0)
    assert "| the whole run | 10 min |" in text
    for name in ("processor", "load average before and after", "Python", "scikit-learn", "duckdb"):
        assert f"| {name} |" in text
