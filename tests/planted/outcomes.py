"""A pytest plugin that writes which tests passed and failed, and which files did not import."""

import json
import os
from pathlib import Path

import pytest

WHERE = "FEDASSAY_OUTCOMES"
_outcomes: dict[str, str] = {}


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A module that cannot be collected is no failing test."""
    if report.failed:
        _outcomes[report.nodeid] = "unimportable"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A test fails in its set-up, its body or its tear-down."""
    if report.failed:
        _outcomes[report.nodeid] = "failed"
    elif report.skipped:
        _outcomes.setdefault(report.nodeid, "skipped")
    elif report.when == "call":
        _outcomes.setdefault(report.nodeid, "passed")


def pytest_sessionfinish() -> None:
    """Write them all."""
    Path(os.environ[WHERE]).write_text(json.dumps(_outcomes), encoding="utf-8")
