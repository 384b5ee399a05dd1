"""What both launchers need: an environment from scratch, processes that end together, checks."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType

from fedassay.engines.flower.credentials import write_secret
from fedassay.errors import FileInvalid, SettingInvalid

_GRACE_SECONDS = 6.0
_SECRET_BYTES = 32
_KEPT = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "USER")


def clean_environment(programs: Path, home: Path) -> dict[str, str]:
    """What Flower's processes may know: nothing that the caller's shell happens to say.

    PATH is the folder of programs alone, so that a name that Flower adds later is not found
    instead of found. PYTHON*, LD_*, FLWR_* (which could open Flower's old ports) and proxies are
    left behind.
    """
    return {
        **{name: os.environ[name] for name in _KEPT if name in os.environ},
        "PATH": str(programs),
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
        "NO_COLOR": "1",
    }


def flower_program(name: str) -> str:
    """One of Flower's programs, by its full path beside this Python."""
    path = Path(sys.executable).parent / name
    if not path.is_file():
        raise SettingInvalid(
            f"{name} is not installed beside this Python. Install it: pip install "
            "'fedassay[flower]'"
        )
    return str(path)


def check_private(path: Path) -> None:
    """Raise unless only its owner, this user or root, may read a file or enter a folder."""
    try:
        found = path.stat()
    except OSError as error:
        raise FileInvalid(f"{path}: cannot be read ({error.strerror}). Check the path.") from error
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o077:
        raise FileInvalid(
            f"{path}: others may read it, and it holds secrets. Make it yours alone: "
            f"chmod go-rwx {path}"
        )


def make_private(folder: Path) -> None:
    """Make a folder that only this user enters, or check the one that is there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise FileInvalid(
            f"{folder}: cannot be made ({error.strerror}). Choose a folder you may write to."
        ) from error
    check_private(folder)


def fresh_secret(path: Path) -> Path:
    """A new secret, which lets the one SuperExec in that this launcher starts."""
    path.unlink(missing_ok=True)
    write_secret(path, os.urandom(_SECRET_BYTES))
    return path


@dataclass(slots=True)
class Processes:
    """Processes that run together: when one ends, or this one is told to, all end."""

    environment: Mapping[str, str]
    stopping: bool = False
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __enter__(self) -> "Processes":
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._running:
            with suppress(ProcessLookupError):
                process.terminate()
        end = time.monotonic() + _GRACE_SECONDS
        for process in self._running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, end - time.monotonic()))
        for process in self._running:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()

    def start(self, *arguments: object) -> int:
        """Start a program by its full path; returns its process id."""
        process = subprocess.Popen(  # noqa: S603  # our own arguments, no shell
            [str(argument) for argument in arguments],
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
        )
        self._running.append(process)
        return process.pid

    def ended(self) -> int | None:
        """The exit code of one that ended by itself, or None while all run."""
        for process in self._running:
            if process.poll() is not None:
                return process.returncode or 0
        return None

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stopping = True
