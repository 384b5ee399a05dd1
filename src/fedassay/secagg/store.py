"""A client's rounds on disk: no decision is forgotten, no key used after an older copy.

For each round there is a state file and a marker. The marker says which state is the newest;
it is written after the state and before the answer leaves, both to the disk itself. A state
that is not the one the marker names is refused, and a round whose marker exists is never
begun again, so that keys serve once. Whoever restores state and markers together undoes
that: keep the folder out of backups.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fedassay.errors import FileInvalid, StateStale
from fedassay.files import Fields, read_json, write_whole
from fedassay.randomness import Randomness
from fedassay.secagg.client import SecAggClient
from fedassay.secagg.identity import Named, Pinned

MARKER_FORMAT = "fedassay.secagg-marker/1"
_MAX_STATE_BYTES = 2**30


@dataclass(frozen=True, slots=True)
class RoundStore:
    """A folder of rounds, one client's."""

    folder: Path

    def begin(self, client: SecAggClient) -> None:
        """Store a new round before its keys leave; one that was begun before is refused."""
        round_id = client.terms.round_id
        self._make_folder()
        with self._locked(round_id):
            if self._marker(round_id).exists():
                raise StateStale(
                    f"this client took part in round {round_id.hex()[:12]} before; a round is "
                    "taken part in once. Start a new round."
                )
            self._write(client, 1)

    @contextmanager
    def turn(
        self, round_id: bytes, member: Named | Pinned, *, randomness: Randomness
    ) -> Iterator[SecAggClient]:
        """Load a round, let it answer, and store it before the answer can leave.

        Nothing is stored when answering raises.
        """
        with self._locked(round_id):
            turns, state = self._read(round_id)
            client = SecAggClient.from_bytes(state, member, randomness=randomness)
            yield client
            if client.to_bytes() != state:
                self._write(client, turns + 1)

    def _read(self, round_id: bytes) -> tuple[int, bytes]:
        marker = Fields(read_json(self._marker(round_id), MARKER_FORMAT), "round marker")
        marker.only("format", "turns", "digest")
        turns = marker.integer("turns", 1, 2**31)
        path = self._state(round_id, turns)
        try:
            if path.stat().st_size > _MAX_STATE_BYTES:
                raise FileInvalid(f"{path}: too large for a round's state.")
            state = path.read_bytes()
        except OSError as error:
            raise StateStale(
                f"{path}: the newest state of this round is gone ({error.strerror}); an older one "
                "will not do. This client leaves the round."
            ) from error
        if hashlib.sha256(state).hexdigest() != marker.text("digest"):
            raise StateStale(
                f"{path}: this is not the state that was stored last, so that a key or a decision "
                "might be used twice. This client leaves the round."
            )
        return turns, state

    def _write(self, client: SecAggClient, turns: int) -> None:
        round_id, state = client.terms.round_id, client.to_bytes()
        _write_file(self._state(round_id, turns), state)
        digest = hashlib.sha256(state).hexdigest()
        marker = f'{{"format":"{MARKER_FORMAT}","turns":{turns},"digest":"{digest}"}}\n'
        _write_file(self._marker(round_id), marker.encode())
        self._state(round_id, turns - 1).unlink(missing_ok=True)

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(self.folder, error) from error

    @contextmanager
    def _locked(self, round_id: bytes) -> Iterator[None]:
        path = self.folder / f"{round_id.hex()}.lock"
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _state(self, round_id: bytes, turns: int) -> Path:
        return self.folder / f"{round_id.hex()}.{turns}.state"

    def _marker(self, round_id: bytes) -> Path:
        return self.folder / f"{round_id.hex()}.marker"


def _write_file(path: Path, content: bytes) -> None:
    """Write whole or not at all, to the disk and not only to its cache."""
    try:
        write_whole(path, content)
    except FileInvalid as error:
        cause = error.__cause__
        raise _unwritable(path, cause if isinstance(cause, OSError) else OSError()) from error


def _unwritable(path: Path, error: OSError) -> FileInvalid:
    return FileInvalid(
        f"{path}: cannot be written ({error.strerror}); a client that cannot remember what it "
        "gave must not answer. Choose a folder you may write to."
    )
