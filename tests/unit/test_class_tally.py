"""The tally file of a survey of classes: it reads back the same, and a forged one not at all."""

import hashlib
import json
import struct
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fedassay
from fedassay.classes.answers import answer_classes
from fedassay.classes.class_survey import ClassSurvey
from fedassay.classes.class_tally import ClassTallyBuilder, KeptClassTally, is_class_tally
from fedassay.classes.design import design_classes
from fedassay.client import ClientPolicy
from fedassay.errors import FileInvalid, TooFewReports
from fedassay.mechanisms import Privacy
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SystemRandomness
from fedassay.tally_file import State
from tests.class_rows import drawn_rows

ROWS = drawn_rows(60, (3.0, 2.0, 1.0))
REQUEST = SurveyRequest(
    privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=2, minimum_reports=2, examples=120
)
SURVEY = design_classes(REQUEST, ROWS.names)
START = struct.Struct("<4sB3sI")
Header = dict[str, Any]


def kept(reports: int, survey: ClassSurvey = SURVEY) -> KeptClassTally:
    empty = KeptClassTally.empty(survey)
    builder = ClassTallyBuilder(survey, empty.tallies)
    for _ in range(reports):
        made = answer_classes(survey, ROWS, randomness=SystemRandomness(), policy=ClientPolicy())
        for message in made.messages:
            builder.add(message)
    return empty.holding(builder.tallies())


@pytest.fixture(scope="module")
def tally() -> KeptClassTally:
    return kept(2)


def divided(data: bytes) -> tuple[Header, list[bytes]]:
    """The header and the parts' files, as the format's table says where they lie."""
    magic, version, zeros, size = START.unpack_from(data)
    assert (magic, version, zeros) == (b"FACT", 1, bytes(3))
    header = json.loads(data[12 : 12 + size])
    parts, at = [], 12 + size
    for length in header["bytes"]:
        parts.append(data[at : at + length])
        at += length
    assert len(data) == at + 32
    return header, parts


def sealed(
    header: Header, parts: list[bytes], *, version: int = 1, zeros: bytes = bytes(3)
) -> bytes:
    """The same file from its pieces, with a checksum that fits."""
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    content = START.pack(b"FACT", version, zeros, len(text)) + text + b"".join(parts)
    return content + hashlib.sha256(content).digest()


@pytest.mark.parametrize("is_released", [False, True])
def test_a_tally_reads_back_the_same(
    tally: KeptClassTally, tmp_path: Path, is_released: bool
) -> None:
    place = tmp_path / "classes.tally"
    one = tally.released() if is_released else tally
    assert one.save(place) == place.stat().st_size
    assert is_class_tally(place)
    again = fedassay.load(place)
    assert isinstance(again, KeptClassTally)
    assert again.survey == SURVEY
    assert again.reports == 2
    assert again.state is (State.RELEASED if is_released else State.COLLECTING)
    for mine, theirs in zip(again.tallies, tally.tallies, strict=True):
        assert mine.counters.tolist() == theirs.counters.tolist()
        assert mine.report_ids == theirs.report_ids


def test_a_file_made_again_by_the_table_of_its_format_is_the_same(
    tally: KeptClassTally, tmp_path: Path
) -> None:
    tally.save(tmp_path / "classes.tally")
    data = (tmp_path / "classes.tally").read_bytes()
    header, parts = divided(data)
    assert len(parts) == len(SURVEY.parts)
    assert sealed(header, parts) == data


def fewer(header: Header, parts: list[bytes]) -> bytes:
    return sealed({**header, "bytes": header["bytes"][:-1]}, parts[:-1])


def longer(header: Header, parts: list[bytes]) -> bytes:
    return sealed(header, [*parts, b"\0"])


def negative(header: Header, parts: list[bytes]) -> bytes:
    first, second, *others = header["bytes"]
    return sealed({**header, "bytes": [-1, first + second + 1, *others]}, parts)


def exchanged(header: Header, parts: list[bytes]) -> bytes:
    first, second, *others = parts
    sizes = header["bytes"]
    return sealed({**header, "bytes": [sizes[1], sizes[0], *sizes[2:]]}, [second, first, *others])


FORGED: dict[str, tuple[Callable[[Header, list[bytes]], bytes], str]] = {
    "fewer parts": (fewer, "the parts' bytes fit the file"),
    "a byte more": (longer, "the parts' bytes fit the file"),
    "less than no bytes": (negative, "the parts' bytes fit the file"),
    "exchanged": (exchanged, "a part's tally is of another survey"),
    "version": (lambda header, parts: sealed(header, parts, version=2), "version 1 .* found 2"),
    "zeros": (lambda header, parts: sealed(header, parts, zeros=b"\0\0\1"), "reads version 1"),
    "other file": (lambda *_: b'{"format": "fedassay.survey/1"}', "begins with FACT"),
    "cut": (lambda *_: b"FACT\1", "begins with FACT"),
    "changed": (lambda *pieces: sealed(*pieces)[:-1] + b"?", "the checksum must match"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_file_that_was_forged_with_its_checksum_is_refused(
    tally: KeptClassTally, tmp_path: Path, name: str
) -> None:
    place = tmp_path / "classes.tally"
    tally.save(place)
    forge, words = FORGED[name]
    place.write_bytes(forge(*divided(place.read_bytes())))
    with pytest.raises(FileInvalid, match=words):
        KeptClassTally.load(place)


def test_parts_are_released_together_or_not_at_all(tally: KeptClassTally, tmp_path: Path) -> None:
    first, *others = tally.parts
    some = KeptClassTally(SURVEY, (first.released(), *others))
    some.save(tmp_path / "some.tally")
    with pytest.raises(FileInvalid, match="all parts are released, or none"):
        KeptClassTally.load(tmp_path / "some.tally")
    with pytest.raises(TooFewReports):
        kept(1).released()


def test_a_place_that_cannot_be_read_holds_no_tally(tmp_path: Path) -> None:
    assert not is_class_tally(tmp_path / "nowhere")
    assert not is_class_tally(tmp_path)
