"""Rounds of secure aggregation in one process: exact sums, or a typed abort."""

import os
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import stats

from fedassay import Exact, Grid, Hierarchy, OneLevel, Polya, Report, Survey
from fedassay.client import OPEN_POLICY, Answer, answer_counts
from fedassay.decoding import DecodeOptions, decode
from fedassay.engines.in_process import SimulatedSite, run_round, tally_of
from fedassay.errors import (
    CountOverflow,
    ReportMalformed,
    RoundAborted,
    SettingInvalid,
    TermsRefused,
)
from fedassay.examples import IntArray
from fedassay.mechanisms import Privacy
from fedassay.secagg import Named, Outcome, SecAggClient, Terms
from fedassay.secagg.layout import vector_of
from fedassay.secagg.state import Stage
from fedassay.secagg.terms import largest_count, required_survivors
from tests.secagg import RANDOM, Federation, flat, members_of
from tests.surveys import local_survey

REPORT_ID_BYTES = 16

STAGES = (Stage.KEYS, Stage.SHARES, Stage.MASKED, Stage.CONFIRMED, Stage.UNMASKED)
IS_FULL = bool(os.environ.get("FEDASSAY_VERIFY"))
RUNS, LARGEST = (1000, 200) if IS_FULL else (100, 40)


@dataclass(frozen=True)
class Plan:
    """Who leaves when: a stage for each client, 6 for those that stay."""

    leaves: IntArray
    minimum: int
    colluders: int
    is_pinned: bool

    @property
    def answering(self) -> list[int]:
        """How many clients answer each stage."""
        return [int((self.leaves > stage).sum()) for stage in STAGES]

    @property
    def can_succeed(self) -> bool:
        """By counting alone: everybody is everybody's neighbour."""
        joined, shared, masked, confirmed, unmasked = self.answering
        corrupt = max(self.colluders, joined // 20)
        if joined < max(self.minimum, corrupt + 2):
            return False
        half_of_others = (joined - 1 + corrupt) // 2 + 1
        half_of_all = (joined + corrupt) // 2 + 1
        if min(shared, masked) < max(self.minimum, half_of_all, half_of_others + 1):
            return False
        if self.is_pinned and confirmed < half_of_all:
            return False
        return unmasked - 1 >= half_of_others


def drawn(generator: np.random.Generator) -> Plan:
    clients = int(np.exp(generator.uniform(np.log(3), np.log(LARGEST + 1))))
    leaves = np.full(clients, len(STAGES) + 1)
    gone = generator.choice(clients, int(generator.integers(0, clients // 2 + 2)), replace=False)
    leaves[gone] = generator.integers(1, len(STAGES) + 1, len(gone))
    is_pinned = bool(generator.integers(2))
    if not is_pinned:
        leaves[leaves == Stage.CONFIRMED] = Stage.UNMASKED
    colluders = int(generator.integers(0, 1 + clients // 10))
    return Plan(
        leaves, int(generator.integers(colluders + 2, 4 + clients // 2)), colluders, is_pinned
    )


def carried_out(plan: Plan, generator: np.random.Generator) -> bool:
    """Run a plan; check the sum where there is one, and say whether there was."""
    survey = flat(minimum=plan.minimum, colluders=plan.colluders)
    clients = len(plan.leaves)
    limit = largest_count(clients)
    counts = generator.integers(-limit, limit + 1, (clients, survey.hierarchy.width))
    roster, members = members_of(clients, is_pinned=plan.is_pinned)
    sites = {
        str(i): SimulatedSite(
            members[i],
            counted(survey, counts[i]),
            Stage(int(plan.leaves[i])) if plan.leaves[i] <= len(STAGES) else None,
        )
        for i in range(clients)
    }
    if roster is not None and plan.minimum > clients:
        # More than are pinned: no client even begins.
        with pytest.raises(TermsRefused, match="roster has"):
            run_round(survey, sites, randomness=RANDOM, roster=roster)
        return False
    try:
        outcome = run_round(survey, sites, randomness=RANDOM, roster=roster)
    except RoundAborted:
        return False
    survivors = np.flatnonzero(plan.leaves > Stage.MASKED)
    assert sorted(map(int, outcome.survivors)) == survivors.tolist()
    expected = [len(survivors), *counts[survivors].sum(axis=0).tolist()]
    assert outcome.total.tolist() == expected
    return True


def counted(survey: Survey, counters: IntArray) -> Callable[[], Answer]:
    report = Report(survey.fingerprint, bytes(REPORT_ID_BYTES), counters)
    return lambda: Answer((report,))


def test_sums_are_exact_up_to_the_threshold_and_rounds_abort_past_it() -> None:
    generator = np.random.default_rng(20261115)
    plans = [drawn(generator) for _ in range(RUNS)]
    succeeded = [carried_out(plan, generator) for plan in plans]
    assert succeeded == [plan.can_succeed for plan in plans]
    assert RUNS // 5 < sum(succeeded) < RUNS - RUNS // 5
    # Some dropped out at every stage, also in rounds that succeeded.
    for stage in STAGES:
        assert any(
            (plan.leaves == stage).any() for plan, ok in zip(plans, succeeded, strict=True) if ok
        )


def test_noisy_reports_of_the_survivors_are_summed_exactly() -> None:
    survey = replace(
        flat(minimum=8, colluders=1),
        privacy=Privacy.DISTRIBUTED,
        mechanisms=(Polya(Fraction(1), 1, 7),),
    )
    counts = np.ones((2, 3), dtype=np.int64)
    answers = [
        answer_counts(survey, counts, randomness=RANDOM, policy=OPEN_POLICY) for _ in range(12)
    ]
    sites = {
        str(i): SimulatedSite(
            Named(str(i)), partial(answers.__getitem__, i), Stage.MASKED if i < 3 else None
        )
        for i in range(12)
    }
    tally = tally_of(survey, run_round(survey, sites, randomness=RANDOM))
    expected = sum(vector_of(survey, answer) for answer in answers[3:])
    assert isinstance(expected, np.ndarray)
    assert tally.reports == (9,)
    assert tally.counters.tolist() == expected[1:].tolist()
    assert decode(survey, tally, decode_options=DecodeOptions()).counts.shape == (2, 3)


def one_level(minimum: int, *shares: str, by_hash: bool = False) -> Survey:
    hierarchy = Hierarchy(4, (2,) * len(shares))
    return Survey(
        privacy=Privacy.SECURE,
        grid=Grid.uniform(4),
        hierarchy=hierarchy,
        mechanisms=(Exact(),) * len(shares),
        level_policy=OneLevel(tuple(map(Fraction, shares)), by_hash),
        minimum_reports=minimum,
    )


def test_clients_that_report_on_one_level_each_are_summed() -> None:
    survey = one_level(2, "1/2", "1/2")
    clients = required_survivors(survey)
    counts = np.arange(8).reshape(2, 4)
    answers = {
        str(i): answer_counts(survey, counts, randomness=RANDOM, policy=OPEN_POLICY)
        for i in range(clients)
    }
    sites = {name: SimulatedSite(Named(name), lambda n=name: answers[n]) for name in answers}  # type: ignore[misc]  # bound when made
    tally = tally_of(survey, run_round(survey, sites, randomness=RANDOM))
    assert sum(tally.reports) == clients
    assert min(tally.reports) >= 2
    first, second = tally.per_level(survey)
    assert first.tolist() == (tally.reports[0] * np.array([[1, 5], [9, 13]])).tolist()
    assert second.tolist() == (tally.reports[1] * counts).tolist()


@pytest.mark.parametrize("shares", [("1/2", "1/2"), ("1/10", "9/10"), ("1/3", "2/3")])
@pytest.mark.parametrize("minimum", [2, 20, 300])
def test_every_level_has_its_reports_but_for_one_chance_in_a_trillion(
    shares: tuple[str, str], minimum: int
) -> None:
    needed = required_survivors(one_level(minimum, *shares))
    rarest = float(min(map(Fraction, shares)))
    assert stats.binom(needed, rarest).logcdf(minimum - 1) <= -40 * np.log(2)
    assert stats.binom(needed - 1, rarest).logcdf(minimum - 1) > -40 * np.log(2)


def test_a_level_that_anybody_can_compute_is_refused() -> None:
    with pytest.raises(TermsRefused, match="public hash"):
        Terms.of(one_level(2, "1/2", "1/2", by_hash=True), randomness=RANDOM)
    with pytest.raises(TermsRefused, match="more than 65536 clients are needed"):
        Terms.of(one_level(50_000, "1/100", "99/100"), randomness=RANDOM)


def test_sums_that_could_wrap_round_are_refused_before_anything_is_sent() -> None:
    federation = Federation.of(5)
    inbox, client = federation.shares()["0"], federation.clients["0"]
    before = client.to_bytes()
    for size in (largest_count(5) + 1, -largest_count(5) - 1, 2**31, 2**40, -(2**63)):
        with pytest.raises(CountOverflow, match="value withheld") as caught:
            client.masked(inbox, np.array([1, size, 0, 0, 0, 0, 0]))
        assert str(abs(size)) not in str(caught.value)
    with pytest.raises(SettingInvalid, match="sums 7 words"):
        client.masked(inbox, np.ones(6, dtype=np.int64))
    with pytest.raises(SettingInvalid, match="words to sum are integers"):
        client.masked(inbox, np.full(7, 0.5))
    assert client.to_bytes() == before
    client.masked(inbox, np.array([1, largest_count(5), 0, 0, 0, 0, -largest_count(5)]))


@pytest.mark.parametrize("clients", [2, 3, 1000, 65_536])
def test_as_many_largest_counts_as_clients_fit(clients: int) -> None:
    assert clients * largest_count(clients) < 2**31 <= clients * (largest_count(clients) + 1)


def test_locally_private_surveys_have_nothing_to_hide() -> None:
    survey = local_survey()
    counts = np.array([[1, 0, 0, 0], [0, 0, 0, 0]])
    with pytest.raises(TermsRefused, match="protect themselves"):
        SecAggClient.start(
            Terms.of(survey, randomness=RANDOM),
            survey,
            Named("0"),
            policy=OPEN_POLICY,
            randomness=RANDOM,
        )
    answer = answer_counts(survey, counts, randomness=RANDOM, policy=OPEN_POLICY)
    with pytest.raises(SettingInvalid, match="sent as they are"):
        vector_of(survey, answer)


@pytest.mark.parametrize("total", [[3, 0, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0, -1], [-2] + [0] * 6])
def test_a_sum_that_cannot_be_is_refused(total: list[int]) -> None:
    with pytest.raises(ReportMalformed, match="false vector"):
        tally_of(flat(), Outcome(np.array(total), ("a", "b")))


def test_a_sparse_cohort_survives_a_tenth_dropping_out() -> None:
    generator = np.random.default_rng(5)
    leaves = np.full(260, 6)
    gone = generator.choice(260, 26, replace=False)
    leaves[gone] = generator.integers(2, 6, 26)
    assert carried_out(Plan(leaves, 30, 0, is_pinned=False), generator)


def test_the_server_does_not_keep_masked_vectors() -> None:
    survey = flat(50_000)
    federation = Federation.of(6, survey=survey)
    replies = {
        name: federation.clients[name].masked(message, federation.vectors[name])
        for name, message in federation.shares().items()
    }
    tracemalloc.start()
    for name, message in replies.items():
        federation.server.receive_masked(name, message)
    _, peak = tracemalloc.get_traced_memory()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    one = len(next(iter(replies.values())))
    assert held < one / 10
    assert peak < 2 * one
