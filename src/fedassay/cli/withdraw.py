"""`withdraw`: a site leaves before the release, and is counted nowhere."""

from pathlib import Path
from typing import Annotated

import typer

from fedassay.cli.console import plain
from fedassay.cli.outputs import JsonOption, QuietOption, Voice
from fedassay.cli.tally import TALLIED_FORMAT, kept_content
from fedassay.engines.report_files import ReportFiles
from fedassay.tally_file import KeptTally


def withdraw(
    tally: Annotated[Path, typer.Argument(metavar="TALLY", help="Tally file, unreleased.")],
    reports: Annotated[
        list[Path], typer.Argument(metavar="REPORT...", help="Report files of who withdraws.")
    ],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Take reports out of a tally before it is released, as if they had never come.

    Once an assessment was released, nothing is taken back: the difference of two published sums
    would be the site that left.

    [bold]Example[/bold]

      fedassay withdraw study.tally inbox/north.fa
    """
    kept = KeptTally.load(tally)
    part = ReportFiles(reports).tally(kept.survey)
    left = kept.without(part)
    left.save(tally)
    voice = Voice(as_json, quiet)
    withdrawn = part.clients(kept.survey)
    voice.say(
        f"Withdrew {withdrawn:,} reports; {left.reports:,} are left in {plain(tally)}. Remove the "
        "files too: whoever collects them again counts them again."
    )
    voice.result(
        {
            "format": TALLIED_FORMAT,
            "tally": str(tally),
            **kept_content(left),
            "withdrawn": withdrawn,
        }
    )
