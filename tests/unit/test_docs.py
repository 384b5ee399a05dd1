"""Names, docstrings, labels of the paper and the README are true."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import fedassay
import fedassay.calibration
import fedassay.metrics
import fedassay.sites
from tests.tables import ROOT

LABEL = re.compile(r"`((?:eq|thm|lem|sec|app|def|fig|tab|fact):[A-Za-z:_-]+)`")
MAP = ROOT / "docs" / "paper-map.md"


def modules() -> Iterator[ModuleType]:
    yield fedassay
    for found in pkgutil.walk_packages(fedassay.__path__, "fedassay."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def public_objects() -> Iterator[tuple[str, object]]:
    """Public modules, classes, functions and methods that are defined in the package."""
    for module in modules():
        yield module.__name__, module
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isclass(value) or inspect.isfunction(value):
                yield f"{module.__name__}.{name}", value
            if inspect.isclass(value):
                for method, function in vars(value).items():
                    if not method.startswith("_") and inspect.isroutine(function):
                        yield f"{module.__name__}.{name}.{method}", function


@pytest.mark.parametrize(
    "module", [fedassay, fedassay.calibration, fedassay.metrics, fedassay.sites]
)
def test_every_exported_name_exists_and_is_documented(module: ModuleType) -> None:
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert hasattr(module, name)
        assert name == "__version__" or inspect.getdoc(getattr(module, name))


def test_everything_public_has_a_docstring() -> None:
    silent = [name for name, value in public_objects() if not inspect.getdoc(value)]
    assert silent == []


def test_every_public_function_of_these_rooms_has_a_runnable_example() -> None:
    rooms = (
        "fedassay.survey",
        "fedassay.decoding",
        "fedassay.metrics",
        "fedassay.planning",
        "fedassay.sites",
    )
    functions = [
        (name, value)
        for name, value in public_objects()
        if name.startswith(rooms) and inspect.isfunction(inspect.unwrap(value))  # type: ignore[arg-type]  # any value of a module
        if getattr(value, "__qualname__", "").isidentifier()
    ]
    assert len(functions) > 60
    silent = [name for name, value in functions if ">>> " not in (inspect.getdoc(value) or "")]
    assert silent == []


def test_every_cited_label_is_in_the_paper_map() -> None:
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    cited = {label for text in sources for label in LABEL.findall(text)}
    listed = set(LABEL.findall(MAP.read_text()))
    assert len(cited) > 5
    assert cited - listed == set()


def test_the_paper_map_names_what_exists() -> None:
    rows = [line.split("|")[1:-1] for line in MAP.read_text().splitlines() if "` |" in line]
    assert len(rows) > 5
    for _, functions, tests in rows:
        for name in re.findall(r"`([\w.]+)`", functions):
            module, _, rest = name.partition(".")
            assert resolves(f"fedassay.{module}", rest), name
        for path, test in re.findall(r"`([\w/]+\.py)::(\w+)`", tests):
            assert f"def {test}(" in (ROOT / "tests" / path).read_text(), test


def resolves(module: str, rest: str) -> bool:
    """Whether a dotted name leads from a module to something that exists."""
    value: object = importlib.import_module(module)
    for part in filter(None, rest.split(".")):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def test_importing_fedassay_imports_nothing_heavy() -> None:
    heavy = ["scipy", "pyarrow", "matplotlib", "rich", "typer", "sklearn", "flwr"]
    code = f"import sys, fedassay; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.strip() == "[]"
