"""Links of Markdown pages, docstrings and built HTML, and where they lead; no network is asked."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_INLINE = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
_HEADING = re.compile(r"^#+ (.+?)\s*$", re.MULTILINE)
_BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_OUTSIDE = ("http", "https", "mailto")


def markdown_links(text: str) -> list[str]:
    """What stands in round brackets after square ones, outside of code.

    >>> markdown_links("[a](b.md#c) `[x](y)` ![d](e.png)")
    ['b.md#c', 'e.png']
    """
    prose = re.sub(r"`[^`\n]*`", "", _BLOCK.sub("", text))
    return _INLINE.findall(prose)


def anchors(text: str) -> set[str]:
    """The names under which headings can be linked to, as GitHub and the site make them.

    >>> sorted(anchors("# Who may be seen?\\n## `a` and b\\n"))
    ['a-and-b', 'who-may-be-seen']
    """
    found: set[str] = set()
    for heading in _HEADING.findall(_BLOCK.sub("", text)):
        words = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        name, number = words, 1
        while name in found:
            name, number = f"{words}-{number}", number + 1
        found.add(name)
    return found


def broken_links(page: Path, text: str) -> list[str]:
    """Relative links of a page that lead to no file, or to no heading in it."""
    broken = []
    for link in markdown_links(text):
        parts = urlsplit(link)
        if parts.scheme in _OUTSIDE:
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        is_there = target.exists()
        if is_there and parts.fragment and target.suffix == ".md":
            is_there = parts.fragment in anchors(target.read_text("utf-8"))
        if not is_there:
            broken.append(link)
    return broken


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [
            value for name in ("href", "src") if (value := given.get(name)) and tag != "base"
        ]
        self.names |= {value for name in ("id", "name") if (value := given.get(name))}


def read_html(path: Path) -> tuple[list[str], set[str]]:
    """The links of a built page, and the names inside it that can be linked to."""
    page = _Page()
    page.feed(path.read_text("utf-8"))
    return page.links, page.names


def broken_site_links(site: Path) -> tuple[int, list[str]]:
    """How many relative links a built site has, and those that lead nowhere."""
    pages = {
        path.resolve(): read_html(path)
        for path in site.rglob("*.html")
        if "_static" not in path.parts  # templates of the theme
    }
    count, broken = 0, []
    for path, (links, _) in pages.items():
        for link in links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            names = pages[target][1] if target in pages else None
            is_there = target.exists()
            if is_there and names is not None and parts.fragment:
                is_there = unquote(parts.fragment) in names
            if not is_there:
                broken.append(f"{path.relative_to(site)}: {link}")
    return count, broken
