"""A figure from end to end: parts measured or kept, then JSON, picture and page."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

from fedassay.errors import FileInvalid
from fedassay.files import PUBLIC, read_object, write_json, write_whole
from fedassay.reproduction.areas import exact_area
from fedassay.reproduction.claims_page import results_page
from fedassay.reproduction.datasets import Dataset
from fedassay.reproduction.figures import FIGURES, Figure
from fedassay.reproduction.kept_parts import Measured, kept, measure, source_digest
from fedassay.reproduction.pages import page
from fedassay.reproduction.plots import draw
from fedassay.reproduction.results import RESULT_FORMAT, points_from
from fedassay.reproduction.settings import QUICK, Settings

Told = Callable[[str, int, int, float], None]
"""Figure, parts done, parts in all, seconds left."""


def parts_folder(folder: Path) -> Path:
    """The folder that parts are kept in, made and written to before anything is measured."""
    parts = folder / "parts"
    try:
        parts.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileInvalid(
            f"{folder}: cannot be made ({error.strerror}). Choose a folder you may write to."
        ) from error
    write_whole(parts / ".writable", b"")
    (parts / ".writable").unlink()
    return parts


def refuse_losses(folder: Path, figures: Sequence[Figure], run: Mapping[str, Any]) -> None:
    """Raise where a result is in the way that is not of the same settings and rows."""
    for figure in figures:
        path = folder / f"{figure.name}.json"
        if path.exists() and _like(path, run) is None:
            raise FileInvalid(
                f"{path}: is no result of these settings and rows, and would be lost. Choose "
                "another folder, or replace it with --force."
            )


def reproduce(
    figure: Figure,
    tables: Sequence[Dataset],
    settings: Settings,
    *,
    folder: Path,
    force: bool = False,
    told: Told = lambda *_: None,
) -> dict[str, Any]:
    """Measure what is not kept yet, then write JSON, picture and page; returns the JSON."""
    start, kept_in = run_of(tables, settings), parts_folder(folder)
    if not force:
        refuse_losses(folder, [figure], start)
    parts = figure.parts(figure.name, tables, settings)
    measured: list[Measured | None] = [kept(part, kept_in) for part in parts]
    reused = sum(each is not None for each in measured)
    told(figure.name, reused, len(parts), 0.0)
    began, done = time.monotonic(), 0
    for place, part in enumerate(parts):
        if measured[place] is not None:
            continue
        measured[place] = measure(part, kept_in)
        done += 1
        left = (time.monotonic() - began) / done * (len(parts) - reused - done)
        told(figure.name, reused + done, len(parts), left)
    found = [each for each in measured if each is not None]
    points = [point for each in found for point in each.points]
    content = start | {
        "figure": figure.name,
        "sources": source_digest(),
        "seeds": {" / ".join(each.key): each.seed for each in found},
        "seconds": sum(each.seconds for each in found),
        "points": [point.to_json() for point in points],
    }
    write_json(folder / f"{figure.name}.json", content, mode=PUBLIC)
    draw(figure, points, folder / f"{figure.name}.png")
    write_whole(folder / f"{figure.name}.md", page(figure, content, points).encode(), mode=PUBLIC)
    return content


def write_results(folder: Path, run: Mapping[str, Any]) -> Path:
    """The page of claims, from every figure of this run and these sources in the folder."""
    same = {**run, "sources": source_digest()}
    found = {
        name: points_from(content["points"], str(folder / f"{name}.json"))
        for name in FIGURES
        if (content := _like(folder / f"{name}.json", same)) is not None
    }
    path = folder / "results.md"
    write_whole(
        path, results_page(found, quick=run["quick"], tables=run["data"]).encode(), mode=PUBLIC
    )
    return path


def run_of(tables: Sequence[Dataset], settings: Settings) -> dict[str, Any]:
    """What all figures of a run have in common, as it stands in each file."""
    return {
        "format": RESULT_FORMAT,
        "quick": settings == QUICK,
        "settings": _plain(asdict(settings)),
        "data": [describe(data) for data in tables],
    }


def describe(data: Dataset) -> dict[str, Any]:
    """What a table is, in JSON's terms."""
    rows = len(data.examples)
    return {
        "name": data.name,
        "about": data.about,
        "rows": rows,
        "positive_rate": data.examples.positives / rows,
        "roc_auc": exact_area(data.examples),
        "ece": data.ece,
        "digest": data.digest,
    }


def _like(path: Path, run: Mapping[str, Any]) -> dict[str, Any] | None:
    """A result that has settings and rows in common with a run, or None."""
    try:
        content = read_object(path)
    except FileInvalid:
        return None
    is_like = isinstance(content, dict) and all(
        content.get(name) == value for name, value in run.items()
    )
    return content if isinstance(content, dict) and is_like else None


def _plain(value: Any) -> Any:
    """Settings in JSON's terms."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Fraction) else value
