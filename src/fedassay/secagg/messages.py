"""The messages of a round, and their bytes (docs/formats.md).

Every message begins with "FASA", version 1, its kind, two zeros and the digest of the terms.
What follows has a length that terms and cohort decide, so that a size is checked before
anything is allocated. Bits are packed from the least significant.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from fedassay.errors import CohortTooSmall, MessageMalformed, MessageTooLarge, RoundMismatch
from fedassay.secagg.graph import BoolArray
from fedassay.secagg.identity import SIGNATURE_BYTES
from fedassay.secagg.keys import LEAF_BYTES, SEALED_BYTES, Leaf
from fedassay.secagg.masks import WORD_BYTES, WordArray
from fedassay.secagg.merkle import NODE_BYTES
from fedassay.secagg.shamir import ELEMENT_BYTES, PRIME
from fedassay.secagg.terms import MAX_COHORT, Terms

_HEADER = struct.Struct("<4sBB2x32s")
_ROSTER = struct.Struct("<II32sI")
_MAGIC = b"FASA"
_VERSION = 1


class Kind(IntEnum):
    """Which message it is."""

    KEYS = 1
    ROSTER = 2
    SHARES = 3
    INBOX = 4
    MASKED = 5
    SURVIVORS = 6
    CONFIRM = 7
    UNMASK = 8
    REVEAL = 9


@dataclass(frozen=True, slots=True)
class Signed:
    """A client's announcement, signed where identities are pinned."""

    leaf: Leaf
    signature: bytes = b""


@dataclass(frozen=True, slots=True)
class RosterMessage:
    """The cohort as one client sees it: its neighbours, and a proof that all see the same."""

    clients: int
    rank: int
    root: bytes
    present: bytes
    """Which members of the pinned roster take part; empty where none is pinned."""
    peers: tuple[Signed, ...]
    proof: tuple[bytes, ...]


def encode_keys(terms: Terms, announced: Signed) -> bytes:
    """Stage 1, from the client."""
    return _framed(terms, Kind.KEYS, announced.leaf.to_bytes(), announced.signature)


def decode_keys(data: bytes, terms: Terms) -> Signed:
    """Stage 1, at the server."""
    return _signed(_body(data, terms, Kind.KEYS, _signed_bytes(terms)), terms)


def encode_roster(terms: Terms, roster: RosterMessage) -> bytes:
    """Stage 2, from the server."""
    head = _ROSTER.pack(roster.clients, roster.rank, roster.root, len(roster.proof))
    peers = (peer.leaf.to_bytes() + peer.signature for peer in roster.peers)
    return _framed(terms, Kind.ROSTER, head, roster.present, *peers, *roster.proof)


def decode_roster(data: bytes, terms: Terms, members: int) -> RosterMessage:
    """Stage 2, at the client; `members` are those of the pinned roster, or 0."""
    present_bytes = bitmap_bytes(members)
    most = _ROSTER.size + present_bytes + MAX_COHORT * (_signed_bytes(terms) + NODE_BYTES)
    body = _body(data, terms, Kind.ROSTER, most, exact=False)
    if len(body) < _ROSTER.size:
        raise _cut_short(Kind.ROSTER)
    clients, rank, root, nodes = _ROSTER.unpack_from(body)
    if clients < terms.minimum:
        raise CohortTooSmall(
            f"this round needs {terms.minimum} clients; found {clients}. Wait for more."
        )
    if members and clients > members:
        raise MessageMalformed(
            f"a cohort is part of the pinned roster of {members}; this one declares {clients} "
            "clients, which cannot be."
        )
    if clients > MAX_COHORT or rank >= clients or nodes > len(body) // NODE_BYTES:
        raise MessageMalformed(
            f"a cohort has at most {MAX_COHORT} clients; this roster declares {clients} clients, "
            f"rank {rank} and {nodes} nodes, which cannot be."
        )
    step = _signed_bytes(terms)
    degree = terms.graph(clients).degree
    first = _ROSTER.size + present_bytes
    last = first + degree * step
    if len(body) != last + nodes * NODE_BYTES:
        raise _wrong_length(Kind.ROSTER, last + nodes * NODE_BYTES, len(body))
    return RosterMessage(
        clients,
        rank,
        root,
        body[_ROSTER.size : first],
        tuple(_signed(body[i : i + step], terms) for i in range(first, last, step)),
        tuple(body[i : i + NODE_BYTES] for i in range(last, len(body), NODE_BYTES)),
    )


