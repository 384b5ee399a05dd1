"""A survey of one step or of two over a cohort: who answers which, and what comes of it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedassay.assessment import Assessment
from fedassay.errors import SettingInvalid
from fedassay.examples import ScoredClients
from fedassay.mechanisms import UnitKind
from fedassay.planning.search import SurveyDesign
from fedassay.planning.second_survey import second_survey
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import Progress, tally_clients, tally_each_client
from fedassay.survey import Survey
from fedassay.survey_steps import FirstOfTwo
from fedassay.tally import Tally

TallyOf = Callable[[Survey, ScoredClients], Tally]


def assess_cohort(
    design: SurveyDesign,
    cohort: ScoredClients,
    *,
    thresholds: tuple[float, ...],
    randomness: SimulatedRandomness,
    each_client: bool = False,
    progress: Progress | None = None,
) -> Assessment:
    """Ask the cohort once, or twice where the design is the first of two surveys.

    The sum over all clients is drawn at once, or with `each_client` made report by report:
    both have the same distribution. Where nobody asked for two steps and the first finds
    nothing to make a second from, it stands alone (`stood_alone` says why).
    """

    def tally(survey: Survey, clients: ScoredClients) -> Tally:
        if each_client:
            return tally_each_client(survey, clients, randomness=randomness, progress=progress)
        return tally_clients(survey, clients, randomness=randomness)

    first, options = design.survey, design.decode_options
    if not isinstance(first.step, FirstOfTwo):
        return Assessment(first, tally(first, cohort), options, thresholds)
    sides = split_steps(first, cohort, randomness.generator)
    found = Assessment(first, tally(first, sides.first), options, thresholds)
    try:
        second = second_survey(first, found.tally, thresholds=thresholds)
    except SettingInvalid:
        if design.may_stay_one:
            return found
        raise
    return Assessment(second, tally(second, sides.second), options, thresholds, first=found)


def stood_alone(assessment: Assessment) -> str:
    """What to tell of a first survey that no second could follow; nothing of any other."""
    step = assessment.survey.step
    if assessment.first is not None or not isinstance(step, FirstOfTwo):
        return ""
    spent, total = float(assessment.survey.epsilon or 0), float(step.total_epsilon)
    cost = f"epsilon {spent:g} of {total:g}" if spent < total else "a part of the clients"
    return (
        "The first of two surveys found nothing but noise, so that no second was made of it: this "
        f"is the first alone, with {cost}. Ask once (--steps 1), more clients, or with a larger "
        "epsilon."
    )


@dataclass(frozen=True, slots=True)
class StepCohorts:
    """Who answers the first survey, and who the second."""

    first: ScoredClients
    second: ScoredClients


def split_steps(
    first: Survey, cohort: ScoredClients, generator: np.random.Generator
) -> StepCohorts:
    """All clients answer both; under local privacy each unit one, drawn at random."""
    if first.step is None or not first.is_local:
        return StepCohorts(cohort, cohort)
    share = float(first.step.client_fraction)
    by_client = generator.random(cohort.clients) < share
    owners = cohort.client_of_row
    rows = len(cohort.examples)
    if owners is None:
        of_row, silent = by_client[:rows], by_client[rows:]
    else:
        is_client = first.unit.kind is UnitKind.CLIENT
        of_row = by_client[owners] if is_client else generator.random(rows) < share
        silent = np.delete(by_client, np.unique(owners))
    return StepCohorts(_part(cohort, of_row, silent), _part(cohort, ~of_row, ~silent))


def _part(
    cohort: ScoredClients, of_row: npt.NDArray[np.bool_], silent: npt.NDArray[np.bool_]
) -> ScoredClients:
    """The chosen rows with their clients, and those clients without rows that are chosen."""
    examples = cohort.examples.rows(np.flatnonzero(of_row))
    quiet = int(silent.sum())
    if cohort.client_of_row is None:
        return ScoredClients(examples, None, len(examples) + quiet)
    clients, codes = np.unique(cohort.client_of_row[of_row], return_inverse=True)
    return ScoredClients(examples, codes.astype(np.int64), len(clients) + quiet)
