"""The paper's tables and figures: what each is made of, and how it is drawn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from fedassay.errors import SettingInvalid
from fedassay.reproduction import areas
from fedassay.reproduction.datasets import Dataset
from fedassay.reproduction.kept_parts import Part
from fedassay.reproduction.settings import MODELS, Settings

Parts = Callable[[str, Sequence[Dataset], Settings], list[Part]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One table or figure."""

    name: str
    title: str
    label: str
    """In the paper's source."""
    x: str
    y: str
    bars: str
    """What error bars show."""
    parts: Parts
    log_x: bool = True
    log_y: bool = True
    shares_y: bool = True
    note: str = ""


def key(figure: str, data: Dataset, settings: Settings, *more: object) -> tuple[str, ...]:
    """What tells a part from every other: settings and rows too."""
    return (figure, data.name, data.digest, repr(settings), *map(str, more))


def _areas(figure: str, tables: Sequence[Dataset], settings: Settings) -> list[Part]:
    return [
        Part(
            key(figure, data, settings, model.name),
            partial(areas.by_buckets, data, model, settings),
        )
        for data in tables
        for model in MODELS
    ]


def _areas_by_clients(figure: str, tables: Sequence[Dataset], settings: Settings) -> list[Part]:
    return [
        Part(
            key(figure, data, settings, model.name, clients),
            partial(areas.by_clients, data, model, clients, settings),
        )
        for data in tables
        for model in MODELS
        for clients in settings.populations(len(data.examples))
    ]


REPEATED = "standard deviation over repetitions, which draw rows and noise again"

FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            name="auc",
            title="ROC AUC: error against the number of buckets",
            label="fig:auc",
            x="buckets B",
            y="absolute error of ROC AUC",
            bars=REPEATED,
            parts=_areas,
            note="Trees of height 10. Our default asks as it sees fit, whatever B is.",
        ),
        Figure(
            name="auc-pop",
            title="ROC AUC: error against the number of clients",
            label="fig:auc-pop",
            x="clients M",
            y="absolute error of ROC AUC",
            bars=REPEATED,
            parts=_areas_by_clients,
            note="Trees of height 10, 100 quantile buckets.",
        ),
    )
}
ALL = "all"


def chosen_figures(names: Sequence[str]) -> list[Figure]:
    """The figures of these names, in the paper's order; all of them where none is named.

    >>> [figure.name for figure in chosen_figures(["auc"])]
    ['auc']
    """
    for name in names:
        if name != ALL and name not in FIGURES:
            raise SettingInvalid(
                f"what to reproduce is one of {', '.join(FIGURES)} or all; found {name[:40]!r}. "
                "Write one of these."
            )
    if not names or ALL in names:
        return list(FIGURES.values())
    return [figure for figure in FIGURES.values() if figure.name in names]
