"""The paper's tables and figures: what each is made of, and how it is drawn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.mechanisms import Privacy
from fedassay.reproduction import (
    areas,
    calibration_errors,
    costs,
    setup_table,
    sweeps,
    threshold_errors,
)
from fedassay.reproduction.datasets import Dataset
from fedassay.reproduction.kept_parts import Part
from fedassay.reproduction.results import Point
from fedassay.reproduction.settings import MODELS, Model, Settings

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
    undrawn: tuple[str, ...] = ()
    """Curves that stand in file and page alone."""
    slopes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What theory says of log-log slopes: panel, then curve."""


def key(figure: str, data: Dataset, settings: Settings, *more: object) -> tuple[str, ...]:
    """What tells a part from every other: settings and rows too."""
    return (figure, data.name, data.digest, repr(settings), *map(str, more))


Measured = Callable[[Dataset, Model, Settings, np.random.Generator], list[Point]]
Sampled = Callable[[Dataset, Model, int, Settings, np.random.Generator], list[Point]]


def by_model(measure: Measured, models: Sequence[Model] = MODELS) -> Parts:
    """A part for every table and privacy model."""

    def parts(figure: str, tables: Sequence[Dataset], settings: Settings) -> list[Part]:
        return [
            Part(key(figure, data, settings, model.name), partial(measure, data, model, settings))
            for data in tables
            for model in models
        ]

    return parts


