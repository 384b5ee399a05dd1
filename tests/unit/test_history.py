"""A history: its order, its model and its folder."""

from pathlib import Path

import pytest

import fedassay
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.tracking import history as history_module
from fedassay.tracking.displays import HistoryDisplay
from fedassay.tracking.history import History, form_of
from tests.surveys import counted

ROWS = ([0, 1] * 500, [i / 1000 for i in range(1000)])


@pytest.fixture(scope="module")
def look() -> fedassay.Assessment:
    return fedassay.simulate(*ROWS, seed=0)


def test_looks_are_kept_in_the_order_of_time(look: fedassay.Assessment) -> None:
    history = History({"2026-09": look}).with_look("2026-11", look)
    assert list(history) == ["2026-09", "2026-11"]
    with pytest.raises(SettingInvalid, match="found 2026-10 after 2026-11"):
        history.with_look("2026-10", look)
    with pytest.raises(SettingInvalid, match="found a second one for 2026-11"):
        history.with_look("2026-11", look)


@pytest.mark.parametrize(
    "time", ["2026", "2026-13", "2026-1", "2026-10-32", "2026-02-30", "../2026-10", ""]
)
def test_what_is_no_time_is_refused(time: str) -> None:
    with pytest.raises(SettingInvalid, match="a time is a month or a day"):
        form_of(time)


def test_months_and_days_do_not_mix(look: fedassay.Assessment) -> None:
    with pytest.raises(SettingInvalid, match="all months or all days"):
        History({"2026-09": look, "2026-10-01": look})
    assert History({"2026-09-01": look}).looks_per_year == 52
    weekly = ("2026-09-01", "2026-09-08", "2026-09-15")
    assert History(dict.fromkeys(weekly, look)).looks_per_year == 52
    daily = ("2026-09-29", "2026-09-30", "2026-10-01")
    assert History(dict.fromkeys(daily, look)).looks_per_year == 366
    assert History({"2026-09": look}).looks_per_year == 12


def test_a_history_is_of_one_model() -> None:
    one, other = (fedassay.simulate(*ROWS, seed=0, model_digest=digit * 64) for digit in ("a", "b"))
    unnamed = fedassay.simulate(*ROWS, seed=0)
    assert len(History({"2026-09": one, "2026-10": unnamed})) == 2
    with pytest.raises(SettingInvalid, match="a history is of one model"):
        History({"2026-09": one, "2026-10": other})


def test_a_folder_is_read_by_its_names(look: fedassay.Assessment, tmp_path: Path) -> None:
    for month in ("2026-11", "2026-09"):
        look.save(tmp_path / f"{month}.json")
    history = History.load(tmp_path)
    assert list(history) == ["2026-09", "2026-11"]
    assert history["2026-09"]["roc_auc"].value == look["roc_auc"].value
    (tmp_path / "notes.json").write_text("{}")
    with pytest.raises(FileInvalid):
        History.load(tmp_path)
    with pytest.raises(FileInvalid, match="a history is a folder; found none there"):
        History.load(tmp_path / "nowhere")


def test_a_history_does_not_grow_for_ever(
    look: fedassay.Assessment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "MOST_LOOKS", 1)
    with pytest.raises(SettingInvalid, match=r"at most 1 looks; found 2\. Begin a new one"):
        History({"2026-10": look, "2026-11": look})
    for month in (10, 11):
        (tmp_path / f"2026-{month}.json").write_text("{}")
    with pytest.raises(FileInvalid, match=r"at most 1 files; found more"):
        History.load(tmp_path)


def test_a_look_without_a_figure_is_left_out_of_the_picture() -> None:
    looks = {"2026-10": counted([[3, 2], [2, 3]]), "2026-11": counted([[3, 2], [0, 0]])}
    display = HistoryDisplay.from_history(History(looks), "recall@0.5")
    assert display.figures() == "recall@0.5, 2 looks, 0 alarms"
    dots = [line for line in display.ax_.lines if line.get_marker() == "o"]
    assert [list(line.get_xdata()) for line in dots] == [[0]]
