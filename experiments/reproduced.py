"""Write docs/paper-results.md, and its small figures, from folders that `fedassay reproduce` wrote.

    python -m experiments.reproduced --run reproduction/

runs `fedassay reproduce all --out reproduction/` first, all that is not there already.
A figure is taken from the first folder that has it; all must be of the same rows, settings and
sources.
"""

import io
import json
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

from experiments.data import ROOT
from experiments.page import markdown_table
from fedassay.reproduction import areas, calibration_errors
from fedassay.reproduction.claims_page import results_page
from fedassay.reproduction.figures import FIGURES
from fedassay.reproduction.findings import ratio_and_reach
from fedassay.reproduction.pages import data_table
from fedassay.reproduction.plots import draw
from fedassay.reproduction.results import Point, points_from
from fedassay.reproduction.settings import BINS, BUCKETS

PAGE = ROOT / "docs" / "paper-results.md"
PICTURES = ROOT / "docs" / "figures"
COLOURS = 32
_COMMON = ("format", "quick", "settings", "data", "sources")
_DEFAULT = ": default"
_NAMED = {
    ("auc", areas.QUANTILE, float(BUCKETS)): areas.DEFAULT,
    ("calib", calibration_errors.BINNING, float(BINS)): calibration_errors.DEFAULT,
}
"""Where one default stands beside many settings of the preset: the paper's own setting counts."""

Figures = dict[str, list[Point]]


def main() -> None:
    """Read the folders, draw the figures again and write the page."""
    parser = ArgumentParser(prog="python -m experiments.reproduced", description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", help="that fedassay reproduce wrote")
    parser.add_argument("--run", action="store_true", help="measure first what is lacking there")
    arguments = parser.parse_args()
    if arguments.run:
        reproduce(arguments.folders[0])
    contents = read_all(arguments.folders, need_all=arguments.run)
    figures = {name: points_from(each["points"], name) for name, each in contents.items()}
    for name, points in figures.items():
        path = PICTURES / f"reproduce-{name}.png"
        path.write_bytes(small_picture(name, points))
    PAGE.write_text(page(contents, figures), encoding="utf-8")


def reproduce(folder: Path) -> None:
    """Measure every figure with the paper's settings, as a user would."""
    command = [sys.executable, "-m", "fedassay", "reproduce", "all", "--out", str(folder)]
    if subprocess.run(command, check=False).returncode:  # noqa: S603
        raise SystemExit("fedassay reproduce failed, see above; finished parts are kept")


def read_all(folders: Sequence[Path], *, need_all: bool = False) -> dict[str, dict[str, Any]]:
    """Every figure that is there, in the paper's order."""
    found: dict[str, dict[str, Any]] = {}
    for name in FIGURES:
        paths = [folder / f"{name}.json" for folder in folders]
        path = next((each for each in paths if each.exists()), None)
        if path is None:
            continue
        content = json.loads(path.read_text(encoding="utf-8"))
        first = next(iter(found.values()), content)
        if any(content[key] != first[key] for key in _COMMON):
            raise SystemExit(
                f"{path}: is of other rows, settings or sources than the rest; run it again"
            )
        found[name] = content
    if not found or (need_all and len(found) < len(FIGURES)):
        raise SystemExit("figures are missing in these folders; run fedassay reproduce first")
    return found


def small_picture(name: str, points: Sequence[Point]) -> bytes:
    """A figure in few colours, small enough to keep."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "picture.png"
        draw(FIGURES[name], points, path)
        picture = Image.open(path).convert("RGB")
    content = io.BytesIO()
    few = picture.quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(content, "PNG", optimize=True)
    return content.getvalue()


def page(contents: Mapping[str, Mapping[str, Any]], figures: Figures) -> str:
    """The whole page."""
    first = next(iter(contents.values()))
    missing = [name for name in FIGURES if name not in contents]
    sections = [
        results_page(figures, quick=first["quick"], tables=first["data"]).rstrip("\n"),
        "## Our default beside the paper's preset\n\n" + _beside(figures),
        "What others do for the same figures, each in its own trust model with ours beside it, is "
        "in [experiments/peers.md](../experiments/peers.md).",
        "## The tables\n\n" + data_table(first["data"]),
        "## The figures\n\n" + "\n\n".join(_pictures(contents)),
        f"Written by `make reproduce` (`python -m experiments.reproduced`) from {len(contents)} "
        f"figures of one source state ({first['sources'][:12]}), "
        f"{sum(each['seconds'] for each in contents.values()) / 60.0:.0f} min of measuring"
        + (f"; not measured in this run: {', '.join(missing)}." if missing else "."),
    ]
    return "\n\n".join(sections) + "\n"


def pairs(figures: Figures) -> Iterator[tuple[str, Point, Point]]:
    """Every point of the preset with the default's at the same place: figure, preset, default."""
    for name, points in figures.items():
        if name == "cost":  # times, of a machine as busy as it was
            continue
        at = {(p.data, p.panel, p.curve, p.x): p for p in points}
        for (data, panel, curve, x), point in at.items():
            own = _NAMED.get((name, curve, x), curve + _DEFAULT)
            default = at.get((data, panel, own, x))
            if default is not None:
                yield name, point, default


def _beside(figures: Figures) -> str:
    """How often the default's error is smaller, beyond the measurement's luck, and where not."""
    counted: dict[str, list[int]] = {}
    worse = []
    for name, preset, default in pairs(figures):
        place = counted.setdefault(name, [0, 0, 0])
        if preset.mean == 0.0:
            verdict = 1 if default.mean == 0.0 else 2
        else:
            ratio, reach = ratio_and_reach(default, preset)
            verdict = 0 if ratio + reach < 1.0 else 2 if ratio - reach > 1.0 else 1
        place[verdict] += 1
        if verdict == 2:
            worse.append(
                f"- `{name}`, {default.data}, {default.panel}, {preset.curve} at {preset.x:g}: "
                f"{default.mean:.2g} against {preset.mean:.2g}"
            )
    body = [[f"`{name}`", *map(str, counts)] for name, counts in counted.items()]
    table = markdown_table(["figure", "default better", "alike", "preset better"], body)
    listed = "\n".join(worse) or "- nowhere"
    return (
        "Points of both, the same epsilon and clients: *better* where all of the 95 % interval of "
        f"the ratio of errors is on one side.\n\n{table}\n\nThe preset is better:\n\n{listed}"
    )


def _pictures(contents: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name in contents:
        figure = FIGURES[name]
        note = f" {figure.note}" if figure.note else ""
        yield (
            f"### {figure.title}\n\n![{figure.title}](figures/reproduce-{name}.png)\n\n"
            f"`fedassay reproduce {name}`, the paper's `{figure.label}`.{note} Error bars: "
            f"{figure.bars}."
        )


if __name__ == "__main__":
    main()
