"""The choice of a survey's parameters; nothing else in the package chooses them.

Every candidate is judged by the closed form: the expected counts of a model of the scores,
put through the same estimators and noise model that will read the tally.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import log, sqrt
from operator import itemgetter

import numpy as np

from fedassay.decode import Readout
from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate, NotEnoughData
from fedassay.examples import Examples, FloatArray
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy, fanouts_for
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Exact, Polya, Unit, check_epsilon
from fedassay.metrics import accuracy, precision, recall, roc_auc
from fedassay.noise import NoiseModel, TreeNoise
from fedassay.scoremodel import binormal, from_reference, on_grid
from fedassay.survey import EveryLevel, LevelPolicy, OneLevel, Survey


class Privacy(Enum):
    """The paper's privacy models (`sec:privacymodels`)."""

    SECURE = "secure"
    DISTRIBUTED = "distributed"


class Preset(Enum):
    """Which choices fill in what the user leaves open."""

    DEFAULT = "default"
    """The best we know."""
    PAPER = "paper"
    """As the paper did it: binary tree of height 10, naive prefix sums, 100 quantile buckets."""


class LevelChoice(Enum):
    """How a tree's levels share the clients (`app:scorehist`)."""

    EVERY = "every"
    """Every client reports on every level; epsilon is split."""
    BATCHES = "batches"
    """Clients are split into batches with one level each; each pays epsilon once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a user asks of a survey; None leaves the choice to the planner."""

    privacy: Privacy = Privacy.SECURE
    epsilon: Fraction | None = None
    clients: int | None = None
    """How many reports are expected."""
    examples: int | None = None
    """How many examples they hold together; None means one each."""
    positive_rate: float | None = None
    preset: Preset = Preset.DEFAULT
    levels: LevelChoice = LevelChoice.EVERY
    height: int | None = None
    fanout: int | None = None
    budget: tuple[Fraction, ...] | None = None
    """Shares of epsilon per level, top down."""
    buckets: int | None = None
    thresholds: tuple[float, ...] = ()
    reference: Examples | FloatArray | None = None
    unit: Unit = Unit()
    minimum_reports: int | None = None
    colluders: int = 0
    model_digest: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A survey, and how its tally will be read."""

    survey: Survey
    readout: Readout


PAPER_HEIGHT = 10
PAPER_BUCKETS = 100
_REFERENCE_CELLS = 2**12
_SHORTLIST = 12
# Nobody said how rare positives are, nor how good the classifier is.
_UNKNOWN_RATE = 0.3
_UNKNOWN_AUCS = (0.75, 0.9)


def choose(request: Request) -> Choice:
    """Fill in everything that the request leaves open."""
    _check(request)
    readout = readout_for(request.preset, request.buckets)
    if request.privacy is Privacy.SECURE:
        return Choice(_secure(request), readout)
    if request.preset is Preset.PAPER or request.height is not None:
        grid = _given_grid(request)
        hierarchy = Hierarchy.regular(grid.cells, request.fanout or 2)
        return Choice(_distributed(request, grid, hierarchy, request.budget), readout)
    return Choice(_best(request), readout)


def _best(request: Request) -> Survey:
    """The candidate with the smallest predicted errors: first ROC AUC, then thresholds too."""
    models = _models(request)
    areas = [(_area_error(survey, models), survey) for survey in _candidates(request)]
    shortlist = sorted(areas, key=itemgetter(0))[:_SHORTLIST]
    thresholds = request.thresholds or (0.2, 0.5, 0.8)
    if len(thresholds) > 3:
        thresholds = tuple(np.quantile(thresholds, (0.2, 0.5, 0.8), method="nearest"))
    scored = [
        (area + _threshold_error(survey, models, thresholds), survey) for area, survey in shortlist
    ]
    return min(scored, key=itemgetter(0))[1]


def readout_for(preset: Preset, buckets: int | None) -> Readout:
    """How a preset reads a tally."""
    if preset is Preset.PAPER:
        return Readout(smooth=False, reconcile=False, buckets=buckets or PAPER_BUCKETS)
    return Readout(buckets=buckets)


def expected_histogram(survey: Survey, model: ScoreHistogram) -> ScoreHistogram:
    """What decoding would give on average, with the noise it would carry."""
    counts = on_grid(model, survey.grid)
    reports = max(survey.minimum_reports, 1)
    noise: NoiseModel = TreeNoise(
        survey.hierarchy,
        tuple(
            np.full((2, cells), max(reports * mechanism.law().variance_per_report, 1e-300))
            for mechanism, cells in zip(
                survey.mechanisms, survey.hierarchy.cells_per_level, strict=True
            )
        ),
    )
    return ScoreHistogram(survey.grid.edges, counts, noise)


def _area_error(survey: Survey, models: list[ScoreHistogram]) -> float:
    """The mean log of predicted ROC AUC errors over the models."""
    errors = [
        _error(roc_auc(expected_histogram(survey, model)), roc_auc(model)) for model in models
    ]
    return sum(map(log, errors)) / len(errors)


def _threshold_error(
    survey: Survey, models: list[ScoreHistogram], thresholds: Sequence[float]
) -> float:
    """The mean log of predicted errors of precision, recall and accuracy."""
    errors = [
        _error(metric(expected, threshold), metric(model, threshold))
        for model in models
        for expected in (expected_histogram(survey, model),)
        for threshold in thresholds
        for metric in (precision, recall, accuracy)
    ]
    return sum(map(log, errors)) / len(errors)


def _error(found: Estimate, truth: Estimate) -> float:
    """Noise, binning spread and bias together; 1 where there would be no answer."""
    if isinstance(found, NotEnoughData) or isinstance(truth, NotEnoughData):
        return 1.0
    bias = found.value - truth.value
    return sqrt(found.noise_sd**2 + found.binning_sd**2 + bias**2) + 1e-12


def _models(request: Request) -> list[ScoreHistogram]:
    examples = float(request.examples or request.clients or request.minimum_reports or 1)
    if request.reference is not None:
        rate = request.positive_rate
        return [from_reference(request.reference, examples=examples, positive_rate=rate)]
    rate = request.positive_rate or _UNKNOWN_RATE
    return [binormal(examples=examples, positive_rate=rate, auc=auc) for auc in _UNKNOWN_AUCS]


def _candidates(request: Request) -> Iterator[Survey]:
    for leaves in (8, 16, 32, 64, 128, 256, 512, 1024):
        for grid in _grids(request, leaves):
            for levels in (1, 2, 3):
                # A level more pays off only when every level has several children.
                if levels > 1 and grid.cells < 4**levels:
                    continue
                hierarchy = Hierarchy(grid.cells, fanouts_for(grid.cells, levels))
                for budget in _budgets(levels):
                    yield _distributed(request, grid, hierarchy, budget)


def _budgets(levels: int) -> list[tuple[Fraction, ...]]:
    """Shares of epsilon: equal, and tilted towards the top or the bottom."""
    tilts = (Fraction(2), Fraction(3, 2), Fraction(1), Fraction(2, 3))
    rows = [[tilt ** (levels - level) for level in range(levels)] for tilt in tilts]
    return list(dict.fromkeys(tuple(weight / sum(row) for weight in row) for row in rows))


def _grids(request: Request, leaves: int) -> list[Grid]:
    if request.reference is not None:
        return [_warped(request.reference, leaves).with_edges_at(request.thresholds)]
    shapes = [Grid.uniform(leaves), Grid.arcsine(leaves)]
    return [shape.with_edges_at(request.thresholds) for shape in shapes]


def _warped(reference: Examples | FloatArray, cells: int) -> Grid:
    if isinstance(reference, Examples):
        return Grid.warped(reference.scores, cells, labels=reference.labels)
    return Grid.warped(reference, cells)


def _given_grid(request: Request) -> Grid:
    """The grid when the user fixes its size."""
    cells = (request.fanout or 2) ** (request.height or PAPER_HEIGHT)
    if request.preset is Preset.PAPER:
        return Grid.uniform(cells)
    if request.reference is not None:
        return _warped(request.reference, cells).with_edges_at(request.thresholds)
    return Grid.uniform(cells).with_edges_at(request.thresholds)


def _secure(request: Request) -> Survey:
    if request.preset is Preset.PAPER or request.height is not None:
        grid = _given_grid(request)
        hierarchy = Hierarchy.regular(grid.cells, request.fanout or 2)
    else:
        # Without noise cells cost nothing, and the leaves say it all.
        reference = request.reference
        grid = Grid.fine() if reference is None else _warped(reference, _REFERENCE_CELLS)
        grid = grid.with_edges_at(request.thresholds)
        hierarchy = Hierarchy.flat(grid.cells)
    return Survey(
        grid=grid,
        hierarchy=hierarchy,
        mechanisms=(Exact(),) * hierarchy.levels,
        unit=request.unit,
        minimum_reports=2 if request.minimum_reports is None else request.minimum_reports,
        colluders=request.colluders,
        model_digest=request.model_digest,
    )


def _distributed(
    request: Request, grid: Grid, hierarchy: Hierarchy, budget: tuple[Fraction, ...] | None
) -> Survey:
    minimum = request.minimum_reports or request.clients or 2
    epsilon = request.epsilon or Fraction(1)
    levels = hierarchy.levels
    if budget is not None and (len(budget) != levels or sum(budget) != 1 or min(budget) <= 0):
        raise SettingInvalid(
            f"a budget has one positive share for each of {levels} levels, adding up to 1; found "
            f"{', '.join(map(str, budget))}."
        )
    shares = budget or (Fraction(1, levels),) * levels
    policy: LevelPolicy = EveryLevel()
    spent = [epsilon * share for share in shares]
    if request.levels is LevelChoice.BATCHES and levels > 1:
        policy, spent = OneLevel(shares), [epsilon] * levels
        minimum = request.minimum_reports or max(2, int(minimum * min(shares) * 9 / 10))
    return Survey(
        grid=grid,
        hierarchy=hierarchy,
        mechanisms=tuple(
            Polya(part, request.unit.sensitivity, minimum - request.colluders) for part in spent
        ),
        levels=policy,
        unit=request.unit,
        minimum_reports=minimum,
        colluders=request.colluders,
        model_digest=request.model_digest,
    )


def _check(request: Request) -> None:
    height, fanout = request.height, request.fanout
    if height is not None and not 1 <= height <= 20:
        raise SettingInvalid(f"height must be from 1 to 20; found {height}.")
    if fanout is not None and not 2 <= fanout <= 1024:
        raise SettingInvalid(f"fan-out must be from 2 to 1024; found {fanout}.")
    if fanout is not None and height is None and request.preset is Preset.DEFAULT:
        raise SettingInvalid("a fan-out needs a height: the leaves are fanout ** height.")
    check_buckets(request.buckets)
    if request.preset is Preset.PAPER and request.reference is not None:
        raise SettingInvalid(
            "the paper preset uses a uniform grid; a reference does not go with it. "
            "Drop --reference, or use the default preset."
        )
    rate = request.positive_rate
    if rate is not None and not 0.0 < rate < 1.0:
        raise SettingInvalid(f"a positive rate must lie between 0 and 1; found {rate}.")
    check_thresholds(request.thresholds)
    _check_privacy(request)


def _check_privacy(request: Request) -> None:
    if request.privacy is Privacy.SECURE:
        if request.epsilon is not None:
            raise SettingInvalid(
                "exact sums spend no epsilon; found one. "
                "Use --privacy distributed, or drop --epsilon."
            )
        return
    if request.epsilon is None:
        raise SettingInvalid("distributed differential privacy needs an epsilon. Add --epsilon 1.")
    check_epsilon(request.epsilon)
    minimum, clients = request.minimum_reports, request.clients
    if minimum is None and clients is None:
        raise SettingInvalid(
            "noise shares are sized for a number of reports; found neither minimum_reports nor "
            "clients. Add --minimum-reports N, the fewest that may arrive."
        )
    sized_for = clients if minimum is None else minimum
    if sized_for is not None and sized_for < 2:
        raise SettingInvalid(
            f"minimum_reports must be at least 2; found {sized_for}. One client alone is local "
            "differential privacy."
        )
    if request.colluders >= (minimum or clients or 0):
        raise SettingInvalid(
            f"colluders must be fewer than the {minimum or clients} reports that noise is sized "
            f"for; found {request.colluders}. Raise minimum_reports, or trust more clients."
        )
    if minimum is not None and clients is not None and minimum > clients:
        raise SettingInvalid(
            f"minimum_reports must not exceed the {clients} clients there are; found {minimum}. "
            "Lower it, or find more clients."
        )


def check_buckets(buckets: int | None) -> None:
    """Raise unless a number of buckets, where one is given, is from 1 to 65536."""
    if buckets is not None and not 1 <= buckets <= 2**16:
        raise SettingInvalid(f"buckets must be from 1 to 65536; found {buckets}.")


def check_thresholds(thresholds: Sequence[float]) -> None:
    """Raise unless all thresholds lie in [0, 1]."""
    for threshold in thresholds:
        if not 0.0 <= threshold <= 1.0:
            raise SettingInvalid(f"a threshold must lie in [0, 1]; found {threshold}. Scores do.")
