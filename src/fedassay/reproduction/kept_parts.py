"""Parts that are kept: a run that was stopped goes on, a run of other sources starts anew."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from fedassay.errors import FileInvalid
from fedassay.files import Fields, canonical, read_json, write_json
from fedassay.reproduction.results import Point, points_from

PART_FORMAT = "fedassay.reproduction-part/1"

Measure = Callable[[np.random.Generator], list[Point]]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a figure that is measured as a whole, from a seed made of its name."""

    key: tuple[str, ...]
    """Figure, settings, digest of the rows, and what else tells it from other parts."""
    measure: Measure

    @property
    def seed(self) -> list[int]:
        """The same for the same key, whatever ran before.

        >>> Part(("auc", "1"), lambda generator: []).seed == Part(("auc", "1"), list).seed
        True
        """
        digest = hashlib.sha256("\n".join(self.key).encode()).digest()
        return [int.from_bytes(digest[place : place + 4], "big") for place in (0, 4, 8, 12)]


@dataclass(frozen=True, slots=True)
class Measured:
    """What a part gave."""

    key: tuple[str, ...]
    seed: list[int]
    points: list[Point]
    seconds: float


@lru_cache(maxsize=1)
def source_digest() -> str:
    """What these sources are: results of others are not taken for theirs."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def place_of(part: Part, folder: Path) -> Path:
    """The file that a part is kept in."""
    digest = hashlib.sha256(canonical([source_digest(), *part.key])).hexdigest()
    return folder / f"{part.key[0]}-{digest[:20]}.json"


def kept(part: Part, folder: Path) -> Measured | None:
    """What was measured before, or None; a damaged file is as good as none."""
    path = place_of(part, folder)
    if not path.exists():
        return None
    try:
        fields = Fields(read_json(path, PART_FORMAT), str(path))
        if fields.texts("key", 100) != list(part.key):
            return None
        points = points_from(fields.get("points"), str(path))
        return Measured(part.key, part.seed, points, fields.number("seconds"))
    except FileInvalid:
        return None


def measure(part: Part, folder: Path) -> Measured:
    """Measure a part and keep it."""
    started = time.perf_counter()
    points = part.measure(np.random.default_rng(part.seed))
    found = Measured(part.key, part.seed, points, time.perf_counter() - started)
    content = {
        "format": PART_FORMAT,
        "key": list(part.key),
        "seed": found.seed,
        "seconds": found.seconds,
        "points": [point.to_json() for point in points],
    }
    write_json(place_of(part, folder), content)
    return found
