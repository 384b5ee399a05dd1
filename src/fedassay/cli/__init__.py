"""The command line: `fedassay`, also `python -m fedassay`."""

import sys

from fedassay.errors import MissingExtra
from fedassay.extras import needed_for

__all__ = ["main"]


def main() -> None:
    """Run a command; a slim installation, which has none, says what to install."""
    try:
        with needed_for("the command line"):
            from fedassay.cli.app import main as run
    except MissingExtra as error:
        sys.stderr.write(f"MissingExtra: {error}\n")
        sys.exit(2)
    run()
