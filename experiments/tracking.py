"""A model over time: false alarms of a thousand years, delays as planned, and noise for many looks.

`python -m experiments.tracking` writes `experiments/tracking.md`; with --quick it prints a smaller
run and writes nothing.
"""

from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import inf
from pathlib import Path

import numpy as np

from experiments.page import markdown_table, say
from fedassay import Assessment, DecodeOptions, Privacy, Survey
from fedassay.calibration import ece
from fedassay.draws import draw_tally
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.planning.forecast import expected_histogram, model_for
from fedassay.planning.noise_for_looks import USUAL_DELTA, compare_noise
from fedassay.planning.request import Steps, SurveyRequest
from fedassay.planning.score_model import on_grid
from fedassay.planning.search import design_survey
from fedassay.planning.track import Looks, TrackPlan, plan_track
from fedassay.published import published
from fedassay.tracking.alarms import MODEL, Watch, find_alarms
from fedassay.tracking.gap_delay import median_gap_delay
from fedassay.tracking.gap_series import cuts_among, gaps_between
from fedassay.tracking.history import History

REQUEST = SurveyRequest(
    privacy=Privacy.DISTRIBUTED, epsilon=Fraction(6), clients=5_000, dropouts=Fraction(0)
)
LOOKS = Looks(24)
WATCH = Watch((*MODEL, "flagged@0.3"), 0.05, 12)
"""What a history watches by default; 0.3 stands for the middle score."""
SHIFTS = (-0.015, -0.025, -0.04)
ECE = Watch(("ece",), 0.05, 12)
SURVEYS = {
    "distributed 1/4, 5,000 rows": replace(REQUEST, epsilon=Fraction(1, 4)),
    "distributed 1, 5,000 rows": replace(REQUEST, epsilon=Fraction(1)),
    "local 5, 20,000 rows": SurveyRequest(
        privacy=Privacy.LOCAL, epsilon=Fraction(5), clients=20_000, steps=Steps.ONE
    ),
    "exact sums, 5,000 rows": SurveyRequest(clients=5_000),
}
LEVELS = {"calibrated": (0.0, 1.0), "far off": (0.6, 0.6)}
"""What is added to the log-odds of true rates, and what they are multiplied by."""
LOSSES = {
    "hardly": (0.1, 1.0),
    "a little": (0.15, 1.0),
    "clearly": (0.3, 1.0),
    "overconfident": (0.0, 0.7),
}
_AFTER = 20


def month(
    survey: Survey, shares: FloatArray, rows: int, generator: np.random.Generator
) -> Assessment:
    """One look at so many rows of a model whose scores have these shares, label x cell."""
    leaves = generator.multinomial(rows, shares.ravel()).reshape(shares.shape)
    tally = draw_tally(survey, leaves, clients=rows, generator=generator)
    return Assessment(survey, published(survey, tally), DecodeOptions(), ())


def shares_of(survey: Survey, auc: float) -> FloatArray:
    """A calibrated classifier with this ROC AUC, on the survey's cells."""
    return _on(survey, model_for(SurveyRequest(clients=REQUEST.clients, auc=auc)))


def times(count: int) -> list[str]:
    """Months, from January 2026 on."""
    return [f"{2026 + number // 12}-{1 + number % 12:02}" for number in range(count)]


def measured_delays(
    plan: TrackPlan, old: FloatArray, new: FloatArray, *, runs: int, seed: int
) -> list[float]:
    """Looks from a change to its alarm, of histories made by the plan's own survey."""
    survey, rows = plan.design.survey, plan.request.clients or 1
    generator = np.random.default_rng(seed)
    before = plan.looks.count // 2
    # One metric alone with the chance that it has among those that are watched.
    rate = plan.watch.false_alarms / len(plan.watch.metrics)
    watch = Watch((plan.metric,), rate, plan.looks.per_year)
    named, delays = times(before + _AFTER), []
    for _ in range(runs):
        looks = [month(survey, old, rows, generator) for _ in range(before)]
        looks += [month(survey, new, rows, generator) for _ in range(_AFTER)]
        history = History(dict(zip(named, looks, strict=True)))
        # The alarms of a history do not change when it goes on.
        late = [named.index(alarm.at) for alarm in find_alarms(history, watch)]
        after = [place - before + 1.0 for place in late if place >= before]
        delays.append(after[0] if after else inf)
    return delays


