"""Reports and tallies as files: a federation over any transport."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Protocol

import numpy as np

from fedassay.client import Account, Answer, ClientPolicy, answer_counts
from fedassay.engines.bulk_tally import BulkBuilder, blocks_of
from fedassay.engines.single_reports import CHUNK_BYTES, SingleReports, single_reports
from fedassay.engines.unfinished import Collected, Unfinished
from fedassay.errors import (
    CountOverflow,
    FedassayError,
    FileInvalid,
    ReportDuplicate,
    ReportMalformed,
    SettingInvalid,
)
from fedassay.files import write_whole
from fedassay.ledger.account import TableAccount
from fedassay.mechanisms import Privacy
from fedassay.patient_rows import limits_patients
from fedassay.randomness import Randomness
from fedassay.report_ids import REPORT_ID_BYTES
from fedassay.sites.moment_words import moment_words
from fedassay.survey import Survey
from fedassay.tables.columns import columns_of_pair
from fedassay.tables.counts_file import read_counts
from fedassay.tables.reading import Columns, Progress, count_patients_file, count_survey_file
from fedassay.tables.split_rows import count_split_file, splits_rows
from fedassay.tally import Tally, TallyBuilder
from fedassay.wire import Message, messages

READ_BYTES = CHUNK_BYTES


def answer_file(
    survey: Survey,
    path: Path,
    columns: Columns,
    *,
    randomness: Randomness,
    policy: ClientPolicy,
    client_id: str | None = None,
    account: Account | None = None,
    progress: Progress | None = None,
    counted: Progress | None = None,
) -> Answer:
    """Answer a survey from a table of any size, as one client.

    Where patients are protected, `counted` is told how many rows were left to count: that stays
    with the client.
    """
    policy.check(survey)
    columns = columns_of_pair(survey, columns)
    if splits_rows(survey):
        client_id = _named(client_id, account)
        counts, table = count_split_file(path, columns, survey, client_id, progress=progress)
        if isinstance(account, TableAccount):
            account = account.of_table(table)
    elif limits_patients(survey):
        counts, kept = count_patients_file(
            path, columns, survey, randomness=randomness, progress=progress
        )
        if counted is not None:
            counted(kept)
    else:
        counts = count_survey_file(path, columns, survey, progress=progress)
    return answer_counts(
        survey,
        counts,
        randomness=randomness,
        policy=policy,
        client_id=client_id,
        account=account,
        rows_limited=True,
        moments=moment_words,
    )


def answer_counts_file(
    survey: Survey,
    path: Path,
    *,
    randomness: Randomness,
    policy: ClientPolicy,
    client_id: str | None = None,
    account: Account | None = None,
) -> tuple[Answer, int]:
    """Answer a survey from counts that a warehouse made, as one client; and how many rows they are.

    Policy, charge and noise are here: the warehouse sees no epsilon.
    """
    policy.check(survey)
    counts = read_counts(path, survey)
    made = answer_counts(
        survey,
        counts,
        randomness=randomness,
        policy=policy,
        client_id=client_id,
        account=account,
        moments=moment_words,
    )
    return made, int(counts.sum())


def _named(client_id: str | None, account: Account | None) -> str:
    """The id by which a client's rows are divided between two surveys."""
    if client_id is None and isinstance(account, TableAccount):
        client_id = account.part.data
    if client_id is None:
        raise SettingInvalid(
            "under local privacy each row answers one of two surveys, by its client's id and its "
            "number; found no id. Pass client_id (--client-id), the same for both."
        )
    return client_id


def write_answer(answer: Answer, path: Path) -> int:
    """Write an answer's bytes, all or none; returns how many."""
    return write_whole(path, answer.to_bytes())


def read_messages(path: Path, *surveys: Survey) -> Iterator[Message]:
    """Read a report file, message by message; each size is checked before it is read."""
    with _opened(path) as stream:
        yield from messages(stream, *surveys)


def read_singles(path: Path, survey: Survey) -> Iterator[SingleReports | Message]:
    """Read a file of locally private reports, those that come one to a message many at once."""
    with _opened(path) as stream:
        for found, _ in single_reports(stream, survey, chunk_bytes=READ_BYTES):
            yield found


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """A report file to read from; an empty one, or one that cannot be read, raises."""
    try:
        with path.open("rb") as stream:
            if not stream.peek(1):
                raise ReportMalformed(
                    "a report file holds at least one report; this one is empty. "
                    "Ask the client to send it again."
                )
            yield stream
    except OSError as error:
        raise FileInvalid(f"cannot be read ({error.strerror}). Check the path.") from error


