"""The default survey against the paper's: settings, errors side by side, and their table."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

import numpy as np

from experiments.data import Scored, halves, rows, thinned
from experiments.errors import METRICS, answered, family_means, geometric_mean, mean_errors
from experiments.page import markdown_table
from fedassay.examples import Examples
from fedassay.planning.search import SurveyDesign

NAMES = {
    "roc_auc": "ROC AUC",
    "precision": "precision",
    "recall": "recall",
    "accuracy": "accuracy",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A kind of federation in which both surveys are tried."""

    title: str
    about: str
    rows: int | None = None
    rate: float | None = None
    are_thresholds_known: bool = True
    has_reference: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """The errors of both surveys on one table, per metric (paper, default)."""

    name: str
    clients: int
    errors: dict[str, tuple[float, ...]]
    answered: tuple[int, int]
    shape: str

    def ratio(self, metric: str) -> float:
        """How many times smaller the default survey's error is."""
        paper, default = self.errors[metric]
        return paper / default


Choices = Callable[[Examples, Examples | None], tuple[SurveyDesign, SurveyDesign]]
"""The paper's survey and the default one, for the clients' rows and a reference."""


def prepared(table: Scored, setting: Setting) -> tuple[Examples, Examples | None]:
    """The clients' rows, and the reference's where there is one."""
    generator = np.random.default_rng(5)
    examples = table.examples
    if setting.rate is not None:
        examples = thinned(examples, setting.rate, generator)
    if setting.rows is not None:
        examples = rows(examples, setting.rows, generator)
    if not setting.has_reference:
        return examples, None
    reference, examples = halves(examples, generator)
    return examples, reference


def compare(table: Scored, setting: Setting, choices: Choices, *, trials: int) -> Comparison:
    """Simulate both surveys on one table."""
    examples, reference = prepared(table, setting)
    paper, default = choices(examples, reference)
    found = [mean_errors(design, examples, trials=trials) for design in (paper, default)]
    return Comparison(
        table.name,
        len(examples),
        family_means(*found),
        (answered(found[0]), answered(found[1])),
        _shape(default),
    )


def _shape(design: SurveyDesign) -> str:
    survey = design.survey
    cells = "/".join(map(str, dict.fromkeys(survey.hierarchy.cells_per_level)))
    kinds = ", ".join(sorted({mechanism.kind for mechanism in survey.mechanisms}))
    return f"{survey.grid.cells} leaves, {survey.hierarchy.levels} x {cells} ({kinds})"


def section(title: str, about: str, found: list[Comparison]) -> str:
    """Errors and ratios per table, and the ratios' geometric means."""
    header = ["table", "clients", "levels"]
    for metric in METRICS:
        header += [f"{NAMES[metric]}: paper", "default", "ratio"]
    body = []
    for row in found:
        cells = [row.name, f"{row.clients:,}", row.shape]
        for metric in METRICS:
            paper, default = row.errors[metric]
            cells += [_figure(paper), _figure(default), f"**{_figure(row.ratio(metric))}**"]
        body.append(cells)
    means = [
        f"{NAMES[metric]} {_figure(geometric_mean([row.ratio(metric) for row in found]), 3)}"
        for metric in METRICS
    ]
    together = geometric_mean([row.ratio(metric) for row in found for metric in METRICS[1:]])
    counts = "; ".join(f"{row.name} {row.answered[0]} and {row.answered[1]}" for row in found)
    return (
        f"## {title}\n\n{about}\n\n{markdown_table(header, body)}\n\n"
        f"Geometric means of the ratios: {', '.join(means)}; the three threshold metrics "
        f"together {_figure(together, 3)}. Thresholds with a precision in every trial (paper and "
        f"default): {counts}."
    )


def _figure(value: float, digits: int = 2) -> str:
    """A few digits, or a dash where some trial had no answer."""
    return f"{value:.{digits}g}" if isfinite(value) else "–"
