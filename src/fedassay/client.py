"""The client: checks a survey against its own policy, then answers it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from fedassay.checks import require_fraction, require_type, require_whole
from fedassay.cut_levels import CutLevels
from fedassay.errors import SettingInvalid, SurveyRefused
from fedassay.examples import Examples, IntArray
from fedassay.level_draw import choose_level, hashed_level, levels_of_reports, rows_in_turn
from fedassay.level_policy import OneLevel
from fedassay.limits import check_bytes, check_counters, check_draws
from fedassay.mechanisms import LocalMechanism, Privacy, SharingMechanism, UnitKind
from fedassay.mechanisms.sampling import Dice
from fedassay.randomness import Randomness
from fedassay.report_ids import REPORT_ID_BYTES
from fedassay.survey import Survey
from fedassay.wire import (
    MAX_BLOCK_BYTES,
    Block,
    Message,
    Report,
    encode,
    row_bytes,
)

CEILING = Fraction(10)
"""No client answers a survey that spends more, whatever its policy says; e^10 is 22,026 to 1."""


def default_epsilon(privacy: Privacy) -> Fraction:
    """The most that a client spends on one survey unless it was told otherwise."""
    match privacy:
        case Privacy.SECURE | Privacy.DISTRIBUTED | Privacy.SITE:
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
        case Privacy.LOCAL:
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
    exact_sums: bool = False
    """Whether sums without noise may be revealed."""
    model_digests: frozenset[str] = field(default_factory=frozenset)
    """Digests of the models this client will assess; empty accepts any."""

    def __post_init__(self) -> None:
        require_whole(self.smallest_cohort, "smallest_cohort", 1)
        require_whole(self.colluders, "colluders", 0)
        require_type(self.exact_sums, bool, "exact_sums", "Pass True or False.")
        if self.largest_epsilon is not None:
            require_fraction(self.largest_epsilon, "largest_epsilon")
        if self.largest_epsilon is not None and not 0 < self.largest_epsilon <= CEILING:
            raise SettingInvalid(
                f"a client's largest epsilon must be above 0 and at most {CEILING}, the most that "
                f"any client answers; found {float(self.largest_epsilon):g}. Common choices lie "
                "between 0.1 and 5."
            )
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
        if survey.grid.cells > most:
            raise SurveyRefused(
                f"this client answers {survey.privacy.value} surveys of at most {most:,} cells; "
                f"this one has {survey.grid.cells:,}. Start a survey with fewer cells."
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
            return
        most = self.largest_epsilon or default_epsilon(survey.privacy)
        if epsilon > most:
            raise SurveyRefused(
                f"this client spends at most epsilon {float(most):g} on a survey; this one asks "
                f"for epsilon {float(epsilon):g}. Lower its epsilon."
            )


OPEN_POLICY = ClientPolicy(largest_epsilon=CEILING, exact_sums=True)
"""All that any client may answer: for simulations and tests, where nobody's rows are at stake."""


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
) -> Answer:
    """Answer a survey with all that may leave this client.

    Guarantee: that of `survey.guarantee`, provided the randomness is secret, which is
    checked. With an account it is charged after all checks and before any noise is drawn.
    Under local privacy a row, or a client where that is the unit, answers one of two surveys.

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
    counts = survey.grid.count(rows_in_turn(survey, examples, client_id))
    return answer_counts(
        survey,
        counts,
        randomness=randomness,
        policy=policy,
        client_id=client_id,
        account=account,
    )


def answer_counts(
    survey: Survey,
    leaf_counts: IntArray,
    *,
    randomness: Randomness,
    policy: ClientPolicy,
    client_id: str | None = None,
    account: Account | None = None,
) -> Answer:
    """Answer a survey from counts per label and leaf cell, for tables too large to hold.

    The counts are of rows that answer this survey; see `rows_in_turn`.
    """
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
    _check_counts(survey, leaf_counts)
    if account is not None:
        account.charge(survey)
    return make_answer(survey, leaf_counts, randomness=randomness, client_id=client_id)


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
        return Answer(tuple(_blocks(survey, leaf_counts, level, randomness)))
    return Answer((_report(survey, leaf_counts, level, randomness),))


def _report(
    survey: Survey, leaf_counts: IntArray, level: int | None, randomness: Randomness
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
    return Report(survey.fingerprint, randomness.bytes(REPORT_ID_BYTES), counters, level)


def _blocks(
    survey: Survey, leaf_counts: IntArray, given_level: int | None, randomness: Randomness
) -> Iterator[Block]:
    """One locally private report for each example, in random order.

    All are on the given level, or each on one drawn for it.
    """
    flat = leaf_counts.ravel()
    filled = flat.nonzero()[0]
    hits = filled.repeat(flat[filled])
    if len(hits) == 0:
        if not survey.allow_empty:
            raise SurveyRefused(
                "this survey is for clients that hold an example; this one has none. "
                "Do not answer, or start a survey that allows empty clients."
            )
        hits = np.array([-1])
    # Counts come sorted by cell: the order of reports must not tell.
    keys = np.frombuffer(randomness.bytes(8 * len(hits)), dtype=np.uint64)
    hits = hits[keys.argsort(kind="stable")]
    level_of = (
        levels_of_reports(survey, len(hits), randomness)
        if given_level is None
        else np.full(len(hits), given_level, dtype=np.int64)
    )
    for level in range(survey.hierarchy.levels):
        mechanism = survey.mechanisms[level]
        chosen = hits[level_of == level]
        if not isinstance(mechanism, LocalMechanism) or len(chosen) == 0:
            continue
        cell = _cells(survey, chosen, level)
        size = 2 * survey.hierarchy.cells_per_level[level]
        step = MAX_BLOCK_BYTES // row_bytes(survey, level)
        for first in range(0, len(cell), step):
            rows = mechanism.encode(cell[first : first + step], size, randomness=randomness)
            report_id = randomness.bytes(REPORT_ID_BYTES)
            yield Block(survey.fingerprint, report_id, rows, level)


def _cells(survey: Survey, hits: IntArray, level: int) -> IntArray:
    """The cell on a level (label x cell) of each hit (label x leaf), and -1 for -1."""
    leaves, cells = survey.hierarchy.leaves, survey.hierarchy.cells_per_level[level]
    if cells == leaves and not isinstance(survey.hierarchy, CutLevels):
        return hits
    label, leaf = np.divmod(hits, leaves)
    cell = np.where(
        label == 1,
        survey.hierarchy.cell_of(leaf, level, 1),
        survey.hierarchy.cell_of(leaf, level, 0),
    )
    return np.where(hits < 0, -1, label * cells + cell)


def at_most(leaf_counts: IntArray, most: int, dice: Dice) -> IntArray:
    """Keep `most` of a client's examples, chosen uniformly, where it has more."""
    flat = leaf_counts.ravel()
    total = int(flat.sum())
    if total <= most:
        return leaf_counts
    chosen: set[int] = set()
    # Floyd's sampling without replacement: uniform over subsets, one draw for each member.
    for last in range(total - most, total):
        rank = dice.below(last + 1)
        chosen.add(last if rank in chosen else rank)
    cells = np.searchsorted(np.cumsum(flat), sorted(chosen), side="right")
    return np.bincount(cells, minlength=flat.size).reshape(leaf_counts.shape)
