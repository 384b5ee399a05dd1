"""A process with the slow imports behind it, which forks for every run of tests.

Starting Python and importing numpy, scipy, scikit-learn and pytest takes several times as long as
most tests. None of fedassay is imported before the fork, so that every run sees the copy as it is.

One line of JSON in, a list of arguments for pytest and a limit in seconds; one line out, "done".
"""

import gc
import json
import os
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module

SLOW_IMPORTS = (
    "numpy", "scipy.stats", "scipy.optimize", "pytest", "pyarrow.parquet", "pyarrow.csv",
    "cryptography.hazmat.primitives.ciphers.aead", "sklearn.metrics", "sklearn.isotonic",
    "sklearn.linear_model", "hypothesis.extra.numpy", "anyio.pytest_plugin",
)  # fmt: skip
NOT_REWRITTEN = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""pytest would like to read the assertions of hypothesis's own modules; it says so and goes on."""


def main() -> None:
    """Answer requests until there are no more."""
    for name in SLOW_IMPORTS:
        with suppress(ImportError):
            import_module(name)
    gc.freeze()  # what is there already need not be looked through again by every run
    for line in iter(sys.stdin.readline, ""):
        arguments, seconds = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(arguments)
        _wait(child, seconds)
        sys.stdout.write("done\n")
        sys.stdout.flush()


def _run(arguments: list[str]) -> None:
    """Become a process group of one run, silent, and end with it."""
    os.setpgid(0, 0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    code = 70
    try:
        code = int(import_module("pytest").main([*NOT_REWRITTEN, *arguments]))
    finally:
        os._exit(code)


def _wait(child: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)


if __name__ == "__main__":
    main()
