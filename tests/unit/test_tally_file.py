"""The tally file and the rules of release."""

import hashlib
import json
import stat
import struct
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedassay
from fedassay import Assessment, DecodeOptions, Survey, Tally
from fedassay.client import OPEN_POLICY
from fedassay.errors import (
    FileInvalid,
    ReportDuplicate,
    SettingInvalid,
    SurveyMismatch,
    TallyClosed,
    TooFewReports,
)
from fedassay.mechanisms import Polya, Privacy
from fedassay.report_ids import ReportIds
from fedassay.tally_file import KeptTally, State
from tests.surveys import local_survey, report_of, small_survey

EXACT = small_survey(4, minimum_reports=2)
NOISY = Survey(
    privacy=Privacy.DISTRIBUTED,
    grid=EXACT.grid,
    hierarchy=EXACT.hierarchy,
    mechanisms=(Polya(Fraction(1), 1, 2),) * EXACT.hierarchy.levels,
    minimum_reports=2,
)
LOCAL = local_survey()
CLOSING = {"secure": EXACT, "distributed": NOISY}
closing = pytest.mark.parametrize("survey", CLOSING.values(), ids=CLOSING.keys())


def tally_of(survey: Survey, first: int, reports: int) -> Tally:
    """So many reports with ids from `first` on."""
    return Tally(
        survey.fingerprint,
        (reports,) * survey.hierarchy.levels,
        np.arange(survey.hierarchy.width, dtype=np.int64) * reports,
        ReportIds.of(bytes([first + i]) * 16 for i in range(reports)),
    )


def kept(survey: Survey, first: int, reports: int) -> KeptTally:
    return KeptTally(survey, tally_of(survey, first, reports))


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("survey", [EXACT, NOISY, LOCAL], ids=["secure", "distributed", "local"])
def test_a_tally_file_survives_bytes(survey: Survey, state: State) -> None:
    for reports in (0, 1, 5):
        tally = KeptTally(survey, tally_of(survey, 1, reports), state)
        read = KeptTally.from_bytes(tally.to_bytes())
        assert (read.survey, read.tally, read.state) == (survey, tally.tally, state)


def test_a_tally_file_is_laid_out_as_documented() -> None:
    data = kept(EXACT, 1, 2).to_bytes()
    magic, version, zeros, header_bytes = struct.unpack("<4sB3sI", data[:12])
    assert (magic, version, zeros) == (b"FATL", 2, bytes(3))
    header = json.loads(data[12 : 12 + header_bytes])
    assert header == {
        "format": "fedassay.tally/2",
        "survey": EXACT.to_json(),
        "state": "collecting",
        "reports": [2, 2],
        "report_ids": 2,
    }
    body = data[12 + header_bytes :]
    assert struct.unpack("<12q", body[:96]) == tuple(range(0, 24, 2))
    assert body[96:128] == b"\1" * 16 + b"\2" * 16
    assert body[128:] == hashlib.sha256(data[:-32]).digest()


def test_a_tally_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.tally"
    kept(EXACT, 1, 2).save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert KeptTally.load(path).tally == tally_of(EXACT, 1, 2)


@closing
def test_a_released_tally_takes_no_more_reports(survey: Survey) -> None:
    released = kept(survey, 1, 2).released()
    assert released.state is State.RELEASED
    with pytest.raises(TallyClosed, match="the difference of two released sums is the data"):
        released.holding(tally_of(survey, 1, 3))
    with pytest.raises(TallyClosed):
        released + kept(survey, 50, 2)
    with pytest.raises(TallyClosed):
        kept(survey, 50, 2) + released
    # What was released may be released once more as it is, and was counted already.
    assert released.holding(tally_of(survey, 1, 2)).released().state is State.RELEASED


