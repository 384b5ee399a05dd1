"""The dependence on epsilon, and the table of rates (`tab:results`)."""

from collections import defaultdict
from fractions import Fraction

import numpy as np

from fedassay.decoding import decode
from fedassay.draws import draw_tally
from fedassay.examples import Examples, FloatArray
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.mechanisms import Exact, Polya, Privacy, UnaryEncoding
from fedassay.metrics.roc_auc import even_area, likely_area
from fedassay.planning.search import SurveyDesign
from fedassay.planning.theory import Case, threshold_buckets
from fedassay.reproduction.areas import exact_area
from fedassay.reproduction.calibration_errors import (
    binning_error,
    repeated_errors,
    sampled_halves,
)
from fedassay.reproduction.datasets import Dataset
from fedassay.reproduction.federations import (
    default_design,
    default_histogram,
    paper_design,
    paper_histogram,
    repetitions,
)
from fedassay.reproduction.results import Point, points_of
from fedassay.reproduction.settings import BUCKETS, THRESHOLDS, Model, Settings
from fedassay.reproduction.threshold_errors import errors, exact_values, mean_error
from fedassay.survey import Survey

AREA, RATES, CALIBRATION = "ROC AUC", "precision, recall, accuracy", "calibration error"
GIVEN = "a given classifier"
_HEIGHTS = (2, 14)

Values = dict[tuple[str, float], list[float]]


def by_epsilon(
    data: Dataset, model: Model, settings: Settings, generator: np.random.Generator
) -> list[Point]:
    """Errors of everything at one epsilon, of the paper's preset and of our default."""
    clients, name = len(data.examples), model.privacy.value
    epsilon = 0.0 if model.epsilon is None else float(model.epsilon)
    paper, default = paper_design(model, clients), default_design(model, clients, THRESHOLDS)
    panels: dict[str, Values] = defaultdict(lambda: defaultdict(list))
    for rows in repetitions(
        data.examples, clients, times=settings.repetitions, generator=generator
    ):
        truth, area = exact_values(rows), exact_area(rows)
        leaves = paper_histogram(paper, rows, generator)
        ours = default_histogram(default, rows, generator, THRESHOLDS)
        theirs = even_area(leaves.equi_depth(BUCKETS))[0]
        panels[AREA][name, epsilon].append(abs(theirs - area))
        panels[AREA][f"{name}: default", epsilon].append(abs(likely_area(ours).value - area))
        panels[RATES][name, epsilon].append(mean_error(errors(leaves, truth)))
        panels[RATES][f"{name}: default", epsilon].append(mean_error(errors(ours, truth)))
    for each in repeated_errors(data, model, clients // 2, settings.repetitions, generator):
        panels[CALIBRATION][name, epsilon].append(each.preset)
        panels[CALIBRATION][f"{name}: default", epsilon].append(each.default)
    return [
        point for panel, values in panels.items() for point in points_of(data.name, panel, values)
    ]


def by_rate(
    data: Dataset, model: Model, clients: int, settings: Settings, generator: np.random.Generator
) -> list[Point]:
    """The four results of `tab:results` with so many clients, by the surveys of their proofs."""
    case = Case(model.privacy, clients, float(model.epsilon or 1))
    trees = {AREA: paper_design(model, clients)}
    panels: dict[str, Values] = defaultdict(lambda: defaultdict(list))
    if model.privacy.spends_epsilon:
        height = int(np.clip(round(np.log2(threshold_buckets(case))), *_HEIGHTS))
        trees[RATES] = paper_design(model, clients, height=height)
    given = given_classifier(model, clients)
    place = (model.name, float(clients))
    for rows in repetitions(
        data.examples, clients, times=settings.repetitions, generator=generator
    ):
        truth = exact_values(rows)
        deep = paper_histogram(trees[AREA], rows, generator).equi_depth(BUCKETS)
        panels[AREA][place].append(abs(even_area(deep)[0] - exact_area(rows)))
        leaves = paper_histogram(trees.get(RATES, trees[AREA]), rows, generator)
        panels[RATES][place].append(mean_error(errors(leaves, truth)))
        if model.privacy.spends_epsilon:
            panels[GIVEN][place].append(given_error(given, rows, generator))
    half = min(clients, len(data.examples) // 2)
    for _ in range(settings.repetitions):
        fitting, testing = sampled_halves(data.examples, half, generator)
        error = binning_error(model, fitting, testing, generator)
        panels[CALIBRATION][model.name, float(half)].append(error)
    return [
        point for panel, values in panels.items() for point in points_of(data.name, panel, values)
    ]


def given_classifier(model: Model, clients: int) -> SurveyDesign:
    """Two cells, on both sides of one half (`sec:pramain`)."""
    grid = Grid.given_classifier(0.5)
    match model.privacy:
        case Privacy.DISTRIBUTED | Privacy.SITE:
            mechanism: Exact | Polya | UnaryEncoding = Polya(
                model.epsilon or Fraction(1), 1, clients
            )
        case Privacy.LOCAL | Privacy.SHUFFLED:
            mechanism = UnaryEncoding(model.epsilon or Fraction(1))
        case Privacy.SECURE:
            mechanism = Exact()
    survey = Survey(
        privacy=model.privacy,
        grid=grid,
        hierarchy=Hierarchy.flat(grid.cells),
        mechanisms=(mechanism,),
        minimum_reports=clients if model.privacy is Privacy.DISTRIBUTED else 1,
    )
    return SurveyDesign(survey, paper_design(model, clients).decode_options)


def given_error(design: SurveyDesign, rows: Examples, generator: np.random.Generator) -> float:
    """The mean error of precision, recall and accuracy of two cells."""
    exact = design.survey.grid.count(rows)
    tally = draw_tally(design.survey, exact, clients=len(rows), generator=generator)
    noisy = decode(design.survey, tally, decode_options=design.decode_options).counts
    return float(np.mean(np.abs(_of_cells(noisy) - _of_cells(exact.astype(np.float64)))))


def _of_cells(counts: FloatArray) -> FloatArray:
    (tn, fp), (fn, tp) = counts
    return np.array([tp / (tp + fp), tp / (tp + fn), (tp + tn) / counts.sum()])
