"""The mean precision of the highest scores, against ROC curves that are powers."""

import numpy as np
import pytest

from fedassay import ScoreHistogram
from fedassay.metrics.top_bucket import top_precision
from fedassay.noise import DenseNoise

POSITIVES, NEGATIVES = 40_000.0, 400_000.0


def of_power(power: float, noise_sd: float = 0.0) -> ScoreHistogram:
    """Buckets that end at even powers of 2 of the negatives; TPR = FPR^power above each."""
    fpr = np.append(0.0, 2.0 ** np.arange(-9.0, 1.0))
    counts = np.stack([NEGATIVES * np.diff(fpr), POSITIVES * np.diff(fpr**power)])[:, ::-1]
    noise = DenseNoise(noise_sd**2 * np.eye(20))
    return ScoreHistogram(np.arange(11) / 10, counts.copy(), noise)


def mean_precision(power: float) -> float:
    """Of the top bucket's positives, one by one, where the curve is that power inside it too."""
    top = POSITIVES * 2.0 ** (-9.0 * power)
    rank = np.arange(1, int(top) + 1)
    return float((rank / (rank + NEGATIVES * (rank / POSITIVES) ** (1.0 / power))).mean())


@pytest.mark.parametrize("power", [0.4, 0.6, 0.8])
def test_the_power_below_the_top_tells_the_precisions_at_the_top(power: float) -> None:
    found = top_precision(of_power(power))
    top = of_power(power).counts[:, -1]
    even = top[1] / top.sum()
    # At least half of the way from even mixing, which is what is believed beforehand.
    expected = mean_precision(power)
    assert found.mean == pytest.approx(expected, abs=0.5 * (expected - even))
    assert found.mean > even + 0.5 * (expected - even)


def test_classes_that_mix_evenly_have_one_precision() -> None:
    found = top_precision(of_power(1.0))
    assert found.mean == pytest.approx(POSITIVES / (POSITIVES + NEGATIVES), rel=1e-6)


def test_noise_leaves_what_was_believed_beforehand() -> None:
    """With noise as large as the top's counts the power is hardly known: even, and less sure."""
    clear, lost = top_precision(of_power(0.4)), top_precision(of_power(0.4, 3000.0))
    top = of_power(0.4).counts[:, -1]
    assert abs(lost.mean - top[1] / top.sum()) < 0.5 * (clear.mean - top[1] / top.sum())
    assert lost.sd > clear.sd
