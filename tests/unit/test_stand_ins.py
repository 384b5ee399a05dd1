"""Tables like the paper's: trained here, kept in a cache, or the original files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fedassay.errors import ColumnMissing, FileInvalid
from fedassay.examples import Examples
from fedassay.metrics.exact_rows import row_calibration
from fedassay.reproduction import datasets, stand_ins
from fedassay.reproduction.kaggle import _check_end, kaggle_table
from fedassay.reproduction.recipes import RECIPES, Recipe
from fedassay.reproduction.settings import QUICK
from fedassay.reproduction.stand_ins import made_rows, scored_half, stand_in, untrained

NOVEMBER = RECIPES[2]
SHORT = replace(NOVEMBER, features=("f", 0, 9))


def test_recipes_are_the_papers_tables() -> None:
    rows = [(recipe.rows, recipe.learner.value, recipe.roc_auc) for recipe in RECIPES]
    assert rows == [
        (957_919, "LightGBM", 0.79),
        (1_000_000, "XGBoost", 0.85),
        (600_000, "logistic regression", 0.73),
    ]
    assert [len(recipe.feature_names) for recipe in RECIPES] == [118, 285, 100]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_stand_in_ranks_and_errs_as_the_papers_model_did(recipe: Recipe) -> None:
    features, labels = made_rows(recipe, 20_000)
    examples = scored_half(recipe, features, labels)
    assert len(examples) == 10_000
    # Far fewer rows than the full table has, so that boosting learns less and overfits more.
    area = roc_auc_score(examples.labels, examples.scores)
    assert area == pytest.approx(recipe.roc_auc, abs=0.035)
    assert 0.47 < examples.positives / len(examples) < 0.53
    found = row_calibration(examples, examples.scores)["ece"]
    wanted = recipe.ece
    assert found == pytest.approx(wanted or 0.0, abs=0.035)


def test_the_papers_own_learners_are_trained() -> None:
    found = [untrained(recipe, 100)[0] for recipe in RECIPES]
    assert [type(model).__module__.partition(".")[0] for model in found] == [
        "lightgbm",
        "xgboost",
        "sklearn",
    ]


def test_a_models_own_training_rows_are_never_scored() -> None:
    features, labels = made_rows(NOVEMBER, 2_000)
    examples = scored_half(NOVEMBER, features, labels)
    assert examples.labels.tolist() == labels[1::2].tolist()
    changed = np.where(np.arange(2_000) % 2 == 1, 1.0 - labels, labels)
    again = scored_half(NOVEMBER, features, changed)
    assert again.scores.tolist() == examples.scores.tolist(), "test labels taught nothing"


def test_scores_are_made_once_and_made_anew_when_the_cache_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said: list[str] = []
    first, about = stand_in(NOVEMBER, 4_000, say=said.append)
    second, _ = stand_in(NOVEMBER, 4_000, say=said.append)
    assert len(said) == 1
    assert second.scores.tolist() == first.scores.tolist()
    assert about == "stand-in: 4,000 rows made here, logistic regression trained on half of them"
    (path,) = stand_ins.cache_folder().iterdir()
    path.write_bytes(path.read_bytes()[:100])
    third, _ = stand_in(NOVEMBER, 4_000, say=said.append)
    assert third.scores.tolist() == first.scores.tolist()
    stand_in(replace(NOVEMBER, signal=2.0), 4_000, say=said.append)
    assert len(said) == 3, "another recipe is not taken from the cache"


def test_without_a_cache_scores_are_made_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fedassay").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert len(stand_in(NOVEMBER, 2_000)[0]) == 1_000


def original(folder: Path, *, rows: int = 400) -> Path:
    """A small file of the November competition's form."""
    features, labels = made_rows(SHORT, rows)
    names = ["id", *SHORT.feature_names, SHORT.label]
    lines = [
        f"{i},{','.join(f'{value:.4f}' for value in row)},{label:.0f}"
        for i, (row, label) in enumerate(zip(features, labels, strict=True))
    ]
    path = folder / SHORT.folder / "train.csv"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join([",".join(names), *lines]) + "\n")
    return path


