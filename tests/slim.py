"""A machine on which only numpy, cryptography and what they need can be imported."""

import os
import subprocess
import sys
import textwrap

ALLOWED = ("fedassay", "numpy", "cryptography", "_cffi_backend", "cffi", "pycparser")
BLOCK = f"""
import sys

class OnlyWhatASlimInstallationHas:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top in {ALLOWED!r}:
            return None
        raise ModuleNotFoundError(f"No module named {{top!r}}", name=top)

sys.meta_path.insert(0, OnlyWhatASlimInstallationHas())
"""


def run_slim(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own that cannot import anything else."""
    return subprocess.run(
        [sys.executable, "-c", BLOCK + textwrap.dedent(code), *map(str, arguments)],
        env=os.environ | {"PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
