"""Calibration from a tally: error before and after, on clients that did not fit it.

python -m experiments.calibration [--quick] writes experiments/calibration.md.
"""

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nan, sqrt
from pathlib import Path

import numpy as np

from experiments.data import SHARED, halves, load, rows
from fedassay.calibration import Calibrator, Method, fit, fit_auto
from fedassay.calibration.binning import fit_binning
from fedassay.engines.rows import row_calibration
from fedassay.engines.simulation import simulate
from fedassay.engines.tables import Cohort
from fedassay.errors import SingleClass
from fedassay.examples import Examples, FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.planner import choose
from fedassay.randomness import SimulatedRandomness
from fedassay.request import Preset, Privacy, Request

_PAGE = Path(__file__).with_name("calibration.md")
_BINS = 20


@dataclass(frozen=True, slots=True)
class Model:
    """A privacy model."""

    name: str
    privacy: Privacy
    epsilon: Fraction | None = None

    @property
    def local_epsilon(self) -> float | None:
        """Epsilon, where the theory asks for it."""
        return float(self.epsilon) if self.epsilon and self.privacy is Privacy.LOCAL else None


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
    generator = np.random.default_rng(11)
    scores = np.clip(generator.beta(1.2, 1.8, 2 * count), 1e-5, 1.0 - 1e-5)
    if name == "spiked":
        spiky = generator.random(2 * count) < 0.6
        scores = np.where(spiky, np.clip(np.round(scores * 8) / 8, 0.01, 0.99), scores)
    truth = SHAPES[name](scores)
    labels = (generator.random(2 * count) < truth).astype(np.uint8)
    return Case(
        name,
        Examples.of(labels[:count], scores[:count]),
        Examples.of(labels[count:], scores[count:]),
        truth[count:],
    )


def cases(folder: Path, *, quick: bool) -> list[Case]:
    """The tables, split in half, and the synthetic scores."""
    found = []
    for table in load(folder):
        fitting, testing = halves(table.examples, np.random.default_rng(1))
        found.append(Case(table.name, fitting, testing))
    return found + [synthetic(name, 30_000 if quick else 150_000) for name in SHAPES]


FITS: dict[str, Callable[[ScoreHistogram, Model], Calibrator]] = {
    "raw": lambda _histogram, _model: Calibrator.identity(),
    "auto": lambda histogram, _model: fit_auto(histogram),
    "plain binning": lambda histogram, model: fit_binning(
        histogram, local_epsilon=model.local_epsilon, noise_aware=False
    ),
    "plain BBQ": lambda histogram, _model: fit(histogram, Method.BBQ, noise_aware=False),
}


def measure(case: Case, model: Model, clients: int, *, trials: int) -> dict[str, list[float]]:
    """Mean errors over trials for every fit: ECE, Brier, log loss, distance to the truth."""
    generator = np.random.default_rng(clients)
    sums: dict[str, list[list[float]]] = {name: [] for name in FITS}
    chosen: list[str] = []
    count = min(clients, len(case.fitting))
    choice = choose(Request(privacy=model.privacy, epsilon=model.epsilon, clients=count))
    for trial in range(trials):
        fitting = rows(case.fitting, count, generator)
        histogram = simulate(
            choice.survey,
            Cohort(fitting, None, count),
            readout=choice.readout,
            randomness=SimulatedRandomness(trial),
        )
        for name, fitted in FITS.items():
            calibrator = fitted(histogram, model)
            predicted = calibrator.predict(case.testing.scores)
            errors = list(row_calibration(case.testing, predicted, bins=_BINS).values())
            if case.truth is not None:
                errors.append(sqrt(float(np.mean((predicted - case.truth) ** 2))))
                errors.append(_true_ece(predicted, case.truth))
            sums[name].append(errors)
            if name == "auto":
                chosen.append(calibrator.method.value)
    means = {name: np.mean(found, axis=0).tolist() for name, found in sums.items()}
    _say(f"{case.name}, {model.name}, {count:,}: {', '.join(sorted(set(chosen)))}")
    return means


def _true_ece(predicted: FloatArray, truth: FloatArray) -> float:
    """The error that infinitely many test rows would show."""
    place = np.clip(np.ceil(predicted * _BINS).astype(np.int64) - 1, 0, _BINS - 1)
    return float(np.abs(np.bincount(place, truth - predicted, _BINS)).sum() / len(truth))


