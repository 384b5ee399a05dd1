"""The paper's original tables, where the user has them: they may not be redistributed.

Expected is a folder with one folder for each competition, named as the competition is, and in it
its `train.csv` as downloaded: an id, the features and the label (see `recipes.RECIPES`). Half of
its rows train the model, the other half are scored.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from fedassay.errors import ColumnMissing, FileInvalid
from fedassay.examples import Examples, FloatArray
from fedassay.extras import needed_for
from fedassay.reproduction.recipes import Recipe
from fedassay.reproduction.stand_ins import scored_half


def kaggle_table(
    folder: Path, recipe: Recipe, *, say: Callable[[str], None] = lambda _: None
) -> tuple[Examples, str]:
    """The scored half of an original table, and what it is."""
    path = train_file(folder, recipe)
    features, labels = _read(path, recipe)
    rows = len(labels)
    missing = "" if rows >= recipe.rows else f", of {recipe.rows:,}"
    if missing:
        say(
            f"{path}: {rows:,} rows{missing} in the original; download it again if it was cut short"
        )
    say(f"training on half of {path}")
    about = f"Kaggle {recipe.folder}: {rows:,} rows{missing}, {recipe.learner.value}"
    return scored_half(recipe, features, labels), about


def train_file(folder: Path, recipe: Recipe) -> Path:
    """Where an original table lies; raises where it is missing."""
    if not folder.is_dir():
        raise FileInvalid(
            f"{folder}: no such folder. Name the one that holds {recipe.folder}/train.csv."
        )
    path = folder / recipe.folder / "train.csv"
    if path.is_file():
        return path
    packed = [*folder.glob(f"{recipe.folder}*.zip*"), *folder.glob(f"{recipe.folder}/*.zip*")]
    whole = [each for each in packed if each.suffix == ".zip"]
    remedy = "Download the competition's data"
    if whole:
        remedy = f"Unpack {whole[0].name} there"
    elif packed:
        remedy = f"{packed[0].name} was downloaded in part: download it again"
    raise FileInvalid(f"{path}: is missing. {remedy}, or leave --kaggle out to use the stand-ins.")


def _read(path: Path, recipe: Recipe) -> tuple[FloatArray, FloatArray]:
    with needed_for("reading tables"):
        import pyarrow as pa
        from pyarrow import csv

    _check_end(path)
    wanted = [*recipe.feature_names, recipe.label]
    try:
        with path.open(encoding="utf-8") as stream:
            header = stream.readline().strip().split(",")
        absent = [name for name in wanted if name not in header]
        if absent:
            raise ColumnMissing(
                f"{path}: columns are {wanted[0]} to {wanted[-2]} and {wanted[-1]}; "
                f"{len(absent)} are missing, {absent[0]} first. This is another competition's file."
            )
        options = csv.ConvertOptions(
            include_columns=wanted, column_types=dict.fromkeys(wanted, pa.float32())
        )
        table = csv.read_csv(path, convert_options=options)
    except (pa.ArrowInvalid, UnicodeDecodeError, OSError) as error:
        raise FileInvalid(
            f"{path}: not a whole CSV file of numbers, perhaps cut short. Download it again."
        ) from error
    columns = [table[name].to_numpy(zero_copy_only=False) for name in recipe.feature_names]
    return np.column_stack(columns), np.asarray(table[recipe.label].to_numpy(), dtype=np.float64)


def _check_end(path: Path) -> None:
    """A download that stopped stops within a line, as a rule."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(path.stat().st_size - 1, 0))
            last = stream.read(1)
    except OSError as error:
        raise FileInvalid(f"{path}: cannot be read ({error.strerror}). Check the path.") from error
    if last != b"\n":
        raise FileInvalid(
            f"{path}: ends within a line, so that it was cut short. Download it again."
        )
