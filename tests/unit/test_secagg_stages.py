"""Stages come in order and count once, on both sides, and files of a round hold what they say."""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from fedassay.client import OPEN_POLICY
from fedassay.errors import (
    FileInvalid,
    KeyInvalid,
    MessageMalformed,
    RoundAborted,
    SettingInvalid,
    StageRefused,
    SurveyRefused,
    TermsRefused,
    UnmaskRefused,
)
from fedassay.secagg import (
    Identity,
    Named,
    Roster,
    RoundStore,
    SecAggClient,
    SecAggServer,
    Terms,
    messages,
)
from fedassay.secagg.cohort import agreed
from fedassay.secagg.graph import log2_binomial_below
from tests.secagg import IDENTITIES, RANDOM, Federation, flat, members_of

VICTIM = "0"
PRIME = 2**256 - 189
SEALED_BYTES = 32 + 32 + 16
"""Two field elements and the tag of AES-GCM."""


def test_a_request_that_comes_again_gets_the_answer_that_it_got() -> None:
    federation = Federation.of(5, is_pinned=True)
    client = federation.clients[VICTIM]
    roster = federation.keys()[VICTIM]
    assert client.shares(roster) == client.shares(roster)
    federation = Federation.of(5, is_pinned=True)
    survivors = federation.survivors()[VICTIM]
    client = federation.clients[VICTIM]
    assert client.confirm(survivors) == client.confirm(survivors)


def test_who_has_no_identity_confirms_nothing_and_joins_no_pinned_round() -> None:
    federation = Federation.of(4)
    federation.masked()
    everybody = messages.encode_survivors(federation.terms, np.ones(4, dtype=np.bool_))
    with pytest.raises(StageRefused, match="confirmed where identities are pinned; none are"):
        federation.clients[VICTIM].confirm(everybody)
    with pytest.raises(StageRefused, match=r"no identity is pinned\. Go on to unmask"):
        federation.server.survivor_messages()
    pinned = Federation.of(4, is_pinned=True)
    with pytest.raises(TermsRefused, match=r"pinned identities; this client has none.*the roster"):
        SecAggClient.start(
            pinned.terms, pinned.survey, Named("x"), policy=OPEN_POLICY, randomness=RANDOM
        )


def test_a_server_needs_the_roster_that_its_terms_name() -> None:
    pinned, open_round = Federation.of(4, is_pinned=True), Federation.of(4)
    another = Roster.of([("x", IDENTITIES[8].public), ("y", IDENTITIES[9].public)])
    for terms, roster in (
        (pinned.terms, None),
        (pinned.terms, another),
        (open_round.terms, another),
    ):
        with pytest.raises(SettingInvalid, match="terms and its roster must go together"):
            SecAggServer(terms, roster=roster)


def test_a_rosters_digest_holds_every_name_and_every_key_in_its_place() -> None:
    keys = [identity.public for identity in IDENTITIES[:3]]
    members = [("a", keys[0]), ("b", keys[1])]
    listed = [{"name": name, "key": key.hex()} for name, key in members]
    written = rfc8785.dumps({"format": "fedassay.roster/1", "members": listed})
    expected = hashlib.sha256(b"fedassay secagg roster" + written).digest()
    assert Roster.of(members).digest == expected
    others = ([("a", keys[0]), ("b", keys[2])], [("a", keys[0]), ("c", keys[1])], members[::-1])
    assert len({expected, *(Roster.of(each).digest for each in others)}) == 4


def test_there_is_no_cohort_before_the_keys_are_in() -> None:
    with pytest.raises(StageRefused, match="Collect them first"):
        _ = Federation.of(4).server.cohort


def test_a_cohort_that_is_full_takes_nobody_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedassay.secagg.server.MAX_COHORT", 3)
    federation = Federation.of(4)
    *first, last = federation.clients.items()
    for name, client in first:
        federation.server.receive_keys(name, client.keys())
    with pytest.raises(KeyInvalid, match="at most 3 clients; this one is full"):
        federation.server.receive_keys(last[0], last[1].keys())
    assert len(dict(federation.server.roster_messages())) == 3


