"""Where most rows share a cell, or a score at its edge or at an end: figures of the very rows."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.metrics import matthews_corrcoef

import fedassay
from fedassay import Grid, ScoreHistogram
from fedassay.decoding import DecodeOptions
from fedassay.doubts import Doubts
from fedassay.draws import draw_tally
from fedassay.estimate import TooCoarse
from fedassay.examples import Examples, FloatArray
from fedassay.mechanisms import Privacy
from fedassay.metrics import (
    calibration_in_the_large,
    calibration_slope,
    log_loss,
    mcc,
    net_benefit,
    oe_ratio,
    recall,
)
from fedassay.metrics.lattices import lone_heaps
from fedassay.noise import DenseNoise
from fedassay.planning.request import Steps, SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.planning.second_survey import second_survey
from fedassay.two_steps import cuts_of, decode_two
from tests.oracles import weak_calibration
from tests.tables import Table


def test_a_cell_that_holds_nearly_all_may_part_the_classes() -> None:
    """Of a perfect model whose smallest cell merged all, no figure is far off and sure of it."""
    generator = np.random.default_rng(3)
    labels = (generator.random(20_000) < 0.01).astype(np.int64)
    scores = np.where(
        labels == 1, generator.beta(6, 2, 20_000), 0.4 * generator.beta(1, 20, 20_000)
    )
    h = ScoreHistogram.from_scores(labels, scores, grid=Grid.explicit([0.0, 1.0]))
    assert matthews_corrcoef(labels, scores > 0.5) > 0.9
    assert isinstance(mcc(h, 0.5), TooCoarse)
    exact = ((labels == 1) & (scores > 0.1)).mean() - ((labels == 0) & (scores > 0.1)).mean() / 9.0
    assert exact in net_benefit(h, 0.1).interval(population=False)
    # Where only some are in the threshold's cell, classes that lie apart elsewhere say more.
    apart = ScoreHistogram.from_scores(labels, scores, grid=Grid.explicit([0.0, 0.3, 0.6, 1.0]))
    assert mcc(apart, 0.5).is_available


def half_at(tie: float) -> Table:
    """Half of 2,400 rows have one score."""
    generator = np.random.default_rng(5)
    scores = generator.beta(1, 4, 2400)
    scores[generator.random(2400) < 0.5] = tie
    return Table((generator.random(2400) < 0.05 + 0.6 * scores).astype(np.int64), scores)


@pytest.mark.parametrize("tie", [0.3, 0.17])
def test_a_lone_heap_in_a_wide_cell_may_be_at_either_edge(tie: float) -> None:
    table = half_at(tie)
    h = ScoreHistogram.from_scores(
        *table, grid=Grid.explicit([0.0, 0.05, 0.156, 0.3, 0.45, 0.6, 1.0])
    )
    assert lone_heaps(h)[:, 2].sum() > 900
    exact = weak_calibration(table)
    for name, figure in (
        ("calibration_in_the_large", calibration_in_the_large),
        ("oe_ratio", oe_ratio),
    ):
        found = figure(h)
        assert exact[name] in found.interval(population=False), name
        assert abs(found.value - exact[name]) > 0.5 * abs(found.value - found.interval().low), name


def test_of_scores_without_heaps_none_is_lone() -> None:
    scores = np.random.default_rng(2).beta(2, 5, 4000)
    labels = (np.random.default_rng(3).random(4000) < scores).astype(np.int64)
    grid = Grid.uniform(12)
    smooth = ScoreHistogram.from_scores(labels, scores, grid=grid)
    assert lone_heaps(smooth).sum() < 0.05 * len(scores)
    alike = replace(smooth, counts=np.full((2, 12), 100.0))
    assert not lone_heaps(alike).any()


def heaped(rows: int = 2400) -> Examples:
    """Four of five scores are exactly 0, one in 200 is exactly 1, whatever the label."""
    generator = np.random.default_rng(99)
    scores, place = generator.beta(0.5, 8, rows), generator.random(rows)
    scores[place < 0.8], scores[place > 0.995] = 0.0, 1.0
    return Examples((generator.random(rows) < 0.002 + 0.5 * scores).astype(np.uint8), scores)


def test_a_second_survey_counts_heaps_at_the_ends_that_its_first_would_hide() -> None:
    """A row of exactly 1 that is none costs 36 nats: of 2,400 rows ten are half of log loss."""
    examples = heaped()
    exact = ScoreHistogram.from_scores(
        examples.labels, examples.scores, grid=Grid.fine().with_ends()
    )
    wanted = {"slope": calibration_slope(exact).value, "loss": log_loss(exact).value}
    request = SurveyRequest(
        privacy=Privacy.DISTRIBUTED, epsilon=Fraction(3), clients=4, examples=2400, steps=Steps.TWO
    )
    first, options, held = design_survey(request).survey, DecodeOptions(), {"slope": 0, "loss": 0}
    for seed in range(20):
        generator = np.random.default_rng(seed)
        leaves = first.grid.count(examples)
        tally = draw_tally(first, leaves, clients=4, generator=generator)
        second = second_survey(first, tally, clients=4)
        assert {1, second.grid.cells - 1} <= set(cuts_of(second).tolist())
        other = draw_tally(second, second.grid.count(examples), clients=4, generator=generator)
        h = decode_two(first, tally, second, other, decode_options=options)
        for name, found in (("slope", calibration_slope(h)), ("loss", log_loss(h))):
            held[name] += wanted[name] in found.interval(population=False)
    # If 19 of 20 hold, fewer than 14 do with a chance below 1e-4.
    assert min(held.values()) >= 14
    # A counter that errs by fifteen rows would tell of nothing but its noise.
    faint = design_survey(replace(request, epsilon=Fraction(1, 10), examples=60_000)).survey
    crowd = heaped(60_000)
    generator = np.random.default_rng(1)
    tally = draw_tally(faint, faint.grid.count(crowd), clients=4, generator=generator)
    assert faint.grid.cells - 1 not in cuts_of(second_survey(faint, tally)).tolist()
    # Of many rows so few at the ends are next to nothing, however few clients hold them.
    spread = np.random.default_rng(1).beta(2, 5, 200_000)
    rows = Examples((spread > 0.4).astype(np.uint8), spread)
    for clients in (4, 200_000):
        many = design_survey(replace(request, clients=clients, examples=200_000)).survey
        generator = np.random.default_rng(1)
        tally = draw_tally(many, many.grid.count(rows), clients=clients, generator=generator)
        assert 1 not in cuts_of(second_survey(many, tally)).tolist()


def test_where_nearly_all_answers_are_true_a_second_local_survey_counts_the_ends_apart() -> None:
    """One row in a hundred is at exactly 0 by default; as many as noise hides, log loss missed."""
    generator, rows = np.random.default_rng(7), 40_000
    exact = generator.beta(1.0, 4.0, rows)
    unscored = np.where(generator.random(rows) < 0.01, 0.0, exact)
    examples = Examples((generator.random(rows) < exact).astype(np.uint8), unscored)
    fine = ScoreHistogram.from_scores(
        examples.labels, examples.scores, grid=Grid.fine().with_ends()
    )
    wanted, held = log_loss(fine).value, 0
    for seed in range(12):
        request = SurveyRequest(
            privacy=Privacy.LOCAL, epsilon=Fraction(5), clients=rows, steps=Steps.TWO
        )
        first, drawn = design_survey(request).survey, np.random.default_rng(seed)
        assert first.step is not None
        answers = drawn.random(rows) < float(first.step.client_fraction)
        mine, others = (examples.rows(each) for each in (answers, ~answers))
        tally = draw_tally(first, first.grid.count(mine), clients=len(mine), generator=generator)
        second = second_survey(first, tally, clients=rows)
        assert {1, second.grid.cells - 1} <= set(cuts_of(second).tolist())
        other = draw_tally(
            second, second.grid.count(others), clients=len(others), generator=generator
        )
        h = decode_two(first, tally, second, other, decode_options=DecodeOptions())
        held += wanted in log_loss(h).interval(population=False)
    # If 19 of 20 hold, fewer than 8 of 12 do with a chance below 1e-4.
    assert held >= 8
    less = replace(request, epsilon=Fraction(2))
    few = design_survey(less).survey
    tally = draw_tally(few, few.grid.count(mine), clients=len(mine), generator=generator)
    assert few.grid.cells - 1 not in cuts_of(second_survey(few, tally, clients=rows)).tolist()


def curve(cliffs: float, few: float = 2.0) -> ScoreHistogram:
    """Smoothed counts of which few positives are below the middle, give or take as many."""
    counts = np.array([[500.0, 500.0], [few, 98.0]])
    noise = DenseNoise(np.diag([100.0, 100.0, few**2, 4.0]), is_smoothed=True)
    seen = ScoreHistogram(np.array([0.0, 0.5, 1.0]), counts, DenseNoise(400.0 * np.eye(4)))
    return ScoreHistogram(
        seen.edges, counts, noise, counted=seen, doubts=Doubts(cliffs, 0.0, np.zeros(2))
    )


def half_width(h: ScoreHistogram) -> float:
    low, high = recall(h, 0.5).interval(population=False)
    return 0.5 * (high - low)


def test_few_rows_below_a_threshold_may_be_many_times_as_many_where_cliffs_are_likely() -> None:
    """With a deviation of 1 in its logarithm, 2 may be 14; counters alone say 2 +- 39."""
    sure, doubted = half_width(curve(0.0)), half_width(curve(1.0))
    assert sure == pytest.approx(2.0 * 1.96 / 100.0, rel=0.2)
    # 2 (e^1.96 - 1) = 12.2 of a hundred.
    assert doubted == pytest.approx(0.122, rel=0.1)
    assert sure < half_width(curve(0.3)) < doubted
    # No further than the counters' own noise, however far the logarithm leads.
    free = replace(
        curve(1.0), noise=DenseNoise(np.diag([100.0, 100.0, 36.0, 4.0]), is_smoothed=True)
    )
    assert half_width(free) < 0.5


def test_narrow_end_cells_are_read_at_their_ends() -> None:
    """Noisy counts of [0, 1e-12] are of exactly 0 for slopes, as they are for log loss."""
    edges = np.array([0.0, 1e-12, 0.1, 0.3, 0.6, 1.0 - 1e-12, 1.0])
    counts: FloatArray = np.array([[900.0, 200, 100, 60, 30, 6], [20.0, 20, 25, 40, 60, 8]])
    at = np.array([0.0, 0.05, 0.2, 0.45, 0.8, 1.0])
    rows = np.concatenate([np.repeat(at, each.astype(int)) for each in counts])
    labels = np.repeat([0, 1], counts.sum(axis=1).astype(int))
    exact = weak_calibration(Table(labels, rows))["calibration_slope"]
    noisy = ScoreHistogram(edges, counts, DenseNoise(0.5 * np.eye(12)))
    assert calibration_slope(noisy).value == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize(
    ("privacy", "epsilon", "steps", "is_said"),
    [
        ("local", 1, 2, True),
        ("local", 5, 2, False),
        ("local", 1, 1, True),
        ("site", 1, 1, True),
        ("distributed", 1, 1, False),
        ("secure", None, 1, False),
    ],
)
def test_where_no_counter_shows_exactly_0_and_1_results_say_so(
    privacy: str, epsilon: int | None, steps: int, is_said: bool
) -> None:
    generator = np.random.default_rng(2)
    scores = generator.beta(1.0, 3.0, 20_000)
    labels = (generator.random(20_000) < scores).astype(int)
    sites = np.arange(20_000) % 4 if privacy == "site" else None
    found = fedassay.simulate(
        labels, scores, privacy=privacy, epsilon=epsilon, steps=steps, clients=sites, seed=1
    )
    assert ("are not counted apart" in str(found)) is is_said
