"""Calibration from a tally: error before and after, on clients that did not fit it.

python -m experiments.calibration writes experiments/calibration.md; with --quick it only prints.
"""

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from math import pi, sqrt
from pathlib import Path

import numpy as np

from experiments.calibration_slopes import REGIMES
from experiments.calibration_slopes import measure as measure_slope
from experiments.data import SHARED, halves, load, rows
from fedassay.calibration import Calibrator, Method, ece, fit, fit_auto
from fedassay.examples import Examples, FloatArray, IntArray, ScoredClients
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Privacy
from fedassay.metrics.exact_rows import row_calibration
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import simulate

_PAGE = Path(__file__).with_name("calibration.md")
_BINS = 20
# None of these was seen while the estimators were made.
_SPLIT_SEED = 20_261
_SHAPE_SEED = 4_711
_TRIAL_SEED = 70_000


@dataclass(frozen=True, slots=True)
class Model:
    """A privacy model."""

    name: str
    privacy: Privacy
    epsilon: Fraction | None = None


MODELS = (
    Model("secure", Privacy.SECURE),
    Model("distributed ε = 1", Privacy.DISTRIBUTED, Fraction(1)),
    Model("local ε = 5", Privacy.LOCAL, Fraction(5)),
    Model("local ε = 1", Privacy.LOCAL, Fraction(1)),
)


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Rows to fit, rows to test, and the tested rows' true probabilities where known."""

    name: str
    fitting: Examples
    testing: Examples
    truth: FloatArray | None = None


Shape = Callable[[FloatArray], FloatArray]


def _odds_times(factor: float) -> Shape:
    def truth(scores: FloatArray) -> FloatArray:
        odds = np.log(scores / (1.0 - scores))
        return np.asarray(1.0 / (1.0 + np.exp(-factor * odds)))

    return truth


def _bent(scores: FloatArray) -> FloatArray:
    return np.clip(scores + 0.1 * np.sin(2.0 * np.pi * scores), 0.0, 1.0)


SHAPES: dict[str, Shape] = {
    "over-confident": _odds_times(0.6),
    "under-confident": _odds_times(1.6),
    "S-shaped": _bent,
    "spiked": _odds_times(0.8),
}


def synthetic(name: str, count: int) -> Case:
    """Scores whose true probability is a known function of them."""
    generator = np.random.default_rng(_SHAPE_SEED)
    scores = np.clip(generator.beta(1.2, 1.8, 2 * count), 1e-5, 1.0 - 1e-5)
    if name == "spiked":
        spiky = generator.random(2 * count) < 0.6
        scores = np.where(spiky, np.clip(np.round(scores * 8) / 8, 0.01, 0.99), scores)
    truth = SHAPES[name](scores)
    labels = (generator.random(2 * count) < truth).astype(np.uint8)
    return Case(
        name,
        Examples(labels[:count], scores[:count]),
        Examples(labels[count:], scores[count:]),
        truth[count:],
    )


def cases(folder: Path, *, quick: bool) -> list[Case]:
    """The tables, split in half, and the synthetic scores."""
    found = []
    for table in load(folder):
        fitting, testing = halves(table.examples, np.random.default_rng(_SPLIT_SEED))
        found.append(Case(table.name, fitting, testing))
    return found + [synthetic(name, 30_000 if quick else 150_000) for name in SHAPES]


FITS: dict[str, Callable[[ScoreHistogram, Model], Calibrator]] = {
    "raw": lambda _histogram, _model: Calibrator.identity(),
    "auto": lambda histogram, _model: fit_auto(histogram),
    "plain binning": lambda histogram, _model: fit(histogram, Method.BINNING, noise_aware=False),
    "plain BBQ": lambda histogram, _model: fit(histogram, Method.BBQ, noise_aware=False),
    "BBQ": lambda histogram, _model: fit(histogram, Method.BBQ),
}


@dataclass(frozen=True, slots=True)
class Errors:
    """What one map does on the test rows, or its mean over trials."""

    ece: float
    brier: float
    log_loss: float
    floor: float
    """The plain ECE that these rows would show, on average, were the map perfect."""
    debiased: float
    distance: float
    true_ece: float


def measure(case: Case, model: Model, clients: int, *, trials: int) -> dict[str, Errors]:
    """Mean errors over trials for every fit."""
    generator = np.random.default_rng(_TRIAL_SEED + clients)
    found: dict[str, list[Errors]] = {name: [] for name in FITS}
    chosen: list[str] = []
    count = min(clients, len(case.fitting))
    design = design_survey(
        SurveyRequest(
            privacy=model.privacy, epsilon=model.epsilon, clients=count, dropouts=Fraction(0)
        )
    )
    for trial in range(trials):
        fitting = rows(case.fitting, count, generator)
        histogram = simulate(
            design.survey,
            ScoredClients(fitting, None, count),
            decode_options=design.decode_options,
            randomness=SimulatedRandomness(_TRIAL_SEED + trial),
        )
        for name, fitted in FITS.items():
            calibrator = fitted(histogram, model)
            found[name].append(_judged(case, calibrator))
            if name == "auto":
                chosen.append(calibrator.method.value)
    _say(f"{case.name}, {model.name}, {count:,}: {', '.join(sorted(set(chosen)))}")
    return {name: _mean(each) for name, each in found.items()}


def _judged(case: Case, calibrator: Calibrator) -> Errors:
    predicted = calibrator.predict(case.testing.scores)
    known = row_calibration(case.testing, predicted, bins=_BINS)
    spread = np.bincount(_bin(predicted), predicted * (1.0 - predicted), _BINS)
    tested = ScoreHistogram.from_scores(case.testing.labels, predicted)
    truth = predicted if case.truth is None else case.truth
    return Errors(
        **known,
        floor=float(np.sqrt(2.0 / pi * spread).sum() / len(predicted)),
        debiased=ece(tested, bins=_BINS).value,
        distance=sqrt(float(np.mean((predicted - truth) ** 2))),
        true_ece=_true_ece(predicted, truth),
    )


