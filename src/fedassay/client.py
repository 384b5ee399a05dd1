"""The client: checks a survey against its own policy, then answers it."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from fedassay.checks import require_type, require_whole
from fedassay.errors import SettingInvalid, SurveyRefused
from fedassay.examples import Examples, FloatArray, IntArray
from fedassay.level_draw import choose_level, hashed_level, rows_in_turn
from fedassay.level_policy import OneLevel
from fedassay.limits import (
    at_most,
    check_alone,
    check_bytes,
    check_cells,
    check_counters,
    check_draws,
    check_largest,
    check_published,
)
from fedassay.local_reports import blocks
from fedassay.mechanisms import Privacy, SharingMechanism, UnitKind
from fedassay.mechanisms.sampling import Dice
from fedassay.mechanisms.shuffled_promise import check_delta
from fedassay.patient_rows import limited_rows, limits_patients
from fedassay.randomness import Randomness
from fedassay.report_ids import REPORT_ID_BYTES
from fedassay.survey import Survey
from fedassay.survey_cells import count_rows
from fedassay.wire import (
    Message,
    Report,
    encode,
)

CEILING = Fraction(10)
"""No client answers a survey that spends more, whatever its policy says; e^10 is 22,026 to 1."""


def default_epsilon(privacy: Privacy) -> Fraction:
    """The most that a client spends on one survey unless it was told otherwise."""
    match privacy:
        case Privacy.SECURE | Privacy.DISTRIBUTED | Privacy.SITE | Privacy.SHUFFLED:
            return Fraction(1)
        case Privacy.LOCAL:
            return Fraction(5)


def most_cells(privacy: Privacy) -> int:
    """The most cells that a client answers: several times what the planner ever chooses.

    More than that measures nothing better, but tells more of each row, costs the client
    more work, or is meant to.
    """
    match privacy:
        case Privacy.SECURE:
            return 2**17
        case Privacy.DISTRIBUTED | Privacy.SITE:
            return 2**14
        case Privacy.LOCAL | Privacy.SHUFFLED:
            return 2**13


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPolicy:
    """What a client accepts; a survey outside it is refused, whoever sent it.

    Without arguments it is closed: no exact sums, and no more than `default_epsilon`.
    """

    smallest_cohort: int = 1
    colluders: int = 0
    """How many others may work together with the server: a survey must withstand as many."""
    largest_epsilon: Fraction | None = None
    """The most that one survey may spend, up to `CEILING`; None for `default_epsilon`."""
    largest_local_epsilon: Fraction | None = None
    """Of shuffled reports, the most that each may cost alone; None for that of local privacy."""
    largest_delta: Fraction = Fraction(1, 10**6)
    """The largest chance that a survey's epsilon may say nothing about."""
    exact_sums: bool = False
    """Whether sums without noise may be revealed."""
    smallest_cell: int = 10
    """Of sums without noise, the smallest count that may be published; 0 or 1 for any."""
    model_digests: frozenset[str] = field(default_factory=frozenset)
    """Digests of the models this client will assess; empty accepts any."""

    def __post_init__(self) -> None:
        require_whole(self.smallest_cohort, "smallest_cohort", 1)
        require_whole(self.colluders, "colluders", 0)
        require_type(self.exact_sums, bool, "exact_sums", "Pass True or False.")
        require_whole(self.smallest_cell, "smallest_cell", 0)
        for name in ("largest_epsilon", "largest_local_epsilon"):
            check_largest(getattr(self, name), name, CEILING)
        check_delta(self.largest_delta)
        require_type(
            self.model_digests,
            frozenset,
            "model_digests",
            "Write frozenset({digest}), one SHA-256 in hexadecimal for each model.",
        )

    def check(self, survey: Survey) -> None:
        """Raise `SurveyRefused` when the survey asks for more than this client gives."""
        self._check_epsilon(survey)
        self._check_crowd(survey)
        most = most_cells(survey.privacy)
        if survey.leaves > most:
            raise SurveyRefused(
                f"this client answers {survey.privacy.value} surveys of at most {most:,} cells; "
                f"this one has {survey.leaves:,}. Start a survey with fewer cells."
            )
        check_draws(survey)
        if self.model_digests and survey.model_digest not in self.model_digests:
            raise SurveyRefused(
                "this client assesses only models it knows; the survey names another, or none. "
                "Set the survey's model digest, or add the model to the client's policy."
            )

    def _check_crowd(self, survey: Survey) -> None:
        if survey.colluders < self.colluders:
            raise SurveyRefused(
                f"this client answers only where {self.colluders} others may work together with "
                f"the server and learn nothing more; the survey withstands {survey.colluders}. "
                f"Set its colluders to {self.colluders}, and minimum_reports so much higher."
            )
        honest = survey.minimum_reports - survey.colluders
        if honest < self.smallest_cohort:
            raise SurveyRefused(
                f"this client answers only in a crowd of at least {self.smallest_cohort}; the "
                f"survey guarantees {honest}. Raise its minimum_reports."
            )

    def _check_epsilon(self, survey: Survey) -> None:
        epsilon = survey.total_epsilon
        if epsilon is None:
            if not self.exact_sums:
                raise SurveyRefused(
                    "this client reveals no sum without noise; the survey asks for exact sums. "
                    "Choose distributed or local privacy, or allow exact sums."
                )
            check_published(survey, self.smallest_cell)
            return
        most = self.largest_epsilon or default_epsilon(survey.privacy)
        if epsilon > most:
            raise SurveyRefused(
                f"this client spends at most epsilon {float(most):g} on a survey; this one asks "
                f"for epsilon {float(epsilon):g}. Lower its epsilon."
            )
        alone = self.largest_local_epsilon or default_epsilon(Privacy.LOCAL)
        check_alone(survey, largest=alone, delta=self.largest_delta)


