"""The second of two surveys asks where the first found the scores, with what is left."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from fedassay.cut_levels import CutLevels
from fedassay.decoding import DecodeOptions
from fedassay.draws import draw_tally
from fedassay.errors import SettingInvalid
from fedassay.examples import Examples
from fedassay.mechanisms import Polya, Privacy
from fedassay.planning.first_survey import first_survey
from fedassay.planning.judge import Judge
from fedassay.planning.pilot import Pilot, pilot_from
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.planning.second_survey import _weights, second_for, second_like, second_survey
from fedassay.survey import Survey
from fedassay.survey_steps import SecondOfTwo
from fedassay.tally import Tally
from fedassay.two_steps import check_pair, decode_two
from tests.surveys import shared_pair

PRIVATE = [Privacy.DISTRIBUTED, Privacy.LOCAL]


def crowded(rows: int = 60_000, rate: float = 0.05) -> Examples:
    """Scores around 1e-4 and 1e-3, as of a rare event."""
    generator = np.random.default_rng(3)
    labels = (generator.random(rows) < rate).astype(np.uint8)
    return Examples(labels, np.exp(generator.normal(-9.0 + 2.5 * labels, 1.0)).clip(0.0, 1.0))


def asked(privacy: Privacy, **changes: object) -> SurveyRequest:
    request = SurveyRequest(
        privacy=privacy, epsilon=Fraction(2), clients=60_000, dropouts=Fraction(0)
    )
    return replace(request, **changes)  # type: ignore[arg-type]  # settings by name


def first_of(request: SurveyRequest, examples: Examples, *, seed: int = 1) -> tuple[Survey, Tally]:
    first = first_survey(request)
    counts = first.grid.count(examples)
    generator = np.random.default_rng(seed)
    return first, draw_tally(first, counts, clients=len(examples), generator=generator)


@pytest.mark.parametrize("privacy", PRIVATE)
@pytest.mark.parametrize("thresholds", [(), (0.0003, 0.001)])
def test_both_surveys_together_spend_what_was_announced_to_the_last_digit(
    privacy: Privacy, thresholds: tuple[float, ...]
) -> None:
    request = asked(privacy, epsilon=Fraction(7, 9), thresholds=thresholds)
    first, tally = first_of(request, crowded())
    second = second_survey(first, tally, thresholds=thresholds)
    check_pair(first, second)
    assert first.epsilon is not None
    assert second.epsilon is not None
    assert isinstance(second.step, SecondOfTwo)
    assert first.step is not None
    if privacy is Privacy.LOCAL:
        assert first.epsilon == second.epsilon == Fraction(7, 9)
        assert first.step.client_fraction + second.step.client_fraction == 1
    else:
        assert first.epsilon + second.epsilon == Fraction(7, 9)
    assert second.total_epsilon == Fraction(7, 9)


@pytest.mark.parametrize("privacy", PRIVATE)
def test_most_cuts_lie_among_the_scores_however_crowded_they_are(privacy: Privacy) -> None:
    examples = crowded()
    first, tally = first_of(asked(privacy, epsilon=Fraction(4)), examples)
    levels = second_survey(first, tally).hierarchy
    assert isinstance(levels, CutLevels)
    low, high = np.quantile(examples.scores, (0.001, 0.999))
    cuts = {cut for level in levels.cuts for starts in level for cut in starts[1:]}
    at = first.grid.edges[sorted(cuts)]
    among = ((at > low / 2) & (at < high * 2)).mean()
    assert among > 0.8
    # Of as many even cells all scores would lie in the first.
    assert high < 1.0 / len(cuts)


def test_thresholds_that_were_asked_for_are_cuts_of_both_labels() -> None:
    thresholds = (0.0003, 0.1, 0.77)
    request = asked(Privacy.DISTRIBUTED, thresholds=thresholds)
    first, tally = first_of(request, crowded())
    levels = second_survey(first, tally, thresholds=thresholds).hierarchy
    assert isinstance(levels, CutLevels)
    for starts in levels.cuts[0]:
        assert set(thresholds) <= set(first.grid.edges[list(starts)].tolist())


def test_under_local_privacy_thresholds_take_turns_over_the_levels() -> None:
    thresholds = (0.0003, 0.1, 0.77)
    first, tally = first_of(asked(Privacy.LOCAL, thresholds=thresholds), crowded())
    levels = second_survey(first, tally, thresholds=thresholds).hierarchy
    assert isinstance(levels, CutLevels)
    cuts = {cut for level in levels.cuts for cut in level[1]}
    assert set(thresholds) <= set(first.grid.edges[sorted(cuts)].tolist())


def test_thresholds_where_nobody_is_are_asked_for_nevertheless() -> None:
    """Nearly all scores lie near 0: the noise of a first survey speaks for or against others."""
    thresholds = (0.3, 0.6)
    for seed in range(6):
        request = asked(Privacy.LOCAL, thresholds=thresholds)
        first, tally = first_of(request, crowded(), seed=seed)
        levels = second_survey(first, tally, thresholds=thresholds).hierarchy
        assert isinstance(levels, CutLevels)
        cuts = {cut for level in levels.cuts for cut in level[1]}
        assert set(thresholds) <= set(first.grid.edges[sorted(cuts)].tolist())


def placements(pilot: Pilot) -> tuple[list[float], list[float]]:
    """Each leaf's share of the other class that it is ranked above or below, less ROC AUC."""
    n, p = pilot.histogram.counts.tolist()
    above = [(sum(p[i + 1 :]) + p[i] / 2) / sum(p) for i in range(len(p))]
    below = [(sum(n[:i]) + n[i] / 2) / sum(n) for i in range(len(n))]
    area = sum(count * share for count, share in zip(p, below, strict=True)) / sum(p)
    return [share - area for share in above], [share - area for share in below]


