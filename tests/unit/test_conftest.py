"""With CI set, a skip of any kind fails and says why; without, it stays a skip."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.tables import ROOT

SKIPS = {
    "mark": "import pytest\n@pytest.mark.skip(reason='no machine A')\ndef test_it(): ...\n",
    "call": "import pytest\ndef test_it(): pytest.skip('no machine B')\n",
    "fixture": (
        "import pytest\n@pytest.fixture\ndef machine(): pytest.skip('no machine C')\n"
        "def test_it(machine): ...\n"
    ),
    "file": "import pytest\npytest.skip('no machine D', allow_module_level=True)\n",
    "import": "import pytest\npytest.importorskip('absent', reason='no machine E')\n",
}
NO_SKIPS = {
    "passes": "def test_it(): ...\n",
    "known": "import pytest\n@pytest.mark.xfail(reason='known')\ndef test_it(): assert 0\n",
}


def outcome(tmp_path: Path, files: dict[str, str], *, ci: bool) -> tuple[int, str]:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for name, code in files.items():
        (tmp_path / f"test_{name}.py").write_text(code)
    env = {name: value for name, value in os.environ.items() if name != "CI"}
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | ({"CI": "true"} if ci else {})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-ra", "--continue-on-collection-errors"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def test_in_ci_a_skip_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    code, said = outcome(tmp_path, SKIPS, ci=True)
    assert code == 1
    assert "1 failed, 4 errors" in said
    for machine in "ABCDE":
        line = next(line for line in said.splitlines() if f"no machine {machine}" in line)
        assert line.startswith("CI is set, and there nothing is skipped; found: ")


def test_elsewhere_a_skip_is_a_skip(tmp_path: Path) -> None:
    code, said = outcome(tmp_path, SKIPS | NO_SKIPS, ci=False)
    assert code == 0
    assert "1 passed, 5 skipped, 1 xfailed" in said


def test_in_ci_what_is_no_skip_stays_as_it_is(tmp_path: Path) -> None:
    code, said = outcome(tmp_path, NO_SKIPS, ci=True)
    assert code == 0
    assert "1 passed, 1 xfailed" in said
