"""Programs that stand in place of Flower's own, so that no code that is sent is ever run.

Flower starts what does a task by its bare name. A folder of these programs, alone on the PATH,
decides what runs: the fedassay that made the folder, or a refusal.
"""

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from fedassay.engines.flower.credentials import write_program
from fedassay.errors import FileInvalid

BIN_FOLDER = "bin"
REFUSE = "programs:refuse"
TASKS = (
    "flwr-agentapp", "flwr-clientapp", "flwr-connector", "flwr-model", "flwr-serverapp",
    "flwr-simulation",
)  # fmt: skip
"""What Flower may start for a task."""


def refuse() -> None:
    """End a task that is not fedassay's."""
    sys.exit("fedassay: declined a task of another kind. Only surveys are answered here.")


def all_but(answered: Mapping[str, str]) -> dict[str, str]:
    """An entry for every task: these, and a refusal for all others."""
    return {task: answered.get(task, REFUSE) for task in TASKS}


def make_programs(folder: Path, entries: Mapping[str, str]) -> None:
    """Write one program for each entry `module:function` of this package."""
    for name, entry in entries.items():
        write_program(folder / name, _text(entry))


def check_programs(folder: Path, entries: Mapping[str, str]) -> None:
    """Raise unless a folder holds exactly these programs, byte for byte, and nobody else's."""
    try:
        names = {path.name for path in folder.iterdir()}
        _check_owned(folder)
        for name in names & set(entries):
            _check_owned(folder / name)
        differ = [
            name
            for name, entry in entries.items()
            if name not in names or (folder / name).read_text(errors="replace") != _text(entry)
        ]
    except OSError as error:
        raise FileInvalid(
            f"{folder}: cannot be read ({error.strerror}); it has the programs that run in place "
            "of Flower's. Make it anew: fedassay federation programs FOLDER"
        ) from error
    odd = sorted(names - set(entries)) + differ
    if odd:
        raise FileInvalid(
            f"{folder}: must hold the programs of this fedassay and nothing else, or code that a "
            f"server sends might run; {odd[0][:40]!r} is missing, changed or not one of them. "
            "After an update of fedassay or Python make them anew: fedassay federation programs "
            "FOLDER"
        )


def _check_owned(path: Path) -> None:
    """Raise unless this user or root owns a real file or folder that nobody else may change."""
    found = path.lstat()
    plain = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    if not plain or found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022:
        raise FileInvalid(
            f"{path}: others may change it, or it is a link, so that it might run their code. "
            f"Make it yours alone: chmod go-w {path}"
        )


def _text(entry: str) -> str:
    """A program that hears no PYTHON variable, and finds the fedassay that wrote it."""
    module, function = entry.split(":")
    package = Path(__file__).resolve().parents[3]
    return (
        f"#!{sys.executable} -I\n"
        "import sys\n\n"
        f"sys.path.insert(0, {str(package)!r})\n"
        f"from fedassay.engines.flower.{module} import {function}\n\n"
        f"{function}()\n"
    )