def _mean(found: Sequence[Errors]) -> Errors:
    return Errors(*np.mean([astuple(errors) for errors in found], axis=0).tolist())


def _bin(predicted: FloatArray) -> IntArray:
    return np.clip(np.ceil(predicted * _BINS).astype(np.int64) - 1, 0, _BINS - 1)


def _true_ece(predicted: FloatArray, truth: FloatArray) -> float:
    """The error that infinitely many test rows would show."""
    gaps = np.bincount(_bin(predicted), truth - predicted, _BINS)
    return float(np.abs(gaps).sum() / len(truth))


def page(folder: Path, *, trials: int, quick: bool) -> Iterator[str]:
    """The page, section by section."""
    yield (
        "# Calibration from a tally\n\n"
        "Written by `python -m experiments.calibration`; every figure comes from one run. A random "
        f"half of the rows are the clients that fit, the other half are tested; means over "
        f"{trials} trials, with seeds that no choice here was made on. ECE has {_BINS} bins of "
        "equal width and is that of the test rows. Their own sampling adds to it: *floor* is "
        "what a perfect map would show on as many rows, on average; *debiased* is the estimate "
        "without it. *True ECE* and *distance* (root mean square) are against the true "
        "probability, where it is known. *Plain* methods take noisy counts at face value. The "
        "paper's levels are 0.01 (secure), 0.01 (distributed, ε = 1) and 0.02 (local, ε = 5); "
        "the aims 0.004, 0.004 and 0.008 for all rows."
    )
    every = cases(folder, quick=quick)
    for clients in (10**9, 10_000):
        title = "All rows" if clients > 10**6 else f"{clients:,} clients"
        for model in MODELS:
            found = [(case, measure(case, model, clients, trials=trials)) for case in every]
            yield f"## {title}, {model.name}\n\n{_errors_table(found)}"
    yield _slopes_section(trials=4 if quick else 12)


def _errors_table(found: Sequence[tuple[Case, dict[str, Errors]]]) -> str:
    header = ["scores", "raw: ECE", "auto: **ECE**", "floor", "debiased"]
    header += [f"{name}: ECE" for name in FITS if name not in ("raw", "auto")]
    body = []
    for case, means in found:
        auto = means["auto"]
        cells = [case.name, f"{means['raw'].ece:.4f}", f"**{auto.ece:.4f}**"]
        cells += [f"{auto.floor:.4f}", f"{auto.debiased:.4f}"]
        cells += [f"{means[name].ece:.4f}" for name in FITS if name not in ("raw", "auto")]
        body.append(cells)
    losses = [["scores", *(f"{name}: {what}" for name in FITS for what in ("Brier", "log loss"))]]
    second = [
        ["scores", *(f"{name}: {what}" for name in FITS for what in ("true ECE", "distance"))]
    ]
    for case, means in found:
        losses.append(
            [
                case.name,
                *(f for e in means.values() for f in (f"{e.brier:.5f}", f"{e.log_loss:.4f}")),
            ]
        )
        if case.truth is not None:
            known = (f for e in means.values() for f in (e.true_ece, e.distance))
            second.append([case.name, *(f"{each:.4f}" for each in known)])
    tables = (_table(header, body), _table(losses[0], losses[1:]), _table(second[0], second[1:]))
    return "\n\n".join(tables)


def _slopes_section(*, trials: int) -> str:
    body = []
    for regime in REGIMES:
        _say(f"slopes, {regime.name}")
        found = measure_slope(regime, trials=trials, seed=_TRIAL_SEED)
        body.append(
            [
                regime.name,
                f"{regime.counts[0]:,} to {regime.counts[-1]:,}",
                " ".join(f"{error:.4f}" for error in found.distances),
                f"**{found.of(found.distances, regime.counts):.2f}**",
                f"{found.of(found.eces, regime.counts):.2f}",
                regime.theory,
            ]
        )
    header = ["privacy", "clients", "mean distance", "slope", "slope of ECE", "theory"]
    return (
        "## Slopes with the number of clients\n\n"
        "The paper's equi-depth binning (paper preset, B of `thm:calib:secagg` and "
        "`thm:calib:dp`) on S-shaped scores, against the whole population; the theorems bound "
        f"the distance to the true probability. Means over {trials} trials. Numbers of clients "
        "are those at which the theorems' terms are the largest: with fewer, noise drowns "
        "whole buckets, rates are cut off at 0 and 1, and the error stays where it is (at local "
        "ε = 1 up to some millions). The tree keeps its 10 levels however many clients "
        "there are, and a narrow bucket adds up fewer of them: so errors under local "
        "privacy may fall faster than the bound.\n\n"
        f"{_table(header, body)}"
    )


def _table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *body))


def _say(message: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)


def main() -> None:
    """Measure and write the page."""
    parser = ArgumentParser(prog="python -m experiments.calibration", description=__doc__)
    parser.add_argument("--data", type=Path, default=SHARED, help="folder of scored tables")
    parser.add_argument("--quick", action="store_true", help="fewer trials and rows, printed only")
    parser.add_argument("--trials", type=int, default=4, help="for each figure (default: 4)")
    arguments = parser.parse_args()
    quick: bool = arguments.quick
    trials: int = 2 if quick else arguments.trials
    text = "\n\n".join(page(arguments.data, trials=trials, quick=quick)) + "\n"
    print(text)
    if not quick:
        _PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
