"""Two models on the same rows, against brute force on rows."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm, rankdata

import fedassay
from fedassay.decoding import DecodeOptions
from fedassay.errors import FileInvalid, SettingInvalid, TooFewRows
from fedassay.examples import Examples, ScoredClients
from fedassay.grid import Grid
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Privacy, RandomizedResponse
from fedassay.pair_grid import PairGrid
from fedassay.pair_levels import PairLevels
from fedassay.paired.assessment import PairedAssessment, model_metric
from fedassay.planning.search import SurveyDesign
from fedassay.simulation.pairs import PairedClients, simulated_pair
from fedassay.survey import Survey

Floats = npt.NDArray[np.float64]


def scored(
    rows: int, seed: int, *, gap: float = 0.3
) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Labels, and scores of two models that share what is easy and what is hard."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, rows)
    common = generator.normal(size=rows)
    first, second = (
        norm.cdf(0.7 * common + 0.5 * generator.normal(size=rows) + shift * (labels - 0.5))
        for shift in (1.2, 1.2 - gap)
    )
    return labels, first, second


def delong(labels: npt.NDArray[np.int64], first: Floats, second: Floats) -> tuple[float, float]:
    """The difference of areas and its standard error (DeLong et al. 1988), from ranks."""
    placements = []
    for scores in (first, second):
        positives, negatives = scores[labels == 1], scores[labels == 0]
        ranks = rankdata(np.concatenate([positives, negatives]))
        above = (ranks[: len(positives)] - rankdata(positives)) / len(negatives)
        below = 1 - (ranks[len(positives) :] - rankdata(negatives)) / len(positives)
        placements.append((above, below))
    of_positives = placements[0][0] - placements[1][0]
    of_negatives = placements[0][1] - placements[1][1]
    variance = of_positives.var(ddof=1) / len(of_positives)
    variance += of_negatives.var(ddof=1) / len(of_negatives)
    return float(of_positives.mean()), float(np.sqrt(variance))


@pytest.mark.parametrize("smallest", [0, 10])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_area_difference_and_its_error_are_delongs_on_rows(seed: int, smallest: int) -> None:
    labels, first, second = scored(20_000, seed)
    found = fedassay.simulate(labels, {"a": first, "b": second}, smallest_cell=smallest, seed=0)
    difference = found.differences()["roc_auc"]
    value, error = delong(labels, first, second)
    assert difference.value == pytest.approx(value, abs=2e-4)
    assert difference.sampling_sd == pytest.approx(error, rel=0.02)
    assert difference.noise_sd == 0.0


def test_scores_of_few_rows_that_have_cells_of_their_own_have_delongs_error_too() -> None:
    """Such cells end so near to each other that hardly a number lies between to cut them at."""
    labels, first, second = scored(1_000, 1)
    found = fedassay.simulate(
        labels, {"a": first, "b": second}, smallest_cell=0, seed=0, thresholds=(0.5,)
    )
    assert np.diff(found.histogram("a").edges).min() < 1e-15
    value, error = delong(labels, first, second)
    differences = found.differences()
    assert differences["roc_auc"].value == pytest.approx(value, abs=2e-3)
    assert differences["roc_auc"].sampling_sd == pytest.approx(error, rel=0.03)
    right = ((first > 0.5) == labels) * 1.0 - ((second > 0.5) == labels)
    assert differences["accuracy@0.5"].sampling_sd == pytest.approx(
        right.std(ddof=1) / np.sqrt(len(right)), rel=0.02
    )


def test_errors_at_a_threshold_are_those_of_rows() -> None:
    labels, first, second = scored(20_000, 3)
    found = fedassay.simulate(labels, {"a": first, "b": second}, smallest_cell=0, seed=0)
    above = first > 0.5, second > 0.5
    influence = {
        "precision@0.5": [
            is_above * (labels - labels[is_above].mean()) / is_above.sum() for is_above in above
        ],
        "recall@0.5": [
            (labels == 1) * (is_above - is_above[labels == 1].mean()) / (labels == 1).sum()
            for is_above in above
        ],
        "brier": [
            ((scores - labels) ** 2 - ((scores - labels) ** 2).mean()) / len(labels)
            for scores in (first, second)
        ],
    }
    for metric, (one, other) in influence.items():
        error = np.sqrt(((one - other) ** 2).sum())
        assert found.differences()[metric].sampling_sd == pytest.approx(error, rel=0.02), metric


def test_pairing_narrows_the_interval_of_models_that_agree() -> None:
    labels, first, second = scored(20_000, 4)
    found = fedassay.simulate(labels, {"a": first, "b": second}, seed=0)
    one, other = (found[f"roc_auc[{name}]"].sampling_sd for name in "ab")
    assert found.differences()["roc_auc"].sampling_sd < 0.7 * np.hypot(one, other)


def test_reclassification_counts_rows_by_who_is_above() -> None:
    labels, first, second = scored(5_000, 5)
    found = fedassay.simulate(labels, {"a": first, "b": second}, smallest_cell=0, seed=0)
    table = found.reclassification(0.5).counts
    assert table is not None
    for label in (0, 1):
        for i in (0, 1):
            for j in (0, 1):
                rows = (labels == label) & ((first > 0.5) == i) & ((second > 0.5) == j)
                assert table[label, i, j] == rows.sum()
    assert "no joint cell ends at 0.33" in found.reclassification(0.33).reason


def test_noise_of_the_margins_is_that_of_the_joint_cells_they_are_summed_from() -> None:
    labels, first, second = scored(4_000, 6)
    # A minimum that a tenth of the rows would not fill: joint cells stand alone.
    found = fedassay.simulate(
        labels,
        {"a": first, "b": second},
        privacy="local",
        epsilon=5,
        minimum_reports=1000,
        seed=0,
    )
    pair = found.pair()
    for axis, margin in enumerate((pair.first, pair.second)):
        weights = np.zeros_like(pair.joint)
        np.moveaxis(weights, axis + 1, 0)[0, 1] = 1.0
        of_margin = np.zeros_like(margin.counts)
        of_margin[1, 0] = 1.0
        joint = pair.noise.variance(weights.reshape(2, -1))
        assert margin.noise.variance(of_margin) == pytest.approx(joint, rel=1e-9)
    assert pair.is_margin


def test_rows_that_answer_for_one_model_each_err_as_different_rows() -> None:
    """At epsilon 14 noise is next to nothing, and 45 % of the rows answer for either model."""
    labels, first, second = scored(20_000, 9)
    levels = PairLevels.margins_and(32, 32, ((0, 16), (0, 16)))
    survey = Survey(
        privacy=Privacy.LOCAL,
        grid=PairGrid.of(("a", "b"), Grid.uniform(32), Grid.uniform(32)),
        hierarchy=levels,
        mechanisms=tuple(
            RandomizedResponse(Fraction(14), cells, False) for cells in levels.cells_per_level
        ),
        level_policy=OneLevel((Fraction(9, 20), Fraction(9, 20), Fraction(1, 10))),
    )
    one = Examples(labels, first)
    rows = PairedClients(ScoredClients(one, None, len(one)), Examples(labels, second))
    found = simulated_pair(SurveyDesign(survey, DecodeOptions()), rows, thresholds=(0.5,), seed=0)
    difference = found.differences()["roc_auc"]
    nothing = np.full(len(labels), 0.5)
    errors = [delong(labels, each, nothing)[1] for each in (first, second)]
    apart = np.hypot(errors[0], errors[1])
    error = np.hypot(difference.sampling_sd, difference.noise_sd)
    assert error == pytest.approx(apart / np.sqrt(0.45), rel=0.05)
    assert "those of different rows" in found.footnote
    table, sd = found.reclassification(0.5).counts, found.reclassification(0.5).noise_sd
    assert table is not None
    assert sd is not None
    moved = ((first > 0.5) & (second < 0.5) & (labels == 1)).sum()
    assert abs(table[1, 1, 0] - moved) < 5.0 * sd[1, 1, 0]
    # A tenth of the rows says who changes sides: sqrt(9 c) of c rows.
    assert sd[1, 1, 0] == pytest.approx(3.0 * np.sqrt(moved), rel=0.2)


def test_an_assessment_of_two_models_reads_back(tmp_path: Path) -> None:
    labels, first, second = scored(3_000, 7)
    found = fedassay.simulate(labels, {"old": first, "new": second}, seed=0)
    found.save(tmp_path / "pair.json")
    again = fedassay.load(tmp_path / "pair.json")
    assert isinstance(again, PairedAssessment)
    for name, difference in found.differences().items():
        assert again.differences()[name].value == difference.value, name
        assert again.differences()[name].standard_error == difference.standard_error, name
    content = json.loads((tmp_path / "pair.json").read_text())
    assert min(content["counters"]) >= 10
    assert {"value", "low", "high", "p_value"} <= content["differences"]["roc_auc"].keys()
    assert model_metric("precision@0.5", "new") in content["estimates"]


def test_a_file_with_a_smaller_cell_than_promised_is_refused(tmp_path: Path) -> None:
    labels, first, second = scored(3_000, 8)
    path = tmp_path / "pair.json"
    fedassay.simulate(labels, {"a": first, "b": second}, seed=0).save(path)
    content = json.loads(path.read_text())
    for change, words in (
        ({"counters": [9, *content["counters"][1:]]}, "at least 10"),
        ({"counters": [*content["counters"][:-1], 9]}, "at least 10"),
        ({"counters": [*content["counters"][:-1], 0]}, "at least 10"),
        ({"counters": [content["counters"][0] + 1, *content["counters"][1:]]}, "the same rows"),
        ({"kept": content["kept"][:3]}, '"kept" must list'),
        ({"kept": [[0, 2, 1], *content["kept"][1:]]}, '"kept" must list'),
    ):
        path.write_text(json.dumps({**content, **change}))
        with pytest.raises(FileInvalid, match=words):
            fedassay.load(path)


def test_nothing_is_published_of_a_label_with_too_few_rows() -> None:
    labels, first, second = np.array([0] * 500 + [1] * 9), np.linspace(0, 1, 509), np.zeros(509)
    found = fedassay.simulate(labels, {"a": first, "b": second + first**2}, seed=0)
    with pytest.raises(TooFewRows, match="no count below 10 of either label"):
        found.differences()


def test_clients_answer_one_by_one_as_all_at_once() -> None:
    labels, first, second = scored(300, 11)
    both = {"a": first, "b": second}
    survey = fedassay.new_survey(paired=True, smallest_cell=0, minimum_reports=3)
    policy = fedassay.ClientPolicy(exact_sums=True, smallest_cell=0)
    parts = [slice(0, 100), slice(100, 250), slice(250, 300)]
    answers = [
        fedassay.answer(
            survey, labels[part], {name: own[part] for name, own in both.items()}, policy=policy
        )
        for part in parts
    ]
    found = fedassay.tally_pair(survey, answers)
    for name, own in both.items():
        edges = found.histogram(name).edges
        for label in (0, 1):
            expected, _ = np.histogram(-own[labels == label], -edges[::-1])
            counted = found.histogram(name).counts[label]
            assert counted.tolist() == expected[::-1].tolist()


def test_two_models_with_the_same_ranks_cannot_be_told_apart() -> None:
    labels, first, _ = scored(5_000, 9)
    found = fedassay.simulate(
        labels, {"a": first, "b": first**2}, smallest_cell=0, thresholds=[], seed=0
    )
    difference = found.differences()["roc_auc"]
    assert not difference.told_apart()
    assert difference.p_value > 0.05


def test_what_one_model_is_asked_for_does_not_go_with_two() -> None:
    labels, first, second = scored(200, 10)
    both = {"a": first, "b": second}
    for settings in ({"height": 4, "smallest_cell": 0}, {"site_moments": True}, {"buckets": 9}):
        with pytest.raises(SettingInvalid, match="does not go"):
            fedassay.simulate(labels, both, **settings)
    survey = fedassay.new_survey(paired=True)
    with pytest.raises(SettingInvalid, match="read as a pair"):
        fedassay.tally_answers(survey, [])
    with pytest.raises(SettingInvalid, match="asks for the scores of one model"):
        fedassay.tally_pair(fedassay.new_survey(), [])


def test_what_cells_hide_of_both_models_alike_is_not_counted_twice() -> None:
    labels, first, second = scored(10_000, 6, gap=0.0)
    found = fedassay.simulate(
        labels, {"a": first, "b": second}, privacy="local", epsilon=5, seed=1, thresholds=(0.5,)
    )
    for metric in ("roc_auc", "brier"):
        one, other = (found[model_metric(metric, name)].binning_sd for name in "ab")
        difference = found.differences()[metric]
        assert abs(one - other) < difference.binning_sd < 0.7 * np.hypot(one, other)
    # What may err to either side is taken as independent.
    recall = found.differences()["calibration_slope"]
    ends = (recall.first.binning_sd, recall.second.binning_sd)
    assert recall.binning_sd == pytest.approx(np.hypot(*ends))
