"""Every key and signature of a round, against answers that node computed from docs/formats.md.

`tests/vectors/secagg_keys.mjs` made `secagg_keys.json`; none of fedassay's code took part.
"""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from fedassay.errors import SealBroken, SignatureInvalid
from fedassay.secagg import Identity, Named, Terms, keys
from fedassay.secagg.cohort import Cohort, agreed, announced
from fedassay.secagg.identity import check_signature
from fedassay.secagg.keys import Leaf, Secrets
from fedassay.secagg.masks import Masker
from tests.secagg import Federation

KNOWN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "secagg_keys.json").read_text()
)
PARTIES = ("a", "b")


def raw(*path: str) -> bytes:
    value: Any = KNOWN
    for step in path:
        value = value[step]
    return bytes.fromhex(value)


def seed(*path: str) -> int:
    return int.from_bytes(raw(*path), "little")


TERMS = Terms(
    fingerprint=raw("terms", "fingerprint"),
    round_id=raw("terms", "round_id"),
    length=7,
    minimum=9,
    colluders=2,
    corrupt_permille=60,
    dropout_permille=210,
    roster=raw("terms", "roster"),
)
COHORT = Cohort.of(TERMS, 5, raw("cohort", "root"), raw("cohort", "present"))
LEAVES = {name: Leaf.from_bytes(raw(name, "leaf")) for name in PARTIES}


def private(name: str) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(raw(name, "mask_private"))


def test_terms_have_the_known_bytes_and_digest() -> None:
    assert TERMS.to_bytes() == raw("terms", "bytes")
    assert TERMS.digest == raw("terms", "digest")


def test_a_cohort_has_the_known_digest_and_ring() -> None:
    assert COHORT.digest == raw("cohort", "digest")
    assert COHORT.ring.order.tolist() == KNOWN["cohort"]["ring"]


@pytest.mark.parametrize("name", PARTIES)
def test_a_client_announces_the_known_leaf(name: str) -> None:
    secrets = Secrets(seed(name, "mask_seed"), seed(name, "self_seed"), raw(name, "seal_private"))
    leaf = secrets.leaf(raw(name, "member"), raw("terms", "digest"))
    assert leaf.to_bytes() == raw(name, "leaf")
    assert leaf.commitment == raw(name, "commitment")


@pytest.mark.parametrize("name", PARTIES)
def test_mask_keys_are_the_known_ones(name: str) -> None:
    mask_key = keys.mask_private(seed(name, "mask_seed"), raw("terms", "digest"))
    assert mask_key.private_bytes_raw() == raw(name, "mask_private")
    assert (
        keys.mask_public(seed(name, "mask_seed"), raw("terms", "digest")) == LEAVES[name].mask_key
    )


@pytest.mark.parametrize("name", PARTIES)
def test_self_masks_are_the_known_ones(name: str) -> None:
    found = keys.self_mask(seed(name, "self_seed"), raw("cohort", "digest"), raw(name, "member"))
    assert found == raw(name, "self_mask")


@pytest.mark.parametrize(("own", "peer"), [("a", "b"), ("b", "a")])
def test_both_of_a_pair_derive_the_known_mask(own: str, peer: str) -> None:
    mask = keys.pair_mask(private(own), raw("cohort", "digest"), LEAVES[own], LEAVES[peer])
    assert mask == raw("pair_mask")


def test_a_mask_is_the_known_stream() -> None:
    total = np.zeros(4, dtype=np.uint32)
    Masker(4).add(total, raw("pair_mask"))
    assert total.tobytes() == raw("pair_stream")


@pytest.mark.parametrize(("sender", "receiver", "way"), [("a", "b", "there"), ("b", "a", "back")])
def test_sealed_shares_are_the_known_bytes_in_both_directions(
    sender: str, receiver: str, way: str
) -> None:
    secret = keys.agree(
        X25519PrivateKey.from_private_bytes(raw(sender, "seal_private")), LEAVES[receiver].seal_key
    )
    assert secret == raw("seal_agreed")
    between = raw("cohort", "digest"), LEAVES[sender], LEAVES[receiver]
    sealed = keys.seal(secret, *between, shares=raw("shares"))
    assert sealed == raw(f"sealed_{way}")
    assert keys.unseal(secret, *between, sealed=sealed) == raw("shares")


