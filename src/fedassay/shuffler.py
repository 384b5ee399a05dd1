"""The shuffler: many clients' reports become one batch that tells nothing of who sent which.

It checks every report, drops what came twice, takes ids, senders, order and times away and
sorts what is left. The batch is a function of the reports alone, whatever order they came in:
two runs over the same inbox write the same bytes, and no random order has to be trusted.
"""

import hashlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from fedassay.errors import (
    ReportDuplicate,
    ReportMalformed,
    SettingInvalid,
    SurveyMismatch,
    TooFewReports,
)
from fedassay.examples import IntArray
from fedassay.mechanisms import Privacy
from fedassay.mechanisms.base import Rows
from fedassay.report_ids import GrowingIds, ReportIds
from fedassay.survey import Survey
from fedassay.wire import MAX_BLOCK_BYTES, Block, Message, row_bytes

BATCH_TAG_BYTES = 8
"""How the id of every block of a batch begins: with the same bytes, of the batch alone."""


class Shuffler:
    """Takes reports of one survey one by one; a refused one changes nothing.

    Guarantee: what `batch` returns depends on the multiset of reports on each level and on
    nothing else, and is there only from the survey's minimum on every level on. Which level a
    report is on does not depend on its input.
    """

    def __init__(self, survey: Survey) -> None:
        if survey.privacy is not Privacy.SHUFFLED:
            raise SettingInvalid(
                f"only reports to a shuffled survey are shuffled; found {survey.privacy.value} "
                "privacy. Tally them as they are (fedassay tally)."
            )
        self.survey = survey
        self._rows: list[list[Rows]] = [[] for _ in survey.mechanisms]
        self._ids = GrowingIds(ReportIds())

    @property
    def reports(self) -> list[int]:
        """How many reports each level has so far."""
        return [sum(map(len, level)) for level in self._rows]

    def add(self, message: Message) -> None:
        """Take one message, or raise and take nothing."""
        if message.fingerprint != self.survey.fingerprint:
            raise SurveyMismatch(
                f"this inbox is for survey {self.survey.fingerprint.hex()[:12]}; the report "
                f"answers {message.fingerprint.hex()[:12]}. Shuffle it with its own survey file."
            )
        if not isinstance(message, Block) or message.mixed:
            raise ReportMalformed(
                "a shuffler takes reports as clients sent them; this batch was shuffled already. "
                "Tally it, or shuffle the reports that it was made of."
            )
        if message.report_id in self._ids:
            raise ReportDuplicate(
                f"a report counts once; {message.report_id.hex()[:12]} is already there. "
                "Nothing to do: it was taken the first time."
            )
        self._ids.add(message.report_id)
        self._rows[message.level].append(message.rows)

    def add_singles(
        self, ids: npt.NDArray[np.bytes_], level_of: IntArray, rows: Mapping[int, Rows]
    ) -> int:
        """Take reports that came one to a message and were checked; how many came twice.

        `rows` holds those of each level in the order of `ids`.
        """
        is_new = self._ids.add_new(ids)
        for level, own in rows.items():
            new = own[is_new[level_of == level]]
            if len(new):
                self._rows[level].append(new)
        return len(ids) - int(is_new.sum())

    def batch(self) -> tuple[Block, ...]:
        """All reports of each level, sorted; raises `TooFewReports` below the minimum.

        >>> import fedassay
        >>> survey = fedassay.new_survey(
        ...     privacy="shuffled", epsilon=1, clients=4, minimum_reports=3, height=1
        ... )
        >>> shuffler = Shuffler(survey)
        >>> for score in (0.1, 0.9, 0.4):
        ...     for message in fedassay.answer(survey, [1], [score]).messages:
        ...         shuffler.add(message)
        >>> sum(len(block.rows) for block in shuffler.batch())
        3
        """
        self._require_enough()
        levels = [_sorted(np.concatenate(rows)) for rows in self._rows]
        digest = hashlib.sha256(self.survey.fingerprint)
        for rows in levels:
            digest.update(len(rows).to_bytes(8, "little"))
            digest.update(rows.tobytes())
        tag = digest.digest()[:BATCH_TAG_BYTES]
        return tuple(
            block for level in range(len(levels)) for block in self._cut(levels, level, tag)
        )

    def _cut(self, levels: list[Rows], level: int, tag: bytes) -> list[Block]:
        """Blocks of one size, but for the last, which holds what is left."""
        rows, most = levels[level], MAX_BLOCK_BYTES // row_bytes(self.survey, level)
        return [
            Block(
                self.survey.fingerprint,
                tag + bytes([level]) + (first // most).to_bytes(7, "little"),
                rows[first : first + most],
                level,
                mixed=True,
            )
            for first in range(0, len(rows), most)
        ]

    def _require_enough(self) -> None:
        for level, reports in enumerate(self.reports):
            missing = self.survey.minimum_reports - reports
            if missing > 0:
                raise TooFewReports(
                    f"a batch holds at least {self.survey.minimum_reports:,} reports on every "
                    f"level, or epsilon={float(self.survey.epsilon or 0):g} would not hold; level "
                    f"{level + 1} has {reports:,}. Wait for {missing:,} more; nothing was written."
                )


def _sorted(rows: Rows) -> Rows:
    """Rows in the order of their bytes."""
    width = rows.shape[1]
    keys = np.ascontiguousarray(rows).view(f"S{width}").ravel()
    return rows[keys.argsort(kind="stable")]


def batch_with(survey: Survey, report: Message | None, known: bytes) -> bytes:
    """The tag of the one batch of a shuffled survey that a tally holds, with this report in it.

    None stands for a client's own report. Raises `ReportMalformed` unless it is part of the
    batch that is known, or of the first; under other models anything passes.
    """
    if survey.privacy is not Privacy.SHUFFLED:
        return known
    if not isinstance(report, Block) or not report.mixed:
        raise ReportMalformed(
            "reports to this survey are tallied once they are shuffled; this one comes from its "
            "client. Make a batch first: fedassay shuffle SURVEY INBOX... -o BATCH"
        )
    tag = report.report_id[:BATCH_TAG_BYTES]
    if known not in (b"", tag):
        raise ReportMalformed(
            "a shuffled survey has one batch: two that overlap would tell the reports apart. "
            "The tally holds another; start a new survey for later reports."
        )
    return tag
