"""The planner against simulation: predicted errors, suggested clients, chosen surveys.

`python -m experiments.planning` writes `experiments/planning.md` and
`docs/figures/planning.png`; with --quick it prints a smaller run and writes nothing.
"""

import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, inf, isfinite
from pathlib import Path

import numpy as np

from experiments.data import ROOT, SHARED, load
from experiments.exhaustive import SETTINGS, compare_with_all
from experiments.populations import Population, drawn, population, synthetic
from fedassay.mechanisms import Privacy
from fedassay.planning.forecast import forecast, model_for
from fedassay.planning.monte_carlo import MonteCarlo, forecast_ece
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.planning.solve import Target, clients_needed

_PAGE = Path(__file__).with_name("planning.md")
_FIGURE = ROOT / "docs" / "figures" / "planning.png"
METRICS = ("roc_auc", "precision@0.5", "recall@0.5", "accuracy@0.5", "brier", "ece")
LIMITS = dict.fromkeys(METRICS, 0.15) | {"ece": 0.30}
MODELS = (
    (Privacy.DISTRIBUTED, Fraction(1, 2)),
    (Privacy.DISTRIBUTED, Fraction(1)),
    (Privacy.LOCAL, Fraction(1)),
    (Privacy.LOCAL, Fraction(2)),
    (Privacy.LOCAL, Fraction(5)),
)
SIZES: tuple[tuple[int, float | None], ...] = ((20_000, None), (20_000, 0.05), (100_000, None))
"""Clients, and the rate of positives where it is not the table's own."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Predicted and simulated errors of one metric in one case."""

    table: str
    request: str
    privacy: Privacy
    metric: str
    noise: tuple[float, float]
    """Predicted and simulated."""
    total: tuple[float, float]
    answered: float

    @property
    def ratios(self) -> tuple[float, float]:
        """Predicted over simulated: noise, and the whole standard error."""
        return _ratio(*self.noise), _ratio(*self.total)


def _ratio(predicted: float, simulated: float) -> float:
    """One where both are nil, as for a calibration error that is always read as nil."""
    if simulated == 0.0:
        return 1.0 if predicted == 0.0 else inf
    return predicted / simulated


