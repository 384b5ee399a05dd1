"""The page on scale: tables of what `experiments.scale` measured. Writes `docs/scale.md`.

`python -m experiments.scale_page` takes some two minutes of one core.
"""

from argparse import ArgumentParser
from collections.abc import Iterator
from math import sqrt
from pathlib import Path

from experiments.page import markdown_table
from experiments.scale import CELLS, Model, measure

_PAGE = Path(__file__).parent.parent / "docs" / "scale.md"
_CLIENTS = tuple(10**power for power in range(3, 10))


def page(models: list[Model]) -> Iterator[str]:
    """The page's parts."""
    cohort = models[0].cohort or 1
    yield "# Scale"
    yield (
        f"What one survey of {CELLS} cells (2 × {CELLS} counters, one level) costs from a thousand "
        "to a billion clients. Written by `python -m experiments.scale_page`: seconds are the "
        "processor's on one core, measured at the sizes of the last table and carried on from the "
        "largest of them by the fitted exponent (below the smallest in proportion), memory by a "
        "fitted line. A client holds one row."
    )
    yield "## A client"
    yield markdown_table(
        ("model", "time", "bytes sent", "bytes received"),
        [
            (
                model.name,
                f"{1e3 * last.client_seconds:,.2f} ms",
                f"{last.sent:,.0f}",
                f"{last.received:,.0f}",
            )
            for model in models
            for last in [model.measured[max(model.measured)]]
        ],
    )
    yield (
        "None of it grows with the crowd: secure and distributed privacy run in cohorts of "
        f"{cohort} ([why](adr/0024-cohorts-of-cohorts.md)), and the others send one report and "
        "hear nothing. Under local and shuffled privacy every row is a report of its own."
    )
    yield "## The server"
    yield markdown_table(
        ("clients", *(f"{model.name}: {what}" for what in ("time", "memory") for model in models)),
        [
            (
                f"{clients:,}",
                *(duration(model.server_seconds(clients)) for model in models),
                *(size_of(model.server_bytes(clients)) for model in models),
            )
            for clients in _CLIENTS
        ],
    )
    yield (
        "Rounds of cohorts need nothing of each other, so any number of machines share them; so do "
        "report files, whose tallies `fedassay merge` puts together. Memory is of one machine that "
        "does all of it: of cohorts the messages of one round at a time; of local reports 16 bytes "
        "for each id to check it, the same again to write the tally, and the chunk that is read; "
        "a shuffler keeps all rows besides, since it passes on nothing before it has them. "
        "Of sites the counts are kept by name for as long as they are a million in all."
    )
    yield "## What cohorts cost in noise"
    yield (
        "Every cohort's sum has the whole noise, because the server sees it. Against one sum over "
        "all, with noise shared out over all, the standard deviation grows with the root of the "
        "number of cohorts. Against the counts it still falls, with the root of the clients."
    )
    yield markdown_table(
        ("clients", f"cohorts of {cohort}", "noise of the sum against one cohort of all"),
        [(f"{n:,}", f"{n // cohort:,}", f"{sqrt(n / cohort):,.1f} ×") for n in _CLIENTS],
    )
    yield (
        "One round has at most 65,536 clients. Larger cohorts mean less noise and more work: in "
        "one of up to 256 everybody shares secrets with everybody, beyond with some two hundred "
        "neighbours ([figures](../benchmarks/README.md))."
    )
    yield "## Measured"
    yield markdown_table(
        ("model", "clients", "server's time", "server's memory", "exponent of time"),
        [
            (
                model.name,
                f"{size:,}",
                duration(cost.server_seconds),
                size_of(cost.server_bytes),
                f"{model.time_exponent:.2f}",
            )
            for model in models
            for size, cost in model.measured.items()
        ],
    )
    yield (
        "Exponents of secure and distributed privacy are within one cohort; over cohorts the cost "
        "is that of one times their number. The check of ids was measured further, with 10^8 of "
        "them ([formats](formats.md#tally))."
    )


def duration(seconds: float) -> str:
    """Seconds, hours or days, in two digits."""
    for size, unit in ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def size_of(held: float) -> str:
    """Bytes in a unit that suits them."""
    for size, unit in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB")):
        if held >= size:
            return f"{held / size:,.1f} {unit}"
    return f"{held / 2**10:,.0f} KiB"


def main() -> None:
    """Measure, and write the page; with --quick only print it."""
    parser = ArgumentParser(prog="python -m experiments.scale_page", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller run, printed only")
    quick: bool = parser.parse_args().quick
    text = "\n\n".join(page(measure(quick=quick))) + "\n"
    print(text)
    if not quick:
        _PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