def encode_shares(terms: Terms, sealed: Sequence[bytes]) -> bytes:
    """Stage 2, from the client: one sealed pair of shares for each neighbour, in order."""
    return _framed(terms, Kind.SHARES, *sealed)


def decode_shares(data: bytes, terms: Terms, degree: int) -> list[bytes]:
    """Stage 2, at the server."""
    return _cut(_body(data, terms, Kind.SHARES, degree * SEALED_BYTES), SEALED_BYTES)


def encode_inbox(terms: Terms, sealed: Sequence[bytes | None]) -> bytes:
    """Stage 3, from the server: what each neighbour sealed for the client, if it did."""
    given = [box for box in sealed if box is not None]
    return _framed(terms, Kind.INBOX, pack_bits([box is not None for box in sealed]), *given)


def decode_inbox(data: bytes, terms: Terms, degree: int) -> list[bytes | None]:
    """Stage 3, at the client."""
    flags = bitmap_bytes(degree)
    body = _body(data, terms, Kind.INBOX, flags + degree * SEALED_BYTES, exact=False)
    if len(body) < flags:
        raise _cut_short(Kind.INBOX)
    given = unpack_bits(body[:flags], degree)
    wanted = flags + int(given.sum()) * SEALED_BYTES
    if len(body) != wanted:
        raise _wrong_length(Kind.INBOX, wanted, len(body))
    boxes = iter(_cut(body[flags:], SEALED_BYTES))
    return [next(boxes) if is_given else None for is_given in given]


def encode_masked(terms: Terms, masked: WordArray) -> bytes:
    """Stage 3, from the client."""
    return _framed(terms, Kind.MASKED, masked.tobytes())


def decode_masked(data: bytes, terms: Terms) -> WordArray:
    """Stage 3, at the server."""
    body = _body(data, terms, Kind.MASKED, terms.length * WORD_BYTES)
    return np.frombuffer(body, dtype="<u4")


def encode_survivors(terms: Terms, survivors: BoolArray) -> bytes:
    """The survivor set, by rank, for clients to confirm."""
    return _framed(terms, Kind.SURVIVORS, pack_bits(survivors))


def decode_survivors(data: bytes, terms: Terms, clients: int) -> BoolArray:
    """The survivor set, at the client."""
    return unpack_bits(_body(data, terms, Kind.SURVIVORS, bitmap_bytes(clients)), clients)


def encode_confirm(terms: Terms, signature: bytes) -> bytes:
    """A client's signature of the survivor set."""
    return _framed(terms, Kind.CONFIRM, signature)


def decode_confirm(data: bytes, terms: Terms) -> bytes:
    """A client's signature, at the server."""
    return _body(data, terms, Kind.CONFIRM, SIGNATURE_BYTES)


def encode_unmask(
    terms: Terms, survivors: BoolArray, signatures: Sequence[bytes | None] = ()
) -> bytes:
    """Stage 4, from the server: the survivors, and who confirmed them where that is needed."""
    given = [signature for signature in signatures if signature is not None]
    signers = pack_bits([s is not None for s in signatures]) if signatures else b""
    return _framed(terms, Kind.UNMASK, pack_bits(survivors), signers, *given)


def decode_unmask(data: bytes, terms: Terms, clients: int) -> tuple[BoolArray, list[bytes | None]]:
    """Stage 4, at the client."""
    flags = bitmap_bytes(clients)
    if terms.roster is None:
        return unpack_bits(_body(data, terms, Kind.UNMASK, flags), clients), []
    most = 2 * flags + clients * SIGNATURE_BYTES
    body = _body(data, terms, Kind.UNMASK, most, exact=False)
    if len(body) < 2 * flags:
        raise _cut_short(Kind.UNMASK)
    survivors, signers = (
        unpack_bits(body[:flags], clients),
        unpack_bits(body[flags : 2 * flags], clients),
    )
    wanted = 2 * flags + int(signers.sum()) * SIGNATURE_BYTES
    if len(body) != wanted:
        raise _wrong_length(Kind.UNMASK, wanted, len(body))
    signatures = iter(_cut(body[2 * flags :], SIGNATURE_BYTES))
    return survivors, [next(signatures) if is_signer else None for is_signer in signers]