def compare(pop: Population, request: SurveyRequest, *, trials: int) -> list[Comparison]:
    """Choose and predict from the reference, simulate on the population."""
    clients = request.clients or 0
    design, model = design_survey(request), model_for(request)
    forecasts = forecast(
        design.survey, model, clients=clients, decode_options=design.decode_options
    )
    forecasts["ece"] = forecast_ece(
        MonteCarlo(design.survey, model, clients, design.decode_options),
        generator=np.random.default_rng(0),
        draws=max(100, trials // 2),
    )
    wanted = tuple(name for name in METRICS if forecasts[name].is_available)
    found = drawn(
        design,
        pop.shares(design, request.positive_rate),
        clients=clients,
        metrics=wanted,
        trials=trials,
    )
    return [
        Comparison(
            pop.name,
            _title(request),
            request.privacy,
            name,
            (forecasts[name].noise_sd, found[name].noise_sd),
            (forecasts[name].standard_error, found[name].standard_error),
            found[name].answered,
        )
        for name in wanted
    ]


def _title(request: SurveyRequest) -> str:
    rate = "own rate" if request.positive_rate is None else f"{request.positive_rate:.0%} positives"
    epsilon = float(request.epsilon or 0)
    return f"{request.privacy.value} ε = {epsilon:g}, {request.clients:,} clients, {rate}"


def comparisons(pops: Sequence[Population], *, trials: int, quick: bool) -> list[Comparison]:
    """The whole grid."""
    found = []
    for pop in pops:
        for privacy, epsilon in MODELS:
            for clients, rate in SIZES[:1] if quick else SIZES:
                request = SurveyRequest(
                    privacy=privacy,
                    epsilon=epsilon,
                    clients=clients,
                    dropouts=Fraction(0),
                    positive_rate=rate,
                    thresholds=(0.5,),
                    reference=pop.reference,
                )
                _say(f"{pop.name}: {_title(request)}")
                found += compare(pop, request, trials=trials)
    return found


def _accuracy_section(found: list[Comparison], trials: int) -> str:
    body = []
    for metric in METRICS:
        rows = [row for row in found if row.metric == metric and row.answered == 1.0]
        cells = [metric, str(len(rows))]
        for index in (0, 1):
            ratios = np.array([row.ratios[index] for row in rows])
            inside = np.abs(ratios - 1.0) <= LIMITS[metric]
            usual = ratios[np.isfinite(ratios) & (ratios > 0.0)]
            cells += [
                f"{exp(float(np.log(usual).mean())):.2f}",
                f"{ratios.min():.2f} to {ratios.max():.2f}",
                f"{int(inside.sum())}",
            ]
        body.append([*cells, f"{LIMITS[metric]:.0%}"])
    outside = [
        f"{row.table}, {row.request}: {row.metric} {row.ratios[1]:.2f}"
        for row in found
        if row.answered == 1.0 and abs(row.ratios[1] - 1.0) > LIMITS[row.metric]
    ]
    partial = sum(row.answered < 1.0 for row in found)
    nil = sum(row.answered == 1.0 and row.total == (0.0, 0.0) for row in found)
    header = ["metric", "cases", "noise: mean ratio", "range", "within",
              "standard error: mean ratio", "range", "within", "limit"]  # fmt: skip
    misses = "; ".join(outside) if outside else "none"
    return (
        "## Predicted against simulated errors\n\n"
        "*Noise* is the spread of the estimate minus the same clients' exact value (for these "
        "rows); *standard error* that of the estimate itself, over clients drawn anew from "
        "the population (sampling and noise together). Ratios are predicted over simulated; "
        f"with {trials} trials a ratio itself is uncertain by {100 / (2 * trials) ** 0.5:.0f} % "
        "(one standard deviation). The calibration error's own noise depends on which rows there "
        "are, so only its standard error has a limit to keep.\n\n"
        f"{_table(header, body)}\n\n"
        f"Cases whose standard error is off by more than the limit: {misses}. Left out: {partial} "
        f"cases in which some trial had no answer. In {nil} cases the calibration error was "
        "predicted to be read as nil and was, in every trial.\n\n"
        "![Predicted against simulated standard errors](../docs/figures/planning.png)"
    )


@dataclass(frozen=True, slots=True)
class Planned:
    """A wish to be tried: which population, and within what of which metric."""

    table: str
    privacy: Privacy
    epsilon: Fraction | None
    target: Target


PLANNED = (
    Planned("acs_income_lgbm", Privacy.LOCAL, Fraction(2), Target("roc_auc", 0.005)),
    Planned("nycflights13_xgb", Privacy.LOCAL, Fraction(5), Target("recall@0.5", 0.01)),
    Planned("covertype_lr", Privacy.DISTRIBUTED, Fraction(1), Target("roc_auc", 0.005)),
    Planned("nycflights13_xgb", Privacy.DISTRIBUTED, Fraction(1, 10), Target("roc_auc", 0.02)),
    Planned("acs_income_lgbm", Privacy.SECURE, None, Target("precision@0.5", 0.01)),
    Planned("covertype_lr", Privacy.LOCAL, Fraction(1), Target("accuracy@0.5", 0.01)),
)


def _reached(pop: Population, request: SurveyRequest, target: Target, *, trials: int) -> float:
    """The share of surveys whose error against the population stays below the target."""
    design = design_survey(request)
    truth = pop.truth(None, (0.5,))[target.metric]
    values = drawn(
        design,
        pop.shares(design, None),
        clients=request.clients or 0,
        metrics=(target.metric,),
        trials=trials,
    )[target.metric].estimated
    return float((np.abs(values - truth) <= target.error).mean())


def _targets_section(pops: dict[str, Population], *, trials: int) -> str:
    body = []
    for case in PLANNED:
        if case.table not in pops:
            continue
        pop = pops[case.table]
        request = SurveyRequest(
            privacy=case.privacy,
            epsilon=case.epsilon,
            dropouts=Fraction(0),
            thresholds=(0.5,),
            reference=pop.reference,
        )
        clients = clients_needed(request, case.target)
        fewer = round(0.7 * clients)
        _say(f"{case.target.metric} within {case.target.error} on {case.table}: {clients:,}")
        shares = [
            _reached(pop, replace(request, clients=count), case.target, trials=trials)
            for count in (clients, fewer)
        ]
        epsilon = "–" if case.epsilon is None else f"{float(case.epsilon):g}"
        body.append(
            [
                case.table,
                case.privacy.value,
                epsilon,
                f"{case.target.metric} ± {case.target.error:g}",
                f"{clients:,}",
                f"**{shares[0]:.1%}**",
                f"{fewer:,}",
                f"{shares[1]:.1%}",
            ]
        )
    header = ["table", "privacy", "ε", "wish", "clients suggested", "reach it",
              "70 % of them", "reach it"]  # fmt: skip
    return (
        "## Clients for a wanted error\n\n"
        "The share of surveys whose error against the population's value stays below the wish, "
        f"over {trials} surveys of clients drawn anew; the planner knows a reference of the "
        "same scores. 95 % should reach it with the suggested number, and fewer than 95 % with "
        "70 % of it.\n\n" + _table(header, body)
    )


def _choice_section(pops: Sequence[Population], *, trials: int, quick: bool) -> str:
    body, ratios = [], []
    for pop in pops:
        for privacy, epsilon in SETTINGS[:1] if quick else SETTINGS:
            _say(f"exhaustive search on {pop.name}, {privacy.value} {float(epsilon):g}")
            for has_reference in (True,):
                row = compare_with_all(
                    pop, privacy, epsilon, has_reference=has_reference, trials=trials
                )
                ratios.append(row.ratio)
                body.append(
                    [
                        pop.name,
                        f"{privacy.value} {float(epsilon):g}",
                        "with" if has_reference else "without",
                        str(row.tried),
                        row.chosen,
                        row.best,
                        f"**{row.ratio:.2f}**",
                    ]
                )
    header = ["table", "privacy", "reference", "settings tried", "chosen", "best", "ratio"]
    return (
        "## The planner's choice against an exhaustive search\n\n"
        "100,000 clients drawn anew from the population, errors against the same clients' exact "
        "values. The error of a setting is the geometric mean of the root mean square errors of "
        "ROC AUC, weighing two thirds, and of precision, recall and accuracy at 0.2, 0.5 and 0.8. "
        "All settings are ranked by the closed form of their noise and the binning errors of drawn "
        "clients; the best ten are simulated, and so is the planner's choice, over "
        f"{trials} trials. *Ratio* is the choice's error over the "
        f"best one's.\n\n{_table(header, body)}\n\nLargest ratio: {max(ratios):.2f}."
    )


def page(*, trials: int, quick: bool, folder: Path) -> Iterator[str]:
    """The page, section by section."""
    tables = load(folder)
    real = [population(table) for table in tables]
    pops = real + [population(table) for table in synthetic()]
    yield (
        "# The planner against simulation\n\n"
        "Written by `python -m experiments.planning`. Half of each table's rows are the public "
        "reference that the planner sees, the other half the population that clients are drawn "
        "from."
    )
    yield _targets_section({pop.name: pop for pop in real}, trials=200 if quick else 2000)
    found = comparisons(pops, trials=trials, quick=quick)
    if not quick:
        _draw(found)
    yield _accuracy_section(found, trials)
    yield _choice_section(real, trials=30 if quick else 90, quick=quick)


def _draw(found: list[Comparison]) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    figure, grid = plt.subplots(2, 3, figsize=(10, 6.5), layout="constrained")
    for axes, metric in zip(grid.ravel(), METRICS, strict=True):
        rows = [
            row
            for row in found
            if row.metric == metric and row.answered == 1.0 and min(row.total) > 0.0
        ]
        for privacy, colour in ((Privacy.DISTRIBUTED, "tab:blue"), (Privacy.LOCAL, "tab:red")):
            pairs = [row.total for row in rows if row.privacy is privacy and isfinite(row.total[0])]
            axes.loglog(*zip(*pairs, strict=True), ".", color=colour, label=privacy.value)
        ends = np.array([min(min(row.total) for row in rows), max(max(row.total) for row in rows)])
        axes.loglog(ends, ends, color="black", linewidth=0.8)
        limit = LIMITS[metric]
        axes.fill_between(
            ends, ends / (1 + limit), ends / (1 - limit), color="grey", alpha=0.2,
            label=f"within {limit:.0%}",
        )  # fmt: skip
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_title(metric)
        axes.grid(visible=True, which="both", alpha=0.2)
    for axes in grid[1]:
        axes.set_xlabel("predicted standard error")
    for axes in grid[:, 0]:
        axes.set_ylabel("simulated standard error")
    grid[0][0].legend()
    figure.savefig(_FIGURE, dpi=110, metadata={"Software": None})
    plt.close(figure)


def _table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    rule = ["---"] * len(header)
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *body))


def _say(message: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {message} ...", file=sys.stderr, flush=True)


def main() -> None:
    """Measure and write the page."""
    parser = ArgumentParser(prog="python -m experiments.planning", description=__doc__)
    parser.add_argument("--data", type=Path, default=SHARED, help="folder of scored tables")
    parser.add_argument("--quick", action="store_true", help="a smaller run, printed only")
    parser.add_argument("--trials", type=int, default=300, help="for each error (default: 300)")
    arguments = parser.parse_args()
    quick: bool = arguments.quick
    trials: int = 60 if quick else arguments.trials
    text = ""
    for section in page(trials=trials, quick=quick, folder=arguments.data):
        print(section, flush=True)
        text += f"{section}\n\n"
        if not quick:
            # After every section: the run is long.
            _PAGE.write_text(text.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
