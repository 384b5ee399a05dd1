"""Code blocks of a page, and how they are run: Python in one namespace, commands in one folder."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from examples.tables import HOSPITALS

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EVERYWHERE = "at each hospital"
_PLACES = ("north", "east", "south", "west")


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two fences, and in which language."""

    language: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Command:
    """A line to type, and the lines that the page shows below it."""

    words: tuple[str, ...]
    shown: tuple[str, ...]
    everywhere: bool = False

    def repeated(self) -> Iterator["Command"]:
        """The same at every hospital, where a comment says so."""
        yield self
        for number in range(2, HOSPITALS + 1) if self.everywhere else ():
            yield Command(tuple(_there(word, number) for word in self.words), self.shown)


def _there(word: str, number: int) -> str:
    word = re.sub(r"-1(?=\.\w+$)", f"-{number}", word)
    return re.sub(rf"^{_PLACES[0]}(?=\.)", _PLACES[number - 1], word)


def read_blocks(page: Path) -> list[Block]:
    """Every block of a page, in order."""
    text = page.read_text("utf-8")
    return [
        Block(each[1], each[2], text.count("\n", 0, each.start()) + 1)
        for each in _FENCE.finditer(text)
    ]


def read_commands(text: str) -> list[Command]:
    r"""The commands of a console block: lines after a dollar, joined where they go on.

    >>> read_commands("$ fedassay show \\\n    a.json  # now\nroc_auc\n")
    [Command(words=('fedassay', 'show', 'a.json'), shown=('roc_auc',), everywhere=False)]
    """
    commands: list[Command] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            words = tuple(shlex.split(line[2:], comments=True))
            commands.append(Command(words, (), line.rstrip().endswith(f"# {EVERYWHERE}")))
        elif line.strip() not in ("", "..."):
            last = commands[-1]
            commands[-1] = Command(last.words, (*last.shown, line.rstrip()), last.everywhere)
    return commands


def expanded(words: tuple[str, ...], folder: Path) -> list[str]:
    """Words as a shell passes them on: names with a star become the files that are there."""
    found: list[str] = []
    for word in words:
        names = sorted(path.name for path in folder.glob(word)) if "*" in word else []
        found += names or [word]
    return found
