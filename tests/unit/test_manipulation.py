"""What liars can move: every attack stays within the range, and some attack comes to its ends."""

import json
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as sk
from typer.testing import CliRunner

from fedassay import DecodeOptions, Grid, ScoreHistogram, Tally
from fedassay.assessment import Assessment
from fedassay.cli.app import app
from fedassay.errors import SettingInvalid
from fedassay.metrics.manipulation import manipulation
from tests.surveys import flat_survey, report_of

# Scores on the edges of eight cells, so that no metric but the losses depends on the binning.
SCORES = np.array([0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0])
NEGATIVES = np.array([4, 3, 2, 2, 1, 1, 0, 1])
POSITIVES = np.array([0, 1, 0, 1, 2, 1, 3, 1])
THRESHOLD = 0.5


def rows_of(negatives: np.ndarray, positives: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scores = np.concatenate([np.repeat(SCORES, negatives), np.repeat(SCORES, positives)])
    labels = np.repeat([0, 1], [negatives.sum(), positives.sum()])
    return labels, scores


def by_sklearn(labels: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    called = scores > THRESHOLD
    false_rate, true_rate, _ = sk.roc_curve(labels, scores, drop_intermediate=False)
    return {
        "roc_auc": sk.roc_auc_score(labels, scores),
        "average_precision": sk.average_precision_score(labels, scores),
        "ks": float(np.max(np.abs(true_rate - false_rate))),
        "prevalence": float(labels.mean()),
        "precision@0.5": sk.precision_score(labels, called),
        "recall@0.5": sk.recall_score(labels, called),
        "accuracy@0.5": sk.accuracy_score(labels, called),
        "f1@0.5": sk.f1_score(labels, called),
        "specificity@0.5": sk.recall_score(labels, called, pos_label=0),
        "balanced_accuracy@0.5": sk.balanced_accuracy_score(labels, called),
        "mcc@0.5": sk.matthews_corrcoef(labels, called),
    }


def attacks(rows: int) -> list[dict[str, float]]:
    """Every way to put so many rows into sixteen places, by brute force."""
    values = []
    for places in combinations_with_replacement(range(16), rows):
        added = np.bincount(places, minlength=16).reshape(2, 8)
        values.append(by_sklearn(*rows_of(NEGATIVES + added[0], POSITIVES + added[1])))
    return values


def histogram() -> ScoreHistogram:
    return ScoreHistogram.from_scores(*rows_of(NEGATIVES, POSITIVES), grid=Grid.uniform(8))


TIGHT = {
    "precision@0.5", "recall@0.5", "accuracy@0.5", "f1@0.5", "specificity@0.5",
    "balanced_accuracy@0.5", "mcc@0.5", "prevalence",
}  # fmt: skip


def test_no_attack_leaves_its_range_and_the_worst_ones_reach_its_ends() -> None:
    ranges = manipulation(histogram(), [THRESHOLD], rows=2)
    seen = attacks(2)
    for name in seen[0]:
        low, high = ranges[name]
        values = [value[name] for value in seen]
        # Rows tie where the histogram interpolates inside a cell: for these two an attack may pass
        # the range by as much, so that it is not strict.
        slack = 0.03 if name in ("roc_auc", "ks") else 0.0
        assert low - slack - 1e-12 <= min(values), name
        assert max(values) <= high + slack + 1e-12, name
        if name in TIGHT:
            assert (min(values), max(values)) == pytest.approx((low, high), abs=1e-12), name


def test_without_false_rows_nothing_moves_but_what_binning_leaves_open() -> None:
    still = manipulation(histogram(), [THRESHOLD], rows=0)
    for name, (low, high) in still.items():
        assert low <= high, name
        if name != "average_precision":
            assert high == pytest.approx(low, abs=1e-12), name


def test_more_false_rows_move_more() -> None:
    small, large = (manipulation(histogram(), [THRESHOLD], rows=rows) for rows in (5, 500))
    for name in small:
        assert large[name][0] < small[name][0] or large[name][0] == small[name][0] == 0.0, name
        assert large[name][1] > small[name][1] or large[name][1] == small[name][1] == 1.0, name


def test_losses_are_moved_by_rows_of_the_largest_and_the_least_loss() -> None:
    # 14 negatives and 9 positives; a row's Brier loss is at most 1 and log loss 52 ln 2.
    base = manipulation(histogram(), [], rows=0)
    moved = manipulation(histogram(), [], rows=10)
    for name, largest in (("brier", 1.0), ("log_loss", 52 * np.log(2))):
        value = base[name][0]
        assert moved[name][0] == pytest.approx(23 * value / 33)
        assert moved[name][1] == pytest.approx((23 * value + 10 * largest) / 33)


def test_false_rows_are_a_number_that_can_be() -> None:
    for rows in (-1, 10**6 + 1):
        with pytest.raises(SettingInvalid, match="false rows are from 0"):
            manipulation(histogram(), [THRESHOLD], rows=rows)


def test_show_says_what_a_liar_can_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    survey = flat_survey(Grid.uniform(8))
    half = report_of(survey, [*NEGATIVES, *POSITIVES])
    nothing = report_of(survey, report_id=bytes(16))
    tally = Tally.of(survey, [half, nothing])
    Assessment(survey, tally, DecodeOptions()).save(Path("a.json"))
    asked = ["show", "a.json", "--metric", "lift@.50", "--metric", "npv", "--json"]
    more = json.loads(CliRunner().invoke(app, asked).output)["estimates"]
    assert more["lift@0.5"]["value"] > 1.0
    assert more["npv@0.5"]["value"] == pytest.approx(11 / 13)
    told = CliRunner().invoke(app, ["show", "a.json", "--liar", "10"])
    assert "With up to 10 false rows more" in told.output
    shown = CliRunner().invoke(app, ["show", "a.json", "--liar", "10", "--json"])
    ranges = json.loads(shown.output)["manipulation"]["ranges"]
    # 7 true and 3 false positives, 2 missed: ten more false ones, or ten more true ones.
    assert ranges["precision@0.5"] == pytest.approx([7 / 20, 17 / 20])
