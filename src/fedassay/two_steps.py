"""Two surveys of the same scores read as one: nothing that the first learned is thrown away."""

from dataclasses import replace

import numpy as np

from fedassay.checks import require_type
from fedassay.cut_levels import CutLevels
from fedassay.decoding import (
    DecodeOptions,
    debiased,
    decode_counters,
    level_variance,
    require_enough,
)
from fedassay.errors import SettingInvalid, SurveyMismatch
from fedassay.examples import FloatArray, IntArray
from fedassay.grid import Grid
from fedassay.histogram import ScoreHistogram
from fedassay.interpolation import cubic
from fedassay.mechanisms import Guarantee
from fedassay.noise import DenseNoise
from fedassay.reconcile import Observed, fit_leaves
from fedassay.survey import Survey
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo
from fedassay.tally import Tally

_FEWEST_IN_BOTH = 0.5
_CLEAR = 4.0


def check_pair(first: Survey, second: Survey) -> None:
    """Raise unless the second survey was made from the first, and both keep their promise.

    >>> import fedassay
    >>> one = fedassay.new_survey(minimum_reports=2)
    >>> check_pair(one, one)
    Traceback (most recent call last):
    ...
    fedassay.errors.SurveyMismatch: the second survey names its first; this one names none...
    """
    require_type(first, Survey, "a first survey", "fedassay.load reads survey files.")
    require_type(second, Survey, "a second survey", "fedassay.load reads survey files.")
    if first.groups is not None or second.groups is not None:
        raise SurveyMismatch(
            "groups are asked for in one survey; one of these two has groups. Ask once (--steps 1)."
        )
    if not isinstance(second.step, SecondOfTwo) or not isinstance(first.step, FirstOfTwo):
        raise SurveyMismatch(
            "the second survey names its first; this one names none. Make it with "
            "fedassay survey new --after first-assessment.json."
        )
    if second.step.first != first.fingerprint:
        raise SurveyMismatch(
            f"the second survey follows {second.step.first.hex()[:12]}; this first one is "
            f"{first.fingerprint.hex()[:12]}. Pass the assessment that it was made from."
        )
    same = ("privacy", "unit", "allow_empty", "model_digest", "colluders")
    other = [name for name in same if getattr(first, name) != getattr(second, name)]
    if other:
        raise SurveyMismatch(
            f"both surveys have the same {', '.join(same)}; {', '.join(other)} differ. "
            "Make the second with fedassay survey new --after first-assessment.json."
        )
    if not np.isin(first.grid.edges, second.grid.edges).all():
        raise SurveyMismatch(
            "the second survey keeps every edge of the first, and may add some; this one lacks "
            "some. Make it with fedassay survey new --after first-assessment.json."
        )
    spent = [survey.epsilon for survey in (first, second) if survey.epsilon is not None]
    total = max(spent) if first.is_local else sum(spent)
    shares = first.step.client_fraction + second.step.client_fraction
    if (
        first.step.total_epsilon != second.step.total_epsilon
        or total > first.step.total_epsilon
        or (first.is_local and shares > 1)
    ):
        raise SurveyMismatch(
            f"both surveys together spend what the first announced, epsilon "
            f"{float(first.step.total_epsilon):g}; these spend {float(total):g}. "
            "Make the second with fedassay survey new --after first-assessment.json."
        )


def guarantee_of_both(first: Survey, second: Survey) -> Guarantee:
    """What two surveys promise together, each being known."""
    check_pair(first, second)
    known = (first.own_participant_epsilon, second.own_participant_epsilon)
    learned = None if known[0] is None or known[1] is None else known[0] + known[1]
    spent = " and ".join(f"{float(survey.epsilon or 0):g}" for survey in (first, second))
    place = (
        f"Of two surveys each {first.unit.kind.value} answered one."
        if first.is_local
        else f"Two surveys spent it, {spent}."
    )
    return replace(
        second.guarantee,
        epsilon=second.total_epsilon,
        total_epsilon=None,
        participant_epsilon=learned,
        place=place,
    )


