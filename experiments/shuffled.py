"""What a shuffler is worth: the error of ROC AUC against clients, in four privacy models.

`python -m experiments.shuffled` writes `experiments/shuffled.md` and `docs/figures/shuffled.png`;
with --quick it prints a smaller run and writes nothing.
"""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from experiments.data import ROOT, Scored
from experiments.page import markdown_table, run, say
from fedassay.examples import Examples, ScoredClients
from fedassay.mechanisms import Privacy, RandomizedResponse, UnaryEncoding
from fedassay.mechanisms.shuffled_promise import DEFAULT_DELTA, ShuffledPromise, largest_local
from fedassay.metrics.exact_rows import row_metrics
from fedassay.planning.crowd import Make
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import SurveyDesign, design_survey
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.two_steps import assess_cohort

_TABLE = "acs_income_lgbm"
_CLIENTS = (1_000, 10_000, 100_000, 1_000_000)
_EPSILON = Fraction(1)
_MODELS = (Privacy.SECURE, Privacy.DISTRIBUTED, Privacy.SHUFFLED, Privacy.LOCAL)
_CROWDS = (100, 1_000, 10_000, 100_000, 1_000_000)
_FIGURE = ROOT / "docs" / "figures" / "shuffled.png"
_COLOURS = dict(zip(_MODELS, ("tab:green", "tab:blue", "tab:orange", "tab:red"), strict=True))


def design(clients: int, privacy: Privacy) -> SurveyDesign:
    """The one survey that a user gets who says no more than this."""
    epsilon = _EPSILON if privacy.spends_epsilon else None
    return design_survey(
        SurveyRequest(privacy=privacy, epsilon=epsilon, clients=clients, dropouts=Fraction(0))
    )


def error(made: SurveyDesign, rows: Examples, trials: int) -> float:
    """The root mean square error of ROC AUC against that of the very rows; NaN without answer."""
    exact = float(row_metrics(rows, ())["roc_auc"] or 0.0)
    found = []
    for seed in range(trials):
        result = assess_cohort(
            made,
            ScoredClients(rows, None, len(rows)),
            thresholds=(),
            randomness=SimulatedRandomness(seed),
        )
        estimate = result["roc_auc"]
        found.append(estimate.value - exact if estimate.is_available else np.nan)
    return float(np.sqrt(np.mean(np.square(found))))


def measured(table: Examples, trials: int, sizes: tuple[int, ...]) -> dict[Privacy, list[float]]:
    """Errors by model, one for each number of clients."""
    generator = np.random.default_rng(1)
    errors: dict[Privacy, list[float]] = {model: [] for model in _MODELS}
    for clients in sizes:
        rows = table.rows(generator.integers(len(table), size=clients))
        for model in _MODELS:
            say(f"{clients:,} clients, {model.value}")
            errors[model].append(error(design(clients, model), rows, trials))
    return errors


def _table(errors: dict[Privacy, list[float]], sizes: tuple[int, ...]) -> str:
    header = ["clients", *(model.value for model in _MODELS), "local over shuffled"]
    body = []
    for place, clients in enumerate(sizes):
        values = [errors[model][place] for model in _MODELS]
        times = values[3] / values[2]
        shown = ["no answer" if np.isnan(value) else f"{value:.1e}" for value in values]
        body.append([f"{clients:,}", *shown, "-" if np.isnan(times) else f"{times:.1f}"])
    return markdown_table(header, body)


def _locals(delta: Fraction) -> str:
    header = ["honest reports on a level", "ε", *(name for name, _ in _MAKES)]
    body = []
    for reports in _CROWDS:
        for epsilon in (Fraction(1, 4), Fraction(1)):
            promise = ShuffledPromise(epsilon, delta)
            found = [
                largest_local(make, promise, reports=reports, cap=Fraction(10))
                for _, make in _MAKES
            ]
            shown = [f"{float(each):.2f}" for each in found]
            body.append([f"{reports:,}", f"{float(epsilon):g}", *shown])
    return markdown_table(header, body)


def _response(cells: int) -> Make:
    return lambda epsilon: RandomizedResponse(epsilon, cells)


_MAKES: tuple[tuple[str, Make], ...] = (
    ("grr, 4 cells", _response(4)),
    ("grr, 16 cells", _response(16)),
    ("grr, 64 cells", _response(64)),
    ("oue", UnaryEncoding),
)


def _draw(errors: dict[Privacy, list[float]], sizes: tuple[int, ...]) -> None:
    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for model in _MODELS:
        label = f"{model.value}, ε = 1" if model.spends_epsilon else model.value
        axes.loglog(sizes, errors[model], marker="o", color=_COLOURS[model], label=label)
    axes.set_xlabel("clients")
    axes.set_ylabel("error of ROC AUC (root mean square)")
    axes.grid(visible=True, which="both", alpha=0.2)
    axes.legend()
    figure.savefig(_FIGURE, dpi=110, metadata={"Software": None})


def page(tables: list[Scored], trials: int, quick: bool) -> Iterator[str]:
    """The page, part by part."""
    chosen = next((each for each in tables if each.name == _TABLE), tables[0])
    sizes = _CLIENTS[:2] if quick else _CLIENTS
    yield "# What a shuffler is worth"
    yield (
        f"Written by `python -m experiments.shuffled` from {chosen.name}, whose rows were drawn "
        f"with replacement. Root mean square error of ROC AUC over {trials} trials against the "
        "value of the very rows: what is left is noise and binning. Each row is a client; ε = 1; "
        "one survey (`--steps 1`), default grids; shuffled at δ = 1e-8 with at most ε = 5 in a "
        "single report. `no answer`: noise drowns the metric in some trial, and the tool says so."
    )
    errors = measured(chosen.examples, trials, sizes)
    yield _table(errors, sizes)
    if not quick:
        _draw(errors, sizes)
        yield "![Error of ROC AUC against clients in four models](../docs/figures/shuffled.png)"
    yield "## The local epsilon that a crowd allows"
    yield (
        "The largest ε of a single report with which so many honest reports on a level are "
        "together (ε, 1e-8)-private, by the [privacy blanket](../docs/threat-model-shuffled.md); "
        "a survey takes at most 5 of it unless told otherwise (`--largest-local`), and "
        "no client gives more than 10."
    )
    yield _locals(DEFAULT_DELTA)


if __name__ == "__main__":
    run(Path(__file__), __doc__, page, trials=40)
