"""Scores that many share: leaves that tower above their neighbours, and what they say of others."""

import numpy as np

from fedassay import ScoreHistogram
from fedassay.noise import DenseNoise
from fedassay.towers import ends_alone, is_lumpy, towers_of, with_seen


def test_a_leaf_that_towers_clear_of_its_noise_is_a_tower() -> None:
    """One leaf of 60 holds a fifth of the rows; noise of single leaves is a tenth of that."""
    edges = np.arange(61) / 60
    counts = np.full((2, 60), 100.0)
    counts[:, 44] += 1500.0
    noise = DenseNoise(150.0**2 * np.eye(120), None, 1.0)
    assert towers_of(ScoreHistogram(edges, counts, noise)).tolist() == [44]
    # Within its noise it is none, and a hole is none.
    for lump in (300.0, -90.0):
        counts[:, 44] = 100.0 + lump
        assert not len(towers_of(ScoreHistogram(edges, counts.copy(), noise)))


def test_leaves_that_grow_towards_an_end_are_no_towers() -> None:
    """Crowded scores: every leaf holds half as much again as the last, far beyond noise."""
    edges = np.append(0.0, 2.0 ** np.arange(-59.0, 1.0))
    counts = np.tile(1e4 * 1.5 ** -np.arange(60.0), (2, 1))
    noise = DenseNoise(np.eye(120), None, 1.0)
    assert not len(towers_of(ScoreHistogram(edges, counts, noise)))
    # At either end the one neighbour stands for both.
    for end in (0, 59):
        towering = np.full((2, 60), 100.0)
        towering[:, end] = 2000.0
        noise = DenseNoise(150.0**2 * np.eye(120), None, 1.0)
        assert towers_of(ScoreHistogram(np.arange(61) / 60, towering, noise)).tolist() == [end]


def test_a_leaf_beside_one_of_hardly_any_width_is_compared_without_overflow() -> None:
    """A threshold of 1e-310 cuts the first leaf; the second is no tower for that."""
    edges = np.concatenate([[0.0, 1e-310], np.arange(1, 61) / 60])
    counts, noise = np.full((2, 61), 100.0), DenseNoise(150.0**2 * np.eye(122), None, 1.0)
    with np.errstate(all="raise"):
        assert not len(towers_of(ScoreHistogram(edges, counts, noise)))


def test_many_towers_make_more_of_them_likely_and_one_does_not() -> None:
    """One default score of nearly all rows leaves the others smooth; four of ten rows do not."""
    edges, noise = np.arange(61) / 60, DenseNoise(np.eye(120), None, 1.0)
    counts = np.full((2, 60), 100.0)
    counts[:, 30] = 1e6
    assert not is_lumpy(ScoreHistogram(edges, counts.copy(), noise), np.array([30]))
    towers = np.array([10, 20, 30, 40])
    counts[:, towers] = 1200.0
    assert is_lumpy(ScoreHistogram(edges, counts.copy(), noise), towers)
    # At 0 and 1 scores are clipped: that says nothing about others.
    ends = np.array([0, 30, 59])
    counts[:, [0, 59]] = 1200.0
    assert not is_lumpy(ScoreHistogram(edges, counts, noise), ends)


def test_a_heap_at_an_end_is_a_tower_though_its_one_neighbour_is_noisy() -> None:
    """A leaf of 4,000 at 1, twice as wide as those beside: one of these is too noisy, four tell."""
    edges = np.append(np.arange(60) / 61, 1.0)
    counts, noise = np.zeros((2, 60)), DenseNoise(0.5 * 450.0**2 * np.eye(120), None, 5.0)
    counts[0, 59] = 4000.0
    assert towers_of(ScoreHistogram(edges, counts, noise)).tolist() == [59]
    # The mean of four does not make a tower of what the next leaf holds half of.
    counts[0, 58] = 2500.0
    assert not len(towers_of(ScoreHistogram(edges, counts.copy(), noise)))


def test_whoever_a_counter_at_an_end_shows_is_a_tower_beside_leaves_that_are_noise() -> None:
    """600 at exactly 0, known to 40; the leaf beside is known to 450, and seems to hold 500."""
    edges, counts = np.append(np.arange(60) / 61, 1.0), np.zeros((2, 60))
    counts[0, :2], counts[1, 59] = (600.0, 500.0), 100.0
    sds = np.full(60, 450.0)
    sds[[0, 59]] = 40.0
    h = ScoreHistogram(edges, counts, DenseNoise(np.diag(np.tile(0.5 * sds**2, 2)), None, 5.0))
    assert not len(towers_of(h))
    # At 1 there may be nobody; an end that shares a cell with others has no counter.
    assert ends_alone(h, np.array([0, 1, 30, 59])).tolist() == [0]
    assert not len(ends_alone(h, np.array([0, 2, 30, 59])))


def test_a_cell_that_a_guess_leaves_empty_has_what_counters_show_for_sure() -> None:
    """A first survey's noise said nobody; the second counts 300, give or take 40."""
    edges, cuts = np.arange(7) / 6, np.array([0, 2, 4])
    guess = np.array([[50.0, 50, 0, 0, 40, 40], [5.0, 5, 0, 0, 10, 10]])
    counts = np.array([[100.0, 240, 90], [10.0, 60, 15]])
    for sd, seen in ((40.0, [120.0, 30.0]), (200.0, [0.0, 0.0])):
        noise = DenseNoise(0.5 * sd**2 * np.eye(6), None, 5.0)
        cells = ScoreHistogram(edges[[0, 2, 4, 6]], counts, noise)
        found = with_seen(guess, cells, cuts)
        assert found[:, 2:4].T.tolist() == [seen, seen]
        assert found[:, [0, 1, 4, 5]].tolist() == guess[:, [0, 1, 4, 5]].tolist()
