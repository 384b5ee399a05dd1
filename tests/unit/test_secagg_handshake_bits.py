"""Any bit flipped in a handshake message is found out, by whom the test says.

With pinned identities the receiver itself notices, whatever the message. Without them nobody
can tell a flipped announcement from another client's: the client that sent it notices when it
does not find its own keys in the cohort; and a flipped survivor set shows when the shares do not
give what their owner announced. Masked vectors are no handshake: a flipped bit is another
vector, as if the client had sent it.
"""

import copy
from collections.abc import Callable, Iterator

import pytest

from fedassay.errors import SecAggError
from fedassay.secagg import SecAggClient, SecAggServer
from tests.secagg import Federation, flat

both = pytest.mark.parametrize("is_pinned", [False, True])


def flipped(message: bytes, step: int = 1) -> Iterator[bytes]:
    """Every message that differs in one bit, or every step-th of them."""
    for bit in range(0, 8 * len(message), step):
        changed = bytearray(message)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


def is_refused(client: SecAggClient, act: Callable[..., object], *given: object) -> bool:
    """Whether the client refuses, and is as before."""
    before = client.to_bytes()
    try:
        act(*given)
    except SecAggError:
        assert client.to_bytes() == before
        return True
    return False


@both
def test_keys(is_pinned: bool) -> None:
    federation = Federation.of(3, is_pinned=is_pinned)
    client = federation.clients["0"]
    for message in flipped(client.keys()):
        server = copy.deepcopy(federation.server)
        try:
            server.receive_keys("0", message)
        except SecAggError:
            continue
        assert not is_pinned
        for name in ("1", "2"):
            server.receive_keys(name, federation.clients[name].keys())
        roster = dict(server.roster_messages())["0"]
        assert is_refused(client, client.shares, roster)


@both
def test_roster(is_pinned: bool) -> None:
    federation = Federation.of(3, is_pinned=is_pinned)
    roster, client = federation.keys()["0"], federation.clients["0"]
    for message in flipped(roster):
        assert is_refused(client, client.shares, message)
    client.shares(roster)


def test_roster_of_a_sparse_cohort() -> None:
    federation = Federation.of(300, survey=flat(1))
    roster, client = federation.keys()["0"], federation.clients["0"]
    for message in flipped(roster, step=997):
        assert is_refused(client, client.shares, message)
    client.shares(roster)


@both
def test_shares_and_inbox(is_pinned: bool) -> None:
    federation = Federation.of(3, is_pinned=is_pinned)
    inbox = federation.shares()["0"]
    client, vector = federation.clients["0"], federation.vectors["0"]
    for message in flipped(inbox):
        assert is_refused(client, client.masked, message, vector)
    # A bit of the shares that a client sends is a bit of somebody's inbox.
    sent = federation.said["shares"]["0"]
    received = b"".join(m[41:] for name, m in federation.said["inbox"].items() if name != "0")
    assert all(sent[i : i + 80] in received for i in range(40, len(sent), 80))
    client.masked(inbox, vector)


def test_survivors_and_confirmation() -> None:
    federation = Federation.of(3, is_pinned=True)
    survivors = federation.survivors()["0"]
    client = federation.clients["0"]
    for message in flipped(survivors):
        attempt = copy.copy(client)
        try:
            reply = attempt.confirm(message)
        except SecAggError:
            assert attempt.to_bytes() == client.to_bytes()
            continue
        with pytest.raises(SecAggError):
            federation.server.receive_confirm("0", reply)
    reply = client.confirm(survivors)
    for message in flipped(reply):
        with pytest.raises(SecAggError):
            federation.server.receive_confirm("0", message)
    federation.server.receive_confirm("0", reply)


def test_unmask_request_of_pinned_clients() -> None:
    federation = Federation.of(3, is_pinned=True)
    request, client = federation.requests()["0"], federation.clients["0"]
    for message in flipped(request):
        assert is_refused(client, client.unmask, message)
    client.unmask(request)


def test_unmask_request_of_others_shows_in_the_shares_or_changes_nothing() -> None:
    federation = Federation.of(4)
    request = federation.requests()["0"]
    unmasked = []
    for message in flipped(request):
        client, server = copy.copy(federation.clients["0"]), copy.deepcopy(federation.server)
        if is_refused(client, client.unmask, message):
            continue
        server.receive_unmask("0", copy.copy(federation.clients["0"]).unmask(message))
        unmasked.append(total(federation, server))
    # Two of three shares give a secret; the false one may be the third.
    assert len(unmasked) == 3
    assert all(found in (None, federation.total()) for found in unmasked)


@both
def test_revealed_shares(is_pinned: bool) -> None:
    federation = Federation.of(3, is_pinned=is_pinned)
    reply = federation.clients["0"].unmask(federation.requests()["0"])
    for message in flipped(reply):
        server = copy.deepcopy(federation.server)
        try:
            server.receive_unmask("0", message)
        except SecAggError:
            continue
        assert total(federation, server) is None


def total(federation: Federation, server: SecAggServer) -> list[int] | None:
    """What the server finds when everybody else answers as they should."""
    for name in federation.clients:
        if name != "0":
            request = federation.said["unmask"][name]
            server.receive_unmask(name, copy.copy(federation.clients[name]).unmask(request))
    try:
        return [int(x) for x in server.outcome().total]
    except SecAggError:
        return None
