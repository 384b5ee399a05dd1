"""Measure everything and write `benchmarks/README.md`."""

import sys
from argparse import ArgumentParser
from pathlib import Path

from benchmarks import client, histogram, startup, streaming
from benchmarks.page import page

_PAGE = Path(__file__).with_name("README.md")


def main() -> None:
    """Run every topic; --quick prints a smaller run and leaves the page as it is."""
    parser = ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller run, printed only")
    quick = parser.parse_args().quick
    sections = []
    for topic in (histogram, streaming, client, startup):
        print(f"{topic.__name__} ...", file=sys.stderr, flush=True)
        sections.append(topic.measure(quick=quick))
    text = page(sections)
    print(text)
    if not quick:
        _PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