def slopes(model: Model, *, quick: bool) -> tuple[list[int], list[float], float]:
    """Errors of the paper's own binning against the number of clients, and their slope."""
    counts = [2_000, 8_000, 32_000, 128_000] if quick else [8_000, 32_000, 128_000, 512_000]
    case = synthetic("S-shaped", counts[-1])
    truth = case.truth if case.truth is not None else case.testing.scores
    errors = []
    for count in counts:
        choice = choose(
            Request(
                privacy=model.privacy, epsilon=model.epsilon, clients=count, preset=Preset.PAPER
            )
        )
        found = []
        for trial in range(3 if quick else 6):
            fitting = rows(case.fitting, count, np.random.default_rng(trial))
            histogram = simulate(
                choice.survey,
                Cohort(fitting, None, count),
                readout=choice.readout,
                randomness=SimulatedRandomness(trial),
            )
            try:
                calibrator = FITS["plain binning"](histogram, model)
            except SingleClass:
                found.append(nan)
                continue
            found.append(np.abs(calibrator.predict(case.testing.scores) - truth).mean())
        errors.append(float(np.mean(found)))
    kept = np.flatnonzero(np.isfinite(errors))
    x, y = np.log(np.array(counts)[kept]), np.log(np.array(errors)[kept])
    slope = float(np.polyfit(x, y, 1)[0])
    return counts, errors, slope


def page(folder: Path, *, trials: int, quick: bool) -> Iterator[str]:
    """The page, section by section."""
    yield (
        "# Calibration from a tally\n\n"
        "Written by `python -m experiments.calibration`; every figure comes from one run. A random "
        f"half of the rows are the clients that fit, the other half are tested; means over "
        f"{trials} trials. ECE has {_BINS} bins of equal width and is that of the test rows, "
        "whose own sampling adds to it (compare true ECE); *true ECE* and *distance* (root "
        "mean square) are against the true probability, where it is known. *Plain* methods take "
        "noisy counts at face value. The paper's levels are 0.01 (secure), 0.01 (distributed, "
        "ε = 1) and 0.02 (local, ε = 5)."
    )
    every = cases(folder, quick=quick)
    for clients in (10**9, 10_000):
        title = "All rows" if clients > 10**6 else f"{clients:,} clients"
        for model in MODELS:
            found = [(case, measure(case, model, clients, trials=trials)) for case in every]
            yield f"## {title}, {model.name}\n\n{_errors_table(found)}"
    yield _slopes_section(quick=quick)


def _errors_table(found: Sequence[tuple[Case, dict[str, list[float]]]]) -> str:
    header = ["scores"]
    for name in FITS:
        header += [f"{name}: ECE", "Brier", "log loss"]
    body = []
    for case, means in found:
        cells = [case.name]
        for errors in means.values():
            cells += [f"**{errors[0]:.4f}**", f"{errors[1]:.5f}", f"{errors[2]:.4f}"]
        body.append(cells)
    known = [(case, means) for case, means in found if case.truth is not None]
    second = [
        ["scores", *(f"{name}: {what}" for name in FITS for what in ("true ECE", "distance"))]
    ]
    for case, means in known:
        second.append(
            [case.name, *(f"{e:.4f}" for errors in means.values() for e in (errors[4], errors[3]))]
        )
    return f"{_table(header, body)}\n\n{_table(second[0], second[1:])}"


def _slopes_section(*, quick: bool) -> str:
    body = []
    for model, theory in zip(MODELS, ("-0.33", "-0.33", "-0.25", "-0.25"), strict=True):
        _say(f"slopes, {model.name}")
        counts, errors, slope = slopes(model, quick=quick)
        body.append([model.name, *(f"{error:.4f}" for error in errors), f"{slope:.2f}", theory])
    header = ["privacy", *(f"M = {count:,}" for count in counts), "slope", "theory"]
    return (
        "## Slopes with the number of clients\n\n"
        "Mean distance to the true probability of the paper's equi-depth binning (paper preset, "
        "B of `thm:calib:secagg` and `thm:calib:dp`) on S-shaped scores; *nan* where noise drowns "
        "a class.\n\n"
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
    parser.add_argument("--quick", action="store_true", help="fewer trials and rows")
    parser.add_argument("--trials", type=int, default=10, help="for each figure (default: 10)")
    arguments = parser.parse_args()
    quick: bool = arguments.quick
    trials: int = 2 if quick else arguments.trials
    text = "\n\n".join(page(arguments.data, trials=trials, quick=quick)) + "\n"
    print(text)
    _PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