def sixteen_cells(pilot: Pilot) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shares = pilot.shares.mean(axis=0)
    starts = tuple(sorted({0, *np.searchsorted(shares, np.arange(1, 16) / 16).tolist()}))
    return starts, starts


def test_weights_are_placements_and_each_cell_moves_no_further_than_into_the_limit() -> None:
    first, tally = first_of(asked(Privacy.DISTRIBUTED), crowded())
    pilot = pilot_from(first, tally)
    cuts = sixteen_cells(pilot)
    for weights, placed, starts in zip(
        _weights(pilot, cuts, 0.15), placements(pilot), cuts, strict=True
    ):
        assert max(map(abs, weights)) == 1000
        cells = [range(a, b) for a, b in pairwise([*starts, len(placed)])]
        widest = max(max(placed[i] for i in c) - min(placed[i] for i in c) for c in cells) / 2
        limit = widest + 0.15 * (max(map(abs, placed)) - widest)
        moves = []
        for cell in cells:
            moved = {round(1000 * placed[i] / limit - weights[i], 9) for i in cell}
            assert max(moved) - min(moved) <= 1.0 + 1e-6  # of rounding
            moves.append(sum(moved) / len(moved))
            at_limit = max(abs(weights[i]) for i in cell) >= 999
            assert abs(moves[-1]) <= 1.0 or at_limit
        assert max(map(abs, moves)) > 100


def test_weights_that_cells_make_good_tell_more_of_roc_auc_for_the_same_epsilon() -> None:
    first, tally = first_of(asked(Privacy.DISTRIBUTED), crowded())
    pilot = pilot_from(first, tally)
    second, cuts = second_for(pilot, (), thorough=False), sixteen_cells(pilot)
    judge = Judge.of(pilot, ())
    # Twice as much for the cells as for the sums.
    polya = second.mechanisms[0]
    assert isinstance(polya, Polya)
    spent = (
        replace(polya, epsilon=Fraction(6, 5)),
        replace(polya, epsilon=Fraction(3, 5), sensitivity=1000),
    )
    rows = [np.array(row) for row in placements(pilot)]
    whole = [tuple(np.rint(row / np.abs(row).max() * 1000).astype(int).tolist()) for row in rows]
    errors = []
    for weights in (_weights(pilot, cuts, 0.15), (whole[0], whole[1])):
        levels = CutLevels(pilot.grid.cells, (cuts,), weights)
        errors.append(judge.errors(replace(second, hierarchy=levels, mechanisms=spent))[0])
    assert errors[0] < 0.8 * errors[1]


