"""Where rows may lie inside their buckets: several guesses for a regression on log-odds.

The cubic is the first (`metrics.log_odds`). Where a neighbour is many times as dense, rows may
all lie at that side of their bucket (`metrics.crowding`); next to 0 and 1 what a power of the
distance does not explain may lie at the very end (`metrics.end_buckets`), which is 36 in log-odds.
"""

from dataclasses import dataclass

import numpy as np

from fedassay.examples import FloatArray
from fedassay.metrics.crowding import crowded_places
from fedassay.metrics.end_buckets import AtEnd, at_end
from fedassay.metrics.log_odds import PiecedHistogram, log_odds
from fedassay.metrics.range_noise import range_noise


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """A guess: points in every bucket, and how a label's rows are shared out among them."""

    counts: FloatArray
    """Label x bucket."""
    odds: FloatArray
    """Log-odds at the points, label x bucket x point."""
    shares: FloatArray
    """Which add up to 1 over a bucket's points, label x bucket x point."""

    @property
    def flat_odds(self) -> FloatArray:
        """All points of both labels in a row."""
        return self.odds.ravel()

    @property
    def flat_counts(self) -> FloatArray:
        """Rows at them, label x point."""
        rows, size = self.counts[..., None] * self.shares, self.odds[0].size
        placed = np.zeros((2, 2 * size))
        placed[0, :size], placed[1, size:] = rows.reshape(2, -1)
        return placed


def as_interpolated(pieced: PiecedHistogram) -> Placement:
    """The first guess: the cubic through cumulative counts.

    >>> from fedassay.histogram import ScoreHistogram
    >>> from fedassay.metrics.log_odds import in_pieces
    >>> even = ScoreHistogram(np.arange(4) / 3, np.full((2, 3), 60.0))
    >>> as_interpolated(in_pieces(even)).flat_counts.sum(axis=1).round(6).tolist()
    [180.0, 180.0]
    """
    odds = np.broadcast_to(pieced.odds, (2, *pieced.odds.shape))
    return Placement(pieced.histogram.counts, odds, pieced.shares)


def crowded(pieced: PiecedHistogram) -> Placement:
    """The second: rows at the denser side of their bucket, the more so the denser it is there.

    >>> from fedassay.histogram import ScoreHistogram
    >>> from fedassay.metrics.log_odds import in_pieces
    >>> steep = ScoreHistogram(np.arange(3) / 2, np.array([[9000.0, 90.0], [90.0, 90.0]]))
    >>> pieced = in_pieces(steep)
    >>> first, second = as_interpolated(pieced), crowded(pieced)
    >>> mean = [(each.odds * each.shares).sum(axis=-1)[0, 1] for each in (first, second)]
    >>> bool(mean[1] < mean[0])
    True
    """
    first = as_interpolated(pieced)
    places, doubt = crowded_places(pieced.histogram)
    points = places.shape[-1]
    even = np.broadcast_to(doubt[..., None] / points, places.shape)
    return Placement(
        first.counts,
        np.concatenate([first.odds, log_odds(places)], axis=-1),
        np.concatenate([(1.0 - doubt)[..., None] * first.shares, even], axis=-1),
    )


def at_ends(pieced: PiecedHistogram) -> list[Placement]:
    """More: at exactly 0, at exactly 1, and at both, what towers there; none where nothing does.

    A row that contradicts such a score moves a slope more than thousands of others, so as many more
    of them are there as noise may have hidden.

    >>> from fedassay.histogram import ScoreHistogram
    >>> from fedassay.metrics.log_odds import in_pieces
    >>> even = ScoreHistogram(np.arange(11) / 10, np.full((2, 10), 60.0))
    >>> at_ends(in_pieces(even))
    []
    """
    found = {end: at_end(pieced.histogram, end) for end in (0, 1)}
    towers = {end: each for end, each in found.items() if each is not None and each.share > 0.0}
    chosen = [[end] for end in towers] + ([[0, 1]] if len(towers) == 2 else [])
    return [_with_towers(pieced, {end: towers[end] for end in ends}) for ends in chosen]


def _with_towers(pieced: PiecedHistogram, towers: dict[int, AtEnd]) -> Placement:
    histogram, first = pieced.histogram, as_interpolated(pieced)
    counts, none = first.counts.copy(), np.zeros((*first.odds.shape[:2], 1))
    odds = np.concatenate([first.odds, none], axis=-1)
    shares = np.concatenate([first.shares, none], axis=-1)
    for end, tower in towers.items():
        here, other = slice(tower.start, tower.stop), 1 - end
        odds[:, here, -1] = log_odds(np.array(float(end)))
        shares[:, here] *= 1.0 - tower.share
        shares[:, here, -1] = tower.share
        hidden = range_noise(histogram).sd(other, tower.start, tower.stop)
        counts[other, here] = np.maximum(counts[other, here], 0.0)
        counts[other, here] += hidden / (tower.stop - tower.start)
    return Placement(counts, odds, shares)
