"""HTML built from values, so that no text from outside is ever taken for markup."""

import re
from html import escape

# What a page may not hold at all: control characters, and halves of characters.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_VOID = frozenset({"br", "circle", "hr", "input", "line", "link", "meta", "path", "rect"})
_LONG = 600


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Content = str | int | float | None
"""What stands inside an element: markup as it is, anything else escaped, None not at all."""


def escaped(text: object) -> Markup:
    """Text as HTML shows it, letter by letter.

    >>> escaped("<script>'&")
    '&lt;script&gt;&#x27;&amp;'
    """
    return Markup(escape(_FORBIDDEN.sub("\ufffd", str(text))))


def element(tag: str, *content: Content, **attributes: str | int | float | bool | None) -> Markup:
    """One element; attributes without a value are left out, underscores become hyphens.

    >>> element("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    given = [_attribute(name, value) for name, value in attributes.items()]
    opening = "".join([f"<{tag}", *given])
    if tag in _VOID:
        return Markup(f"{opening}/>")
    return Markup(f"{opening}>{joined(*content)}</{tag}>")


def joined(*content: Content) -> Markup:
    """Several pieces one after the other.

    >>> joined(element("b", "a"), " < ", 2)
    '<b>a</b> &lt; 2'
    """
    return Markup(
        "".join(
            each if isinstance(each, Markup) else escaped(each)
            for each in content
            if each is not None
        )
    )


def named(text: str) -> Markup:
    """A name from outside, kept apart from the text around it whatever way it is written.

    Of one that is very long, a box shows the beginning, and all of it by scrolling.

    >>> named("St. Mary's")
    '<bdi>St. Mary&#x27;s</bdi>'
    """
    if len(text) <= _LONG:
        return element("bdi", text)
    return element("bdi", text, class_="long", tabindex=0, role="group", aria_label="a long name")


def _attribute(name: str, value: str | int | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    shown = name.rstrip("_").replace("_", "-")
    return f" {shown}" if value is True else f' {shown}="{escaped(value)}"'
