"""What the demo leaves behind is whole: every flight once, in its airline's table."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import fedassay
from fedassay.cli.demo_files import AIRLINES, ASSESSMENT, FLIGHTS, check_folder, save_demo
from fedassay.errors import FileInvalid
from tests.pages import assessment
from tests.tables import BUNDLED, flights_by_carrier


def test_every_airline_has_its_own_flights_and_no_other(tmp_path: Path) -> None:
    save_demo(tmp_path / "flights", BUNDLED, assessment("secure"))
    assert (tmp_path / "flights" / FLIGHTS).read_bytes() == BUNDLED.read_bytes()
    expected = flights_by_carrier()
    tables = {path.stem: path for path in (tmp_path / "flights" / AIRLINES).iterdir()}
    assert set(tables) == set(expected)
    for name, rows in expected.items():
        table = pq.read_table(tables[name])
        assert table["carrier"].unique().to_pylist() == [name]
        np.testing.assert_array_equal(table["label"].to_numpy(), rows.labels)
        np.testing.assert_array_equal(table["score"].to_numpy().astype(np.float64), rows.scores)


def test_the_demos_assessment_can_be_read_again(tmp_path: Path) -> None:
    saved = assessment("secure")
    save_demo(tmp_path, BUNDLED, saved)
    again = fedassay.load(tmp_path / ASSESSMENT)
    assert isinstance(again, fedassay.Assessment)
    assert again["roc_auc"] == saved["roc_auc"]


def test_a_folder_with_an_earlier_demo_is_kept_unless_forced(tmp_path: Path) -> None:
    check_folder(tmp_path / "new", force=False)
    (tmp_path / FLIGHTS).write_text("mine")
    with pytest.raises(FileInvalid, match="is already there"):
        check_folder(tmp_path, force=False)
    check_folder(tmp_path, force=True)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileInvalid, match="cannot be made"):
        save_demo(tmp_path / "file" / "below", BUNDLED, assessment("secure"))
