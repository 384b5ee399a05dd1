"""The door for many classes: arrays, tables and files give the same figures, or one sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import fedassay
from fedassay.errors import FedassayError, LabelInvalid, SettingInvalid
from tests.class_rows import drawn_rows

ROWS = drawn_rows(1500, (3.0, 2.0, 1.0))
NAMES = ["p_x", "p_y", "p_z"]
LABELS = np.array(["x", "y", "z"])[ROWS.labels]
SITES = np.arange(1500) % 4


def mapping() -> dict[str, Any]:
    columns = {name: ROWS.scores[:, place] for place, name in enumerate(NAMES)}
    return {**columns, "label": LABELS, "site": SITES}


def asked(*arguments: Any, **settings: Any) -> dict[str, float]:
    given = {"privacy": "distributed", "epsilon": 4, "design": "own", "seed": 3, **settings}
    found = fedassay.simulate_classes(*arguments, **given)
    return {name: estimate.value for name, estimate in found.estimates().items()}


def test_arrays_tables_and_files_give_the_same_figures(tmp_path: Path) -> None:
    plain = asked(LABELS, ROWS.scores, classes=["x", "y", "z"])
    assert asked("label", "p_*", data=mapping()) == plain
    assert asked("label", NAMES, data=mapping()) == plain
    table = pa.table({**mapping(), "label": LABELS.tolist()})
    parquet.write_table(table, tmp_path / "rows.parquet")
    assert asked("label", "p_*", data=tmp_path / "rows.parquet") == plain


def test_a_frames_columns_name_the_classes() -> None:
    frame = pd.DataFrame(ROWS.scores, columns=NAMES)
    assert asked(LABELS, frame) == asked(LABELS, ROWS.scores, classes=["x", "y", "z"])


def test_classes_without_names_are_numbers() -> None:
    found = fedassay.simulate_classes(ROWS.labels, ROWS.scores, smallest_cell=0, seed=0)
    assert "roc_auc/2" in found
    assert found.exact_values["accuracy"] == pytest.approx(found["accuracy"].value)
    assert "roc_auc/macro" in str(found)


def test_clients_hold_rows_by_name(tmp_path: Path) -> None:
    plain = asked(LABELS, ROWS.scores, classes=["x", "y", "z"], clients=SITES)
    assert asked("label", "p_*", data=mapping(), clients="site") == plain
    parquet.write_table(
        pa.table({**mapping(), "label": LABELS.tolist()}), tmp_path / "rows.parquet"
    )
    assert asked("label", "p_*", data=tmp_path / "rows.parquet", clients="site") == plain


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"seed": -1}, SettingInvalid, "a seed"),
        ({"design": "all"}, SettingInvalid, "one of every, drawn, own"),
        ({"y_scores": "p*"}, SettingInvalid, "there is no table"),
        ({"y_scores": ROWS.scores[:, 0]}, SettingInvalid, "found 1 dimension. Pass such"),
        ({"clients": [1, 2]}, LabelInvalid, "one client per row"),
        ({"colour": "red"}, SettingInvalid, "one of preset, steps"),
        ({"privacy": "site"}, SettingInvalid, "found no client column"),
    ],
)
def test_what_does_not_belong_is_refused(
    given: dict[str, Any], error: type[FedassayError], words: str
) -> None:
    usual = {"y_true": ROWS.labels, "y_scores": ROWS.scores, "privacy": "secure"}
    with pytest.raises(error, match=words):
        fedassay.simulate_classes(**{**usual, **given})


def test_a_figure_that_there_is_not_is_refused_with_the_list() -> None:
    found = fedassay.simulate_classes(ROWS.labels, ROWS.scores, smallest_cell=0, seed=0)
    with pytest.raises(SettingInvalid, match="roc_auc/0"):
        found["roc_auc"]
