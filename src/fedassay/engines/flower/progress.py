"""Lines of progress, in the log of the run or of the site."""

import sys


def say(line: str) -> None:
    """Write one line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
