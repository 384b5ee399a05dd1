"""Pictures of an assessment are files of the kind that their name says, or a plain refusal."""

from pathlib import Path

import numpy as np
import pytest

from fedassay import DecodeOptions, Examples
from fedassay.assessment import Assessment
from fedassay.errors import FileInvalid, TooFewReports
from fedassay.randomness import SimulatedRandomness
from fedassay.report.charts import write_plots
from fedassay.simulation.simulate import tally_clients
from tests.surveys import cohort_of, small_survey


def assessment(minimum_reports: int = 2) -> Assessment:
    rng = np.random.default_rng(9)
    scores = rng.random(60)
    rows = cohort_of(Examples((rng.random(60) < scores).astype(int), scores))
    survey = small_survey(8, minimum_reports=minimum_reports)
    tally = tally_clients(survey, rows, randomness=SimulatedRandomness(0))
    return Assessment(survey, tally, DecodeOptions())


@pytest.mark.parametrize(("suffix", "starts"), [(".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_a_picture_is_of_the_kind_that_its_name_says(
    tmp_path: Path, suffix: str, starts: bytes
) -> None:
    path = tmp_path / f"curves{suffix}"
    write_plots(assessment(), path)
    assert path.read_bytes().startswith(starts)


def test_both_curves_are_in_the_picture(tmp_path: Path) -> None:
    write_plots(assessment(), tmp_path / "curves.svg")
    text = (tmp_path / "curves.svg").read_text("utf-8")
    for axis in ("False positive rate", "True positive rate", "Recall", "Precision"):
        assert f"<!-- {axis} -->" in text


def test_a_picture_that_cannot_be_written_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(FileInvalid, match="Choose a folder"):
        write_plots(assessment(), tmp_path / "nowhere" / "curves.png")
    with pytest.raises(FileInvalid, match="Rename it"):
        write_plots(assessment(), tmp_path / "curves.doc")


def test_nothing_is_drawn_of_too_few_reports(tmp_path: Path) -> None:
    path = tmp_path / "curves.png"
    with pytest.raises(TooFewReports):
        write_plots(assessment(minimum_reports=61), path)
    assert not path.exists()
