"""The second of two surveys: cells and weights where the first found the scores."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import log, sqrt

import numpy as np

from fedassay.checks import require_thresholds, require_type
from fedassay.cut_levels import CutLevels, PerLabel
from fedassay.decoding import level_variance
from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray
from fedassay.grid_rules import EPS
from fedassay.level_policy import EveryLevel, OneLevel
from fedassay.mechanisms import AnyMechanism, Polya
from fedassay.planning.judge import Judge
from fedassay.planning.oracle import oracle_for
from fedassay.planning.pilot import Pilot, pilot_from
from fedassay.survey import Survey
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo
from fedassay.tally import Tally

_CELLS = (12, 24, 48, 96, 160)
_LOCAL_CELLS = (2, 3, 4, 6, 8, 12)
_LOCAL_LEVELS = (1, 2)
_WEIGHTED_SHARES = (Fraction(1, 3), Fraction(1, 2), Fraction(2, 3))
# Of what cells get, to those of the asked thresholds alone.
_ASKED_SHARES = (Fraction(1, 3), Fraction(1, 2), Fraction(2, 3))
_ROOMS = (0.0, 0.15, 0.5, 1.0)
_WEIGHT = 1000
_USUAL_SHARE, _USUAL_ASKED, _USUAL_ROOM = Fraction(1, 2), Fraction(1, 2), 1.0
_USUAL_CELLS, _USUAL_LOCAL_CELLS = 48, 4
# From this epsilon on more cells cost little: nearly all answers are true.
_CLEAR_ANSWERS = 4
_MOST_CUTS = 500
_HIDDEN = 0.02
_FEW_ROWS = 4


def second_survey(
    first: Survey, tally: Tally, *, thresholds: Sequence[float] = (), clients: int | None = None
) -> Survey:
    """The survey that spends what the first one left, where it found the scores.

    The candidates' noise in ROC AUC and at thresholds is predicted from the fit of both
    surveys' counters (`two_steps.decode_two`); leaves, and so binning, are those of the first.

    Guarantee: post-processing of what the first survey revealed; nothing more is spent.

    >>> import fedassay
    >>> labels, scores = [0, 1] * 500, [i / 1000 for i in range(1000)]
    >>> asked = {"privacy": "distributed", "epsilon": 4, "steps": 2, "seed": 0}
    >>> first = fedassay.simulate(labels, scores, **asked).first
    >>> first.survey.epsilon + second_survey(first.survey, first.tally).epsilon
    Fraction(4, 1)
    """
    require_type(first, Survey, "a first survey", "fedassay.load reads survey files.")
    require_thresholds(thresholds)
    return second_for(pilot_from(first, tally, clients), thresholds)


def second_like(second: Survey, first: Survey) -> Survey:
    """The same cells and weights after another first survey: with its epsilon and its crowd.

    >>> import fedassay
    >>> labels, scores = [0, 1] * 500, [i / 1000 for i in range(1000)]
    >>> asked = {"privacy": "distributed", "epsilon": 4, "steps": 2, "seed": 0}
    >>> first = fedassay.simulate(labels, scores, **asked).first
    >>> second = second_survey(first.survey, first.tally)
    >>> second_like(second, first.survey) == second
    True
    """
    if not isinstance(first.step, FirstOfTwo) or first.epsilon is None or second.epsilon is None:
        raise SettingInvalid("a second survey follows a first of two; found another. Use steps=2.")
    place, rest = _place(first, first.step)
    shares = first.noise_shares
    levels = second.hierarchy
    mechanisms: list[AnyMechanism] = []
    for level, mechanism in enumerate(second.mechanisms):
        if isinstance(mechanism, Polya):
            part = rest * mechanism.epsilon / second.epsilon
            moved = first.unit.sensitivity * levels.largest_weight(level)
            mechanisms.append(Polya(part, moved, shares))
        else:
            cells = levels.cells_per_level[level]
            mechanisms.append(oracle_for(rest, cells, allow_empty=first.allow_empty))
    return replace(
        first,
        grid=second.grid,
        hierarchy=levels,
        mechanisms=tuple(mechanisms),
        level_policy=second.level_policy,
        step=place,
    )


def _place(first: Survey, step: FirstOfTwo) -> tuple[SecondOfTwo, Fraction]:
    """A second survey's place, and the epsilon that the first left for it."""
    spent = first.epsilon or Fraction(0)
    if first.is_local:
        place = SecondOfTwo(step.total_epsilon, 1 - step.client_fraction, first.fingerprint)
        return place, step.total_epsilon
    place = SecondOfTwo(step.total_epsilon, Fraction(1), first.fingerprint)
    return place, step.total_epsilon - spent