def decode_two(
    first: Survey,
    first_tally: Tally,
    second: Survey,
    second_tally: Tally,
    *,
    decode_options: DecodeOptions,
) -> ScoreHistogram:
    """The least-squares leaves from all counters of both surveys, and their noise.

    Every counter of either survey is a sum of the same leaves, known up to its own noise;
    weighted by it they are joined as the levels of one survey are. The second survey's cells
    depend on the first one's noise, but for any cells the fit is unbiased.

    Where clients answer both and some answered only one, the first's counts are
    scaled, and their variance grows by what so many clients may hold.

    Guarantee: post-processing only; whatever the surveys promise still holds.
    """
    check_pair(first, second)
    for survey, tally in ((first, first_tally), (second, second_tally)):
        tally.require(survey)
        require_enough(survey, tally)
    return decode_both(first, first_tally, second, second_tally, decode_options=decode_options)


def decode_both(
    first: Survey,
    first_tally: Tally,
    second: Survey,
    second_tally: Tally,
    *,
    decode_options: DecodeOptions,
) -> ScoreHistogram:
    """As `decode_two`, of however few reports: of one site, where each may be seen."""
    heard = [first_tally.clients(first), second_tally.clients(second)]
    if not first.is_local and min(heard) < _FEWEST_IN_BOTH * max(heard):
        raise SettingInvalid(
            f"two surveys are read together when the same clients answer both; found "
            f"{heard[0]:,} reports of the first and {heard[1]:,} of the second. "
            "Gather more of the one that has few, or read the first alone."
        )
    clients = float(sum(heard) if first.is_local else heard[1])
    total = clients if first.total_is_known else None
    pair = ((first, first_tally), (second, second_tally))
    values = [
        [
            debiased(survey, tally, level, clients=clients)
            for level in range(survey.hierarchy.levels)
        ]
        for survey, tally in pair
    ]
    counts = decode_counters(first, first_tally, decode_options=DecodeOptions()).counts
    counts = spread_over(first.grid, second.grid, counts * (clients / heard[0]))
    passes = 2 if first.samples_clients else 1
    for _ in range(passes):
        observed = [
            Observed(
                rows_on(survey, level, second.grid),
                values[step][level],
                _variances(survey, tally, level, counts, second.grid, clients=clients),
            )
            for step, (survey, tally) in enumerate(pair)
            for level in range(survey.hierarchy.levels)
        ]
        counts, covariance = fit_leaves(observed, total=total)
    epsilon = float(second.local_epsilon) if second.local_epsilon else None
    noise = DenseNoise(covariance, counts if first.samples_clients else None, epsilon)
    leaves = ScoreHistogram(second.grid.edges, counts, noise, decode_options.smooth)
    return as_counted(second, leaves)


def as_counted(second: Survey, leaves: ScoreHistogram) -> ScoreHistogram:
    """Fitted leaves as they are read: by the second survey's cells where these say more.

    Inside its cells leaves are known from the first survey alone. Under local privacy that is
    a part of the clients, each with its own noise: there a smooth curve through the cells is
    nearer than the leaves, unless scores are tied or lumpy, which the leaves themselves show
    (`_is_smooth`). Where noise is shared, weighted sums tell of the leaves what ROC
    AUC needs, so they stay, and figures that are not linear in counts take the cells.
    """
    if not isinstance(second.hierarchy, CutLevels):
        return leaves
    starts = {start for level in second.hierarchy.cuts for row in level for start in row}
    cells = np.array(sorted(starts | {leaves.buckets}))
    if len(cells) > leaves.buckets:
        return leaves
    if not second.is_local:
        return replace(leaves, cells=cells)
    by_cell = leaves.merge(np.union1d(cells, _towers(leaves)))
    return by_cell if _is_smooth(leaves, by_cell) else leaves


def _is_smooth(leaves: ScoreHistogram, by_cell: ScoreHistogram) -> bool:
    """Whether a curve through the cells errs less in the leaves than their own noise does.

    Squared distances of leaves from the curve are its squared errors plus the leaves'
    variances: on average twice the variances where both are equally far off.
    """
    if not isinstance(leaves.noise, DenseNoise):
        return True
    curve = _curve(leaves, by_cell)
    variances = np.maximum(np.diag(leaves.noise.covariance).reshape(2, -1), 1e-12)
    return bool(((leaves.counts - curve) ** 2 / variances).mean() <= 2.0)


