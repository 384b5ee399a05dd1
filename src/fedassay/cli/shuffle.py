"""`shuffle`: many clients' reports become one batch, where no data scientist works."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fedassay.cli.console import complain, progress
from fedassay.cli.outputs import JsonOption, QuietOption, Voice, check_output
from fedassay.cli.survey import SurveyArgument
from fedassay.client import Answer
from fedassay.engines.report_files import read_singles, report_files, write_answer
from fedassay.engines.single_reports import SingleReports
from fedassay.errors import FedassayError, FileInvalid, ReportDuplicate, ReportMalformed
from fedassay.shuffler import Shuffler
from fedassay.survey_json import load_survey
from fedassay.tables.reading import Progress

SHUFFLED_FORMAT = "fedassay.shuffled/1"


def shuffle(
    survey_file: SurveyArgument,
    inbox: Annotated[
        list[Path], typer.Argument(metavar="INBOX...", help="Report files, or folders of them.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="BATCH", help="Batch to write.")
    ],
    leave_out_bad: Annotated[
        bool,
        typer.Option(
            "--leave-out-bad",
            help="Mix without what is refused: a file counts up to its first bad report.",
        ),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Mix the reports to a shuffled survey into one batch.

    Every report is checked; what came twice is dropped; ids, senders, order, sizes and times go,
    and what is left is sorted. Nothing is written below the survey's minimum on any level, nor
    over another batch: a survey has one, and two that overlap would tell reports apart. Keep
    the inbox from whoever sees the batch, and delete it afterwards.

    [bold]Example[/bold]

      fedassay shuffle survey.json inbox/ -o batch.fa
    """
    shuffler = Shuffler(load_survey(survey_file))
    if output.exists():
        raise FileInvalid(
            f"{output}: is already there. A survey has one batch, and another one of almost the "
            "same reports would tell them apart. Use the batch that is there."
        )
    check_output(output, survey_file, *inbox, force=False)
    paths = report_files(inbox)
    with progress("files", len(paths)) as advance:
        repeated, complaints = take(shuffler, paths, advance)
    complain(complaints)
    if complaints and not leave_out_bad:
        raise ReportMalformed(
            f"a batch is made of reports to its survey alone; {len(complaints):,} file(s) hold "
            "something else, and nothing was written. Take them away, or leave them out knowingly "
            "(--leave-out-bad)."
        )
    batch = Answer(shuffler.batch())
    write_answer(batch, output)
    voice = Voice(as_json, quiet)
    voice.say(
        f"Wrote {output}: {batch.reports:,} reports, shuffled; {repeated:,} came twice, "
        f"{len(complaints):,} file(s) with something left out.\n"
        f"{shuffler.survey.guarantee.sentence()}\n"
        f"Pass on the batch alone: fedassay tally SURVEY {output} -o assessment.json"
    )
    voice.result(
        {
            "format": SHUFFLED_FORMAT,
            "survey": shuffler.survey.fingerprint.hex(),
            "batch": str(output),
            "reports": batch.reports,
            "reports_per_level": shuffler.reports,
            "repeated": repeated,
            "left_out": len(complaints),
            "guarantee": shuffler.survey.guarantee.sentence(),
        }
    )


def take(shuffler: Shuffler, paths: Sequence[Path], advance: Progress) -> tuple[int, list[str]]:
    """Give every report of every file to the shuffler: how many came twice, and what is wrong."""
    repeated, complaints = 0, []
    for path in paths:
        try:
            for found in read_singles(path, shuffler.survey):
                if isinstance(found, SingleReports):
                    repeated += shuffler.add_singles(found.ids, found.level_of, found.rows)
                    continue
                try:
                    shuffler.add(found)
                except ReportDuplicate:
                    repeated += found.reports
        except FedassayError as error:
            complaints.append(f"{path}: {type(error).__name__}: {error}")
        advance(1)
    return repeated, complaints
