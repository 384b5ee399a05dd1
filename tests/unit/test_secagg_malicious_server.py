"""Scripts of a hostile server: the client refuses, and no input is recovered.

Where a script has a planted twin, the same script recovers the input from clients without the
check that it is about, so that the script is known to be able to.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from fedassay import Survey
from fedassay.client import OPEN_POLICY
from fedassay.errors import (
    RoundAborted,
    SignatureInvalid,
    StageRefused,
    StateStale,
    TermsRefused,
)
from fedassay.secagg import (
    Named,
    RoundStore,
    SecAggClient,
    SecAggServer,
    Terms,
    graph,
    merkle,
    messages,
)
from fedassay.secagg import cohort as cohort_module
from fedassay.secagg.cohort import Cohort
from fedassay.secagg.keys import (
    Leaf,
    Secrets,
    agree,
    mask_private,
    pair_mask,
    seal,
    self_mask,
    unseal,
)
from fedassay.secagg.masks import Masker
from fedassay.secagg.shamir import combine
from tests.secagg import RANDOM, Federation, flat

VICTIM = "0"


def recovered(federation: Federation, self_seed: int, mask_seed: int, masked: bytes) -> list[int]:
    """The victim's vector, from its masked one and both of its secrets."""
    cohort, rank = federation.server.cohort, federation.rank(VICTIM)
    leaves = [messages.decode_keys(m, federation.terms).leaf for m in all_keys(federation)]
    own = leaves[rank]
    total, masker = (
        messages.decode_masked(masked, federation.terms).copy(),
        Masker(federation.terms.length),
    )
    masker.subtract(total, self_mask(self_seed, cohort.digest, own.member))
    private = mask_private(mask_seed, federation.terms.digest)
    for peer in cohort.neighbours(rank):
        key = pair_mask(private, cohort.digest, own, leaves[peer])
        (masker.subtract if rank < peer else masker.add)(total, key)
    return [int(x) for x in total.view(np.int32)]


def all_keys(federation: Federation) -> list[bytes]:
    return [federation.clients[name].keys() for name in federation.said["roster"]]


def shares_of_victim(
    federation: Federation, replies: dict[str, bytes]
) -> tuple[list[int], list[int]]:
    """Slots and shares of the victim's secret in the replies to a request."""
    cohort, rank = federation.server.cohort, federation.rank(VICTIM)
    slots, shares = [], []
    for slot, peer in enumerate(cohort.neighbours(rank)):
        name = list(federation.said["roster"])[peer]
        if name in replies:
            near = cohort.neighbours(peer)
            given = messages.decode_reveal(replies[name], federation.terms, len(near))
            slots.append(slot)
            shares.append(given[near.index(rank)])
    return slots, shares


class Forgetful(SecAggClient):
    """Planted: answers every request to unmask as if it were the first."""

    def unmask(self, request: bytes) -> bytes:
        kept = self._state
        reply = super().unmask(request)
        self._state = kept
        return reply


def ask_for_both(kind: type[SecAggClient]) -> tuple[Federation, list[int]]:
    federation = Federation.of(5, kind=kind)
    masked = federation.masked()[VICTIM]
    peers = [name for name in federation.clients if name != VICTIM]
    active, dropped = federation.views(VICTIM)
    self_seed = combine(
        *shares_of_victim(federation, {n: federation.clients[n].unmask(active) for n in peers})
    )
    mask_seed = combine(
        *shares_of_victim(federation, {n: federation.clients[n].unmask(dropped) for n in peers})
    )
    return federation, recovered(federation, self_seed, mask_seed, masked)


def test_a_client_that_is_active_and_dropped_is_refused() -> None:
    with pytest.raises(StageRefused, match="answered once"):
        ask_for_both(SecAggClient)


def test_planted_forgetful_clients_give_the_input_away() -> None:
    federation, found = ask_for_both(Forgetful)
    assert found == federation.vectors[VICTIM].tolist()


