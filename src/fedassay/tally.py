"""The tally: reports added up, as integers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedassay.checks import require_whole
from fedassay.errors import (
    CountOverflow,
    FileInvalid,
    ReportDuplicate,
    ReportMalformed,
    SettingInvalid,
    SurveyMismatch,
)
from fedassay.examples import IntArray
from fedassay.files import Fields, check_format
from fedassay.survey import EveryLevel, OneLevel, Survey
from fedassay.wire import REPORT_ID_BYTES, Block, Message, local_mechanism

TALLY_FORMAT = "fedassay.tally/1"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tally:
    """A commutative monoid: `Tally.zero(survey)` and `+`, within one survey.

    `report_ids` holds the ids of the reports counted one by one, so that none is
    counted twice; simulated cohorts have none.
    """

    fingerprint: bytes
    reports: tuple[int, ...]
    """How many reports each level has."""
    counters: IntArray
    report_ids: frozenset[bytes] = frozenset()

    def __post_init__(self) -> None:
        _check(self)
        if len(self.counters) and np.abs(self.counters).max() >= 2**31:
            raise CountOverflow(
                "sums must stay below 2^31, because secure aggregation counts modulo 2^32; "
                "found a larger one. Tally fewer clients at a time."
            )
        self.counters.flags.writeable = False

    def __repr__(self) -> str:
        heard = "/".join(f"{reports:,}" for reports in self.reports)
        return f"<Tally of survey {self.fingerprint.hex()[:12]}: {heard} reports per level>"

    @classmethod
    def zero(cls, survey: Survey) -> "Tally":
        """Nothing counted yet."""
        hierarchy = survey.hierarchy
        empty = np.zeros(hierarchy.width, dtype=np.int64)
        return cls(survey.fingerprint, (0,) * hierarchy.levels, empty)

    @classmethod
    def of(cls, survey: Survey, reports: Iterable[Message]) -> "Tally":
        """Add up reports; a repeated or foreign one raises."""
        builder = TallyBuilder(cls.zero(survey), survey)
        for report in reports:
            builder.add(report)
        return builder.tally()

    def __add__(self, other: "Tally") -> "Tally":
        if self.fingerprint != other.fingerprint or len(self.counters) != len(other.counters):
            raise SurveyMismatch(
                f"tallies add within one survey; found {self.fingerprint.hex()[:12]} and "
                f"{other.fingerprint.hex()[:12]}. Tally each survey by itself."
            )
        twice = self.report_ids & other.report_ids
        if twice:
            raise ReportDuplicate(
                f"a report counts once; {len(twice)} are in both tallies. "
                "Add tallies of different reports."
            )
        return Tally(
            self.fingerprint,
            tuple(a + b for a, b in zip(self.reports, other.reports, strict=True)),
            self.counters + other.counters,
            self.report_ids | other.report_ids,
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tally)
            and self.fingerprint == other.fingerprint
            and self.reports == other.reports
            and np.array_equal(self.counters, other.counters)
            and self.report_ids == other.report_ids
        )

    __hash__ = None  # type: ignore[assignment]  # holds an array

    def per_level(self, survey: Survey) -> tuple[IntArray, ...]:
        """The counters as (label x cell) arrays, coarsest level first."""
        self.require(survey)
        return survey.hierarchy.split(self.counters)

    def clients(self, survey: Survey) -> int:
        """How many reports were counted in all."""
        if isinstance(survey.level_policy, OneLevel):
            return sum(self.reports)
        return self.reports[0]

    def require(self, survey: Survey) -> None:
        """Raise `SurveyMismatch` unless this tally belongs to the survey."""
        if self.fingerprint != survey.fingerprint:
            raise SurveyMismatch(
                f"the tally is for survey {self.fingerprint.hex()[:12]}; this survey is "
                f"{survey.fingerprint.hex()[:12]}. Pass the survey file it was made with."
            )

    def to_json(self) -> dict[str, Any]:
        """A versioned JSON object."""
        return {
            "format": TALLY_FORMAT,
            "fingerprint": self.fingerprint.hex(),
            "reports": list(self.reports),
            "counters": self.counters.tolist(),
            "report_ids": sorted(report_id.hex() for report_id in self.report_ids),
        }

    @classmethod
    def from_json(cls, content: object, survey: Survey, *, where: str = "tally") -> "Tally":
        """Rebuild the tally of a survey from untrusted JSON."""
        fields = Fields(check_format(content, TALLY_FORMAT, where), where)
        fields.only("format", "fingerprint", "reports", "counters", "report_ids")
        counters = fields.integers("counters", survey.hierarchy.width)
        if len(counters) != survey.hierarchy.width:
            raise FileInvalid(
                f"{where}: the survey has {survey.hierarchy.width} counters; found {len(counters)}."
            )
        if survey.is_exact and min(counters) < 0:
            raise FileInvalid(f"{where}: exact counts are never negative; found negative ones.")
        reports = fields.integers("reports", survey.hierarchy.levels)
        if len(reports) != survey.hierarchy.levels or min(reports) < 0:
            raise FileInvalid(f'{where}: "reports" must hold a count for every level.')
        if isinstance(survey.level_policy, EveryLevel) and len(set(reports)) > 1:
            raise FileInvalid(f"{where}: every report is on every level; the counts differ.")
        tally = cls(
            bytes.fromhex(_hex(fields.text("fingerprint"), 32, where)),
            tuple(reports),
            np.array(counters, dtype=np.int64),
            _ids(fields.get("report_ids"), where),
        )
        if len(tally.report_ids) > tally.clients(survey):
            raise FileInvalid(f"{where}: there are more report ids than reports.")
        tally.require(survey)
        return tally


class TallyBuilder:
    """Adds reports to a tally one at a time, in place; a refused report changes nothing."""

    def __init__(self, start: Tally, survey: Survey) -> None:
        start.require(survey)
        self._survey = survey
        self._reports = list(start.reports)
        self._is_exact = survey.is_exact
        self._counters = start.counters.copy()
        self._report_ids = set(start.report_ids)

    def add(self, report: Message) -> None:
        """Count one message, or raise and count nothing."""
        if report.fingerprint != self._survey.fingerprint:
            raise SurveyMismatch(
                f"the tally is for survey {self._survey.fingerprint.hex()[:12]}; the report "
                f"answers {report.fingerprint.hex()[:12]}. Tally it with its own survey file."
            )
        if report.report_id in self._report_ids:
            raise ReportDuplicate(
                f"a report counts once; {report.report_id.hex()[:12]} is already in the tally. "
                "Nothing to do: it was counted the first time."
            )
        if self._is_exact and not isinstance(report, Block) and report.counters.min(initial=0) < 0:
            raise ReportMalformed(
                "exact counts are never negative; this report has negative ones. "
                "Ask the client to send it again."
            )
        if report.level is None:
            self._reports = [count + 1 for count in self._reports]
        else:
            self._reports[report.level] += report.reports
        place = self._place(report.level)
        if isinstance(report, Block):
            size = place.stop - place.start
            mechanism = local_mechanism(self._survey, report.level)
            self._counters[place] += mechanism.sums(report.rows, size)
        else:
            self._counters[place] += report.counters
        self._report_ids.add(report.report_id)

    def _place(self, level: int | None) -> slice:
        return slice(None) if level is None else self._survey.hierarchy.counters(level)

    def tally(self) -> Tally:
        """The sum so far."""
        return Tally(
            self._survey.fingerprint,
            tuple(self._reports),
            self._counters.copy(),
            frozenset(self._report_ids),
        )


def _check(tally: Tally) -> None:
    """A tally is made by `Tally.zero`, `Tally.of` and `+`; nothing else passes for one."""
    fingerprint: Any = tally.fingerprint
    reports_per_level: Any = tally.reports
    counters: Any = tally.counters
    fits = (
        isinstance(fingerprint, bytes)
        and len(fingerprint) == 32
        and isinstance(reports_per_level, tuple)
        and isinstance(counters, np.ndarray)
        and counters.ndim == 1
        and counters.dtype == np.int64
    )
    if not fits:
        raise SettingInvalid(
            "a tally holds a fingerprint of 32 bytes, a tuple of reports per level and a row of "
            "whole-number counters; found something else. Start from Tally.zero(survey)."
        )
    for reports in tally.reports:
        require_whole(reports, "a level's reports", 0)


def _hex(text: str, length: int, where: str) -> str:
    if len(text) != 2 * length or any(c not in "0123456789abcdef" for c in text):
        raise FileInvalid(f"{where}: expected {2 * length} hexadecimal digits.")
    return text


def _ids(raw: object, where: str) -> frozenset[bytes]:
    if not isinstance(raw, list) or not all(isinstance(item, str) for item in raw):
        raise FileInvalid(f'{where}: "report_ids" must be a list of ids.')
    return frozenset(bytes.fromhex(_hex(text, REPORT_ID_BYTES, where)) for text in raw)
