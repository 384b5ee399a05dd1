"""The tally: reports added up, as integers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedassay.checks import require_type, require_whole
from fedassay.errors import (
    CountOverflow,
    FileInvalid,
    ReportDuplicate,
    ReportMalformed,
    SettingInvalid,
    SiteDuplicate,
    SurveyMismatch,
)
from fedassay.examples import MOST_NAME, FloatArray, IntArray
from fedassay.files import LARGEST_SAFE_INTEGER
from fedassay.level_policy import EveryLevel, OneLevel
from fedassay.report_ids import GrowingIds, ReportIds
from fedassay.shuffler import BATCH_TAG_BYTES, batch_with
from fedassay.survey import Survey
from fedassay.wire import Block, Message, Report, local_mechanism

MOST_SITES = 2**12
MOST_SITE_COUNTERS = 2**20
"""Of all sites together. Where there are more, all are added up only, so that files stay small."""


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
    report_ids: ReportIds = field(default_factory=ReportIds)
    sites: Mapping[str, IntArray] = field(default_factory=dict)
    """The counters of every report by its site's name, where they may be seen; all or none."""
    moments: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Sums of moments of sites' metrics, where the survey asks for them."""

    def __post_init__(self) -> None:
        _check(self)
        for counters in self.sites.values():
            counters.flags.writeable = False
        if len(self.counters) and np.abs(self.counters).max() >= 2**31:
            raise CountOverflow(
                "sums must stay below 2^31, because secure aggregation counts modulo 2^32; "
                "found a larger one. Tally fewer clients at a time."
            )
        self.counters.flags.writeable = False
        self.moments.flags.writeable = False

    def __repr__(self) -> str:
        heard = "/".join(f"{reports:,}" for reports in self.reports)
        return f"<Tally of survey {self.fingerprint.hex()[:12]}: {heard} reports per level>"

    @classmethod
    def zero(cls, survey: Survey) -> "Tally":
        """Nothing counted yet."""
        require_type(survey, Survey, "a tally's survey", "fedassay.load reads survey files.")
        hierarchy = survey.hierarchy
        empty = np.zeros(hierarchy.width, dtype=np.int64)
        moments = np.zeros(survey.moment_words, dtype=np.int64)
        return cls(survey.fingerprint, (0,) * hierarchy.levels, empty, moments=moments)

    @classmethod
    def of(cls, survey: Survey, reports: Iterable[Message]) -> "Tally":
        """Add up reports; a repeated or foreign one raises."""
        builder = TallyBuilder(cls.zero(survey), survey)
        for report in reports:
            builder.add(report)
        return builder.tally()

    def __add__(self, other: "Tally") -> "Tally":
        require_type(other, Tally, "what is added to a tally", "Use Tally.of(survey, reports).")
        sizes = [(len(each.counters), len(each.moments)) for each in (self, other)]
        if self.fingerprint != other.fingerprint or sizes[0] != sizes[1]:
            raise SurveyMismatch(
                f"tallies add within one survey; found {self.fingerprint.hex()[:12]} and "
                f"{other.fingerprint.hex()[:12]}. Tally each survey by itself."
            )
        return Tally(
            self.fingerprint,
            tuple(a + b for a, b in zip(self.reports, other.reports, strict=True)),
            self.counters + other.counters,
            self.report_ids | other.report_ids,
            self._sites_with(other),
            self.moments + other.moments,
        )

    def _sites_with(self, other: "Tally") -> dict[str, IntArray]:
        """The sites of both, as long as all are known and few enough."""
        both = {**self.sites, **other.sites}
        twice = sorted(set(self.sites) & set(other.sites))
        if twice:
            raise SiteDuplicate(_counts_once(twice[0]))
        reports = max((a + b for a, b in zip(self.reports, other.reports, strict=True)), default=0)
        return both if len(both) == reports and _may_keep(both, self.counters) else {}

    def without(self, part: "Tally") -> "Tally":
        """As if the reports of another tally, which are all in this one, had never come."""
        if self.fingerprint != part.fingerprint:
            raise SurveyMismatch(
                f"reports leave the tally of their own survey; found {part.fingerprint.hex()[:12]} "
                f"and {self.fingerprint.hex()[:12]}. Name reports to this survey."
            )
        left = self.report_ids - part.report_ids
        if len(self.report_ids) - len(left) != len(part.report_ids) or not len(part.report_ids):
            raise SettingInvalid(
                "only reports that are in a tally can leave it; found one that is not. Nothing to "
                "do: it was never counted."
            )
        leaving = [own.tobytes() for own in part.sites.values()]
        return Tally(
            self.fingerprint,
            tuple(a - b for a, b in zip(self.reports, part.reports, strict=True)),
            self.counters - part.counters,
            left,
            {name: own for name, own in self.sites.items() if own.tobytes() not in leaving},
            self.moments - part.moments,
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tally)
            and self.fingerprint == other.fingerprint
            and self.reports == other.reports
            and np.array_equal(self.counters, other.counters)
            and self.report_ids == other.report_ids
            and self.sites.keys() == other.sites.keys()
            and all(np.array_equal(self.sites[name], other.sites[name]) for name in self.sites)
            and np.array_equal(self.moments, other.moments)
        )

    __hash__ = None  # type: ignore[assignment]  # holds an array

    def per_level(self, survey: Survey) -> tuple[IntArray, ...]:
        """The counters as (label x cell) arrays, coarsest level first."""
        self.require(survey)
        return survey.hierarchy.split(self.counters)

    def edges(self, survey: Survey) -> FloatArray:
        """Between which edges the counters of the finest level lie."""
        return survey.grid.edges

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

    @classmethod
    def checked(
        cls,
        survey: Survey,
        *,
        reports: Sequence[int],
        counters: IntArray,
        report_ids: ReportIds | None = None,
        sites: Mapping[str, IntArray] | None = None,
        moments: IntArray | None = None,
        where: str = "tally",
    ) -> "Tally":
        """The tally of a survey from what a stranger may have written in a file."""
        if len(counters) != survey.hierarchy.width:
            raise FileInvalid(
                f"{where}: the survey has {survey.hierarchy.width} counters; found {len(counters)}."
            )
        if counters.min() <= -(2**31) or counters.max() >= 2**31:
            raise FileInvalid(f"{where}: sums stay below 2^31; found a larger one.")
        if survey.is_exact and counters.min() < 0:
            raise FileInvalid(f"{where}: exact counts are never negative; found negative ones.")
        if len(reports) != survey.hierarchy.levels or not all(
            0 <= count < LARGEST_SAFE_INTEGER for count in reports
        ):
            raise FileInvalid(f'{where}: "reports" must hold a count for every level.')
        if isinstance(survey.level_policy, EveryLevel) and len(set(reports)) > 1:
            raise FileInvalid(f"{where}: every report is on every level; the counts differ.")
        ids = ReportIds() if report_ids is None else report_ids
        words = np.zeros(0, dtype=np.int64) if moments is None else moments
        if len(words) != survey.moment_words or np.abs(words).max(initial=0) >= 2**31:
            raise FileInvalid(
                f"{where}: the survey has {survey.moment_words} sums of moments, below 2^31; found "
                f"{len(words)}, or a larger one."
            )
        _check_sites(survey, sites or {}, counters, max(reports), where)
        tally = cls(survey.fingerprint, tuple(reports), counters, ids, sites or {}, words)
        if len(ids) > tally.clients(survey):
            raise FileInvalid(f"{where}: there are more report ids than reports.")
        return tally


