"""Extras are those of pyproject.toml, and no import goes round the line that names them."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator

import pytest

from fedassay.errors import MissingExtra
from fedassay.extras import EXTRAS, needed_for
from tests.tables import ROOT

SOURCE = ROOT / "src" / "fedassay"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IMPORTED_AS = {
    "scikit-learn": "sklearn",
    "dp-accounting": "dp_accounting",
    "xgboost-cpu": "xgboost",
}


def imported(requirements: list[str]) -> set[str]:
    names = {re.split(r"[<>=\[; ]", requirement)[0] for requirement in requirements}
    return {IMPORTED_AS.get(name, name) for name in names}


def test_extras_are_those_of_the_project() -> None:
    declared = {
        package: extra
        for extra, requirements in PROJECT["optional-dependencies"].items()
        for package in imported(requirements)
    }
    assert dict(EXTRAS) == declared


def test_a_client_installs_numpy_and_cryptography() -> None:
    assert imported(PROJECT["dependencies"]) == {"numpy", "cryptography"}


def bare_imports(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Packages imported outside `with needed_for`, and the lines."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.With) and "needed_for(" in ast.unparse(child.items[0]):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from ((name.name.partition(".")[0], child.lineno) for name in child.names)
        if isinstance(child, ast.ImportFrom):
            yield (child.module or "").partition(".")[0], child.lineno
        yield from bare_imports(child)


def test_every_import_of_an_extra_names_it_when_it_is_missing() -> None:
    allowed = {"fedassay", "numpy", "cryptography"} | set(sys.stdlib_module_names)
    # The command line is imported as a whole inside needed_for; composition checks beforehand.
    bare = [
        f"{path.relative_to(SOURCE)}:{line} imports {package}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.parent.name != "cli" and path != SOURCE / "ledger" / "composition.py"
        for package, line in bare_imports(ast.parse(path.read_text()))
        if package not in allowed
    ]
    assert bare == [], "import it inside: with needed_for(...)"


def test_the_check_sees_a_bare_import() -> None:
    code = "def f():\n    import scipy.special\n    with needed_for('x'):\n        import typer\n"
    assert list(bare_imports(ast.parse(code))) == [("scipy", 2)]


def test_a_missing_package_that_is_no_extra_stays_what_it_is() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package") as caught, needed_for("x"):
        import no_such_package  # type: ignore[import-not-found]  # noqa: F401  # it is not there
    assert not isinstance(caught.value, MissingExtra)
