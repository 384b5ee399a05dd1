"""Text from outside is shown letter by letter, whatever it holds."""

from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fedassay.report.markup import Markup, element, escaped, joined, named


class Reader(HTMLParser):
    """What a browser would see: elements with their attributes, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def read(markup: str) -> Reader:
    reader = Reader()
    reader.feed(markup)
    reader.close()
    return reader


HOSTILE = "<b title='x'>&amp;\"</b>"
HARMLESS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]))


@given(HARMLESS)
@example(HOSTILE)
def test_what_is_put_into_an_element_comes_out_as_its_text(text: str) -> None:
    page = read(element("p", text))
    assert [tag for tag, _ in page.tags] == ["p"]
    assert page.text == text


@given(HARMLESS)
@example(HOSTILE)
def test_what_is_put_into_an_attribute_comes_out_as_its_value(text: str) -> None:
    page = read(element("p", title=text))
    assert page.tags == [("p", {"title": text})]


@pytest.mark.parametrize("text", ["\x00", "\x1b[2J", "\ud800", "\x85", "\ufffe"])
def test_what_no_page_may_hold_is_replaced(text: str) -> None:
    assert "\ufffd" in escaped(text)
    escaped(text).encode()


def test_markup_is_not_escaped_twice_and_nothing_is_left_out() -> None:
    assert joined(element("b", "<"), "<", None, 0, Markup("<i>")) == "<b>&lt;</b>&lt;0<i>"


def test_attributes_without_a_value_are_left_out() -> None:
    assert element("a", "x", href=None, hidden=True, open=False) == "<a hidden>x</a>"


def test_a_name_keeps_its_direction_to_itself_and_a_long_one_gets_a_box() -> None:
    assert read(named("\u05d0\u202e")).tags[0][0] == "bdi"
    assert read(named("x" * 10_000)).tags[0][1]["tabindex"] == "0"
