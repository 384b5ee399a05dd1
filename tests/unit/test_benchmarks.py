"""What the page of benchmarks is summed up in: exponents, and ratios to peers."""

from pathlib import Path

import pytest
from benchmarks.growth import SIZES, exponent
from benchmarks.page import Section
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
