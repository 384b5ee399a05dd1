"""Lines of progress, in the log of the run or of the site."""

import sys


def say(line: str) -> None:
    """Write one line at once, with what a terminal would obey spelled out."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
    sys.stdout.write(f"{shown}\n")
    sys.stdout.flush()
