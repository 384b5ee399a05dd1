"""Parts of a tally that is still being made, so that a killed run goes on where it was.

Beside `study.tally` the folder `study.tally.parts` holds, for every few million reports, a tally
file of them alone and a note of what it follows and how far each report file was read. A part
is there when its note is. Once the whole tally is written the folder goes.

Nothing is lost and nothing counted twice: a part is used only if it follows the tally or the
part before it, by their checksums, and if every file that it read is given again, unchanged. In
any other case it is dropped and its files are read again; ids tell what is counted already.
"""

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from fedassay.engines.bulk_tally import BulkBuilder
from fedassay.errors import FedassayError, FileInvalid
from fedassay.files import LARGEST_SAFE_INTEGER, Fields, read_json, write_json
from fedassay.report_ids import ReportIds
from fedassay.tally import Tally
from fedassay.tally_file import KeptTally, file_digest

PART_FORMAT = "fedassay.tally-part/1"
REPORTS_PER_PART = 2**22
_MOST_FILES = 2**20
_WHOLE = -1
# A part, its note, or a draft of one of them that a kill left.
_PART_FILE = re.compile(r"\d{6}\.(tally|json)|\.\d{6}\.(tally|json)\.[0-9a-f]+\.part")


@dataclass(slots=True)
class Collected:
    """What became of report files."""

    counted: int = 0
    """Reports that are new in the tally."""
    already_there: int = 0
    """Reports that the tally had: files sent twice, or given again."""
    rejected: int = 0
    """Files or blocks that must not be counted."""
    complaints: list[str] = field(default_factory=list)
    """What is wrong with them: one line for each file and kind of error."""
    resumed: int = 0
    """Reports that an interrupted run had counted before; they are among `counted`."""


class Unfinished:
    """The work of a run that adds reports to a tally file."""

    def __init__(self, tally: Path, builder: BulkBuilder, *, every: int = REPORTS_PER_PART) -> None:
        self.folder = tally.with_name(f"{tally.name}.parts")
        self._builder = builder
        self._every = every
        self._follows = file_digest(tally) if tally.exists() else ""
        self._parts = 0
        self._read: dict[str, int] = {}
        self._since: dict[str, int] = {}
        self._states: dict[str, str] = {}
        self._ids: list[npt.NDArray[np.bytes_]] = []
        self._sums = builder.sums()

    def resume(self, files: Iterable[Path], collected: Collected) -> None:
        """Count what an interrupted run counted of these files, as far as that is certain."""
        given = {_name(path): path for path in files}
        before = self._builder.reports
        while self._take(self._parts + 1, given, collected):
            self._parts += 1
        self._sums = self._builder.sums()
        collected.resumed = self._builder.reports - before

    def opened(self, path: Path, stream: BinaryIO) -> int:
        """Remember a file as it is now; how many of its bytes are counted already."""
        self._states[_name(path)] = _state(os.fstat(stream.fileno()))
        return self._read.get(_name(path), 0)

    def is_read(self, path: Path) -> bool:
        """Whether nothing of a file is left to read."""
        return self._read.get(_name(path)) == _WHOLE

    def counted(self, ids: npt.NDArray[np.bytes_]) -> None:
        """Remember that these reports are new."""
        self._ids.append(ids)

    def read_to(self, path: Path, offset: int, collected: Collected) -> None:
        """Remember how far a file was read; write a part when enough has come together."""
        self._since[_name(path)] = offset
        reports = sum(self._builder.sums()[0]) - sum(self._sums[0])
        if reports >= self._every:
            self._write(collected)

    def read_whole(self, path: Path, collected: Collected) -> None:
        """Remember that nothing of a file is left to read."""
        self.read_to(path, _WHOLE, collected)

    def finish(self) -> None:
        """Forget the parts, once the whole tally is written."""
        if self.folder.is_dir():
            for item in self.folder.iterdir():
                if _PART_FILE.fullmatch(item.name):
                    item.unlink()
            with suppress(OSError):
                self.folder.rmdir()

    def _write(self, collected: Collected) -> None:
        reports, counters = self._builder.sums()
        survey = self._builder.survey
        part = Tally(
            survey.fingerprint,
            tuple(now - then for now, then in zip(reports, self._sums[0], strict=True)),
            counters - self._sums[1],
            ReportIds.of([ids.tobytes() for ids in self._ids]),
        )
        self.folder.mkdir(mode=0o700, exist_ok=True)
        tally, note = self._paths(self._parts + 1)
        KeptTally(survey, part).save(tally)
        digest = file_digest(tally)
        write_json(
            note,
            {
                "format": PART_FORMAT,
                "follows": self._follows,
                "tally": digest,
                "files": [
                    [name, self._states.get(name, ""), at] for name, at in self._since.items()
                ],
                "already_there": collected.already_there,
                "rejected": collected.rejected,
                "complaints": collected.complaints,
            },
        )
        self._parts += 1
        self._follows = digest
        self._read |= self._since
        self._since, self._ids, self._sums = {}, [], (reports, counters)

    def _take(self, number: int, given: Mapping[str, Path], collected: Collected) -> bool:
        """Count one part, unless it does not fit; then nothing changes."""
        tally, note = self._paths(number)
        try:
            part = _Note.load(note)
            kept = KeptTally.load(tally)
            fits = (
                part.follows == self._follows
                and part.tally == file_digest(tally)
                and all(
                    name in given and state == _state(given[name].stat())
                    for name, state, _ in part.files
                )
            )
            if not fits:
                return False
            self._builder.add_tally(kept.tally)
        except (FedassayError, OSError):
            return False
        self._follows = part.tally
        self._read |= {name: at for name, _, at in part.files}
        collected.already_there, collected.rejected = part.already_there, part.rejected
        collected.complaints = list(part.complaints)
        return True

    def _paths(self, number: int) -> tuple[Path, Path]:
        return self.folder / f"{number:06}.tally", self.folder / f"{number:06}.json"


@dataclass(frozen=True, slots=True)
class _Note:
    """What a part follows, and what was read for it."""

    follows: str
    tally: str
    files: list[tuple[str, str, int]]
    already_there: int
    rejected: int
    complaints: list[str]

    @classmethod
    def load(cls, path: Path) -> "_Note":
        where = str(path)
        fields = Fields(read_json(path, PART_FORMAT), where)
        fields.only(
            "format", "follows", "tally", "files", "already_there", "rejected", "complaints"
        )
        files = fields.get("files")
        shaped = isinstance(files, list) and len(files) <= _MOST_FILES
        for item in files if shaped else ():
            shaped &= isinstance(item, list) and [type(part) for part in item] == [str, str, int]
        if not shaped:
            raise FileInvalid(
                f'{where}: "files" lists names, states and offsets; found something else. Delete '
                "the folder that it is in."
            )
        return cls(
            fields.text("follows"),
            fields.text("tally"),
            [(name, state, at) for name, state, at in files],
            fields.integer("already_there", 0, LARGEST_SAFE_INTEGER),
            fields.integer("rejected", 0, LARGEST_SAFE_INTEGER),
            fields.texts("complaints", _MOST_FILES),
        )


def _name(path: Path) -> str:
    return str(path.absolute())


def _state(now: os.stat_result) -> str:
    """What changes when a file does."""
    return f"{now.st_size} {now.st_mtime_ns} {now.st_ino}"
