"""One picture of a whole run: how many times faster than each peer, from the sections' own rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.page import Section

_OURS = "fedassay"


def speedups(sections: Sequence[Section]) -> dict[str, float]:
    """What is compared, and how many times faster than the peer we are.

    A column *times ours* has the peers' times over ours; *speed against X* has our speed over
    X's, in our own rows.
    """
    return {name: value for section in sections for name, value in _of(section)}


def _of(section: Section) -> Iterator[tuple[str, float]]:
    for place, column in enumerate(section.header):
        for row in section.rows:
            if not row[place].endswith("×"):
                continue
            value = float(row[place].removesuffix("×").strip().replace(",", ""))
            is_ours = _OURS in row[0]
            if column == "times ours" and not is_ours and not row[0].startswith("—"):
                yield f"{section.title}: {row[0]}".replace("`", ""), value
            elif column.startswith("speed against") and is_ours:
                peer = column.removeprefix("speed against ")
                yield f"{row[0]}, against {peer}".replace("`", ""), value


def draw_summary(sections: Sequence[Section], path: Path) -> None:
    """Bars to the right of 1 where we are faster, to the left where a peer is."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = sorted(speedups(sections).items(), key=lambda item: item[1])
    canvas = Figure(figsize=(9.0, 0.3 * len(found) + 1.0), layout="constrained")
    FigureCanvasAgg(canvas)
    axes = canvas.subplots()
    values = [value for _, value in found]
    colours = ["C0" if value >= 1.0 else "C3" for value in values]
    axes.barh([name for name, _ in found], [value - 1.0 for value in values], left=1.0,
              color=colours)  # fmt: skip
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("times faster than the peer")
    axes.tick_params(labelsize=7)
    canvas.savefig(path, dpi=90, metadata={"Software": None})
