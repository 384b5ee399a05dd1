"""The choice of a survey of two models: joint cells alone, or finer margins with coarse ones.

Joint cells carry both margins, but there are as many as the product of the two. Where noise is
added once, a level for each margin and a few joint cells often feel less: the margins give the
figures, the joint cells their covariance. Under local privacy a client reports on one level, so
that the margins are of different rows and nothing cancels; where noise is much larger than luck
that is still better than the many joint cells that it would take to have both figures at once.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import hypot

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate, TooCoarse
from fedassay.examples import FloatArray
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.level_policy import OneLevel
from fedassay.metrics.named import named_metric
from fedassay.pair_grid import Names, PairGrid, check_names
from fedassay.pair_levels import PairLevels
from fedassay.pair_nesting import LADDER, ladder_cuts
from fedassay.paired.decoding import Places, assembled, level_variances
from fedassay.paired.difference import PairReader
from fedassay.paired.pair_histogram import PairHistogram
from fedassay.planning.build import build_survey
from fedassay.planning.candidates import warped_grid
from fedassay.planning.crowd import can_fill
from fedassay.planning.forecast import expected_reports
from fedassay.planning.open_settings import check_request
from fedassay.planning.pair_model import PairModel, References, pair_models
from fedassay.planning.request import LevelChoice, Preset, Steps, SurveyRequest
from fedassay.planning.search import SurveyDesign, decode_options_for, nested_cells
from fedassay.survey import Survey

# With fewer cells of a model, what they hide of its Brier score is more than intervals tell.
_JOINT_SIZES = (6, 8, 10, 12, 16, 24)
_MARGIN_SIZES = (12, 16, 24, 32, 48, 64, 96)
_LOCAL_CAUTION = 0.25
_DRAWN_SIZES = (6, 8, 12, 16, 24, 32, 48)
_GROUPS = 6
_CUBIC_BELOW = 64
_MOST_NESTED = 240
_SHARED = (Fraction(3, 7), Fraction(3, 7), Fraction(1, 7))
"""Of epsilon, for either margin and the joint cells."""
_DRAWN = (Fraction(9, 20), Fraction(9, 20), Fraction(1, 10))
"""Of clients, where each reports on one level: joint cells only say who changes sides."""


def check_pair_request(request: SurveyRequest) -> None:
    """Raise where a request asks for what goes with one model's scores only.

    >>> check_pair_request(SurveyRequest(clients=1000))
    """
    given = {
        "the paper preset": request.preset is Preset.PAPER,
        "a height": request.height is not None,
        "a budget": request.budget is not None,
        "batches": request.levels is LevelChoice.BATCHES,
        "two steps": request.steps is Steps.TWO,
        "groups": request.groups is not None,
        "site moments": request.site_moments,
        "buckets": request.buckets is not None,
        "a reference of one model": request.reference is not None,
    }
    for name, is_given in given.items():
        if is_given:
            raise SettingInvalid(
                f"a survey of two models chooses its own cells in one step; {name} does not go "
                "with it. Leave it out."
            )
    check_request(request)


def design_pair(
    request: SurveyRequest, names: Names = ("a", "b"), *, references: References | None = None
) -> SurveyDesign:
    """The survey of two models with the smallest predicted errors of their differences.

    `references` are the same public rows, scored by both.

    >>> design_pair(SurveyRequest(minimum_reports=5), ("old", "new")).survey.pair
    <PairGrid: ...>
    """
    check_names(names)
    check_pair_request(request)
    options = decode_options_for(request.preset, None)
    if not request.privacy.spends_epsilon:
        return SurveyDesign(_exact(request, names, references), options)
    models = pair_models(request, references)
    best = min(
        _candidates(request, names, references, models[0]),
        key=lambda survey: _error(request, survey, models),
    )
    return SurveyDesign(best, options)


def expected_pair(
    survey: Survey, model: PairModel, *, clients: float, smooth: bool = True
) -> PairHistogram:
    """What decoding would give on average, with the noise it would carry.

    >>> request = SurveyRequest(clients=1000)
    >>> survey, (model, *_) = design_pair(request).survey, pair_models(request, None)
    >>> round(expected_pair(survey, model, clients=1000).joint.sum())
    1000
    """
    pair = survey.grid
    if not isinstance(pair, PairGrid):
        raise SettingInvalid("two models need a pair of grids; found one. Use design_pair.")
    counts = list(survey.hierarchy.climb(model.leaves(pair)))
    margins, joint = (pair.first.edges, pair.second.edges), (pair.first.edges, pair.second.edges)
    if isinstance(survey.hierarchy, PairLevels):
        rows, columns = (np.array(cuts) for cuts in survey.hierarchy.cuts[-1])
        joint = np.append(margins[0][rows], 1.0), np.append(margins[1][columns], 1.0)
    variances = None
    if not survey.is_exact:
        reports = [clients] * survey.hierarchy.levels
        if isinstance(survey.level_policy, OneLevel):
            reports = [clients * float(part) for part in survey.level_policy.client_fractions]
        variances = level_variances(survey, counts, clients=clients, reports=reports)
    return assembled(survey, Places(margins, joint), counts, variances, smooth=smooth)


def _exact(request: SurveyRequest, names: Names, references: References | None) -> Survey:
    """Without noise fine margins cost nothing, and joint cells only who is alone in one."""
    cells = min(nested_cells(request.rows_expected, max(request.smallest, 1)), _MOST_NESTED)
    wanted = (*LADDER, *request.thresholds)
    sides = references or (None, None)
    first, second = (
        Grid.nested(
            cells,
            reference=None if side is None else side.scores,
            labels=None if side is None else side.labels,
            thresholds=wanted,
        )
        for side in sides
    )
    cuts = [ladder_cuts(grid) for grid in (first, second)]
    if not request.smallest:
        cuts = [
            tuple(sorted({*own, *_places(grid, request.thresholds)}))
            for own, grid in zip(cuts, (first, second), strict=True)
        ]
    levels = PairLevels.margins_and(first.cells, second.cells, (cuts[0], cuts[1]))
    return build_survey(request, PairGrid.of(names, first, second), levels)


def _places(grid: Grid, thresholds: tuple[float, ...]) -> set[int]:
    """The cells that begin at thresholds, where these are edges."""
    return {
        int(np.searchsorted(grid.edges, threshold))
        for threshold in thresholds
        if 0.0 < threshold < 1.0 and threshold in grid.edges
    }


def _candidates(
    request: SurveyRequest, names: Names, references: References | None, model: PairModel
) -> Iterator[Survey]:
    for size in _JOINT_SIZES:
        for pair in _pairs(request, names, references, size):
            yield build_survey(request, pair, Hierarchy.flat(pair.cells))
    sizes, shares, groups = _MARGIN_SIZES, _SHARED, _GROUPS
    if request.privacy.is_local:
        if not can_fill(request, _DRAWN):
            return
        sizes, shares, groups = _DRAWN_SIZES, _DRAWN, 2 - bool(request.thresholds)
    for size in sizes:
        for pair in _pairs(request, names, references, size):
            joint = _groups(pair, model, request.thresholds, groups)
            levels = PairLevels.margins_and(pair.first.cells, pair.second.cells, joint)
            yield build_survey(request, pair, levels, shares)


def _pairs(
    request: SurveyRequest, names: Names, references: References | None, size: int
) -> list[PairGrid]:
    """Pairs of grids of about so many cells each, with thresholds on edges."""
    if references is not None:
        shapes = [(warped_grid(references[0], size), warped_grid(references[1], size))]
    else:
        even = Grid.uniform(size)
        shapes = [(even, even)]
        if size < _CUBIC_BELOW:
            shapes.append((Grid.cubic(size), Grid.cubic(size)))
    pinned = [tuple(grid.with_edges_at(request.thresholds) for grid in grids) for grids in shapes]
    return [PairGrid.of(names, first, second) for first, second in pinned]


def _groups(
    pair: PairGrid, model: PairModel, thresholds: tuple[float, ...], groups: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A few groups of each model's cells, of about equal mass in both labels, cut at thresholds."""
    table = model.leaves(pair).reshape(2, pair.first.cells, pair.second.cells)
    table = table / table.sum(axis=(1, 2), keepdims=True)
    sides = (table.sum(axis=(0, 2)), table.sum(axis=(0, 1)))
    rows, columns = (
        tuple(sorted(_even_cuts(mass, groups) | _places(grid, thresholds)))
        for mass, grid in zip(sides, (pair.first, pair.second), strict=True)
    )
    return rows, columns


