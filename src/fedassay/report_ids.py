"""Ids of the reports that were counted: 16 bytes each, however many there are.

They are kept as one sorted array and not as a Python set, which takes eight times as much.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from fedassay.errors import ReportDuplicate
from fedassay.examples import IntArray

REPORT_ID_BYTES = 16
_PENDING = 2**16
_PARTS, _SHIFT = 64, np.uint64(58)
# Fixed width: numpy pads with zeros when it compares, so that these compare as bytes do.
_ID = np.dtype(f"S{REPORT_ID_BYTES}")
_Ids = npt.NDArray[np.bytes_]
_Words = npt.NDArray[np.uint64]


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

    @property
    def rising(self) -> _Ids:
        """All ids, in an array of texts that drop zeros at their end when read one by one."""
        return self._rising

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
    """Ids that come one by one or many at once, in memory of 16 bytes each.

    Those that come one by one wait in a small set; full sets, and what comes in bulk, become
    sorted runs, and a run is merged into the one before it when it has half its size. Runs are
    kept apart by the first bits of their ids, so that a merge needs memory for a part of them.
    """

    def __init__(self, start: ReportIds) -> None:
        self._parts: list[list[_Run]] = [[] for _ in range(_PARTS)]
        self._waiting: set[bytes] = set()
        self._insert(_Run.of(start._rising))

    def __contains__(self, report_id: bytes) -> bool:
        if report_id in self._waiting:
            return True
        high, low = (np.uint64(int.from_bytes(half)) for half in (report_id[:8], report_id[8:]))
        return any(run.has(high, low) for run in self._parts[int(high >> _SHIFT)])

    def add(self, report_id: bytes) -> None:
        """Add an id that is not there."""
        self._waiting.add(report_id)
        if len(self._waiting) >= _PENDING:
            self._settle()

    def add_new(self, ids: _Ids) -> npt.NDArray[np.bool_]:
        """Add those that are not there; which they are. Of two that are equal the first is new."""
        self._settle()
        given = _Run.of(ids)
        order = given.rising_order()
        rising = given.take(order)
        is_new = ~self._known(rising)
        is_new[1:] &= (rising.high[1:] != rising.high[:-1]) | (rising.low[1:] != rising.low[:-1])
        self._insert(rising.take(is_new))
        in_order = np.empty_like(is_new)
        in_order[order] = is_new
        return in_order

    def has_any(self, ids: ReportIds) -> bool:
        """Whether some of these are there."""
        self._settle()
        return bool(self._known(_Run.of(ids._rising)).any())

    def _known(self, rising: "_Run") -> npt.NDArray[np.bool_]:
        known = np.zeros(len(rising), dtype=np.bool_)
        for part, piece in rising.pieces():
            for run in self._parts[part]:
                known[piece] |= run.holds(rising.take(piece))
        return known

    def ids(self) -> ReportIds:
        """All of them so far."""
        self._settle()
        for runs in self._parts:
            while len(runs) > 1:
                last = runs.pop()
                runs[-1] = runs[-1].merged(last)
        held = [runs[0] for runs in self._parts if runs]
        words = np.empty((sum(map(len, held)), 2), dtype=">u8")
        first = 0
        for run in held:
            words[first : first + len(run), 0] = run.high
            words[first : first + len(run), 1] = run.low
            first += len(run)
        return ReportIds(words.view(_ID).ravel())

    def _settle(self) -> None:
        if self._waiting:
            waiting = _Run.of(_array(b"".join(self._waiting)))
            self._waiting.clear()
            self._insert(waiting.take(waiting.rising_order()))

    def _insert(self, rising: "_Run") -> None:
        """Add ids that rise and are not there."""
        for part, piece in rising.pieces():
            runs = self._parts[part]
            runs.append(rising.take(piece).copied())
            while len(runs) > 1 and 2 * len(runs[-1]) >= len(runs[-2]):
                last = runs.pop()
                runs[-1] = runs[-1].merged(last)


@dataclass(frozen=True, slots=True)
class _Run:
    """Ids as two words each, which sort ten times faster than texts of 16 bytes."""

    high: _Words
    low: _Words

    @classmethod
    def of(cls, ids: _Ids) -> "_Run":
        words = np.ascontiguousarray(ids).view(">u8").reshape(-1, 2)
        return cls(words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64))

    def __len__(self) -> int:
        return len(self.high)

    def take(self, places: IntArray | npt.NDArray[np.bool_] | slice) -> "_Run":
        return _Run(self.high[places], self.low[places])

    def copied(self) -> "_Run":
        """The same in memory of its own, so that what it was cut from can go."""
        return _Run(self.high.copy(), self.low.copy())

    def rising_order(self, *, in_runs: bool = False) -> IntArray:
        """In which order they rise; equal ones stay in the order in which they came."""
        # The stable sort merges what it finds sorted; on anything else the other is faster.
        order = self.high.argsort(kind="stable" if in_runs else "quicksort")
        high = self.high[order]
        # Ids are random: two with the same first half are somebody's doing, or one id twice.
        return np.lexsort((self.low, self.high)) if (high[1:] == high[:-1]).any() else order

    def pieces(self) -> Iterator[tuple[int, slice]]:
        """Where each part of rising ids lies, by their first bits; parts with none are left out."""
        starts = np.arange(_PARTS, dtype=np.uint64) << _SHIFT
        bounds = [*self.high.searchsorted(starts).tolist(), len(self)]
        for part, (first, last) in enumerate(pairwise(bounds)):
            if first < last:
                yield part, slice(first, last)

    def merged(self, other: "_Run") -> "_Run":
        """Two runs as one."""
        both = _Run(np.concatenate([self.high, other.high]), np.concatenate([self.low, other.low]))
        return both.take(both.rising_order(in_runs=True))

    def holds(self, rising: "_Run") -> npt.NDArray[np.bool_]:
        """Which of these are in the run; exactly, whatever somebody made their first halves."""
        place = self.high.searchsorted(rising.high)
        held = np.zeros(len(rising), dtype=np.bool_)
        near = np.flatnonzero(place < len(self))
        near = near[self.high[place[near]] == rising.high[near]]
        held[near] = self.low[place[near]] == rising.low[near]
        for item in near[~held[near]].tolist():
            held[item] = self.has(rising.high[item], rising.low[item])
        return held

    def has(self, high: np.uint64, low: np.uint64) -> bool:
        """Whether one id is in the run."""
        first = int(self.high.searchsorted(high))
        if first == len(self) or self.high[first] != high:
            return False
        lows = self.low[first : int(self.high.searchsorted(high, side="right"))]
        place = int(lows.searchsorted(low))
        return place < len(lows) and bool(lows[place] == low)


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