OPEN_POLICY = ClientPolicy(
    largest_epsilon=CEILING,
    largest_local_epsilon=CEILING,
    largest_delta=Fraction(1, 2),
    exact_sums=True,
    smallest_cell=0,
)
"""All that any client may answer: for simulations and tests, where nobody's rows are at stake."""


class MomentsOf(Protocol):
    """How a site finds the moments of its metrics; see `fedassay.sites.moment_words`."""

    def __call__(self, survey: Survey, leaf_counts: IntArray, /) -> IntArray:
        """The words that these counts add to the survey's sums."""


class Account(Protocol):
    """Where a client records what it spends, before it spends it; see `fedassay.ledger`."""

    def charge(self, survey: Survey) -> object:
        """Record the survey's cost for good, or raise `SurveyRefused`."""


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """All that ever leaves a client: one report, or blocks of locally private ones."""

    messages: tuple[Message, ...]

    def __post_init__(self) -> None:
        messages: Any = self.messages
        fits = isinstance(messages, tuple) and len(messages) > 0
        if not fits or not all(isinstance(message, Message) for message in messages):
            raise SettingInvalid(
                "an answer is a tuple of reports or blocks; found something else. "
                "Make it with fedassay.answer."
            )

    def __repr__(self) -> str:
        return f"<Answer: {self.reports:,} report{'s' if self.reports > 1 else ''}>"

    @property
    def reports(self) -> int:
        """How many reports it holds."""
        return sum(message.reports for message in self.messages)

    def to_bytes(self) -> bytes:
        """The content of a report file."""
        return b"".join(encode(message) for message in self.messages)


def answer(
    survey: Survey,
    examples: Examples,
    *,
    randomness: Randomness,
    policy: ClientPolicy,
    client_id: str | None = None,
    account: Account | None = None,
    patients: IntArray | None = None,
    times: FloatArray | None = None,
    moments: MomentsOf | None = None,
) -> Answer:
    """Answer a survey with all that may leave this client.

    Guarantee: that of `survey.guarantee`, provided the randomness is secret, which is
    checked. With an account it is charged after all checks and before any noise is drawn.
    Under local privacy a row, or a client where that is the unit, answers one of two surveys.
    Where patients are protected, `patients` numbers them row by row, and at most so many rows
    of each count as the survey says: at random, or the latest by `times`.

    >>> import fedassay
    >>> from fedassay import ClientPolicy, Examples, SystemRandomness
    >>> survey = fedassay.new_survey(privacy="local", epsilon=1, clients=1000)
    >>> rows = Examples([0, 1], [0.2, 0.7])
    >>> answer(survey, rows, randomness=SystemRandomness(), policy=ClientPolicy())
    <Answer: 2 reports>
    """
    require_type(survey, Survey, "a survey", "fedassay.load reads survey files.")
    require_type(
        examples, Examples, "what a client answers with", "Pass Examples(y, s).", withhold=True
    )
    require_type(policy, ClientPolicy, "a client's policy", "Pass ClientPolicy().")
    policy.check(survey)
    examples = limited_rows(survey, examples, patients=patients, times=times, randomness=randomness)
    counts = count_rows(survey, rows_in_turn(survey, examples, client_id))
    return answer_counts(
        survey,
        counts,
        randomness=randomness,
        policy=policy,
        client_id=client_id,
        account=account,
        rows_limited=True,
        moments=moments,
    )


