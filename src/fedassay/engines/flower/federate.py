"""One survey over Flower, as the server leads it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO

from fedassay.decoding import require_enough
from fedassay.engines.flower.conversation import Conversation
from fedassay.engines.flower.from_flower import Grid
from fedassay.engines.flower.participant import road_of
from fedassay.engines.flower.progress import say, step_words
from fedassay.engines.flower.records import Question
from fedassay.engines.flower.settings import Route, RunSettings, fewest_sites
from fedassay.engines.in_process import tally_of
from fedassay.errors import FedassayError, RoundAborted, TooFewReports
from fedassay.files import canonical
from fedassay.randomness import SystemRandomness
from fedassay.secagg import Roster, SecAggServer, Terms
from fedassay.secagg.messages import decode_keys
from fedassay.secagg.server import Outgoing
from fedassay.survey import Survey
from fedassay.tally import Tally, TallyBuilder
from fedassay.wire import messages


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """A tally, and the sites that are in it."""

    tally: Tally
    sites: list[int]


@dataclass(frozen=True, slots=True)
class OverFlower:
    """An engine: sites that a Flower SuperLink connects."""

    grid: Grid
    settings: RunSettings

    def tally(self, survey: Survey) -> Tally:
        """Gather sites, ask them, and add up; raises below the survey's minimum."""
        return gather(self.grid, replace(self.settings, survey=survey)).tally


def gather(grid: Grid, settings: RunSettings, among: Sequence[int] | None = None) -> Gathered:
    """Ask one survey of all sites, or of those among these that are still connected."""
    survey = settings.survey
    say(
        f"Survey {survey.fingerprint.hex()[:12]}{step_words(survey)}: {survey.grid.cells:,} cells "
        f"in {survey.hierarchy.levels} level(s). {survey.guarantee.sentence()}"
    )
    talk = Conversation(
        grid,
        fewest_sites(survey, settings.route),
        stage_seconds=settings.stage_seconds,
        quiet_seconds=settings.quiet_seconds,
        step=step_words(survey),
    )
    if among is None:
        sites = talk.gather(settings.sites, settings.wait_seconds)
    else:
        sites = talk.still_there(among)
    try:
        if settings.route is Route.AGGREGATED:
            gathered = aggregated(talk, settings, sites)
        else:
            gathered = reported(talk, settings, sites)
        require_enough(survey, gathered.tally)
    except (RoundAborted, TooFewReports) as error:
        if talk.absent:
            raise type(error)(f"{error} Missing sites: {talk.missing()}.") from None
        raise
    say(f"Counted {gathered.tally.clients(survey):,} reports.")
    return gathered


def aggregated(talk: Conversation, settings: RunSettings, sites: list[int]) -> Gathered:
    """The sum over the survivors, by secure aggregation: keys, shares, masked, unmask."""
    survey = settings.survey
    roster = None if settings.roster is None else Roster.load(settings.roster)
    terms = Terms.of(
        survey, randomness=SystemRandomness(), roster=None if roster is None else roster.digest
    )
    say(
        f"Round {terms.round_id.hex()[:12]}: at least {terms.minimum} sites must survive; "
        f"identities are {'not pinned' if roster is None else 'pinned'}."
    )
    server = SecAggServer(terms, roster=roster)
    content = canonical(survey.to_json())

    def stage(
        name: str,
        outgoing: Outgoing | Mapping[str, bytes],
        receive: Callable[[str, bytes], None],
        survey_json: bytes = b"",
    ) -> None:
        pairs = outgoing.items() if isinstance(outgoing, Mapping) else outgoing
        questions = {
            int(site): Question(survey_json, terms.round_id, payload) for site, payload in pairs
        }
        for site, answer in talk.ask(name, questions).items():
            try:
                receive(str(site), answer)
            except FedassayError as error:
                talk.note(site, f"left out at stage {name}, {type(error).__name__}", str(error))

    def join(site: str, answer: bytes) -> None:
        server.receive_keys(site, answer)
        if roster is not None:
            # It has signed with this key, so that the roster's name is its own.
            key = decode_keys(answer, terms).leaf.member
            talk.names[int(site)] = roster.names[roster.index(key)]

    everybody = dict.fromkeys(map(str, sites), terms.to_bytes())
    stage("keys", everybody, join, content)
    if talk.names:
        say(f"With {', '.join(sorted(talk.names.values()))}.")
    stage("shares", server.roster_messages(), server.receive_shares)
    stage("masked", server.inboxes(), server.receive_masked, content)
    if server.is_pinned:
        stage("confirm", server.survivor_messages(), server.receive_confirm)
    stage("unmask", server.unmask_requests(), server.receive_unmask)
    outcome = server.outcome()
    return Gathered(tally_of(survey, outcome), [int(site) for site in outcome.survivors])


def reported(talk: Conversation, settings: RunSettings, sites: list[int]) -> Gathered:
    """Add up reports that the server may see."""
    survey = settings.survey
    if settings.route is Route.TRUSTED:
        say(
            "TRUSTED SERVER: this server sees the exact report of every site. For development "
            "with made-up data only."
        )
    question = Question(canonical(survey.to_json()), b"", road_of(survey))
    tally, counted = Tally.zero(survey), []
    for site, answer in talk.ask("report", dict.fromkeys(sites, question)).items():
        try:
            tally = tally + _site_tally(survey, answer, talk.name(site))
            counted.append(site)
        except FedassayError as error:
            talk.note(site, f"left out at stage report, {type(error).__name__}", str(error))
    return Gathered(tally, counted)


def _site_tally(survey: Survey, answer: bytes, name: str) -> Tally:
    """A site's reports, all of them or none."""
    builder = TallyBuilder(Tally.zero(survey), survey)
    for message in messages(BytesIO(answer), survey):
        builder.add(message, name=name)
    return builder.tally()