def _towers(leaves: ScoreHistogram) -> IntArray:
    """Edges of single leaves that hold far more than either neighbour: tied scores.

    That is more than twice its count, or what twice its density makes if that is more, of both
    labels together and by four standard deviations. Scores that crowd fill leaves that grow from
    one to the next; a curve through few cells cannot follow them, and so cannot be the measure.
    """
    if not isinstance(leaves.noise, DenseNoise) or leaves.buckets < 2:
        return np.zeros(0, np.int64)
    own = np.arange(leaves.buckets)
    held, covariance = leaves.counts.sum(axis=0), leaves.noise.of_both_labels()
    variance = np.maximum(np.diag(covariance), 0.0)  # rounding may take one below
    towers = held > _CLEAR * np.sqrt(variance)
    # Beyond an end is nobody: there the one neighbour stands for both.
    for beside in (np.abs(own - 1), leaves.buckets - 1 - np.abs(leaves.buckets - 2 - own)):
        times = 2.0 * np.maximum(leaves.widths / leaves.widths[beside], 1.0)
        spread = variance + times**2 * variance[beside] - 2.0 * times * covariance[own, beside]
        towers &= held - times * held[beside] > _CLEAR * np.sqrt(np.maximum(spread, 0.0))
    found = np.flatnonzero(towers)
    return np.union1d(found, found + 1)


def _curve(leaves: ScoreHistogram, by_cell: ScoreHistogram) -> FloatArray:
    """What a smooth curve through the cells has in every leaf, label x leaf."""
    starts = leaves.edges[:-1]
    cell = np.searchsorted(by_cell.edges, starts, side="right") - 1
    width = by_cell.widths[cell]
    inside = cubic(
        (starts - by_cell.edges[cell]) / width,
        by_cell.counts[:, cell],
        by_cell.slopes[:, cell] * width,
        by_cell.slopes[:, cell + 1] * width,
    )
    below = by_cell.cumulative[:, cell] + inside
    return np.diff(below, axis=1, append=by_cell.cumulative[:, -1:])


def leaf_of(coarse: Grid, fine: Grid) -> IntArray:
    """The leaf of a grid that each leaf of a finer one lies in.

    >>> leaf_of(Grid.uniform(2), Grid.uniform(4)).tolist()
    [0, 0, 1, 1]
    """
    return np.searchsorted(coarse.edges, fine.edges[:-1], side="right") - 1


def spread_over(coarse: Grid, fine: Grid, counts: FloatArray) -> FloatArray:
    """Counts (label x leaf) of a grid on a finer one, evenly where it cuts a leaf.

    >>> spread_over(Grid.uniform(1), Grid.uniform(2), np.array([[4.0], [2.0]])).tolist()
    [[2.0, 2.0], [1.0, 1.0]]
    """
    leaf = leaf_of(coarse, fine)
    return counts[:, leaf] / np.bincount(leaf)[leaf]


def rows_on(survey: Survey, level: int, grid: Grid) -> FloatArray:
    """How each counter of a level adds up the leaves of the survey's grid, or of a finer one."""
    rows = survey.hierarchy.rows(level)
    return rows if survey.grid == grid else rows[:, :, leaf_of(survey.grid, grid)]


def sums_on(survey: Survey, level: int, counts: FloatArray, grid: Grid) -> FloatArray:
    """A level's counters for counts (label x leaf) on the survey's grid, or on a finer one."""
    if survey.grid != grid:
        starts = np.searchsorted(leaf_of(survey.grid, grid), np.arange(survey.grid.cells))
        counts = np.add.reduceat(counts, starts, axis=1)
    return survey.hierarchy.at_level(counts, level)


def _variances(
    survey: Survey, tally: Tally, level: int, leaves: FloatArray, grid: Grid, *, clients: float
) -> FloatArray:
    """Of a level's debiased counts, scaled to so many clients."""
    heard = tally.reports[level]
    held = sums_on(survey, level, leaves, grid)
    variance = level_variance(
        survey.mechanisms[level].law(),
        clients=clients,
        reports=heard,
        counts=np.abs(held),
        sampled=survey.samples_clients,
    )
    if not survey.samples_clients and heard != clients:
        # So many clients are in one sum only; each may hold as much again as the mean.
        apart, mean = abs(heard - clients), np.abs(held) / clients
        variance = variance + apart * (mean**2 + mean)
    return np.broadcast_to(variance, held.shape)
