"""Answers to the second of two surveys: each example counts in its label's own cell."""

from fractions import Fraction
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay import Examples, Survey, SystemRandomness, Tally
from fedassay.client import OPEN_POLICY, answer_counts, make_answer
from fedassay.cut_levels import MAX_WEIGHT, CutLevels
from fedassay.errors import SurveyRefused
from fedassay.examples import ScoredClients
from fedassay.limits import COUNTER_LIMIT, check_counters, largest_noise
from fedassay.local_reports import cells_of as cells_of_hits
from fedassay.mechanisms import Exact
from fedassay.mechanisms.polya import Polya
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import tally_clients, tally_each_client
from fedassay.wire import Block, Report, messages
from tests.laws import FALSE_ALARM, same_law
from tests.steps import CUTS, first_local, first_shared, second_local, second_shared
from tests.surveys import cohort_of
from tests.unit.test_limits import Watch, refuses_untouched

LEAVES = 6


@st.composite
def label_cuts(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    def starts() -> tuple[int, ...]:
        return (0, *sorted(draw(st.sets(st.integers(1, LEAVES - 1)))))

    return starts(), starts()


@given(label_cuts(), label_cuts())
def test_a_hit_lies_in_the_cell_of_its_own_label(
    one: tuple[tuple[int, ...], tuple[int, ...]], other: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    levels = CutLevels(LEAVES, (one, other))
    survey = second_local(first_local(), levels, kinds="oue oue")
    hits = np.arange(-1, 2 * LEAVES)
    for level, cuts in enumerate((one, other)):
        size = max(map(len, cuts))
        wanted = [-1]
        for label in (0, 1):
            for leaf in range(LEAVES):
                cell = max(i for i, start in enumerate(cuts[label]) if start <= leaf)
                wanted.append(label * size + cell)
        assert cells_of_hits(survey, hits, level).tolist() == wanted


def test_as_many_cells_as_leaves_are_not_taken_for_the_leaves() -> None:
    """Positives have a cell for each leaf, negatives two: theirs must still be found."""
    cuts = ((0, 3), tuple(range(LEAVES)))
    survey = second_local(first_local(), CutLevels(LEAVES, (cuts,)), kinds="oue")
    found = cells_of_hits(survey, np.arange(2 * LEAVES), 0)
    assert found.tolist() == [0, 0, 0, 1, 1, 1, *range(LEAVES, 2 * LEAVES)]


def test_without_noise_a_report_holds_the_counters_and_the_weighted_sums(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Polya, "share", lambda self, counts, randomness: counts)
    second = second_shared(first_shared())
    counts = np.array([[5, 0, 1, 0, 2, 0], [0, 3, 0, 0, 0, 4]])
    (report,) = make_answer(second, counts, randomness=SimulatedRandomness(1)).messages
    assert isinstance(report, Report)
    assert report.counters.tolist() == [
        5, 3, 0, 3, 4, 0,
        6, 2, 0, 0, 0, 3, 0, 4,
        -15 - 2 + 2, -3 + 20,
    ]  # fmt: skip


def test_a_shared_answer_travels_with_its_noise_and_is_counted() -> None:
    second = second_shared(first_shared())
    counts = np.array([[5, 0, 1, 0, 2, 0], [0, 3, 0, 0, 0, 4]])
    sent = answer_counts(second, counts, randomness=SystemRandomness(), policy=OPEN_POLICY)
    (message,) = messages(BytesIO(sent.to_bytes()), second)
    assert isinstance(message, Report)
    assert len(message.counters) == second.hierarchy.width == 2 * (3 + 4 + 1)
    assert Tally.of(second, [message]).reports == (1, 1, 1)


def test_a_local_answer_travels_and_its_rows_fit_the_chosen_cells() -> None:
    second = second_local(first_local())
    counts = np.full((2, LEAVES), 3)
    sent = answer_counts(second, counts, randomness=SystemRandomness(), policy=OPEN_POLICY)
    arrived = list(messages(BytesIO(sent.to_bytes()), second))
    assert all(isinstance(message, Block) for message in arrived)
    assert sum(Tally.of(second, arrived).reports) == 36


def heavy() -> Survey:
    weights = ((0,) * (LEAVES - 1) + (MAX_WEIGHT,), (-MAX_WEIGHT,) + (0,) * (LEAVES - 1))
    return second_shared(first_shared(), CutLevels(LEAVES, CUTS[:1], weights))


@pytest.mark.parametrize(("label", "leaf"), [(0, LEAVES - 1), (1, 0)])
def test_weighted_sums_near_the_limit_are_refused_before_anything_is_drawn(
    label: int, leaf: int
) -> None:
    survey = heavy()
    assert (COUNTER_LIMIT, MAX_WEIGHT) == (2**31, 2**10)
    most = (2**31 - 1 - largest_noise(survey)) // 2**10
    counts = np.zeros((2, LEAVES), dtype=np.int64)
    counts[label, leaf] = most
    check_counters(survey, counts)
    counts[label, leaf] = most + 1
    assert counts.sum() < 2**21, "the examples alone would fit"
    assert "must stay below 2^31" in refuses_untouched(survey, counts)


def test_a_table_of_so_many_rows_that_sums_would_wrap_is_refused_as_well() -> None:
    survey = heavy()
    for rows in (2**31, 2**53 + 1, 2**60):
        counts = np.zeros((2, LEAVES), dtype=np.int64)
        counts[0, -1] = rows
        refuses_untouched(survey, counts)


def test_noise_of_heavy_weights_that_takes_too_much_work_is_refused() -> None:
    """The work grows with the weight: 2 x 2 counters x 1024 / (4 shares x epsilon) draws."""
    levels = CutLevels(LEAVES, CUTS[:1], ((MAX_WEIGHT,) * LEAVES, (1,) * LEAVES))
    first = first_shared()
    second = second_shared(first, levels, epsilons=(Fraction(1, 2), Fraction(1, 2048)))
    with pytest.raises(SurveyRefused, match="draws at most"):
        answer_counts(
            second, np.ones((2, LEAVES), np.int64), randomness=Watch(), policy=OPEN_POLICY
        )
    OPEN_POLICY.check(second_shared(first, levels, epsilons=(Fraction(1, 2), Fraction(1, 512))))


def test_largest_noise_of_a_survey_is_that_of_its_heaviest_level() -> None:
    second = second_shared(first_shared())
    assert not any(isinstance(mechanism, Exact) for mechanism in second.mechanisms)
    # 2 a^m over 16 counters falls below 2^-40 at m, with a = exp(-epsilon / weight).
    a = np.exp(-4 / 15 / 7)
    m = largest_noise(second)
    assert 16 * 2 * a**m <= 2.0**-40 < 16 * 2 * a ** (m - 1)


@pytest.mark.statistical
@pytest.mark.parametrize("is_local", [False, True])
def test_answers_one_by_one_and_all_at_once_have_one_law(is_local: bool) -> None:
    """False alarms: 1e-6 over 16 counters. Tallies: 400 of each; a counter whose mean moved by
    half a standard deviation (7 sd of the difference of two means) is seen nearly always.
    """
    # Much epsilon, so that the counts stand out of the noise.
    first = first_shared(total=Fraction(10), epsilon=Fraction(1))
    survey = second_local(first_local()) if is_local else second_shared(first)
    rows = Examples([0, 0, 0, 1, 1, 1, 1, 0], [0.1, 0.4, 0.9, 0.2, 0.45, 0.6, 0.95, 0.97])
    cohort = cohort_of(rows, [0, 0, 1, 1, 2, 3, 3, 3])
    runs = 400
    single = np.array([counters(survey, cohort, run, each=True) for run in range(runs)])
    joint = np.array([counters(survey, cohort, run + runs, each=False) for run in range(runs)])
    width = survey.hierarchy.width
    assert single.shape == joint.shape == (runs, width)
    ordered = [same_law(single[:, i], joint[:, i]) for i in range(width)]
    assert min(ordered) > FALSE_ALARM / width
    # The twin: the labels swapped.
    size = survey.hierarchy.cells_per_level[0]
    swapped = np.concatenate([joint[:, size : 2 * size], joint[:, :size]], axis=1)
    assert min(same_law(single[:, i], swapped[:, i]) for i in range(2 * size)) < FALSE_ALARM


def counters(survey: Survey, cohort: ScoredClients, run: int, *, each: bool) -> list[int]:
    tally = tally_each_client if each else tally_clients
    found: list[int] = tally(survey, cohort, randomness=SimulatedRandomness(run)).counters.tolist()
    return found
