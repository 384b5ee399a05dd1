"""What a site does at each stage: policy, then data, then ledger, then the answer."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedassay.client import answer_counts
from fedassay.engines.flower.records import Question
from fedassay.engines.flower.site import Site
from fedassay.errors import (
    MessageMalformed,
    SettingInvalid,
    SurveyRefused,
)
from fedassay.limits import largest_counter
from fedassay.mechanisms import Privacy
from fedassay.randomness import SystemRandomness
from fedassay.secagg import Named, Pinned, RoundStore, SecAggClient, Terms
from fedassay.secagg.layout import vector_of
from fedassay.secagg.state import Stage
from fedassay.secagg.terms import ROUND_ID_BYTES
from fedassay.sites.moment_words import moment_words
from fedassay.survey import Survey
from fedassay.survey_json import survey_from_bytes

TRUSTED_SERVER = b"trusted-server"
LOCAL = b"local"
SITE = b"site"


@dataclass(frozen=True, slots=True)
class Participant:
    """A site in one run."""

    site: Site
    node: str
    """The name under which the transport knows this site."""
    run: str
    """Whose question it is, for the ledger."""

    def keys(self, question: Question) -> bytes:
        """Stage 1 of secure aggregation: check survey and terms, announce fresh keys.

        What is wrong with table or ledger shows here, before anybody counts on this site.
        """
        survey = read_survey(question.survey)
        policy = self.site.policy(survey)
        terms = Terms.from_bytes(question.payload)
        client = SecAggClient.start(
            terms, survey, self._member, policy=policy, randomness=SystemRandomness()
        )
        self.site.questions.ask()
        self.site.check_ledger(survey)
        self.site.rows(survey)
        RoundStore(self.site.rounds).begin(client)
        return client.keys()

    def shares(self, question: Question) -> bytes:
        """Stage 2: entrust sealed shares to the neighbours."""
        return self._turn(question, lambda client: client.shares(question.payload))

    def masked(self, question: Question) -> bytes:
        """Stage 3: the masked counts; the ledger is charged before they are made."""
        survey = read_survey(question.survey)
        return self._turn(question, lambda client: self._masked(client, survey, question.payload))

    def confirm(self, question: Question) -> bytes:
        """Sign the survivor set, where identities are pinned."""
        return self._turn(question, lambda client: client.confirm(question.payload))

    def unmask(self, question: Question) -> bytes:
        """Stage 4: one share of every neighbour."""
        return self._turn(question, lambda client: client.unmask(question.payload))

    def report(self, question: Question) -> bytes:
        """Answer with this site's own reports.

        Guarantee: locally private reports, and those to which the site added the whole noise,
        protect themselves. Exact ones leave only where the site set trusted-server, which is for
        development.
        """
        survey = read_survey(question.survey)
        if question.payload not in (LOCAL, SITE, TRUSTED_SERVER):
            raise MessageMalformed("a report is asked for by a road that this site does not know.")
        if question.payload != road_of(survey):
            raise SurveyRefused(
                "only reports that protect themselves are shown to a server; this survey's do "
                "not, or it says that only their sum is. Use secure aggregation."
            )
        if not survey.privacy.stands_alone and not self.site.agreement.trusted_server:
            raise SurveyRefused(
                "this site shows its own report to no server; the run asks for it. "
                "Use privacy secure or distributed; for development with made-up data the site "
                "may set trusted-server = true."
            )
        policy = self.site.policy(survey)
        policy.check(survey)
        self.site.questions.ask()
        counts, table = self.site.rows(survey)
        self.site.check_ledger(survey, table)
        answer = answer_counts(
            survey,
            counts,
            randomness=SystemRandomness(),
            policy=policy,
            client_id=self.site.agreement.data_id,
            account=self.site.account(self.run, table),
            rows_limited=True,
            moments=moment_words,
        )
        self.site.questions.charged()
        return answer.to_bytes()

    def _masked(self, client: SecAggClient, survey: Survey, inbox: bytes) -> bytes:
        nothing = np.zeros(client.terms.length, dtype=np.int64)
        if client.stage >= Stage.MASKED:
            # The answer that was given is given again, or refused; nothing new is spent.
            return client.masked(inbox, nothing)
        policy = self.site.policy(survey)
        client.terms.check(survey, policy)
        self.site.check_ledger(survey)
        counts, _ = self.site.rows(survey)
        # What cannot be answered costs nothing: try the largest counters on a copy first.
        copy = SecAggClient.from_bytes(
            client.to_bytes(), self._member, randomness=SystemRandomness()
        )
        copy.masked(inbox, nothing + largest_counter(survey, counts))
        answer = answer_counts(
            survey,
            counts,
            randomness=SystemRandomness(),
            policy=policy,
            account=self.site.account(self.run),
            rows_limited=True,
            moments=moment_words,
        )
        self.site.questions.charged()
        return client.masked(inbox, vector_of(survey, answer))

    def _turn(self, question: Question, answer: Callable[[SecAggClient], bytes]) -> bytes:
        if len(question.round_id) != ROUND_ID_BYTES:
            raise MessageMalformed(
                f"a round id has {ROUND_ID_BYTES} bytes; found {len(question.round_id)}."
            )
        store = RoundStore(self.site.rounds)
        with store.turn(question.round_id, self._member, randomness=SystemRandomness()) as client:
            # What was decided is on the disk before the answer goes further.
            return answer(client)

    @property
    def _member(self) -> Named | Pinned:
        identity, roster = self.site.identity(), self.site.roster()
        if (identity is None) != (roster is None):
            raise SettingInvalid(
                "identities are pinned by two settings of site.toml together, identity and "
                "roster; found one. Add the other, or remove both."
            )
        if identity is None or roster is None:
            return Named(self.node)
        return Pinned(identity, roster)


def road_of(survey: Survey) -> bytes:
    """How a server asks for single reports to a survey; nothing where it never may."""
    if survey.is_local:
        return LOCAL
    if survey.reports_may_be_seen:
        return SITE
    return b"" if survey.privacy.stands_alone else TRUSTED_SERVER


def read_survey(content: bytes) -> Survey:
    """Read the survey that a server sent."""
    survey = survey_from_bytes(content, where="the survey of this run")
    if survey.privacy is Privacy.SHUFFLED:
        raise SurveyRefused(
            "a federation of sites has no shuffler between them and the server; this survey's "
            "reports need one. Use local or site privacy, or send reports to a shuffler as files."
        )
    return survey