def show_two_views() -> tuple[Federation, list[int]]:
    """Half of the neighbours hear that the victim is active, half that it dropped out."""
    federation = Federation.of(5)
    masked = federation.masked()[VICTIM]
    peers = [name for name in federation.clients if name != VICTIM]
    active, dropped = federation.views(VICTIM)
    threshold = federation.server.cohort.graph.threshold
    seeds = []
    for request, asked in ((active, peers[:2]), (dropped, peers[2:])):
        replies = {name: federation.clients[name].unmask(request) for name in asked}
        slots, shares = shares_of_victim(federation, replies)
        if len(slots) < threshold:
            raise RoundAborted("not enough shares for one of the views")
        seeds.append(combine(slots, shares))
    self_seed, mask_seed = seeds
    return federation, recovered(federation, self_seed, mask_seed, masked)


def test_two_survivor_views_do_not_give_both_secrets() -> None:
    with pytest.raises(RoundAborted):
        show_two_views()


def test_planted_threshold_of_half_lets_two_views_recover_the_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graph, "_above_half", lambda degree, corrupt: degree // 2)
    graph.Graph.of.cache_clear()
    try:
        federation, found = show_two_views()
    finally:
        graph.Graph.of.cache_clear()
    assert found == federation.vectors[VICTIM].tolist()


class ManInTheMiddle:
    """A server that gives the victim keys of its own in place of everybody else's."""

    def __init__(self, federation: Federation) -> None:
        self.federation = federation
        self.victim = federation.clients[VICTIM]
        self.terms = federation.terms

    def attack(self) -> list[int]:
        federation, terms = self.federation, self.terms
        keys = {n: messages.decode_keys(c.keys(), terms) for n, c in federation.clients.items()}
        secrets = {name: Secrets.draw(RANDOM) for name in keys if name != VICTIM}
        false = {
            name: replace(signed, leaf=secrets[name].leaf(signed.leaf.member, terms.digest))
            if name in secrets
            else signed
            for name, signed in keys.items()
        }
        # Everything else as an honest server does it.
        server = federation.server
        order = sorted(false, key=lambda n: order_of(server, false[n].leaf.member))
        levels = merkle.tree([false[name].leaf.to_bytes() for name in order])
        present = b"" if not server.is_pinned else messages.pack_bits([True] * len(order))
        cohort = Cohort.of(terms, len(order), levels[-1][0], present)
        rank = order.index(VICTIM)
        near = [order[i] for i in cohort.neighbours(rank)]
        roster = messages.RosterMessage(
            len(order), rank, cohort.root, present, tuple(false[n] for n in near), ()
        )
        sealed = messages.decode_shares(
            self.victim.shares(messages.encode_roster(terms, roster)), terms, len(near)
        )
        own, opened = keys[VICTIM].leaf, []
        boxes: list[bytes | None] = []
        for name, box in zip(near, sealed, strict=True):
            private = X25519PrivateKey.from_private_bytes(secrets[name].seal_private)
            agreed = agree(private, own.seal_key)
            opened.append(unseal(agreed, cohort.digest, own, false[name].leaf, sealed=box))
            boxes.append(sealed_nothing(agreed, cohort, false[name].leaf, own))
        masked = self.victim.masked(messages.encode_inbox(terms, boxes), federation.vectors[VICTIM])
        slots = list(range(cohort.graph.threshold))
        self_seed = combine(slots, [int.from_bytes(opened[i][32:], "little") for i in slots])
        total = messages.decode_masked(masked, terms).copy()
        masker = Masker(terms.length)
        masker.subtract(total, self_mask(self_seed, cohort.digest, own.member))
        for peer, name in zip(cohort.neighbours(rank), near, strict=True):
            private = mask_private(secrets[name].mask_seed, terms.digest)
            key = pair_mask(private, cohort.digest, false[name].leaf, own)
            (masker.subtract if rank < peer else masker.add)(total, key)
        return [int(x) for x in total.view(np.int32)]


def order_of(server: SecAggServer, member: bytes) -> bytes:
    if server._roster is None:
        return member
    return server._roster.index(member).to_bytes(4, "big")


def sealed_nothing(agreed: bytes, cohort: Cohort, sender: Leaf, receiver: Leaf) -> bytes:
    return seal(agreed, cohort.digest, sender, receiver, shares=bytes(64))


def test_substituted_keys_are_refused_where_identities_are_pinned() -> None:
    with pytest.raises(SignatureInvalid):
        ManInTheMiddle(Federation.of(4, is_pinned=True)).attack()