def answer_counts(
    survey: Survey,
    leaf_counts: IntArray,
    *,
    randomness: Randomness,
    policy: ClientPolicy,
    client_id: str | None = None,
    account: Account | None = None,
    rows_limited: bool = False,
    moments: MomentsOf | None = None,
) -> Answer:
    """Answer a survey from counts per label and leaf cell, for tables too large to hold.

    The counts are of rows that answer this survey; see `rows_in_turn`. Where patients are
    protected they are of the rows that `limited_rows` left, which `rows_limited` says. A survey
    that adds up moments of sites' metrics gets an answer only from who can find them.
    """
    if survey.moments is not None and moments is None:
        raise SurveyRefused(
            "this survey adds up moments of sites' metrics; this client has no way to find its "
            "own. Answer with fedassay answer, or start a survey without site moments."
        )
    check_answerable(
        survey,
        leaf_counts,
        randomness=randomness,
        policy=policy,
        client_id=client_id,
        rows_limited=rows_limited,
    )
    if account is not None:
        account.charge(survey)
    return make_answer(
        survey, leaf_counts, randomness=randomness, client_id=client_id, moments=moments
    )


def check_answerable(
    survey: Survey,
    leaf_counts: IntArray,
    *,
    randomness: Randomness,
    policy: ClientPolicy,
    client_id: str | None = None,
    rows_limited: bool = False,
) -> None:
    """Raise what stands in the way of an answer, before anything is charged or drawn."""
    if limits_patients(survey) and not rows_limited:
        raise SettingInvalid(
            f"this survey protects {survey.unit}; counts do not say whose rows they are. Limit "
            "the rows before counting them (patient_rows.limited_rows)."
        )
    if not randomness.is_secret:
        raise SettingInvalid(
            "a client must answer with SystemRandomness; found a repeatable source, which "
            "protects nobody. Use fedassay.simulate to simulate."
        )
    policy.check(survey)
    if (
        isinstance(survey.level_policy, OneLevel)
        and survey.level_policy.by_hash
        and client_id is None
    ):
        raise SettingInvalid(
            "this survey draws a client's level from its id; found none. Pass a client id."
        )
    check_cells(survey, int(leaf_counts.sum()), policy.smallest_cell)
    _check_counts(survey, leaf_counts)


def _check_counts(survey: Survey, leaf_counts: IntArray) -> None:
    """Refuse what could not be answered, before it is charged."""
    if survey.is_local and not survey.allow_empty and not leaf_counts.any():
        raise SurveyRefused(
            "this survey is for clients that hold an example; this one has none. "
            "Do not answer, or start a survey that allows empty clients."
        )
    if survey.is_local:
        check_bytes(survey, rows_counted(survey, int(leaf_counts.sum())))
    else:
        check_counters(survey, leaf_counts)


def rows_counted(survey: Survey, rows: int) -> int:
    """How many of a client's rows an answer counts; the others are left out at random."""
    return min(rows, _most_rows(survey) or rows)


def _most_rows(survey: Survey) -> int | None:
    """The most rows of a client that count, where the unit limits them."""
    if survey.unit.kind is not UnitKind.CLIENT:
        return None
    # A locally private client sends one report, whatever it holds.
    return 1 if survey.is_local else survey.unit.max_examples


def make_answer(
    survey: Survey,
    leaf_counts: IntArray,
    *,
    randomness: Randomness,
    client_id: str | None = None,
    moments: MomentsOf | None = None,
) -> Answer:
    """Turn counts into messages: `answer_counts` without the client's checks, for simulation."""
    dice = Dice(randomness)
    most = _most_rows(survey)
    if most is not None:
        leaf_counts = at_most(leaf_counts, most, dice)
    level = None
    if isinstance(survey.level_policy, OneLevel):
        if survey.level_policy.by_hash and client_id is not None:
            level = hashed_level(survey, client_id)
        elif not survey.is_local:
            level = choose_level(survey.level_policy, dice)
    if survey.is_local:
        return Answer(tuple(blocks(survey, leaf_counts, level, randomness)))
    words = np.zeros(0, dtype=np.int64) if moments is None else moments(survey, leaf_counts)
    return Answer((_report(survey, leaf_counts, level, words, randomness),))


def _report(
    survey: Survey,
    leaf_counts: IntArray,
    level: int | None,
    moments: IntArray,
    randomness: Randomness,
) -> Report:
    hierarchy = survey.hierarchy
    levels = range(hierarchy.levels) if level is None else range(level, level + 1)
    shares = []
    for i in levels:
        mechanism = survey.mechanisms[i]
        if isinstance(mechanism, SharingMechanism):
            counts = hierarchy.at_level(leaf_counts, i)
            shares.append(mechanism.share(counts, randomness=randomness).ravel())
    counters = np.concatenate(shares)
    if np.abs(counters).max() >= 2**31:
        # Counts were checked with more noise than this: once in 2^40 answers.
        raise SurveyRefused(
            "a report's counters must stay below 2^31; noise pushed one beyond. Split the table."
        )
    report_id = randomness.bytes(REPORT_ID_BYTES)
    return Report(survey.fingerprint, report_id, counters, level, moments)
