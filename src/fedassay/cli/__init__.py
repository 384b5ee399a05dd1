"""The command line: `fedassay`, also `python -m fedassay`."""

from fedassay.cli.app import main

__all__ = ["main"]
