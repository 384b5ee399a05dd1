"""What more than two classes cost, and how they are calibrated: designs beside the naive one.

`python -m experiments.classes` writes `experiments/classes.md`; with --quick it prints a smaller
run and writes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from experiments.data import SHARED, Scored
from experiments.page import markdown_table, run, say
from fedassay.classes.class_design import ClassDesign
from fedassay.classes.design import design_classes
from fedassay.classes.exact_figures import exact_figures
from fedassay.classes.held_out_rows import held_out_classes
from fedassay.classes.multi_calibrators import ClassMethod
from fedassay.classes.result import simulate_cohort
from fedassay.classes.rows import ClassRows
from fedassay.classes.table import read_class_cohort
from fedassay.classes.tallies import ClassCohort
from fedassay.mechanisms import Privacy, Unit, UnitKind
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SimulatedRandomness
from fedassay.tables.columns import Columns

_TABLE = "scores_nycflights13_four_lgbm.parquet"
_FIGURES = (
    "roc_auc/macro",
    "roc_auc/3",
    "average_precision/macro",
    "accuracy",
    "log_loss",
    "brier",
    "ece/classwise",
)
_SETTINGS = (
    (Privacy.SECURE, None),
    (Privacy.DISTRIBUTED, Fraction(1)),
    (Privacy.DISTRIBUTED, Fraction(1, 10)),
    (Privacy.LOCAL, Fraction(5)),
    (Privacy.LOCAL, Fraction(1)),
)
_QUICK_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Tried:
    """What a design came to: mean absolute errors, and how often intervals held."""

    errors: dict[str, str]
    held: str


def request(privacy: Privacy, epsilon: Fraction | None, rows: int) -> SurveyRequest:
    """What a user asks who says no more than this."""
    return SurveyRequest(privacy=privacy, epsilon=epsilon, clients=rows, dropouts=Fraction(0))


def joined(cohort: ClassCohort, times: int) -> ClassCohort:
    """The same rows with each class cut into so many by chance: more classes of one table."""
    generator = np.random.default_rng(0)
    rows = cohort.rows
    part = generator.integers(times, size=len(rows))
    shares = generator.dirichlet(np.full(times, 8.0), size=(len(rows), rows.classes))
    # The true part gets the larger share more often, so that parts can be told apart a little.
    own = np.arange(len(rows))
    best = shares[own, rows.labels].argmax(axis=1)
    part = np.where(generator.random(len(rows)) < 0.5, best, part)
    matrix = (rows.scores[:, :, None] * shares).reshape(len(rows), -1)
    labels = rows.labels * times + part
    return ClassCohort.of(ClassRows(labels, matrix, range(rows.classes * times)))


def tried(
    cohort: ClassCohort,
    asked: SurveyRequest,
    design: ClassDesign,
    exact: dict[str, float | None],
    trials: int,
) -> Tried:
    """Errors of a design against the exact figures of the same rows."""
    survey = design_classes(asked, cohort.rows.names, design=design)
    off: dict[str, list[float]] = {name: [] for name in _FIGURES}
    held = []
    for trial in range(trials):
        found = simulate_cohort(survey, cohort, randomness=SimulatedRandomness(trial), exact=exact)
        for name in _FIGURES:
            estimate, value = found[name], exact[name]
            if value is not None:
                off[name].append(abs(estimate.value - value))
                held.append(value in estimate.interval(0.95))
    errors = {
        name: "no answer" if np.isnan(errors).any() else f"{np.mean(errors):.1e}"
        for name, errors in off.items()
    }
    return Tried(errors, f"{100 * np.mean(held):.0f} %")


def _designs(cohort: ClassCohort, trials: int) -> str:
    exact = exact_figures(cohort.rows)
    body = []
    for privacy, epsilon in _SETTINGS:
        asked = request(privacy, epsilon, len(cohort.rows))
        chosen = design_classes(asked, cohort.rows.names).design
        for design in ClassDesign if privacy.spends_epsilon else (ClassDesign.EVERY,):
            say(f"{privacy.value} {epsilon} {design.value}, {cohort.rows.classes} classes")
            times = trials if privacy.spends_epsilon else 1
            made = tried(cohort, asked, design, exact, times)
            name = f"**{design.value}**" if design is chosen else design.value
            if design is ClassDesign.EVERY and privacy.spends_epsilon:
                name += " (naive ε/K)"
            spent = "" if epsilon is None else f", ε = {float(epsilon):g}"
            body.append([f"{privacy.value}{spent}", name, *made.errors.values(), made.held])
    return markdown_table(["privacy", "design", *_FIGURES, "intervals held"], body)


def _calibration(cohort: ClassCohort, trials: int) -> str:
    body = []
    units = [("one example", Unit(), None), ("one client of 20", Unit(UnitKind.CLIENT, 20), 20)]
    for named, unit, size in units:
        held = cohort
        if size is not None:
            owners = np.random.default_rng(1).permutation(len(cohort.rows)) // size
            held = ClassCohort.of(cohort.rows, owners.astype(np.int64))
        for privacy, epsilon in _SETTINGS:
            say(f"calibration {privacy.value} {epsilon} {named}")
            asked = SurveyRequest(
                privacy=privacy,
                epsilon=epsilon,
                clients=held.held.clients,
                unit=unit if privacy.spends_epsilon else Unit(),
                dropouts=Fraction(0),
            )
            errors: dict[str, list[float]] = {}
            for trial in range(trials):
                for tested in held_out_classes(asked, held, seed=trial):
                    errors.setdefault("as they are", []).append(tested.before["ece/classwise"])
                    name = tested.calibrator.method.value
                    errors.setdefault(name, []).append(tested.after["ece/classwise"])
            means = {name: float(np.mean(values)) for name, values in errors.items()}
            least = min(means, key=lambda name: means[name])
            spent = "" if epsilon is None else f", ε = {float(epsilon):g}"
            body.append(
                [
                    f"{privacy.value}{spent}",
                    named,
                    *(
                        f"**{value:.4f}**" if name == least else f"{value:.4f}"
                        for name, value in means.items()
                    ),
                ]
            )
    methods = [method.value for method in ClassMethod]
    return markdown_table(["privacy", "unit", "as they are", *methods], body)


def sharpened(cohort: ClassCohort) -> ClassCohort:
    """The same rows with probabilities squared: a classifier that is far too sure."""
    told = cohort.rows.scores**2
    told = told / told.sum(axis=1, keepdims=True)
    return ClassCohort.of(ClassRows(cohort.rows.labels, told, cohort.rows.names))


def page(_: list[Scored], trials: int, quick: bool) -> Iterator[str]:
    """The page, part by part."""
    cohort = read_class_cohort(SHARED / _TABLE, "p*", Columns(label="label"))
    if quick:
        cohort = ClassCohort.of(cohort.rows.rows(np.arange(_QUICK_ROWS)))
    rows = len(cohort.rows)
    yield "# More than two classes"
    yield (
        f"Written by `python -m experiments.classes` from nycflights13_four_lgbm, {rows:,} rows, "
        f"each a client. Mean absolute error over {trials} trials (exact sums: one) against the "
        "exact figures of the same rows, so that sampling is no part of it: what is left is noise "
        "and binning. The design in bold is the planner's choice. `no answer`: noise drowns a "
        "class in some trial, and the tool says so. *intervals held*: the share of 95 % intervals "
        "of the population's figure, over all figures and trials, that hold the rows' figure; "
        "sampling is part of the interval and not of the error: more than 95 % are expected."
    )
    yield _designs(cohort, trials)
    yield "## Calibration"
    yield (
        "Classwise calibration error (cwECE, 20 bins of equal width) on half of the clients, after "
        "calibration on the other half with all of ε, mean over a few splits. The best is bold. "
        "First the probabilities as they are, then squared and normalised: far too sure."
    )
    few = max(trials // 4, 1)
    yield _calibration(cohort, few)
    yield "Squared:"
    yield _calibration(sharpened(cohort), few)
    yield (
        "Maddock, Cormode and Maple (arXiv 2510.01987) find binning best without noise and "
        "temperature best with it. The first holds here. The second holds only where noise is "
        "large: for clients of 20 rows under distributed privacy at ε = 0.1 one temperature is "
        "the best of the methods. With less noise binning and vector scaling stay ahead: a "
        "temperature is only part of what is wrong with these probabilities. Where noise is "
        "larger still the best is to leave probabilities as they are, and neither FedTemp nor "
        "the others always see that (local, ε = 1)."
    )
    yield "## More classes"
    yield (
        "The same rows with each of the four classes cut into five by chance: twenty classes. "
        "What ε/K costs grows with K; `own` grows far less."
    )
    yield _designs(joined(cohort, 5), max(trials // 4, 1))


if __name__ == "__main__":
    run(Path(__file__), __doc__, page, trials=12)