def false_alarms(years: int, seed: int) -> int:
    """How many years without change have any alarm, of the watched metrics."""
    plan = plan_track(REQUEST, LOOKS)
    survey, rows = plan.design.survey, REQUEST.clients or 1
    shares, generator = shares_of(survey, 0.8), np.random.default_rng(seed)
    found = 0
    for _ in range(years):
        looks = {at: month(survey, shares, rows, generator) for at in times(13)}
        found += bool(find_alarms(History(looks), WATCH))
    return found


def distorted(model: ScoreHistogram, level: float, spread: float) -> ScoreHistogram:
    """The same scores with other outcomes: log-odds of a score's true rate, moved and stretched."""
    total = model.counts.sum(axis=0)
    rate = np.clip(model.counts[1] / np.maximum(total, 1e-300), 1e-9, 1.0 - 1e-9)
    other = 1.0 / (1.0 + np.exp(-(level + spread * np.log(rate / (1.0 - rate)))))
    return replace(model, counts=np.stack([total * (1.0 - other), total * other]))


def ece_years(request: SurveyRequest, off: tuple[float, float], years: int, seed: int) -> int:
    """How many years without change have an alarm of ECE, by one survey made by the planner."""
    survey, rows = design_survey(request).survey, request.clients or 1
    model = distorted(model_for(SurveyRequest(clients=rows, auc=0.8)), *off)
    shares, generator = _on(survey, model), np.random.default_rng(seed)
    found = 0
    for _ in range(years):
        looks = {at: month(survey, shares, rows, generator) for at in times(13)}
        found += bool(find_alarms(History(looks), ECE))
    return found


def ece_delays(
    request: SurveyRequest, off: tuple[float, float], runs: int, seed: int
) -> tuple[float, float]:
    """The ECE of what calibration becomes after a year, and the median of looks to an alarm."""
    survey, rows = design_survey(request).survey, request.clients or 1
    model = model_for(SurveyRequest(clients=rows, auc=0.8))
    moved = distorted(model, *off)
    generator, delays = np.random.default_rng(seed), []
    named = times(12 + _AFTER)
    for _ in range(runs):
        kinds = [_on(survey, model)] * 12 + [_on(survey, moved)] * _AFTER
        looks = [month(survey, shares, rows, generator) for shares in kinds]
        history = History(dict(zip(named, looks, strict=True)))
        late = [named.index(alarm.at) - 11.0 for alarm in find_alarms(history, ECE)]
        delays.append(min((delay for delay in late if delay > 0.0), default=inf))
    return ece(moved, debiased=False).value, float(np.median(delays))


def ece_planned(request: SurveyRequest, rise: float) -> float:
    """The median delay as `plan --track` has it: all gaps move one way, by rows' shares."""
    survey, rows = design_survey(request).survey, request.clients or 1
    model = model_for(SurveyRequest(clients=rows, auc=0.8))
    counted = expected_histogram(survey, model, clients=float(rows))
    gaps = gaps_between(counted, cuts_among(counted.edges), tied=bool(survey.smallest_cell))
    return median_gap_delay(gaps, rise, looks_before=12, watch=ECE)


def _on(survey: Survey, model: ScoreHistogram) -> FloatArray:
    counts = np.maximum(on_grid(model, survey.grid), 0.0)
    shares: FloatArray = counts / counts.sum()
    return shares


