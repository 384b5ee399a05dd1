"""A model over time: false alarms of a thousand years, delays as planned, and noise for many looks.

`python -m experiments.tracking` writes `experiments/tracking.md`; with --quick it prints a smaller
run and writes nothing.
"""

from argparse import ArgumentParser
from collections.abc import Iterator
from fractions import Fraction
from math import exp, inf, sqrt
from pathlib import Path

import numpy as np
from scipy import stats

from experiments.page import markdown_table, say
from fedassay import Assessment, DecodeOptions, Privacy, Survey
from fedassay.draws import draw_tally
from fedassay.examples import FloatArray
from fedassay.planning.forecast import model_for
from fedassay.planning.request import SurveyRequest
from fedassay.planning.score_model import on_grid
from fedassay.planning.track import Looks, TrackPlan, plan_track
from fedassay.tracking.alarms import MODEL, Watch, find_alarms
from fedassay.tracking.history import History

REQUEST = SurveyRequest(
    privacy=Privacy.DISTRIBUTED, epsilon=Fraction(6), clients=5_000, dropouts=Fraction(0)
)
LOOKS = Looks(24)
WATCH = Watch((*MODEL, "flagged@0.3"), 0.05, 12)
"""What a history watches by default; 0.3 stands for the middle score."""
SHIFTS = (-0.015, -0.025, -0.04)
_AFTER = 20
_DELTA = 1e-6


def month(
    survey: Survey, shares: FloatArray, rows: int, generator: np.random.Generator
) -> Assessment:
    """One look at so many rows of a model whose scores have these shares, label x cell."""
    leaves = generator.multinomial(rows, shares.ravel()).reshape(shares.shape)
    tally = draw_tally(survey, leaves, clients=rows, generator=generator)
    return Assessment(survey, tally, DecodeOptions(), ())


def shares_of(survey: Survey, auc: float) -> FloatArray:
    """A calibrated classifier with this ROC AUC, on the survey's cells."""
    asked = SurveyRequest(clients=REQUEST.clients, auc=auc)
    counts = np.maximum(on_grid(model_for(asked), survey.grid), 0.0)
    shares: FloatArray = counts / counts.sum()
    return shares


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


def laplace_delta(epsilon: float, each: float, times: int) -> float:
    """Of as many discrete Laplace counters, exactly: each loss is plus or minus its epsilon."""
    ups = np.arange(times + 1)
    losses = each * (2.0 * ups - times)
    chance = stats.binom.pmf(ups, times, exp(each) / (1.0 + exp(each)))
    return float((chance * -np.expm1(np.minimum(epsilon - losses, 0.0))).sum())


def gaussian_delta(epsilon: float, sd: float, times: int) -> float:
    """Of as many Gaussian counters (Balle and Wang 2018); discrete ones are next to the same."""
    s = sd / sqrt(times)
    return float(
        stats.norm.cdf(0.5 / s - epsilon * s)
        - exp(epsilon) * stats.norm.cdf(-0.5 / s - epsilon * s)
    )


def laplace_sd(each: float) -> float:
    """Of one counter's discrete Laplace noise."""
    return sqrt(2.0 * exp(-each)) / (1.0 - exp(-each))


def noise_sds(epsilon: float, looks: int) -> tuple[float, float, float]:
    """One counter's noise: split evenly, composed exactly with a delta, and Gaussian."""
    low, high = epsilon / looks, epsilon
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (
            (middle, high) if laplace_delta(epsilon, middle, looks) <= _DELTA else (low, middle)
        )
    least, most = 1e-3, 1e6
    for _ in range(80):
        middle = sqrt(least * most)
        fits = gaussian_delta(epsilon, middle, looks) <= _DELTA
        least, most = (least, middle) if fits else (middle, most)
    return laplace_sd(epsilon / looks), laplace_sd(low), most


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
    found = false_alarms(years, 7)
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
        seen = float(np.median(measured_delays(plan, old, new, runs=runs, seed=20 + number)))
        planned = plan.delays[shift]
        rows.append([f"{shift:+g}", f"{planned:g}", f"{seen:g}", f"{seen / planned - 1.0:+.0%}"])
    yield (
        "Months from a change of ROC AUC, after 12 without any, to the alarm: the median that "
        f"`plan --track` says beforehand, and that of {runs} histories."
    )
    yield markdown_table(["change", "planned", "measured", "off by"], rows)
    yield "## Noise for many looks"
    yield (
        f"The standard deviation of one counter's noise when one row is asked at every look, with "
        f"epsilon in all and, in the last two columns, delta {_DELTA:g}: epsilon split evenly "
        "(pure), discrete Laplace (Pólya shares) composed exactly, and discrete Gaussian or "
        "Skellam, whose losses add up in squares. A tree of L levels counts as L looks in each."
    )
    body = []
    for epsilon in (1.0, 6.0):
        for looks in (1, 3, 12, 36, 52, 156, 520):
            pure, composed, gaussian = noise_sds(epsilon, looks)
            figures = [f"{each:.3g}" for each in (pure, composed, gaussian)]
            body.append([f"{epsilon:g}", str(looks), *figures, f"{composed / gaussian:.2f}"])
    header = ["epsilon", "looks", "Pólya, split", "Pólya, composed", "Gaussian", "gain"]
    yield markdown_table(header, body)
    yield "What follows from it is decided in [ADR 22](../docs/adr/0022-noise-for-many-looks.md)."


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
