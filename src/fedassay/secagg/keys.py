"""Keys of one round: drawn fresh, derived with everything that the round is bound to."""

import hashlib
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fedassay.errors import KeyInvalid, SealBroken
from fedassay.randomness import Randomness
from fedassay.secagg.shamir import ELEMENT_BYTES, draw_element

KEY_BYTES = 32
LEAF_BYTES = 4 * KEY_BYTES
SHARES_BYTES = 2 * ELEMENT_BYTES
SEALED_BYTES = SHARES_BYTES + 16
_PURPOSE = b"fedassay secagg 1 "
_PROBE = X25519PrivateKey.from_private_bytes(bytes(KEY_BYTES))


@dataclass(frozen=True, slots=True)
class Leaf:
    """What a client announces: its id, its two public keys, and what its self-mask will be."""

    member: bytes
    mask_key: bytes
    seal_key: bytes
    commitment: bytes
    """A hash of the self-mask seed, by which the server knows it when it is put together."""

    def to_bytes(self) -> bytes:
        """128 bytes."""
        return self.member + self.mask_key + self.seal_key + self.commitment

    @classmethod
    def from_bytes(cls, data: bytes) -> "Leaf":
        """Cut 128 bytes into four."""
        return cls(*(data[i : i + KEY_BYTES] for i in range(0, LEAF_BYTES, KEY_BYTES)))


@dataclass(frozen=True, slots=True)
class Secrets:
    """A client's secrets of one round.

    `mask_seed` and `self_seed` are field elements, so that Shamir's scheme shares them as
    they are; the X25519 key and the stream's key are derived from them.
    """

    mask_seed: int = field(repr=False)
    self_seed: int = field(repr=False)
    seal_private: bytes = field(repr=False)

    @classmethod
    def draw(cls, randomness: Randomness) -> "Secrets":
        """Fresh secrets."""
        seal_private = randomness.bytes(KEY_BYTES)
        return cls(draw_element(randomness), draw_element(randomness), seal_private)

    def leaf(self, member: bytes, terms: bytes) -> Leaf:
        """The public side."""
        return Leaf(
            member,
            mask_public(self.mask_seed, terms),
            _public(X25519PrivateKey.from_private_bytes(self.seal_private)),
            commit(self.self_seed, terms),
        )


def mask_private(mask_seed: int, terms: bytes) -> X25519PrivateKey:
    """The key pair's private half for pair masks."""
    seed = mask_seed.to_bytes(ELEMENT_BYTES, "little")
    return X25519PrivateKey.from_private_bytes(_derive(seed, b"mask key", terms))


def mask_public(mask_seed: int, terms: bytes) -> bytes:
    """The public half."""
    return _public(mask_private(mask_seed, terms))


def commit(self_seed: int, terms: bytes) -> bytes:
    """What a client announces of its self-mask seed; the seed is uniform, so this hides it."""
    seed = self_seed.to_bytes(ELEMENT_BYTES, "little")
    return hashlib.sha256(_PURPOSE + b"commitment" + terms + seed).digest()


def self_mask(self_seed: int, cohort: bytes, member: bytes) -> bytes:
    """The key of a client's own stream."""
    return _derive(self_seed.to_bytes(ELEMENT_BYTES, "little"), b"self", cohort, member)


def pair_mask(mine: X25519PrivateKey, cohort: bytes, own: Leaf, peer: Leaf) -> bytes:
    """The key of the stream that one of a pair adds and the other takes away."""
    first, second = sorted((own.member, peer.member))
    return _derive(agree(mine, peer.mask_key), b"pair", cohort, first, second)


def seal(agreed: bytes, cohort: bytes, sender: Leaf, receiver: Leaf, *, shares: bytes) -> bytes:
    """Close two shares so that only their holder opens them."""
    box, bound = _box(agreed, cohort, sender, receiver)
    return box.encrypt(bytes(12), shares, bound)


def unseal(agreed: bytes, cohort: bytes, sender: Leaf, receiver: Leaf, *, sealed: bytes) -> bytes:
    """Open what a peer sealed for this client in this round."""
    box, bound = _box(agreed, cohort, sender, receiver)
    try:
        return box.decrypt(bytes(12), sealed, bound)
    except InvalidTag:
        raise SealBroken(
            f"a sealed share from {sender.member.hex()[:12]} must open; it was altered, or is for "
            "another client or round. This client leaves the round; start a new one."
        ) from None


def agree(mine: X25519PrivateKey, other: bytes) -> bytes:
    """The secret that two X25519 keys share, or `KeyInvalid` when everybody would know it."""
    try:
        return mine.exchange(X25519PublicKey.from_public_bytes(other))
    except ValueError:
        raise KeyInvalid(
            "a public key must not be of low order, or everybody would know the secret; found "
            "one that is. The client that sent it is broken or hostile."
        ) from None


def check_point(public: bytes) -> None:
    """Raise `KeyInvalid` unless any key of ours shares a secret with this one."""
    agree(_PROBE, public)


def _box(
    agreed: bytes, cohort: bytes, sender: Leaf, receiver: Leaf
) -> tuple[ChaCha20Poly1305, bytes]:
    # One key for each sender, receiver and round, for one plaintext: the nonce may be zero.
    direction = sender.member + receiver.member
    key = _derive(agreed, b"seal", cohort, direction)
    return ChaCha20Poly1305(key), _PURPOSE + cohort + direction


def _public(private: X25519PrivateKey) -> bytes:
    return private.public_key().public_bytes_raw()


def _derive(secret: bytes, purpose: bytes, *bound: bytes) -> bytes:
    # Each bound value has 32 bytes, so that their concatenation is unambiguous.
    info = _PURPOSE + purpose + b"\x00" + b"".join(bound)
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(secret)
