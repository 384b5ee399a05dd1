"""Errors under local differential privacy: the default survey against the paper's.

`python -m experiments.local` writes `experiments/local.md`; with --quick it prints a smaller
run and writes nothing.
"""

import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from pathlib import Path

import numpy as np

from experiments import oracles
from experiments.data import SHARED, Scored, halves, load, rows, thinned
from experiments.errors import (
    METRICS,
    THRESHOLDS,
    answered,
    family_means,
    geometric_mean,
    mean_errors,
)
from fedassay.engines.simulation import simulate
from fedassay.engines.tables import Cohort
from fedassay.estimate import NotEnoughData
from fedassay.examples import Examples
from fedassay.metrics import roc_auc
from fedassay.metrics.delta import CLEAR_OF_NOISE
from fedassay.planner import (
    PAPER_BUCKETS,
    PAPER_HEIGHT,
    Choice,
    choose,
)
from fedassay.prediction import expected_histogram
from fedassay.randomness import SimulatedRandomness
from fedassay.request import (
    Preset,
    Privacy,
    Request,
)
from fedassay.scoremodel import from_reference

_PAGE = Path(__file__).with_name("local.md")
_NAMES = {
    "roc_auc": "ROC AUC",
    "precision": "precision",
    "recall": "recall",
    "accuracy": "accuracy",
}
_EPSILONS = (Fraction(5), Fraction(1))


@dataclass(frozen=True, slots=True)
class Setting:
    """A kind of federation in which both surveys are tried."""

    title: str
    about: str
    rows: int | None = None
    rate: float | None = None
    has_reference: bool = False


SETTINGS = (
    Setting("All rows", "Every row is a client."),
    Setting(
        "With a reference",
        "Half of the rows are a public, labelled reference, the other half are the clients.",
        has_reference=True,
    ),
    Setting("50,000 clients", "A random 50,000 of the rows.", rows=50_000),
    Setting("10,000 clients", "A random 10,000 of the rows.", rows=10_000),
    Setting("5 % positives", "All negatives, and positives thinned to 5 %.", rate=0.05),
)


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


def compare(table: Scored, setting: Setting, epsilon: Fraction, *, trials: int) -> Comparison:
    """Simulate both surveys on one table."""
    examples, reference = prepared(table, setting)
    paper = _choice(examples, epsilon, preset=Preset.PAPER)
    default = _choice(examples, epsilon, reference=reference, rate=setting.rate)
    found = [mean_errors(choice, examples, trials=trials) for choice in (paper, default)]
    return Comparison(
        table.name,
        len(examples),
        family_means(*found),
        (answered(found[0]), answered(found[1])),
        _shape(default),
    )


def _choice(
    examples: Examples,
    epsilon: Fraction,
    *,
    preset: Preset = Preset.DEFAULT,
    reference: Examples | None = None,
    rate: float | None = None,
) -> Choice:
    """Both know the number of clients; the default knows the thresholds and rare positives."""
    return choose(
        Request(
            privacy=Privacy.LOCAL,
            epsilon=epsilon,
            clients=len(examples),
            positive_rate=rate if preset is Preset.DEFAULT else None,
            preset=preset,
            thresholds=THRESHOLDS if preset is Preset.DEFAULT else (),
            reference=reference,
        )
    )


def _shape(choice: Choice) -> str:
    survey = choice.survey
    cells = sorted(set(survey.hierarchy.cells_per_level))
    kinds = ", ".join(sorted({mechanism.kind for mechanism in survey.mechanisms}))
    levels = survey.hierarchy.levels
    return f"{survey.grid.cells} leaves, {levels} x {'/'.join(map(str, cells))} ({kinds})"


def page(tables: list[Scored], *, trials: int, quick: bool) -> Iterator[str]:
    """The page, section by section."""
    yield (
        "# Errors under local differential privacy\n\n"
        f"Mean absolute errors against the rows' own metrics, over {trials} trials; written by "
        "`python -m experiments.local`. Thresholds are 1/11 to 10/11, as in the paper; a "
        "threshold metric's error is the mean over those at which both surveys have an answer "
        "in every trial. *Ratio* is the paper preset's error over the default's, in the same "
        f"run; the paper preset is a binary tree of height {PAPER_HEIGHT}, unary encoding on "
        f"every level, clients split evenly, naive prefix sums and {PAPER_BUCKETS} quantile "
        "buckets. Ratios above 1 are gains."
    )
    for setting in SETTINGS:
        for epsilon in _EPSILONS:
            title = f"{setting.title}, ε = {epsilon}"
            _say(title)
            found = [compare(table, setting, epsilon, trials=trials) for table in tables]
            yield _section(title, setting.about, found)
    _say("too few positives")
    yield _refusals(tables, trials)
    _say("oracles")
    yield _oracles(quick=quick)


