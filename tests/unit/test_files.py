"""Files whole or not at all, JSON in one way, fractions exactly."""

import os
import resource
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from fedassay.client import Answer
from fedassay.engines.report_files import write_answer
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.files import (
    PUBLIC,
    Fields,
    canonical,
    number_text,
    parse_fraction,
    parse_json,
    write_whole,
)
from tests.surveys import report_of, small_survey


@contextmanager
def disk_of(size: int) -> Iterator[None]:
    """No file grows past so many bytes: what a full disk does to whoever writes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_report_that_cannot_be_written_leaves_the_old_one_whole(tmp_path: Path) -> None:
    survey = small_survey(4096)
    answer = Answer((report_of(survey, [1] * survey.hierarchy.width),))
    path = tmp_path / "report.fa"
    path.write_bytes(b"the old report")
    with disk_of(16_384), pytest.raises(FileInvalid, match="cannot be written"):
        write_answer(answer, path)
    assert path.read_bytes() == b"the old report"
    assert list(tmp_path.iterdir()) == [path]
    assert write_answer(answer, path) == len(answer.to_bytes())
    assert path.read_bytes() == answer.to_bytes()


def test_a_new_name_is_there_only_when_its_content_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of what is synced, by watching the system calls: the file, then the folder."""
    seen: list[str] = []
    sync = os.fsync

    def watched(handle: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        there = (tmp_path / "f").exists()
        seen.append(f"{'folder' if is_folder else 'file'} {'after' if there else 'before'}")
        sync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    write_whole(tmp_path / "f", b"content")
    assert seen == ["file before", "folder after"]


def test_only_the_owner_reads_what_is_written_unless_said_otherwise(tmp_path: Path) -> None:
    for name, mode, wanted in (("a", None, 0o600), ("b", PUBLIC, 0o644)):
        path = tmp_path / name
        write_whole(path, b"x") if mode is None else write_whole(path, b"x", mode=mode)
        assert stat.S_IMODE(path.stat().st_mode) == wanted & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_planted_link_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr("fedassay.files.secrets.token_hex", lambda _: "guessed")
    (tmp_path / ".f.guessed.part").symlink_to(victim)
    with pytest.raises(FileInvalid, match="cannot be written"):
        write_whole(tmp_path / "f", b"theirs")
    assert victim.read_text() == "mine"


# From RFC 8785, appendix B and section 3.2.3
NUMBERS = {
    0x0000000000000000: "0",
    0x8000000000000000: "0",
    0x0000000000000001: "5e-324",
    0x8000000000000001: "-5e-324",
    0x7FEFFFFFFFFFFFFF: "1.7976931348623157e+308",
    0x4340000000000000: "9007199254740992",
    0xC340000000000000: "-9007199254740992",
    0x4430000000000000: "295147905179352830000",
    0x44B52D02C7E14AF5: "9.999999999999997e+22",
    0x44B52D02C7E14AF6: "1e+23",
    0x44B52D02C7E14AF7: "1.0000000000000001e+23",
    0x444B1AE4D6E2EF4E: "999999999999999700000",
    0x444B1AE4D6E2EF4F: "999999999999999900000",
    0x444B1AE4D6E2EF50: "1e+21",
    0x3EB0C6F7A0B5ED8C: "9.999999999999997e-7",
    0x3EB0C6F7A0B5ED8D: "0.000001",
    0x41B3DE4355555553: "333333333.3333332",
    0x41B3DE4355555557: "333333333.33333343",
    0xBECBF647612F3696: "-0.0000033333333333333333",
    0x43143FF3C1CB0959: "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_numbers_are_written_as_in_the_standards_own_table(bits: int, text: str) -> None:
    (value,) = struct.unpack(">d", bits.to_bytes(8, "big"))
    assert number_text(value) == text


def test_names_are_sorted_by_utf16_as_in_the_standards_own_example() -> None:
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    sorted_names = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    made = canonical(dict.fromkeys(names, 0)).decode()
    places = [made.index(f'"{name}"' if name != "\r" else '"\\r"') for name in sorted_names]
    assert places == sorted(places)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53, -(2**53), b"x", {1, 2}])
def test_what_json_cannot_say_the_same_everywhere_is_refused(value: object) -> None:
    with pytest.raises(FileInvalid):
        canonical([value])


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", Fraction(1)), ("0.1", Fraction(1, 10)), ("1/3", Fraction(1, 3)), (".5", Fraction(1, 2)),
     ("1e-3", Fraction(1, 1000)), ("-2.50", Fraction(-5, 2))],
)  # fmt: skip
def test_fractions_are_read_exactly(text: str, value: Fraction) -> None:
    assert parse_fraction(text, "epsilon") == value


@pytest.mark.parametrize("text", ["", "one", "1/0", "nan", "1e999", "1" * 50, "1/3/5", "0x1", " 1"])
def test_what_is_no_number_is_no_fraction(text: str) -> None:
    with pytest.raises(SettingInvalid, match="epsilon must be a number"):
        parse_fraction(text, "epsilon")


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"x": [{"b": 0, "b": 0}]}'])
def test_a_name_that_stands_twice_is_refused(text: str) -> None:
    """Readers differ in which of the two they take, so that a fingerprint could mean both."""
    with pytest.raises(FileInvalid):
        parse_json(text.encode(), "here")


@pytest.mark.parametrize("value", [True, 1.0, "1", None, 0, 11])
def test_a_whole_number_is_one_and_within_its_limits(value: object) -> None:
    assert Fields({"n": 10}, "here").integer("n", 1, 10) == 10
    with pytest.raises(FileInvalid, match="from 1 to 10"):
        Fields({"n": value}, "here").integer("n", 1, 10)


def test_fields_that_are_not_known_are_refused() -> None:
    Fields({"a": 1}, "here").only("a", "b")
    with pytest.raises(FileInvalid, match="unknown field 'c'"):
        Fields({"a": 1, "c": 2}, "here").only("a", "b")
