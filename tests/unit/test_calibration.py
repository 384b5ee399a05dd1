"""Calibrators from a histogram against the same methods on the rows."""

from itertools import pairwise
from math import lgamma
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from betacal import BetaCalibration
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fedassay import Grid, ScoreHistogram
from fedassay.calibration import (
    METHODS,
    AutoCalibrator,
    BBQCalibrator,
    BetaCalibrator,
    BinningCalibrator,
    CalibratedModel,
    Calibrator,
    Interpolation,
    IsotonicCalibrator,
    Method,
    SigmoidCalibrator,
    SmoothCalibrator,
    TemperatureCalibrator,
    bucket_guideline,
    fit,
    fit_auto,
    fit_bbq,
    fit_beta,
    fit_binning,
    fit_isotonic,
    fit_sigmoid,
    fit_temperature,
)
from fedassay.errors import FileInvalid, ScoreOutOfRange, SettingInvalid, SingleClass, ValueMissing
from fedassay.hierarchy import Hierarchy
from fedassay.noise import TreeNoise

Floats = npt.NDArray[np.float64]
FITTED = [method for method in Method if method is not Method.NONE]


def drawn(rows: int, *, power: float = 1.3, seed: int = 0) -> tuple[npt.NDArray[np.int64], Floats]:
    generator = np.random.default_rng(seed)
    scores = generator.beta(1.2, 1.8, rows)
    return (generator.random(rows) < scores**power).astype(np.int64), scores


def with_noise(
    labels: npt.NDArray[np.int64], scores: Floats, sd: float, *, cells: int = 32, seed: int = 1
) -> ScoreHistogram:
    grid = Grid.uniform(cells)
    exact = ScoreHistogram.from_scores(labels, scores, grid=grid)
    noise = np.random.default_rng(seed).normal(0.0, sd, exact.counts.shape)
    model = TreeNoise(Hierarchy.flat(cells), (np.full(exact.counts.shape, sd**2),))
    return ScoreHistogram(grid.edges, exact.counts + noise, model)


def brute_force_bbq(labels: npt.NDArray[np.int64], scores: Floats, asked: Floats) -> Floats:
    """Naeini et al. on sorted rows, with cuts at values that hold k/B of the rows."""
    order = np.argsort(scores, kind="stable")
    s, y = scores[order], labels[order]
    rows, root = len(s), len(s) ** (1 / 3)
    found = []
    for wanted in range(max(int(root / 10), 1), max(int(np.ceil(10 * root)), 1) + 1):
        cuts = [0.0]
        for k in range(1, wanted):
            # The smallest score with at least k/B of the rows at or below it.
            value = float(s[int(np.ceil(k * rows / wanted)) - 1])
            if cuts[-1] < value < s[-1]:
                cuts.append(value)
        cuts.append(1.0)
        buckets = len(cuts) - 1
        prior, score, values = 2.0 / buckets, 0.0, []
        for lo, hi in pairwise(cuts):
            inside = (s <= hi) & ((s > lo) | (lo == 0.0))
            m = int(y[inside].sum())
            n = int(inside.sum()) - m
            alpha, beta = prior * (lo + hi) / 2, prior * (1 - (lo + hi) / 2)
            score += lgamma(prior) - lgamma(m + n + prior)
            score += lgamma(m + alpha) - lgamma(alpha) + lgamma(n + beta) - lgamma(beta)
            values.append((m + alpha) / (m + n + prior))
        place = np.clip(np.searchsorted(cuts, asked, side="left") - 1, 0, None)
        found.append((score, np.array(values)[place]))
    best = max(score for score, _ in found)
    weights = np.array([np.exp(score - best) for score, _ in found])
    return np.asarray(weights @ np.stack([values for _, values in found]) / weights.sum())


@pytest.mark.parametrize("rows", [40, 700, 3000])
def test_bbq_equals_brute_force_on_rows_whose_scores_are_edges(rows: int) -> None:
    labels, scores = drawn(rows, seed=rows)
    aligned = np.maximum(np.round(scores * 256), 1.0) / 256
    histogram = ScoreHistogram.from_scores(labels, aligned, grid=Grid.uniform(256))
    asked = np.arange(1, 257) / 256
    found = fit_bbq(histogram).predict(asked)
    assert np.abs(found - brute_force_bbq(labels, aligned, asked)).max() < 1e-9


def test_bbq_that_knows_the_noise_is_nearer_to_the_truth() -> None:
    labels, scores = drawn(20_000)
    asked = np.linspace(0.05, 0.9, 50)
    errors = []
    for aware in (True, False):
        trials = [
            fit_bbq(with_noise(labels, scores, 40.0, cells=128, seed=seed), noise_aware=aware)
            for seed in range(8)
        ]
        errors.append(np.mean([(c.predict(asked) - asked**1.3) ** 2 for c in trials]))
    assert errors[0] < 0.4 * errors[1]