def test_half_of_an_original_file_is_scored_by_a_model_of_the_other(tmp_path: Path) -> None:
    original(tmp_path)
    said: list[str] = []
    examples, about = kaggle_table(tmp_path, SHORT, say=said.append)
    assert len(examples) == 200
    assert roc_auc_score(examples.labels, examples.scores) > 0.6
    assert "400 rows, of 600,000" in about
    assert "cut short" in said[0]


def test_a_kaggle_folder_that_is_missing_or_half_downloaded_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileInvalid, match="no such folder"):
        kaggle_table(tmp_path / "nowhere", SHORT)
    with pytest.raises(FileInvalid, match=r"train.csv: is missing. Download"):
        kaggle_table(tmp_path, SHORT)
    part = tmp_path / f"{SHORT.folder}.zip.crdownload"
    part.write_bytes(b"PK")
    with pytest.raises(FileInvalid, match=r"zip\.crdownload was downloaded in part: download it"):
        kaggle_table(tmp_path, SHORT)
    part.rename(tmp_path / f"{SHORT.folder}.zip")
    with pytest.raises(FileInvalid, match=r"Unpack tabular-playground-series-nov-2021\.zip"):
        kaggle_table(tmp_path, SHORT)
    path = original(tmp_path)
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    with pytest.raises(FileInvalid, match="ends within a line"):
        kaggle_table(tmp_path, SHORT)
    lines = whole.splitlines()
    path.write_text("\n".join([*lines[:9], lines[9][:20]]) + "\n")
    with pytest.raises(FileInvalid, match="not a whole CSV file"):
        kaggle_table(tmp_path, SHORT)
    path.write_text(whole.replace("f3,", "g3,", 1))
    with pytest.raises(ColumnMissing, match=r"f0 to f9 and target; 1 are missing, f3 first"):
        kaggle_table(tmp_path, SHORT)


def test_an_original_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileInvalid, match=r"cannot be read \(Is a directory\)\. Check the path"):
        _check_end(tmp_path)


@pytest.mark.parametrize(("names", "count"), [(["november"], 1), ([], 3)])
def test_stand_ins_are_made_twice_as_large_as_the_rows_that_are_wanted(
    names: list[str], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of them train the model; what is made is cut to size by the recipe itself."""
    asked: list[tuple[str, int]] = []

    def made(recipe: Recipe, rows: int, **_: object) -> tuple[Examples, str]:
        asked.append((recipe.name, rows))
        return Examples(np.arange(1_200) % 2, np.arange(1_200) / 1_200), "made"

    monkeypatch.setattr(datasets, "stand_in", made)
    found = datasets.load_datasets(names, replace(QUICK, rows=1_100))
    assert [data.name for data in found] == [recipe.name for recipe in RECIPES][-count:]
    assert [rows for _, rows in asked] == [2_200] * count
    assert [len(data.examples) for data in found] == [1_100] * count


def test_a_whole_original_is_not_called_cut_short(tmp_path: Path) -> None:
    original(tmp_path)
    said: list[str] = []
    _, about = kaggle_table(tmp_path, replace(SHORT, rows=400), say=said.append)
    assert "400 rows, logistic regression" in about
    assert len(said) == 1


def test_originals_are_named_as_such_and_stand_ins_come_only_where_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Examples(np.arange(1_200) % 2, np.arange(1_200) / 1_200)
    monkeypatch.setattr(datasets, "kaggle_table", lambda folder, recipe, **_: (rows, "original"))
    for recipe in RECIPES[:2]:
        (tmp_path / recipe.folder).mkdir()
        (tmp_path / recipe.folder / "train.csv").touch()
    with pytest.raises(FileInvalid, match=r"nov-2021/train.csv: is missing"):
        datasets.load_datasets([], QUICK, kaggle=tmp_path)
    (tmp_path / RECIPES[2].folder).mkdir()
    (tmp_path / RECIPES[2].folder / "train.csv").touch()
    found = datasets.load_datasets([], QUICK, kaggle=tmp_path)
    assert [data.name for data in found] == [f"{recipe.name} (Kaggle)" for recipe in RECIPES]
