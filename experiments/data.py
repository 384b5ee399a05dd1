"""Scored tables to study: the bundled sample, and larger ones where they are at hand."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from fedassay.examples import Examples

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"
BUNDLED = ROOT / "src" / "fedassay" / "data" / "nycflights13_xgb.parquet"


@dataclass(frozen=True, slots=True)
class Scored:
    """A named table."""

    name: str
    examples: Examples


def load(folder: Path = SHARED) -> list[Scored]:
    """Every table of one score in a folder, or the bundled sample where there is none."""
    paths = sorted(path for path in folder.glob("scores_*.parquet") if _has_one_score(path))
    return [_read(path) for path in paths or [BUNDLED]]


def _has_one_score(path: Path) -> bool:
    return {"label", "score"} <= set(pq.read_schema(path).names)


def _read(path: Path) -> Scored:
    table = pq.read_table(path, columns=["label", "score"])
    examples = Examples(table["label"].to_numpy(), table["score"].to_numpy())
    return Scored(path.stem.removeprefix("scores_"), examples)


def rows(examples: Examples, count: int, generator: np.random.Generator) -> Examples:
    """A random sample of rows, without replacement."""
    kept = generator.choice(len(examples), min(count, len(examples)), replace=False)
    return examples.rows(kept)


def thinned(examples: Examples, rate: float, generator: np.random.Generator) -> Examples:
    """All negatives, and so few positives that they make up `rate`."""
    negative = np.flatnonzero(examples.labels == 0)
    positive = np.flatnonzero(examples.labels == 1)
    few = min(len(positive), round(len(negative) * rate / (1.0 - rate)))
    kept = np.concatenate([negative, generator.choice(positive, few, replace=False)])
    return examples.rows(kept)


def halves(examples: Examples, generator: np.random.Generator) -> tuple[Examples, Examples]:
    """Two random halves: a public reference, and the clients."""
    order = generator.permutation(len(examples))
    middle = len(examples) // 2
    first, second = order[:middle], order[middle:]
    return (
        examples.rows(first),
        examples.rows(second),
    )
