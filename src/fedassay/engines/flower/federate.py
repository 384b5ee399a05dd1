"""One run, as the server leads it."""

from io import BytesIO

from flwr.serverapp import Grid

from fedassay.assessment import Assessment
from fedassay.decode import require_enough
from fedassay.engines.flower.conversation import Conversation
from fedassay.engines.flower.participant import LOCAL, TRUSTED_SERVER
from fedassay.engines.flower.progress import say
from fedassay.engines.flower.settings import Road, RunSettings, fewest_sites
from fedassay.errors import FedassayError, TooFewReports
from fedassay.jsonfile import canonical
from fedassay.survey import Survey
from fedassay.tally import Tally, TallyBuilder
from fedassay.wire import messages


def federate(grid: Grid, settings: RunSettings) -> Assessment:
    """Ask all sites, and assess what they answer together."""
    survey = settings.survey
    say(
        f"Survey {survey.fingerprint.hex()[:12]}: {survey.grid.cells:,} cells in "
        f"{survey.hierarchy.levels} level(s). {survey.guarantee.sentence()}"
    )
    talk = Conversation(grid, canonical(survey.to_json()), settings.stage_seconds)
    sites = talk.gather(settings.sites, fewest_sites(survey, settings.road), settings.wait_seconds)
    tally = _reported(talk, settings, sites)
    try:
        require_enough(survey, tally)
    except TooFewReports as error:
        raise TooFewReports("\n".join([str(error), *talk.absent])) from error
    say(f"Counted {tally.clients(survey):,} reports.")
    return Assessment(survey, tally, settings.readout, settings.thresholds)


def _reported(talk: Conversation, settings: RunSettings, sites: list[int]) -> Tally:
    """Add up reports that the server may see."""
    road = LOCAL
    if settings.road is Road.TRUSTED:
        road = TRUSTED_SERVER
        say(
            "TRUSTED SERVER: this server sees the exact report of every site. For development "
            "with made-up data only."
        )
    survey = settings.survey
    tally = Tally.zero(survey)
    for site, answer in talk.ask("report", dict.fromkeys(sites, road)).items():
        try:
            tally = tally + _site_tally(survey, answer)
        except FedassayError as error:
            talk.note(site, "report", f"left out, {type(error).__name__}: {error}")
    return tally


def _site_tally(survey: Survey, answer: bytes) -> Tally:
    """A site's reports, all of them or none."""
    builder = TallyBuilder(Tally.zero(survey), survey)
    for message in messages(BytesIO(answer), survey):
        builder.add(message)
    return builder.tally()
