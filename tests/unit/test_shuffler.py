"""The shuffler: what a batch is made of, and what it no longer tells."""

from dataclasses import replace
from fractions import Fraction
from io import BytesIO

import numpy as np
import pytest

from fedassay.client import OPEN_POLICY, Answer, ClientPolicy, answer
from fedassay.engines.bulk_tally import BulkBuilder
from fedassay.engines.single_reports import SingleReports, single_reports
from fedassay.errors import (
    ReportDuplicate,
    ReportMalformed,
    SettingInvalid,
    SurveyMismatch,
    SurveyRefused,
    TallyClosed,
    TooFewReports,
)
from fedassay.examples import Examples
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Privacy, RandomizedResponse, UnaryEncoding
from fedassay.mechanisms.shuffled_promise import ShuffledPromise
from fedassay.randomness import SystemRandomness
from fedassay.shuffler import Shuffler
from fedassay.survey import Survey
from fedassay.tally import Tally
from fedassay.tally_file import KeptTally
from fedassay.wire import Block, decode, encode, messages

BATCH_TAG_BYTES = 8

HALF = Fraction(1, 2)


def shuffled_survey(minimum: int = 3, *, unary: bool = False) -> Survey:
    """One whose reports keep the promise alone, so that any crowd will do."""
    hierarchy = Hierarchy.regular(4, 2)
    return Survey(
        privacy=Privacy.SHUFFLED,
        grid=Grid.uniform(4),
        hierarchy=hierarchy,
        mechanisms=tuple(
            UnaryEncoding(Fraction(1)) if unary else RandomizedResponse(Fraction(1), cells)
            for cells in hierarchy.cells_per_level
        ),
        level_policy=OneLevel((HALF, HALF), by_hash=True),
        minimum_reports=minimum,
        shuffled=ShuffledPromise(Fraction(1), Fraction(1, 10**8)),
    )


def reports(survey: Survey, count: int, *, first: int = 0) -> list[Block]:
    made = []
    for number in range(first, first + count):
        sent = answer(
            survey,
            Examples([number % 2], [(number % 10) / 10]),
            randomness=SystemRandomness(),
            policy=OPEN_POLICY,
            client_id=str(number),
        )
        made += [message for message in sent.messages if isinstance(message, Block)]
    return made


def batch_of(survey: Survey, sent: list[Block]) -> tuple[Block, ...]:
    shuffler = Shuffler(survey)
    for message in sent:
        shuffler.add(message)
    return shuffler.batch()


@pytest.mark.parametrize("unary", [False, True])
def test_a_batch_is_the_same_in_whatever_order_reports_come_and_whoever_sent_them(
    unary: bool,
) -> None:
    survey = shuffled_survey(unary=unary)
    sent = reports(survey, 30)
    renamed = [replace(message, report_id=bytes([i] * 16)) for i, message in enumerate(sent)]
    batches = [Answer(batch_of(survey, each)).to_bytes() for each in (sent, sent[::-1], renamed)]
    assert batches[0] == batches[1] == batches[2]


def test_a_batch_holds_every_report_once_and_no_id_of_any() -> None:
    survey = shuffled_survey()
    sent = reports(survey, 40)
    batch = batch_of(survey, sent)
    for level in range(2):
        here = [row.tobytes() for block in batch if block.level == level for row in block.rows]
        came = [row.tobytes() for block in sent if block.level == level for row in block.rows]
        assert here == sorted(came)
    content = Answer(batch).to_bytes()
    assert not any(message.report_id in content for message in sent)
    assert {block.report_id[:BATCH_TAG_BYTES] for block in batch} == {batch[0].report_id[:8]}


def test_a_tally_of_the_batch_is_that_of_its_reports() -> None:
    survey = shuffled_survey()
    sent = reports(survey, 50)
    tally = Tally.of(survey, messages(BytesIO(Answer(batch_of(survey, sent)).to_bytes()), survey))
    counters = np.zeros(survey.hierarchy.width, dtype=np.int64)
    for block in sent:
        place = survey.hierarchy.counters(block.level)
        value = int.from_bytes(block.rows[0].tobytes(), "little")
        counters[place.start + value] += 1
    assert tally.counters.tolist() == counters.tolist()
    assert sum(tally.reports) == 50


def test_a_report_that_comes_twice_is_taken_once_and_a_batch_is_not_shuffled_again() -> None:
    survey = shuffled_survey()
    sent = reports(survey, 20)
    shuffler = Shuffler(survey)
    shuffler.add(sent[0])
    with pytest.raises(ReportDuplicate):
        shuffler.add(sent[0])
    assert sum(shuffler.reports) == 1
    with pytest.raises(ReportMalformed, match="was shuffled already"):
        shuffler.add(batch_of(survey, sent)[0])