def encode_reveal(terms: Terms, shares: Sequence[int]) -> bytes:
    """Stage 4, from the client: one share for each neighbour that it heard from, in order."""
    return _framed(
        terms, Kind.REVEAL, *(share.to_bytes(ELEMENT_BYTES, "little") for share in shares)
    )


def decode_reveal(data: bytes, terms: Terms, count: int) -> list[int]:
    """Stage 4, at the server."""
    body = _body(data, terms, Kind.REVEAL, count * ELEMENT_BYTES)
    shares = [int.from_bytes(item, "little") for item in _cut(body, ELEMENT_BYTES)]
    if any(share >= PRIME for share in shares):
        raise MessageMalformed("a share is a number below the field's prime; found a larger one.")
    return shares


def bitmap_bytes(bits: int) -> int:
    """Bytes that hold so many bits."""
    return -(-bits // 8)


def pack_bits(bits: Sequence[bool] | BoolArray) -> bytes:
    """Booleans as bits."""
    return np.packbits(np.asarray(bits, dtype=np.bool_), bitorder="little").tobytes()


def unpack_bits(data: bytes, count: int) -> BoolArray:
    """Bits as booleans; those beyond the count must be zero."""
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little").astype(np.bool_)
    if bits[count:].any():
        raise MessageMalformed(
            f"there are {count} clients to speak of; found bits beyond them. "
            "Ask for the message again."
        )
    return bits[:count]


def _framed(terms: Terms, kind: Kind, *parts: bytes) -> bytes:
    return b"".join((_HEADER.pack(_MAGIC, _VERSION, kind, terms.digest), *parts))


def _body(data: bytes, terms: Terms, kind: Kind, most: int, *, exact: bool = True) -> bytes:
    """What follows the header, if that is as it must be."""
    if len(data) > _HEADER.size + most:
        raise MessageTooLarge(
            f"in this round the {kind.name.lower()} message has at most {_HEADER.size + most} "
            f"bytes; found {len(data)}."
        )
    if len(data) < _HEADER.size:
        raise _cut_short(kind)
    magic, version, found, digest = _HEADER.unpack_from(data)
    if magic != _MAGIC or data[6:8] != bytes(2):
        raise MessageMalformed("a message begins with FASA; this one does not.")
    if version != _VERSION:
        raise MessageMalformed(
            f"this fedassay speaks secure aggregation version {_VERSION}; found {version}. "
            "Use the same on both sides."
        )
    if found != kind:
        raise MessageMalformed(f"expected the {kind.name.lower()} message; found kind {found}.")
    if digest != terms.digest:
        raise RoundMismatch(
            f"this round's terms are {terms.digest.hex()[:12]}; the message belongs to "
            f"{digest.hex()[:12]}: another round, survey or minimum."
        )
    if exact and len(data) != _HEADER.size + most:
        raise _wrong_length(kind, most, len(data) - _HEADER.size)
    return data[_HEADER.size :]


def _signed(data: bytes, terms: Terms) -> Signed:
    return Signed(Leaf.from_bytes(data[:LEAF_BYTES]), data[LEAF_BYTES : _signed_bytes(terms)])


def _signed_bytes(terms: Terms) -> int:
    return LEAF_BYTES + (0 if terms.roster is None else SIGNATURE_BYTES)


def _cut(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


def _cut_short(kind: Kind) -> MessageMalformed:
    return MessageMalformed(f"the {kind.name.lower()} message was cut short. Ask for it again.")


def _wrong_length(kind: Kind, wanted: int, found: int) -> MessageMalformed:
    return MessageMalformed(
        f"this {kind.name.lower()} message must have {wanted} bytes after its header; found "
        f"{found}: it was cut or extended. Ask for it again."
    )
