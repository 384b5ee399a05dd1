"""A tally to which single reports are added many at once, and other tallies."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fedassay.engines.single_reports import SingleReports
from fedassay.errors import CountOverflow, ReportDuplicate
from fedassay.examples import IntArray
from fedassay.shuffler import batch_with
from fedassay.tally import Tally, TallyBuilder
from fedassay.wire import Block, local_mechanism

_MOST = 2**31


class BulkBuilder(TallyBuilder):
    """Adds reports to a tally: one at a time, many that came one to a message, or a tally."""

    def add_singles(self, singles: SingleReports) -> npt.NDArray[np.bool_]:
        """Count those that are new; which they are.

        Where so many might take a sum to 2^31, `CountOverflow` is raised and nothing counted.
        """
        self._batch = batch_with(self.survey, None, self._batch)
        if self._counters.max(initial=0) + len(singles) >= _MOST:
            raise CountOverflow(
                f"sums must stay below 2^31; {len(singles):,} reports more might take one beyond "
                "it. Tally fewer clients at a time."
            )
        is_new = self._report_ids.add_new(singles.ids)
        for level, rows in singles.rows.items():
            new = rows if is_new.all() else rows[is_new[singles.level_of == level]]
            place = self._place(level)
            size = place.stop - place.start
            self._counters[place] += local_mechanism(self.survey, level).sums(new, size)
            self._reports[level] += len(new)
        return is_new

    def add_tally(self, part: Tally) -> None:
        """Count all reports of a tally; raises `ReportDuplicate` where some are counted already."""
        part.require(self.survey)
        if self._report_ids.has_any(part.report_ids):
            raise ReportDuplicate(
                "a report counts once; a part of an interrupted run holds some that are in the "
                "tally already. Delete the folder of parts beside the tally, and start again."
            )
        self._report_ids.add_new(part.report_ids.rising)
        self._counters += part.counters
        self._reports = [a + b for a, b in zip(self._reports, part.reports, strict=True)]

    def sums(self) -> tuple[list[int], IntArray]:
        """Reports on each level, and counters, so far."""
        return list(self._reports), self._counters.copy()


def blocks_of(singles: SingleReports, fingerprint: bytes) -> Iterator[Block]:
    """The same reports one by one, in the order in which they came."""
    place = dict.fromkeys(singles.rows, 0)
    for report_id, level in zip(singles.ids, singles.level_of.tolist(), strict=True):
        row = singles.rows[level][place[level] : place[level] + 1]
        place[level] += 1
        # numpy drops zeros at the end of a text.
        yield Block(fingerprint, bytes(report_id).ljust(16, b"\0"), row, level)
