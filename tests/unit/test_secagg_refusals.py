"""What a client refuses from a hostile server, or a server from a hostile client.

The scripts that go on to recover an input are in `test_malicious_server.py`.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fedassay import ClientPolicy, Polya, Privacy, Survey
from fedassay.client import OPEN_POLICY
from fedassay.errors import (
    CohortTooSmall,
    KeyInvalid,
    MessageTooLarge,
    RoundAborted,
    RoundMismatch,
    SealBroken,
    SignatureInvalid,
    StageRefused,
    StateStale,
    SurveyRefused,
    TermsRefused,
    UnmaskRefused,
)
from fedassay.examples import IntArray
from fedassay.secagg import (
    Identity,
    Named,
    Pinned,
    Roster,
    RoundStore,
    SecAggClient,
    SecAggServer,
    Terms,
    messages,
)
from fedassay.secagg.cohort import agreed
from fedassay.secagg.keys import Leaf
from fedassay.secagg.messages import Signed
from tests.secagg import IDENTITIES, RANDOM, Federation, flat, members_of

VICTIM = "0"
PRIME = 2**256 - 189


def test_pinned_clients_confirm_one_survivor_set_and_unmask_no_other() -> None:
    federation = Federation.of(5, is_pinned=True)
    federation.survivors()
    full = federation.said["survivors"][VICTIM]
    peer = federation.clients["1"]
    signature = messages.decode_confirm(peer.confirm(full), federation.terms)
    fewer = np.ones(5, dtype=np.bool_)
    fewer[federation.rank("2")] = False
    with pytest.raises(StageRefused, match="answered once"):
        peer.confirm(messages.encode_survivors(federation.terms, fewer))
    with pytest.raises(UnmaskRefused, match="confirmed one survivor set"):
        peer.unmask(messages.encode_unmask(federation.terms, fewer, [None] * 5))
    everyone = np.ones(5, dtype=np.bool_)
    signatures: list[bytes | None] = [None] * 5
    signatures[federation.rank("1")] = signature
    with pytest.raises(UnmaskRefused, match="must confirm the survivor set"):
        peer.unmask(messages.encode_unmask(federation.terms, everyone, signatures))
    signatures[federation.rank("2")] = signature
    with pytest.raises(SignatureInvalid):
        peer.unmask(messages.encode_unmask(federation.terms, everyone, signatures))


def test_who_dropped_out_does_not_vouch_for_the_survivors() -> None:
    # Seven clients, two dropped: 4 survivors must confirm. 3 do, and both who dropped out.
    federation = Federation.of(7, is_pinned=True)
    federation.survivors()
    survivors = np.ones(7, dtype=np.bool_)
    gone = [federation.rank(name) for name in "56"]
    survivors[gone] = False
    content = agreed(federation.server.cohort, messages.pack_bits(survivors))
    signatures: list[bytes | None] = [None] * 7
    for name in "12356":
        signatures[federation.rank(name)] = IDENTITIES[int(name)].sign(content)
    client = federation.clients[VICTIM]
    with pytest.raises(UnmaskRefused, match=r"4 survivors must confirm.* found 3"):
        client.unmask(messages.encode_unmask(federation.terms, survivors, signatures))
    signatures[federation.rank("4")] = IDENTITIES[4].sign(content)
    client.unmask(messages.encode_unmask(federation.terms, survivors, signatures))


@pytest.mark.parametrize("outside", [(PRIME, 0), (0, PRIME), (2**256 - 1, 2**256 - 1)])
def test_shares_outside_the_field_are_refused(
    monkeypatch: pytest.MonkeyPatch, outside: tuple[int, int]
) -> None:
    federation = Federation.of(4)
    rosters = federation.keys()
    planted = b"".join(value.to_bytes(32, "little") for value in outside)
    for name, message in rosters.items():
        with monkeypatch.context() as patch:
            if name == "1":  # a hostile client seals what is no field element
                patch.setattr("fedassay.secagg.client._joined", lambda *_: planted)
            federation.server.receive_shares(name, federation.clients[name].shares(message))
    victim = federation.clients[VICTIM]
    inbox, before = dict(federation.server.inboxes())[VICTIM], victim.to_bytes()
    with pytest.raises(SealBroken, match="outside the field"):
        victim.masked(inbox, federation.vectors[VICTIM])
    assert victim.to_bytes() == before


def test_a_replayed_round_is_refused(tmp_path: Path) -> None:
    store, federation = RoundStore(tmp_path), Federation.of(4)
    store.begin(federation.clients[VICTIM])
    again = SecAggClient.start(
        federation.terms,
        federation.survey,
        Named(VICTIM),
        policy=OPEN_POLICY,
        randomness=RANDOM,
    )
    with pytest.raises(StateStale, match="took part in round"):
        store.begin(again)
    # What was said in one round means nothing in another among the same clients.
    federation.requests()
    said = federation.said
    with pytest.raises(RoundMismatch):
        Federation.of(4).clients[VICTIM].shares(said["roster"][VICTIM])
    sharing = Federation.of(4)
    sharing.shares()
    with pytest.raises(RoundMismatch):
        sharing.clients[VICTIM].masked(said["inbox"][VICTIM], sharing.vectors[VICTIM])
    masking = Federation.of(4)
    masking.masked()
    with pytest.raises(RoundMismatch):
        masking.clients[VICTIM].unmask(said["unmask"][VICTIM])


def test_a_small_cohort_is_refused() -> None:
    survey = flat(minimum=3)
    federation = Federation.of(4, survey=survey)
    rosters = federation.keys()
    few = bytearray(rosters[VICTIM])
    few[40:44] = (2).to_bytes(4, "little")
    with pytest.raises(CohortTooSmall, match="needs 3 clients"):
        federation.clients[VICTIM].shares(bytes(few))
    with pytest.raises(SurveyRefused, match="at least 5"):
        SecAggClient.start(
            federation.terms,
            survey,
            Named("x"),
            policy=ClientPolicy(smallest_cohort=5, exact_sums=True, smallest_cell=0),
            randomness=RANDOM,
        )
    alone = SecAggServer(federation.terms)
    with pytest.raises(RoundAborted, match="3 clients must have announced keys; 0 have"):
        alone.roster_messages()


def noisy(epsilon: int) -> Survey:
    exact = flat(minimum=3)
    noise = Polya(Fraction(epsilon), 1, 3)
    return replace(exact, privacy=Privacy.DISTRIBUTED, mechanisms=(noise,))


def test_another_epsilon_for_one_client_ends_its_round() -> None:
    survey, weak = noisy(1), noisy(8)
    federation = Federation.of(4, survey=survey)
    terms = replace(federation.terms, fingerprint=weak.fingerprint)
    victim = SecAggClient.start(terms, weak, Named(VICTIM), policy=OPEN_POLICY, randomness=RANDOM)
    with pytest.raises(RoundMismatch):
        federation.server.receive_keys(VICTIM, victim.keys())
    # The server rewrites the header of every message between the two rounds.
    federation.clients[VICTIM] = Translated(victim, terms, federation.terms)
    with pytest.raises((SealBroken, KeyInvalid)):
        federation.masked()
    strict = ClientPolicy(largest_epsilon=Fraction(2))
    with pytest.raises(SurveyRefused, match="at most epsilon 2"):
        SecAggClient.start(terms, weak, Named("x"), policy=strict, randomness=RANDOM)


class Translated(SecAggClient):
    """A client in another round, with every header rewritten on the way."""

    def __init__(self, inner: SecAggClient, own: Terms, others: Terms) -> None:
        self._inner, self._own, self._others = inner, own, others

    def keys(self) -> bytes:
        return self._out(self._inner.keys())

    def shares(self, roster_message: bytes) -> bytes:
        return self._out(self._inner.shares(self._in(roster_message)))

    def masked(self, inbox: bytes, vector: IntArray) -> bytes:
        return self._out(self._inner.masked(self._in(inbox), vector))

    def _out(self, message: bytes) -> bytes:
        return message[:8] + self._others.digest + message[40:]

    def _in(self, message: bytes) -> bytes:
        return message[:8] + self._own.digest + message[40:]


@pytest.mark.parametrize("is_pinned", [False, True])
def test_unmasking_twice_gives_the_same_answer_or_none(is_pinned: bool) -> None:
    federation = Federation.of(5, is_pinned=is_pinned)
    request = federation.requests()[VICTIM]
    client = federation.clients[VICTIM]
    reply = client.unmask(request)
    assert client.unmask(request) == reply
    for stage in (client.shares, client.unmask):
        with pytest.raises(StageRefused):
            stage(request[:-1])
    with pytest.raises(StageRefused):
        client.masked(federation.said["inbox"][VICTIM], federation.vectors["1"])


def test_shares_swapped_between_clients_do_not_open() -> None:
    federation = Federation.of(5)
    inboxes = federation.shares()
    before = federation.clients[VICTIM].to_bytes()
    degree = federation.server.cohort.graph.degree
    boxes = messages.decode_inbox(inboxes[VICTIM], federation.terms, degree)
    theirs = messages.decode_inbox(inboxes["1"], federation.terms, degree)
    for swapped in (
        [boxes[1], boxes[0], *boxes[2:]],
        [theirs[0], *boxes[1:]],
        [boxes[0], *theirs[1:]],
        [boxes[0]] * degree,
    ):
        with pytest.raises(SealBroken):
            federation.clients[VICTIM].masked(
                messages.encode_inbox(federation.terms, swapped), federation.vectors[VICTIM]
            )
    assert federation.clients[VICTIM].to_bytes() == before


def test_repeated_and_unknown_clients_are_refused() -> None:
    federation = Federation.of(4)
    rosters = federation.keys()
    roster = messages.decode_roster(rosters[VICTIM], federation.terms, 0)
    for peers in (
        (roster.peers[0], roster.peers[0], roster.peers[2]),
        (roster.peers[1], roster.peers[0], roster.peers[2]),
        (Signed(replace(roster.peers[0].leaf, member=bytes(32))), *roster.peers[1:]),
    ):
        with pytest.raises(KeyInvalid):
            federation.clients[VICTIM].shares(
                messages.encode_roster(federation.terms, replace(roster, peers=peers))
            )
    server = SecAggServer(federation.terms)
    keys = federation.clients[VICTIM].keys()
    server.receive_keys("a", keys)
    server.receive_keys("a", keys)
    with pytest.raises(KeyInvalid, match="joins a round once"):
        server.receive_keys("b", keys)
    with pytest.raises(KeyInvalid, match="not in the cohort"):
        federation.server.receive_shares("stranger", b"")


def test_an_identity_outside_the_roster_does_not_join() -> None:
    federation = Federation.of(4, is_pinned=True)
    assert federation.server._roster is not None
    stranger = Identity.generate()
    with pytest.raises(KeyInvalid, match="not in the roster"):
        SecAggClient.start(
            federation.terms,
            federation.survey,
            Pinned(stranger, federation.server._roster),
            policy=OPEN_POLICY,
            randomness=RANDOM,
        )
    other = Roster.of([("x", stranger.public), ("y", IDENTITIES[0].public)])
    with pytest.raises(RoundMismatch, match="roster"):
        SecAggClient.start(
            federation.terms,
            federation.survey,
            Pinned(stranger, other),
            policy=OPEN_POLICY,
            randomness=RANDOM,
        )


def test_pinned_clients_do_not_take_part_unpinned() -> None:
    survey = flat()
    terms = Terms.of(survey, randomness=RANDOM)
    _, members = members_of(3, is_pinned=True)
    with pytest.raises(TermsRefused, match="only among pinned identities"):
        SecAggClient.start(terms, survey, members[0], policy=OPEN_POLICY, randomness=RANDOM)


def test_a_client_that_is_listed_as_dropped_refuses() -> None:
    federation = Federation.of(5)
    federation.masked()
    _, dropped = federation.views(VICTIM)
    with pytest.raises(UnmaskRefused, match="lists it as dropped"):
        federation.clients[VICTIM].unmask(dropped)


@pytest.mark.parametrize("is_pinned", [False, True])
def test_fewer_survivors_than_the_minimum_stay_masked(is_pinned: bool) -> None:
    federation = Federation.of(6, survey=flat(minimum=5), is_pinned=is_pinned)
    federation.masked()
    few = np.zeros(6, dtype=np.bool_)
    few[[federation.rank(name) for name in "0123"]] = True
    with pytest.raises(UnmaskRefused, match="fewer than 5 clients"):
        federation.clients[VICTIM].unmask(
            messages.encode_unmask(federation.terms, few, [None] * 6 if is_pinned else ())
        )
    if is_pinned:
        with pytest.raises(UnmaskRefused, match="fewer than 5 clients"):
            federation.clients[VICTIM].confirm(messages.encode_survivors(federation.terms, few))


def test_neighbours_that_were_kept_apart_do_not_unmask_each_other() -> None:
    federation = Federation.of(5)
    inboxes = federation.shares()
    degree = federation.server.cohort.graph.degree
    boxes = messages.decode_inbox(inboxes[VICTIM], federation.terms, degree)
    boxes[0] = None
    withheld = messages.encode_inbox(federation.terms, boxes)
    federation.clients[VICTIM].masked(withheld, federation.vectors[VICTIM])
    active, _ = federation.views(VICTIM)
    with pytest.raises(UnmaskRefused, match="The server withheld them"):
        federation.clients[VICTIM].unmask(active)
    with pytest.raises(CohortTooSmall, match="must hold this client's shares"):
        federation.clients["1"].masked(
            messages.encode_inbox(federation.terms, [*boxes[:2], None, None]),
            federation.vectors["1"],
        )


def test_a_part_of_a_sparse_cohort_is_not_unmasked_apart() -> None:
    survey = flat(1, minimum=100)
    federation = Federation.of(260, survey=survey)
    rosters = federation.keys()
    server = federation.server
    cohort = server.cohort
    assert not cohort.graph.is_complete
    # The client's own stages are real; its neighbours' shares are not needed to see it refuse.
    near = [list(rosters)[rank] for rank in cohort.neighbours(federation.rank(VICTIM))]
    for name in (VICTIM, *near):
        server.receive_shares(name, federation.clients[name].shares(rosters[name]))
    slot = {n: cohort.neighbours(federation.rank(n)).index(federation.rank(VICTIM)) for n in near}
    inbox = messages.encode_inbox(
        federation.terms, [server._sealed[federation.rank(n)][slot[n]] for n in near]
    )
    client = federation.clients[VICTIM]
    client.masked(inbox, federation.vectors[VICTIM])
    everyone = np.ones(260, dtype=np.bool_)
    far = (cohort.ring.place[federation.rank(VICTIM)] + 130) % 260
    gap = (far + np.arange(cohort.graph.degree // 2)) % 260
    cut = everyone.copy()
    cut[cohort.ring.order[gap]] = False
    with pytest.raises(UnmaskRefused, match="summed apart"):
        client.unmask(messages.encode_unmask(federation.terms, cut))
    # Every other place on the ring: no gap anywhere, but 130 of 260, of whom 13 may be corrupt
    # and count twice; 137 are the fewest of which there are no two sets.
    halved = np.zeros(260, dtype=np.bool_)
    start = cohort.ring.place[federation.rank(VICTIM)]
    halved[cohort.ring.order[(start + np.arange(0, 260, 2)) % 260]] = True
    assert cohort.graph.holds_together(cohort.ring, halved)
    with pytest.raises(UnmaskRefused, match=r"fewer than 137 clients.* 130 survivors"):
        client.unmask(messages.encode_unmask(federation.terms, halved))
    client.unmask(messages.encode_unmask(federation.terms, everyone))


def test_oversized_messages_are_refused() -> None:
    federation = Federation.of(4)
    federation.masked()
    client = federation.clients[VICTIM]
    fresh = Federation.of(4)
    with pytest.raises(MessageTooLarge, match="roster message"):
        fresh.clients[VICTIM].shares(bytes(2**24))
    fresh.shares()
    with pytest.raises(MessageTooLarge, match="inbox message"):
        fresh.clients[VICTIM].masked(bytes(2**20), fresh.vectors[VICTIM])
    with pytest.raises(MessageTooLarge, match="unmask message"):
        client.unmask(bytes(2**20))
    with pytest.raises(MessageTooLarge, match="masked message"):
        fresh.server.receive_masked(VICTIM, bytes(2**20))


@pytest.mark.parametrize("weak", ["mask_key", "seal_key"])
def test_keys_of_low_order_are_refused_by_server_and_client(weak: str) -> None:
    federation = Federation.of(4)
    hostile, victim = federation.clients["1"], federation.clients[VICTIM]
    own = hostile._state.own
    planted = Leaf(
        own.member,
        bytes(32) if weak == "mask_key" else own.mask_key,
        bytes(32) if weak == "seal_key" else own.seal_key,
        own.commitment,
    )
    hostile._state = replace(hostile._state, own=planted)
    with pytest.raises(KeyInvalid, match="low order"):
        federation.server.receive_keys("1", hostile.keys())
    # A server that lets them through: clients refuse, as they were.
    for name, client in federation.clients.items():
        federation.server._announced[name] = messages.decode_keys(client.keys(), federation.terms)
    rosters = dict(federation.server.roster_messages())
    attempt: Callable[[], bytes] = partial(victim.shares, rosters[VICTIM])
    if weak == "mask_key":
        for name, message in rosters.items():
            federation.server.receive_shares(name, federation.clients[name].shares(message))
        inbox = dict(federation.server.inboxes())[VICTIM]
        attempt = partial(victim.masked, inbox, federation.vectors[VICTIM])
    before = victim.to_bytes()
    with pytest.raises(KeyInvalid, match="low order"):
        attempt()
    assert victim.to_bytes() == before


def test_a_vector_is_added_once() -> None:
    federation = Federation.of(4)
    for name, message in federation.masked().items():
        with pytest.raises(StageRefused, match="Its first answer counts"):
            federation.server.receive_masked(name, message)
    for name, request in federation.server.unmask_requests():
        federation.server.receive_unmask(name, federation.clients[name].unmask(request))
    assert federation.server.outcome().total.tolist() == federation.total()


def test_false_shares_abort_the_round() -> None:
    federation = Federation.of(4)
    for name, request in federation.requests().items():
        reply = bytearray(federation.clients[name].unmask(request))
        if name == VICTIM:
            reply[40:] = bytes(len(reply) - 40)
        federation.server.receive_unmask(name, bytes(reply))
    with pytest.raises(RoundAborted, match="a client gave false ones"):
        federation.server.outcome()
