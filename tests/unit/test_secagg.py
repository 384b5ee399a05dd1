"""Rounds of secure aggregation in one process: exact sums, or a typed abort."""

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedassay import (
    Grid,
    Hierarchy,
    Report,
    Survey,
    SystemRandomness,
)
from fedassay.client import Answer
from fedassay.engines.federation import Site, run_round
from fedassay.errors import (
    RoundAborted,
)
from fedassay.examples import IntArray
from fedassay.mechanisms import Exact
from fedassay.secagg import Identity, Named, Pinned, Roster
from fedassay.secagg.state import Stage
from fedassay.secagg.terms import largest_count
from fedassay.wire import REPORT_ID_BYTES

RANDOM = SystemRandomness()
STAGES = (Stage.KEYS, Stage.SHARES, Stage.MASKED, Stage.CONFIRMED, Stage.UNMASKED)
IS_FULL = bool(os.environ.get("FEDASSAY_VERIFY"))
RUNS, LARGEST = (1000, 200) if IS_FULL else (100, 48)


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
    survey = Survey(
        grid=Grid.uniform(3),
        hierarchy=Hierarchy.flat(3),
        mechanisms=(Exact(),),
        minimum_reports=plan.minimum,
        colluders=plan.colluders,
    )
    clients = len(plan.leaves)
    limit = largest_count(clients)
    counts = generator.integers(-limit, limit + 1, (clients, survey.hierarchy.width))
    roster, members = cohort(clients, is_pinned=plan.is_pinned)
    sites = {
        str(i): Site(
            members[i],
            counted(survey, counts[i]),
            Stage(int(plan.leaves[i])) if plan.leaves[i] <= len(STAGES) else None,
        )
        for i in range(clients)
    }
    try:
        outcome = run_round(survey, sites, randomness=RANDOM, roster=roster)
    except RoundAborted:
        return False
    survivors = np.flatnonzero(plan.leaves > Stage.MASKED)
    assert sorted(map(int, outcome.survivors)) == survivors.tolist()
    expected = [len(survivors), *counts[survivors].sum(axis=0).tolist()]
    assert outcome.total.tolist() == expected
    return True


IDENTITIES = [Identity.generate() for _ in range(200)]


def cohort(clients: int, *, is_pinned: bool) -> tuple[Roster | None, list[Named | Pinned]]:
    if not is_pinned:
        return None, [Named(str(i)) for i in range(clients)]
    used = IDENTITIES[:clients]
    roster = Roster.of((str(i), identity.public) for i, identity in enumerate(used))
    return roster, [Pinned(identity, roster) for identity in used]


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
