"""Two models on the same rows: paired intervals against unpaired ones, and how often they hold.

`python -m experiments.paired` writes `experiments/paired.md` (ten minutes); with --quick it prints
a smaller run only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from scipy.special import expit
from scipy.stats import binom

import fedassay
from experiments.data import ROOT, SHARED, Scored
from experiments.page import markdown_table, run, say
from fedassay import Estimate, Privacy
from fedassay.comparison.difference import Difference
from fedassay.examples import Examples, ScoredClients
from fedassay.metrics.exact_rows import row_calibration, row_metrics
from fedassay.paired.difference import PairedDifference, PairReader
from fedassay.planning.pair_search import design_pair
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import SurveyDesign
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.pairs import PairedClients, assess_pair, simulated_pair

SETTINGS = {
    "secure": (Privacy.SECURE, None),
    "distributed ε = 1": (Privacy.DISTRIBUTED, Fraction(1)),
    "local ε = 5": (Privacy.LOCAL, Fraction(5)),
}
METRICS = ("roc_auc", "brier", "ece", "precision@0.5", "recall@0.5", "net_benefit@0.5")
ROWS = 10_000
_NAME = "scores_nycflights13_two_models.parquet"
# Beside the repository, or beside the folder of its work trees.
_PLACES = (SHARED / _NAME, ROOT.parents[1] / "shared" / "data" / _NAME)
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Population:
    """Two models of the same rows: log-odds that share a part, and how far each tells labels."""

    shared: float
    gaps: tuple[float, float]

    def rows(self, count: int, generator: np.random.Generator) -> PairedClients:
        """So many rows drawn anew."""
        labels = (generator.random(count) < 0.3).astype(np.int64)
        common = generator.normal(size=count)
        own = np.sqrt(1.0 - self.shared**2)
        first, second = (
            expit(self.shared * common + own * generator.normal(size=count) + gap * labels - 1.2)
            for gap in self.gaps
        )
        return clients_of(labels, first, second)


POPULATIONS = {
    "equal models": Population(0.8, (1.0, 1.0)),
    "b a little better": Population(0.8, (1.0, 1.08)),
}


def clients_of(labels: npt.ArrayLike, first: npt.ArrayLike, second: npt.ArrayLike) -> PairedClients:
    """Rows that two models scored, each row a client."""
    one = Examples(labels, first)
    return PairedClients(ScoredClients(one, None, len(one)), Examples(labels, second))


def design_for(privacy: Privacy, epsilon: Fraction | None, rows: int) -> SurveyDesign:
    """What the planner chooses for so many rows when nothing else is said."""
    request = SurveyRequest(
        privacy=privacy,
        epsilon=epsilon,
        clients=rows,
        examples=rows,
        dropouts=Fraction(0),
        thresholds=(0.5,),
    )
    return design_pair(request)


def page(tables: list[Scored], trials: int, quick: bool) -> Iterator[str]:
    """The page, one part after the other."""
    yield (
        "# Two models on the same rows\n\nWritten by `python -m experiments.paired`. Each row is a "
        "client; surveys are those that the planner chooses when nothing is said."
    )
    say(f"beside {len(tables)} tables of one model")
    for place in _PLACES:
        if place.is_file():
            yield from widths(place)
            break
    yield from coverage(trials, ("equal models",) if quick else tuple(POPULATIONS))


def widths(place: Path) -> Iterator[str]:
    """Half widths on flights: one paired survey against two surveys of the same promise."""
    table = pq.read_table(place)
    labels = table["label"].to_numpy()
    scores = [table[name].to_numpy().astype(np.float64) for name in ("score_a", "score_b")]
    clients = clients_of(labels, *scores)
    body = []
    for name, (privacy, epsilon) in SETTINGS.items():
        say(f"widths, {name}")
        design = design_for(privacy, epsilon, len(labels))
        found = simulated_pair(design, clients, thresholds=(0.5,), seed=1)
        unpaired = two_surveys(labels, scores, privacy, epsilon)
        levels = " + ".join(map(str, design.survey.hierarchy.cells_per_level))
        for metric in METRICS:
            paired = found.differences()[metric]
            apart = Difference(*(each[metric] for each in unpaired))
            halves = [half(paired), half(apart)]
            exact = found.exact_differences[metric] or 0.0
            figures = [f"{each:.4f}" for each in halves]
            values = [f"{exact:+.4f}", f"{paired.value:+.4f}"]
            body.append([name, levels, metric, *values, *figures, f"{halves[0] / halves[1]:.2f}"])
    header = (
        "privacy", "cells", "metric", "exact a - b", "paired", "± paired", "± unpaired", "ratio",
    )  # fmt: skip
    yield (
        "## On flights\n\n`scores_nycflights13_two_models`, "
        f"{len(labels):,} rows. *Unpaired* are two surveys with the same promise together, read by "
        "`fedassay compare`: of exact sums both of all rows, of distributed noise both of all rows "
        "with half of epsilon each, of local reports each of one half of the rows with all of it."
    )
    yield markdown_table(header, body)
    yield (
        "Where noise is added once, pairing takes about half of the interval of ROC AUC away, and "
        "more where models agree more. Under local privacy, where nobody said how rare positives "
        "are, each row answers for one of the models, and nothing cancels: the interval is about "
        "that of two surveys of one half each in one step. Those here ask in two steps where the "
        "scores lie, which helps on scores as crowded as these."
    )


def two_surveys(
    labels: Labels,
    scores: list[npt.NDArray[np.float64]],
    privacy: Privacy,
    epsilon: Fraction | None,
) -> list[fedassay.Assessment]:
    """One survey of each model, with one promise together."""
    halves = np.random.default_rng(1).permutation(len(labels)) % 2 == 0
    parts = [halves, ~halves] if privacy.is_local else [np.ones(len(labels), bool)] * 2
    share = epsilon
    if epsilon is not None and not privacy.is_local:
        share = epsilon / 2
    return [
        fedassay.simulate(labels[part], own[part], privacy=privacy, epsilon=share, seed=1)
        for own, part in zip(scores, parts, strict=True)
    ]


def half(difference: PairedDifference | Difference | Estimate) -> float:
    """Half of a 95 % interval."""
    low, high = difference.interval()
    return (high - low) / 2.0


def coverage(trials: int, names: tuple[str, ...]) -> Iterator[str]:
    """How often intervals hold the population's difference, and tell models apart."""
    body = []
    for name in names:
        population = POPULATIONS[name]
        truth = true_differences(population)
        for setting, (privacy, epsilon) in SETTINGS.items():
            say(f"coverage, {name}, {setting}")
            design = design_for(privacy, epsilon, ROWS)
            hits = dict.fromkeys(METRICS, 0)
            told = dict.fromkeys(METRICS, 0)
            ratios: dict[str, list[float]] = {metric: [] for metric in METRICS}
            for trial in range(trials):
                found = one_trial(design, population, trial)
                for metric in METRICS:
                    hits[metric] += truth[metric] in found[metric].interval()
                    told[metric] += found[metric].told_apart()
                    off = found[metric].value - truth[metric]
                    ratios[metric].append(off / found[metric].standard_error)
            for metric in METRICS:
                spread = float(np.std(ratios[metric]))
                low, high = (binom.ppf(q, trials, hits[metric] / trials) for q in (0.025, 0.975))
                luck = f"{low / trials:.1%} to {high / trials:.1%}"
                shares = [f"{hits[metric] / trials:.1%}", luck, f"{spread:.2f}"]
                told_in = f"{told[metric] / trials:.1%}"
                body.append([name, setting, metric, f"{truth[metric]:+.4f}", *shares, told_in])
    yield (
        f"## How often intervals hold\n\nMade-up models of {ROWS:,} rows, drawn anew {trials} "
        "times: log-odds that share a normal part. *Holds* is how often the 95 % interval has the "
        "population's difference, *spread* the standard deviation of errors in standard errors, "
        "*told apart* the power, and where the models are equal the false-alarm rate."
    )
    header = (
        "population", "privacy", "metric", "true a - b", "holds", "of which luck", "spread",
        "told apart",
    )  # fmt: skip
    yield markdown_table(header, body)
    yield (
        "Intervals hold about as often as stated. Under local privacy few cells leave much open "
        "inside them, of both models to the same side: of ROC AUC and Brier score the interval "
        "counts what is left of it when one is taken from the other, and a quarter of what they "
        "share. Of ECE, sizes that are lost in noise err to one side: what they add is not let "
        "cancel, so that its intervals hold more often than stated where models are next to "
        "calibrated."
    )


def one_trial(
    design: SurveyDesign, population: Population, trial: int
) -> dict[str, PairedDifference]:
    """The differences that one federation over rows drawn anew finds."""
    generator = np.random.default_rng([7, trial])
    rows = population.rows(ROWS, generator)
    randomness = SimulatedRandomness(np.random.SeedSequence([8, trial]))
    found = assess_pair(design, rows, thresholds=(0.5,), randomness=randomness)
    reader = PairReader(found.pair())
    return {metric: reader.difference(metric) for metric in METRICS}


def true_differences(population: Population) -> dict[str, float]:
    """From four million rows; of equal models nothing."""
    if population.gaps[0] == population.gaps[1]:
        return dict.fromkeys(METRICS, 0.0)
    rows = population.rows(4_000_000, np.random.default_rng(3))
    sides = (rows.first.examples, rows.second)
    first, second = (
        {**row_metrics(each, (0.5,)), "ece": row_calibration(each, each.scores)["ece"]}
        for each in sides
    )
    return {metric: (first[metric] or 0.0) - (second[metric] or 0.0) for metric in METRICS}


if __name__ == "__main__":
    run(Path(__file__), __doc__, page, trials=1000)
