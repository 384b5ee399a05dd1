"""Reports and tallies as files: a federation over any transport."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedassay.client import Account, Answer, ClientPolicy, answer_counts
from fedassay.errors import FileInvalid, ReportMalformed
from fedassay.files import write_whole
from fedassay.randomness import Randomness
from fedassay.survey import Survey
from fedassay.tables.reading import Columns, Progress, count_file
from fedassay.tally import Tally
from fedassay.wire import Message, messages


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
) -> Answer:
    """Answer a survey from a table of any size, as one client."""
    policy.check(survey)
    counts = count_file(path, columns, survey.grid, progress=progress)
    return answer_counts(
        survey,
        counts,
        randomness=randomness,
        policy=policy,
        client_id=client_id,
        account=account,
    )


def write_answer(answer: Answer, path: Path) -> int:
    """Write an answer's bytes, all or none; returns how many."""
    return write_whole(path, answer.to_bytes())


def read_messages(path: Path, survey: Survey) -> Iterator[Message]:
    """Read a report file, message by message; each size is checked before it is read."""
    try:
        with path.open("rb") as stream:
            if not stream.peek(1):
                raise ReportMalformed(
                    "a report file holds at least one report; this one is empty. "
                    "Ask the client to send it again."
                )
            yield from messages(stream, survey)
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


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """An engine: reports that arrived as files, or in folders of them.

    A bad, foreign or repeated report raises; `fedassay tally` names it and goes on.
    """

    paths: Sequence[Path]

    def tally(self, survey: Survey) -> Tally:
        """Add up every report of every file."""
        return Tally.of(
            survey,
            (
                message
                for path in report_files(self.paths)
                for message in read_messages(path, survey)
            ),
        )
