"""Running the JavaScript client."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tables import ROOT

CLIENT = ROOT / "examples" / "clients" / "javascript"
SCRIPTS = ROOT / "tests" / "javascript"


def run_node(
    script: Path, *arguments: object, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script to its end; without node the test is skipped, in CI it fails."""
    node = shutil.which("node")
    if node is None:
        reason = "node is not on this machine: install it (Debian: apt install nodejs)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return subprocess.run(
        [node, str(script), *map(str, arguments)],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
