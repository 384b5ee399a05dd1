"""The choice among ways to ask about classes: the smallest predicted error.

Expected counts of a model of the scores go through the noise that the parts will have.
"""

from dataclasses import replace
from fractions import Fraction
from math import hypot, sqrt

import numpy as np

from fedassay.classes.class_design import ClassDesign
from fedassay.classes.class_survey import (
    TABLES,
    ClassSurvey,
    class_survey,
    exact_survey,
    table_parts,
)
from fedassay.classes.encodings import Part, PartKind
from fedassay.classes.joined_counts import area_gradient, join_own, scaled_up
from fedassay.errors import SettingInvalid
from fedassay.grid import Grid
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Privacy, UnitKind
from fedassay.metrics.delta_method import sampling_variance
from fedassay.metrics.roc_auc import roc_auc
from fedassay.planning.forecast import ASSUMED_AUC, expected_histogram
from fedassay.planning.open_settings import check_request
from fedassay.planning.request import Preset, Steps, SurveyRequest
from fedassay.planning.score_model import binormal, on_grid

_CELLS = (6, 8, 12, 16, 24, 32, 48, 64)
_MOST_EDGES = 2**16
# A part that fewer clients are expected to draw may be drawn by too few to be released.
_FEWEST_DRAWN = 50
# Classes are seldom alike, and the scores of a rare one crowd near 0.
_RARER = (1.0, 4.0)


def design_classes(
    request: SurveyRequest, names: tuple[str, ...], *, design: ClassDesign | None = None
) -> ClassSurvey:
    """The design, if none is given, and the grid with the smallest predicted error.

    >>> design_classes(SurveyRequest(), ("a", "b", "c")).design
    <ClassDesign.EVERY: 'every'>
    """
    check_class_request(request, design)
    if not request.privacy.spends_epsilon:
        return exact_survey(request, names)
    chosen, grid = _best(request, len(names), design)
    return class_survey(request, names, chosen, grid)


def best_tables(request: SurveyRequest, names: tuple[str, ...]) -> ClassSurvey:
    """Histograms of all classes alone, with all of epsilon.

    >>> request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=100_000)
    >>> best_tables(request, ("a", "b", "c")).epsilon
    Fraction(1, 1)
    """
    chosen, grid = _best(request, len(names), None)
    numbers = range(len(names))
    parts = table_parts(request, names, chosen, grid, numbers, share=Fraction(1))
    return ClassSurvey(names=names, design=chosen, parts=parts)


def _best(
    request: SurveyRequest, classes: int, design: ClassDesign | None
) -> tuple[ClassDesign, Grid]:
    """The design, if none is given, and the grid with the smallest predicted error."""
    designs = possible_designs(request, classes) if design is None else (design,)
    found = {each: smallest_error(request, classes, each) for each in designs}
    chosen = min(found, key=lambda each: found[each][0])
    return chosen, found[chosen][1]


def smallest_error(request: SurveyRequest, classes: int, design: ClassDesign) -> tuple[float, Grid]:
    """The smallest predicted error of a design, and the grid that has it."""
    errors = [(predicted_error(request, classes, design, grid), grid) for grid in _grids(classes)]
    return min(errors, key=lambda each: each[0])


def check_class_request(request: SurveyRequest, design: ClassDesign | None) -> None:
    """Raise for what is asked of one score only, or cannot be kept for classes.

    >>> check_class_request(SurveyRequest(), None)
    """
    check_request(request)
    given = {
        "the paper preset": request.preset is Preset.PAPER,
        "two steps": request.steps is Steps.TWO,
        "a height": request.height is not None,
        "a budget": request.budget is not None,
        "a reference": request.reference is not None,
        "quantile buckets": request.buckets is not None,
        "a mechanism for sites' moments": request.site_moments,
    }
    for name, is_given in given.items():
        if is_given:
            raise SettingInvalid(
                f"with more than two classes the planner chooses grids and shares; found {name}. "
                "Leave it out, or assess one class against the rest (--score)."
            )
    if request.privacy.is_local and request.unit.kind is UnitKind.PATIENT:
        raise SettingInvalid(
            "under local privacy each row answers one part, and a patient's rows would answer "
            "several; found unit patient. Use unit client, or another privacy model."
        )
    if request.privacy is Privacy.SITE and design is ClassDesign.DRAWN:
        raise SettingInvalid(
            "under site privacy every site answers every part; found one part each (drawn). "
            "Choose every or own."
        )


