"""Measure everything and write `benchmarks/README.md`."""

import os
import sys
from argparse import ArgumentParser
from pathlib import Path

from benchmarks import (
    calibration,
    client,
    distributed,
    encoding,
    histogram,
    reportfile,
    simulation,
    startup,
    streaming,
    tallying,
)
from benchmarks.page import page

_PAGE = Path(__file__).with_name("README.md")
_TOPICS = (
    histogram,
    streaming,
    client,
    distributed,
    encoding,
    tallying,
    reportfile,
    simulation,
    calibration,
    startup,
)


def main() -> None:
    """Run every topic; --quick prints a smaller run and leaves the page as it is."""
    parser = ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller run, printed only")
    quick = parser.parse_args().quick
    sections, load_before = [], os.getloadavg()[0]
    for topic in _TOPICS:
        print(f"{topic.__name__} ...", file=sys.stderr, flush=True)
        sections.append(topic.measure(quick=quick))
    text = page(sections, load_before=load_before)
    print(text)
    if not quick:
        _PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
