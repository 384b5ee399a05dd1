"""A client's state between stages, as bytes that only it may read."""

import json
from dataclasses import dataclass, field
from enum import IntEnum

from fedassay.errors import FileInvalid, MessageMalformed
from fedassay.files import Fields, canonical, check_format
from fedassay.secagg.keys import LEAF_BYTES, SHARES_BYTES, Leaf, Secrets
from fedassay.secagg.shamir import ELEMENT_BYTES, PRIME
from fedassay.secagg.terms import MAX_COHORT, Terms

STATE_FORMAT = "fedassay.secagg-state/1"


class Stage(IntEnum):
    """How far a client has come: the last thing that it answered."""

    KEYS = 1
    SHARES = 2
    MASKED = 3
    CONFIRMED = 4
    UNMASKED = 5


@dataclass(frozen=True, slots=True)
class Seat:
    """A client's place in the cohort."""

    clients: int
    rank: int
    root: bytes
    present: bytes
    peers: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class ClientState:
    """Everything that a client must remember; replaced whole, never changed."""

    terms: Terms
    own: Leaf
    stage: Stage
    secrets: Secrets | None = field(repr=False)
    """None once they are spent."""
    seat: Seat | None = None
    held: tuple[bytes | None, ...] = field(default=(), repr=False)
    """The two shares that each neighbour entrusted to this client."""
    survivors: bytes | None = None
    """The one survivor set that this client goes by."""
    request: bytes = b""
    """Digest of the last request answered."""
    reply: bytes = field(default=b"", repr=False)

    def to_bytes(self) -> bytes:
        """A versioned JSON object; it holds secrets."""
        secrets, seat = self.secrets, self.seat
        return canonical(
            {
                "format": STATE_FORMAT,
                "terms": self.terms.to_bytes().hex(),
                "own": self.own.to_bytes().hex(),
                "stage": int(self.stage),
                "secrets": None
                if secrets is None
                else {
                    "mask_seed": _element(secrets.mask_seed),
                    "self_seed": _element(secrets.self_seed),
                    "seal_private": secrets.seal_private.hex(),
                },
                "seat": None
                if seat is None
                else {
                    "clients": seat.clients,
                    "rank": seat.rank,
                    "root": seat.root.hex(),
                    "present": seat.present.hex(),
                    "peers": b"".join(peer.to_bytes() for peer in seat.peers).hex(),
                },
                "held": [None if shares is None else shares.hex() for shares in self.held],
                "survivors": None if self.survivors is None else self.survivors.hex(),
                "request": self.request.hex(),
                "reply": self.reply.hex(),
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "ClientState":
        """Read what `to_bytes` wrote; anything else is a `FileInvalid`."""
        try:
            content = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise FileInvalid("a round's state is not JSON, or cut short.") from error
        fields = Fields(check_format(content, STATE_FORMAT, "round state"), "round state")
        fields.only(
            "format", "terms", "own", "stage", "secrets", "seat", "held", "survivors", "request",
            "reply",
        )  # fmt: skip
        survivors, held = fields.get("survivors"), fields.get("held")
        if not isinstance(held, list) or len(held) > MAX_COHORT:
            raise FileInvalid('round state: "held" must be a list.')
        try:
            terms = Terms.from_bytes(_hex(fields.get("terms")))
        except MessageMalformed as error:
            raise FileInvalid(f"round state: {error}") from error
        return cls(
            terms=terms,
            own=Leaf.from_bytes(_hex(fields.get("own"), LEAF_BYTES)),
            stage=Stage(fields.integer("stage", min(Stage), max(Stage))),
            secrets=_secrets(fields.get("secrets")),
            seat=_seat(fields.get("seat")),
            held=tuple(None if item is None else _hex(item, SHARES_BYTES) for item in held),
            survivors=None if survivors is None else _hex(survivors),
            request=_hex(fields.get("request")),
            reply=_hex(fields.get("reply")),
        )


def _secrets(content: object) -> Secrets | None:
    if content is None:
        return None
    fields = Fields(content, "round state, secrets")
    fields.only("mask_seed", "self_seed", "seal_private")
    mask_seed, self_seed = (
        int.from_bytes(_hex(fields.get(name), ELEMENT_BYTES), "little")
        for name in ("mask_seed", "self_seed")
    )
    if max(mask_seed, self_seed) >= PRIME:
        raise FileInvalid("round state: a seed lies outside the field.")
    return Secrets(mask_seed, self_seed, _hex(fields.get("seal_private"), 32))


def _seat(content: object) -> Seat | None:
    if content is None:
        return None
    fields = Fields(content, "round state, seat")
    fields.only("clients", "rank", "root", "present", "peers")
    clients = fields.integer("clients", 2, MAX_COHORT)
    peers = _hex(fields.get("peers"))
    if len(peers) % LEAF_BYTES:
        raise FileInvalid("round state: the peers are cut short.")
    leaves = (Leaf.from_bytes(peers[i : i + LEAF_BYTES]) for i in range(0, len(peers), LEAF_BYTES))
    return Seat(
        clients,
        fields.integer("rank", 0, clients - 1),
        _hex(fields.get("root"), 32),
        _hex(fields.get("present")),
        tuple(leaves),
    )


def _element(value: int) -> str:
    return value.to_bytes(ELEMENT_BYTES, "little").hex()


def _hex(value: object, length: int | None = None) -> bytes:
    try:
        found = bytes.fromhex(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None or (length is not None and len(found) != length):
        raise FileInvalid("round state: a field must hold hexadecimal digits of its length.")
    return found
