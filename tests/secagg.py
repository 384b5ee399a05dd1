"""A small federation that tests drive stage by stage, honestly or not."""

from dataclasses import dataclass, field

import numpy as np

from fedassay import Exact, Grid, Hierarchy, Survey, SystemRandomness
from fedassay.client import OPEN_POLICY
from fedassay.examples import IntArray
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
)
from fedassay.secagg.terms import words

RANDOM = SystemRandomness()
IDENTITIES = tuple(Identity.generate() for _ in range(200))


def flat(cells: int = 3, *, minimum: int = 2, colluders: int = 0) -> Survey:
    return Survey(
        privacy=Privacy.SECURE,
        grid=Grid.uniform(cells),
        hierarchy=Hierarchy.flat(cells),
        mechanisms=(Exact(),),
        minimum_reports=minimum,
        colluders=colluders,
    )


def members_of(clients: int, *, is_pinned: bool) -> tuple[Roster | None, list[Named | Pinned]]:
    if not is_pinned:
        return None, [Named(str(i)) for i in range(clients)]
    used = IDENTITIES[:clients]
    roster = Roster.of((str(i), identity.public) for i, identity in enumerate(used))
    return roster, [Pinned(identity, roster) for identity in used]


@dataclass
class Federation:
    """Clients named "0", "1", ..., a server, and what they have said so far."""

    survey: Survey
    terms: Terms
    server: SecAggServer
    clients: dict[str, SecAggClient]
    vectors: dict[str, IntArray]
    said: dict[str, dict[str, bytes]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        clients: int,
        *,
        survey: Survey | None = None,
        is_pinned: bool = False,
        kind: type[SecAggClient] = SecAggClient,
    ) -> "Federation":
        chosen = flat() if survey is None else survey
        roster, members = members_of(clients, is_pinned=is_pinned)
        digest = None if roster is None else roster.digest
        terms = Terms.of(chosen, randomness=RANDOM, roster=digest)
        parties = {
            str(i): kind.start(terms, chosen, member, policy=OPEN_POLICY, randomness=RANDOM)
            for i, member in enumerate(members)
        }
        generator = np.random.default_rng(7)
        vectors = {
            name: np.concatenate([[1], generator.integers(0, 1000, words(chosen) - 1)])
            for name in parties
        }
        return cls(chosen, terms, SecAggServer(terms, roster=roster), parties, vectors)

    def keys(self) -> dict[str, bytes]:
        """Everybody announces keys; returns the rosters."""
        for name, client in self.clients.items():
            self.server.receive_keys(name, client.keys())
        return self.record("roster", dict(self.server.roster_messages()))

    def shares(self) -> dict[str, bytes]:
        """Everybody shares; returns the inboxes."""
        for name, message in self.keys().items():
            reply = self.clients[name].shares(message)
            self.said.setdefault("shares", {})[name] = reply
            self.server.receive_shares(name, reply)
        return self.record("inbox", dict(self.server.inboxes()))

    def masked(self) -> dict[str, bytes]:
        """Everybody sends a masked vector; returns those."""
        replies = {}
        for name, message in self.shares().items():
            replies[name] = self.clients[name].masked(message, self.vectors[name])
            self.server.receive_masked(name, replies[name])
        return self.record("masked", replies)

    def survivors(self) -> dict[str, bytes]:
        """Up to the survivor sets to confirm."""
        self.masked()
        return self.record("survivors", dict(self.server.survivor_messages()))

    def requests(self) -> dict[str, bytes]:
        """Up to the requests to unmask."""
        if self.server.is_pinned:
            for name, message in self.survivors().items():
                self.server.receive_confirm(name, self.clients[name].confirm(message))
        else:
            self.masked()
        return self.record("unmask", dict(self.server.unmask_requests()))

    def rank(self, name: str) -> int:
        """Where the server seats a client."""
        return list(self.said["roster"]).index(name)

    def views(self, victim: str) -> tuple[bytes, bytes]:
        """Requests to unmask that list a client as active, and as dropped."""
        active = np.ones(len(self.clients), dtype=np.bool_)
        dropped = active.copy()
        dropped[self.rank(victim)] = False
        first, second = (messages.encode_unmask(self.terms, view) for view in (active, dropped))
        return first, second

    def total(self) -> list[int]:
        """The true sum over all clients."""
        return [int(x) for x in np.sum(list(self.vectors.values()), axis=0)]

    def record(self, what: str, sent: dict[str, bytes]) -> dict[str, bytes]:
        """Remember what went over the network."""
        self.said[what] = sent
        return sent
