"""The report: one self-contained HTML page about an assessment.

Nothing in it comes from outside, and nothing leaves it: the Content-Security-Policy names the
hashes of its one style and its one script, and forbids everything else.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from fedassay.assessment import Assessment
from fedassay.calibration import Calibrator
from fedassay.checks import require_type
from fedassay.files import as_path, write_whole
from fedassay.report.markup import Markup, element, named
from fedassay.report.material import Material, ReportDetails
from fedassay.report.sections.appendix import appendix
from fedassay.report.sections.calibration import calibration
from fedassay.report.sections.discrimination import discrimination
from fedassay.report.sections.error_sources import error_sources
from fedassay.report.sections.flow import flow
from fedassay.report.sections.sites import sites
from fedassay.report.sections.summary import summary
from fedassay.report.sections.threshold import at_a_threshold
from fedassay.report.sections.usefulness import usefulness
from fedassay.report.wording import VERSION

SECTIONS: Mapping[str, tuple[str, Callable[[Material], Markup | None]]] = {
    "summary": ("In words", summary),
    "flow": ("Flow", flow),
    "discrimination": ("Discrimination", discrimination),
    "calibration": ("Calibration", calibration),
    "threshold": ("At a threshold", at_a_threshold),
    "usefulness": ("Usefulness", usefulness),
    "sites": ("Sites", sites),
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
) -> int:
    """Write the page, whole or not at all; returns how many bytes it has."""
    page = report_page(assessment, calibrator=calibrator, details=details)
    return write_whole(as_path(path), page.encode())


def report_page(
    assessment: Assessment,
    *,
    calibrator: Calibrator | None = None,
    details: ReportDetails | None = None,
) -> str:
    """The page as text; raises `TooFewReports` below the survey's minimum."""
    require_type(assessment, Assessment, "what is reported on", "fedassay.load reads files.")
    if calibrator is not None:
        require_type(calibrator, Calibrator, "a calibrator", "fedassay.load reads files.")
    told = ReportDetails() if details is None else details
    require_type(told, ReportDetails, "a report's details", "Write ReportDetails(model=...).")
    material = Material(assessment, told, calibrator)
    style, script = _asset("page.css"), _asset("metrics.js") + _asset("page.js")
    title = told.title or _TITLE
    made = {name: make(material) for name, (_, make) in SECTIONS.items()}
    shown = [name for name, markup in made.items() if markup is not None]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content=f"fedassay {VERSION}"),
        element("title", title[:200]),
        element("style", Markup(style)),
    )
    body = element(
        "body",
        element("a", "To the text", href="#main", class_="skip"),
        element("header", element("h1", named(title)), _contents(shown)),
        element("main", *made.values(), id="main"),
        element("footer", element("p", f"Made by fedassay {VERSION}; nothing leaves this page.")),
        element("script", _block(material.table.to_json()), id="data", type="application/json"),
        element("script", Markup(script)),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _contents(names: list[str]) -> Markup:
    links = (element("li", element("a", SECTIONS[name][0], href=f"#{name}")) for name in names)
    return element("nav", element("ol", *links), aria_label="Sections")


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _block(content: Mapping[str, Any]) -> Markup:
    """JSON that cannot end the element that it stands in."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _asset(name: str) -> str:
    return (files("fedassay.report") / name).read_text("utf-8")
