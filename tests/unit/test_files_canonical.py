"""Canonical JSON is that of RFC 8785, as an independent package has it."""

import json
import struct
from typing import Any

import numpy as np
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from fedassay.errors import FileInvalid
from fedassay.files import canonical, number_text, parse_json

LARGEST_SAFE_INTEGER = 2**53 - 1

whole_numbers = st.integers(-LARGEST_SAFE_INTEGER, LARGEST_SAFE_INTEGER)
# A double from 2^53 to 1e21 is written as a whole number, and then is too large for one.
doubles = st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda x: not 2.0**53 <= abs(x) < 1e21
)
any_doubles = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack(">d", bits.to_bytes(8))[0])
texts = st.text(st.characters(exclude_categories=["Cs"]))
contents = st.recursive(
    st.none() | st.booleans() | whole_numbers | doubles | texts,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(texts, inner, max_size=6),
    max_leaves=30,
)


@settings(max_examples=200)
@given(contents)
def test_content_is_written_as_the_independent_package_writes_it(content: Any) -> None:
    assert canonical(content) == rfc8785.dumps(content)


@settings(max_examples=600)
@given(any_doubles.filter(np.isfinite))
def test_numbers_are_written_as_the_independent_package_writes_them(value: float) -> None:
    assert number_text(value).encode() == rfc8785.dumps(value)
    assert float(number_text(value)) == value


@settings(max_examples=100)
@given(contents)
def test_what_is_written_reads_back_and_is_written_the_same_again(content: Any) -> None:
    text = canonical(content)
    assert canonical(parse_json(text, "content")) == text
    # However it was laid out.
    assert canonical(json.loads(json.dumps(content, indent=2))) == text


@given(doubles)
def test_a_numpy_number_is_written_as_the_number_that_it_is(value: float) -> None:
    assert number_text(np.float64(value)) == number_text(value)


@pytest.mark.parametrize(
    "content",
    [
        float("nan"),
        float("-inf"),
        2**53,
        -(2**53),
        "\ud800",
        {"\ud800": 1},
        {1: 2},
        {"a": {None: 1}},
        b"bytes",
        {1, 2},
        np.int64(1),
        object(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_does_not_have_is_refused(content: Any) -> None:
    with pytest.raises(FileInvalid):
        canonical(content)
    with pytest.raises(FileInvalid):
        canonical({"inside": [content]})
