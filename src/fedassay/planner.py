"""The choice of a survey's parameters; nothing else in the package chooses them.

Every candidate is judged by the closed form: the expected counts of a model of the scores,
put through the same estimators and noise model that will read the tally.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import hypot, log

import numpy as np

from fedassay.decode import Readout, join_levels, level_variance
from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate, NotEnoughData
from fedassay.examples import Examples, FloatArray
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy, Interleaved, fanouts_for
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import (
    Exact,
    Law,
    Polya,
    RandomizedResponse,
    UnaryEncoding,
    UnitKind,
)
from fedassay.metrics import accuracy, precision, recall, roc_auc
from fedassay.request import LevelChoice, Preset, Privacy, Request, check_request
from fedassay.scoremodel import binormal, from_reference, on_grid
from fedassay.survey import AnyLevels, EveryLevel, LevelPolicy, OneLevel, Survey


@dataclass(frozen=True, slots=True)
class Choice:
    """A survey, and how its tally will be read."""

    survey: Survey
    readout: Readout


PAPER_HEIGHT = 10
PAPER_BUCKETS = 100
_REFERENCE_CELLS = 2**12
_LEAVES = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024)
_SHORTLIST = 8
_MANY_LEAVES = 32
_ARCSINE_BELOW = 64
_MOST_INTERLEAVED = 48
# Where nobody said how rare positives are, nor how good the classifier is: (rate, AUC).
_UNKNOWN = ((0.3, 0.75), (0.3, 0.9), (0.03, 0.85))


def choose(request: Request) -> Choice:
    """Fill in everything that the request leaves open."""
    check_request(request)
    readout = readout_for(request.preset, request.buckets)
    if request.privacy is Privacy.SECURE:
        return Choice(_secure(request), readout)
    if request.preset is Preset.PAPER or request.height is not None:
        grid = _given_grid(request)
        hierarchy = Hierarchy.regular(grid.cells, request.fanout or 2)
        return Choice(_noisy(request, grid, hierarchy, request.budget), readout)
    return Choice(_best(request), readout)


def _best(request: Request) -> Survey:
    """The candidate with the smallest predicted errors, of ROC AUC and of thresholds alike.

    Grids are first judged with plain trees, then the best with every tree.
    """
    judge = _Judge.for_request(request)
    grids = [grid for leaves in _LEAVES for grid in _grids(request, leaves)]
    plain = {grid: list(_trees(request, grid, _PLAIN)) for grid in grids}
    ranked = sorted(grids, key=lambda grid: min(map(judge.area_error, plain[grid])))
    finalists = [min(plain[grid], key=judge.error) for grid in ranked[:_SHORTLIST]]
    best = sorted(finalists, key=judge.error)[:2]
    return min(
        (tree for survey in best for tree in _trees(request, survey.grid, _THOROUGH)),
        key=judge.error,
    )


def readout_for(preset: Preset, buckets: int | None) -> Readout:
    """How a preset reads a tally."""
    if preset is Preset.PAPER:
        return Readout(smooth=False, reconcile=False, buckets=buckets or PAPER_BUCKETS)
    return Readout(buckets=buckets)


def expected_histogram(survey: Survey, model: ScoreHistogram, *, clients: float) -> ScoreHistogram:
    """What decoding would give on average, with the noise it would carry."""
    counts = on_grid(model, survey.grid)
    hierarchy = survey.hierarchy
    shares = (
        [float(share) for share in survey.levels.shares]
        if isinstance(survey.levels, OneLevel)
        else [1.0] * hierarchy.levels
    )
    variances = tuple(
        level_variance(
            mechanism.law(),
            clients=clients,
            reports=clients * share,
            counts=np.add.reduceat(counts, hierarchy.starts(level), axis=1),
            sampled=survey.samples_clients,
        )
        for level, (mechanism, share) in enumerate(zip(survey.mechanisms, shares, strict=True))
    )
    values = tuple(
        np.add.reduceat(counts, hierarchy.starts(level), axis=1)
        for level in range(hierarchy.levels)
    )
    total = float(counts.sum()) if survey.total_is_known else None
    _, noise = join_levels(survey, values, variances, total=total)
    return ScoreHistogram(survey.grid.edges, counts, noise)


def _clients(request: Request) -> int:
    """How many reports are expected."""
    if request.privacy is Privacy.LOCAL and request.unit.kind is UnitKind.EXAMPLE:
        return request.examples or request.clients or 1
    return request.clients or request.minimum_reports or 1


@dataclass(frozen=True, slots=True, eq=False)
class _Judge:
    """Predicts errors against models of the scores, whose true values are computed once."""

    clients: float
    thresholds: tuple[float, ...]
    models: tuple[ScoreHistogram, ...]
    areas: tuple[Estimate, ...]
    rates: tuple[tuple[Estimate, ...], ...]

    @classmethod
    def for_request(cls, request: Request) -> "_Judge":
        thresholds = request.thresholds or (0.2, 0.5, 0.8)
        if len(thresholds) > 3:
            thresholds = tuple(np.quantile(thresholds, (0.2, 0.5, 0.8), method="nearest"))
        models = tuple(_models(request))
        return cls(
            float(_clients(request)),
            thresholds,
            models,
            tuple(roc_auc(model) for model in models),
            tuple(_rates(model, thresholds) for model in models),
        )

    def area_error(self, survey: Survey) -> float:
        """The mean log of predicted ROC AUC errors."""
        errors = []
        for model, truth in zip(self.models, self.areas, strict=True):
            expected = expected_histogram(survey, model, clients=self.clients)
            even = roc_auc(replace(expected, smooth=False))
            smooth = roc_auc(ScoreHistogram(expected.edges, expected.counts))
            # Real scores are lumpier than any model: distrust a part of what the cubic gains.
            lumps = (smooth.value - even.value) / 3.0
            errors.append(hypot(_error(smooth, truth), even.noise_sd, lumps))
        return sum(map(log, errors)) / len(errors)

    def error(self, survey: Survey) -> float:
        """The mean log of predicted errors: twice ROC AUC's, and the mean over thresholds.

        The area stands for the whole curve, and gains less from any choice.
        """
        errors = [
            _error(found, truth)
            for model, truths in zip(self.models, self.rates, strict=True)
            for found, truth in zip(
                _rates(expected_histogram(survey, model, clients=self.clients), self.thresholds),
                truths,
                strict=True,
            )
        ]
        return 2.0 * self.area_error(survey) + sum(map(log, errors)) / len(errors)


def _rates(histogram: ScoreHistogram, thresholds: Sequence[float]) -> tuple[Estimate, ...]:
    return tuple(
        metric(histogram, threshold)
        for threshold in thresholds
        for metric in (precision, recall, accuracy)
    )


def _error(found: Estimate, truth: Estimate) -> float:
    """Noise, binning spread and bias together; 1 where there would be no answer."""
    if isinstance(found, NotEnoughData) or isinstance(truth, NotEnoughData):
        return 1.0
    bias = found.value - truth.value
    # The interval's binning spread is cautious; a third of it is what the cubic leaves.
    return hypot(found.noise_sd, found.binning_sd / 3.0, bias) + 1e-12


def _models(request: Request) -> list[ScoreHistogram]:
    examples = float(request.examples or request.clients or request.minimum_reports or 1)
    if request.reference is not None:
        rate = request.positive_rate
        return [from_reference(request.reference, examples=examples, positive_rate=rate)]
    return [
        binormal(examples=examples, positive_rate=request.positive_rate or rate, auc=auc)
        for rate, auc in _UNKNOWN
    ]


@dataclass(frozen=True, slots=True)
class _Variety:
    """Which trees, and which interleaved levels, to try on a grid."""

    levels: tuple[int, ...]
    tilts: tuple[Fraction, ...]
    interleaved_cells: tuple[int, ...]


_PLAIN = _Variety((1, 2), (Fraction(3, 2),), (3, 6))
_THOROUGH = _Variety(
    (1, 2, 3),
    (Fraction(2), Fraction(3, 2), Fraction(1), Fraction(2, 3)),
    (2, 3, 4, 6, 8, 12),
)


def _trees(request: Request, grid: Grid, variety: _Variety) -> Iterator[Survey]:
    """Surveys over one grid: which levels, and how they share epsilon or clients."""
    for height in variety.levels:
        # A level more pays off only when every level has several children.
        if height > 1 and grid.cells < 4**height:
            continue
        hierarchy = Hierarchy(grid.cells, fanouts_for(grid.cells, height))
        rows = [[tilt ** (height - level) for level in range(height)] for tilt in variety.tilts]
        for budget in dict.fromkeys(tuple(weight / sum(row) for weight in row) for row in rows):
            yield _noisy(request, grid, hierarchy, budget)
    if request.privacy is not Privacy.LOCAL or grid.cells > _MOST_INTERLEAVED:
        return
    for cells in variety.interleaved_cells:
        step = -(-(grid.cells - 1) // (cells - 1))
        if 1 < step < grid.cells:
            yield _noisy(request, grid, Interleaved(grid.cells, step), None)


def _grids(request: Request, leaves: int) -> list[Grid]:
    if request.reference is not None:
        shapes = [_warped(request.reference, leaves)]
    else:
        shapes = [Grid.uniform(leaves)]
        if leaves < _ARCSINE_BELOW:
            # Finer ends pay while cells are few; among many, even ones feel less noise.
            shapes.append(Grid.arcsine(leaves))
        if request.privacy is Privacy.DISTRIBUTED and leaves >= _MANY_LEAVES:
            # Two cells more cost little there, and scores of exactly 0 and 1 are common.
            shapes = [shape.with_ends() for shape in shapes]
    # Thresholds on edges are exact; but where every cell is dear, as under local privacy, many
    # among few take the place of better ones.
    if request.privacy is Privacy.LOCAL and 4 * len(request.thresholds) > leaves:
        return shapes
    pinned = [shape.with_edges_at(request.thresholds) for shape in shapes]
    return list(dict.fromkeys([*pinned, *shapes]))


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


def _noisy(
    request: Request, grid: Grid, hierarchy: AnyLevels, budget: tuple[Fraction, ...] | None
) -> Survey:
    """A survey with noise, whose levels share epsilon or clients as the budget says."""
    levels = hierarchy.levels
    if budget is not None and (len(budget) != levels or sum(budget) != 1 or min(budget) <= 0):
        raise SettingInvalid(
            f"a budget has one positive share for each of {levels} levels, adding up to 1; found "
            f"{', '.join(map(str, budget))}."
        )
    shares = budget or (Fraction(1, levels),) * levels
    if request.privacy is Privacy.LOCAL:
        return _local(request, grid, hierarchy, shares)
    minimum = request.minimum_reports or request.clients or 2
    epsilon = request.epsilon or Fraction(1)
    policy: LevelPolicy = EveryLevel()
    spent = [epsilon * share for share in shares]
    if request.levels is LevelChoice.BATCHES and levels > 1:
        policy, spent = OneLevel(shares, request.level_by_hash), [epsilon] * levels
        # Leave room for the luck of the draw: a batch may come out smaller than its share.
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


def _local(
    request: Request, grid: Grid, hierarchy: AnyLevels, shares: tuple[Fraction, ...]
) -> Survey:
    epsilon = request.epsilon or Fraction(1)
    return Survey(
        grid=grid,
        hierarchy=hierarchy,
        mechanisms=tuple(_oracle(request, epsilon, cells) for cells in hierarchy.cells_per_level),
        levels=OneLevel(shares, request.level_by_hash) if hierarchy.levels > 1 else EveryLevel(),
        unit=request.unit,
        minimum_reports=request.minimum_reports or 1,
        allow_empty=request.allow_empty,
        model_digest=request.model_digest,
    )


def _oracle(request: Request, epsilon: Fraction, cells: int) -> UnaryEncoding | RandomizedResponse:
    """The frequency oracle with the smaller variance on a level, averaged over its cells."""
    unary = UnaryEncoding(epsilon)
    if request.preset is Preset.PAPER:
        return unary
    response = RandomizedResponse(epsilon, cells, request.allow_empty)
    better = _mean_variance(response.law(), 2 * cells) < _mean_variance(unary.law(), 2 * cells)
    return response if better else unary


def _mean_variance(law: Law, values: int) -> float:
    return (law.variance_per_report + law.variance_per_hit / values) / law.gain**2
