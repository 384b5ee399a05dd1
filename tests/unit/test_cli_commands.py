"""Every command of the program keeps the same manners: options, examples, eighty columns."""

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer.core
import typer.main

from fedassay.cli.app import app, main
from fedassay.cli.commands import STORY, load_command

# Servers that run until they are stopped: their output is the log of what they start.
SERVERS = {"federation start-link", "federation start-site"}
# What these write is new or refused, and never replaced: no option may lose a ledger or a key,
# nor the one batch of a survey.
NEVER_REPLACE = {
    "shuffle",
    "ledger new",
    "federation certificates",
    "federation site",
    "federation app",
    "federation start-link",
}
WIDTH = 80


def _commands(group: click.Group, *path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, *path, name)
        else:
            yield " ".join((*path, name)), command


_PROGRAM = typer.main.get_command(app)
assert isinstance(_PROGRAM, click.Group)
COMMANDS = dict(_commands(_PROGRAM))
each_command = pytest.mark.parametrize("name", COMMANDS)


def _options(name: str) -> set[str]:
    return {option for each in COMMANDS[name].params for option in each.opts}


def _examples(name: str) -> list[str]:
    """The lines of a command's examples, with those that go on in the next line joined."""
    text = inspect.cleandoc(COMMANDS[name].help or "")
    assert "[bold]Example" in text, name
    return [
        " ".join(lines.split())
        for lines in text.partition("[bold]Example")[2].partition("[/bold]")[2].split("\n\n")
        if lines.strip()
    ]


def test_the_walk_finds_the_commands() -> None:
    expected = {"demo", "simulate", "plan", "answer", "tally", "merge", "show", "apply"}
    expected |= {"calibrate", "survey new", "survey show", "ledger verify", "federation app"}
    assert expected | SERVERS | NEVER_REPLACE <= set(COMMANDS)


@each_command
def test_a_command_can_speak_json_and_be_quiet(name: str) -> None:
    missing = {"--json", "--quiet"} - _options(name)
    assert missing == ({"--json", "--quiet"} if name in SERVERS else set())


@each_command
def test_a_command_that_writes_replaces_only_with_force(name: str) -> None:
    writes = (
        bool({"--output", "--out", "--plot", "--junit"} & _options(name)) or name in NEVER_REPLACE
    )
    assert ("--force" in _options(name)) == (writes and name not in NEVER_REPLACE)


@each_command
def test_examples_name_their_command_and_options_that_it_has(name: str) -> None:
    examples = _examples(name)
    assert examples
    known = _options(name)
    for example in examples:
        assert example.startswith(f"fedassay {name}"), example
        given = {word for word in example.split() if word.startswith("-")}
        assert given <= known, example


@each_command
def test_help_fits_eighty_columns(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("TERMINAL_WIDTH", str(WIDTH))
    monkeypatch.setattr(sys, "argv", ["fedassay", *name.split(), "--help"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= WIDTH
    # An option's name that is cut could not be typed, nor an example that is cut be copied.
    assert [option for option in _options(name) if option not in printed] == []
    words = " ".join(printed.split())
    assert [example for example in _examples(name) if example not in words] == []


def test_the_program_tells_its_story_in_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setattr(sys, "argv", ["fedassay", "--help"])
    with pytest.raises(SystemExit):
        main()
    printed = capsys.readouterr().out
    story = ["demo", "simulate", "plan", "survey", "answer", "tally", "show", "check"]
    places = [printed.index(f"\n│ {name} ") for name in story]
    assert places == sorted(places)
    assert "Exit codes: 0 done; 1 a check failed; 2 an error" in " ".join(printed.split())


@pytest.mark.parametrize("name", STORY)
def test_help_tells_of_a_command_what_the_command_tells_first(name: str) -> None:
    told = inspect.cleandoc(load_command(name).help or "").partition("\n\n")[0]
    assert STORY[name].summary == " ".join(told.split())


_SPARED = ["scipy", "pyarrow", "matplotlib", "fedassay.engines", "fedassay.report"]


@pytest.mark.parametrize(
    ("line", "spared"),
    [
        ("--help", ["numpy", "fedassay.planning", "fedassay.cli.plan"]),
        ("survey new --privacy local --epsilon 5 --clients 5000 -o survey.json", _SPARED),
        ("plan --clients 500", _SPARED),
    ],
)
def test_a_command_loads_no_more_than_it_uses(line: str, spared: list[str], tmp_path: Path) -> None:
    code = (
        "import sys\nfrom fedassay.cli.app import app\n"
        f"app({line.split()!r}, standalone_mode=False)\n"
        f"print([name for name in {spared!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_ten_options_of_simulate_that_matter_stand_first() -> None:
    first = [
        each.opts[0]
        for each in COMMANDS["simulate"].params
        if isinstance(each, typer.core.TyperOption) and each.rich_help_panel is None
    ]
    assert first == [
        "--score", "--label", "--client", "--privacy", "--epsilon",
        "--threshold", "--trials", "--seed", "--calibrate", "--out",
    ]  # fmt: skip


def test_a_program_that_writes_to_no_terminal_uses_no_colours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["fedassay", "show", "nowhere.json"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    printed = capsys.readouterr()
    assert "nowhere.json" in printed.err
    assert "\x1b" not in printed.err + printed.out