def test_the_difference_of_two_releases_would_be_a_clients_data() -> None:
    """Why a tally closes: the planted rule that lets it grow gives the third client away."""
    counters = [0, 0, 1]
    two = Tally.of(EXACT, [report_of(EXACT, [3, 1], report_id=bytes([i]) * 16) for i in (1, 2)])
    three = two + Tally.of(EXACT, [report_of(EXACT, counters, report_id=b"v" * 16)])
    planted = [KeptTally(EXACT, tally).released() for tally in (two, three)]
    files = [Assessment(EXACT, one.tally, DecodeOptions()).to_json() for one in planted]
    difference = np.subtract(files[1]["counters"], files[0]["counters"])
    assert difference.tolist()[:3] == counters
    with pytest.raises(TallyClosed):
        KeptTally(EXACT, two).released().holding(three)


def test_local_reports_protect_themselves_and_may_be_added_after_a_release() -> None:
    released = kept(LOCAL, 1, 2).released()
    more = released.holding(tally_of(LOCAL, 1, 3))
    assert (more.state, more.reports) == (State.COLLECTING, 3)
    assert (released + kept(LOCAL, 50, 2)).released().reports == 4


@closing
def test_a_part_of_a_merged_tally_is_not_released(survey: Survey) -> None:
    part = KeptTally(survey, tally_of(survey, 1, 2), State.MERGED)
    for act in (part.released, part.require_open, lambda: part + kept(survey, 9, 1)):
        with pytest.raises(TallyClosed, match="merged"):
            act()


@closing
def test_nothing_is_released_below_the_minimum(survey: Survey) -> None:
    with pytest.raises(TooFewReports, match="1 more"):
        kept(survey, 1, 1).released()
    with pytest.raises(TooFewReports):
        Assessment(survey, tally_of(survey, 1, 1), DecodeOptions()).to_json()


def test_what_too_few_reports_would_break_is_said_as_it_is() -> None:
    local = local_survey(fanouts=(2, 2), kinds="oue oue")
    for survey, words in (
        (EXACT, "before anything is decoded"),
        (NOISY, "or epsilon=2 would not hold"),
        (local, "before anything is decoded"),
    ):
        with pytest.raises(TooFewReports, match=words):
            KeptTally.empty(survey).released()


def test_tallies_of_two_surveys_or_with_a_common_report_do_not_merge() -> None:
    with pytest.raises(SurveyMismatch):
        kept(EXACT, 1, 1) + kept(NOISY, 2, 1)
    with pytest.raises(ReportDuplicate, match="1 are there twice"):
        kept(EXACT, 1, 2) + kept(EXACT, 2, 2)


