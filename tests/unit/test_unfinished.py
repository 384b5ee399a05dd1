"""A run that ended early goes on where it was, and only where that is certain."""

import os
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path

import numpy as np
import pytest

from fedassay import Survey, Tally
from fedassay.engines import report_files
from fedassay.engines.bulk_tally import BulkBuilder
from fedassay.engines.report_files import collect
from fedassay.engines.single_reports import single_reports
from fedassay.engines.unfinished import Collected, Unfinished
from fedassay.errors import FileInvalid
from fedassay.files import read_object, write_json
from fedassay.mechanisms.base import Rows
from fedassay.tally_file import KeptTally, file_digest
from fedassay.wire import Block, encode
from tests.singles import as_bytes, made
from tests.surveys import local_survey

SURVEY = local_survey(cells=9, fanouts=(3, 3), kinds="grr oue")
SENT = made(SURVEY, 600)


class Stopped(Exception):
    """As if the process had been killed here."""


class Stopping(Unfinished):
    """Stops when so many parts are written."""

    stop_after: int | None = None

    def _write(self, collected: Collected) -> None:
        super()._write(collected)
        if self._parts == self.stop_after:
            raise Stopped


class Run:
    """Report files, and runs that collect them."""

    def __init__(self, folder: Path) -> None:
        self.inbox = folder / "inbox"
        self.inbox.mkdir()
        self.place = folder / "study.tally"
        self.parts = folder / "study.tally.parts"
        for name, blocks in (("a", SENT[:250]), ("b", SENT[250:400]), ("c", SENT[380:])):
            (self.inbox / name).write_bytes(as_bytes(blocks))

    def files(self) -> list[Path]:
        return sorted(self.inbox.iterdir())

    def collect(self, *, stop_after: int | None = None, every: int = 100) -> Collected:
        """Collect everything; or stop when so many parts are written."""
        kept = KeptTally.load(self.place) if self.place.exists() else KeptTally.empty(SURVEY)
        builder = BulkBuilder(kept.tally, SURVEY)
        unfinished = Stopping(self.place, builder, every=every)
        unfinished.stop_after = stop_after
        collected = collect(builder, self.files(), unfinished=unfinished)
        kept.holding(builder.tally()).save(self.place)
        unfinished.finish()
        return collected

    def stopped(self, after: int) -> None:
        with pytest.raises(Stopped):
            self.collect(stop_after=after)

    def tally(self) -> Tally:
        return KeptTally.load(self.place).tally


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(report_files, "READ_BYTES", 5000)
    return Run(tmp_path)


WHOLE = Tally.of(SURVEY, SENT)
OTHERS = Tally.of(SURVEY, made(SURVEY, 3, seed=5))


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_a_stopped_run_goes_on_and_comes_to_the_same_tally(run: Run, parts: int) -> None:
    run.stopped(parts)
    assert not run.place.exists()
    collected = run.collect()
    assert run.tally() == WHOLE
    assert collected.counted == 600
    assert collected.already_there == 20
    assert collected.resumed >= 100 * parts
    assert not run.parts.exists()


def test_a_run_stopped_again_and_again_ends(run: Run) -> None:
    for parts in (1, 2, 3):
        run.stopped(parts)
    assert run.collect().resumed >= 300
    assert run.tally() == WHOLE


def test_what_is_counted_is_not_read_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.stopped(3)
    starts = {}

    def noted(stream: BufferedReader, survey: Survey, **options: int) -> Iterator[object]:
        starts[Path(stream.name).name] = stream.tell()
        return single_reports(stream, survey, **options)

    monkeypatch.setattr(report_files, "single_reports", noted)
    run.collect()
    assert "a" not in starts
    assert starts["b"] > 0
    assert starts["c"] == 0


def other_file(run: Run) -> None:
    (run.inbox / "a").rename(run.inbox.parent / "elsewhere")


def replaced(run: Run) -> None:
    """The same size and time, another file."""
    known = (run.inbox / "a").stat()
    blocks = made(SURVEY, 250)[::-1]
    (run.inbox / "new").write_bytes(as_bytes(blocks))
    os.utime(run.inbox / "new", ns=(known.st_atime_ns, known.st_mtime_ns))
    (run.inbox / "new").replace(run.inbox / "a")


def grown(run: Run) -> None:
    with (run.inbox / "a").open("ab") as stream:
        stream.write(encode(made(SURVEY, 1, seed=9)[0]))


def another_tally(run: Run) -> None:
    KeptTally(SURVEY, OTHERS).save(run.place)


