"""Shuffled surveys: how many reports each level can count on, and the noise that these allow."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache, partial
from math import floor, sqrt

from fedassay.cut_levels import AnyLevels
from fedassay.errors import SettingInvalid
from fedassay.grid import Grid
from fedassay.level_policy import EveryLevel, OneLevel
from fedassay.mechanisms import RandomizedResponse, UnaryEncoding
from fedassay.mechanisms.shuffled_promise import (
    DEFAULT_DELTA,
    LARGEST_LOCAL,
    ShuffledPromise,
    largest_local,
    largest_locals,
)
from fedassay.planning.oracle import mean_variance
from fedassay.planning.request import Preset, SurveyRequest, reports_of
from fedassay.survey import Survey

Make = Callable[[Fraction], UnaryEncoding | RandomizedResponse]
LevelShares = tuple[AnyLevels, tuple[Fraction, ...]]
"""Levels, and the share of clients that each gets."""
Crowd = tuple[int, int]
"""The cells of a level, and the honest reports that it can count on."""
_LUCK = 4.5
"""Standard deviations by which a level may fall behind its share of the reports, unnoticed."""
_MOST_KNOWN = 4096


def shuffled_survey(
    request: SurveyRequest, grid: Grid, hierarchy: AnyLevels, shares: tuple[Fraction, ...]
) -> Survey:
    """The survey whose reports have as little noise as its crowd on every level allows.

    >>> from fedassay.hierarchy import Hierarchy
    >>> from fedassay.mechanisms import Privacy
    >>> asked = SurveyRequest(privacy=Privacy.SHUFFLED, epsilon=Fraction(1), clients=5_000)
    >>> survey = shuffled_survey(asked, Grid.uniform(8), Hierarchy.flat(8), (Fraction(1),))
    >>> survey.minimum_reports, 4 < survey.local_epsilon <= 5
    (4500, True)
    """
    minimum = fewest_on_a_level(request, shares)
    promise, cap, honest = _promise(request), _cap(request), _honest(request, minimum)
    empty, paper = request.allow_empty, request.preset is Preset.PAPER
    if not paper:
        crowds = _crowds_of_few(hierarchy, honest, cap, empty=empty)
        _responses(promise, crowds, cap, empty=empty)
    mechanisms = tuple(
        _oracle(promise, cells, honest, cap, empty=empty, paper=paper)
        for cells in hierarchy.cells_per_level
    )
    return Survey(
        privacy=request.privacy,
        grid=grid,
        hierarchy=hierarchy,
        mechanisms=mechanisms,
        level_policy=OneLevel(shares, request.level_by_hash)
        if hierarchy.levels > 1
        else EveryLevel(),
        unit=request.unit,
        minimum_reports=minimum,
        colluders=request.colluders,
        allow_empty=request.allow_empty,
        model_digest=request.model_digest,
        groups=request.groups,
        shuffled=promise,
    )


def find_noise(request: SurveyRequest, surveys: Iterable[LevelShares]) -> None:
    """Search for the noise of several surveys side by side, which is faster than one by one.

    Each of them, once it is built, has the same noise as without, and finds it known.

    >>> from fedassay.hierarchy import Hierarchy
    >>> from fedassay.mechanisms import Privacy
    >>> asked = SurveyRequest(privacy=Privacy.SHUFFLED, epsilon=Fraction(1), clients=5_000)
    >>> flat, everybody = Hierarchy.flat(8), (Fraction(1),)
    >>> find_noise(asked, [(flat, everybody)])
    >>> shuffled_survey(asked, Grid.uniform(8), flat, everybody).local_epsilon > 4
    True
    """
    cap, empty = _cap(request), request.allow_empty
    crowds: list[Crowd] = []
    for levels, shares in surveys:
        honest = _honest(request, fewest_on_a_level(request, shares))
        crowds += _crowds_of_few(levels, honest, cap, empty=empty)
    _responses(_promise(request), crowds, cap, empty=empty)


def _promise(request: SurveyRequest) -> ShuffledPromise:
    return ShuffledPromise(request.epsilon or Fraction(1), request.delta or DEFAULT_DELTA)


def _cap(request: SurveyRequest) -> Fraction:
    return request.largest_local_epsilon or LARGEST_LOCAL


def _honest(request: SurveyRequest, minimum: int) -> int:
    return max(minimum - request.colluders, 1)


def fewest_on_a_level(request: SurveyRequest, shares: tuple[Fraction, ...]) -> int:
    """minimum_reports as said, or what the smallest level gets but for dropouts and bad luck.

    >>> fewest_on_a_level(SurveyRequest(clients=20_000), (Fraction(1, 2), Fraction(1, 2)))
    8573
    """
    crowd = reports_of(request)
    expected = None if crowd is None else crowd * min(shares)
    if request.minimum_reports is not None:
        if expected is not None and request.minimum_reports > expected:
            raise SettingInvalid(
                f"minimum_reports counts on every level, and the smallest of {len(shares)} gets "
                f"about {float(expected):,.0f}; found {request.minimum_reports:,}. Lower it, or "
                "find more clients."
            )
        return request.minimum_reports
    sure = float(expected or 1) * float(1 - request.dropouts)
    luck = _LUCK * sqrt(sure) if len(shares) > 1 else 0.0
    return max(floor(sure - luck), request.colluders + 1, 1)


def can_fill(request: SurveyRequest, shares: tuple[Fraction, ...]) -> bool:
    """Whether a level's share of the reports is enough for the request's minimum, as a rule.

    >>> asked = SurveyRequest(clients=1000, minimum_reports=400)
    >>> can_fill(asked, (Fraction(1),)), can_fill(asked, (Fraction(1, 2), Fraction(1, 2)))
    (True, False)
    """
    crowd = reports_of(request)
    if request.minimum_reports is None or crowd is None or len(shares) == 1:
        return True
    sure = float(crowd * min(shares)) * float(1 - request.dropouts)
    return request.minimum_reports <= sure - _LUCK * sqrt(sure)


@lru_cache(maxsize=1024)
def _oracle(
    promise: ShuffledPromise,
    cells: int,
    honest: int,
    cap: Fraction,
    *,
    empty: bool,
    paper: bool,
) -> UnaryEncoding | RandomizedResponse:
    """The oracle with the smaller variance, each with the local epsilon that its crowd allows."""

    def response(epsilon: Fraction) -> RandomizedResponse:
        return RandomizedResponse(epsilon, cells, empty)

    def kept(make: Make) -> UnaryEncoding | RandomizedResponse:
        if make is UnaryEncoding:
            return _unary(promise, honest, cap)
        crowd = (cells, honest)
        return _responses(promise, [crowd], cap, empty=empty)[crowd]

    if paper:
        return kept(UnaryEncoding)
    makes: list[Make] = sorted(
        (UnaryEncoding, response), key=lambda make: mean_variance(make(cap), cells)
    )
    first = kept(makes[0])
    # What would be worse with the least noise that is allowed need not be looked at.
    if mean_variance(makes[1](cap), cells) >= mean_variance(first, cells):
        return first
    return min(first, kept(makes[1]), key=lambda oracle: mean_variance(oracle, cells))


def _crowds_of_few(levels: AnyLevels, honest: int, cap: Fraction, *, empty: bool) -> list[Crowd]:
    """Those of the levels that ask for a response first."""
    sizes = dict.fromkeys(levels.cells_per_level)
    return [(cells, honest) for cells in sizes if _is_few(cells, cap, empty=empty)]


@lru_cache(maxsize=256)
def _is_few(cells: int, cap: Fraction, *, empty: bool) -> bool:
    """Whether a level has so few cells that, with the least noise, a response is the better."""
    response = RandomizedResponse(cap, cells, empty)
    return mean_variance(response, cells) < mean_variance(UnaryEncoding(cap), cells)


def _responses(
    promise: ShuffledPromise, crowds: Iterable[Crowd], cap: Fraction, *, empty: bool
) -> dict[Crowd, RandomizedResponse]:
    """One for each crowd: those not known yet are searched for side by side."""
    known = _known_responses((promise, cap, empty))
    asked = dict.fromkeys(crowds)
    there = {crowd: known[crowd] for crowd in asked if crowd in known}
    missing = [crowd for crowd in asked if crowd not in there]
    if not missing:
        return there
    makes = [partial(RandomizedResponse, cells=cells, nothing=empty) for cells, _ in missing]
    reports = [honest for _, honest in missing]
    epsilons = largest_locals(makes, promise, reports=reports, cap=cap)
    made = (make(epsilon) for make, epsilon in zip(makes, epsilons, strict=True))
    found = dict(zip(missing, made, strict=True))
    if len(known) > _MOST_KNOWN:
        known.clear()
    known.update(found)
    return there | found


@lru_cache(maxsize=16)
def _known_responses(
    _rules: tuple[ShuffledPromise, Fraction, bool],
) -> dict[Crowd, RandomizedResponse]:
    """What searches under the same rules have found so far, to be added to."""
    return {}


@lru_cache(maxsize=256)
def _unary(promise: ShuffledPromise, honest: int, cap: Fraction) -> UnaryEncoding:
    """Bits hide each other on a level of few cells as on one of many: found once for all levels."""
    return UnaryEncoding(largest_local(UnaryEncoding, promise, reports=honest, cap=cap))