def test_isotonic_equals_scikit_learn_on_the_binned_rows() -> None:
    labels, scores = drawn(4000)
    grid = Grid.uniform(64)
    middle = (grid.locate(scores) + 0.5) / 64
    histogram = ScoreHistogram(grid.edges, grid_counts(grid, labels, middle), smooth=False)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(middle, labels)
    asked = np.linspace(0.0, 1.0, 501)
    assert np.abs(fit_isotonic(histogram).predict(asked) - theirs.predict(asked)).max() < 1e-12


def grid_counts(grid: Grid, labels: npt.NDArray[np.int64], scores: Floats) -> Floats:
    cells = grid.locate(scores)
    return np.stack([np.bincount(cells[labels == k], minlength=grid.cells) for k in (0, 1)]).astype(
        np.float64
    )


def log_odds(scores: Floats) -> Floats:
    return np.asarray(np.log(scores / (1.0 - scores)))


def test_parametric_fits_agree_with_fits_on_rows_within_the_binning_error() -> None:
    labels, scores = drawn(20_000)
    histogram = ScoreHistogram.from_scores(labels, scores)
    asked = np.linspace(0.02, 0.98, 49)
    sigmoid = LogisticRegression(C=np.inf).fit(log_odds(scores)[:, None], labels)
    flat = LogisticRegression(C=np.inf, fit_intercept=False).fit(log_odds(scores)[:, None], labels)
    beta = BetaCalibration().fit(scores[:, None], labels)
    for ours, theirs in (
        (fit_sigmoid(histogram), sigmoid.predict_proba(log_odds(asked)[:, None])[:, 1]),
        (fit_temperature(histogram), flat.predict_proba(log_odds(asked)[:, None])[:, 1]),
        (fit_beta(histogram), beta.predict(asked[:, None])),
    ):
        assert np.abs(ours.predict(asked) - theirs).max() < 2e-4, ours.method


def test_a_few_wide_buckets_give_nearly_the_same_curve() -> None:
    labels, scores = drawn(40_000)
    asked = np.linspace(0.02, 0.98, 49)
    fine = fit_beta(ScoreHistogram.from_scores(labels, scores))
    wide = fit_beta(ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(16)))
    assert np.abs(fine.predict(asked) - wide.predict(asked)).max() < 0.01


def test_the_guideline_follows_the_theorems() -> None:
    assert bucket_guideline(8000) == 20
    assert bucket_guideline(10**8, local_epsilon=4.0) == 200
    with pytest.raises(SettingInvalid):
        bucket_guideline(0.0)


@pytest.mark.parametrize("method", FITTED)
def test_empty_buckets_and_negative_counts_still_give_probabilities(method: Method) -> None:
    labels, scores = drawn(3000)
    noisy = with_noise(labels, scores * 0.6, 15.0, cells=64)
    assert (noisy.counts < 0.0).any()
    exact = ScoreHistogram.from_scores(labels, scores * 0.6)
    assert (exact.counts.sum(axis=0) == 0.0).any()
    asked = np.linspace(0.0, 1.0, 200)
    for histogram in (noisy, exact):
        for aware in (True, False):
            found = fit(histogram, method, noise_aware=aware).predict(asked)
            assert ((found >= 0.0) & (found <= 1.0)).all()


@pytest.mark.parametrize("method", FITTED)
def test_a_single_class_is_an_error_for_a_method_and_a_reason_for_auto(method: Method) -> None:
    histogram = ScoreHistogram.from_scores(np.ones(50), np.linspace(0.1, 0.9, 50))
    with pytest.raises(SingleClass, match="negatives"):
        fit(histogram, method)
    found = fit_auto(histogram)
    assert found.method is Method.NONE
    assert "negatives" in found.reason


def test_auto_leaves_a_calibrated_score_alone_and_mends_another() -> None:
    good = fit_auto(ScoreHistogram.from_scores(*drawn(5000, power=1.0)))
    assert good.method is Method.NONE
    assert "raw score" in good.reason
    labels, scores = drawn(5000, power=2.5)
    mended = fit_auto(ScoreHistogram.from_scores(labels, scores))
    assert mended.method is not Method.NONE
    truth = scores**2.5
    assert np.mean((mended.predict(scores) - truth) ** 2) < 0.05 * np.mean((scores - truth) ** 2)


def test_auto_mends_a_score_of_few_values() -> None:
    generator = np.random.default_rng(2)
    scores = generator.choice([0.0, 0.1, 0.5, 0.9, 1.0], 20_000)
    labels = (generator.random(20_000) < 0.05 + 0.8 * scores).astype(np.int64)
    found = fit_auto(ScoreHistogram.from_scores(labels, scores))
    assert np.abs(found.predict(scores) - (0.05 + 0.8 * scores)).max() < 0.03
    lone = fit_auto(ScoreHistogram.from_scores(labels, np.full(20_000, 0.3)))
    assert lone.predict([0.3])[0] == pytest.approx(labels.mean(), abs=0.01)


def test_auto_declines_where_noise_drowns_the_tally() -> None:
    found = fit_auto(with_noise(*drawn(300), 30.0, cells=16))
    assert found.method is Method.NONE
    assert found.reason