def possible_designs(request: SurveyRequest, classes: int) -> tuple[ClassDesign, ...]:
    """What there is to choose from: who adds the whole noise, or is one of few, answers every part.

    >>> [design.value for design in possible_designs(SurveyRequest(privacy=Privacy.SITE), 4)]
    ['every', 'own']
    """
    few = (request.clients or 1) * TABLES / classes < _FEWEST_DRAWN
    if request.privacy is Privacy.SITE or (few and not request.privacy.is_local):
        return (ClassDesign.EVERY, ClassDesign.OWN)
    return tuple(ClassDesign)


def predicted_error(request: SurveyRequest, classes: int, design: ClassDesign, grid: Grid) -> float:
    """Of the ROC AUC of a class that is one of K alike, and of one a quarter as common, added.

    >>> request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=100_000)
    >>> one, all_of_them = (
    ...     predicted_error(request, 10, design, Grid.uniform(8))
    ...     for design in (ClassDesign.DRAWN, ClassDesign.EVERY)
    ... )
    >>> one < all_of_them
    True
    """
    names = tuple(map(str, range(classes)))
    parts = table_parts(request, names, design, grid, (0,))
    common = request.positive_rate or 1.0 / classes
    return sum(_error_at(request, parts, classes, common / rarer) for rarer in _RARER)


def _error_at(request: SurveyRequest, parts: tuple[Part, ...], classes: int, rate: float) -> float:
    """Of the ROC AUC of a class so common: sampling, binning and noise together."""
    rows = float(request.examples or request.clients or 1)
    model = binormal(examples=rows, positive_rate=rate, auc=request.auc or ASSUMED_AUC)
    expected = _expected(request, parts, model, classes)
    _, gradient = area_gradient(expected)
    plain = roc_auc(ScoreHistogram(expected.edges, expected.counts))
    noise_sd = sqrt(expected.noise.variance(gradient))
    return hypot(noise_sd, sqrt(sampling_variance(expected, gradient)), plain.binning_sd)


def _expected(
    request: SurveyRequest, parts: tuple[Part, ...], model: ScoreHistogram, classes: int
) -> ScoreHistogram:
    """What the first class's histogram would be on average, with the noise it would carry."""
    rest = _expected_part(request, parts[0], model)
    if parts[-1].kind is not PartKind.OWN:
        return rest
    positives = on_grid(model, parts[0].survey.grid)[1]
    edges = parts[-1].survey.grid.edges
    side_by_side = np.tile(positives, classes)
    everybody = ScoreHistogram(edges, np.stack([np.zeros_like(side_by_side), side_by_side]))
    return join_own(rest, _expected_part(request, parts[-1], everybody), 0)


def _expected_part(request: SurveyRequest, part: Part, model: ScoreHistogram) -> ScoreHistogram:
    clients = float(request.clients or 1)
    share = 1.0 if part.client_fraction is None else float(part.client_fraction)
    heard = replace(model, counts=model.counts * share)
    expected = expected_histogram(part.survey, heard, clients=clients * share)
    return expected if part.client_fraction is None else scaled_up(expected, 1.0 / share)


def _grids(classes: int) -> list[Grid]:
    cells = [cells for cells in _CELLS if cells * classes < _MOST_EDGES]
    return [shape(each) for each in cells for shape in (Grid.uniform, Grid.cubic)]