def test_reports_of_another_survey_are_refused_and_change_nothing() -> None:
    shuffler = Shuffler(shuffled_survey())
    with pytest.raises(SurveyMismatch, match="Shuffle it with its own survey file"):
        shuffler.add(reports(shuffled_survey(minimum=4), 1)[0])
    assert sum(shuffler.reports) == 0


def test_below_the_minimum_of_one_level_nothing_is_passed_on() -> None:
    survey = shuffled_survey(minimum=5)
    sent = reports(survey, 60)
    coarse = [block for block in sent if block.level == 0]
    fine = [block for block in sent if block.level == 1]
    with pytest.raises(TooFewReports, match=r"level 2 has 4\. Wait for 1 more"):
        batch_of(survey, coarse + fine[:4])
    assert len(batch_of(survey, coarse + fine[:5])) == 2


def test_only_a_shuffled_survey_is_shuffled() -> None:
    survey = replace(shuffled_survey(), privacy=Privacy.LOCAL, shuffled=None)
    with pytest.raises(SettingInvalid, match="only reports to a shuffled survey"):
        Shuffler(survey)


def test_a_tally_takes_the_batch_alone_and_only_one() -> None:
    survey = shuffled_survey()
    sent = reports(survey, 30)
    with pytest.raises(ReportMalformed, match="tallied once they are shuffled"):
        Tally.of(survey, sent)
    first, second = batch_of(survey, sent), batch_of(survey, sent[:-1])
    with pytest.raises(ReportMalformed, match="has one batch"):
        Tally.of(survey, [*first, *second])
    kept = [KeptTally(survey, Tally.of(survey, batch)) for batch in (first, second)]
    with pytest.raises(TallyClosed, match="has one batch"):
        _ = kept[0] + kept[1]


def test_single_reports_in_bulk_are_no_batch() -> None:
    survey = shuffled_survey()
    stream = BytesIO(b"".join(map(encode, reports(survey, 5))))
    found, _ = next(single_reports(stream, survey))
    assert isinstance(found, SingleReports)
    with pytest.raises(ReportMalformed, match="tallied once they are shuffled"):
        BulkBuilder(Tally.zero(survey), survey).add_singles(found)


def test_a_batch_in_the_order_of_its_senders_is_refused_when_it_is_read() -> None:
    survey = shuffled_survey()
    block = batch_of(survey, reports(survey, 60))[1]
    assert decode(encode(block), survey) == block
    with pytest.raises(ReportMalformed, match="a batch's reports are sorted"):
        decode(encode(replace(block, rows=block.rows[::-1].copy())), survey)


def test_other_surveys_know_no_batches() -> None:
    survey = shuffled_survey()
    local = replace(survey, privacy=Privacy.LOCAL, shuffled=None)
    block = replace(batch_of(survey, reports(survey, 60))[0], fingerprint=local.fingerprint)
    with pytest.raises(ReportMalformed, match="encoding is 2 in this survey"):
        decode(encode(block), local)


def test_a_client_compares_both_epsilons_and_delta_with_its_policy() -> None:
    survey = replace(
        shuffled_survey(minimum=40_000),
        mechanisms=(UnaryEncoding(Fraction(5)),) * 2,
    )
    ClientPolicy().check(survey)
    for policy, says in (
        (ClientPolicy(largest_epsilon=HALF), "spends at most epsilon 0.5 on a survey"),
        (ClientPolicy(largest_local_epsilon=Fraction(4)), "reports of at most epsilon 4 each"),
        (ClientPolicy(largest_delta=Fraction(1, 10**9)), "a delta of at most 1e-09"),
    ):
        with pytest.raises(SurveyRefused, match=says):
            policy.check(survey)


def test_reports_in_bulk_make_the_batch_that_they_make_one_by_one() -> None:
    """A report that came twice, in one file or in two, is in it once."""
    survey = shuffled_survey()
    sent = reports(survey, 40)
    by_one, in_bulk = Shuffler(survey), Shuffler(survey)
    for report in sent:
        by_one.add(report)
    twice = 0
    for part in ([*sent[:30], *sent[:5]], sent[25:]):
        data = b"".join(encode(report) for report in part)
        ((found, _),) = single_reports(BytesIO(data), survey)
        assert isinstance(found, SingleReports)
        twice += in_bulk.add_singles(found.ids, found.level_of, found.rows)
    assert twice == 10
    assert in_bulk.reports == by_one.reports
    assert in_bulk.batch() == by_one.batch()
    with pytest.raises(ReportDuplicate):
        in_bulk.add(sent[0])
