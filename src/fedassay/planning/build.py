"""A survey from a request, a grid and levels: mechanisms, shares and the promise."""

from fractions import Fraction

from fedassay.cut_levels import AnyLevels
from fedassay.errors import SettingInvalid
from fedassay.grid import Grid
from fedassay.level_policy import EveryLevel, LevelPolicy, OneLevel
from fedassay.mechanisms import Exact, Polya, Privacy, RandomizedResponse, UnaryEncoding
from fedassay.planning.crowd import shuffled_survey
from fedassay.planning.oracle import oracle_for
from fedassay.planning.request import LevelChoice, Preset, SurveyRequest
from fedassay.survey import Survey
from fedassay.survey_moments import FEWEST_HONEST, SiteMoments


def build_survey(
    request: SurveyRequest,
    grid: Grid,
    hierarchy: AnyLevels,
    budget: tuple[Fraction, ...] | None = None,
) -> Survey:
    """The survey whose levels share epsilon or clients as the budget says; evenly by default.

    >>> from fedassay.hierarchy import Hierarchy
    >>> request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=1000)
    >>> build_survey(request, Grid.uniform(8), Hierarchy.flat(8)).mechanisms[0].kind
    'oue'
    """
    levels = hierarchy.levels
    if budget is not None and (len(budget) != levels or sum(budget) != 1 or min(budget) <= 0):
        raise SettingInvalid(
            f"a budget has one positive share for each of {levels} levels, adding up to 1; found "
            f"{', '.join(map(str, budget))}."
        )
    fractions = budget or (Fraction(1, levels),) * levels
    match request.privacy:
        case Privacy.SECURE:
            return _secure(request, grid, hierarchy)
        case Privacy.DISTRIBUTED:
            return _distributed(request, grid, hierarchy, fractions)
        case Privacy.SITE:
            return _site(request, grid, hierarchy, fractions)
        case Privacy.LOCAL:
            return _local(request, grid, hierarchy, fractions)
        case Privacy.SHUFFLED:
            return shuffled_survey(request, grid, hierarchy, fractions)


def rebuilt_survey(request: SurveyRequest, like: Survey) -> Survey:
    """A survey of the same grid, levels and shares for another epsilon or number of clients.

    >>> from fedassay.hierarchy import Hierarchy
    >>> request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=1000)
    >>> survey = build_survey(request, Grid.uniform(8), Hierarchy.flat(8))
    >>> other = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(2), clients=1000)
    >>> rebuilt_survey(other, survey).epsilon
    Fraction(2, 1)
    """
    return build_survey(request, like.grid, like.hierarchy, budget_of(like))


def budget_of(survey: Survey) -> tuple[Fraction, ...] | None:
    """How a survey's levels share its clients or its epsilon; None where nothing is spent.

    >>> import fedassay
    >>> budget_of(fedassay.new_survey())
    """
    if isinstance(survey.level_policy, OneLevel):
        return survey.level_policy.client_fractions
    if survey.epsilon is None:
        return None
    if survey.hierarchy.levels == 1:
        # What a shuffled report spends alone is more than what all promise together.
        return (Fraction(1),)
    spent = [m.epsilon for m in survey.mechanisms if not isinstance(m, Exact)]
    return tuple(part / survey.epsilon for part in spent)


def _secure(request: SurveyRequest, grid: Grid, hierarchy: AnyLevels) -> Survey:
    moments = SiteMoments.for_sites(request.clients) if request.site_moments else None
    fewest = 2 if moments is None else FEWEST_HONEST + request.colluders
    return Survey(
        privacy=request.privacy,
        grid=grid,
        hierarchy=hierarchy,
        mechanisms=(Exact(),) * hierarchy.levels,
        unit=request.unit,
        minimum_reports=fewest if request.minimum_reports is None else request.minimum_reports,
        colluders=request.colluders,
        model_digest=request.model_digest,
        groups=request.groups,
        smallest_cell=request.smallest,
        moments=moments,
    )


def _distributed(
    request: SurveyRequest, grid: Grid, hierarchy: AnyLevels, shares: tuple[Fraction, ...]
) -> Survey:
    levels = hierarchy.levels
    minimum = request.fewest_reports
    epsilon = request.epsilon or Fraction(1)
    policy: LevelPolicy = EveryLevel()
    spent = [epsilon * share for share in shares]
    if request.levels is LevelChoice.BATCHES and levels > 1:
        policy, spent = OneLevel(shares, request.level_by_hash), [epsilon] * levels
        # Leave room for the luck of the draw: a batch may come out smaller than its share.
        clients = request.clients or 2
        minimum = request.minimum_reports or max(2, int(clients * min(shares) * 9 / 10))
    return Survey(
        privacy=request.privacy,
        grid=grid,
        hierarchy=hierarchy,
        mechanisms=tuple(
            Polya(part, request.unit.sensitivity, minimum - request.colluders) for part in spent
        ),
        level_policy=policy,
        unit=request.unit,
        minimum_reports=minimum,
        colluders=request.colluders,
        model_digest=request.model_digest,
        groups=request.groups,
    )


def _site(
    request: SurveyRequest, grid: Grid, hierarchy: AnyLevels, shares: tuple[Fraction, ...]
) -> Survey:
    epsilon = request.epsilon or Fraction(1)
    fewest = request.colluders + 2 if request.sum_only else 1
    return Survey(
        privacy=request.privacy,
        grid=grid,
        hierarchy=hierarchy,
        # One share is the whole of the noise.
        mechanisms=tuple(Polya(epsilon * part, request.unit.sensitivity, 1) for part in shares),
        unit=request.unit,
        minimum_reports=request.minimum_reports or fewest,
        colluders=request.colluders,
        sum_only=request.sum_only,
        model_digest=request.model_digest,
        groups=request.groups,
    )


def _local(
    request: SurveyRequest, grid: Grid, hierarchy: AnyLevels, shares: tuple[Fraction, ...]
) -> Survey:
    epsilon = request.epsilon or Fraction(1)
    return Survey(
        privacy=request.privacy,
        grid=grid,
        hierarchy=hierarchy,
        mechanisms=tuple(_oracle(request, epsilon, cells) for cells in hierarchy.cells_per_level),
        level_policy=OneLevel(shares, request.level_by_hash)
        if hierarchy.levels > 1
        else EveryLevel(),
        unit=request.unit,
        minimum_reports=request.minimum_reports or 1,
        allow_empty=request.allow_empty,
        model_digest=request.model_digest,
        groups=request.groups,
    )


def _oracle(
    request: SurveyRequest, epsilon: Fraction, cells: int
) -> UnaryEncoding | RandomizedResponse:
    if request.preset is Preset.PAPER:
        return UnaryEncoding(epsilon)
    return oracle_for(epsilon, cells, allow_empty=request.allow_empty)
