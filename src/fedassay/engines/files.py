"""Reports and tallies as files: a federation over any transport."""

from pathlib import Path

from fedassay.client import ClientPolicy, answer_counts
from fedassay.engines.tables import Columns, Progress, count_file
from fedassay.errors import FileInvalid, ReportTooLarge
from fedassay.randomness import Randomness
from fedassay.survey import Survey
from fedassay.wire import Report, decode, encode, largest_report


def answer_file(
    survey: Survey,
    path: Path,
    columns: Columns,
    *,
    randomness: Randomness,
    policy: ClientPolicy,
    progress: Progress | None = None,
) -> Report:
    """Answer a survey from a table of any size, as one client."""
    policy.check(survey)
    counts = count_file(path, columns, survey.grid, progress=progress)
    return answer_counts(survey, counts, randomness=randomness, policy=policy)


def write_report(report: Report, path: Path) -> int:
    """Write a report's bytes; returns how many."""
    message = encode(report)
    try:
        path.write_bytes(message)
    except OSError as error:
        raise FileInvalid(
            f"{path}: cannot be written ({error.strerror}). Choose a folder you may write to."
        ) from error
    return len(message)


def read_report(path: Path, survey: Survey) -> Report:
    """Read a report file; its size is checked before it is read."""
    limit = largest_report(survey)
    try:
        size = path.stat().st_size
        if size > limit:
            raise ReportTooLarge(
                f"reports to this survey are at most {limit} bytes; found {size}. "
                "This is another file, or an attack."
            )
        message = path.read_bytes()
    except OSError as error:
        raise FileInvalid(f"cannot be read ({error.strerror}). Check the path.") from error
    return decode(message, survey)
