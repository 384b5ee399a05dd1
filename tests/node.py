"""Running the JavaScript client."""

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
    """Run a script to its end; without node the test is skipped, which in CI is a failure."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not on this machine. Install it (Debian: apt install nodejs).")
    return subprocess.run(
        [node, str(script), *map(str, arguments)],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
