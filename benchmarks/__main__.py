"""Measure everything and write `benchmarks/README.md`."""

import os
import sys
import traceback
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path
from time import perf_counter

from benchmarks.page import Section, page, with_section
from benchmarks.summary import draw_summary

_PAGE = Path(__file__).with_name("README.md")
_TOPICS = (
    "histogram",
    "streaming",
    "readers",
    "client",
    "distributed",
    "encoding",
    "tallying",
    "reportfile",
    "telemetry",
    "secagg",
    "simulation",
    "calibration",
    "plain",
    "refusals",
    "startup",
    "growth",
)


def main() -> None:
    """Run every topic; --quick prints a smaller run and leaves the page as it is."""
    parser = ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller run, printed only")
    parser.add_argument("--only", choices=_TOPICS, help="one topic, put into the page as it is")
    parser.add_argument("--reports", type=int, help="with --only telemetry: how many reports")
    arguments = parser.parse_args()
    quick = arguments.quick
    if arguments.reports and arguments.only != "telemetry":
        parser.error("--reports sizes the topic telemetry; add --only telemetry")
    if arguments.only:
        size = {"reports": arguments.reports} if arguments.reports else {}
        section = _measured(arguments.only, quick=quick, **size)
        print(section.markdown())
        if not quick:
            known = _PAGE.read_text(encoding="utf-8")
            _PAGE.write_text(with_section(known, section), encoding="utf-8")
        return
    load_before, began = os.getloadavg()[0], perf_counter()
    sections, failed = _all_measured(quick=quick)
    text = page(sections, load_before=load_before, seconds=perf_counter() - began)
    print(text)
    if not quick:
        draw_summary(sections, _PAGE.with_name("summary.png"))
        _PAGE.write_text(text, encoding="utf-8")
    if failed:
        raise SystemExit(f"not measured: {', '.join(failed)}; see above, then --only each")


def _all_measured(*, quick: bool) -> tuple[list[Section], list[str]]:
    """Every topic's section, and the topics that failed: one does not cost the others."""
    sections, failed = list[Section](), list[str]()
    for topic in _TOPICS:
        began = perf_counter()
        try:
            sections.append(_measured(topic, quick=quick))
        except (Exception, SystemExit):
            traceback.print_exc()
            failed.append(topic)
        print(f"{topic}: {perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return sections, failed


def _measured(topic: str, *, quick: bool, **size: int) -> Section:
    """Measure one topic; its peers are imported only then."""
    section: Section = import_module(f"benchmarks.{topic}").measure(quick=quick, **size)
    return section


if __name__ == "__main__":
    main()
