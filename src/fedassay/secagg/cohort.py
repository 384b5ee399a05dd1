"""The cohort as both sides see it: who is in, who neighbours whom, under which digest."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedassay.errors import KeyInvalid, MessageMalformed
from fedassay.secagg.graph import Graph, Ring
from fedassay.secagg.identity import Named, Pinned, check_signature
from fedassay.secagg.keys import Leaf
from fedassay.secagg.merkle import root_from
from fedassay.secagg.messages import RosterMessage, unpack_bits
from fedassay.secagg.terms import Terms


@dataclass(frozen=True, slots=True, eq=False)
class Cohort:
    """A fixed set of clients, known by their rank."""

    clients: int
    root: bytes
    present: bytes
    graph: Graph
    ring: Ring
    digest: bytes
    """What masks, seals and the survivors' signatures are bound to."""

    @classmethod
    def of(cls, terms: Terms, clients: int, root: bytes, present: bytes) -> "Cohort":
        """The cohort under a root; its hash decides the ring."""
        digest = hashlib.sha256(
            b"fedassay secagg cohort"
            + terms.digest
            + clients.to_bytes(4, "little")
            + root
            + hashlib.sha256(present).digest()
        ).digest()
        ring = Ring.of(clients, digest)
        return cls(clients, root, present, terms.graph(clients), ring, digest)

    def neighbours(self, rank: int) -> list[int]:
        """The ranks of a client's neighbours, in the order of every list about them."""
        return self.ring.neighbours(rank, self.graph.degree)

    def members(self, member: Pinned) -> list[bytes]:
        """The pinned identity at every rank."""
        bits = unpack_bits(self.present, len(member.roster.keys))
        return [key for key, is_in in zip(member.roster.keys, bits, strict=True) if is_in]


def check_roster(
    terms: Terms, own: Leaf, roster: RosterMessage, member: Named | Pinned
) -> tuple[Cohort, tuple[Leaf, ...]]:
    """The cohort and this client's neighbours in it, if everything in the message is true."""
    cohort = Cohort.of(terms, roster.clients, roster.root, roster.present)
    ranks = cohort.neighbours(roster.rank)
    leaves = tuple(peer.leaf for peer in roster.peers)
    _check_distinct(own, leaves)
    if isinstance(member, Pinned):
        _check_pinned(terms, cohort, roster, member)
    known: Mapping[int, bytes] = {
        roster.rank: own.to_bytes(),
        **{rank: leaf.to_bytes() for rank, leaf in zip(ranks, leaves, strict=True)},
    }
    if root_from(known, roster.clients, roster.proof) != roster.root:
        raise KeyInvalid(
            "the roster must hold this client's keys and those of the neighbours that the "
            "cohort's hash decides; it does not. Keys were altered or neighbours chosen; start a "
            "new round."
        )
    return cohort, leaves


def _check_distinct(own: Leaf, peers: Sequence[Leaf]) -> None:
    everyone = (own, *peers)
    for values in (
        {leaf.member for leaf in everyone},
        {leaf.mask_key for leaf in everyone},
        {leaf.seal_key for leaf in everyone},
    ):
        if len(values) != len(everyone):
            raise KeyInvalid(
                "ids and keys stand once in a cohort; found one that is repeated. "
                "Start a new round without the repeated client."
            )


def _check_pinned(terms: Terms, cohort: Cohort, roster: RosterMessage, member: Pinned) -> None:
    index = member.roster.index(member.member)
    bits = unpack_bits(roster.present, len(member.roster.keys))
    if int(bits.sum()) != roster.clients or not bits[index]:
        raise MessageMalformed(
            "a roster message must count the pinned identities that take part, this client among "
            "them; it does not. Ask the server to send it again."
        )
    if int(bits[:index].sum()) != roster.rank:
        raise MessageMalformed("a client's rank must follow from the roster; it does not.")
    members = cohort.members(member)
    for rank, peer in zip(cohort.neighbours(roster.rank), roster.peers, strict=True):
        if peer.leaf.member != members[rank]:
            raise KeyInvalid(
                "a neighbour must be the pinned identity at its rank; found another. "
                "The server altered the cohort; start a new round."
            )
        check_signature(members[rank], peer.signature, announced(terms, peer.leaf))


def announced(terms: Terms, leaf: Leaf) -> bytes:
    """What a pinned client signs with its keys."""
    return b"fedassay secagg 1 keys\x00" + terms.digest + leaf.to_bytes()


def agreed(cohort: Cohort, survivors: bytes) -> bytes:
    """What a pinned client signs to confirm the survivors."""
    return b"fedassay secagg 1 survivors\x00" + cohort.digest + survivors