def _even_cuts(mass: FloatArray, groups: int) -> set[int]:
    below = np.cumsum(mass) / mass.sum()
    wanted = (np.arange(1, groups)) / groups
    cuts = np.searchsorted(below, wanted) + 1
    return {0, *(int(cut) for cut in cuts if 0 < cut < len(mass))}


def _error(request: SurveyRequest, survey: Survey, models: list[PairModel]) -> float:
    """The mean log of predicted errors of differences: of ROC AUC twice, and at thresholds.

    Binning counts in full for either model, though the interval lets cancel what both share;
    where every cell is dear, as under local privacy, a quarter of it does.
    """
    caution = _LOCAL_CAUTION if request.privacy.is_local else 1.0
    points = request.thresholds or (0.5,)
    metrics = ["roc_auc", "roc_auc"]
    metrics += [f"{name}@{points[0]!r}" for name in ("precision", "recall")]
    logs = []
    for model in models:
        pair = expected_pair(survey, model, clients=float(expected_reports(request)))
        reader = PairReader(pair)
        found = {metric: _of(reader, model, metric, caution) for metric in dict.fromkeys(metrics)}
        logs += [np.log(found[metric]) for metric in metrics]
    return float(np.mean(logs))


def _of(reader: PairReader, model: PairModel, metric: str, caution: float) -> float:
    difference = reader.difference(metric)
    sides = ((difference.first, model.first), (difference.second, model.second))
    if not difference.is_available:
        return max(_unread(estimate) for estimate, _ in sides)
    biases = [estimate.value - named_metric(of, metric).value for estimate, of in sides]
    # Models that nobody has seen need not be alike.
    hidden = (difference.first.binning_sd, difference.second.binning_sd, *biases)
    return hypot(difference.standard_error, *(caution * each for each in hidden)) + 1e-12


def _unread(estimate: Estimate) -> float:
    """Where there would be no answer: what the grid hides, or everything."""
    if estimate.is_available:
        return 0.0
    return hypot(estimate.noise_sd, estimate.binning_sd) if isinstance(estimate, TooCoarse) else 1.0
