"""Endless clients: surveys of samples drawn from a scored table, and their errors."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from experiments.data import Scored, halves
from fedassay.calibration import ece
from fedassay.decoding import decode
from fedassay.draws import draw_tally
from fedassay.examples import Examples
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.exact_rows import row_calibration, row_metrics
from fedassay.metrics.named import named_metric
from fedassay.planning.search import SurveyDesign


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Rows to draw clients from, and a public reference with the same scores."""

    name: str
    rows: Examples
    reference: Examples

    def shares(self, design: SurveyDesign, rate: float | None) -> NDArray[np.float64]:
        """The probability of every label x cell, at the rows' own rate or another."""
        counts = design.survey.grid.count(self.rows).astype(np.float64)
        if rate is not None:
            counts *= np.array([[1.0 - rate], [rate]]) / counts.sum(axis=1, keepdims=True)
        found: NDArray[np.float64] = counts / counts.sum()
        return found

    def truth(self, rate: float | None, thresholds: tuple[float, ...]) -> dict[str, float]:
        """The metrics of the rows, reweighted by repeating one class where a rate is given."""
        rows = self.rows if rate is None else _reweighted(self.rows, rate)
        exact = {name: value for name, value in row_metrics(rows, thresholds).items() if value}
        return exact | {"ece": row_calibration(rows, rows.scores)["ece"]}


def population(table: Scored) -> Population:
    """One half of a table is the reference, the other half the population."""
    reference, rows = halves(table.examples, np.random.default_rng(5))
    return Population(table.name, rows, reference)


def synthetic(rows: int = 200_000) -> list[Scored]:
    """Two shapes unlike the tables: scores crowded at both ends, and few distinct ones."""
    generator = np.random.default_rng(7)
    ends = generator.beta(0.4, 0.6, rows)
    labels = generator.random(rows) < 0.05 + 0.85 * ends**1.3
    steps = np.round(generator.beta(2.0, 4.0, rows) * 40.0) / 40.0
    tied = generator.random(rows) < np.clip(1.2 * steps, 0.0, 1.0)
    return [
        Scored("crowded at both ends", Examples(labels, ends)),
        Scored("41 distinct scores", Examples(tied, steps)),
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A metric over trials, each with new clients: as estimated, and from exact counts."""

    estimated: NDArray[np.float64]
    exact: NDArray[np.float64]

    @property
    def noise_sd(self) -> float:
        """The spread of what privacy noise added, the same clients' exact counts given."""
        return float(np.nanstd(self.estimated - self.exact))

    @property
    def standard_error(self) -> float:
        """The spread of the estimates about their mean."""
        return float(np.nanstd(self.estimated))

    @property
    def answered(self) -> float:
        """The share of trials with an answer."""
        return float(np.isfinite(self.estimated).mean())


def drawn(
    design: SurveyDesign,
    shares: NDArray[np.float64],
    *,
    clients: int,
    metrics: tuple[str, ...],
    trials: int,
    seed: int = 11,
) -> dict[str, Drawn]:
    """Each metric over trials with clients drawn anew."""
    generator = np.random.default_rng(seed)
    found = {name: np.empty((2, trials)) for name in metrics}
    for trial in range(trials):
        leaves = generator.multinomial(clients, shares.ravel()).reshape(shares.shape)
        tally = draw_tally(design.survey, leaves, clients=clients, generator=generator)
        noisy = decode(design.survey, tally, decode_options=design.decode_options)
        exact = ScoreHistogram(noisy.edges, leaves.astype(np.float64), smooth=noisy.smooth)
        for name in metrics:
            found[name][0, trial] = _value(noisy, name, design.decode_options.buckets)
            found[name][1, trial] = _value(exact, name, design.decode_options.buckets)
    return {name: Drawn(*values) for name, values in found.items()}


def _value(histogram: ScoreHistogram, name: str, buckets: int | None) -> float:
    if name == "ece":
        return ece(histogram).value
    return named_metric(histogram, name, buckets=buckets).value


@lru_cache(maxsize=16)
def _reweighted(rows: Examples, rate: float) -> Examples:
    """So many copies of negatives that positives make up about `rate`; both stay whole."""
    positive = rows.positives
    copies = max(1, round(positive * (1.0 - rate) / rate / (len(rows) - positive)))
    negatives = rows.scores[rows.labels == 0]
    return Examples(
        np.repeat([0, 1], [copies * len(negatives), positive]),
        np.concatenate([np.tile(negatives, copies), rows.scores[rows.labels == 1]]),
    )
