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


def node_verdicts(texts: list[bytes]) -> list[str]:
    """What node says of each survey: its fingerprint, or that it is refused."""
    done = run_node(SCRIPTS / "fingerprints.mjs", given=b"\n".join([*texts, b""]).decode())
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
