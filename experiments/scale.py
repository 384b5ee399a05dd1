"""What one survey costs its clients and its server, measured at sizes that take seconds.

`python -m experiments.scale_page` carries it on to a billion clients and writes `docs/scale.md`.
"""

import tempfile
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from time import process_time

import numpy as np
from benchmarks.telemetry import write_singles

from experiments.page import say
from fedassay import Exact, Examples, Grid, Hierarchy, Polya, Survey, SystemRandomness, Tally
from fedassay.client import OPEN_POLICY, Answer, answer
from fedassay.engines.bulk_tally import BulkBuilder
from fedassay.engines.report_files import collect, read_singles
from fedassay.engines.single_reports import SingleReports
from fedassay.mechanisms import AnyMechanism, Privacy, RandomizedResponse
from fedassay.mechanisms.shuffled_promise import ShuffledPromise
from fedassay.secagg import Named, SecAggClient, SecAggServer, Terms
from fedassay.secagg.layout import vector_of
from fedassay.secagg.server import Outgoing
from fedassay.shuffler import Shuffler
from fedassay.tally import TallyBuilder
from fedassay.wire import decode, encode

CELLS, _COHORT = 256, 100
_RANDOM = SystemRandomness()
_ROWS = Examples([1], [0.7])
_ANSWERS = 50
_Reply = Callable[[SecAggClient, bytes], bytes]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one size of crowd costs; seconds are the processor's."""

    client_seconds: float
    sent: float
    received: float
    server_seconds: float
    server_bytes: float


def survey_of(privacy: Privacy, minimum: int = 2) -> Survey:
    """One flat level, so that models differ in nothing else."""
    mechanism: AnyMechanism = Exact()
    mixes = privacy is Privacy.SHUFFLED
    if privacy.is_local:
        mechanism = RandomizedResponse(Fraction(4), CELLS)
    elif privacy is not Privacy.SECURE:
        mechanism = Polya(Fraction(1), 1, privacy.noise_shares(minimum))
    return Survey(
        privacy=privacy,
        grid=Grid.uniform(CELLS),
        hierarchy=Hierarchy.flat(CELLS),
        mechanisms=(mechanism,),
        minimum_reports=minimum,
        smallest_cell=0,
        # What every report promises alone, so that any crowd will do: costs depend on none of it.
        shuffled=ShuffledPromise(Fraction(4), Fraction(1, 10**8)) if mixes else None,
    )


