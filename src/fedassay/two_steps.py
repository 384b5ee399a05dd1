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
from fedassay.doubts import Doubts
from fedassay.errors import SettingInvalid, SurveyMismatch
from fedassay.examples import FloatArray, IntArray
from fedassay.grid import Grid
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Guarantee
from fedassay.noise import DenseNoise
from fedassay.odds_doubts import doubts_of
from fedassay.reconcile import Observed, fit_leaves
from fedassay.smooth_odds import Reading, SmoothOdds, most_evident, table_covariance
from fedassay.survey import Survey
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo
from fedassay.tally import Tally
from fedassay.towers import ends_alone, is_lumpy, towers_of, with_seen

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
    alone = decode_counters(first, first_tally, decode_options=DecodeOptions())
    leaves, observed = least_squares(first, first_tally, second, second_tally, alone=alone)
    leaves = replace(leaves, smooth=decode_options.smooth)
    if not second.is_local:
        return by_cells(second, leaves)
    return _smoothly(second, leaves, alone, observed)


def least_squares(
    first: Survey,
    first_tally: Tally,
    second: Survey,
    second_tally: Tally,
    *,
    alone: ScoreHistogram | None = None,
) -> tuple[ScoreHistogram, list[Observed]]:
    """The leaves that fit all counters of both surveys best, and those counters.

    `alone` is the first survey as it is decoded by itself, where that is known.
    """
    pair = ((first, first_tally), (second, second_tally))
    heard = [tally.clients(survey) for survey, tally in pair]
    clients = float(sum(heard) if first.is_local else heard[1])
    total = clients if first.total_is_known else None
    if alone is None:
        alone = decode_counters(first, first_tally, decode_options=DecodeOptions())
    counts = spread_over(first.grid, second.grid, alone.counts * (clients / heard[0]))
    passes = 2 if first.samples_clients else 1
    for _ in range(passes):
        observed = [
            level
            for survey, tally in pair
            for level in observed_in(survey, tally, counts, second.grid, clients=clients)
        ]
        counts, covariance = fit_leaves(observed, total=total)
    table = counts if first.samples_clients else None
    noise = DenseNoise(covariance, table, _epsilon(second))
    return ScoreHistogram(second.grid.edges, counts, noise), observed


def by_cells(second: Survey, leaves: ScoreHistogram) -> ScoreHistogram:
    """Fitted leaves with the second survey's cells, where noise is shared.

    Inside its cells leaves are known from the first survey alone, and from weighted sums, which
    tell of them what ROC AUC needs. Figures that are not linear in counts take the cells.
    """
    cells = np.append(cuts_of(second), leaves.buckets)
    return leaves if len(cells) > leaves.buckets else replace(leaves, cells=cells)


def cuts_of(second: Survey) -> IntArray:
    """The leaves at which a second survey's cells begin, of both labels and all levels."""
    if not isinstance(second.hierarchy, CutLevels):
        return np.arange(second.grid.cells)
    return np.unique([cut for level in second.hierarchy.cuts for row in level for cut in row])


def _smoothly(
    second: Survey, leaves: ScoreHistogram, alone: ScoreHistogram, observed: list[Observed]
) -> ScoreHistogram:
    """What local privacy left in few cells, read through smooth log-odds (`SmoothOdds`).

    Leaves by themselves are known from the first survey alone, a part of the clients, each with
    noise of its own. Where a class is drowned in noise there are no log-odds to be had, and
    nothing but cells is read; nor where no curve follows the counters.
    """
    cuts = cuts_of(second)
    by_cell = leaves.merge(np.append(cuts, leaves.buckets))
    if any(is_drowned(leaves, label) for label in (0, 1)):
        return by_cell
    cuts = cuts_of(second)
    guess = spread_over(Grid(alone.edges), second.grid, none_negative(alone))
    guess = with_seen(guess * (leaves.total / guess.sum()), by_cell, cuts)
    guess *= leaves.total / guess.sum()
    towers = np.union1d(towers_of(leaves), ends_alone(leaves, cuts))
    family = SmoothOdds.around(
        leaves.edges,
        guess,
        cuts=cuts.tolist(),
        towers=towers,
        is_lumpy=is_lumpy(leaves, towers),
        total_is_known=second.total_is_known,
    )
    seen = Observed.joined(observed)
    tried = family.tried(seen)
    best = most_evident(tried)
    if not best.follows(seen):
        return by_cell
    reading = family.cautiously(best, seen)
    smoothed = read_as(second, leaves.edges, reading, seen, smooth=leaves.smooth)
    return replace(smoothed, counted=by_cells(second, leaves), doubts=doubts_of(tried))


def none_negative(histogram: ScoreHistogram) -> FloatArray:
    """The nearest counts of which none is negative, and none quite 0."""
    counts = np.maximum(histogram.monotone().counts, 0.0)
    return counts + 1e-6 * max(float(counts.sum()), 1.0) / counts.size


def read_as(
    survey: Survey,
    edges: FloatArray,
    reading: Reading,
    observed: Observed,
    *,
    smooth: bool = True,
) -> ScoreHistogram:
    """A reading as a histogram, with its errors against the clients' own counts."""
    table = reading.counts if survey.samples_clients else None
    covariance = table_covariance(reading, observed, table=table)
    noise = DenseNoise(covariance, None, _epsilon(survey), is_smoothed=True)
    cells = np.append(cuts_of(survey), len(edges) - 1)
    return ScoreHistogram(edges, reading.counts, noise, smooth, cells)


def expected_smoothly(
    second: Survey, counts: FloatArray, observed: list[Observed], *, smooth: bool, likely: bool
) -> ScoreHistogram:
    """What would be read of scores with these expected counts, under local privacy.

    With the errors that intervals allow for, or with those that are likely. Such scores bend as is
    usual, and nothing will speak against their curve.
    """
    family = SmoothOdds.around(
        second.grid.edges,
        counts + 1e-6 * counts.sum() / counts.size,
        cuts=cuts_of(second).tolist(),
        total_is_known=second.total_is_known,
    )
    seen = Observed.joined(observed)
    reading = (family if likely else family.cautious()).reading(counts, seen)
    expected = read_as(second, second.grid.edges, reading, seen, smooth=smooth)
    return replace(expected, doubts=Doubts(0.0, 0.0, np.zeros(expected.buckets)))


def _epsilon(survey: Survey) -> float | None:
    return float(survey.local_epsilon) if survey.local_epsilon else None


def is_drowned(histogram: ScoreHistogram, label: int) -> bool:
    """Whether a class does not stand clear of the noise."""
    ones = np.zeros_like(histogram.counts)
    ones[label] = 1.0
    return bool(histogram.counts[label].sum() < _CLEAR * np.sqrt(histogram.noise.variance(ones)))


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


def observed_in(
    survey: Survey, tally: Tally, counts: FloatArray, grid: Grid, *, clients: float
) -> list[Observed]:
    """Every level's counters on a grid, scaled to so many clients; counts say how they vary."""
    return [
        Observed(
            rows_on(survey, level, grid),
            debiased(survey, tally, level, clients=clients),
            _variances(survey, tally, level, counts, grid, clients=clients),
        )
        for level in range(survey.hierarchy.levels)
    ]


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