def second_for(pilot: Pilot, thresholds: Sequence[float], *, thorough: bool = True) -> Survey:
    """The second survey for scores that lie as the pilot says; quickly, or of many the best.

    >>> from fedassay.planning.pilot import expected_pilot
    >>> from fedassay.mechanisms import Privacy
    >>> from fedassay.planning.first_survey import first_survey
    >>> from fedassay.planning.request import SurveyRequest
    >>> request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=1000)
    >>> first = first_survey(request)
    >>> pilot = expected_pilot(first, np.ones((2, first.grid.cells)), clients=1000.0)
    >>> second_for(pilot, (), thorough=False).step.client_fraction
    Fraction(9, 10)
    """
    first = pilot.survey
    step = first.step
    if not isinstance(step, FirstOfTwo) or first.epsilon is None:
        raise SettingInvalid(
            "a second survey follows one that announced it; this one stands alone. "
            "Make the first with steps=2 (--steps 2), or use the assessment as a reference."
        )
    place, rest = _place(first, step)
    if not thorough:
        return _usual(pilot, place, rest, thresholds)
    # Some candidates come back when others are compared.
    error = cache(Judge.of(pilot, thresholds).error)
    if first.is_local:
        surveys = list(_local_candidates(pilot, place, rest, thresholds))
    else:
        surveys = list(_shared_candidates(pilot, place, rest, thresholds, error))
    return min(surveys, key=error)


def _shared_candidates(
    pilot: Pilot,
    place: SecondOfTwo,
    epsilon: Fraction,
    thresholds: Sequence[float],
    error: Callable[[Survey], float],
) -> Iterator[Survey]:
    """Cells, with and without a level of the asked thresholds alone, and weighted sums."""
    chosen = dict.fromkeys(
        cuts
        for cells in _CELLS
        for cuts in (
            (_cuts(pilot, _marks(cells), thresholds),),
            _with_asked(pilot, _marks(cells), thresholds),
        )
    )
    plain = [_weighted(pilot, place, epsilon, cuts) for cuts in chosen]
    yield from plain
    best = min(plain, key=error).hierarchy
    if not isinstance(best, CutLevels):
        return
    yield _shared(pilot, place, _split(epsilon, best.cuts, _USUAL_ASKED), best.cuts, None)
    found = {
        error(survey): (share, room)
        for share, room in product(_WEIGHTED_SHARES, _ROOMS)
        for survey in (_weighted(pilot, place, epsilon, best.cuts, share=share, room=room),)
    }
    share, room = found[min(found)]
    for asked in _ASKED_SHARES:
        yield _weighted(pilot, place, epsilon, best.cuts, share=share, room=room, asked=asked)


def _with_asked(
    pilot: Pilot, marks: FloatArray, thresholds: Sequence[float]
) -> tuple[PerLabel, ...]:
    """Cells, and before them a level that is cut at the asked thresholds alone, if there are any.

    A count below a threshold adds up few counters there, however many cells serve the curve.
    """
    fine, edges = _cuts(pilot, marks, thresholds), pilot.histogram.edges
    at = {int(np.searchsorted(edges, threshold)) for threshold in thresholds}
    starts = (0, *sorted(cut for cut in at if 0 < cut < pilot.histogram.buckets))
    coarse = starts, starts
    return (coarse, fine) if len(starts) > 1 and coarse != fine else (fine,)


