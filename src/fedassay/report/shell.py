"""The shell of every page: head, contents, style and policy around sections.

Nothing in a page comes from outside, and nothing leaves it: the Content-Security-Policy names the
hashes of its one style and, where it has one, its script, and forbids everything else.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from fedassay.report.markup import Content, Markup, element, named
from fedassay.report.wording import VERSION


def whole_page(
    title: str,
    sections: Mapping[str, tuple[str, Markup]],
    *,
    data: Mapping[str, Any] | None = None,
    script: str = "",
) -> str:
    """A page of sections, by the name that a link to one has; with data for its script."""
    style = asset("page.css")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content=f"fedassay {VERSION}"),
        element("title", title[:200]),
        element("style", Markup(style)),
    )
    scripts: list[Content] = []
    if data is not None:
        scripts.append(element("script", _block(data), id="data", type="application/json"))
    if script:
        scripts.append(element("script", Markup(script)))
    body = element(
        "body",
        element("a", "To the text", href="#main", class_="skip"),
        element("header", element("h1", named(title)), _contents(sections)),
        element("main", *(markup for _, markup in sections.values()), id="main"),
        element("footer", element("p", f"Made by fedassay {VERSION}; nothing leaves this page.")),
        *scripts,
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def asset(name: str) -> str:
    """A file that goes into pages."""
    return (files("fedassay.report") / name).read_text("utf-8")


def _contents(sections: Mapping[str, tuple[str, Markup]]) -> Markup:
    links = (
        element("li", element("a", called, href=f"#{name}"))
        for name, (called, _) in sections.items()
    )
    return element("nav", element("ol", *links), aria_label="Sections")


def _policy(style: str, script: str) -> str:
    allowed = f"'{_hash(script)}'" if script else "'none'"
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src {allowed}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _block(content: Mapping[str, Any]) -> Markup:
    """JSON that cannot end the element that it stands in."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))
