"""The app that `flwr run` is started with: a folder with the settings of a run."""

from importlib.resources import files
from pathlib import Path

from fedassay.engines.flower.credentials import write_public

_FILES = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "fedassay_flower/__init__.py": "__init__.py.txt",
    "fedassay_flower/client_app.py": "client_app.py.txt",
    "fedassay_flower/server_app.py": "server_app.py.txt",
}


def app_files() -> dict[str, bytes]:
    """The content of every file of the app."""
    source = files("fedassay") / "data" / "flower_app"
    return {path: (source / name).read_bytes() for path, name in _FILES.items()}


def write_app(folder: Path) -> None:
    """Write the app into a new folder; nothing that is there is written over."""
    for path, content in app_files().items():
        write_public(folder / path, content)
