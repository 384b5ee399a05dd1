"""The report: one self-contained HTML page about an assessment."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fedassay.assessment import Assessment
from fedassay.calibration import Calibrator
from fedassay.checks import require_type
from fedassay.files import as_path, write_whole
from fedassay.ledger import Entry
from fedassay.report.markup import Markup
from fedassay.report.material import Material, ReportDetails
from fedassay.report.sections.appendix import appendix
from fedassay.report.sections.calibration import calibration
from fedassay.report.sections.discrimination import discrimination
from fedassay.report.sections.error_sources import error_sources
from fedassay.report.sections.flow import flow
from fedassay.report.sections.groups import groups
from fedassay.report.sections.sites import sites
from fedassay.report.sections.summary import summary
from fedassay.report.sections.threshold import at_a_threshold
from fedassay.report.sections.usefulness import usefulness
from fedassay.report.shell import asset, whole_page

SECTIONS: Mapping[str, tuple[str, Callable[[Material], Markup | None]]] = {
    "summary": ("In words", summary),
    "flow": ("Flow", flow),
    "discrimination": ("Discrimination", discrimination),
    "calibration": ("Calibration", calibration),
    "threshold": ("At a threshold", at_a_threshold),
    "usefulness": ("Usefulness", usefulness),
    "sites": ("Sites", sites),
    "groups": ("Groups", groups),
    "errors": ("Errors", error_sources),
    "appendix": ("Appendix", appendix),
}
"""In the order in which a statistician reads; by the name that a link to a section has.

One that has nothing to show, such as sites that nobody may see, is left out.
"""

_TITLE = "Assessment of a classifier"


def write_report(
    assessment: Assessment,
    path: str | Path,
    *,
    calibrator: Calibrator | None = None,
    details: ReportDetails | None = None,
    ledger: Sequence[Entry] = (),
) -> int:
    """Write the page, whole or not at all; returns how many bytes it has."""
    page = report_page(assessment, calibrator=calibrator, details=details, ledger=ledger)
    return write_whole(as_path(path), page.encode())


def report_page(
    assessment: Assessment,
    *,
    calibrator: Calibrator | None = None,
    details: ReportDetails | None = None,
    ledger: Sequence[Entry] = (),
) -> str:
    """The page as text; raises `TooFewReports` below the survey's minimum."""
    require_type(assessment, Assessment, "what is reported on", "fedassay.load reads files.")
    if calibrator is not None:
        require_type(calibrator, Calibrator, "a calibrator", "fedassay.load reads files.")
    told = ReportDetails() if details is None else details
    require_type(told, ReportDetails, "a report's details", "Write ReportDetails(model=...).")
    material = Material(assessment, told, calibrator, tuple(ledger))
    made = {name: (called, make(material)) for name, (called, make) in SECTIONS.items()}
    shown = {name: (called, markup) for name, (called, markup) in made.items() if markup}
    script = asset("metrics.js") + asset("page.js")
    return whole_page(told.title or _TITLE, shown, data=material.table.to_json(), script=script)
