"""Run the command line with `python -m fedassay`."""

from fedassay.cli import main

main()
