"""A run: one survey, or two that belong together, from the first question to the assessment."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from fedassay.assessment import Assessment
from fedassay.engines.flower.federate import gather
from fedassay.engines.flower.from_flower import Grid
from fedassay.engines.flower.progress import say
from fedassay.engines.flower.settings import RunSettings
from fedassay.errors import FedassayError
from fedassay.planning.second_survey import second_survey
from fedassay.survey_steps import FirstOfTwo
from fedassay.tally import Tally

Keep = Callable[[Assessment], None]
"""Takes the first of two assessments as soon as there is one, whatever becomes of the second."""


def federate(grid: Grid, settings: RunSettings, *, keep: Keep = lambda _: None) -> Assessment:
    """Ask all sites, in one step or in two, and assess what they answer together.

    Guarantee: what both steps spend is announced with the first, and each site charges it
    before it answers that. Whatever ends the run in between, nothing more is spent on it; the
    first step's assessment, which is kept, can be taken up again (`after`).
    """
    if settings.first is not None:
        return _second_step(grid, settings, settings.first)
    step = settings.survey.step
    if isinstance(step, FirstOfTwo):
        say(
            f"Both surveys together spend epsilon {float(step.total_epsilon):g}, which sites "
            "charge before the first."
        )
    gathered = gather(grid, settings)
    assessment = _assessment(settings, gathered.tally)
    if not isinstance(step, FirstOfTwo):
        return assessment
    keep(assessment)
    try:
        return _second_step(grid, settings, assessment, among=gathered.sites)
    except FedassayError as error:
        say(
            f"The second step failed; what the first gathered stands alone. "
            f"{type(error).__name__}: {error} To ask the second again, which costs nothing more "
            f"at a site that has not answered it: after='{settings.output}'."
        )
        return assessment


def _second_step(
    grid: Grid, settings: RunSettings, first: Assessment, *, among: Sequence[int] | None = None
) -> Assessment:
    """Make the second survey from the first one's tally, and ask it of the same sites.

    A site that is in the second sum only would pass unnoticed for one that is in the first
    only, so that the others are not asked.
    """
    survey = second_survey(first.survey, first.tally, thresholds=settings.thresholds)
    settings = replace(settings, survey=survey)
    gathered = gather(grid, settings, among)
    assessment = _assessment(settings, gathered.tally, first)
    # What cannot be read together is noticed now, while the first can stand alone.
    assessment.histogram()
    return assessment


def _assessment(settings: RunSettings, tally: Tally, first: Assessment | None = None) -> Assessment:
    options, thresholds = settings.decode_options, settings.thresholds
    return Assessment(settings.survey, tally, options, thresholds, first)
