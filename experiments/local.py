"""Errors under local differential privacy: the default survey against the paper's.

`python -m experiments.local` writes `experiments/local.md`; with --quick it prints a smaller
run and writes nothing.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

from experiments import oracles
from experiments.compared import Setting, compare, prepared, section
from experiments.data import Scored
from experiments.errors import THRESHOLDS
from experiments.page import markdown_table, run, say
from fedassay.estimate import NotEnoughData
from fedassay.examples import Examples, ScoredClients
from fedassay.mechanisms import Privacy
from fedassay.metrics import roc_auc
from fedassay.metrics.delta_method import CLEAR_OF_NOISE
from fedassay.planning.forecast import expected_histogram
from fedassay.planning.request import Preset, SurveyRequest
from fedassay.planning.score_model import from_reference
from fedassay.planning.search import (
    PAPER_BUCKETS,
    PAPER_HEIGHT,
    SurveyDesign,
    design_survey,
)
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import simulate

_EPSILONS = (Fraction(5), Fraction(1))


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


def surveys(
    examples: Examples, reference: Examples | None, *, setting: Setting, epsilon: Fraction
) -> tuple[SurveyDesign, SurveyDesign]:
    """The paper's survey and the default one."""
    paper = _choice(examples, epsilon, preset=Preset.PAPER)
    return paper, _choice(examples, epsilon, reference=reference, rate=setting.rate)


def _choice(
    examples: Examples,
    epsilon: Fraction,
    *,
    preset: Preset = Preset.DEFAULT,
    reference: Examples | None = None,
    rate: float | None = None,
) -> SurveyDesign:
    """Both know the number of clients; the default knows the thresholds and rare positives."""
    return design_survey(
        SurveyRequest(
            privacy=Privacy.LOCAL,
            epsilon=epsilon,
            clients=len(examples),
            positive_rate=rate if preset is Preset.DEFAULT else None,
            preset=preset,
            thresholds=THRESHOLDS if preset is Preset.DEFAULT else (),
            reference=reference,
        )
    )


def page(tables: list[Scored], trials: int, quick: bool) -> Iterator[str]:
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
            say(title)
            choices = partial(surveys, setting=setting, epsilon=epsilon)
            found = [compare(table, setting, choices, trials=trials) for table in tables]
            yield section(title, setting.about, found)
    say("too few positives")
    yield _refusals(tables, trials)
    say("oracles")
    yield _oracles(quick=quick)


def _refusals(tables: list[Scored], trials: int) -> str:
    """What the default survey says of 1 % positives among 10,000 clients at epsilon 1."""
    hard = Setting("", "", rows=10_000, rate=0.01)
    body, said = [], ""
    for table in tables:
        examples, _ = prepared(table, hard)
        design = _choice(examples, Fraction(1), rate=0.01)
        found = [
            roc_auc(
                simulate(
                    design.survey,
                    ScoredClients(examples, None, len(examples)),
                    decode_options=design.decode_options,
                    randomness=SimulatedRandomness(trial),
                )
            )
            for trial in range(trials)
        ]
        refused = [each for each in found if isinstance(each, NotEnoughData)]
        said = refused[0].reason if refused else said
        enough = _clients_that_would_do(table, design, len(examples))
        body.append(
            [table.name, f"{len(examples):,}", f"{len(refused)} of {trials}", f"{enough:,.0f}"]
        )
    return (
        "## 1 % positives, 10,000 clients, ε = 1\n\nHere local privacy has no answer, and the "
        "tool says so instead of printing noise.\n\n"
        "The last column is what the closed form asks for at the true rate.\n\n"
        f"{markdown_table(['table', 'clients', 'trials without a ROC AUC', 'would do'], body)}\n\n"
        f"In its words, for one trial: “{said}”"
    )


def _clients_that_would_do(table: Scored, design: SurveyDesign, clients: int) -> float:
    """How many it takes for positives to stand clear of their noise."""
    model = from_reference(table.examples, examples=float(clients), positive_rate=0.01)
    expected = expected_histogram(design.survey, model, clients=float(clients))
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
        f"{markdown_table(header, body)}\n\n"
        f"It wins most at ε = {best.epsilon:g}, d = {best.size}: a variance "
        f"{best.gain:.2f} times smaller, hence errors {best.gain**0.5:.2f} times smaller; where "
        "k = 1 it is randomised response, and for many cells unary encoding comes to the same."
    )


if __name__ == "__main__":
    run(Path(__file__), __doc__, page, trials=60)