def test_what_one_sealed_does_not_open_as_what_the_other_did() -> None:
    between = raw("cohort", "digest"), LEAVES["b"], LEAVES["a"]
    with pytest.raises(SealBroken):
        keys.unseal(raw("seal_agreed"), *between, sealed=raw("sealed_there"))


@pytest.mark.parametrize("name", PARTIES)
def test_signatures_are_the_known_ones(name: str) -> None:
    identity = Identity(Ed25519PrivateKey.from_private_bytes(raw(name, "identity")))
    assert identity.public == raw(name, "member")
    assert identity.sign(announced(TERMS, LEAVES[name])) == raw(name, "keys_signature")
    vouched = identity.sign(agreed(COHORT, raw(name, "survivors")))
    assert vouched == raw(name, "survivors_signature")


def test_survivors_confirmed_in_one_cohort_are_not_confirmed_in_another() -> None:
    identity = Identity(Ed25519PrivateKey.from_private_bytes(raw("a", "identity")))
    survivors = raw("a", "survivors")
    vouched = identity.sign(agreed(COHORT, survivors))
    check_signature(identity.public, vouched, agreed(COHORT, survivors))
    elsewhere = Cohort.of(TERMS, 5, bytes(32), raw("cohort", "present"))
    with pytest.raises(SignatureInvalid):
        check_signature(identity.public, vouched, agreed(elsewhere, survivors))


def test_a_name_has_the_known_member() -> None:
    assert Named("hospital").member == raw("named", "member")


def other(value: bytes) -> bytes:
    return bytes([value[0] ^ 1]) + value[1:]


def of_pair(cohort: bytes) -> bytes:
    return keys.pair_mask(private("a"), cohort, LEAVES["a"], LEAVES["b"])


def of_self(cohort: bytes) -> bytes:
    return keys.self_mask(seed("a", "self_seed"), cohort, raw("a", "member"))


def of_seal(cohort: bytes) -> bytes:
    return keys.seal(raw("seal_agreed"), cohort, LEAVES["a"], LEAVES["b"], shares=raw("shares"))


def of_mask_key(terms: bytes) -> bytes:
    return keys.mask_public(seed("a", "mask_seed"), terms)


def of_commitment(terms: bytes) -> bytes:
    return keys.commit(seed("a", "self_seed"), terms)


@pytest.mark.parametrize("derive", [of_pair, of_self, of_seal, of_mask_key, of_commitment])
def test_what_is_derived_in_one_round_serves_in_no_other(
    derive: Callable[[bytes], bytes],
) -> None:
    round_ = raw("cohort", "digest")
    assert derive(round_) == derive(round_)
    assert derive(round_) != derive(other(round_))


@pytest.mark.parametrize("is_pinned", [False, True])
def test_no_two_keys_of_a_round_are_equal(monkeypatch: pytest.MonkeyPatch, is_pinned: bool) -> None:
    """With n clients: n (n - 1) seals, each of one plaintext; n + n (n - 1) / 2 streams."""
    sealing: list[bytes] = []
    streams: list[bytes] = []

    class Recording:
        def __init__(self, key: bytes) -> None:
            self._key, self._box = key, ChaCha20Poly1305(key)

        def encrypt(self, nonce: bytes, data: bytes, bound: bytes) -> bytes:
            sealing.append(self._key + nonce)
            return self._box.encrypt(nonce, data, bound)

        def decrypt(self, nonce: bytes, data: bytes, bound: bytes) -> bytes:
            return self._box.decrypt(nonce, data, bound)

    monkeypatch.setattr(keys, "ChaCha20Poly1305", Recording)
    fill = Masker._fill

    def recording_fill(self: Masker, key: bytes) -> None:
        streams.append(key)
        fill(self, key)

    monkeypatch.setattr(Masker, "_fill", recording_fill)
    federation = Federation.of(5, is_pinned=is_pinned)
    secrets = [client._secrets for client in federation.clients.values()]
    federation.masked()
    assert len(sealing) == len(set(sealing)) == 5 * 4
    # Each pair's stream is drawn by both of them, a client's own by itself.
    times = Counter(Counter(streams).values())
    assert times == {1: 5, 2: 10}
    drawn = [
        part.to_bytes(32, "little") for own in secrets for part in (own.mask_seed, own.self_seed)
    ] + [own.seal_private for own in secrets]
    everything = [*drawn, *set(streams), *(key[:32] for key in sealing)]
    assert len(set(everything)) == len(everything) == 3 * 5 + 15 + 20
