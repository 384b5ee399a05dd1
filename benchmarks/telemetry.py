"""Tallying reports that come one to a message: in bulk, and one by one."""

import tempfile
import zlib
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.page import Aim, Section
from benchmarks.timing import three_digits
from fedassay import Grid, Hierarchy, Survey, Tally
from fedassay.engines.bulk_tally import BulkBuilder
from fedassay.engines.report_files import collect
from fedassay.engines.unfinished import Unfinished
from fedassay.mechanisms import AnyMechanism, Privacy, RandomizedResponse, UnaryEncoding
from fedassay.tally import TallyBuilder
from fedassay.tally_file import KeptTally
from fedassay.wire import HEADER, MAGIC, ROWS, VERSION, messages, row_bytes

_CELLS = 1024
_WANTED_RATE = 1e6
_ONE_BY_ONE = 20_000
_AT_ONCE = 2**16


@dataclass(frozen=True, slots=True)
class Rates:
    """Reports a second of the processor's time."""

    name: str
    bytes_each: int
    bulk: float
    loop: float


def measure(*, quick: bool, reports: int | None = None) -> Section:
    """Write single reports to a file and tally it both ways; one run each, with all checks."""
    count = reports or (100_000 if quick else 2_000_000)
    rates = [_raced(name, survey, count) for name, survey in _surveys().items()]
    slowest = min(rate.bulk for rate in rates)
    return Section(
        title="Reports that come one to a message",
        about=f"{count:,} messages of one report each in one file, tallied as `fedassay tally` "
        "does it: headers, checksums, rows and ids checked, parts written for a run that may be "
        f"killed, the tally saved. One by one: `wire.messages` and `TallyBuilder.add` on the first "
        f"{_ONE_BY_ONE:,} of them. Processor's time of one core, one run each.",
        header=("what", "bytes each", "reports/s", "one by one: reports/s", "ratio"),
        rows=[
            (
                rate.name,
                f"{rate.bytes_each}",
                f"{rate.bulk:,.0f}",
                f"{rate.loop:,.0f}",
                f"{three_digits(rate.bulk / rate.loop)}",
            )
            for rate in rates
        ],
        aims=[
            Aim(
                f"{_WANTED_RATE:,.0f} reports a second; measured {slowest:,.0f} at least",
                slowest >= _WANTED_RATE,
            )
        ],
    )


def _surveys() -> dict[str, Survey]:
    size = 2 * _CELLS
    return {
        f"GRR, {size:,} values": _survey(RandomizedResponse(Fraction(1), _CELLS)),
        f"OUE, {size:,} bits": _survey(UnaryEncoding(Fraction(1))),
    }


def _survey(mechanism: AnyMechanism) -> Survey:
    return Survey(
        privacy=Privacy.LOCAL,
        grid=Grid.uniform(_CELLS),
        hierarchy=Hierarchy.flat(_CELLS),
        mechanisms=(mechanism,),
    )


def _raced(name: str, survey: Survey, count: int) -> Rates:
    with tempfile.TemporaryDirectory() as folder:
        inbox, place = Path(folder) / "inbox.fa", Path(folder) / "study.tally"
        write_singles(inbox, survey, count)
        start = process_time()
        builder = BulkBuilder(Tally.zero(survey), survey)
        unfinished = Unfinished(place, builder)
        collected = collect(builder, [inbox], unfinished=unfinished)
        KeptTally(survey, builder.tally()).save(place)
        unfinished.finish()
        bulk = count / (process_time() - start)
        assert (collected.counted, collected.rejected) == (count, 0)
        few = min(count, _ONE_BY_ONE)
        with inbox.open("rb") as stream:
            start = process_time()
            loop = TallyBuilder(Tally.zero(survey), survey)
            for _, message in zip(range(few), messages(stream, survey), strict=False):
                loop.add(message)
            one_by_one = few / (process_time() - start)
        return Rates(name, inbox.stat().st_size // count, bulk, one_by_one)


def write_singles(path: Path, survey: Survey, count: int) -> None:
    """Random reports on the only level, laid out as the format's page has them."""
    generator = np.random.default_rng(5)
    width = row_bytes(survey, 0)
    layout = np.dtype([("head", "V40"), ("id", "V16"), ("n", "<u4"), ("row", "u1", (width,))])
    head = HEADER.pack(MAGIC, VERSION, ROWS, 0, 0, survey.fingerprint, bytes(16), 1)[:40]
    with path.open("wb") as stream:
        for first in range(0, count, _AT_ONCE):
            many = min(_AT_ONCE, count - first)
            framed = np.zeros(many, dtype=layout)
            framed["head"], framed["n"] = np.void(head), 1
            framed["id"] = np.frombuffer(generator.bytes(16 * many), "V16")
            framed["row"] = _rows(survey, many, width, generator)
            whole = np.zeros(many, np.dtype([("framed", layout), ("crc", "<u4")]))
            whole["framed"] = framed
            whole["crc"] = list(map(zlib.crc32, framed.view(f"V{layout.itemsize}").tolist()))
            stream.write(whole.tobytes())


def _rows(survey: Survey, many: int, width: int, generator: np.random.Generator) -> np.ndarray:
    if isinstance(survey.mechanisms[0], RandomizedResponse):
        values = generator.integers(0, survey.hierarchy.width, many)
        return values.astype("<u4").view(np.uint8).reshape(-1, 4)
    return generator.integers(0, 256, (many, width), dtype=np.uint8)