def test_with_all_room_no_cell_moves_and_weights_are_the_placements_themselves() -> None:
    first, tally = first_of(asked(Privacy.DISTRIBUTED), crowded())
    pilot = pilot_from(first, tally)
    for weights, placed in zip(
        _weights(pilot, sixteen_cells(pilot), 1.0), placements(pilot), strict=True
    ):
        largest = max(map(abs, placed))
        np.testing.assert_allclose(weights, [1000 * each / largest for each in placed], atol=0.51)


def test_sums_of_all_weights_stay_far_below_the_limit_of_a_counter() -> None:
    first, tally = first_of(asked(Privacy.DISTRIBUTED), crowded())
    many = Tally(first.fingerprint, tally.reports, tally.counters * 2000)
    levels = second_for(pilot_from(first, many), (), thorough=False).hierarchy
    assert levels.largest_weight(1) * 60_000 * 2000 < 2**31


@pytest.mark.parametrize("privacy", PRIVATE)
def test_a_class_that_drowned_in_noise_is_sought_where_scores_say_it_is(privacy: Privacy) -> None:
    # Eight positives among 60,000 at epsilon 1/5: nobody sees them.
    examples = crowded(rate=0.0001)
    first, tally = first_of(asked(privacy, epsilon=Fraction(1, 5)), examples)
    second = second_survey(first, tally)
    assert second.epsilon is not None


def test_a_first_survey_with_nothing_in_it_is_refused() -> None:
    """Under local privacy reports can be counted, so that there is always something."""
    first = first_survey(asked(Privacy.DISTRIBUTED))
    nothing = Tally(first.fingerprint, (60_000,) * 3, np.zeros(first.hierarchy.width, np.int64))
    with pytest.raises(SettingInvalid, match="nothing but noise"):
        second_survey(first, nothing)


def test_a_survey_that_announced_no_second_gets_none() -> None:
    survey = design_survey(asked(Privacy.DISTRIBUTED)).survey
    counts = survey.grid.count(crowded())
    tally = draw_tally(survey, counts, clients=60_000, generator=np.random.default_rng(0))
    with pytest.raises(SettingInvalid, match="stands alone"):
        second_survey(survey, tally)


@pytest.mark.parametrize("privacy", PRIVATE)
def test_the_same_cells_after_another_first_survey_keep_its_promise(privacy: Privacy) -> None:
    first, tally = first_of(asked(privacy), crowded())
    second = second_survey(first, tally)
    other = first_survey(asked(privacy, epsilon=Fraction(1, 3), clients=500))
    again = second_like(second, other)
    check_pair(other, again)
    assert again.hierarchy == second.hierarchy
    assert again.total_epsilon == Fraction(1, 3)
    assert again.minimum_reports == other.minimum_reports


def test_a_leaf_with_more_than_its_neighbours_explain_is_looked_into() -> None:
    """Half of the rows share the score 0.3: the second survey's cell for it is 1/1024 wide."""
    generator = np.random.default_rng(5)
    scores = np.where(generator.random(60_000) < 0.5, 0.3, generator.beta(2.0, 3.0, 60_000))
    examples = Examples((generator.random(60_000) < scores).astype(np.uint8), scores)
    first, tally = first_of(asked(Privacy.DISTRIBUTED), examples)
    second = second_survey(first, tally)
    check_pair(first, second)
    place = int(second.grid.locate([0.3])[0])
    assert second.grid.edges[place + 1] - second.grid.edges[place] == 2.0**-10
    # Every cut that the first did not have is one of the second's cells, of both labels.
    assert isinstance(second.hierarchy, CutLevels)
    new = set(np.flatnonzero(~np.isin(second.grid.edges, first.grid.edges)).tolist())
    assert len(new) == 7
    assert all(new <= set(starts) for starts in second.hierarchy.cuts[0])


