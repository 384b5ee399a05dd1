"""Who takes part: pinned Ed25519 identities, or names that anybody may claim."""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from fedassay.errors import FileInvalid, KeyInvalid, SettingInvalid, SignatureInvalid
from fedassay.files import PUBLIC, Fields, canonical, check_format, read_json, write_json

MEMBER_BYTES = 32
SIGNATURE_BYTES = 64
ROSTER_FORMAT = "fedassay.roster/1"
_MAX_KEY_FILE = 4096


@dataclass(frozen=True, slots=True)
class Identity:
    """A site's long-term signing key; it signs, and never leaves the site."""

    _private: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def generate(cls) -> "Identity":
        """Draw a new key from the system."""
        return cls(Ed25519PrivateKey.generate())

    @property
    def public(self) -> bytes:
        """The 32 bytes that a roster lists."""
        return self._private.public_key().public_bytes_raw()

    def sign(self, content: bytes) -> bytes:
        """Sign bytes that begin with what they are for."""
        return self._private.sign(content)

    def save(self, path: Path) -> None:
        """Write a new PEM file that only its owner may read; an existing one stays."""
        pem = self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as stream:
                stream.write(pem)
        except OSError as error:
            raise FileInvalid(
                f"{path}: cannot be written ({error.strerror}). Choose a new file in a folder "
                "you may write to."
            ) from error

    @classmethod
    def load(cls, path: Path) -> "Identity":
        """Read a PEM file."""
        try:
            with path.open("rb") as stream:
                key = load_pem_private_key(stream.read(_MAX_KEY_FILE), password=None)
        except OSError as error:
            raise FileInvalid(
                f"{path}: cannot be read ({error.strerror}). Check the path."
            ) from error
        except (ValueError, TypeError) as error:
            raise FileInvalid(f"{path}: not an Ed25519 key in PEM without password.") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise FileInvalid(f"{path}: expected an Ed25519 key; found another kind.")
        return cls(key)


@dataclass(frozen=True, slots=True)
class Roster:
    """The identities that may take part, in the order of the file that all sites hold."""

    names: tuple[str, ...]
    keys: tuple[bytes, ...]
    digest: bytes = field(init=False, repr=False, compare=False)
    _places: dict[bytes, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(set(self.keys)) != len(self.keys) or len(set(self.names)) != len(self.names):
            raise SettingInvalid("every name and every key stands once in a roster; one is twice.")
        if len(self.names) != len(self.keys) or any(len(k) != MEMBER_BYTES for k in self.keys):
            raise SettingInvalid("a roster has one key of 32 bytes for each name.")
        digest = hashlib.sha256(b"fedassay secagg roster" + canonical(self.to_json())).digest()
        object.__setattr__(self, "digest", digest)
        places = {key: place for place, key in enumerate(self.keys)}
        object.__setattr__(self, "_places", places)

    @classmethod
    def of(cls, members: Iterable[tuple[str, bytes]]) -> "Roster":
        """A roster from names and public keys."""
        listed = tuple(members)
        return cls(tuple(name for name, _ in listed), tuple(key for _, key in listed))

    def index(self, member: bytes) -> int:
        """Where a key stands, or `KeyInvalid`."""
        if member not in self._places:
            raise KeyInvalid(
                f"only pinned identities take part; {member.hex()[:12]} is not in the roster. "
                "Add its key to the roster file of every site."
            )
        return self._places[member]

    def to_json(self) -> dict[str, object]:
        """The content that the digest is made of."""
        members = [
            {"name": name, "key": key.hex()}
            for name, key in zip(self.names, self.keys, strict=True)
        ]
        return {"format": ROSTER_FORMAT, "members": members}

    @classmethod
    def from_json(cls, content: object, *, where: str = "roster") -> "Roster":
        """Rebuild a roster from untrusted JSON."""
        fields = Fields(check_format(content, ROSTER_FORMAT, where), where)
        fields.only("format", "members")
        raw = fields.get("members")
        if not isinstance(raw, list) or not 1 <= len(raw) <= 2**16:
            raise FileInvalid(f'{where}: "members" must be a list of names and keys.')
        members = []
        for item in raw:
            inner = Fields(item, f"{where}, member")
            inner.only("name", "key")
            members.append((inner.text("name"), _key(inner.text("key"), where)))
        try:
            return cls.of(members)
        except SettingInvalid as error:
            raise FileInvalid(f"{where}: {error}") from error

    def save(self, path: Path) -> None:
        """Write the roster file, which everybody may read."""
        write_json(path, self.to_json(), mode=PUBLIC)

    @classmethod
    def load(cls, path: Path) -> "Roster":
        """Read a roster file."""
        return cls.from_json(read_json(path, ROSTER_FORMAT), where=str(path))


@dataclass(frozen=True, slots=True)
class Named:
    """A client that anybody could pretend to be."""

    name: str

    @property
    def member(self) -> bytes:
        """The id under which it takes part."""
        return hashlib.sha256(b"fedassay secagg name" + self.name.encode()).digest()


@dataclass(frozen=True, slots=True)
class Pinned:
    """A client known to the others by its key."""

    identity: Identity
    roster: Roster

    @property
    def member(self) -> bytes:
        """The id under which it takes part."""
        return self.identity.public


def check_signature(member: bytes, signature: bytes, content: bytes) -> None:
    """Raise `SignatureInvalid` unless a member signed exactly this."""
    try:
        Ed25519PublicKey.from_public_bytes(member).verify(signature, content)
    except (InvalidSignature, ValueError):
        raise SignatureInvalid(
            f"a message must be signed by its pinned identity; {member.hex()[:12]} did not sign "
            "this one. Somebody altered it, or the roster is out of date."
        ) from None


def _key(text: str, where: str) -> bytes:
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != MEMBER_BYTES or found.hex() != text:
        raise FileInvalid(f"{where}: a key is 64 lower-case hexadecimal digits.")
    return found