STAGES: dict[str, Callable[[Federation], object]] = {
    "keys": Federation.keys,
    "shares": Federation.shares,
    "masked": Federation.masked,
    "confirm": Federation.survivors,
    "unmask": Federation.requests,
}
CALLS: dict[str, Callable[[SecAggServer], object]] = {
    "receive_keys": lambda server: server.receive_keys(VICTIM, b""),
    "roster_messages": lambda server: server.roster_messages(),
    "roster_message": lambda server: server.roster_message(VICTIM),
    "receive_shares": lambda server: server.receive_shares(VICTIM, b""),
    "inboxes": lambda server: server.inboxes(),
    "receive_masked": lambda server: server.receive_masked(VICTIM, b""),
    "survivor_messages": lambda server: server.survivor_messages(),
    "receive_confirm": lambda server: server.receive_confirm(VICTIM, b""),
    "unmask_requests": lambda server: server.unmask_requests(),
    "receive_unmask": lambda server: server.receive_unmask(VICTIM, b""),
    "outcome": lambda server: server.outcome(),
}
DUE = {
    "keys": {"roster_message", "receive_shares", "inboxes"},
    "shares": {"receive_masked", "survivor_messages"},
    "masked": {"receive_masked", "survivor_messages"},
    "confirm": {"receive_confirm", "unmask_requests"},
    "unmask": {"receive_unmask", "outcome"},
}
"""What a server may be asked after each stage was driven to its end; the rest is out of order."""


@pytest.mark.parametrize("stage", STAGES)
def test_a_server_takes_nothing_out_of_order(stage: str) -> None:
    federation = Federation.of(4, is_pinned=True)
    STAGES[stage](federation)
    for name in CALLS.keys() - DUE[stage]:
        with pytest.raises(StageRefused, match="Messages come in order"):
            CALLS[name](federation.server)


def test_shares_count_once_and_who_sent_none_is_not_summed() -> None:
    federation = Federation.of(5)
    server = federation.server
    rosters = federation.keys()
    for name in "1234":
        reply = federation.clients[name].shares(rosters[name])
        server.receive_shares(name, reply)
        with pytest.raises(StageRefused, match=f"'{name}' has answered this stage"):
            server.receive_shares(name, reply)
    inboxes = dict(server.inboxes())
    assert sorted(inboxes) == list("1234")
    with pytest.raises(StageRefused, match="'0' sent no shares, so it cannot be unmasked"):
        server.receive_masked(VICTIM, b"")
    for name, inbox in inboxes.items():
        masked = federation.clients[name].masked(inbox, federation.vectors[name])
        server.receive_masked(name, masked)
    for name, request in server.unmask_requests():
        server.receive_unmask(name, federation.clients[name].unmask(request))
    expected = np.sum([federation.vectors[name] for name in "1234"], axis=0)
    assert server.outcome().total.tolist() == expected.tolist()


def without_the_victim(*, is_pinned: bool = False) -> Federation:
    """Everybody shares; then client 0 is gone and the others send masked vectors."""
    federation = Federation.of(6, is_pinned=is_pinned)
    for name, inbox in federation.shares().items():
        if name != VICTIM:
            masked = federation.clients[name].masked(inbox, federation.vectors[name])
            federation.server.receive_masked(name, masked)
    return federation


def test_who_dropped_out_neither_confirms_nor_unmasks() -> None:
    federation = without_the_victim(is_pinned=True)
    server = federation.server
    survivors = dict(server.survivor_messages())
    with pytest.raises(StageRefused, match="'0' is not among the survivors"):
        server.receive_confirm(VICTIM, b"")
    for name, message in survivors.items():
        server.receive_confirm(name, federation.clients[name].confirm(message))
    requests = dict(server.unmask_requests())
    with pytest.raises(StageRefused, match="'0' is not among the survivors"):
        server.receive_unmask(VICTIM, b"")
    for name, request in requests.items():
        reply = federation.clients[name].unmask(request)
        server.receive_unmask(name, reply)
        with pytest.raises(StageRefused, match="has answered this stage"):
            server.receive_unmask(name, reply)
    expected = np.sum([federation.vectors[name] for name in "12345"], axis=0)
    assert server.outcome().total.tolist() == expected.tolist()