def report_files(paths: Iterable[Path]) -> list[Path]:
    """Files as given, and those inside folders, in order."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(item for item in path.rglob("*") if item.is_file())
        else:
            found.append(path)
    return found


class Builder(Protocol):
    """What adds reports up: of one survey, or of all parts of a question."""

    @property
    def surveys(self) -> tuple[Survey, ...]:
        """The surveys that reports may answer."""
        ...

    @property
    def reports(self) -> int:
        """How many were counted so far."""
        ...

    def add(self, report: Message, *, name: str | None = None) -> None:
        """Count one; a refused one changes nothing."""
        ...


def collect(
    builder: Builder,
    paths: Iterable[Path],
    *,
    progress: Progress | None = None,
    unfinished: Unfinished | None = None,
) -> Collected:
    """Add every message of every file; a bad one is named and left out, the others count.

    Single reports under local privacy are added many at once to a `BulkBuilder`; with
    `unfinished` such a run goes on where an earlier one was killed.
    """
    collected = Collected()
    before = builder.reports
    files = list(paths)
    if unfinished is not None:
        unfinished.resume(files, collected)
    for path, name in zip(files, site_names(files), strict=True):
        errors: dict[str, tuple[str, int]] = {}
        is_read = unfinished is not None and unfinished.is_read(path)
        if is_read:
            added: Iterator[FedassayError] = iter(())
        elif isinstance(builder, BulkBuilder) and builder.survey.privacy is Privacy.LOCAL:
            added = _add_local_file(builder, path, collected, unfinished)
        else:
            added = _add_file(builder, path, name, collected)
        for error in added:
            kind = type(error).__name__
            first, times = errors.get(kind, (str(error), 0))
            errors[kind] = (first, times + 1)
        for kind, (first, times) in errors.items():
            collected.rejected += times
            more = "" if times == 1 else f" So it is with {times:,} blocks of this file."
            collected.complaints.append(f"{path}: {kind}: {first}{more}")
        if unfinished is not None and not is_read:
            unfinished.read_whole(path, collected)
        if progress is not None:
            progress(1)
    collected.counted = builder.reports - before
    return collected


def site_names(paths: Sequence[Path]) -> list[str]:
    """What the sites are called that sent these files: as the file, or its folder too.

    >>> site_names([Path("in/north.fa"), Path("in/south.fa")])
    ['north', 'south']
    >>> site_names([Path("north/report.fa"), Path("south/report.fa")])
    ['north/report', 'south/report']
    """
    times = Counter(path.stem for path in paths)
    return [
        path.stem if times[path.stem] == 1 else f"{path.parent.name}/{path.stem}" for path in paths
    ]


def _add_file(
    builder: Builder, path: Path, name: str, collected: Collected
) -> Iterator[FedassayError]:
    """Add what can be added, and yield what is wrong with the rest."""
    try:
        for message in read_messages(path, *builder.surveys):
            try:
                builder.add(message, name=name)
            except ReportDuplicate:
                collected.already_there += message.reports
            except FedassayError as error:
                yield error
    except FedassayError as error:
        yield error


def _add_local_file(
    builder: BulkBuilder, path: Path, collected: Collected, unfinished: Unfinished | None
) -> Iterator[FedassayError]:
    """The same under local privacy, where most messages hold one report each."""
    try:
        with _opened(path) as stream:
            at = 0 if unfinished is None else unfinished.opened(path, stream)
            stream.seek(at)
            is_sound = True
            for found, length in single_reports(stream, builder.survey, chunk_bytes=READ_BYTES):
                at += length
                for error in _add_local(builder, found, collected, unfinished):
                    is_sound = False
                    yield error
                if is_sound and unfinished is not None:
                    unfinished.read_to(path, at, collected)
    except FedassayError as error:
        yield error


def _add_local(
    builder: BulkBuilder,
    found: SingleReports | Message,
    collected: Collected,
    unfinished: Unfinished | None,
) -> Iterator[FedassayError]:
    """Add single reports all at once, or one message."""
    if isinstance(found, SingleReports):
        try:
            is_new = builder.add_singles(found)
        except CountOverflow:
            for block in blocks_of(found, builder.survey.fingerprint):
                yield from _add_local(builder, block, collected, unfinished)
            return
        ids = found.ids[is_new]
        collected.already_there += len(found) - len(ids)
    else:
        try:
            builder.add(found)
        except ReportDuplicate:
            collected.already_there += found.reports
            return
        except FedassayError as error:
            yield error
            return
        ids = np.frombuffer(found.report_id, f"S{REPORT_ID_BYTES}")
    if unfinished is not None:
        unfinished.counted(ids)


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """An engine: reports that arrived as files, or in folders of them.

    A bad, foreign or repeated report raises; `fedassay tally` names it and goes on.
    """

    paths: Sequence[Path]

    def tally(self, survey: Survey) -> Tally:
        """Add up every report of every file."""
        builder = TallyBuilder(Tally.zero(survey), survey)
        files = report_files(self.paths)
        for path, name in zip(files, site_names(files), strict=True):
            for message in read_messages(path, survey):
                builder.add(message, name=name)
        return builder.tally()