def damaged_part(run: Run) -> None:
    part = run.parts / "000001.tally"
    part.write_bytes(part.read_bytes()[:-1] + b"\0")


def another_part(run: Run) -> None:
    """A sound tally of the same survey, but not the one of the note."""
    KeptTally(SURVEY, Tally.of(SURVEY, SENT[:120])).save(run.parts / "000001.tally")


def lost_part(run: Run) -> None:
    (run.parts / "000001.json").unlink()


@pytest.mark.parametrize(
    "change",
    [other_file, replaced, grown, another_tally, damaged_part, another_part, lost_part],
)
def test_a_part_that_may_not_fit_is_read_again(run: Run, change: Callable[[Run], None]) -> None:
    run.stopped(3)
    change(run)
    expected = Tally.zero(SURVEY)
    if change is another_tally:
        expected = OTHERS
    fresh = BulkBuilder(expected, SURVEY)
    collect(fresh, run.files())
    assert run.collect().resumed == 0
    assert run.tally() == fresh.tally()
    assert not run.parts.exists()


def test_a_lost_part_in_the_middle_ends_what_is_taken_over(run: Run) -> None:
    run.stopped(3)
    (run.parts / "000002.json").unlink()
    assert 100 <= run.collect().resumed < 200
    assert run.tally() == WHOLE


def test_a_kill_after_the_tally_was_written_counts_nothing_twice(run: Run) -> None:
    run.stopped(2)
    builder = BulkBuilder(Tally.zero(SURVEY), SURVEY)
    collect(builder, run.files())
    KeptTally(SURVEY, builder.tally()).save(run.place)
    collected = run.collect()
    assert (collected.resumed, collected.counted, collected.already_there) == (0, 0, 620)
    assert run.tally() == WHOLE


def test_complaints_of_files_read_before_are_kept(run: Run) -> None:
    data = (run.inbox / "a").read_bytes()
    (run.inbox / "a").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    run.stopped(3)
    collected = run.collect()
    assert collected.resumed >= 300
    assert collected.rejected == 1
    assert [line.partition(": ")[0] for line in collected.complaints] == [str(run.inbox / "a")]
    assert run.tally() == Tally.of(SURVEY, [*SENT[:249], *SENT[250:]])
    assert not run.parts.exists()


def test_only_parts_are_deleted(run: Run) -> None:
    run.stopped(1)
    (run.parts / "mine.txt").write_text("keep me")
    run.collect()
    assert [item.name for item in run.parts.iterdir()] == ["mine.txt"]


def test_a_note_of_something_else_than_files_is_read_again(run: Run) -> None:
    for files in ("all", [["a", 1]], [["a", "state", "0"]], [["a", "state", 0, 0]]):
        run.stopped(2)
        note = run.parts / "000001.json"
        content = read_object(note)
        assert isinstance(content, dict)
        write_json(note, {**content, "files": files})
        assert run.collect().resumed == 0
        assert run.tally() == WHOLE
        run.place.unlink()


def test_sums_that_are_full_take_the_reports_for_which_there_is_room(run: Run) -> None:
    """One cell has room for one report more; five came for it, and five for another."""
    survey = local_survey(cells=9, fanouts=(3, 3), kinds="grr grr")
    full = np.zeros(survey.hierarchy.width, dtype=np.int64)
    place = survey.hierarchy.width - 2 * 9
    full[place] = 2**31 - 2
    sent = [
        Block(survey.fingerprint, bytes([number]) * 16, grr_row(number % 2), 1)
        for number in range(10)
    ]
    path = run.inbox / "full.fa"
    path.write_bytes(as_bytes(sent))
    builder = BulkBuilder(Tally(survey.fingerprint, (0, 0), full), survey)
    unfinished = Unfinished(run.place, builder, every=1)
    collected = collect(builder, [path], unfinished=unfinished)
    assert (collected.counted, collected.rejected) == (6, 4)
    (complaint,) = collected.complaints
    assert "CountOverflow" in complaint
    assert "So it is with 4 blocks of this file" in complaint
    counters = builder.tally().counters
    assert (counters[place], counters[place + 1]) == (2**31 - 1, 5)


def grr_row(value: int) -> Rows:
    return np.array([value], "<u4").view(np.uint8).reshape(1, 4)


def test_a_tally_that_cannot_be_read_has_no_digest(tmp_path: Path) -> None:
    with pytest.raises(FileInvalid, match=r"cannot be read \(.*\)\. Check the path"):
        file_digest(tmp_path)
    (tmp_path / "short").write_bytes(b"FA")
    with pytest.raises(FileInvalid, match=r"cannot be read"):
        file_digest(tmp_path / "short")
