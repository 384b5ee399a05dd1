"""The program, called as people call it, and what its refusals look like."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

CANARY = "7312345"


class Result(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Result]


def check_refused(result: Result, *words: str) -> None:
    assert result.code == 2
    assert len(result.err.strip().splitlines()) == 1, result.err
    assert "Traceback" not in result.err
    assert CANARY not in result.err + result.out
    for word in words:
        assert word in result.err


def write_csv(path: Path, rows: str, header: str = "score,label") -> Path:
    path.write_text(f"{header}\n{rows}\n" if header else f"{rows}\n")
    return path


def program(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fedassay", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