@pytest.mark.parametrize("is_false", [False, True])
def test_false_shares_of_one_that_dropped_out_abort_the_round(is_false: bool) -> None:
    federation = without_the_victim()
    server = federation.server
    gone = federation.rank(VICTIM)
    for name, request in dict(server.unmask_requests()).items():
        reply = federation.clients[name].unmask(request)
        if is_false:
            place = server.cohort.neighbours(federation.rank(name)).index(gone)
            shares = messages.decode_reveal(reply, federation.terms, 5)
            shares[place] = (shares[place] + 1) % PRIME
            reply = messages.encode_reveal(federation.terms, shares)
        server.receive_unmask(name, reply)
    if is_false:
        with pytest.raises(RoundAborted, match=r"a client gave false ones.*Nothing was revealed"):
            server.outcome()
    else:
        expected = np.sum([federation.vectors[name] for name in "12345"], axis=0)
        assert server.outcome().total.tolist() == expected.tolist()


@pytest.mark.parametrize("share", [PRIME, 2**256 - 1])
def test_a_share_beyond_the_field_is_no_answer(share: int) -> None:
    federation = Federation.of(4)
    federation.requests()
    reply = messages.encode_reveal(federation.terms, [share, 0, 0])
    with pytest.raises(MessageMalformed, match="below the field's prime"):
        federation.server.receive_unmask(VICTIM, reply)