def test_a_calibrator_survives_its_file(tmp_path: Path) -> None:
    histogram = ScoreHistogram.from_scores(*drawn(2000))
    asked = np.linspace(0.0, 1.0, 333)
    for method in FITTED:
        found = fit(histogram, method)
        found.save(tmp_path / "c.json")
        again = Calibrator.load(tmp_path / "c.json")
        assert (again.predict(asked) == found.predict(asked)).all()
        assert (again.method, again.is_monotone) == (found.method, found.is_monotone)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("calibrator/1", "calibrator/2", "expected format"),
        ('"values": [0.0, 1.0]', '"values": [0.0, 1.5]', "values must lie"),
        ('"values": [0.0, 1.0]', '"values": [1.0, 0.0]', "monotone"),
        ('"edges": [0.0, 1.0]', '"edges": [1.0, 0.0]', "rise"),
        ('"edges": [0.0, 1.0]', '"edges": [0.0]', "at least 2"),
        ('"method": "none"', '"method": "magic"', "magic"),
        ('"parameters": {}', '"parameters": {"a": "b"}', "number"),
        ('"reason": ""', '"reason": "", "more": 1', "unknown field"),
    ],
)
def test_a_wrong_calibrator_file_is_refused(tmp_path: Path, old: str, new: str, word: str) -> None:
    path = tmp_path / "c.json"
    Calibrator.identity().save(path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(FileInvalid, match=word):
        Calibrator.load(path)


def test_scores_outside_the_range_are_refused_when_applied() -> None:
    found = fit_binning(ScoreHistogram.from_scores(*drawn(500)))
    for bad in (1.01, -0.1):
        with pytest.raises(ScoreOutOfRange):
            found.predict([0.5, bad])
    with pytest.raises(ValueMissing):
        found.predict([0.5, np.nan])


def test_a_step_belongs_to_the_bucket_below_its_edge() -> None:
    steps = Calibrator(
        Method.BINNING, np.array([0.0, 0.5, 1.0]), np.array([0.1, 0.8]), Interpolation.STEP
    )
    assert steps.predict([0.0, 0.5, np.nextafter(0.5, 1.0), 1.0]).tolist() == [0.1, 0.1, 0.8, 0.8]


def test_a_monotone_map_is_not_had_from_a_method_that_is_not() -> None:
    _, scores = drawn(400)
    labels = np.random.default_rng(5).integers(0, 2, 400)
    with pytest.raises(SettingInvalid, match="falls at"):
        BinningCalibrator(monotone=True).fit(scores, labels)
    assert IsotonicCalibrator(monotone=True).fit(scores, labels).calibrator_.is_monotone
    assert AutoCalibrator(monotone=True).fit(scores, labels).calibrator_.is_monotone


@given(st.integers(0, 10_000), st.sampled_from([m for m in FITTED if METHODS[m].is_monotone]))
def test_monotone_methods_never_fall(seed: int, method: Method) -> None:
    labels, scores = drawn(200, seed=seed)
    assert fit(ScoreHistogram.from_scores(labels, scores), method).is_monotone


ESTIMATORS = [
    AutoCalibrator,
    BBQCalibrator,
    BetaCalibrator,
    BinningCalibrator,
    IsotonicCalibrator,
    SigmoidCalibrator,
    SmoothCalibrator,
    TemperatureCalibrator,
]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_estimators_clone_and_fit_in_pipelines(kind: type[AutoCalibrator]) -> None:
    labels, scores = drawn(600)
    copy = clone(kind(noise_aware=False).set_params(monotone=False))
    assert copy.get_params() == {"noise_aware": False, "monotone": False}
    with pytest.raises(SettingInvalid, match="not fitted"):
        copy.predict_proba(scores)
    plain = copy.fit(scores, labels).predict_proba(scores)
    doubled = clone(copy).fit(np.tile(scores, 2), np.tile(labels, 2)).predict_proba(scores)
    weighted = clone(copy).fit(scores, labels, sample_weight=np.full(600, 2.0))
    assert np.abs(weighted.predict_proba(scores) - doubled).max() < 1e-9
    piped = make_pipeline(clone(copy)).fit(scores[:, None], labels)
    assert (piped.predict_proba(scores[:, None]) == plain).all()


def test_a_calibrated_model_wraps_a_frozen_or_a_plain_one() -> None:
    generator = np.random.default_rng(3)
    X = generator.normal(size=(500, 2))
    y = np.where(X[:, 0] + generator.normal(size=500) > 0.0, "yes", "no")
    model = LogisticRegression().fit(X, y)
    fitted = SigmoidCalibrator().fit(model.predict_proba(X), y == "yes")
    for wrapped in (model, FrozenEstimator(model)):
        both = CalibratedModel(wrapped, fitted.calibrator_)
        assert (both.predict_proba(X) == fitted.predict_proba(model.predict_proba(X))).all()
        assert set(both.predict(X)) == {"yes", "no"}
        assert clone(both).get_params()["calibrator"] is not None
