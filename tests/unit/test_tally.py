import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay import DecodeOptions, Tally, decode
from fedassay.errors import (
    FileInvalid,
    ReportDuplicate,
    ReportMalformed,
    SurveyMismatch,
    TooFewReports,
)
from fedassay.tally import TallyBuilder
from tests.surveys import report_of, small_survey

SURVEY = small_survey(4)
OTHER = small_survey(4, minimum_reports=7)
WIDTH = SURVEY.hierarchy.width


@st.composite
def tallies(draw: st.DrawFn, first_id: int = 0) -> Tally:
    """Up to three reports whose ids begin with `first_id`."""
    counters = draw(st.lists(st.lists(st.integers(0, 9), max_size=WIDTH), max_size=3))
    return Tally.of(
        SURVEY,
        [
            report_of(SURVEY, values, report_id=bytes([first_id, i]) + bytes(14))
            for i, values in enumerate(counters)
        ],
    )


@given(tallies(0), tallies(1))
def test_tallies_commute(a: Tally, b: Tally) -> None:
    assert a + b == b + a


@given(tallies(0), tallies(1), tallies(2))
def test_tallies_associate(a: Tally, b: Tally, c: Tally) -> None:
    assert (a + b) + c == a + (b + c)


@given(tallies())
def test_the_zero_tally_changes_nothing(a: Tally) -> None:
    assert a + Tally.zero(SURVEY) == a == Tally.zero(SURVEY) + a


@given(st.lists(st.lists(st.integers(0, 9), min_size=WIDTH, max_size=WIDTH), max_size=5))
def test_sum_of_reports_is_report_of_sum(rows: list[list[int]]) -> None:
    reports = [report_of(SURVEY, row, report_id=bytes([i]) * 16) for i, row in enumerate(rows)]
    tally = Tally.of(SURVEY, reports)
    assert tally.counters.tolist() == [sum(row[j] for row in rows) for j in range(WIDTH)]
    assert tally.clients(SURVEY) == len(rows)


def test_tallies_of_two_surveys_do_not_mix() -> None:
    with pytest.raises(SurveyMismatch):
        Tally.zero(SURVEY) + Tally.zero(OTHER)
    with pytest.raises(SurveyMismatch):
        Tally.of(SURVEY, [report_of(OTHER)])
    with pytest.raises(SurveyMismatch):
        TallyBuilder(Tally.zero(OTHER), SURVEY)
    with pytest.raises(SurveyMismatch):
        decode(SURVEY, Tally.zero(OTHER), decode_options=DecodeOptions())


def test_a_refused_report_leaves_the_tally_unchanged() -> None:
    builder = TallyBuilder(Tally.of(SURVEY, [report_of(SURVEY, [1, 2])]), SURVEY)
    before = builder.tally()
    with pytest.raises(ReportDuplicate):
        builder.add(report_of(SURVEY, [5]))
    with pytest.raises(ReportMalformed):
        builder.add(report_of(SURVEY, [-1], report_id=b"n" * 16))
    with pytest.raises(SurveyMismatch):
        builder.add(report_of(OTHER, report_id=b"f" * 16))
    assert builder.tally() == before


def test_tallies_that_share_a_report_do_not_add() -> None:
    tally = Tally.of(SURVEY, [report_of(SURVEY, [1])])
    with pytest.raises(ReportDuplicate):
        tally + tally


@given(tallies())
def test_a_tally_survives_json(tally: Tally) -> None:
    assert Tally.from_json(json.loads(json.dumps(tally.to_json())), SURVEY) == tally


HOSTILE: list[tuple[str, Any]] = [
    ("format", "fedassay.tally/9"),
    ("surprise", 1),
    ("fingerprint", "00"),
    ("fingerprint", "zz" * 32),
    ("fingerprint", 7),
    ("reports", -1),
    ("reports", 1.0),
    ("reports", 10**30),
    ("reports", True),
    ("reports", [1, 2]),
    ("reports", [1]),
    ("reports", [-1, -1]),
    ("counters", []),
    ("counters", [0] * (WIDTH + 1)),
    ("counters", [0.5] * WIDTH),
    ("counters", [True] * WIDTH),
    ("counters", [2**60] * WIDTH),
    ("counters", [10**400] * WIDTH),
    ("counters", [-1] * WIDTH),
    ("counters", [100, -1] + [100] * (WIDTH - 2)),
    ("counters", [float("nan")] * WIDTH),
    ("counters", None),
    ("report_ids", None),
    ("report_ids", ["00"]),
    ("report_ids", [7]),
    ("report_ids", ["00" * 16, "01" * 16]),
    ("report_ids", ["é" * 32]),
]


@pytest.mark.parametrize(("field", "value"), HOSTILE)
def test_a_hostile_tally_is_refused_as_a_file(field: str, value: object) -> None:
    content = Tally.of(SURVEY, [report_of(SURVEY, [1])]).to_json()
    with pytest.raises(FileInvalid):
        Tally.from_json({**content, field: value}, SURVEY)


def test_a_tally_of_another_survey_is_refused() -> None:
    with pytest.raises(SurveyMismatch):
        Tally.from_json(Tally.zero(OTHER).to_json(), SURVEY)


def test_a_tally_is_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Tally.zero(SURVEY).counters[0] = 1


def test_nothing_is_decoded_below_the_minimum() -> None:
    survey = small_survey(4, minimum_reports=2)
    one = Tally.of(survey, [report_of(survey, [1])])
    with pytest.raises(TooFewReports, match="1 more"):
        decode(survey, one, decode_options=DecodeOptions())


def test_the_leaves_of_a_tally_become_the_histogram() -> None:
    leaves = np.arange(2 * SURVEY.grid.cells)
    counters = [0] * (WIDTH - len(leaves)) + leaves.tolist()
    histogram = decode(
        SURVEY, Tally.of(SURVEY, [report_of(SURVEY, counters)]), decode_options=DecodeOptions()
    )
    assert histogram.counts.ravel().tolist() == leaves.tolist()
    assert histogram.edges.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