class TallyBuilder:
    """Adds reports to a tally one at a time, in place; a refused report changes nothing."""

    def __init__(self, start: Tally, survey: Survey) -> None:
        start.require(survey)
        self.survey = survey
        self._reports = list(start.reports)
        self._is_exact = survey.is_exact
        self._counters = start.counters.copy()
        self._moments = start.moments.copy()
        self._report_ids = GrowingIds(start.report_ids)
        self._batch = next(iter(start.report_ids), b"")[:BATCH_TAG_BYTES]
        # Whoever may be seen is kept by name, unless some are already unknown.
        known = survey.reports_may_be_seen and len(start.sites) == max(start.reports)
        self._sites = dict(start.sites) if known and not survey.is_local else None

    @property
    def surveys(self) -> tuple[Survey, ...]:
        """The surveys whose reports it counts: one."""
        return (self.survey,)

    @property
    def reports(self) -> int:
        """How many reports were counted so far."""
        if isinstance(self.survey.level_policy, OneLevel):
            return sum(self._reports)
        return self._reports[0]

    def add(self, report: Message, *, name: str | None = None) -> None:
        """Count one message, or raise and count nothing.

        Where single reports may be seen, it is kept under its site's name, or under the first
        letters of its id.
        """
        if report.fingerprint != self.survey.fingerprint:
            raise SurveyMismatch(
                f"the tally is for survey {self.survey.fingerprint.hex()[:12]}; the report "
                f"answers {report.fingerprint.hex()[:12]}. Tally it with its own survey file."
            )
        if report.report_id in self._report_ids:
            raise ReportDuplicate(
                f"a report counts once; {report.report_id.hex()[:12]} is already in the tally. "
                "Nothing to do: it was counted the first time."
            )
        self._batch = batch_with(self.survey, report, self._batch)
        site = (name or report.report_id.hex()[:12])[:MOST_NAME]
        if self._sites is not None and site in self._sites:
            raise SiteDuplicate(_counts_once(site))
        place = self._place(report.level)
        moments = self._moments
        if isinstance(report, Report):
            moments = self._with_moments(report)
        self._counters[place], self._moments = self._sums(report, place), moments
        if report.level is None:
            self._reports = [count + 1 for count in self._reports]
        else:
            self._reports[report.level] += report.reports
        self._report_ids.add(report.report_id)
        if self._sites is not None and isinstance(report, Report):
            self._sites[site] = report.counters.copy()
            if not _may_keep(self._sites, self._counters):
                self._sites = None

    def _sums(self, report: Message, place: slice) -> IntArray:
        """The counters with this report in them."""
        if isinstance(report, Block):
            mechanism = local_mechanism(self.survey, report.level)
            added = mechanism.sums(report.rows, place.stop - place.start)
        else:
            added = report.counters
            if self._is_exact and added.min(initial=0) < 0:
                raise ReportMalformed(
                    "exact counts are never negative; this report has negative ones. "
                    "Ask the client to send it again."
                )
        sums: IntArray = self._counters[place] + added
        if max(sums.max(initial=0), -sums.min(initial=0)) >= 2**31:
            raise CountOverflow(
                f"sums must stay below 2^31; report {report.report_id.hex()[:12]} would take one "
                "beyond it and is left out. Ask its client whether its counts are true."
            )
        return sums

    def _with_moments(self, report: Report) -> IntArray:
        """The sums of moments with this report's in them."""
        if len(report.moments) != self.survey.moment_words:
            raise ReportMalformed(
                f"this survey has {self.survey.moment_words} moments; the report has "
                f"{len(report.moments)}. Ask the client to send it again."
            )
        sums: IntArray = self._moments + report.moments
        if np.abs(sums).max(initial=0) >= 2**31:
            raise CountOverflow(
                f"sums must stay below 2^31; the moments of report {report.report_id.hex()[:12]} "
                "would take one beyond it, and it is left out. Ask its client whether they are "
                "true."
            )
        return sums

    def _place(self, level: int | None) -> slice:
        return slice(None) if level is None else self.survey.hierarchy.counters(level)

    def tally(self) -> Tally:
        """The sum so far."""
        return Tally(
            self.survey.fingerprint,
            tuple(self._reports),
            self._counters.copy(),
            self._report_ids.ids(),
            dict(self._sites or {}),
            self._moments.copy(),
        )


