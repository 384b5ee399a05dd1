"""The commands of the program; each is loaded when it is asked for, because some load much."""

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import click
import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from fedassay.extras import needed_for

_TRY, _ASK, _ADD = "Try, and plan", "Ask, and answer", "Add up"
_READ, _DECIDE, _PAPER = "Read", "Decide", "The paper"


@dataclass(frozen=True, slots=True)
class Entry:
    """A command or a group of commands: under which heading, where it lives, and in short."""

    panel: str
    module: str
    attribute: str
    """A function, or a `typer.Typer` of several."""
    summary: str
    """As the command itself begins: so that help need not load it."""


STORY: dict[str, Entry] = {
    "demo": Entry(
        _TRY,
        "demo",
        "demo",
        "Assess a flight-delay classifier over airlines and passengers that keep their rows.",
    ),
    "simulate": Entry(
        _TRY,
        "simulate",
        "simulate_command",
        "Run a federation over a scored table and compare its answers with the exact ones.",
    ),
    "plan": Entry(_TRY, "plan", "plan", "Predict every metric's error before anybody answers."),
    "survey": Entry(_ASK, "survey", "survey_app", "Make a survey: what both sides agree on."),
    "answer": Entry(
        _ASK, "answer", "answer", "Answer a survey as one client; only the report file leaves."
    ),
    "sql": Entry(
        _ASK,
        "sql",
        "sql",
        "Print the query whose result is a survey's counts, for tables that stay where they are.",
    ),
    "federation": Entry(
        _ASK,
        "federation",
        "federation_app",
        "A federation over Flower: certificates, sites, roster, app, and what runs.",
    ),
    "ledger": Entry(_ASK, "ledger", "app", "What was spent on which data, and what is left."),
    "shuffle": Entry(
        _ADD, "shuffle", "shuffle", "Mix the reports to a shuffled survey into one batch."
    ),
    "tally": Entry(_ADD, "tally", "tally", "Add reports up, and assess the classifier."),
    "merge": Entry(
        _ADD, "tally", "merge", "Merge tallies of one survey that were collected in several places."
    ),
    "withdraw": Entry(
        _ADD,
        "withdraw",
        "withdraw",
        "Take reports out of a tally before it is released, as if they had never come.",
    ),
    "show": Entry(
        _READ,
        "show",
        "show",
        "Print an assessment, at any thresholds; of a tally, how far it is.",
    ),
    "report": Entry(
        _READ,
        "report",
        "report",
        "Write one self-contained page: figures, curves, a threshold slider, texts to paste.",
    ),
    "check": Entry(
        _DECIDE,
        "check",
        "check",
        "Hold an assessment to what is required: pass, fail, or cannot tell.",
    ),
    "compare": Entry(
        _DECIDE,
        "check",
        "compare",
        "Compare assessments of different rows, metric by metric, with the first one.",
    ),
    "track": Entry(_DECIDE, "track", "track_app", "Follow one model over time."),
    "calibrate": Entry(
        _DECIDE,
        "calibrate",
        "calibrate",
        "Fit a calibrator to an assessment's tally; no rows are needed.",
    ),
    "apply": Entry(
        _DECIDE,
        "calibrate",
        "apply",
        "Copy a table with a new column `calibrated`; all other columns stay.",
    ),
    "reproduce": Entry(
        _PAPER,
        "reproduce",
        "reproduce_command",
        "Measure the paper's tables and figures again; a run that was stopped goes on.",
    ),
}
"""In the order in which they are needed."""


@lru_cache(maxsize=len(STORY))
def load_command(name: str) -> click.Command:
    """The command of that name, with all of its options.

    >>> load_command("plan").name
    'plan'
    """
    entry = STORY[name]
    with needed_for("the command line"):
        found = getattr(import_module(f"fedassay.cli.{entry.module}"), entry.attribute)
    alone = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name, rich_help_panel=entry.panel)
    else:
        alone.command(name, rich_help_panel=entry.panel)(found)
    return get_group(alone).commands[name]


class _Loaded(Mapping[str, click.Command]):
    """Commands by name, loaded when one is taken."""

    def __getitem__(self, name: str) -> click.Command:
        if name not in STORY:
            raise KeyError(name)
        return load_command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(STORY)

    def __len__(self) -> int:
        return len(STORY)


class Story(TyperGroup):
    """Commands in the order in which they are needed."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Loaded()  # type: ignore[assignment]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the table of commands without loading one."""
        page = copy(self)
        page.commands = {
            name: TyperCommand(name, help=entry.summary, rich_help_panel=entry.panel)
            for name, entry in STORY.items()
        }
        super(Story, page).format_help(ctx, formatter)
