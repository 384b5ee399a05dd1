"""The server's side of a round: passes messages on, adds masked vectors, takes masks off.

Stages close one after the other; whoever has not answered by then has dropped out. Masked
vectors are added as they come and never kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from fedassay.errors import KeyInvalid, RoundAborted, SettingInvalid, StageRefused
from fedassay.examples import IntArray
from fedassay.secagg import merkle, messages
from fedassay.secagg.cohort import Cohort, agreed, announced
from fedassay.secagg.graph import BoolArray
from fedassay.secagg.identity import Roster, check_signature
from fedassay.secagg.keys import (
    Leaf,
    check_point,
    commit,
    mask_private,
    mask_public,
    pair_mask,
    self_mask,
)
from fedassay.secagg.masks import Masker, WordArray
from fedassay.secagg.messages import Signed
from fedassay.secagg.shamir import combine
from fedassay.secagg.terms import MAX_COHORT, Terms

Outgoing = Iterator[tuple[str, bytes]]
"""Whom to send what: client by client, so that not all need to be held at once."""


class Phase(IntEnum):
    """What the server is waiting for."""

    KEYS = 1
    SHARES = 2
    MASKED = 3
    CONFIRM = 4
    UNMASK = 5
    DONE = 6


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """All that a round reveals."""

    total: IntArray
    """The sum over the survivors, read as signed."""
    survivors: tuple[str, ...]


class SecAggServer:
    """One round; clients go by the names that the transport knows them under."""

    def __init__(self, terms: Terms, *, roster: Roster | None = None) -> None:
        if terms.roster != (None if roster is None else roster.digest):
            raise SettingInvalid("a round's terms and its roster must go together; they do not.")
        self.terms = terms
        self._roster = roster
        self._phase = Phase.KEYS
        self._announced: dict[str, Signed] = {}
        self._taken: set[bytes] = set()
        self._clients: list[str] = []
        self._rank: dict[str, int] = {}
        self._leaves: list[Leaf] = []
        self._levels: list[list[bytes]] = []
        self._cohort: Cohort | None = None
        self._sealed: dict[int, list[bytes]] = {}
        self._sharing = np.zeros(0, dtype=np.bool_)
        self._surviving = np.zeros(0, dtype=np.bool_)
        self._total = np.zeros(terms.length, dtype=np.uint32)
        self._signatures: dict[int, bytes] = {}
        self._revealed: dict[int, dict[int, int]] = {}
        self._heard: set[int] = set()

    @property
    def cohort(self) -> Cohort:
        """The fixed cohort."""
        if self._cohort is None:
            raise StageRefused("the cohort is fixed when the keys are in. Collect them first.")
        return self._cohort

    @property
    def clients(self) -> tuple[str, ...]:
        """The cohort's clients, by rank."""
        return tuple(self._clients)

    @property
    def is_pinned(self) -> bool:
        """Whether survivors have to be confirmed."""
        return self._roster is not None

    def receive_keys(self, client: str, message: bytes) -> None:
        """Stage 1: a client joins."""
        self._expect(Phase.KEYS)
        signed = messages.decode_keys(message, self.terms)
        if self._announced.get(client) == signed:
            return
        leaf = signed.leaf
        if self._roster is not None:
            self._roster.index(leaf.member)
            check_signature(leaf.member, signed.signature, announced(self.terms, leaf))
        # Otherwise every neighbour would leave the round over it.
        check_point(leaf.mask_key)
        check_point(leaf.seal_key)
        if client in self._announced or not self._taken.isdisjoint(_names(leaf)):
            raise KeyInvalid(
                "a client joins a round once, with keys of its own; found one that has joined. "
                "Start it again in the next round."
            )
        if len(self._announced) >= MAX_COHORT:
            raise KeyInvalid(f"a cohort has at most {MAX_COHORT} clients; this one is full.")
        self._announced[client] = signed
        self._taken.update(_names(leaf))

    def roster_messages(self) -> Outgoing:
        """Close stage 1; the cohort is whoever announced keys."""
        self._expect(Phase.KEYS)
        count = len(self._announced)
        self._require(count, self.terms.minimum, "announced keys")
        order = sorted(self._announced, key=self._place)
        self._clients = order
        self._rank = {client: rank for rank, client in enumerate(order)}
        self._leaves = [self._announced[client].leaf for client in order]
        self._levels = merkle.tree([leaf.to_bytes() for leaf in self._leaves])
        present = b""
        if self._roster is not None:
            bits = np.zeros(len(self._roster.keys), dtype=np.bool_)
            bits[[self._roster.index(leaf.member) for leaf in self._leaves]] = True
            present = messages.pack_bits(bits)
        self._cohort = Cohort.of(self.terms, count, self._levels[-1][0], present)
        self._phase = Phase.SHARES
        self._sharing = np.zeros(count, dtype=np.bool_)
        self._surviving = np.zeros(count, dtype=np.bool_)
        return ((client, self.roster_message(client)) for client in order)

    def roster_message(self, client: str) -> bytes:
        """What `roster_messages` has for one client."""
        rank, cohort = self._sender(client, Phase.SHARES), self.cohort
        ranks = cohort.neighbours(rank)
        roster = messages.RosterMessage(
            cohort.clients,
            rank,
            cohort.root,
            cohort.present,
            tuple(self._announced[self._clients[peer]] for peer in ranks),
            tuple(merkle.prove(self._levels, [rank, *ranks])),
        )
        return messages.encode_roster(self.terms, roster)

    def receive_shares(self, client: str, message: bytes) -> None:
        """Stage 2: a client's sealed shares, to be passed on."""
        rank = self._sender(client, Phase.SHARES)
        if self._sharing[rank]:
            raise _twice(client)
        sealed = messages.decode_shares(message, self.terms, self.cohort.graph.degree)
        self._sealed[rank] = sealed
        self._sharing[rank] = True

    def inboxes(self) -> Outgoing:
        """Close stage 2; only who shared goes on."""
        self._expect(Phase.SHARES)
        self._require(int(self._sharing.sum()), self._needed, "sent shares")
        self._phase = Phase.MASKED
        cohort, sealed = self.cohort, self._sealed
        slot = {
            rank: {peer: place for place, peer in enumerate(cohort.neighbours(rank))}
            for rank in sealed
        }

        def message(rank: int) -> bytes:
            return messages.encode_inbox(
                self.terms,
                [
                    sealed[peer][slot[peer][rank]] if peer in sealed else None
                    for peer in cohort.neighbours(rank)
                ],
            )

        return ((self._clients[rank], message(rank)) for rank in sorted(sealed))

    def receive_masked(self, client: str, message: bytes) -> None:
        """Stage 3: add a masked vector."""
        rank = self._sender(client, Phase.MASKED)
        if not self._sharing[rank]:
            raise StageRefused(f"client {client[:40]!r} sent no shares, so it cannot be unmasked.")
        if self._surviving[rank]:
            raise _twice(client)
        words = messages.decode_masked(message, self.terms)
        np.add(self._total, words, out=self._total)
        self._surviving[rank] = True

    def survivor_messages(self) -> Outgoing:
        """Close stage 3 where identities are pinned; survivors confirm who they are."""
        self._expect(Phase.MASKED)
        if not self.is_pinned:
            raise StageRefused("nobody can confirm where no identity is pinned. Go on to unmask.")
        self._close_masked()
        self._phase = Phase.CONFIRM
        message = messages.encode_survivors(self.terms, self._surviving)
        return ((self._clients[rank], message) for rank in np.flatnonzero(self._surviving))

    def receive_confirm(self, client: str, message: bytes) -> None:
        """A survivor's signature."""
        rank = self._sender(client, Phase.CONFIRM)
        if not self._surviving[rank]:
            raise StageRefused(f"client {client[:40]!r} is not among the survivors.")
        signature = messages.decode_confirm(message, self.terms)
        content = agreed(self.cohort, messages.pack_bits(self._surviving))
        check_signature(self._leaves[rank].member, signature, content)
        self._signatures[rank] = signature

    def unmask_requests(self) -> Outgoing:
        """Close stage 3, or the confirmation; ask every survivor for one share of each."""
        self._expect(Phase.CONFIRM if self.is_pinned else Phase.MASKED)
        vouching, signatures = self._surviving, list[bytes | None]()
        if self.is_pinned:
            self._require(len(self._signatures), self.cohort.graph.quorum, "confirmed")
            vouching = self._vouching()
            signatures = [
                self._signatures[rank] if is_signer else None
                for rank, is_signer in enumerate(vouching)
            ]
        else:
            self._close_masked()
        if not self.cohort.graph.holds_together(self.cohort.ring, vouching):
            raise RoundAborted(
                "so many neighbours in a row dropped out that clients would refuse to unmask. "
                "Nothing was revealed; start a new round."
            )
        self._phase = Phase.UNMASK
        message = messages.encode_unmask(self.terms, self._surviving, signatures)
        return ((self._clients[rank], message) for rank in np.flatnonzero(self._surviving))

    def receive_unmask(self, client: str, message: bytes) -> None:
        """Stage 4: a survivor's shares."""
        rank = self._sender(client, Phase.UNMASK)
        if not self._surviving[rank]:
            raise StageRefused(f"client {client[:40]!r} is not among the survivors.")
        if rank in self._heard:
            raise _twice(client)
        peers = [peer for peer in self.cohort.neighbours(rank) if self._sharing[peer]]
        shares = messages.decode_reveal(message, self.terms, len(peers))
        self._heard.add(rank)
        for peer, share in zip(peers, shares, strict=True):
            self._revealed.setdefault(peer, {})[rank] = share

    def outcome(self) -> Outcome:
        """Close stage 4: take all masks off, or abort."""
        self._expect(Phase.UNMASK)
        threshold = self.cohort.graph.threshold
        sharing = np.flatnonzero(self._sharing).tolist()
        scarcest = min(len(self._revealed.get(rank, ())) for rank in sharing)
        if scarcest < threshold:
            raise RoundAborted(
                f"{threshold} neighbours of every client must answer to unmask; of one only "
                f"{scarcest} did. Nothing was revealed; start a new round."
            )
        total, masker = self._total.copy(), Masker(self.terms.length)
        for rank in sharing:
            seed = self._seed(rank)
            if self._surviving[rank]:
                self._take_self_mask(total, masker, rank, seed)
            else:
                self._take_pair_masks(total, masker, rank, seed)
        self._phase = Phase.DONE
        survivors = tuple(self._clients[rank] for rank in np.flatnonzero(self._surviving))
        return Outcome(total.view(np.int32).astype(np.int64), survivors)

    def _seed(self, rank: int) -> int:
        """A secret of a client, put together from its neighbours' shares."""
        given = self._revealed[rank]
        threshold = self.cohort.graph.threshold
        holders = [
            (slot, given[peer])
            for slot, peer in enumerate(self.cohort.neighbours(rank))
            if peer in given
        ][:threshold]
        return combine([slot for slot, _ in holders], [share for _, share in holders])

    def _take_self_mask(self, total: WordArray, masker: Masker, rank: int, seed: int) -> None:
        leaf = self._leaves[rank]
        if commit(seed, self.terms.digest) != leaf.commitment:
            raise _wrong_shares()
        masker.subtract(total, self_mask(seed, self.cohort.digest, leaf.member))

    def _take_pair_masks(self, total: WordArray, masker: Masker, rank: int, seed: int) -> None:
        """Remove what the survivors added for a client that dropped out."""
        leaf = self._leaves[rank]
        if mask_public(seed, self.terms.digest) != leaf.mask_key:
            raise _wrong_shares()
        private = mask_private(seed, self.terms.digest)
        for peer in self.cohort.neighbours(rank):
            if not self._surviving[peer]:
                continue
            key = pair_mask(private, self.cohort.digest, leaf, self._leaves[peer])
            if peer < rank:
                masker.subtract(total, key)
            else:
                masker.add(total, key)

    def _vouching(self) -> BoolArray:
        """Whose signatures to send: a quorum spread over the ring, or all where that is too few."""
        cohort = self.cohort
        confirmed = np.zeros(cohort.clients, dtype=np.bool_)
        confirmed[list(self._signatures)] = True
        on_ring = cohort.ring.order[confirmed[cohort.ring.order]]
        spread = np.zeros(cohort.clients, dtype=np.bool_)
        spread[on_ring[np.arange(cohort.graph.quorum) * len(on_ring) // cohort.graph.quorum]] = True
        return spread if cohort.graph.holds_together(cohort.ring, spread) else confirmed

    @property
    def _needed(self) -> int:
        return max(self.terms.minimum, self.cohort.graph.survivors)

    def _close_masked(self) -> None:
        self._require(int(self._surviving.sum()), self._needed, "sent a masked vector")
        self._sealed = {}

    def _require(self, found: int, needed: int, what: str) -> None:
        if found < needed:
            raise RoundAborted(
                f"{needed} clients must have {what}; {found} have. Nothing was revealed; start a "
                "new round when more are there."
            )

    def _expect(self, phase: Phase) -> None:
        if self._phase is not phase:
            raise StageRefused(
                f"the round is at its {self._phase.name.lower()} stage, not at "
                f"{phase.name.lower()}. Messages come in order."
            )

    def _sender(self, client: str, phase: Phase) -> int:
        self._expect(phase)
        if client not in self._rank:
            raise KeyInvalid(f"client {client[:40]!r} is not in the cohort. It joins the next one.")
        return self._rank[client]

    def _place(self, client: str) -> bytes | int:
        member = self._announced[client].leaf.member
        return member if self._roster is None else self._roster.index(member)


def _names(leaf: Leaf) -> tuple[bytes, bytes, bytes]:
    """What must be a client's own."""
    return leaf.member, leaf.mask_key, leaf.seal_key


def _twice(client: str) -> StageRefused:
    return StageRefused(f"client {client[:40]!r} has answered this stage. Its first answer counts.")


def _wrong_shares() -> RoundAborted:
    return RoundAborted(
        "the shares of a secret must give what its owner announced; they do not, because a client "
        "gave false ones. Nothing was revealed; start a new round."
    )
