"""The notebook runs from its first cell to its last, and holds nothing of the machine it ran on."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.tables import ROOT

NOTEBOOK = ROOT / "examples" / "notebook.ipynb"
_RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=300, resources={"metadata": {"path": sys.argv[2]}}).execute()
nbformat.write(notebook, "executed.ipynb")
"""


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cells"]
    return found


def test_the_notebook_keeps_no_output() -> None:
    assert len(cells(NOTEBOOK)) > 8
    for cell in cells(NOTEBOOK):
        assert cell["cell_type"] == "markdown" or cell["outputs"] == []
        assert cell.get("execution_count") is None
    assert "/home/" not in NOTEBOOK.read_text("utf-8")


def test_the_notebook_goes_from_arrays_over_three_models_to_a_report(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(NOTEBOOK), str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    outputs = [
        each for cell in cells(tmp_path / "executed.ipynb") for each in cell.get("outputs", ())
    ]
    text = json.dumps([each for each in outputs if "image/png" not in each.get("data", {})])
    for word in ("local, epsilon 5", "distributed, epsilon 1", "roc_auc over", "pass"):
        assert word in text, word
    assert sum("image/png" in each.get("data", {}) for each in outputs) == 3
    assert not [each for each in outputs if each.get("name") == "stderr"]
    assert (tmp_path / "report.html").stat().st_size > 50_000
