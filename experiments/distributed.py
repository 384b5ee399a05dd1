"""Errors under distributed differential privacy: the default survey against the paper's.

`python -m experiments.distributed` writes `experiments/distributed.md` and
`docs/figures/distributed.png`; with --quick it prints a smaller run and writes nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import log2
from pathlib import Path

import numpy as np

from experiments.compared import NAMES, Setting, compare, section
from experiments.data import ROOT, Scored, rows
from experiments.errors import METRICS, THRESHOLDS, family_means, mean_errors
from experiments.page import markdown_table, run, say
from fedassay.examples import Examples
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.mechanisms import Polya, Privacy
from fedassay.planning.request import Preset, SurveyRequest
from fedassay.planning.search import (
    PAPER_BUCKETS,
    SurveyDesign,
    decode_options_for,
    design_survey,
)
from fedassay.survey import Survey

_FIGURE = ROOT / "docs" / "figures" / "distributed.png"
_CLIENTS = (10_000, 20_000, 40_000, 80_000, 160_000)
# Above 1 discrete noise is smaller than the 1/epsilon of the theory.
_EPSILONS = (Fraction(1, 16), Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(1))


SETTINGS = (
    Setting("All rows", "Every row is a client; the thresholds are known to the survey maker."),
    Setting("10,000 rows", "A random 10,000 of the rows.", rows=10_000),
    Setting("1 % positives", "All negatives, and positives thinned to 1 %.", rate=0.01),
    Setting(
        "Thresholds unknown",
        "All rows; the thresholds are chosen after the survey was made, so cells have no edges "
        "at them.",
        are_thresholds_known=False,
    ),
    Setting(
        "With a reference",
        "Half of the rows are a public reference, the other half are the clients.",
        has_reference=True,
    ),
    Setting(
        "1 % positives with a reference",
        "As above, after positives were thinned to 1 %.",
        rate=0.01,
        has_reference=True,
    ),
)


def surveys(
    examples: Examples, reference: Examples | None, *, setting: Setting
) -> tuple[SurveyDesign, SurveyDesign]:
    """The paper's survey, and the default one that knows the thresholds where they are known."""
    default = design_survey(
        SurveyRequest(
            privacy=Privacy.DISTRIBUTED,
            epsilon=Fraction(1),
            clients=len(examples),
            dropouts=Fraction(0),
            thresholds=THRESHOLDS if setting.are_thresholds_known else (),
            reference=reference,
        )
    )
    return _choice(examples, preset=Preset.PAPER), default


def _choice(
    examples: Examples,
    *,
    preset: Preset,
    epsilon: Fraction = Fraction(1),
    height: int | None = None,
    buckets: int | None = None,
) -> SurveyDesign:
    return design_survey(
        SurveyRequest(
            privacy=Privacy.DISTRIBUTED,
            epsilon=epsilon,
            clients=len(examples),
            dropouts=Fraction(0),
            preset=preset,
            height=height,
            buckets=buckets,
        )
    )


@dataclass(frozen=True, slots=True)
class Curve:
    """Errors against one quantity, everything else fixed."""

    axis: str
    at: tuple[float, ...]
    errors: dict[str, tuple[float, ...]]

    def slope(self, metric: str) -> float:
        """The log-log slope, by least squares."""
        return float(np.polyfit(np.log(self.at), np.log(self.errors[metric]), 1)[0])


@dataclass(frozen=True, slots=True)
class Sweep:
    """The surveys that a curve is made of."""

    title: str
    design: Callable[[Examples, Fraction], SurveyDesign]


def _fixed(examples: Examples, epsilon: Fraction) -> SurveyDesign:
    return _choice(examples, preset=Preset.PAPER, epsilon=epsilon)


def _default(examples: Examples, epsilon: Fraction) -> SurveyDesign:
    return _choice(examples, preset=Preset.DEFAULT, epsilon=epsilon)


def _tree(examples: Examples, epsilon: Fraction) -> SurveyDesign:
    """The paper's tree whose leaves follow the theory, to the nearest power of two."""
    height = round(log2(_leaves(examples, epsilon)))
    return _choice(examples, preset=Preset.PAPER, epsilon=epsilon, height=height, buckets=2**height)


def _flat(examples: Examples, epsilon: Fraction) -> SurveyDesign:
    """Noise on B buckets and nothing else, as the proof of the threshold bound has it."""
    leaves = _leaves(examples, epsilon)
    clients = len(examples)
    survey = Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(leaves),
        hierarchy=Hierarchy.flat(leaves),
        mechanisms=(Polya(epsilon, 1, clients),),
        minimum_reports=clients,
    )
    return SurveyDesign(survey, decode_options_for(Preset.PAPER, leaves))


def _leaves(examples: Examples, epsilon: Fraction) -> int:
    leaves: float = (float(epsilon) * len(examples)) ** (2 / 3)
    return round(leaves)


FIXED = Sweep(f"paper preset: height 10, {PAPER_BUCKETS} buckets", _fixed)
TREE = Sweep("paper's tree, B = (εM)^(2/3)", _tree)
FLAT = Sweep("paper's buckets, flat, B = (εM)^(2/3)", _flat)
DEFAULT = Sweep("default", _default)


