"""Settings of a run, checked before anybody is asked."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedassay.errors import SettingInvalid
from tests.hospitals import (
    settings,
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Like tmp_path, but others may enter it."""
    made = Path(tempfile.mkdtemp(prefix="fedassay-test-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"privacy": "none"}, "privacy is one of"),
        ({"privacy": "shuffled"}, "has no shuffler between them and the server"),
        ({"epsilon": ""}, "needs an epsilon"),
        ({"epsilon": "one"}, "epsilon is a number or a fraction"),
        ({"privacy": "secure"}, "exact sums spend no epsilon"),
        ({"thresholds": "0.5;0.7"}, "thresholds are numbers"),
        ({"thresholds": "1.5"}, r"must lie in \[0, 1\]"),
        ({"sites": -1}, "sites must be a whole number"),
        ({"sites": "four"}, "sites must be a whole number"),
        ({"stage_seconds": 0}, "stage-seconds must be from 1"),
        ({"output": ""}, "output names none"),
        ({"unit": "row"}, "unit is one of"),
        ({"privacy": 3}, "privacy must be a text"),
        ({"smallest_cell": "ten"}, "smallest-cell must be a whole number from 0; found 'ten'"),
        ({"smallest_cell": 2.5}, "smallest-cell must be a whole number from 0; found '2.5'"),
        ({"smallest_cell": -1}, "smallest-cell must be a whole number from 0; found '-1'"),
        ({"minimum_reports": 9}, "must not exceed the 4 clients"),
    ],
)
def test_settings_of_a_run_are_checked(
    folder: Path, changes: dict[str, str | int | float], message: str
) -> None:
    with pytest.raises(SettingInvalid, match=message):
        settings(folder, **{"privacy": "distributed", "epsilon": "1", **changes})


def test_a_survey_file_is_taken_as_it_is(folder: Path) -> None:
    survey = settings(folder, privacy="distributed", epsilon="1").survey
    survey.save(folder / "survey.json")
    run = settings(folder, privacy="distributed", survey=str(folder / "survey.json"))
    assert run.survey == survey
    for privacy in ("secure", "local", "trusted-server"):
        with pytest.raises(SettingInvalid, match="disagree"):
            settings(folder, privacy=privacy, survey=str(folder / "survey.json"))
