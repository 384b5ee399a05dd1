"""Calibration figures, their tables, costs, slopes and claims."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas
from sklearn.isotonic import IsotonicRegression

from fedassay.examples import Examples
from fedassay.reproduction import areas, calibration_errors, costs, setup_table
from fedassay.reproduction.claims import CLAIMS
from fedassay.reproduction.claims_page import results_page
from fedassay.reproduction.datasets import Dataset
from fedassay.reproduction.figures import FIGURES
from fedassay.reproduction.findings import Curves
from fedassay.reproduction.pages import page, slope
from fedassay.reproduction.plots import draw
from fedassay.reproduction.results import Point, points_of
from fedassay.reproduction.settings import LOCAL, QUICK, SECURE

SMALL = replace(QUICK, bins=(5, 20), repetitions=2, rows=None)


def too_high(rows: int = 8_000) -> Dataset:
    """Scores whose true probability is their square."""
    generator = np.random.default_rng(8)
    scores = generator.random(rows)
    return Dataset("too high", "made", Examples(generator.random(rows) < scores**2, scores))


def test_every_map_lowers_the_error_of_scores_that_are_too_high() -> None:
    points = calibration_errors.by_bins(too_high(), SECURE, SMALL, np.random.default_rng(1))
    at = {(point.curve, point.x): point.mean for point in points}
    # The mean of s - s^2 over [0, 1].
    assert at[calibration_errors.RAW, 20.0] == pytest.approx(1 / 6, abs=0.02)
    for curve in ("BINNING", "BBQ", "ISOTONIC", "DEFAULT"):
        assert at[getattr(calibration_errors, curve), 20.0] < 0.05


def test_maps_are_judged_on_rows_that_fitted_nothing() -> None:
    data = Examples(np.arange(100) % 2, np.arange(100) / 100)
    fitting, testing = calibration_errors.halves(data, np.random.default_rng(2))
    assert sorted([*fitting.scores, *testing.scores]) == data.scores.tolist()
    assert len(fitting) == len(testing) == 50


def test_the_centralised_baseline_is_scikit_learns_on_the_rows() -> None:
    examples = too_high(500).examples
    model = IsotonicRegression(out_of_bounds="clip").fit(examples.scores, examples.labels)
    at = np.linspace(0.0, 1.0, 11)
    assert calibration_errors.isotonic(examples, at) == pytest.approx(model.predict(at))


def test_a_population_gives_preset_default_and_raw_scores() -> None:
    points = calibration_errors.by_clients(
        too_high(), SECURE, 1_000, SMALL, np.random.default_rng(3)
    )
    raw = next(point for point in points if point.curve == calibration_errors.RAW)
    others = [point for point in points if point is not raw]
    assert [point.curve for point in others] == [
        "secure",
        "secure: default",
        calibration_errors.ISOTONIC,
    ]
    assert all(point.mean < raw.mean for point in others)


def test_where_there_is_noise_no_curve_of_rows_is_drawn_again() -> None:
    points = calibration_errors.by_clients(too_high(), LOCAL, 200, SMALL, np.random.default_rng(3))
    assert [point.curve for point in points] == [LOCAL.name, f"{LOCAL.name}: default"]


def test_the_weight_of_bbqs_heaviest_binning_is_in_the_file_and_not_in_the_picture(
    tmp_path: Path,
) -> None:
    points = calibration_errors.by_bins(too_high(), SECURE, SMALL, np.random.default_rng(1))
    (weight,) = [point for point in points if point.curve == calibration_errors.WEIGHT]
    assert all(0.0 < value <= 1.0 for value in weight.values)
    drawn: list[str] = []
    legend = Canvas.legend

    def listening(self: Canvas, handles: Any, labels: Any, **more: Any) -> Any:
        drawn.extend(labels)
        return legend(self, handles, labels, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Canvas, "legend", listening)
        draw(FIGURES["calib"], points, tmp_path / "calib.png")
    assert calibration_errors.BBQ in drawn
    assert calibration_errors.WEIGHT not in drawn


def test_reliability_is_the_share_of_positives_in_each_bin() -> None:
    data = Dataset("tiny", "made", Examples([0, 1, 1, 0], [0.02, 0.04, 0.98, 0.99]))
    points = setup_table.reliability(data, np.random.default_rng(0))
    seen = [point for point in points if point.curve == setup_table.OBSERVED]
    assert [point.x for point in seen] == pytest.approx([0.03, 0.985])
    assert [point.mean for point in seen] == [0.5, 0.5]


def test_costs_are_above_zero_for_preset_and_default() -> None:
    points = costs.by_clients(too_high(), SECURE, 20, 1, np.random.default_rng(0))
    assert {point.panel for point in points} == {costs.REPORT, costs.TALLY}
    assert all(value > 0.0 for point in points for value in point.values)


def test_a_slope_is_that_of_least_squares_and_needs_two_places() -> None:
    points = points_of("", "", {("c", x): [3.0 * x**-1.5] for x in (1.0, 10.0, 70.0)})
    assert slope(points) == pytest.approx(-1.5)
    assert slope(points[:1]) is None


def test_every_figure_has_a_page_that_names_its_label() -> None:
    content = {"quick": True, "data": [], "sources": "0" * 64, "seconds": 1.0}
    for figure in FIGURES.values():
        text = page(figure, content, points_of("a", "b", {("c", 1.0): [0.5]}))
        assert f"`{figure.label}`" in text
        assert "| 1 | 0.5 |" in text


def curve(panel: str, name: str, values: dict[float, float]) -> list[Point]:
    return points_of("made", panel, {(name, x): [y] for x, y in values.items()})


def test_a_claim_agrees_where_the_figure_does_as_the_paper_says_and_not_otherwise() -> None:
    claim = next(each for each in CLAIMS if "falls as 1/B²" in each.text)
    square = curve("secure", areas.QUANTILE, {b: b**-2.0 for b in (5.0, 50.0, 200.0)})
    slow = curve("secure", areas.QUANTILE, {b: b**-1.0 for b in (5.0, 50.0, 200.0)})
    assert claim.find(Curves(square)).agrees
    assert claim.find(Curves(slow)).agrees is False
    assert claim.find(Curves(square)).preset == "slope -2.00 ± 0.00"


@pytest.mark.parametrize(
    ("values", "agrees"),
    [((1e-5, 2e-5), True), ((1.0, 1.1), False), ((1e-5, 8e-5), None)],
)
def test_what_the_measurement_leaves_open_is_not_decided(
    values: tuple[float, ...], agrees: bool | None
) -> None:
    claim = next(each for each in CLAIMS if each.text == "Secure: precision at height 14")
    points = points_of("made", "secure", {("precision", 14.0): values})
    points += points_of("made", "secure", {("precision: default", 14.0): [0.0]})
    assert claim.find(Curves(points)).agrees is agrees


@pytest.mark.parametrize("gain", [1.0, 0.5])
def test_a_fanout_that_gains_is_said_to_beside_its_closed_form(gain: float) -> None:
    claim = next(each for each in CLAIMS if each.text.startswith("Distributed: fan-out 4"))
    panel = "distributed, ε = 1"
    points = [
        *curve(panel, "fan-out 2", {1024.0: 0.02, 4096.0: 0.01}),
        *curve(panel, "fan-out 4", {1024.0: 0.02, 4096.0: 0.01 * gain}),
    ]
    found = claim.find(Curves(points))
    assert found.agrees == (gain == 1.0)
    assert found.preset == f"{gain:.2f} ± 0.00 times the error (closed form 0.61)"


def test_a_claim_about_one_table_has_no_row_for_another() -> None:
    claim = next(each for each in CLAIMS if each.table == "october")
    assert claim.speaks_of("october")
    assert claim.speaks_of("october (Kaggle)")
    assert not claim.speaks_of("flights")


def test_a_disagreement_is_explained_below_the_table_and_agreement_is_not() -> None:
    def page_of(gain: float) -> str:
        points = [
            point
            for panel in ("distributed, ε = 1", "local, ε = 5")
            for point in (
                *curve(panel, "fan-out 2", {4096.0: 0.01}),
                *curve(panel, "fan-out 4", {4096.0: 0.01 * gain}),
            )
        ]
        return results_page({"fanout": points}, quick=False)

    assert "## Where ours disagrees" in page_of(0.5)
    assert "It is the closed form that holds" in page_of(0.5)
    assert "disagrees" not in page_of(1.0)


def test_the_papers_classifiers_stand_beside_those_that_were_trained() -> None:
    tables = [{"name": "october", "roc_auc": 0.8517}, {"name": "november (Kaggle)", "roc_auc": 0.7}]
    text = results_page({"table2": []}, quick=False, tables=tables)
    assert "| ROC AUC of XGBoost | 0.85 | october | 0.8517 | – | yes | table2 |" in text
    assert "| 0.73 | november (Kaggle) | 0.7000 | – | **no** | table2 |" in text
    assert "table2" not in results_page({"auc": []}, quick=False, tables=tables)


def test_every_figure_but_the_table_of_tables_has_claims() -> None:
    assert {claim.figure for claim in CLAIMS} == FIGURES.keys() - {"table2"}


def test_the_results_page_has_a_row_for_every_claim_and_table_that_was_measured() -> None:
    points = curve("secure", areas.QUANTILE, {5.0: 0.01, 100.0: 1e-5})
    points += curve("secure", areas.UNIFORM, {5.0: 0.09, 100.0: 1e-5})
    for panel in ("distributed, ε = 1", "local, ε = 5"):
        points += curve(panel, areas.QUANTILE, {5.0: 0.01, 100.0: 0.5})
        points += curve(panel, areas.UNIFORM, {5.0: 0.02, 100.0: 0.5})
    for panel in {point.panel for point in points}:
        points += curve(panel, areas.WORST, {5.0: 0.1, 100.0: 0.005})
        points += curve(panel, areas.DEFAULT, {5.0: 1e-6, 100.0: 1e-6})
    text = results_page({"auc": points}, quick=True)
    rows = [line for line in text.splitlines() if line.endswith("| auc |")]
    assert len(rows) == sum(claim.figure == "auc" for claim in CLAIMS)
    assert "| Secure: error at 100 buckets | 1e-5 | made | 1e-05 | 1e-06 | yes | auc |" in rows
    assert "**no**" in next(row for row in rows if row.startswith("| Local: error at 100"))
    assert "up to 9.0 ± 0.0 times, at B = 5" in text
