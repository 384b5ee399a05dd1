"""Run every script of the gallery and keep its picture: `make gallery`."""

import runpy
from pathlib import Path

import matplotlib as mpl

HERE = Path(__file__).parent
PICTURES = HERE.parents[1] / "docs" / "figures" / "gallery"


def scripts() -> list[Path]:
    """All of them, by name."""
    return sorted(path for path in HERE.glob("*.py") if not path.name.startswith("__"))


if __name__ == "__main__":
    mpl.use("Agg")
    for script in scripts():
        figure = runpy.run_path(str(script))["figure"]
        figure.savefig(PICTURES / f"{script.stem}.png", dpi=80)
