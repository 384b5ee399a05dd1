"""Lines of progress, in the log of the run or of the site."""

import sys

from fedassay.survey import Survey
from fedassay.survey_steps import FirstOfTwo


def say(line: str) -> None:
    """Write one line at once, with what a terminal would obey spelled out."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
    sys.stdout.write(f"{shown}\n")
    sys.stdout.flush()


def step_words(survey: Survey) -> str:
    """Which of two surveys it is, in words to follow a noun; nothing where it stands alone."""
    if survey.step is None:
        return ""
    return ", first of two" if isinstance(survey.step, FirstOfTwo) else ", second of two"