def _may_keep(sites: Mapping[str, IntArray], counters: IntArray) -> bool:
    return len(sites) <= MOST_SITES and len(sites) * len(counters) <= MOST_SITE_COUNTERS


def _counts_once(site: str) -> str:
    return (
        f"a site counts once; {site!r} is already in the tally, with another report. Keep one of "
        "the two; where they come from different sites, rename one."
    )


def _check_sites(
    survey: Survey, sites: Mapping[str, IntArray], counters: IntArray, reports: int, where: str
) -> None:
    """Raise unless a file's sites are all there, and add up to its counters."""
    if not sites:
        return
    if not survey.reports_may_be_seen or survey.is_local:
        raise FileInvalid(
            f"{where}: only sites that add the whole noise themselves may be seen; this survey's "
            'do not, and "sites" lists some. Make the file again with fedassay tally.'
        )
    fits = len(sites) == reports and all(len(own) == len(counters) for own in sites.values())
    if not fits or not np.array_equal(sum(sites.values()), counters):
        raise FileInvalid(
            f'{where}: "sites" holds the counters of all {reports:,} reports, which add up to '
            '"counters"; these do not. Make the file again with fedassay tally.'
        )
    if not all(0 < len(name) <= MOST_NAME for name in sites) or not _may_keep(sites, counters):
        raise FileInvalid(
            f"{where}: sites have names of 1 to {MOST_NAME} letters and at most "
            f"{MOST_SITE_COUNTERS:,} counters in all; these have others."
        )


def _check(tally: Tally) -> None:
    """A tally is made by `Tally.zero`, `Tally.of` and `+`; nothing else passes for one."""
    fingerprint: Any = tally.fingerprint
    reports_per_level: Any = tally.reports
    counters: Any = tally.counters
    moments: Any = tally.moments
    fits = (
        isinstance(fingerprint, bytes)
        and len(fingerprint) == 32
        and isinstance(reports_per_level, tuple)
        and isinstance(counters, np.ndarray)
        and counters.ndim == 1
        and counters.dtype == np.int64
        and isinstance(moments, np.ndarray)
        and moments.dtype == np.int64
        and isinstance(tally.report_ids, ReportIds)
    )
    if not fits:
        raise SettingInvalid(
            "a tally holds a fingerprint of 32 bytes, a tuple of reports per level and a row of "
            "whole-number counters; found something else. Start from Tally.zero(survey)."
        )
    for reports in tally.reports:
        require_whole(reports, "a level's reports", 0)