def _section(title: str, about: str, found: list[Comparison]) -> str:
    header = ["table", "clients", "fan-outs"]
    for metric in METRICS:
        header += [f"{_NAMES[metric]}: paper", "default", "ratio"]
    body = []
    for row in found:
        cells = [row.name, f"{row.clients:,}", row.shape]
        for metric in METRICS:
            paper, default = row.errors[metric]
            cells += [_figure(paper), _figure(default), f"**{_figure(row.ratio(metric))}**"]
        body.append(cells)
    means = [
        f"{_NAMES[metric]} {_figure(geometric_mean([row.ratio(metric) for row in found]))}"
        for metric in METRICS
    ]
    together = geometric_mean([row.ratio(metric) for row in found for metric in METRICS[1:]])
    counts = "; ".join(f"{row.name} {row.answered[0]} and {row.answered[1]}" for row in found)
    return (
        f"## {title}\n\n{about}\n\n{_table(header, body)}\n\n"
        f"Geometric means of the ratios: {', '.join(means)}; the three threshold metrics "
        f"together {_figure(together)}. Thresholds with a precision in every trial (paper and "
        f"default): {counts}."
    )


def _figure(value: float) -> str:
    """Two digits, or a dash where some trial had no answer."""
    return f"{value:.2g}" if isfinite(value) else "–"


def _refusals(tables: list[Scored], trials: int) -> str:
    """What the default survey says of 1 % positives among 10,000 clients at epsilon 1."""
    hard = Setting("", "", rows=10_000, rate=0.01)
    body, said = [], ""
    for table in tables:
        examples, _ = prepared(table, hard)
        choice = _choice(examples, Fraction(1), rate=0.01)
        found = [
            roc_auc(
                simulate(
                    choice.survey,
                    Cohort(examples, None, len(examples)),
                    readout=choice.readout,
                    randomness=SimulatedRandomness(trial),
                )
            )
            for trial in range(trials)
        ]
        refused = [each for each in found if isinstance(each, NotEnoughData)]
        said = refused[0].reason if refused else said
        enough = _clients_that_would_do(table, choice, len(examples))
        body.append(
            [table.name, f"{len(examples):,}", f"{len(refused)} of {trials}", f"{enough:,.0f}"]
        )
    return (
        "## 1 % positives, 10,000 clients, ε = 1\n\nHere local privacy has no answer, and the "
        "tool says so instead of printing noise.\n\n"
        "The last column is what the closed form asks for at the true rate.\n\n"
        f"{_table(['table', 'clients', 'trials without a ROC AUC', 'would do'], body)}\n\n"
        f"In its words, for one trial: “{said}”"
    )


def _clients_that_would_do(table: Scored, choice: Choice, clients: int) -> float:
    """How many it takes for positives to stand clear of their noise."""
    model = from_reference(table.examples, examples=float(clients), positive_rate=0.01)
    expected = expected_histogram(choice.survey, model, clients=float(clients))
    weights = np.zeros_like(expected.counts)
    weights[1] = 1.0
    growth = CLEAR_OF_NOISE * expected.noise.variance(weights) ** 0.5 / expected.total_positives
    return clients * expected.noise.reports_for(growth)


def _oracles(*, quick: bool) -> str:
    """Variances of the three oracles, over d and epsilon."""
    sizes = oracles.SIZES[:3] if quick else oracles.SIZES
    found = [
        oracles.compare(epsilon, size, trials=30 if quick else 200)
        for epsilon in oracles.EPSILONS
        for size in sizes
    ]
    header = ["ε", "d", "k", "unary", "response", "subset", "subset, simulated", "gain"]
    body = [
        [f"{row.epsilon:g}", f"{row.size}", f"{row.chosen}"]
        + [f"{x:.3g}" for x in (row.unary, row.response, row.subset, row.simulated)]
        + [f"**{row.gain:.2f}**"]
        for row in found
    ]
    best = max(found, key=lambda row: row.gain)
    return (
        "## A third oracle: subset selection\n\nVariance of a cell's debiased count per report, "
        "for evenly filled cells and a known total; d counts label × cell. *Gain* is the better "
        "of unary encoding and randomised response over subset selection.\n\n"
        f"{_table(header, body)}\n\n"
        f"It wins most at ε = {best.epsilon:g}, d = {best.size}: a variance "
        f"{best.gain:.2f} times smaller, hence errors {best.gain**0.5:.2f} times smaller; where "
        "k = 1 it is randomised response, and for many cells unary encoding comes to the same."
    )


def _table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *body))


def _say(message: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {message} ...", file=sys.stderr, flush=True)


def main() -> None:
    """Measure and write the page."""
    parser = ArgumentParser(prog="python -m experiments.local", description=__doc__)
    parser.add_argument("--data", type=Path, default=SHARED, help="folder of scored tables")
    parser.add_argument("--quick", action="store_true", help="a smaller run, printed only")
    parser.add_argument("--trials", type=int, default=60, help="for each error (default: 60)")
    arguments = parser.parse_args()
    quick: bool = arguments.quick
    trials: int = 5 if quick else arguments.trials
    text = "\n\n".join(page(load(arguments.data), trials=trials, quick=quick)) + "\n"
    print(text)
    if not quick:
        _PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