def by_population(measure: Sampled, *, share: int = 1) -> Parts:
    """A part for every table, privacy model and number of clients, up to a share of the rows."""

    def parts(figure: str, tables: Sequence[Dataset], settings: Settings) -> list[Part]:
        return [
            Part(
                key(figure, data, settings, model.name, clients),
                partial(measure, data, model, clients, settings),
            )
            for data in tables
            for model in MODELS
            for clients in settings.populations(len(data.examples) // share)
        ]

    return parts


def _by_epsilon(figure: str, tables: Sequence[Dataset], settings: Settings) -> list[Part]:
    models = [Model(Privacy.DISTRIBUTED, each) for each in settings.distributed_epsilons]
    models += [Model(Privacy.LOCAL, each) for each in settings.local_epsilons]
    return by_model(sweeps.by_epsilon, models)(figure, tables, settings)


def _costs(figure: str, tables: Sequence[Dataset], settings: Settings) -> list[Part]:
    """On the first table alone: what rows hold makes no difference."""
    return [
        Part(
            key(figure, data, settings, model.name, clients),
            partial(costs.by_clients, data, model, clients, settings.repetitions),
        )
        for data in tables[:1]
        for model in MODELS
        for clients in costs.CLIENTS
    ]


def _reliability(figure: str, tables: Sequence[Dataset], settings: Settings) -> list[Part]:
    return [
        Part(key(figure, data, settings), partial(setup_table.reliability, data)) for data in tables
    ]


REPEATED = "standard deviation over repetitions, which draw rows and noise again"
OVER_THRESHOLDS = "standard deviation over the ten thresholds"
_ERROR = "absolute error"
_SECURE, _DISTRIBUTED, _LOCAL = (model.name for model in MODELS)

FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            name="table1",
            title="Rates: how errors fall with the number of clients",
            label="tab:results",
            x="clients M",
            y=_ERROR,
            bars=REPEATED,
            parts=by_population(sweeps.by_rate),
            shares_y=False,
            slopes={
                sweeps.GIVEN: {_DISTRIBUTED: -1.0, _LOCAL: -0.5},
                sweeps.RATES: {_SECURE: 0.0, _DISTRIBUTED: -2 / 3, _LOCAL: -1 / 3},
                sweeps.AREA: {_SECURE: 0.0, _DISTRIBUTED: -1.0, _LOCAL: -0.5},
                sweeps.CALIBRATION: {_SECURE: -1 / 3, _DISTRIBUTED: -1 / 3, _LOCAL: -1 / 4},
            },
            note="A given classifier is exact in the secure model, and not drawn. Trees for "
            "thresholds have as many leaves as the proof asks for, to a power of two; calibration "
            "is 20 buckets, judged on the other half of the rows, whose own sampling adds to it.",
        ),
        Figure(
            name="table2",
            title="The tables and classifiers",
            label="tab:exp_setup",
            x="mean score of a bin",
            y="share of positives",
            bars="none",
            parts=_reliability,
            log_x=False,
            log_y=False,
        ),
        Figure(
            name="auc",
            title="ROC AUC: error against the number of buckets",
            label="fig:auc",
            x="buckets B",
            y="absolute error of ROC AUC",
            bars=REPEATED,
            parts=by_model(areas.by_buckets),
            note="Trees of height 10. Our default asks as it sees fit, whatever B is.",
        ),
        Figure(
            name="auc-pop",
            title="ROC AUC: error against the number of clients",
            label="fig:auc-pop",
            x="clients M",
            y="absolute error of ROC AUC",
            bars=REPEATED,
            parts=by_population(areas.by_clients),
            slopes={"ROC AUC": {_SECURE: 0.0, _DISTRIBUTED: -1.0, _LOCAL: -0.5}},
            note="Trees of height 10, 100 quantile buckets.",
        ),
        Figure(
            name="pra",
            title="Precision, recall and accuracy: error against the height of the tree",
            label="fig:pra",
            x="height h",
            y=_ERROR,
            bars=OVER_THRESHOLDS,
            parts=by_model(threshold_errors.by_heights),
            log_x=False,
            note="Means over the thresholds 1/11 to 10/11; estimates are cut to [0, 1].",
            undrawn=(threshold_errors.NEAREST,),
        ),
        Figure(
            name="pra-pop",
            title="Precision, recall and accuracy: error against the number of clients",
            label="fig:pra-pop",
            x="clients M",
            y=_ERROR,
            bars=OVER_THRESHOLDS,
            parts=by_population(threshold_errors.by_clients),
            slopes={
                model: dict.fromkeys(threshold_errors.FAMILIES, slope)
                for model, slope in ((_SECURE, 0.0), (_DISTRIBUTED, -1.0), (_LOCAL, -0.5))
            },
            note="Trees of height 10; means over the thresholds 1/11 to 10/11.",
        ),
        Figure(
            name="calib",
            title="Calibration: error against the number of bins",
            label="fig:calib",
            x="bins of ECE, and buckets",
            y="expected calibration error",
            bars=REPEATED,
            parts=by_model(calibration_errors.by_bins),
            undrawn=(calibration_errors.WEIGHT,),
            note="Fitted on a random half of the rows, judged on the other. Quantile buckets and "
            "BBQ take noisy counts of trees of height 10 at face value, as in the paper.",
        ),
        Figure(
            name="calib-pop",
            title="Calibration: error against the number of clients",
            label="fig:calib-pop",
            x="clients M",
            y="expected calibration error",
            bars=REPEATED,
            parts=by_population(calibration_errors.by_clients, share=2),
            note="20 bins and 20 buckets of trees of height 10; judged on the other half.",
        ),
        Figure(
            name="epsilon",
            title="Errors against epsilon",
            label="app:expts",
            x="epsilon",
            y=_ERROR,
            bars=REPEATED,
            parts=_by_epsilon,
            shares_y=False,
            slopes={
                sweeps.AREA: {"distributed": -1.0, "local": -1.0},
                sweeps.RATES: {"distributed": -2 / 3, "local": -2 / 3},
            },
            note="All rows are clients (half of them for calibration); trees of height 10. Above "
            "epsilon 1 neither discrete Laplace noise nor unary encoding follows 1/epsilon.",
        ),
        Figure(
            name="fanout",
            title="Fan-outs 2, 3 and 4: error of recall against leaves",
            label="app:praexpts",
            x="leaves B",
            y=_ERROR,
            bars=OVER_THRESHOLDS,
            parts=by_model(threshold_errors.by_fanout, MODELS[1:]),
            shares_y=False,
            note="Recall; the paper's preset but for its fan-out; three times the repetitions.",
        ),
        Figure(
            name="cost",
            title="What a report and a tally cost",
            label="app:expts",
            x="clients",
            y="milliseconds",
            bars=REPEATED,
            parts=_costs,
            shares_y=False,
            note="On this machine, as busy as it was; reports of one row each.",
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