def _weighted(
    pilot: Pilot,
    place: SecondOfTwo,
    epsilon: Fraction,
    cuts: tuple[PerLabel, ...],
    *,
    share: Fraction = _USUAL_SHARE,
    room: float = _USUAL_ROOM,
    asked: Fraction = _USUAL_ASKED,
) -> Survey:
    """Levels of cells, and a share of epsilon for weighted sums of what the last leaves open."""
    weights = _weights(pilot, cuts[-1], room)
    epsilons = (*_split(epsilon * (1 - share), cuts, asked), epsilon * share)
    return _shared(pilot, place, epsilons, cuts, weights)


def _split(epsilon: Fraction, cuts: tuple[PerLabel, ...], asked: Fraction) -> tuple[Fraction, ...]:
    """What each level of cells spends: a share that of the asked thresholds, if there is one."""
    return (epsilon * asked, epsilon * (1 - asked)) if len(cuts) > 1 else (epsilon,)


def _local_candidates(
    pilot: Pilot, place: SecondOfTwo, epsilon: Fraction, thresholds: Sequence[float]
) -> Iterator[Survey]:
    """Levels of few cells whose cuts take turns; each client reports on one.

    What was asked for is a cut of all of them, however few a first survey saw there: its noise
    would else decide what is answered.
    """
    for cells, levels in product(_LOCAL_CELLS, _LOCAL_LEVELS):
        yield _local(pilot, place, epsilon, _turns(pilot, cells, levels, thresholds))


def _turns(
    pilot: Pilot, cells: int, levels: int, thresholds: Sequence[float]
) -> tuple[PerLabel, ...]:
    """Cuts of both labels that take turns over the levels, and so do the thresholds."""
    steps = (cells - 1) * levels + 1
    return tuple(
        _cuts(pilot, np.arange(first + 1, steps, levels) / steps, thresholds[first::levels])
        for first in range(levels)
    )


def _usual(
    pilot: Pilot, place: SecondOfTwo, epsilon: Fraction, thresholds: Sequence[float]
) -> Survey:
    """A good second survey, without looking for the best."""
    if pilot.survey.is_local:
        cells = _USUAL_LOCAL_CELLS * (2 if epsilon >= _CLEAR_ANSWERS else 1)
        turns = _turns(pilot, cells, 1, thresholds)
        return _local(pilot, place, epsilon, turns)
    cuts = _with_asked(pilot, _marks(_USUAL_CELLS), thresholds)
    return _weighted(pilot, place, epsilon, cuts)


def _marks(cells: int) -> FloatArray:
    return np.arange(1, cells) / cells


def _cuts(pilot: Pilot, marks: FloatArray, thresholds: Sequence[float]) -> PerLabel:
    """Cuts at these shares of the two classes together, each counting as much, for both labels.

    Cells of its own for each label would serve ROC AUC as well, but precisions need both
    classes counted between the same cuts.
    """
    edges, leaves = pilot.histogram.edges, pilot.histogram.buckets
    wanted = [int(np.searchsorted(edges, threshold)) for threshold in thresholds]
    at = np.searchsorted(pilot.shares.mean(axis=0), marks).tolist()
    at += _alone(pilot, len(marks) + 1)
    at += [1, leaves - 1] if _hides_ends(pilot) else []
    at += [*wanted, *pilot.added] if len(wanted) <= _MOST_CUTS else pilot.added
    starts = (0, *sorted({int(cut) for cut in at if 0 < cut < leaves}))
    return starts, starts


def _alone(pilot: Pilot, cells: int) -> list[int]:
    """Edges of towers that, of so many cells, hold half as much as one: cells by themselves.

    Many share a score there, or 0 or 1; any other row in their cell would smear them over it.
    """
    edges, below = pilot.histogram.edges, pilot.shares.mean(axis=0)
    places = np.searchsorted(edges, np.reshape(pilot.towers, (-1, 2)))
    mass = below[places[:, 1]] - below[places[:, 0]]
    return [int(place) for place in places[mass >= 0.5 / cells].ravel()]


