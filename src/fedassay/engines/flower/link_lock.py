"""A SuperLink that runs the ServerApp of the fedassay it installed, whoever starts a run.

Flower's control API has no password: whoever reaches it may start a run, and a run brings code
along. It is reached from the coordinator's own machine only, and even there the code that comes
along is not run.
"""

from importlib import import_module
from typing import Any

from fedassay.engines.flower.programs import all_but
from fedassay.engines.flower.versions import check_seams
from fedassay.extras import needed_for

LINK_PROGRAMS = all_but({"flwr-serverapp": "link_lock:main"})
"""What a SuperLink may start, and what happens in its place."""


def main() -> None:
    """Lead one run with this fedassay, whatever app the run came with."""
    with needed_for("a federation over Flower"):
        from flwr.server.run_serverapp import run
        from flwr.superlink.cli import flwr_serverapp

    from fedassay.engines.flower.server_app import app

    def run_installed(*, grid: Any, context: Any, **_: object) -> Any:
        return run(grid=grid, context=context, server_app_dir="", loaded_server_app=app)

    runtime = import_module("flwr.superlink.runtime.run_serverapp")
    seams = {"run_": run_installed, "install_app_dependencies": lambda *_, **__: None}
    check_seams(runtime, seams)
    for name, replacement in seams.items():
        setattr(runtime, name, replacement)
    flwr_serverapp()
