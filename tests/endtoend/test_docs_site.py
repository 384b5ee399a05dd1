"""The documentation site is built without a warning, and every link in it leads somewhere."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fedassay
from fedassay import calibration, ledger, mechanisms, metrics, secagg, sites, tracking
from tests.blocks import read_blocks
from tests.links import broken_links, broken_site_links, read_html
from tests.tables import ROOT

ROOMS = {
    "fedassay": fedassay,
    "metrics": metrics,
    "calibration": calibration,
    "sites": sites,
    "tracking": tracking,
    "ledger": ledger,
    "mechanisms": mechanisms,
    "secagg": secagg,
}
SOURCES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "experiments").glob("*.md")),
    *sorted((ROOT / "examples").rglob("README.md")),
    ROOT / "benchmarks" / "README.md",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("docs")
    (command,) = re.findall(r"-m sphinx (.*) build/site$", (ROOT / "Makefile").read_text(), re.M)
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *command.split(), folder / "site", "-d", folder / "trees"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "--fail-on-warning" in command
    return folder / "site"


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    count, broken = broken_site_links(site)
    assert count > 3000
    assert broken == []


def test_the_site_asks_no_other_host_for_anything(site: Path) -> None:
    foreign = re.compile(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(?:https?:)?//[^\"]+\"")
    for path in site.rglob("*.html"):
        assert foreign.findall(path.read_text("utf-8")) == [], path.name


def test_the_search_finds_words_without_a_server(site: Path) -> None:
    index = (site / "searchindex.js").read_text("utf-8")
    assert index.startswith("Search.setIndex(")
    for word in ("epsilon", "hospit", "calibr"):
        assert f'"{word}"' in index, word
    assert (site / "search.html").is_file()


def test_every_page_is_reached_from_the_first(site: Path) -> None:
    reached, open_ = set(), [site / "docs" / "index.html"]
    while open_:
        path = open_.pop().resolve()
        if path in reached or path.suffix != ".html" or not path.is_file():
            continue
        reached.add(path)
        links, _ = read_html(path)
        open_ += [path.parent / link.partition("#")[0] for link in links if "://" not in link]
    pages = {path.resolve() for path in site.rglob("docs/**/*.html")}
    assert len(pages) > 50
    assert pages - reached == set()


@pytest.mark.parametrize("room", ROOMS)
def test_the_reference_has_every_public_name(site: Path, room: str) -> None:
    text = (site / "docs" / "api" / f"{room}.html").read_text("utf-8")
    titles = set(re.findall(r'descname"><span class="pre">(\w+)<', text))
    module: Any = ROOMS[room]
    names = {name for name in module.__all__ if not inspect.ismodule(getattr(module, name))}
    assert names - titles - {"__version__"} == set()


def examples_of(value: object) -> str:
    """Docstrings of a name and, of a class, of its methods."""
    docs = [inspect.getdoc(value) or ""]
    if inspect.isclass(value):
        docs += [inspect.getdoc(each) or "" for name, each in vars(value).items() if name[0] != "_"]
    return "\n".join(docs)


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_has_an_example_that_is_executed(room: str) -> None:
    page = ROOT / "docs" / "api" / f"{room}.md"
    shown = "\n".join(block.text for block in read_blocks(page) if block.language == "python")
    module: Any = ROOMS[room]
    silent = [
        name
        for name in module.__all__
        if inspect.isclass(getattr(module, name)) or inspect.isroutine(getattr(module, name))
        if ">>>" not in examples_of(getattr(module, name)) and not re.search(rf"\b{name}\b", shown)
    ]
    assert silent == []


@pytest.mark.parametrize("page", SOURCES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert broken_links(page, page.read_text("utf-8")) == []


def test_every_page_that_a_docstring_names_is_there() -> None:
    page = re.compile(r"\b(?:docs|experiments|tests)/[\w/.-]+\.(?:md|py|toml)")
    sources = [path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py")]
    named = {name for text in sources for name in page.findall(text)}
    assert len(named) > 5
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_a_link_that_leads_nowhere_is_seen(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A heading\n")
    text = "[a](there.md) [b](there.md#a-heading) [c](gone.md) [d](there.md#no) [e](#none)"
    page = tmp_path / "page.md"
    page.write_text(text)
    assert broken_links(page, text) == ["gone.md", "there.md#no", "#none"]
    (tmp_path / "a.html").write_text('<p id="x"><a href="a.html#x"></a><a href="b.html"></a>')
    (tmp_path / "c.html").write_text('<a href="a.html#y"></a><img src="none.png">')
    count, broken = broken_site_links(tmp_path)
    assert count == 4
    assert sorted(broken) == ["a.html: b.html", "c.html: a.html#y", "c.html: none.png"]
