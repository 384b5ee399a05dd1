"""A federation over rows that have scores of two models, in one process."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace

import numpy as np

from fedassay.errors import LabelInvalid
from fedassay.examples import Examples, ScoredClients
from fedassay.metrics.exact_rows import row_calibration, row_metrics
from fedassay.paired.assessment import PairedAssessment, model_metric
from fedassay.paired.gradients import compared_metrics
from fedassay.paired.published import pair_of
from fedassay.planning.search import SurveyDesign
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import Progress, tally_clients, tally_each_client


@dataclass(frozen=True, slots=True, eq=False)
class PairedClients:
    """Rows with two scores each, and the client that holds each row."""

    first: ScoredClients
    """With the first model's scores."""
    second: Examples

    def __post_init__(self) -> None:
        rows = len(self.first.examples)
        if len(self.second) != rows:
            raise LabelInvalid(
                f"both models score the same rows; found {rows:,} scores of the first and "
                f"{len(self.second):,} of the second. Pass columns of the same table."
            )

    def coded(self, design: SurveyDesign) -> ScoredClients:
        """The rows with one score for both, as the survey numbers pairs of cells."""
        pair = pair_of(design.survey)
        return replace(self.first, examples=pair.examples(self.first.examples, self.second))


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedPair(PairedAssessment):
    """An assessment of two models on rows that are at hand, with their exact metrics."""

    _: KW_ONLY
    exact_values: Mapping[str, float | None] = field(default_factory=dict)
    """By the names of `estimates`."""
    exact_differences: Mapping[str, float | None] = field(default_factory=dict)
    """By the names of `differences`."""
    rows_given: int = 0


def exact_pair(
    clients: PairedClients, names: tuple[str, str], thresholds: tuple[float, ...]
) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """Both models' exact figures, and the differences of those that are compared."""
    of_first = row_metrics(clients.first.examples, thresholds)
    of_second = row_metrics(clients.second, thresholds)
    values = {
        model_metric(metric, name): value
        for name, figures in zip(names, (of_first, of_second), strict=True)
        for metric, value in figures.items()
    }
    for figures, rows in ((of_first, clients.first.examples), (of_second, clients.second)):
        figures["ece"] = row_calibration(rows, rows.scores)["ece"]
    differences: dict[str, float | None] = {}
    for metric in compared_metrics(thresholds):
        first, second = of_first.get(metric), of_second.get(metric)
        differences[metric] = None if first is None or second is None else first - second
    return values, differences


def assess_pair(
    design: SurveyDesign,
    clients: PairedClients,
    *,
    thresholds: tuple[float, ...],
    randomness: SimulatedRandomness,
    each_client: bool = False,
    progress: Progress | None = None,
) -> PairedAssessment:
    """Ask the clients once; with `each_client` report by report."""
    cohort, survey = clients.coded(design), design.survey
    if each_client:
        tally = tally_each_client(survey, cohort, randomness=randomness, progress=progress)
    else:
        tally = tally_clients(survey, cohort, randomness=randomness)
    return PairedAssessment(survey, tally, design.decode_options, thresholds)


def simulated_pair(
    design: SurveyDesign,
    clients: PairedClients,
    *,
    thresholds: tuple[float, ...],
    seed: int | None,
) -> SimulatedPair:
    """One federation over the rows, as `fedassay simulate` runs its first trial."""
    (sequence,) = np.random.SeedSequence(seed).spawn(1)
    found = assess_pair(
        design, clients, thresholds=thresholds, randomness=SimulatedRandomness(sequence)
    )
    values, differences = exact_pair(clients, found.names, thresholds)
    return SimulatedPair(
        found.survey,
        found.tally,
        found.decode_options,
        thresholds,
        exact_values=values,
        exact_differences=differences,
        rows_given=len(clients.second),
    )
