"""Which versions of Flower this engine may be trusted with."""

import sys
from collections.abc import Iterable
from types import ModuleType

from fedassay.errors import SettingInvalid
from fedassay.extras import needed_for

TESTED = ("1.41.",)
"""Where Flower loads an app, and which calls it serves on which port, is its own affair."""


def check_version() -> None:
    """Raise unless the Flower that is installed is one that was tested."""
    with needed_for("a federation over Flower"):
        from flwr.supercore.version import package_version
    if not package_version.startswith(TESTED):
        raise SettingInvalid(
            f"fedassay is tested with Flower {', '.join(f'{version}x' for version in TESTED)}; "
            f"found {package_version}. Install that version: pip install 'fedassay[flower]'"
        )


def check_seams(runtime: ModuleType, names: Iterable[str]) -> None:
    """End this program unless everything that it replaces inside Flower is there."""
    try:
        check_version()
    except SettingInvalid as error:
        sys.exit(f"fedassay: nothing is answered. {error}")
    missing = [name for name in names if not hasattr(runtime, name)]
    if missing:
        sys.exit(
            f"fedassay: nothing is answered. Flower's {runtime.__name__} has no {missing[0]} to "
            "replace. Install the tested version: pip install 'fedassay[flower]'"
        )
