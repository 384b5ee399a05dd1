"""What a client does without: packages that come with an extra, and the line that names it.

A client needs numpy and cryptography. Everything else is imported where it is used, inside
`needed_for`, so that a slim installation says in one line what to install.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from fedassay.errors import MissingExtra

EXTRAS: Mapping[str, str] = MappingProxyType(
    {
        "click": "all",
        "dp_accounting": "accounting",
        "flwr": "flower",
        "httpx": "flower",
        "lightgbm": "reproduction",
        "matplotlib": "all",
        "pyarrow": "all",
        "pyspark": "spark",
        "rich": "all",
        "scipy": "all",
        "sklearn": "sklearn",
        "typer": "all",
        "xgboost": "reproduction",
    }
)
"""By the name that is imported: the extra that brings it."""


@contextmanager
def needed_for(purpose: str) -> Iterator[None]:
    """Imports whose package may be missing; then `MissingExtra` says what for and the remedy.

    >>> with needed_for("intervals"):
    ...     from scipy.special import ndtri
    >>> with needed_for("drawing"):
    ...     raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
    Traceback (most recent call last):
    ...
    fedassay.errors.MissingExtra: matplotlib is needed for drawing; install it with: \
pip install 'fedassay[all]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise MissingExtra(
            f"{package} is needed for {purpose}; install it with: "
            f"pip install 'fedassay[{EXTRAS[package]}]'"
        ) from error
