"""Secure aggregation: what a client pays in time and bytes, and what the server pays."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import process_time

import numpy as np
from flwr.common.secure_aggregation.crypto import shamir as theirs

from benchmarks.page import Aim, Section
from benchmarks.timing import race, shown, three_digits
from fedassay import Exact, Grid, Hierarchy, Survey, SystemRandomness
from fedassay.client import OPEN_POLICY
from fedassay.mechanisms import Privacy
from fedassay.secagg import (
    Identity,
    Named,
    Pinned,
    Roster,
    SecAggClient,
    SecAggServer,
    Terms,
    messages,
    shamir,
)
from fedassay.secagg.cohort import agreed
from fedassay.secagg.shamir import combine, draw_element, split

_CELLS = 4096
_CLIENTS = (100, 1_000, 10_000)
_WANTED_SECONDS = 0.25
_WANTED_EXPANSION = 2.0
_HOLDERS, _THRESHOLD = 100, 67
_WANTED_RATIO = 50.0
_RANDOM = SystemRandomness()
_ONE = "0"


@dataclass(frozen=True, slots=True)
class Cost:
    """One client's round."""

    seconds: float
    sent: int
    received: int
    masked: int
    degree: int


def measure(*, quick: bool) -> Section:
    """Time one client in cohorts of several sizes, a server, and Shamir's scheme."""
    sizes = _CLIENTS[:1] if quick else _CLIENTS
    plain = 4 * 2 * _CELLS
    costs = {(n, pinned): _client(n, is_pinned=pinned) for n in sizes for pinned in (False, True)}
    rows = [
        (
            f"one client of {n:,}, {'pinned' if pinned else 'named'}, {cost.degree} neighbours",
            shown(cost.seconds),
            f"{cost.sent / 1e3:,.1f}",
            f"{cost.received / 1e3:,.1f}",
            f"{three_digits(cost.masked / plain)} ×",
        )
        for (n, pinned), cost in costs.items()
    ]
    served = 100 if quick else 1_000
    adding, unmasking, dropped = _server(served)
    rows += [
        (f"server: add {served - dropped:,} masked vectors", shown(adding), "", "", ""),
        (
            f"server: unmask {served:,} clients, {dropped} of whom dropped out",
            shown(unmasking), "", "", "",
        ),
    ]  # fmt: skip
    tasks = _shamir()
    seconds = race(2 if quick else 5, tasks)
    rows += [(f"{name}, one secret", shown(taken), "", "", "") for name, taken in seconds.items()]
    pair = {
        who: sum(t for n, t in seconds.items() if n.startswith(who)) for who in ("fedassay", "flwr")
    }
    ratio = pair["flwr"] / pair["fedassay"]
    largest = sizes[min(1, len(sizes) - 1)]
    slowest = max(costs[largest, pinned].seconds for pinned in (False, True))
    widest = max(cost.masked / plain for cost in costs.values())
    return Section(
        title="Secure aggregation",
        about=f"Vectors of 2 × {_CELLS:,} counters, which are {plain / 1e3:,.1f} kB as they are. "
        "A client's time is the processor's, for all of its stages, median of three; bytes are of "
        "all its messages. The server's is one round with one client in twenty dropping out before "
        f"its masked vector. Shamir's scheme is for {_HOLDERS} holders of whom {_THRESHOLD} give a "
        "32-byte secret back, median of several; ours remembers the coefficients of holders.",
        header=("what", "time", "kB sent", "kB received", "masked vector against plain"),
        rows=rows,
        aims=[
            Aim(
                f"a client of {largest:,} under {_WANTED_SECONDS} s; measured {shown(slowest)}",
                slowest < _WANTED_SECONDS,
            ),
            Aim(
                f"a masked vector under {_WANTED_EXPANSION:.0f} times the plain one, handshakes "
                f"apart; measured {three_digits(widest)} times",
                widest < _WANTED_EXPANSION,
            ),
            Aim(
                f"Shamir's split and combine {_WANTED_RATIO:.0f} times faster than flwr's; "
                f"measured {three_digits(ratio)} times",
                ratio >= _WANTED_RATIO,
            ),
        ],
    )


class _Cohort:
    """Clients that have announced keys, and their server."""

    def __init__(self, clients: int, *, is_pinned: bool) -> None:
        self.survey = Survey(
            privacy=Privacy.SECURE,
            grid=Grid.uniform(_CELLS),
            hierarchy=Hierarchy.flat(_CELLS),
            mechanisms=(Exact(),),
            minimum_reports=clients // 2,
        )
        self.identities = [Identity.generate() for _ in range(clients if is_pinned else 0)]
        roster = None
        self.members: list[Named | Pinned] = [Named(str(i)) for i in range(clients)]
        if is_pinned:
            roster = Roster.of((str(i), key.public) for i, key in enumerate(self.identities))
            self.members = [Pinned(identity, roster) for identity in self.identities]
        digest = None if roster is None else roster.digest
        self.terms = Terms.of(self.survey, randomness=_RANDOM, roster=digest)
        self.server = SecAggServer(self.terms, roster=roster)
        self.clients = {
            str(i): SecAggClient.start(
                self.terms, self.survey, member, policy=OPEN_POLICY, randomness=_RANDOM
            )
            for i, member in enumerate(self.members)
        }
        for name, client in self.clients.items():
            self.server.receive_keys(name, client.keys())
        self.rosters = self.server.roster_messages()