class Clock:
    """Adds up the processor's time of some blocks."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._start = 0.0

    def __enter__(self) -> None:
        self._start = process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += process_time() - self._start


def answered(survey: Survey) -> Answer:
    """What a client with a few rows sends."""
    return answer(survey, _ROWS, randomness=_RANDOM, policy=OPEN_POLICY)


def cohort_cost(privacy: Privacy, clients: int) -> Cost:
    """A whole round of secure aggregation, none of whose clients drops out."""
    survey = survey_of(privacy, minimum=clients)
    ours, theirs, sent, received = Clock(), Clock(), 0, 0
    terms = Terms.of(survey, randomness=_RANDOM)
    server = SecAggServer(terms)
    parties: dict[str, SecAggClient] = {}
    for number in range(clients):
        name = str(number)
        with theirs:
            parties[name] = SecAggClient.start(
                terms, survey, Named(name), policy=OPEN_POLICY, randomness=_RANDOM
            )
            keys = parties[name].keys()
        sent += len(keys)
        with ours:
            server.receive_keys(name, keys)

    def masked(party: SecAggClient, message: bytes) -> bytes:
        return party.masked(message, vector_of(survey, answered(survey)))

    steps: list[tuple[Callable[[], Outgoing], _Reply, Callable[[str, bytes], None]]] = [
        (server.roster_messages, SecAggClient.shares, server.receive_shares),
        (server.inboxes, masked, server.receive_masked),
        (server.unmask_requests, SecAggClient.unmask, server.receive_unmask),
    ]
    held = 0
    for outgoing, reply, receive in steps:
        with ours:
            messages = list(outgoing())
        held = max(held, sum(len(message) for _, message in messages))
        for name, message in messages:
            with theirs:
                said = reply(parties[name], message)
            sent, received = sent + len(said), received + len(message)
            with ours:
                receive(name, said)
    with ours:
        server.outcome()
    return Cost(theirs.seconds / clients, sent / clients, received / clients, ours.seconds, held)


def local_cost(clients: int) -> Cost:
    """Reports one to a message, tallied as `fedassay tally` does."""
    survey = survey_of(Privacy.LOCAL)
    theirs, ours = Clock(), Clock()
    for _ in range(_ANSWERS):
        with theirs:
            answered(survey)
    with tempfile.TemporaryDirectory() as folder:
        inbox = Path(folder) / "inbox.fa"
        write_singles(inbox, survey, clients)
        with ours:
            bulk = BulkBuilder(Tally.zero(survey), survey)
            collect(bulk, [inbox])
            bulk.tally()
        tracemalloc.start()
        again = BulkBuilder(Tally.zero(survey), survey)
        collect(again, [inbox])
        again.tally()
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        each = inbox.stat().st_size / clients
    return Cost(theirs.seconds / _ANSWERS, each, 0.0, ours.seconds, held)


def shuffled_cost(clients: int) -> Cost:
    """The same reports, mixed into one batch first; shuffler and server together."""
    survey = survey_of(Privacy.SHUFFLED)
    theirs, ours = Clock(), Clock()
    for _ in range(_ANSWERS):
        with theirs:
            answered(survey)
    with tempfile.TemporaryDirectory() as folder:
        inbox = Path(folder) / "inbox.fa"
        write_singles(inbox, survey, clients)
        with ours:
            _mixed(inbox, survey)
        tracemalloc.start()
        _mixed(inbox, survey)
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        each = inbox.stat().st_size / clients
    return Cost(theirs.seconds / _ANSWERS, each, 0.0, ours.seconds, held)


def _mixed(inbox: Path, survey: Survey) -> Tally:
    shuffler = Shuffler(survey)
    for found in read_singles(inbox, survey):
        if isinstance(found, SingleReports):
            shuffler.add_singles(found.ids, found.level_of, found.rows)
    return Tally.of(survey, shuffler.batch())


def site_cost(clients: int) -> Cost:
    """Reports with the whole noise, added one by one; a few answers under many ids."""
    survey = survey_of(Privacy.SITE)
    theirs, ours = Clock(), Clock()
    made = []
    for _ in range(_ANSWERS):
        with theirs:
            (report,) = answered(survey).messages
        made.append(report)
    builders = [TallyBuilder(Tally.zero(survey), survey) for _ in range(2)]
    sent = [
        encode(replace(made[number % _ANSWERS], report_id=_RANDOM.bytes(16)))
        for number in range(clients)
    ]
    with ours:
        for data in sent:
            builders[0].add(decode(data, survey))
        builders[0].tally()
    tracemalloc.start()
    for data in sent:
        builders[1].add(decode(data, survey))
    builders[1].tally()
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Cost(theirs.seconds / _ANSWERS, len(sent[0]), 0.0, ours.seconds, held)


def exponent(measured: Mapping[int, float]) -> float:
    """The slope of log cost over log clients."""
    sizes, costs = np.log(list(measured)), np.log(list(measured.values()))
    return float(np.polyfit(sizes, costs, 1)[0])


def on_a_line(measured: Mapping[int, float], clients: int) -> float:
    """A fixed part and a share for each client, neither below zero."""
    slope, fixed = np.polyfit(list(measured), list(measured.values()), 1)
    return float(max(slope, 0.0) * clients + max(fixed, 0.0))


@dataclass(frozen=True, slots=True)
class Model:
    """One privacy model, measured at a few sizes."""

    name: str
    measured: Mapping[int, Cost]
    cohort: int | None = None
    """The size of its cohorts, of which there are as many as it takes."""

    def server_seconds(self, clients: int) -> float:
        """At any size, from the largest measured by the fitted exponent, or by whole cohorts."""
        last = self.measured[max(self.measured)].server_seconds
        if self.cohort is not None:
            return last * clients / self.cohort
        first = min(self.measured)
        if clients < first:
            # In proportion: what a report takes at least, at few of them too.
            return self.measured[first].server_seconds * clients / first
        # Every report is read: an exponent below one is the noise of a busy machine.
        growth = (clients / max(self.measured)) ** max(1.0, self.time_exponent)
        return float(last * growth)

    def server_bytes(self, clients: int) -> float:
        """At any size, by the fitted line; cohorts come one after the other."""
        if self.cohort is not None:
            return self.measured[self.cohort].server_bytes
        return on_a_line({n: cost.server_bytes for n, cost in self.measured.items()}, clients)

    @property
    def time_exponent(self) -> float:
        """Of the server's seconds, over the sizes measured."""
        return exponent({size: cost.server_seconds for size, cost in self.measured.items()})


def measure(*, quick: bool) -> list[Model]:
    """All models, each at sizes that take seconds."""
    cohorts = (10, 20) if quick else (25, 50, _COHORT)
    # More than one chunk, and more sites than are kept by name.
    singles = (10_000, 40_000) if quick else (1_000_000, 2_000_000, 4_000_000)
    sites = (50, 100) if quick else (2_500, 5_000, 10_000)
    models = []
    cohort_cost(Privacy.DISTRIBUTED, 4)
    local_cost(100)
    for privacy in (Privacy.SECURE, Privacy.DISTRIBUTED):
        say(privacy.value)
        costs = {size: cohort_cost(privacy, size) for size in cohorts}
        models.append(Model(privacy.value, costs, cohorts[-1]))
    say("site")
    models.append(Model("site", {size: site_cost(size) for size in sites}))
    say("local")
    models.append(Model("local", {size: local_cost(size) for size in singles}))
    say("shuffled")
    models.append(Model("shuffled", {size: shuffled_cost(size) for size in singles}))
    return models
