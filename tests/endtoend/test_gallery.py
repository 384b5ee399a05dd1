"""Every script of the gallery draws a picture that holds something, and the page shows it."""

import re
import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from examples.gallery.__main__ import PICTURES, scripts

from tests.tables import ROOT

PAGE = (ROOT / "docs" / "gallery.md").read_text("utf-8")


@pytest.mark.parametrize("script", scripts(), ids=lambda script: str(script.stem))
def test_a_script_of_the_gallery_draws_its_picture(script: Path) -> None:
    mpl.use("Agg")
    try:
        figure = runpy.run_path(str(script))["figure"]
        drawn = [each for ax in figure.axes for each in (*ax.lines, *ax.patches, *ax.collections)]
        assert len(drawn) >= 2
    finally:
        plt.close("all")


def test_the_page_shows_every_script_with_its_picture() -> None:
    names = {script.stem for script in scripts()}
    assert len(names) >= 8
    assert set(re.findall(r"\(figures/gallery/(\w+)\.png\)", PAGE)) == names
    assert set(re.findall(r"\{literalinclude\} /examples/gallery/(\w+)\.py", PAGE)) == names
    assert {path.stem for path in PICTURES.glob("*.png")} == names