def _hides_ends(pilot: Pilot) -> bool:
    """Whether noise may hide so many at exactly 0 or 1 that log loss would miss them.

    A row there that is wrong costs 36 nats; as many as a deviation of the first survey's noise are
    to cost a fiftieth of one over all rows at most. Where a counter alone errs by more than a few
    rows, slopes would rest on noise. Where answers are random cells cost more, unless nearly all
    are true; a smooth curve then follows a counter at an end only if it towers.
    """
    first, heard = pilot.survey, pilot.reports
    step = first.step
    if not isinstance(step, FirstOfTwo):
        return False
    if first.is_local:
        return step.total_epsilon >= _CLEAR_ANSWERS
    if sqrt(2.0) * first.unit.sensitivity > _FEW_ROWS * step.total_epsilon:
        return False
    law, nobody = first.mechanisms[-1].law(), np.zeros(1)
    variance = level_variance(law, clients=heard, reports=heard, counts=nobody, sampled=False)
    return -log(EPS) * sqrt(float(variance[0])) > _HIDDEN * pilot.histogram.total


def _weights(pilot: Pilot, cuts: PerLabel, room: float) -> PerLabel:
    """An example's placement among the other class, less what its cell's count tells of it.

    The placement, less ROC AUC, is what an example adds to ROC AUC; a sum of it is as noisy as
    its largest value. The same number off all weights of a cell is made good by the cell's
    count, at the price of its noise. So every cell moves as little as brings its weights
    within a limit: with no room the least that fits the widest cell, with all of it (1) the
    largest placement, where no cell moves.
    """
    shares = pilot.shares
    middle = 0.5 * (shares[:, 1:] + shares[:, :-1])
    area = float((pilot.histogram.positives * middle[0]).sum() / pilot.histogram.total_positives)
    # Sums of all examples' weights stay below 2^30.
    most = int(np.clip(2**30 // max(pilot.histogram.total, 1.0), 1, _WEIGHT))
    rows = []
    for placement, starts in zip((1.0 - middle[1], middle[0]), cuts, strict=True):
        weight, sizes = placement - area, np.diff([*starts, len(placement)])
        low, high = (each.reduceat(weight, starts) for each in (np.minimum, np.maximum))
        widest, largest = 0.5 * float((high - low).max()), float(np.abs(weight).max())
        limit = max(widest + room * (largest - widest), 1e-9)
        moved = np.maximum(high - limit, 0.0) + np.minimum(low + limit, 0.0)
        within = (weight - np.repeat(moved, sizes)) / limit
        rows.append(tuple(np.rint(np.clip(within, -1.0, 1.0) * most).astype(int).tolist()))
    return rows[0], rows[1]


def _shared(
    pilot: Pilot,
    place: SecondOfTwo,
    epsilons: tuple[Fraction, ...],
    cuts: tuple[PerLabel, ...],
    weights: PerLabel | None,
) -> Survey:
    first = pilot.survey
    levels = CutLevels(pilot.grid.cells, cuts, weights)
    shares = first.noise_shares
    return replace(
        first,
        grid=pilot.grid,
        hierarchy=levels,
        mechanisms=tuple(
            Polya(epsilon, first.unit.sensitivity * levels.largest_weight(level), shares)
            for level, epsilon in enumerate(epsilons)
        ),
        level_policy=EveryLevel(),
        step=place,
    )


def _local(
    pilot: Pilot, place: SecondOfTwo, epsilon: Fraction, cuts: tuple[PerLabel, ...]
) -> Survey:
    first = pilot.survey
    levels = CutLevels(pilot.grid.cells, cuts)
    return replace(
        first,
        grid=pilot.grid,
        hierarchy=levels,
        mechanisms=tuple(
            oracle_for(epsilon, cells, allow_empty=first.allow_empty)
            for cells in levels.cells_per_level
        ),
        level_policy=OneLevel((Fraction(1, len(cuts)),) * len(cuts), _by_hash(first))
        if len(cuts) > 1
        else EveryLevel(),
        step=place,
    )


def _by_hash(first: Survey) -> bool:
    return isinstance(first.level_policy, OneLevel) and first.level_policy.by_hash
