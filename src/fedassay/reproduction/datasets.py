"""Scored rows to reproduce on: stand-ins, the bundled sample, tables, the original files."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.examples import Examples
from fedassay.metrics.exact_rows import row_calibration
from fedassay.reproduction.kaggle import kaggle_table, train_file
from fedassay.reproduction.recipes import RECIPES, Recipe
from fedassay.reproduction.settings import BINS, Settings
from fedassay.reproduction.stand_ins import stand_in
from fedassay.tables.columns import Columns
from fedassay.tables.names import choose_columns
from fedassay.tables.reading import read_clients
from fedassay.tables.sources import column_names

STAND_INS, FLIGHTS = "stand-ins", "flights"
FEWEST_ROWS, FEWEST_OF_CLASS = 1_000, 50
_SAMPLE_SEED = 8_128


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named table whose scores no training row is among."""

    name: str
    about: str
    """Where rows and scores come from."""
    examples: Examples
    recipe: Recipe | None = None
    """What the paper had in its place, where it stands for one of the paper's."""

    @cached_property
    def digest(self) -> str:
        """What tells these rows from others."""
        found = hashlib.sha256(self.examples.labels.tobytes())
        found.update(self.examples.scores.tobytes())
        return found.hexdigest()[:16]

    @cached_property
    def ece(self) -> float:
        """The calibration error of the scores as they are, in 20 bins."""
        return row_calibration(self.examples, self.examples.scores, bins=BINS)["ece"]


def load_datasets(
    names: Sequence[str],
    settings: Settings,
    *,
    kaggle: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[Dataset]:
    """The named tables in their order, each once; the stand-ins where nothing is named."""
    found: dict[str, Dataset] = {}
    if kaggle is not None:
        for recipe in RECIPES:  # before minutes go into training the first
            train_file(kaggle, recipe)
        for recipe in RECIPES:
            examples, about = kaggle_table(kaggle, recipe, say=say)
            found[f"{recipe.name} (Kaggle)"] = Dataset(
                f"{recipe.name} (Kaggle)", about, examples, recipe
            )
    for name in names or ([] if kaggle is not None else [STAND_INS]):
        for data in _named(name, settings, say):
            found.setdefault(data.name, data)
    return [_ready(data, settings) for data in found.values()]


def _named(name: str, settings: Settings, say: Callable[[str], None]) -> list[Dataset]:
    recipes = {recipe.name: recipe for recipe in RECIPES}
    if name == STAND_INS:
        return [_stand_in(recipe, settings, say) for recipe in RECIPES]
    if name in recipes:
        return [_stand_in(recipes[name], settings, say)]
    if name == FLIGHTS:
        with as_file(files("fedassay") / "data" / "nycflights13_xgb.parquet") as path:
            about = "bundled: nycflights13 (CC0), XGBoost"
            return [Dataset(FLIGHTS, about, read_clients(path, Columns("score", "label")).examples)]
    path = Path(name)
    if path.is_dir():
        return _folder(path)
    if path.exists():
        return [_table(path)]
    known = ", ".join([STAND_INS, *recipes, FLIGHTS])
    raise SettingInvalid(
        f"data is one of {known}, or a table or folder of tables; found {name[:60]!r}. "
        "Check the name or the path."
    )


def _stand_in(recipe: Recipe, settings: Settings, say: Callable[[str], None]) -> Dataset:
    # Half of the rows train the model, so that twice as many are made.
    rows = recipe.rows if settings.rows is None else min(recipe.rows, 2 * settings.rows)
    examples, about = stand_in(recipe, rows, say=say)
    return Dataset(recipe.name, about, examples, recipe)


def _folder(folder: Path) -> list[Dataset]:
    columns = Columns("score", "label")
    paths = sorted(path for path in folder.iterdir() if path.suffix in (".csv", ".parquet"))
    tables = [path for path in paths if {"score", "label"} <= set(column_names(path, columns))]
    if not tables:
        raise FileInvalid(
            f'{folder}: no table with columns "score" and "label" among {len(paths)} CSV and '
            "Parquet files. Name a folder of scored tables, or one table."
        )
    return [_table(path) for path in tables]


def _table(path: Path) -> Dataset:
    columns = choose_columns(path, Columns("score", "label"), unnamed=("score", "label")).columns
    return Dataset(
        path.stem.removeprefix("scores_"),
        f"table {path.name}",
        read_clients(path, columns).examples,
    )


def _ready(data: Dataset, settings: Settings) -> Dataset:
    """At most so many rows, drawn without replacement, and enough of both classes."""
    examples = data.examples
    fewest = min(examples.positives, len(examples) - examples.positives)
    if len(examples) < FEWEST_ROWS or fewest < FEWEST_OF_CLASS:
        raise SettingInvalid(
            f"a reproduction needs at least {FEWEST_ROWS:,} rows with {FEWEST_OF_CLASS} of each "
            f"class; {data.name} has {len(examples):,} rows, {fewest:,} of its smaller class. "
            "Use a larger table, or look at this one with fedassay simulate."
        )
    if settings.rows is None or len(examples) <= settings.rows:
        return data
    generator = np.random.default_rng(_SAMPLE_SEED)
    sample = generator.choice(len(examples), settings.rows, replace=False)
    about = f"{data.about}; {settings.rows:,} of its {len(examples):,} rows"
    return Dataset(data.name, about, examples.rows(np.sort(sample)), data.recipe)
