"""The plan of the house is one: layers, names, places of tests and sizes of modules."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from tests.tables import ROOT

SOURCE = ROOT / "src" / "fedassay"
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
LAYERS: list[str] = CONTRACTS["contracts"][0]["layers"]
NOT_MODULES = {
    "misuse",
    "architecture",
    "benchmarks",
    "conftest",
    "docs",
    "fuzz",
    "peers",
    "planted",
    "reached",
    "reproduced",
    "vectors",
}
"""What a unit test may be named after beside modules and rooms of the package."""
FILES = (".json", ".md", ".fa", ".db", ".toml", ".tally")
MOST_LINES = 400


def top_level() -> set[str]:
    """Modules and rooms; what starts the package, and its data, are none."""
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    return rooms | {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "__main__"}


def test_the_layers_of_the_contract_are_those_of_the_architecture_page() -> None:
    (block,) = re.findall(r"```layers\n(.*?)```", ARCHITECTURE, re.DOTALL)
    assert [line.split()[0] for line in block.splitlines()] == LAYERS
    assert all(len(line.split()) > 3 for line in block.splitlines()), "say what each is"


def test_the_layers_of_the_contract_are_those_of_contributing() -> None:
    (listed,) = re.findall(r"`(cli → [\w →\n]+)`", CONTRIBUTING)
    assert [name.strip() for name in listed.split("→")] == LAYERS


def test_every_module_at_the_top_is_a_layer() -> None:
    assert sorted(LAYERS) == sorted(top_level())


def test_a_client_is_everything_from_secagg_downwards() -> None:
    client = CONTRACTS["contracts"][1]["source_modules"]
    assert client == [f"fedassay.{name}" for name in LAYERS[LAYERS.index("secagg") :]]


def resolve(name: str) -> object:
    """What a dotted name inside the package leads to; raises where it leads nowhere."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(["fedassay", *parts[:length]])
        try:
            value: object = importlib.import_module(module)
        except ModuleNotFoundError as error:
            # Not a module: perhaps a name inside one. Anything else that is missing is an error.
            if not module.startswith(error.name or "?"):
                raise
            continue
        for part in parts[length:]:
            value = getattr(value, part)
        return value
    raise AttributeError(name)


def code_names(text: str) -> list[str]:
    """What stands in backquotes outside of blocks, and begins like a path into the package."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    rooms = top_level()
    return [
        name
        for name in re.findall(r"`([a-z_]+(?:\.\w+)*)`", prose)
        if name.partition(".")[0] in rooms and not name.endswith(FILES)
    ]


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_name_on_a_page_exists(page: str) -> None:
    text = (ROOT / page).read_text()
    names = code_names(text)
    assert len(names) > 20
    for name in names:
        resolve(name)
    for path in re.findall(r"`((?:docs|tests|src|examples)/[\w/.]+?)(?:::\w+)?`", text):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"\]\(([\w./-]+?)(?:#[\w-]+)?\)", text):
        assert ((ROOT / page).parent / path).exists(), path


def test_a_name_that_leads_nowhere_is_seen() -> None:
    for name in ("decoding.no_such_function", "metrics.no_such_module", "survey.Survey.nothing"):
        with pytest.raises(AttributeError):
            resolve(name)


def test_forty_questions_have_answers_that_name_what_exists() -> None:
    _, _, table = ARCHITECTURE.partition("| question | answer |\n|---|---|\n")
    rows = [line.strip("|").split(" | ") for line in table.splitlines() if line.startswith("|")]
    assert len(rows) >= 40
    assert len({question for question, _ in rows}) == len(rows)
    for question, answer in rows:
        assert question.strip().endswith("?")
        assert code_names(answer), question


def test_unit_tests_are_named_after_what_they_hold_to_account() -> None:
    paths = [path for path in SOURCE.rglob("*.py") if path.stem != "__init__"]
    known = NOT_MODULES | {path.stem for path in paths} | {path.parent.name for path in paths}
    stray = [
        path.name
        for path in (ROOT / "tests" / "unit").glob("test_*.py")
        if not any(f"{path.stem}_".startswith(f"test_{name}_") for name in known)
    ]
    assert stray == [], "name it after a module or a room"


def lines_of(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_no_module_is_longer_than_four_hundred_lines() -> None:
    long = {str(path.relative_to(SOURCE)): lines_of(path) for path in SOURCE.rglob("*.py")}
    assert {name: lines for name, lines in long.items() if lines > MOST_LINES} == {}