def test_an_assessment_holds_counters_and_no_report_ids(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    Assessment(EXACT, tally_of(EXACT, 1, 2), DecodeOptions()).save(path)
    content = json.loads(path.read_text())
    assert set(content) == {
        "format", "survey", "reports", "counters", "decode_options", "thresholds", "guarantee",
        "estimates",
    }  # fmt: skip
    assert content["format"] == "fedassay.assessment/3"
    assert (b"\1" * 16).hex() not in path.read_text()
    again = Assessment.load(path)
    assert again.tally.counters.tolist() == list(range(0, 24, 2))
    assert (again.tally.reports, len(again.tally.report_ids)) == ((2, 2), 0)


HOSTILE: list[tuple[str, Any]] = [
    ("format", "fedassay.assessment/1"),
    ("surprise", 1),
    ("reports", -1),
    ("reports", [2]),
    ("reports", [2, 3]),
    ("reports", [2.0, 2.0]),
    ("reports", [10**30, 10**30]),
    ("counters", None),
    ("counters", []),
    ("counters", [0] * 13),
    ("counters", [True] * 12),
    ("counters", [10**400] * 12),
    ("counters", [2**40] * 12),
    ("counters", [-1] * 12),
    ("thresholds", [2]),
]


@pytest.mark.parametrize(("field", "value"), HOSTILE)
def test_a_hostile_assessment_is_refused(field: str, value: object, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    content = Assessment(EXACT, tally_of(EXACT, 1, 2), DecodeOptions()).to_json()
    path.write_text(json.dumps({**content, field: value}))
    with pytest.raises(FileInvalid):
        Assessment.load(path)


def test_an_assessment_of_too_few_reports_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    content = Assessment(EXACT, tally_of(EXACT, 1, 2), DecodeOptions()).to_json()
    path.write_text(json.dumps({**content, "reports": [1, 1]}))
    with pytest.raises(TooFewReports):
        Assessment.load(path)


def forged(change: Callable[[dict[str, Any]], object], *, body: bytes | None = None) -> bytes:
    """A tally file with another header, or body, and a checksum that fits."""
    data = kept(EXACT, 1, 2).to_bytes()
    size = struct.unpack("<I", data[8:12])[0]
    header = json.loads(data[12 : 12 + size])
    change(header)
    text = json.dumps(header, separators=(",", ":"), sort_keys=True).encode()
    framed = data[:8] + struct.pack("<I", len(text)) + text
    framed += data[12 + size : -32] if body is None else body
    return framed + hashlib.sha256(framed).digest()


IDS = b"a" * 16 + b"b" * 16
FORGED: dict[str, bytes] = {
    "empty": b"",
    "other file": b"score,label\n0.5,1\n" * 50,
    "version": b"FATL\1" + kept(EXACT, 1, 2).to_bytes()[5:],
    "reserved": b"FATL\2\1" + kept(EXACT, 1, 2).to_bytes()[6:],
    "cut": kept(EXACT, 1, 2).to_bytes()[:-1],
    "extended": kept(EXACT, 1, 2).to_bytes() + b"\0",
    "flipped": kept(EXACT, 1, 2).to_bytes()[:-40] + b"\xff" + kept(EXACT, 1, 2).to_bytes()[-39:],
    "header of 4 GiB": b"FATL\2\0\0\0\xff\xff\xff\xff" + bytes(100),
    "ids of 32 GiB": forged(lambda h: h.update(report_ids=2**31)),
    "ids beyond": forged(lambda h: h.update(report_ids=2**62)),
    "more ids than reports": forged(lambda h: h.update(reports=[1, 1])),
    "levels that differ": forged(lambda h: h.update(reports=[2, 3])),
    "state": forged(lambda h: h.update(state="open")),
    "unknown field": forged(lambda h: h.update(surprise=1)),
    "no survey": forged(lambda h: h.pop("survey")),
    "a sum of 2^40": forged(
        dict, body=struct.pack("<12q", 2**40, *[0] * 11) + b"a" * 16 + b"b" * 16
    ),
    "negative": forged(dict, body=struct.pack("<12q", *[-1] * 12) + IDS),
    "ids that fall": forged(dict, body=bytes(96) + b"b" * 16 + b"a" * 16),
    "an id twice": forged(dict, body=bytes(96) + b"a" * 32),
}


def test_the_forger_makes_files_that_are_read() -> None:
    assert KeptTally.from_bytes(forged(dict)).tally == tally_of(EXACT, 1, 2)


@pytest.mark.parametrize("data", FORGED.values(), ids=FORGED.keys())
def test_a_hostile_tally_file_is_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(FileInvalid):
        KeptTally.from_bytes(data)
    path = tmp_path / "x.tally"
    path.write_bytes(data)
    with pytest.raises(FileInvalid, match=r"x\.tally"):
        KeptTally.load(path)


def test_a_tally_file_that_is_a_folder_or_missing_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.tally"):
        with pytest.raises(FileInvalid, match="cannot be read"):
            KeptTally.load(path)


def test_a_site_withdraws_before_the_release_only() -> None:
    survey = fedassay.new_survey(height=3, minimum_reports=2, smallest_cell=0)
    answers = [
        fedassay.answer(survey, [0, 1, 1], [0.2, 0.4, score], policy=OPEN_POLICY).messages
        for score in (0.3, 0.6, 0.9)
    ]
    parts = [Tally.of(survey, messages) for messages in answers]
    whole = KeptTally(survey, parts[0] + parts[1] + parts[2])
    left = whole.without(parts[1])
    assert left.tally == parts[0] + parts[2]
    with pytest.raises(SettingInvalid, match="never counted"):
        left.without(parts[1])
    with pytest.raises(TallyClosed, match="cannot be taken back"):
        whole.released().without(parts[1])
    other = fedassay.new_survey(height=4, minimum_reports=2, smallest_cell=0)
    with pytest.raises(SurveyMismatch):
        whole.without(Tally.zero(other))
