"""Which page an assessment has: of one model, of two on the same rows, or of classes."""

from collections.abc import Sequence
from pathlib import Path

from fedassay.assessment import Assessment
from fedassay.calibration import Calibrator
from fedassay.classes.result import ClassAssessment
from fedassay.errors import SettingInvalid
from fedassay.ledger import Entry
from fedassay.paired.assessment import PairedAssessment
from fedassay.report.classes_page import write_classes_report
from fedassay.report.material import ReportDetails
from fedassay.report.page import write_report
from fedassay.report.pair_page import write_pair_report

AnyAssessment = Assessment | PairedAssessment | ClassAssessment


def write_any_report(
    assessment: AnyAssessment,
    path: str | Path,
    *,
    calibrator: Calibrator | None = None,
    details: ReportDetails | None = None,
    ledger: Sequence[Entry] = (),
) -> int:
    """Write the page of an assessment, whole or not at all; returns how many bytes it has."""
    if isinstance(assessment, PairedAssessment | ClassAssessment):
        for option, given in (("a calibrator", calibrator is not None), ("a ledger", bool(ledger))):
            if given:
                raise SettingInvalid(
                    f"{option} is shown on the page of one model with one score; found an "
                    "assessment of two models or of classes. Leave it out."
                )
    if isinstance(assessment, PairedAssessment):
        return write_pair_report(assessment, path, details=details)
    if isinstance(assessment, ClassAssessment):
        return write_classes_report(assessment, path, details=details)
    return write_report(assessment, path, calibrator=calibrator, details=details, ledger=ledger)