def page(runs: int, years: int) -> Iterator[str]:
    """The page, part by part."""
    yield "# A model over time"
    yield (
        "Written by `python -m experiments.tracking`. Distributed privacy, epsilon 6 over 24 "
        "months (1/4 each), 5,000 rows a month, a calibrated classifier with ROC AUC 0.8; surveys, "
        "noise and alarms are the real ones."
    )
    yield "## Years without change"
    say("years")
    found = false_alarms(years, 101)
    yield (
        f"Of {years:,} years of 12 looks in which nothing changes, {found} have any alarm, in the "
        f"{len(WATCH.metrics)} metrics that are watched by default ({', '.join(WATCH.metrics)}) "
        f"and both directions: {100 * found / years:.1f} %. Said: at most 5 %."
    )
    yield "## Delays"
    plan = plan_track(REQUEST, LOOKS, shifts=SHIFTS)
    rows = []
    for number, shift in enumerate(SHIFTS):
        say(f"delay {shift}")
        old, new = (shares_of(plan.design.survey, 0.8 + by) for by in (0.0, shift))
        seen = float(np.median(measured_delays(plan, old, new, runs=runs, seed=200 + number)))
        planned = plan.delays[shift]
        rows.append([f"{shift:+g}", f"{planned:g}", f"{seen:g}", f"{seen / planned - 1.0:+.0%}"])
    yield (
        "Months from a change of ROC AUC, after 12 without any, to the alarm: the median that "
        f"`plan --track` says beforehand, and that of {runs} histories."
    )
    yield markdown_table(["change", "planned", "measured", "off by"], rows)
    yield from ece_part(runs, years)
    yield "## Noise for many looks"
    yield (
        f"The standard deviation of one counter's noise when one row is asked at every look, with "
        f"epsilon in all and, in the last two columns, delta {USUAL_DELTA:g}: epsilon split evenly "
        "(pure), discrete Laplace (Pólya shares) composed exactly, and discrete Gaussian or "
        "Skellam, whose losses add up in squares. A tree of L levels counts as L looks in each."
    )
    body = []
    for epsilon in (1.0, 6.0):
        for looks in (1, 3, 12, 36, 52, 156, 520):
            noise = compare_noise(epsilon, looks)
            figures = [f"{each:.3g}" for each in (noise.split, noise.composed, noise.squares)]
            body.append([f"{epsilon:g}", str(looks), *figures, f"{noise.gain:.2f}"])
    header = ["epsilon", "looks", "Pólya, split", "Pólya, composed", "Gaussian", "gain"]
    yield markdown_table(header, body)
    yield "What follows from it is decided in [ADR 22](../docs/adr/0022-noise-for-many-looks.md)."


def ece_part(runs: int, years: int) -> Iterator[str]:
    """ECE watched alone: years without change, and losses of calibration."""
    yield "## ECE"
    rows = []
    for number, (name, request) in enumerate(SURVEYS.items()):
        say(f"ece {name}")
        found = [
            ece_years(request, off, years, 300 + 10 * number + place)
            for place, off in enumerate(LEVELS.values())
        ]
        rows.append([name, *(f"{each / years:.1%}" for each in found)])
    yield (
        f"Watched alone, at most 5 % said, {years:,} years of 12 looks each; by surveys of the "
        "planner, of a model that is calibrated and of one whose true log-odds are 0.6 more and "
        "0.6 times as steep. ECE's distances have one direction, and the limit is that of half "
        "of the rate."
    )
    yield markdown_table(["years with an alarm", *LEVELS], rows)
    rows = []
    for number, (name, request) in enumerate(SURVEYS.items()):
        say(f"ece delays {name}")
        delays = [
            ece_delays(request, off, runs, 400 + 10 * number + place)
            for place, off in enumerate(LOSSES.values())
        ]
        planned = [ece_planned(request, value) for value, _ in delays]
        seen = [delay for _, delay in delays]
        told = [f"{each:g} of {of:g}" for each, of in zip(seen, planned, strict=True)]
        rows.append([name, *told])
    header = [f"{name} ({value:.3f})" for name, (value, _) in zip(LOSSES, delays, strict=True)]
    yield (
        "Looks from a loss of calibration, after 12 without any, to the alarm: medians of "
        f"{runs} histories, *of* what is planned for a rise of all gaps alike; in brackets the "
        "ECE that a calibrated model then has. Log-odds are 0.1, 0.15 and 0.3 more, and 0.7 times "
        "as steep. Of exact sums cells are published that differ from look to look, and what is "
        "compared are those that all looks have: fewer than the plan knows of. Where about half of "
        "all histories never notice, because the mean comes to believe in the change first, a "
        "little decides, and the planned delay is too short (*inf* is more than 20 looks)."
    )
    yield markdown_table(["looks to an alarm", *header], rows)


def main() -> None:
    """Measure the page and write it beside this script."""
    parser = ArgumentParser(prog="python -m experiments.tracking", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller run, printed only")
    quick: bool = parser.parse_args().quick
    text = "\n\n".join(page(*((20, 50) if quick else (100, 1000)))) + "\n"
    print(text)
    if not quick:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
