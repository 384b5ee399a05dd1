"""Secure aggregation in one process: real clients, a real server, scripted dropouts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fedassay.client import OPEN_POLICY, Answer, ClientPolicy, answer_counts
from fedassay.errors import ReportMalformed, RoundAborted
from fedassay.examples import IntArray, ScoredClients
from fedassay.level_policy import EveryLevel
from fedassay.patient_rows import limits_patients
from fedassay.randomness import Randomness
from fedassay.secagg.client import SecAggClient
from fedassay.secagg.cohorts import divide
from fedassay.secagg.identity import Named, Pinned, Roster
from fedassay.secagg.layout import vector_of
from fedassay.secagg.server import Outcome, Outgoing, SecAggServer
from fedassay.secagg.state import Stage
from fedassay.secagg.terms import Terms
from fedassay.simulation.simulate import clients, limited
from fedassay.sites.moment_words import moment_words
from fedassay.survey import Survey
from fedassay.survey_cells import count_rows
from fedassay.tally import Tally


@dataclass(frozen=True, slots=True)
class SimulatedSite:
    """One client of a simulated federation."""

    member: Named | Pinned
    answer: Callable[[], Answer]
    """Makes its answer when the masked stage comes."""
    leaves_before: Stage | None = None
    """The stage that it does not answer any more, or None when it stays."""
    policy: ClientPolicy = OPEN_POLICY


def run_round(
    survey: Survey,
    sites: Mapping[str, SimulatedSite],
    *,
    randomness: Randomness,
    roster: Roster | None = None,
) -> Outcome:
    """One round, from terms to the sum over the survivors."""
    terms = Terms.of(
        survey, randomness=randomness, roster=None if roster is None else roster.digest
    )
    server = SecAggServer(terms, roster=roster)
    parties: dict[str, SecAggClient] = {}

    def stays(name: str, stage: Stage) -> bool:
        leaves = sites[name].leaves_before
        return leaves is None or stage < leaves

    for name, site in sites.items():
        if stays(name, Stage.KEYS):
            parties[name] = SecAggClient.start(
                terms, survey, site.member, policy=site.policy, randomness=randomness
            )
            server.receive_keys(name, parties[name].keys())
    for name, message in _still(server.roster_messages(), Stage.SHARES, stays):
        server.receive_shares(name, parties[name].shares(message))
    for name, message in _still(server.inboxes(), Stage.MASKED, stays):
        vector = vector_of(survey, sites[name].answer())
        server.receive_masked(name, parties[name].masked(message, vector))
    if server.is_pinned:
        for name, message in _still(server.survivor_messages(), Stage.CONFIRMED, stays):
            server.receive_confirm(name, parties[name].confirm(message))
    for name, message in _still(server.unmask_requests(), Stage.UNMASKED, stays):
        server.receive_unmask(name, parties[name].unmask(message))
    return server.outcome()


@dataclass(frozen=True, slots=True)
class CohortsOutcome:
    """The sum over cohorts, and those that were aborted and revealed nothing."""

    tally: Tally
    aborted: tuple[tuple[str, ...], ...] = ()


def run_cohorts(
    survey: Survey,
    sites: Mapping[str, SimulatedSite],
    *,
    cohorts: int,
    randomness: Randomness,
) -> CohortsOutcome:
    """A round for each of many cohorts, and the sum over them.

    Guarantee: as of the survey, towards whoever sees the sum of every cohort (`secagg.cohorts`).
    """
    named = {site.member.member: name for name, site in sites.items()}
    tally, aborted = Tally.zero(survey), []
    for members in divide([site.member.member for site in sites.values()], survey, cohorts):
        cohort = {named[member]: sites[named[member]] for member in members}
        try:
            outcome = run_round(survey, cohort, randomness=randomness)
        except RoundAborted:
            aborted.append(tuple(cohort))
            continue
        tally = tally + tally_of(survey, outcome)
    return CohortsOutcome(tally, tuple(aborted))


@dataclass(frozen=True, slots=True, eq=False)
class InProcess:
    """An engine: secure aggregation among clients of one process, none of which drops out."""

    scored: ScoredClients
    randomness: Randomness
    cohorts: int = 1
    """How many rounds the clients are divided between; more than 65,536 of them need several."""

    def tally(self, survey: Survey) -> Tally:
        """Run one round and read its sum as a tally."""
        scored = self.scored
        if limits_patients(survey):
            scored = limited(survey, scored, randomness=self.randomness)
        sites = {
            str(number): SimulatedSite(
                Named(str(number)),
                _answering(survey, count_rows(survey, examples), self.randomness),
            )
            for number, examples in enumerate(clients(scored))
        }
        if self.cohorts == 1:
            return tally_of(survey, run_round(survey, sites, randomness=self.randomness))
        return run_cohorts(survey, sites, cohorts=self.cohorts, randomness=self.randomness).tally


def tally_of(survey: Survey, outcome: Outcome) -> Tally:
    """The tally that a round's sum is; a sum that cannot be is a `ReportMalformed`."""
    levels = survey.hierarchy.levels
    reports = tuple(outcome.total[:levels].tolist())
    counters, moments = np.split(outcome.total[levels:], [survey.hierarchy.width])
    survivors = len(outcome.survivors)
    expected = (
        reports == (survivors,) * levels
        if isinstance(survey.level_policy, EveryLevel)
        else min(reports) >= 0 and sum(reports) == survivors
    )
    if not expected or (survey.is_exact and counters.min() < 0):
        raise ReportMalformed(
            f"the sum over {survivors} clients must count one report of each, and exact counts "
            "are never negative; this sum does not fit, so a client sent a false vector. "
            "Start a new round; secure aggregation cannot tell which client it was."
        )
    return Tally(survey.fingerprint, reports, counters.copy(), moments=moments.copy())


def _still(outgoing: Outgoing, stage: Stage, stays: Callable[[str, Stage], bool]) -> Outgoing:
    return ((name, message) for name, message in outgoing if stays(name, stage))


def _answering(survey: Survey, counts: IntArray, randomness: Randomness) -> Callable[[], Answer]:
    return lambda: answer_counts(
        survey,
        counts,
        randomness=randomness,
        policy=OPEN_POLICY,
        rows_limited=True,
        moments=moment_words,
    )