def sweep(table: Scored, how: Sweep, *, trials: int) -> tuple[Curve, Curve]:
    """Errors against the number of clients at epsilon 1, and against epsilon at 80,000."""
    most = len(table.examples)
    generator = np.random.default_rng(7)
    clients = [rows(table.examples, count, generator) for count in _CLIENTS if count <= most]
    fixed = rows(table.examples, 80_000, generator)
    by_clients = [_errors(how, examples, Fraction(1), trials) for examples in clients]
    by_epsilon = [_errors(how, fixed, epsilon, trials) for epsilon in _EPSILONS]
    return (
        _curve("clients", [len(examples) for examples in clients], by_clients),
        _curve("epsilon", [float(epsilon) for epsilon in _EPSILONS], by_epsilon),
    )


def _errors(how: Sweep, examples: Examples, epsilon: Fraction, trials: int) -> dict[str, float]:
    return mean_errors(how.design(examples, epsilon), examples, trials=trials)


def _curve(axis: str, at: Sequence[float], found: list[dict[str, float]]) -> Curve:
    """Means over the thresholds that have an answer all along the curve."""
    means = [family_means(errors, *found) for errors in found]
    errors = {metric: tuple(row[metric][0] for row in means) for metric in METRICS}
    return Curve(axis, tuple(map(float, at)), errors)


def page(tables: list[Scored], trials: int, quick: bool) -> Iterator[str]:
    """The page, section by section, as they are measured."""
    yield (
        "# Errors under distributed differential privacy\n\n"
        "Written by `python -m experiments.distributed`; every figure comes from one run. "
        f"Mean absolute errors over {trials} trials at ε = 1, every row a client of its own; "
        "threshold metrics are means over the thresholds 1/11, 2/11, …, 10/11, over those at "
        "which both surveys have an answer in every trial (a precision needs enough rows above "
        "its threshold). *Ratio* is the paper preset's error over the default's; the paper "
        f"preset is a binary tree of height 10 with naive prefix sums and {PAPER_BUCKETS} "
        "quantile buckets."
    )
    for setting in SETTINGS:
        say(setting.title)
        choices = partial(surveys, setting=setting)
        found = [compare(table, setting, choices, trials=trials) for table in tables]
        yield section(setting.title, setting.about, found)
    yield from _slopes(tables[0] if quick else max(tables, key=_size), trials, quick=quick)


def _size(table: Scored) -> int:
    return len(table.examples)


def _slopes(table: Scored, trials: int, *, quick: bool) -> Iterator[str]:
    curves = {}
    for how in (FIXED, TREE, FLAT, DEFAULT):
        say(f"slopes, {how.title}")
        curves[how] = sweep(table, how, trials=trials)
    body = []
    for how, pair in curves.items():
        for curve in pair:
            slopes = [f"{curve.slope(metric):.2f}" for metric in METRICS]
            body.append([how.title, "M" if curve.axis == "clients" else "ε", *slopes])
    body.append(["theory", "M and ε", "-1.00", *["-0.67"] * 3])
    header = ["survey", "against", *(NAMES[metric] for metric in METRICS)]
    spans = (
        f"M from {min(curves[FIXED][0].at):,.0f} to {max(curves[FIXED][0].at):,.0f} at ε = 1, "
        f"and ε from 1/{1 / min(_EPSILONS)} to {max(_EPSILONS)} at 80,000 clients"
    )
    figure = (
        ""
        if quick
        else "\n\n![Errors against clients and epsilon](../docs/figures/distributed.png)"
    )
    yield (
        "## Slopes\n\n"
        f"Log-log slopes of the errors on {table.name}: {spans}. The theory promises errors of "
        "1/(εM) for ROC AUC (`thm:auccdp`) and (εM)^(-2/3) for thresholds (`thm:pra`). The first "
        "holds for a tree of fixed height. The proof of the second puts noise on each of "
        "B = (εM)^(2/3) flat buckets, which the third pair of rows does; a tree with as many "
        "leaves (the nearest power of two) falls faster, as h^(3/2)/(εM).\n\n"
        f"{markdown_table(header, body)}{figure}"
    )
    if not quick:
        _draw(curves)


def _draw(curves: dict[Sweep, tuple[Curve, Curve]]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, grid = plt.subplots(2, 2, figsize=(9, 6.5), sharey="row", layout="constrained")
    for column, axis in enumerate(("clients M (ε = 1)", "ε (80,000 clients)")):
        for row, (metric, power) in enumerate((("roc_auc", -1.0), ("recall", -2 / 3))):
            axes = grid[row][column]
            for how, pair in curves.items():
                curve = pair[column]
                axes.loglog(curve.at, curve.errors[metric], marker="o", label=how.title)
            start = curves[FIXED if metric == "roc_auc" else FLAT][column]
            guide = [start.errors[metric][0] * (x / start.at[0]) ** power for x in start.at]
            label = "theory's slope"
            axes.loglog(start.at, guide, color="grey", linestyle=":", label=label)
            axes.grid(visible=True, which="both", alpha=0.2)
            if row:
                axes.set_xlabel(axis)
            if not column:
                axes.set_ylabel(f"mean absolute error, {NAMES[metric]}")
    grid[0][0].legend(fontsize=8)
    _FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(_FIGURE, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    run(Path(__file__), __doc__, page, trials=60)
