"""Many reports at once: each id counts once, and nothing is counted where something is wrong."""

from io import BytesIO

import numpy as np
import pytest

from fedassay import Tally
from fedassay.engines.bulk_tally import BulkBuilder
from fedassay.engines.single_reports import SingleReports, single_reports
from fedassay.errors import CountOverflow, ReportDuplicate, SurveyMismatch
from fedassay.report_ids import ReportIds
from fedassay.wire import Block, encode
from tests.surveys import local_survey

SURVEY = local_survey(cells=9, fanouts=(3, 3), kinds="grr grr")


def block(number: int, *, level: int = 1, value: int = 0) -> Block:
    row = np.array([value], "<u4").view(np.uint8).reshape(1, 4)
    return Block(SURVEY.fingerprint, number.to_bytes(16), row, level)


def singles(*blocks: Block) -> SingleReports:
    ((found, _),) = single_reports(BytesIO(b"".join(map(encode, blocks))), SURVEY)
    assert isinstance(found, SingleReports)
    return found


def builder() -> BulkBuilder:
    return BulkBuilder(Tally.zero(SURVEY), SURVEY)


def test_of_two_reports_under_one_id_the_first_counts() -> None:
    tallied = builder()
    sent = singles(block(1, value=3), block(2, level=0), block(1, level=0, value=1), block(2))
    assert tallied.add_singles(sent).tolist() == [True, True, False, False]
    assert tallied.add_singles(sent).tolist() == [False] * 4
    assert tallied.add_singles(singles(block(2), block(3))).tolist() == [False, True]
    assert tallied.tally() == Tally.of(SURVEY, [block(1, value=3), block(2, level=0), block(3)])


def test_ids_that_differ_only_in_their_second_half_are_different() -> None:
    """Somebody may choose them so; then nothing may be dropped, or counted twice."""
    tallied = builder()
    numbers = [7 << 64 | low for low in (5, 1, 2**64 - 1, 9, 0, 3)]
    for _ in range(2):
        tallied.add_singles(singles(*map(block, numbers[:3])))
        tallied.add_singles(singles(*map(block, numbers)))
        tallied.add_singles(singles(*map(block, reversed(numbers))))
    assert tallied.reports == len(numbers)
    assert list(tallied.tally().report_ids) == sorted(number.to_bytes(16) for number in numbers)


def test_reports_one_by_one_and_in_bulk_know_each_other() -> None:
    tallied = builder()
    tallied.add(block(1))
    assert tallied.add_singles(singles(block(1), block(2))).tolist() == [False, True]
    with pytest.raises(ReportDuplicate):
        tallied.add(block(2))


def test_sums_that_might_overflow_leave_everything_as_it_was() -> None:
    full = np.zeros(SURVEY.hierarchy.width, dtype=np.int64)
    full[0] = 2**31 - 2
    tallied = BulkBuilder(Tally(SURVEY.fingerprint, (0, 0), full), SURVEY)
    before = tallied.tally()
    with pytest.raises(CountOverflow, match="2 reports more"):
        tallied.add_singles(singles(block(1), block(2)))
    assert tallied.tally() == before
    assert tallied.add_singles(singles(block(1))).all()


def test_a_tally_is_added_whole_or_not_at_all() -> None:
    tallied = builder()
    tallied.add_tally(Tally.of(SURVEY, [block(1), block(2, value=2)]))
    before = tallied.tally()
    assert before == Tally.of(SURVEY, [block(1), block(2, value=2)])
    with pytest.raises(ReportDuplicate, match="start again"):
        tallied.add_tally(Tally.of(SURVEY, [block(2), block(3)]))
    assert tallied.tally() == before
    assert tallied.add_singles(singles(block(3))).all()
    other = local_survey(cells=4)
    with pytest.raises(SurveyMismatch):
        tallied.add_tally(Tally.zero(other))


def test_ids_of_a_tally_are_kept_with_their_zeros() -> None:
    ids = [bytes(16), b"a" + bytes(15), bytes(15) + b"a"]
    start = Tally(
        SURVEY.fingerprint,
        (3, 0),
        np.zeros(SURVEY.hierarchy.width, dtype=np.int64),
        ReportIds.of(ids),
    )
    tallied = BulkBuilder(start, SURVEY)
    assert not tallied.add_singles(singles(*(block(int.from_bytes(i)) for i in ids))).any()
