"""Work before trust: what is refused costs neither draws nor memory nor a charge.

Draws and bytes are counted, not seconds: they are the same on every machine.
"""

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log2
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fedassay import Grid, Hierarchy, Polya, Survey, SystemRandomness
from fedassay.calibration import Calibrator
from fedassay.client import OPEN_POLICY, ClientPolicy, answer_counts
from fedassay.errors import FileInvalid, MessageMalformed, SurveyRefused, TermsRefused
from fedassay.examples import IntArray
from fedassay.files import canonical
from fedassay.level_policy import EveryLevel, OneLevel
from fedassay.limits import MOST_ANSWER_BYTES, answer_bytes, expected_draws, largest_noise
from fedassay.mechanisms import Exact, Privacy
from fedassay.mechanisms.sampling import Dice
from fedassay.secagg import graph, messages
from fedassay.secagg.graph import Graph
from fedassay.secagg.terms import required_survivors
from fedassay.survey_json import survey_from_bytes
from tests.secagg import Federation, flat
from tests.surveys import local_survey, small_survey

MOST_DRAWS = 2**20
MAX_SURVEY_BYTES = 4 * 2**20

MEGABYTE = 2**20


def noisy(
    epsilon: Fraction, cells: int = 4, *, reports: int = 4, fanout: int | None = None
) -> Survey:
    hierarchy = Hierarchy.regular(cells, fanout or cells)
    return Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(cells),
        hierarchy=hierarchy,
        mechanisms=(Polya(epsilon, 1, reports),) * hierarchy.levels,
        minimum_reports=reports,
    )


@dataclass
class Watch:
    """An account and a source of randomness that must not be asked."""

    is_secret: bool = True

    def charge(self, survey: Survey) -> None:
        raise AssertionError("charged")

    def bytes(self, count: int) -> bytes:
        raise AssertionError("drawn")


def refuses_untouched(survey: Survey, counts: IntArray) -> str:
    with pytest.raises(SurveyRefused) as refused:
        answer_counts(survey, counts, randomness=Watch(), policy=OPEN_POLICY, account=Watch())
    return str(refused.value)


