"""`federation questions`: how many questions a site answered without being charged."""

from pathlib import Path
from typing import Annotated

import typer

from fedassay.cli.outputs import JsonOption, QuietOption, Voice
from fedassay.errors import FileInvalid

_FORMAT = "fedassay.questions-shown/1"


def questions_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Made by federation site.")],
    reset: Annotated[bool, typer.Option("--reset", help="Count from zero again.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show how many questions were never charged; at 20 a site answers none until a reset.

    Each tells a server whether the budget would still allow a survey. Rounds that fail before
    the masked counts leave count too.

    [bold]Example[/bold]

      fedassay federation questions hospital-1 --reset
    """
    from fedassay.engines.flower.agreement import AGREEMENT_FILE
    from fedassay.engines.flower.questions import MOST_UNCHARGED, QUESTIONS_FILE, Questions

    if not (folder / AGREEMENT_FILE).is_file():
        raise FileInvalid(f"{folder}: not a site's folder. Name the one with {AGREEMENT_FILE}.")
    questions = Questions(folder / QUESTIONS_FILE)
    before = questions.uncharged
    if reset:
        questions.forget()
    voice = Voice(as_json, quiet)
    voice.result(
        {"format": _FORMAT, "uncharged": before, "most": MOST_UNCHARGED, "is_reset": reset}
    )
    voice.say(
        f"{before} of {MOST_UNCHARGED} questions were asked and not charged"
        + ("; counting from zero again." if reset else ".")
    )
