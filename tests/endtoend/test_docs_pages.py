"""Every code block of README and docs is executed, the console ones too, and prints what is shown.

The blocks of a page run one after the other in a folder with the tables of `examples.tables`,
which `make sandbox` makes for people.
"""

import re
import tomllib
from pathlib import Path

import pytest
import typer.main
from examples.tables import make_tables

from fedassay.cli.app import app
from tests.blocks import Block, Command, expanded, read_blocks, read_commands
from tests.program import Run
from tests.tables import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Read by other tests, or shown and not run: what these hold is no code of ours.
QUIET = {"", "text", "layers", "json", "output"}
# What needs a network, other machines or an hour; the test that runs it, or what it stands for.
ELSEWHERE = {
    "pip install": "tests/endtoend/test_slim.py",
    "make demo": "tests/endtoend/test_cli_app.py",
    "make test": "Makefile",
    "make docs": "tests/endtoend/test_docs_site.py",
    "make sandbox": "examples/tables.py",
    "make federation": "tests/endtoend/test_flower.py",
    "fedassay reproduce": "tests/endtoend/test_cli_reproduce.py",
    "fedassay federation": "tests/unit/test_flower_docs.py",
    "flwr": "tests/endtoend/test_flower.py",
    "export FLWR_HOME": "tests/endtoend/test_flower.py",
}
# Of these the commands of other programs come between, and another test walks through them.
WALKS = {
    "four-hospitals.md": "tests/unit/test_flower_docs.py",
    "warehouse.md": "tests/endtoend/test_cli_sql.py",
    "bulk.md": "tests/endtoend/test_spark.py",
}
# Python that needs Java, and is run where Java has been started.
NEEDS_JAVA = {"bulk.md"}


def languages() -> set[str]:
    return {block.language for page in PAGES for block in read_blocks(page)}


def test_no_block_is_in_a_language_that_nobody_runs() -> None:
    assert languages() - QUIET == {"python", "console"}


def test_what_is_run_elsewhere_is_there() -> None:
    for place in [*ELSEWHERE.values(), *WALKS.values()]:
        assert (ROOT / place).is_file(), place
    makefile = (ROOT / "Makefile").read_text()
    for words in ELSEWHERE:
        if words.startswith("make "):
            assert re.search(rf"^{words.removeprefix('make ')}:", makefile, re.MULTILINE), words


def elsewhere(command: Command) -> bool:
    return " ".join(command.words).startswith(tuple(ELSEWHERE))


def check_options(command: Command) -> None:
    """A command that is not run here has at least the options that it is given."""
    group: object = typer.main.get_command(app)
    for word in command.words[1:]:
        if hasattr(group, "commands") and word in group.commands:
            group = group.commands[word]
    known = {option for each in getattr(group, "params", ()) for option in each.opts}
    given = {word for word in command.words if word.startswith("--")}
    assert given <= known, command.words


def run_console(block: Block, run: Run, folder: Path, where: str) -> None:
    for command in read_commands(block.text):
        if elsewhere(command) or where in WALKS:
            if command.words[0] == "fedassay":
                check_options(command)
            continue
        for each in command.repeated():
            words = expanded(each.words, folder)
            assert words[0] in ("fedassay", "mkdir"), f"{where}:{block.line}: {words}"
            if words[0] == "mkdir":
                (folder / words[1]).mkdir()
                continue
            result = run(*words[1:])
            assert result.code == 0, f"{where}:{block.line}: {words}\n{result.err}"
            printed = [line.rstrip() for line in (result.out + result.err).splitlines()]
            for line in each.shown:
                assert line in printed, f"{where}:{block.line}: {line}\n{result.out}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_run_in_order(
    page: Path,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    blocks = read_blocks(page)
    if any(block.language == "console" for block in blocks):
        make_tables(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    printed: list[str] = []
    for block in blocks:
        if block.language == "console":
            run_console(block, run, tmp_path, page.name)
        if page.name in NEEDS_JAVA:
            continue
        if block.language == "python":
            code = "\n" * block.line + block.text
            exec(compile(code, str(page), "exec"), names)  # noqa: S102  # our own pages
            printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        if block.language == "output":
            for line in block.text.splitlines():
                assert line.rstrip() in printed, f"{page.name}:{block.line}: {line}"


def test_the_docs_group_is_part_of_what_the_check_installs() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    assert {"include-group": "docs"} in groups["dev"]
