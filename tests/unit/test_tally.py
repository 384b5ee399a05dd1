import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay import DecodeOptions, Tally
from fedassay.decoding import decode
from fedassay.errors import (
    CountOverflow,
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
    with pytest.raises(ReportMalformed):
        builder.add(report_of(SURVEY, [5, -1], report_id=b"m" * 16))
    with pytest.raises(SurveyMismatch):
        builder.add(report_of(OTHER, report_id=b"f" * 16))
    assert builder.tally() == before


def test_tallies_that_share_a_report_do_not_add() -> None:
    tally = Tally.of(SURVEY, [report_of(SURVEY, [1])])
    with pytest.raises(ReportDuplicate):
        tally + tally


def test_a_report_that_would_overflow_is_refused_by_name_and_the_others_count() -> None:
    builder = TallyBuilder(Tally.zero(SURVEY), SURVEY)
    builder.add(report_of(SURVEY, [2**31 - 2], report_id=b"a" * 16))
    with pytest.raises(CountOverflow, match="report " + (b"b" * 6).hex()):
        builder.add(report_of(SURVEY, [2**31 - 1], report_id=b"b" * 16))
    builder.add(report_of(SURVEY, [1], report_id=b"c" * 16))
    assert builder.tally().counters.tolist() == [2**31 - 1] + [0] * (WIDTH - 1)
    assert builder.tally().reports == (2,) * SURVEY.hierarchy.levels
    assert list(builder.tally().report_ids) == [b"a" * 16, b"c" * 16]


def test_a_report_that_was_refused_for_overflow_may_come_again() -> None:
    builder = TallyBuilder(Tally.of(SURVEY, [report_of(SURVEY, [2**31 - 1])]), SURVEY)
    with pytest.raises(CountOverflow):
        builder.add(report_of(SURVEY, [1], report_id=b"b" * 16))
    builder.add(report_of(SURVEY, [0], report_id=b"b" * 16))
    assert builder.reports == 2


@pytest.mark.parametrize(
    ("reports", "counters"),
    [
        ([1], [0] * WIDTH),
        ([1, 2], [0] * WIDTH),
        ([-1, -1], [0] * WIDTH),
        ([2**60, 2**60], [0] * WIDTH),
        ([1, 1], []),
        ([1, 1], [0] * (WIDTH + 1)),
        ([1, 1], [2**31] + [0] * (WIDTH - 1)),
        ([1, 1], [-(2**63)] + [0] * (WIDTH - 1)),
        ([1, 1], [-1] * WIDTH),
        ([1, 1], [100, -1] + [100] * (WIDTH - 2)),
    ],
)
def test_a_tally_that_cannot_be_is_refused_as_a_file(
    reports: list[int], counters: list[int]
) -> None:
    with pytest.raises(FileInvalid):
        Tally.checked(SURVEY, reports=reports, counters=np.array(counters, dtype=np.int64))


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
