"""A site that runs the fedassay it installed, never code that a server sends.

A Flower run brings its app along, and a SuperNode runs it: whoever may start a run could read
the site's table. In a site's `bin` the app that comes along is neither unpacked nor loaded, and
every other kind of task ends at once.
"""

from importlib import import_module

from fedassay.engines.flower.programs import all_but
from fedassay.engines.flower.versions import check_seams
from fedassay.extras import needed_for

SITE_PROGRAMS = all_but({"flwr-clientapp": "site_lock:main"})
"""What a SuperNode may start, and what happens in its place."""


def main() -> None:
    """Answer one message with this fedassay, whatever app the message came with."""
    with needed_for("a federation over Flower"):
        from flwr.supernode.cli import flwr_clientapp

    from fedassay.engines.flower.client_app import app

    runtime = import_module("flwr.supernode.runtime.run_clientapp")
    seams = {
        "install_from_fab": _nothing,
        "install_app_dependencies": _nothing,
        "get_load_client_app_fn": lambda **_: lambda *_: app,
    }
    check_seams(runtime, seams)
    for name, replacement in seams.items():
        setattr(runtime, name, replacement)
    flwr_clientapp()


def _nothing(*_: object, **__: object) -> None:
    """Unpack and install nothing."""