def test_a_server_asks_nobody_to_unmask_where_a_whole_window_is_gone() -> None:
    # To the server shares are sealed and vectors masked, so any bytes of their length will do.
    federation = Federation.of(260, survey=flat(1, minimum=100))
    server, terms = federation.server, federation.terms
    names = list(federation.keys())
    assert server.clients == tuple(names)
    graph, ring = server.cohort.graph, server.cohort.ring
    window = set(ring.order[np.arange(graph.degree // 2)].tolist())
    sealed = messages.encode_shares(terms, [bytes(SEALED_BYTES)] * graph.degree)
    masked = messages.encode_masked(terms, np.zeros(terms.length, dtype=np.uint32))
    for name in names:
        server.receive_shares(name, sealed)
    server.inboxes()
    for rank, name in enumerate(names):
        if rank not in window:
            server.receive_masked(name, masked)
    with pytest.raises(RoundAborted, match=r"so many neighbours in a row.*start a new round"):
        server.unmask_requests()
    for rank in window:  # they were only late
        server.receive_masked(names[rank], masked)
    assert len(dict(server.unmask_requests())) == 260


def changed(client: SecAggClient, **fields: object) -> bytes:
    return json.dumps({**json.loads(client.to_bytes()), **fields}).encode()


def test_a_state_that_lost_its_secrets_or_its_seat_answers_nothing() -> None:
    federation = Federation.of(4)
    rosters = federation.keys()
    client = federation.clients[VICTIM]
    bare = SecAggClient.from_bytes(changed(client, secrets=None), Named(VICTIM), randomness=RANDOM)
    with pytest.raises(StageRefused, match=r"over for this client\. Start a new round"):
        bare.shares(rosters[VICTIM])
    client.shares(rosters[VICTIM])
    lost = SecAggClient.from_bytes(changed(client, seat=None), Named(VICTIM), randomness=RANDOM)
    with pytest.raises(StageRefused, match="Send the roster first"):
        lost.masked(b"", federation.vectors[VICTIM])


@pytest.mark.parametrize("seed", ["mask_seed", "self_seed"])
def test_a_state_with_a_seed_beyond_the_field_is_refused(seed: str) -> None:
    client = Federation.of(4).clients[VICTIM]
    secrets = {**json.loads(client.to_bytes())["secrets"], seed: PRIME.to_bytes(32, "little").hex()}
    with pytest.raises(FileInvalid, match="outside the field"):
        SecAggClient.from_bytes(changed(client, secrets=secrets), Named(VICTIM), randomness=RANDOM)


@pytest.mark.parametrize("digits", [2, 4, 128])
def test_a_state_whose_peers_are_cut_short_is_refused(digits: int) -> None:
    federation = Federation.of(4)
    federation.shares()
    client = federation.clients[VICTIM]
    seat = json.loads(client.to_bytes())["seat"]
    cut = changed(client, seat={**seat, "peers": seat["peers"][:-digits]})
    with pytest.raises(FileInvalid, match="the peers are cut short"):
        SecAggClient.from_bytes(cut, Named(VICTIM), randomness=RANDOM)


def test_a_client_that_was_started_again_goes_by_the_survivors_that_it_confirmed() -> None:
    """All others have confirmed fewer by then, so that only its own memory stands in the way."""
    federation = Federation.of(5, is_pinned=True)
    message = federation.survivors()[VICTIM]
    client = federation.clients[VICTIM]
    client.confirm(message)
    fewer = np.ones(5, dtype=np.bool_)
    fewer[federation.rank("4")] = False
    content = agreed(federation.server.cohort, messages.pack_bits(fewer))
    signatures = [
        IDENTITIES[int(name)].sign(content) if fewer[federation.rank(name)] else None
        for name in federation.said["roster"]
    ]
    request = messages.encode_unmask(federation.terms, fewer, signatures)
    member = members_of(5, is_pinned=True)[1][0]
    again = SecAggClient.from_bytes(client.to_bytes(), member, randomness=RANDOM)
    with pytest.raises(UnmaskRefused, match="confirmed one survivor set"):
        again.unmask(request)
    # Nothing else would: one that has confirmed nothing follows the others.
    forgetful = SecAggClient.from_bytes(changed(client, survivors=None), member, randomness=RANDOM)
    forgetful.unmask(request)


def test_while_a_round_answers_no_other_process_can(tmp_path: Path) -> None:
    store, client = RoundStore(tmp_path), Federation.of(4).clients[VICTIM]
    store.begin(client)
    (lock,) = tmp_path.glob("*.lock")
    with lock.open("rb") as other:
        with store.turn(client.terms.round_id, Named(VICTIM), randomness=RANDOM):
            for wanted in (fcntl.LOCK_EX, fcntl.LOCK_SH):
                with pytest.raises(BlockingIOError):
                    fcntl.flock(other, wanted | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_state_of_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    store, client = RoundStore(tmp_path), Federation.of(4).clients[VICTIM]
    store.begin(client)
    (state,) = tmp_path.glob("*.state")
    os.truncate(state, 2**30 + 1)
    with (
        pytest.raises(FileInvalid, match="too large for a round's state"),
        store.turn(client.terms.round_id, Named(VICTIM), randomness=RANDOM),
    ):
        pass


def test_a_state_that_cannot_be_stored_stops_the_round(tmp_path: Path) -> None:
    store, client = RoundStore(tmp_path), Federation.of(4).clients[VICTIM]
    (tmp_path / f"{client.terms.round_id.hex()}.1.state").mkdir()
    with pytest.raises(FileInvalid, match=r"cannot be written \(Is a directory\).*must not answer"):
        store.begin(client)
    assert list(tmp_path.glob("*.marker")) == []


def test_a_key_of_another_kind_is_no_identity(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    key = X25519PrivateKey.generate()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(FileInvalid, match="expected an Ed25519 key; found another kind"):
        Identity.load(path)


def test_a_roster_has_one_whole_key_for_each_name() -> None:
    one, other = IDENTITIES[0].public, IDENTITIES[1].public
    for names, keys in ((("a", "b"), (one,)), (("a",), (one, other)), (("a",), (one[:31],))):
        with pytest.raises(SettingInvalid, match="one key of 32 bytes for each name"):
            Roster(names, keys)
    content = json.loads(json.dumps(Roster.of([("a", one), ("b", other)]).to_json()))
    assert Roster.from_json(content).names == ("a", "b")
    content["members"][1]["name"] = "a"
    with pytest.raises(FileInvalid, match=r"sites\.json: every name and every key stands once"):
        Roster.from_json(content, where="sites.json")


def test_a_client_that_fears_colluders_joins_only_rounds_that_withstand_them() -> None:
    survey = flat(minimum=9, colluders=2)
    terms = Terms.of(survey, randomness=RANDOM)
    terms.check(survey, replace(OPEN_POLICY, colluders=2))
    for more in (terms, replace(terms, colluders=3)):  # what the survey withstands is what counts
        with pytest.raises(SurveyRefused, match="only where 3 others may work together"):
            more.check(survey, replace(OPEN_POLICY, colluders=3))


@pytest.mark.parametrize("field", ["fingerprint", "round_id"])
def test_terms_of_a_wrong_length_are_refused(field: str) -> None:
    terms = Terms.of(flat(), randomness=RANDOM)
    for wrong in (b"", bytes(31), bytes(33)):
        with pytest.raises(SettingInvalid, match="fingerprint of 32 bytes and a round id of 16"):
            replace(terms, **{field: wrong})  # type: ignore[arg-type]  # settings by name


def test_what_always_succeeds_falls_short_only_of_more_than_all() -> None:
    assert log2_binomial_below(5, 1.0, 5) == -np.inf
    assert log2_binomial_below(5, 1.0, 6) == 0.0
