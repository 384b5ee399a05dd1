"""What the error is made of, and what would make it smaller."""

from math import sqrt

from fedassay.assessment import Assessment
from fedassay.estimate import Estimate
from fedassay.report.markup import Markup, element
from fedassay.report.material import Material
from fedassay.report.svg import legend
from fedassay.report.wording import LABELS, section, table

SOURCES = ("sampling", "cells", "privacy")
_OVERALL = ("roc_auc", "average_precision", "brier", "oe_ratio", "calibration_slope")
_AT_THRESHOLD = ("recall", "specificity", "precision", "net_benefit")
_REMEDIES = {
    "sampling": "chance in drawing rows: four times the rows would halve it",
    "privacy": "privacy noise: more clients, or a larger epsilon, would help",
}
_ASKED_ONCE = "a second step (--steps 2), or a reference, would help"
_ASKED_TWICE = (
    "its thresholds named beforehand (--threshold), more clients, or a larger epsilon, would help"
)


def error_sources(material: Material) -> Markup:
    """Per metric the parts of its variance, and one sentence on the largest."""
    estimates = {name: material.overall[name] for name in _OVERALL}
    estimates |= {name: material.at_start(name) for name in _AT_THRESHOLD}
    known = {name: each for name, each in estimates.items() if each.is_available}
    rows = [_row(name, each) for name, each in known.items()]
    head = ["figure", "shares of the variance", "sampling", "cells", "privacy"]
    keys = legend(("sampling", "sampling"), ("cells", "cells"), ("privacy", "privacy"))
    return section(
        "errors",
        "What the error is made of",
        element("p", _sentence(known, _for_cells(material.assessment))),
        element("p", keys, class_="legend"),
        table(
            head,
            rows,
            caption=f"Standard deviations, those at a threshold at {material.start:g}",
        ),
    )


def parts(estimate: Estimate) -> dict[str, float]:
    """The three variances of a figure, by source."""
    sds = (estimate.sampling_sd, estimate.binning_sd, estimate.noise_sd)
    return {source: sd * sd for source, sd in zip(SOURCES, sds, strict=True)}


def largest(estimate: Estimate) -> str:
    """The source of most of the variance."""
    found = parts(estimate)
    return max(SOURCES, key=lambda source: found[source])


def _for_cells(assessment: Assessment) -> str:
    """What helps where cells hide most: of exact sums more rows, which make them smaller."""
    if assessment.first is not None:
        return _ASKED_TWICE
    fewest = assessment.survey.smallest_cell
    if fewest:
        return f"more rows would help, since each holds at least {fewest:,} of either label"
    return _ASKED_ONCE


def _sentence(estimates: dict[str, Estimate], for_cells: str) -> str:
    """What would make the errors smaller, by what causes most of them."""
    remedies = _REMEDIES | {"cells": f"what the survey's cells hide: {for_cells}"}
    if not estimates:
        return "No figure is available, so that there is no error to take apart."
    by_source: dict[str, list[str]] = {}
    for name, estimate in estimates.items():
        by_source.setdefault(largest(estimate), []).append(LABELS[name])
    if len(by_source) == 1:
        (source,) = by_source
        return f"Everywhere the largest part is {remedies[source]}."
    # Which begins a sentence.
    return (
        "O"
        + "; ".join(
            f"of {', '.join(names)} the largest part is {remedies[source]}"
            for source, names in by_source.items()
        )[1:]
        + "."
    )


def _row(name: str, estimate: Estimate) -> Markup:
    found = parts(estimate)
    total = sum(found.values())
    shares = [found[source] / total if total > 0.0 else 0.0 for source in SOURCES]
    return element(
        "tr",
        element("th", LABELS[name], scope="row"),
        element("td", _bar(shares)),
        *(element("td", f"{sqrt(found[source]):.2g}", class_="number") for source in SOURCES),
    )


def _bar(shares: list[float]) -> Markup:
    """The shares as one bar with their percentages for who cannot see it."""
    words = ", ".join(
        f"{source} {100 * share:.0f} %" for source, share in zip(SOURCES, shares, strict=True)
    )
    start, pieces = 0.0, []
    for source, share in zip(SOURCES, shares, strict=True):
        if share >= 0.001:
            width = f"{160 * share:.1f}"
            pieces.append(
                element("rect", class_=source, x=f"{start:.1f}", y=0, width=width, height=14)
            )
        start += 160 * share
    return element("svg", *pieces, class_="bar", viewBox="0 0 160 14", role="img", aria_label=words)
