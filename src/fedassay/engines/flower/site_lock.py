"""A site that runs the fedassay it installed, never code that a server sends.

A Flower run brings its app along, and a SuperNode runs it: whoever may start a run could read
the site's table. With these programs before Flower's own on the PATH of a SuperNode, the app
that comes along is neither unpacked nor loaded, and every other kind of task ends at once.
"""

import sys
from importlib import import_module
from pathlib import Path

from fedassay.engines.flower.credentials import write_program
from fedassay.extras import needed_for

BIN_FOLDER = "bin"
TESTED = ("1.41.",)
"""Where Flower loads an app is its own affair, so that this holds for tested versions only."""
PROGRAMS = {
    "flwr-clientapp": "main",
    "flwr-agentapp": "refuse",
    "flwr-connector": "refuse",
    "flwr-model": "refuse",
    "flwr-serverapp": "refuse",
    "flwr-simulation": "refuse",
}
"""What a SuperNode may start, and what happens in its place."""


def make_programs(folder: Path) -> None:
    """Write the programs that a SuperNode starts in place of Flower's own."""
    for program, entry in PROGRAMS.items():
        start = f"from fedassay.engines.flower.site_lock import {entry}\n\n{entry}()\n"
        write_program(folder / program, f"#!{sys.executable}\n{start}")


def main() -> None:
    """Answer one message with this fedassay, whatever app the message came with."""
    with needed_for("a federation over Flower"):
        import flwr
        from flwr.supernode.cli import flwr_clientapp

    from fedassay.engines.flower.client_app import app

    runtime = import_module("flwr.supernode.runtime.run_clientapp")
    seams = {
        "install_from_fab": _nothing,
        "install_app_dependencies": _nothing,
        "get_load_client_app_fn": lambda **_: lambda *_: app,
    }
    if not flwr.__version__.startswith(TESTED) or not all(hasattr(runtime, at) for at in seams):
        sys.exit(
            "fedassay: nothing is answered. This site is locked to its own app, which is tested "
            f"with Flower {', '.join(f'{version}x' for version in TESTED)}; found "
            f"{flwr.__version__}. Install that version."
        )
    for name, replacement in seams.items():
        setattr(runtime, name, replacement)
    flwr_clientapp()


def refuse() -> None:
    """End a task that is not fedassay's."""
    sys.exit("fedassay: declined a task of another kind. This site answers surveys only.")


def _nothing(*_: object, **__: object) -> None:
    """Unpack and install nothing."""