def test_smooth_scores_get_no_further_cuts() -> None:
    generator = np.random.default_rng(6)
    scores = generator.beta(2.0, 3.0, 60_000)
    examples = Examples((generator.random(60_000) < scores).astype(np.uint8), scores)
    first, tally = first_of(asked(Privacy.DISTRIBUTED), examples)
    assert second_survey(first, tally).grid == first.grid


def test_both_surveys_are_fitted_on_the_finer_grid_however_a_leaf_was_cut() -> None:
    """At epsilon 10 the second survey's own cells are the table's, within five of 0.4."""
    generator = np.random.default_rng(2)
    scores = np.where(generator.random(4000) < 0.5, 0.3, generator.beta(2.0, 3.0, 4000))
    examples = Examples((generator.random(4000) < scores).astype(np.uint8), scores)
    first, one = first_of(asked(Privacy.DISTRIBUTED, epsilon=Fraction(10), clients=4000), examples)
    second = second_survey(first, one)
    assert second.grid.cells > first.grid.cells
    two = draw_tally(second, second.grid.count(examples), clients=4000, generator=generator)
    histogram = decode_two(first, one, second, two, decode_options=DecodeOptions())
    truth = second.grid.count(examples)
    assert isinstance(second.hierarchy, CutLevels)
    for label, starts in enumerate(second.hierarchy.cuts[0]):
        fitted, counted = (
            np.add.reduceat(rows[label], starts) for rows in (histogram.counts, truth)
        )
        np.testing.assert_allclose(fitted, counted, atol=2.1)


def test_a_second_survey_like_another_follows_a_first_of_two() -> None:
    first, second = shared_pair()
    with pytest.raises(
        SettingInvalid, match=r"follows a first of two; found another\. Use steps=2"
    ):
        second_like(second, replace(first, step=None))


def test_asked_thresholds_have_a_level_of_their_own_where_noise_is_shared() -> None:
    """A count below a threshold then adds up few noisy counters, not all cells of the curve."""
    thresholds = (0.0003, 0.001)
    first, tally = first_of(asked(Privacy.DISTRIBUTED, thresholds=thresholds), crowded())
    second = second_survey(first, tally, thresholds=thresholds)
    levels = second.hierarchy
    assert isinstance(levels, CutLevels)
    at = [tuple(first.grid.edges[list(starts)].tolist()) for starts in levels.cuts[0]]
    assert at == [(0.0, *thresholds)] * 2
    assert len(levels.cuts[1][0]) >= 12
    # What lies above the last threshold: one counter here, many there, with noise of 2 / epsilon^2.
    fine = first.grid.edges[list(levels.cuts[1][0])]
    counters = (1, int((fine >= thresholds[-1]).sum()))
    spreads = []
    for mechanism, many in zip(second.mechanisms[:2], counters, strict=True):
        assert isinstance(mechanism, Polya)
        spreads.append(many * 2.0 / float(mechanism.epsilon) ** 2)
    assert spreads[0] < spreads[1]


def test_without_asked_thresholds_every_level_serves_the_whole_curve() -> None:
    first, tally = first_of(asked(Privacy.DISTRIBUTED), crowded())
    levels = second_survey(first, tally).hierarchy
    assert isinstance(levels, CutLevels)
    assert len(levels.cuts) == 1


@pytest.mark.parametrize("privacy", PRIVATE)
@pytest.mark.parametrize("score", [0.0, 0.3, 1.0])
def test_a_score_that_many_share_is_counted_by_itself(privacy: Privacy, score: float) -> None:
    """A fifth of the rows; a cell that held others too would smear them over its width."""
    generator = np.random.default_rng(6)
    labels = (generator.random(60_000) < 0.4).astype(np.uint8)
    scores = np.where(generator.random(60_000) < 1 / 5, score, generator.random(60_000))
    request = asked(privacy, epsilon=Fraction(3))
    first, tally = first_of(request, Examples(labels, scores))
    second = second_survey(first, tally)
    levels = second.hierarchy
    assert isinstance(levels, CutLevels)
    for level in levels.cuts:
        edges = np.append(second.grid.edges[list(level[1])], 1.0)
        place = max(int(np.searchsorted(edges, score)), 1)
        assert edges[place] - edges[place - 1] < 0.01