def _client(clients: int, *, is_pinned: bool) -> Cost:
    """One client's round; of the others only what it hears from them is made."""
    cohort = _Cohort(clients, is_pinned=is_pinned)
    server, terms = cohort.server, cohort.terms
    fixed, client = server.cohort, cohort.clients[_ONE]
    rank = server.clients.index(_ONE)
    boxes: list[bytes | None] = []
    for peer in fixed.neighbours(rank):
        name = server.clients[peer]
        sealed = cohort.clients[name].shares(server.roster_message(name))
        slot = fixed.neighbours(peer).index(rank)
        boxes.append(messages.decode_shares(sealed, terms, fixed.graph.degree)[slot])
    survivors = np.ones(clients, dtype=np.bool_)
    signatures: list[bytes | None] = []
    if is_pinned:
        # As the server does it: a quorum, spread over the ring.
        content, signatures = agreed(fixed, messages.pack_bits(survivors)), [None] * clients
        for i in range(fixed.graph.quorum):
            signer = int(fixed.ring.order[i * clients // fixed.graph.quorum])
            name = server.clients[signer]
            signatures[signer] = cohort.identities[int(name)].sign(content)
    vector = np.random.default_rng(1).integers(0, 100, terms.length)
    asked = {
        "shares": server.roster_message(_ONE),
        "masked": messages.encode_inbox(terms, boxes),
        "confirm": messages.encode_survivors(terms, survivors) if is_pinned else b"",
        "unmask": messages.encode_unmask(terms, survivors, signatures),
    }
    state, seconds = client.to_bytes(), list[float]()
    for _ in range(3):
        one = SecAggClient.from_bytes(state, cohort.members[0], randomness=_RANDOM)
        start = process_time()
        replies = [one.keys(), one.shares(asked["shares"]), one.masked(asked["masked"], vector)]
        if is_pinned:
            replies.append(one.confirm(asked["confirm"]))
        replies.append(one.unmask(asked["unmask"]))
        seconds.append(process_time() - start)
    return Cost(
        median(seconds),
        sum(map(len, replies)),
        len(terms.to_bytes()) + sum(map(len, asked.values())),
        len(replies[2]),
        fixed.graph.degree,
    )


def _server(clients: int) -> tuple[float, float, int]:
    """Seconds to add and to unmask, and how many dropped out before their vector."""
    cohort = _Cohort(clients, is_pinned=False)
    server = cohort.server
    vector = np.random.default_rng(1).integers(0, 100, cohort.terms.length)
    for name, message in cohort.rosters:
        server.receive_shares(name, cohort.clients[name].shares(message))
    dropped = {str(i) for i in range(0, clients, 20)}
    masked = {
        name: cohort.clients[name].masked(message, vector)
        for name, message in server.inboxes()
        if name not in dropped
    }
    start = process_time()
    for name, message in masked.items():
        server.receive_masked(name, message)
    adding = process_time() - start
    for name, message in server.unmask_requests():
        server.receive_unmask(name, cohort.clients[name].unmask(message))
    start = process_time()
    total = server.outcome().total
    unmasking = process_time() - start
    assert total.tolist() == (vector * (clients - len(dropped))).tolist()
    return adding, unmasking, len(dropped)


def _shamir() -> dict[str, Callable[[], object]]:
    secret = draw_element(_RANDOM)
    ours = split(secret, _HOLDERS, _THRESHOLD, randomness=_RANDOM)
    slots = list(range(_THRESHOLD))
    data = secret.to_bytes(32, "little")
    given = theirs.create_shares(data, _THRESHOLD, _HOLDERS)[:_THRESHOLD]
    assert combine(slots, ours[:_THRESHOLD]) == secret
    assert theirs.combine_shares(given)[:32] == data

    def cold() -> int:
        shamir._weights.cache_clear()
        return combine(slots, ours[:_THRESHOLD])

    return {
        "fedassay: split": lambda: split(secret, _HOLDERS, _THRESHOLD, randomness=_RANDOM),
        "fedassay: combine": cold,
        "the same, holders seen before": lambda: combine(slots, ours[:_THRESHOLD]),
        "flwr: split": lambda: theirs.create_shares(data, _THRESHOLD, _HOLDERS),
        "flwr: combine": lambda: theirs.combine_shares(given),
    }
