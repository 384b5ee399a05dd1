"""Ids of the reports that were counted: 16 bytes each, however many there are.

They are kept as one sorted array and not as a Python set, which takes eight times as much.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from fedassay.errors import ReportDuplicate

REPORT_ID_BYTES = 16
_PENDING = 2**16
# Fixed width: numpy pads with zeros when it compares, so that these compare as bytes do.
_ID = np.dtype(f"S{REPORT_ID_BYTES}")
_Ids = npt.NDArray[np.bytes_]


class ReportIds:
    """A set of report ids that does not change.

    >>> ids = ReportIds.of([bytes(16), b"b" * 16])
    >>> len(ids), bytes(16) in ids, b"c" * 16 in ids
    (2, True, False)
    """

    __slots__ = ("_rising",)

    def __init__(self, rising: _Ids | None = None) -> None:
        self._rising = np.empty(0, _ID) if rising is None else rising

    @classmethod
    def of(cls, ids: Iterable[bytes]) -> "ReportIds":
        """The set of these ids; one that comes twice raises `ReportDuplicate`."""
        return cls(_merged([np.sort(_array(b"".join(ids)))]))

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> "ReportIds":
        """Read what `to_bytes` wrote; raises `ValueError` unless the ids rise."""
        rising = _array(data)
        if not (rising[1:] > rising[:-1]).all():
            raise ValueError("report ids must rise, each there once")
        return cls(rising)

    def to_bytes(self) -> bytes:
        """All ids, rising."""
        return self._rising.tobytes()

    def __len__(self) -> int:
        return len(self._rising)

    def __iter__(self) -> Iterator[bytes]:
        return (bytes(item).ljust(REPORT_ID_BYTES, b"\0") for item in self._rising)

    def __contains__(self, report_id: object) -> bool:
        return isinstance(report_id, bytes) and _holds(self._rising, report_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReportIds) and np.array_equal(self._rising, other._rising)

    __hash__ = None  # type: ignore[assignment]  # holds an array

    def __or__(self, other: "ReportIds") -> "ReportIds":
        """Both together; raises `ReportDuplicate` where they share a report."""
        if not len(self) or not len(other):
            return self if len(self) else other
        return ReportIds(_merged([self._rising, other._rising]))

    def __sub__(self, other: "ReportIds") -> "ReportIds":
        """Those that are not in the other set."""
        gone = np.isin(self._rising, other._rising, assume_unique=True)
        return ReportIds(self._rising[~gone])


class GrowingIds:
    """Ids that come one by one, in memory of 16 bytes each.

    New ones wait in a small set. Full sets become sorted runs, and a run is merged into the
    one before it when it has half its size, so that there are never more than some ten.
    """

    def __init__(self, start: ReportIds) -> None:
        self._runs = [start._rising] if len(start) else []
        self._waiting: set[bytes] = set()

    def __contains__(self, report_id: bytes) -> bool:
        return report_id in self._waiting or any(_holds(run, report_id) for run in self._runs)

    def add(self, report_id: bytes) -> None:
        """Add an id that is not there."""
        self._waiting.add(report_id)
        if len(self._waiting) >= _PENDING:
            self._settle()

    def ids(self) -> ReportIds:
        """All of them so far."""
        self._settle()
        if len(self._runs) > 1:
            self._runs = [_merged(self._runs)]
        return ReportIds(self._runs[0] if self._runs else None)

    def _settle(self) -> None:
        if self._waiting:
            self._runs.append(np.sort(_array(b"".join(self._waiting))))
            self._waiting.clear()
        while len(self._runs) > 1 and 2 * len(self._runs[-1]) >= len(self._runs[-2]):
            last = self._runs.pop()
            self._runs[-1] = _merged([self._runs[-1], last])


def _array(data: bytes | memoryview) -> _Ids:
    return np.frombuffer(data, _ID)


def _holds(rising: _Ids, report_id: bytes) -> bool:
    wanted = _array(report_id)
    place = int(rising.searchsorted(wanted)[0])
    return place < len(rising) and bool(rising[place] == wanted[0])


def _merged(runs: list[_Ids]) -> _Ids:
    """Sorted runs as one; the stable sort merges them, as it finds them sorted."""
    rising = np.concatenate(runs)
    rising.sort(kind="stable")
    twice = int((rising[1:] == rising[:-1]).sum())
    if twice:
        raise ReportDuplicate(
            f"a report counts once; {twice} are there twice. Add tallies of different reports."
        )
    return rising
