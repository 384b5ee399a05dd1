"""Adding up locally private reports: gigabytes and reports per second."""

from collections.abc import Callable

import numpy as np

from benchmarks.page import Aim, Section
from benchmarks.timing import race, three_digits
from fedassay.mechanisms.bit_count import count_bits

_SIZE = 2048
_SMALL_BYTES, _LARGE_BYTES = 2**22, 2**26
_VALUES = 10**6
_WANTED_RATIO = 5.0
_OURS, _PLAIN, _READ = "`count_bits`", "`unpackbits().sum(axis=0)`", "reading the memory"
_RESPONSE = "GRR: `bincount`"


def measure(*, quick: bool) -> Section:
    """Time packed bits and values."""
    runs = 3 if quick else 10
    generator = np.random.default_rng(3)
    rows, ratios = [], {}
    for size in (_SMALL_BYTES,) if quick else (_SMALL_BYTES, _LARGE_BYTES):
        packed = generator.integers(0, 256, (size // (_SIZE // 8), _SIZE // 8), dtype=np.uint8)
        seconds = race(runs, _bit_tasks(packed))
        ratios[size] = seconds[_PLAIN] / seconds[_OURS]
        for name, taken in seconds.items():
            rows.append(
                (
                    f"OUE, {size // 2**20} MiB: {name}",
                    three_digits(size / taken / 1e9),
                    three_digits(len(packed) / taken / 1e6),
                    f"{three_digits(seconds[_PLAIN] / taken)} ×",
                )
            )
    values = generator.integers(0, _SIZE, _VALUES, dtype=np.uint32)
    taken = race(runs, {_RESPONSE: lambda: np.bincount(values, minlength=_SIZE)})[_RESPONSE]
    rows.append(
        (
            f"{_RESPONSE} of {_VALUES:,} values",
            three_digits(values.nbytes / taken / 1e9),
            three_digits(_VALUES / taken / 1e6),
            "",
        )
    )
    worst = min(ratios.values())
    return Section(
        title="Adding up locally private reports",
        about=f"Packed OUE reports of {_SIZE:,} bits, one block of the wire format and a larger "
        "one, and GRR reports of 4 bytes. Reading is a bitwise OR over the same bytes.",
        header=("what", "GB/s", "million reports/s", "speed against unpacking"),
        rows=rows,
        aims=[
            Aim(
                f"packed bits {_WANTED_RATIO:.0f} times faster than unpacking and summing; "
                f"measured {three_digits(worst)} times at least",
                worst >= _WANTED_RATIO,
            )
        ],
    )


def _bit_tasks(packed: np.ndarray) -> dict[str, Callable[[], object]]:
    words = packed.reshape(-1).view(np.uint64)
    return {
        _OURS: lambda: count_bits(packed),
        _PLAIN: lambda: np.unpackbits(packed, axis=1, bitorder="little").sum(axis=0),
        _READ: lambda: np.bitwise_or.reduce(words),
    }
