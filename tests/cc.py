"""Building the C client, with warnings as errors and sanitizers, and asking its parts."""

import json
import shutil
import subprocess
import tempfile
from atexit import register
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from tests.tables import ROOT

CLIENT = ROOT / "examples" / "clients" / "c"
DRIVER = ROOT / "tests" / "c" / "driver.c"
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion")
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@cache
def built() -> Path:
    """A folder with the command and the driver; without a compiler the test is skipped."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler on this machine. Install one (apt install gcc).")
    folder = Path(tempfile.mkdtemp(prefix="fedassay-c-"))
    register(shutil.rmtree, folder, ignore_errors=True)
    parts = sorted(path for path in CLIENT.glob("*.c") if path.name != "report.c")
    _run(compiler, *STRICT, *SANITIZED, "-c", *parts, CLIENT / "report.c", DRIVER, cwd=folder)
    objects = [f"{path.stem}.o" for path in parts]
    for made, main in (("fedassay-report", "report.o"), ("driver", "driver.o")):
        _run(compiler, *SANITIZED, "-o", made, main, *objects, "-lm", cwd=folder)
    return folder


def _run(*command: object, cwd: Path) -> None:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def asked(*lines: Iterable[object], megabytes: int = 1024) -> list[str]:
    """What the driver says to each line, values between tabs; one process for all.

    It ends where it allocates more at once than it may.
    """
    given = "".join("\t".join(map(str, line)) + "\n" for line in lines)
    done = subprocess.run(
        [built() / "driver"],
        input=given.encode(),
        capture_output=True,
        check=False,
        timeout=300,
        env={"ASAN_OPTIONS": f"max_allocation_size_mb={megabytes}"},
    )
    assert done.returncode == 0, done.stderr.decode()
    answers = done.stdout.decode().split("\n")[:-1]
    assert len(answers) == len(lines)
    return answers


def run_command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """`fedassay-report`, to its end."""
    return subprocess.run(
        [built() / "fedassay-report", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def c_verdicts(texts: list[str]) -> list[str]:
    """What the C client says of each survey: its fingerprint, or that it is refused."""
    said = asked(*(("survey", text) for text in texts))
    return [
        "refused" if each.startswith("refused: ") else json.loads(each)["fingerprint"]
        for each in said
    ]