def peak_bytes(act: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_noise_that_takes_too_much_work_is_refused_before_anything_is_drawn() -> None:
    survey = noisy(Fraction(1, 10**9))
    told = refuses_untouched(survey, np.ones((2, 4), dtype=np.int64))
    # 2 x 8 counters / (4 shares x 1e-9).
    assert "4,000,000,000 on average" in told


def test_the_last_survey_that_is_answered_takes_as_many_draws_as_allowed() -> None:
    # 2 x 8 / (4 x epsilon) = 2^20.
    survey = noisy(Fraction(4, 2**20))
    assert expected_draws(survey) == MOST_DRAWS
    OPEN_POLICY.check(survey)
    with pytest.raises(SurveyRefused, match="draws at most"):
        OPEN_POLICY.check(noisy(Fraction(399, 100 * 2**20)))


def test_levels_add_up_for_those_who_report_on_all_and_the_dearest_counts_for_one() -> None:
    every = noisy(Fraction(1), 4, fanout=2)
    # Levels of 2 and 4 cells: 2 x 4 / 4 and 2 x 8 / 4 draws.
    assert expected_draws(every) == 2 + 4
    one = replace(every, level_policy=OneLevel((Fraction(1, 2),) * 2))
    assert isinstance(every.level_policy, EveryLevel)
    assert expected_draws(one) == 4
    assert expected_draws(small_survey()) == 0


def test_draws_are_as_many_as_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 answers of 64 draws on average; false alarms below 1e-8 (6 sd of a Poisson sum)."""
    drawn, true = 0, Dice.geometric_exp

    def counted(self: Dice, numerator: int, denominator: int) -> int:
        nonlocal drawn
        drawn += 1
        return true(self, numerator, denominator)

    monkeypatch.setattr(Dice, "geometric_exp", counted)
    mechanism = Polya(Fraction(1, 8), 1, 4)
    for _ in range(2000):
        mechanism.noise(16, randomness=SystemRandomness())
    assert abs(drawn - 2000 * 64) < 6 * (2000 * 64) ** 0.5


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("shares", [1, 4, 1000])
def test_noise_passes_its_largest_less_than_once_in_2_to_the_40(
    epsilon: Fraction, shares: int
) -> None:
    size = 64
    most = Polya(epsilon, 1, shares).largest_noise(size, 40)
    part = stats.nbinom(1 / shares, -np.expm1(-float(epsilon)))
    # Either of two Polya variables must reach what their difference reaches.
    assert size * 2 * part.sf(most - 1) <= 2.0**-40 * (1 + 1e-6)
    if shares == 1:
        # With one share it is tight: a step of two thirds would not do.
        assert log2(size * part.sf(most * 2 // 3)) > -40


def test_counters_that_noise_might_push_over_are_refused_before_the_charge() -> None:
    survey = noisy(Fraction(1, 1000))
    # ln(2 x 8) + 40 ln 2 = 30.5 nats, at a thousandth each.
    assert largest_noise(survey) == 30_499
    counts = np.zeros((2, 4), dtype=np.int64)
    counts[1, 2] = 2**31 - 30_499
    assert "with their noise" in refuses_untouched(survey, counts)
    counts[1, 2] -= 1
    answer_counts(survey, counts, randomness=SystemRandomness(), policy=OPEN_POLICY)


def test_reports_larger_than_anybody_takes_are_refused_before_they_are_made() -> None:
    # 2 x 2^13 bits are 2 KiB: 2^17 rows fill 256 MiB.
    survey = local_survey(cells=2**13)
    assert answer_bytes(survey, 2**17) == MOST_ANSWER_BYTES == 2**28
    counts = np.zeros((2, 2**13), dtype=np.int64)
    counts[0, 5] = 2**17 + 1
    survey_bytes = peak_bytes(lambda: refuses_untouched(survey, counts))
    assert survey_bytes < MEGABYTE


def test_a_small_survey_of_a_million_cells_costs_a_client_little() -> None:
    survey = local_survey(cells=2**20)
    data = canonical(survey.to_json())
    assert len(data) < 400

    def read() -> None:
        with pytest.raises(SurveyRefused, match="at most 8,192 cells"):
            OPEN_POLICY.check(survey_from_bytes(data))

    assert peak_bytes(read) < 50 * MEGABYTE


def test_large_grids_that_strangers_name_are_not_kept() -> None:
    tracemalloc.start()
    try:
        for cells in range(2**20 - 3, 2**20):
            Grid.uniform(cells)
        assert tracemalloc.get_traced_memory()[0] < MEGABYTE
    finally:
        tracemalloc.stop()


HOSTILE = {
    "lists": b"[" + b"[]," * (MAX_SURVEY_BYTES // 3 - 2) + b"1]",
    "objects": b"[" + b"{}," * (MAX_SURVEY_BYTES // 3 - 2) + b"1]",
    "depth": b"[" * (MAX_SURVEY_BYTES - 1),
    "texts": b"[" + b'"ab",' * (MAX_SURVEY_BYTES // 5 - 2) + b"1]",
    "names": b"{" + b",".join(b'"%d":1' % i for i in range(300_000)) + b"}",
    "numbers": b"[" + b"1e1," * (MAX_SURVEY_BYTES // 4 - 2) + b"1]",
    "digits": b"[" + b"7" * (MAX_SURVEY_BYTES - 2) + b"]",
    "size": b"[" + b" " * MAX_SURVEY_BYTES + b"]",
    "two bytes a letter": ("[" + "[]," * (MAX_SURVEY_BYTES // 6 - 4) + "1]").encode("utf-16"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_json_is_refused_before_it_becomes_objects(kind: str) -> None:
    def read() -> None:
        with pytest.raises(FileInvalid):
            survey_from_bytes(HOSTILE[kind])

    assert peak_bytes(read) < 4 * 5 * MEGABYTE


def test_a_survey_has_a_size_that_is_checked_first() -> None:
    with pytest.raises(FileInvalid, match="at most 4,194,304 bytes; found 4,194,305"):
        survey_from_bytes(b" " * (MAX_SURVEY_BYTES + 1))


def test_a_survey_of_many_edges_is_still_read() -> None:
    edges = np.linspace(0.0, 1.0, 2**16 + 1)
    survey = Survey(
        privacy=Privacy.SECURE,
        grid=Grid(edges),
        hierarchy=Hierarchy.flat(2**16),
        mechanisms=(Exact(),),
    )
    assert survey_from_bytes(canonical(survey.to_json())) == survey


@pytest.fixture
def tails(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many hypergeometric tails were computed, each over how many terms."""
    computed: list[int] = []
    true = graph.log2_tail

    def counted(population: int, marked: int, draws: int, at_least: int) -> float:
        computed.append(draws)
        return true(population, marked, draws, at_least)

    monkeypatch.setattr(graph, "log2_tail", counted)
    Graph.of.cache_clear()
    return computed


def test_a_cohort_larger_than_the_roster_is_refused_before_its_graph_is_made(
    tails: list[int],
) -> None:
    federation = Federation.of(4, is_pinned=True)
    message = bytearray(federation.keys()["0"])
    message[40:44] = (2**16).to_bytes(4, "little")
    with pytest.raises(MessageMalformed, match="part of the pinned roster of 4"):
        messages.decode_roster(bytes(message), federation.terms, 4)
    assert tails == []


def test_terms_for_more_clients_than_the_roster_has_are_refused_at_once() -> None:
    with pytest.raises(TermsRefused, match="roster has 4 identities; the round needs 65536"):
        Federation.of(4, survey=flat(minimum=2**16), is_pinned=True)


@pytest.mark.parametrize(
    ("corrupt", "dropped"), [(21_823, 32_768), (30_000, 17_000), (13_107, 16_384), (65_534, 0)]
)
def test_a_graph_that_cannot_be_is_given_up_after_little_work(
    tails: list[int], corrupt: int, dropped: int
) -> None:
    with pytest.raises(TermsRefused, match="more than 1024 neighbours"):
        Graph.of(2**16, corrupt, dropped)
    assert sum(tails) < 200 * 1024


def test_a_level_that_needs_too_many_clients_is_refused_for_nothing() -> None:
    # 2^17 stand for any number: without the check their tails take megabytes.
    survey = replace(
        small_survey(minimum_reports=2**17), level_policy=OneLevel((Fraction(1, 2),) * 2)
    )

    def ask() -> None:
        with pytest.raises(TermsRefused, match="more than 65536 clients"):
            required_survivors(survey)

    assert peak_bytes(ask) < MEGABYTE


@pytest.mark.parametrize("number", ["7" * 400, "-" + "7" * 400, "7" * 5000, "1e999", "-1e999"])
@pytest.mark.parametrize("place", ["parameters", "edges"])
def test_numbers_that_no_float_holds_are_refused_in_our_words(
    tmp_path: Path, number: str, place: str
) -> None:
    content = json.dumps(Calibrator.identity().to_json())
    good = {"parameters": '"parameters": {}', "edges": '"edges": [0.0'}[place]
    bad = {"parameters": f'"parameters": {{"a": {number}}}', "edges": f'"edges": [{number}'}[place]
    assert content.count(good) == 1
    (tmp_path / "calibrator.json").write_text(content.replace(good, bad))
    with pytest.raises(FileInvalid):
        Calibrator.load(tmp_path / "calibrator.json")


class Book:
    """An account that remembers whether it was charged."""

    charged = False

    def charge(self, survey: Survey) -> None:
        self.charged = True


@pytest.mark.parametrize(
    ("rows", "minimum", "colluders", "smallest", "answers"),
    [
        (40, 2, 0, 10, True),
        (39, 2, 0, 10, False),
        (20, 4, 0, 10, True),
        (20, 4, 1, 10, False),
        (8, 2, 0, 2, True),
        (7, 2, 0, 2, False),
        (0, 2, 0, 10, False),
        (0, 2, 0, 1, True),
        (0, 2, 0, 0, True),
    ],
)
def test_exact_sums_with_more_cells_than_rows_allow_are_refused_before_anything_is_charged(
    rows: int, minimum: int, colluders: int, smallest: int, answers: bool
) -> None:
    """Eight cells: rows x honest clients / 8 must reach the client's smallest cell."""
    grid, account = Grid.nested(8), Book()
    survey = Survey(
        privacy=Privacy.SECURE,
        grid=grid,
        hierarchy=Hierarchy.flat(8),
        mechanisms=(Exact(),),
        minimum_reports=minimum,
        colluders=colluders,
        smallest_cell=10,
    )
    counts = np.zeros((2, 8), dtype=np.int64)
    counts[0, 3] = rows

    def answer() -> object:
        return answer_counts(
            survey,
            counts,
            randomness=SystemRandomness(),
            policy=ClientPolicy(exact_sums=True, smallest_cell=smallest),
            account=account,
        )

    if answers:
        assert answer()
    else:
        with pytest.raises(SurveyRefused, match="rows in a cell on average"):
            answer()
    assert account.charged == answers