def test_planted_unchecked_signatures_let_substituted_keys_see_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cohort_module, "check_signature", lambda *_: None)
    federation = Federation.of(4, is_pinned=True)
    assert ManInTheMiddle(federation).attack() == federation.vectors[VICTIM].tolist()


def test_without_pinned_identities_a_server_that_swaps_keys_sees_everything() -> None:
    # Not a bug: the threat model says that such a server must be trusted to pass keys on.
    federation = Federation.of(4)
    assert ManInTheMiddle(federation).attack() == federation.vectors[VICTIM].tolist()


def test_a_round_from_an_older_copy_is_refused_by_the_store(tmp_path: Path) -> None:
    store, federation = RoundStore(tmp_path), Federation.of(4)
    client = federation.clients[VICTIM]
    inbox = federation.shares()[VICTIM]
    store.begin(client)
    old = {path: path.read_bytes() for path in tmp_path.glob("*.state")}
    round_id = federation.terms.round_id
    with store.turn(round_id, Named(VICTIM), randomness=RANDOM) as stored:
        stored.masked(inbox, federation.vectors[VICTIM])
    for path, content in old.items():
        path.write_bytes(content)
    for path in tmp_path.glob("*.state"):
        path.write_bytes(next(iter(old.values())))
    with (
        pytest.raises(StateStale),
        store.turn(round_id, Named(VICTIM), randomness=RANDOM) as stored,
    ):
        stored.masked(inbox, federation.vectors["1"])


def test_planted_restart_without_store_reuses_masks() -> None:
    federation = Federation.of(4)
    inbox = federation.shares()[VICTIM]
    state = federation.clients[VICTIM].to_bytes()
    sent = []
    for name in (VICTIM, "1"):
        copy = SecAggClient.from_bytes(state, Named(VICTIM), randomness=RANDOM)
        masked = copy.masked(inbox, federation.vectors[name])
        sent.append(messages.decode_masked(masked, federation.terms))
    difference = (sent[0] - sent[1]).view(np.int32).tolist()
    assert difference == (federation.vectors[VICTIM] - federation.vectors["1"]).tolist()


def surround(terms: Terms, survey: Survey) -> tuple[list[int], list[int]]:
    """The victim's vector, and the sum in a cohort of it and one client of the server's."""
    victim = SecAggClient.start(terms, survey, Named(VICTIM), policy=OPEN_POLICY, randomness=RANDOM)
    sybil = SecAggClient.start(terms, survey, Named("sybil"), policy=OPEN_POLICY, randomness=RANDOM)
    server = SecAggServer(terms)
    parties = {VICTIM: victim, "sybil": sybil}
    vector = np.arange(1, terms.length + 1)
    for name, party in parties.items():
        server.receive_keys(name, party.keys())
    for name, message in server.roster_messages():
        server.receive_shares(name, parties[name].shares(message))
    for name, message in server.inboxes():
        given = vector if name == VICTIM else np.zeros_like(vector)
        server.receive_masked(name, parties[name].masked(message, given))
    for name, message in server.unmask_requests():
        server.receive_unmask(name, parties[name].unmask(message))
    return vector.tolist(), server.outcome().total.tolist()


def test_a_lowered_minimum_is_refused() -> None:
    survey = flat(minimum=3)
    lowered = replace(Terms.of(survey, randomness=RANDOM), minimum=2)
    with pytest.raises(TermsRefused, match="needs 3 survivors"):
        surround(lowered, survey)


def test_a_lowered_threshold_is_refused() -> None:
    survey = flat(minimum=3)
    lowered = Terms.of(survey, randomness=RANDOM, corrupt_permille=0)
    with pytest.raises(TermsRefused, match="50 corrupt clients in a thousand"):
        surround(lowered, survey)
    with pytest.raises(TermsRefused, match="7 words to sum; the round asks for 8"):
        surround(replace(Terms.of(survey, randomness=RANDOM), length=8), survey)


def test_planted_unchecked_terms_let_a_sybil_see_the_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Terms, "check", lambda *_: None)
    survey = flat(minimum=3)
    vector, found = surround(replace(Terms.of(survey, randomness=RANDOM), minimum=2), survey)
    assert found == vector
