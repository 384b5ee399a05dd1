"""Groups: figures of each, counted rows of none, gaps and ratios, against scikit-learn on rows."""

import json
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score, roc_auc_score

import fedassay
from fedassay import ScoreHistogram
from fedassay.decoding import decode_leaves
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.estimate import Estimate, NotEnoughData, TooCoarse
from fedassay.group_names import GroupNames
from fedassay.groups import Gap, GroupComparison, GroupCounts, compare_groups, group_counts
from fedassay.published import GroupedTally, published
from fedassay.survey_cells import by_part

ROWS = 12_000
RNG = np.random.default_rng(11)
Y = (RNG.random(ROWS) < 0.3).astype(int)
G = RNG.choice(np.array(["F", "M", "D", None], dtype=object), ROWS, p=[0.5, 0.4, 0.05, 0.05])
S = 1.0 / (1.0 + np.exp(-(RNG.normal(size=ROWS) + 1.3 * Y - 0.8 * (G == "M") - 0.6)))


def exact(name: object) -> dict[str, float]:
    mine = np.array([each == name for each in G])
    y, s = Y[mine], S[mine]
    return {
        "roc_auc": float(roc_auc_score(y, s)),
        "recall@0.5": float(recall_score(y, s > 0.5)),
        "precision@0.5": float(precision_score(y, s > 0.5)),
        "oe_ratio": float(y.mean() / s.mean()),
    }


@pytest.mark.parametrize(
    ("privacy", "settings", "width"),
    [
        ("secure", {"smallest_cell": 0}, 1e-9),
        ("secure", {}, 1.0),
        ("distributed", {"epsilon": 1}, 4.0),
        ("site", {"epsilon": 2, "clients": np.arange(ROWS) % 4}, 4.0),
        ("local", {"epsilon": 6}, 4.0),
    ],
)
def test_groups_have_the_figures_of_their_rows(
    privacy: str, settings: dict[str, Any], width: float
) -> None:
    result = fedassay.simulate(Y, S, group=G, privacy=privacy, seed=3, **settings)
    found = compare_groups(result)
    for name in ("F", "M"):
        for metric, value in exact(name).items():
            figure = found.estimates[name][metric]
            noise = np.hypot(figure.noise_sd, figure.binning_sd)
            # Counts at an edge are exact; everything else is within its own errors.
            room = width * noise + 2e-3 * (metric in ("roc_auc", "oe_ratio"))
            assert abs(figure.value - value) <= room + 1e-9, (name, metric, figure, value)


def test_rows_of_no_group_are_counted() -> None:
    missing = sum(each is None for each in G)
    exactly = group_counts(fedassay.simulate(Y, S, group=G, smallest_cell=0, seed=1))
    assert exactly.rows["(missing)"].value == missing
    assert exactly.rows["(unknown)"].value == 0
    assert "(unknown)" not in exactly.histograms
    noisy = group_counts(fedassay.simulate(Y, S, group=G, privacy="distributed", epsilon=1, seed=1))
    counted = noisy.rows["(missing)"]
    assert 0 < counted.noise_sd < 40
    assert abs(counted.value - missing) < 5 * counted.noise_sd
    assert abs(noisy.rows["(unknown)"].value) < 5 * noisy.rows["(unknown)"].noise_sd


def test_all_rows_together_are_what_all_groups_add_up_to() -> None:
    for privacy, epsilon in (("secure", None), ("distributed", 1)):
        result = fedassay.simulate(
            Y, S, group=G, privacy=privacy, epsilon=epsilon, smallest_cell=0, seed=1
        )
        counts = group_counts(result)
        parts = sum(each.value for each in counts.rows.values())
        assert parts == pytest.approx(result.histogram().total)


def test_small_groups_are_held_back_and_say_not_enough() -> None:
    # D has 600 rows: some 180 positives are enough; T has 30.
    groups = G.copy()
    groups[:30] = "T"
    result = fedassay.simulate(Y, S, group=groups, seed=1)
    counts = group_counts(result)
    assert set(counts.histograms) == {"D", "F", "M"}
    assert "fewer than 50 rows of a label" in counts.held_back["T"]
    shown = compare_groups(result).to_json()["groups"]
    assert shown["T"]["roc_auc"]["value"] is None
    tiny = fedassay.simulate(Y, S, group=groups, privacy="distributed", epsilon="1/10", seed=1)
    figure = compare_groups(tiny).estimates["T"]["roc_auc"]
    assert isinstance(figure, NotEnoughData) or figure.noise_sd > 0.1


def test_no_sum_less_shown_groups_holds_fewer_than_the_smallest_cell() -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        sizes = rng.choice(["A", "B", "C", ""], ROWS // 4, p=[0.6, 0.3, 0.06, 0.04])
        if seed % 2:
            # Next to nobody is held back: so few are no part of what is published.
            sizes = rng.choice(["A", "B"], ROWS // 4, p=[0.6, 0.4])
            sizes[:4] = ""
        y, s = Y[: ROWS // 4], S[: ROWS // 4]
        result = fedassay.simulate(y, s, group=sizes, seed=seed)
        seen = published(result.survey, result.tally)
        assert isinstance(seen, GroupedTally)
        both = np.intersect1d(seen.kept, seen.groups_kept)
        cells = by_part(result.survey, result.tally.per_level(result.survey)[0])
        rest = np.cumsum(np.pad(seen.counters.reshape(2, -1), ((0, 0), (1, 0))), axis=1)
        left = rest[:, np.searchsorted(seen.kept, both)]
        for own in seen.groups.values():
            assert own.min() >= 10
            below = np.cumsum(np.pad(own.reshape(2, -1), ((0, 0), (1, 0))), axis=1)
            left = left - below[:, np.searchsorted(seen.groups_kept, both)]
        held = np.diff(left, axis=1)
        assert held.min() >= 10 or not held.any()
        assert seen.counters.min() >= 10
        assert cells.sum() - seen.counters.sum() == (4 if seed % 2 else 0)


def test_a_saved_assessment_has_the_same_groups(tmp_path: Path) -> None:
    both: list[dict[str, Any]] = [{}, {"privacy": "distributed", "epsilon": 1}]
    for settings in both:
        result = fedassay.simulate(Y, S, group=G, seed=2, **settings)
        result.save(tmp_path / "a.json")
        again = fedassay.load(tmp_path / "a.json")
        assert isinstance(again, fedassay.Assessment)
        before, after = group_counts(result), group_counts(again)
        assert before.rows == after.rows
        for name, histogram in before.histograms.items():
            assert np.array_equal(histogram.counts, after.histograms[name].counts)
            assert np.array_equal(histogram.edges, after.histograms[name].edges)


def test_a_file_with_a_group_below_the_smallest_cell_is_refused(tmp_path: Path) -> None:
    result = fedassay.simulate(Y, S, group=G, seed=2)
    content = result.to_json()
    content["groups"]["counters"]["F"][0] = 9
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(FileInvalid, match="at least 10"):
        fedassay.load(tmp_path / "a.json")


def test_intervals_are_those_of_all_comparisons_at_once() -> None:
    one, other = Estimate(0.7, sampling_sd=0.01), Estimate(0.8, sampling_sd=0.02)
    gap = Gap("recall@0.5", one, other, family=8)
    # Bonferroni: 1 - 0.05 / 8 each, z of 0.996875 = 2.7344.
    half = 2.734369 * np.hypot(0.01, 0.02)
    assert gap.interval == pytest.approx((-0.1 - half, -0.1 + half), abs=1e-6)
    assert gap.p_value == pytest.approx(8 * 2 * 3.8721e-6, rel=1e-3)
    ratio, (low, high) = gap.ratio
    spread = 2.734369 * np.hypot(0.01 / 0.7, 0.02 / 0.8)
    assert (log(low), log(high)) == pytest.approx(
        (log(0.875) - spread, log(0.875) + spread), abs=1e-6
    )
    assert ratio == pytest.approx(0.875)


def test_the_family_is_every_group_in_every_metric() -> None:
    found = compare_groups(fedassay.simulate(Y, S, group=G, seed=2), metrics=["roc_auc", "brier"])
    assert found.reference == "F"
    assert found.compared == ("D", "M")
    assert found.family == 4
    assert compare_groups(fedassay.simulate(Y, S, group=G, seed=2), reference="M").compared == (
        "D",
        "F",
    )


def test_a_survey_without_groups_says_how_to_ask() -> None:
    result = fedassay.simulate(Y, S, seed=2)
    with pytest.raises(SettingInvalid, match=r"told no groups apart.*--group COL"):
        compare_groups(result)
    grouped = fedassay.simulate(Y, S, group=G, seed=2)
    with pytest.raises(SettingInvalid, match="a group"):
        compare_groups(grouped, reference="X")


def test_two_columns_cost_epsilon_each_and_the_door_says_so() -> None:
    with pytest.raises(SettingInvalid, match="another survey with an epsilon of its own"):
        fedassay.new_survey(groups={"sex": ["F"], "age": ["old"]})
    with pytest.raises(SettingInvalid, match="two steps"):
        fedassay.new_survey(
            groups={"sex": ["F"]}, privacy="distributed", epsilon=1, clients=1000, steps=2
        )


def test_clients_answer_in_the_groups_that_the_survey_names() -> None:
    survey = fedassay.new_survey(
        groups={"sex": ["F", "M"]}, privacy="local", epsilon=8, clients=3000, examples=3000
    )
    policy = fedassay.ClientPolicy(largest_epsilon=fedassay.Fraction(8))
    answer = fedassay.answer(survey, Y[:3000], S[:3000], group=G[:3000], policy=policy)
    counts = group_counts(fedassay.tally_answers(survey, [answer]))
    truth = {"F": "F", "M": "M", "(unknown)": "D"}
    for name, value in truth.items():
        wanted = sum(each == value for each in G[:3000])
        counted = counts.rows[name]
        assert abs(counted.value - wanted) < 5 * counted.noise_sd
    with pytest.raises(SettingInvalid, match="do not say which"):
        fedassay.answer(survey, Y[:50], S[:50], policy=policy)


def test_a_plan_is_of_one_group_and_says_what_a_second_column_costs() -> None:
    three = {"sex": ["F", "M", "D"]}
    with pytest.raises(SettingInvalid, match=r"worth 3,000 rows alone.*costs epsilon once more"):
        fedassay.plan(clients=9000, groups=three)
    with pytest.raises(SettingInvalid, match="worth 1,000 rows alone"):
        fedassay.plan(clients=9000, groups=three, privacy="local", epsilon=1)


def of_counts(**groups: list[list[float]]) -> GroupComparison:
    """Groups F and M, of which those with counts in two cells are shown."""
    histograms = {
        name: ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.array(counts))
        for name, counts in groups.items()
    }
    rows = {name: Estimate(each.total) for name, each in histograms.items()}
    counts = GroupCounts(GroupNames("sex", ("F", "M")), histograms, rows)
    return GroupComparison(counts, (0.5,), "F", ("recall@0.5", "lift@0.5"))


def test_a_metric_that_nobody_names_by_itself_is_computed_and_others_are_refused() -> None:
    found = of_counts(F=[[8.0, 2.0], [4.0, 6.0]], M=[[8.0, 2.0], [6.0, 4.0]])
    assert repr(found) == "<GroupComparison: F, M>"
    assert found.gaps("recall@0.5")["M"].difference.value == pytest.approx(-0.2)
    # Of the 10 highest of 20, 5 would be positive by chance; 6 are at least, 8 at most.
    assert 6 / 5 < found.estimates["F"]["lift@0.5"].value < 8 / 5
    with pytest.raises(SettingInvalid, match=r"a metric that groups differ in"):
        found.gaps("precision@0.5")


def test_cells_too_coarse_for_a_group_are_told_with_what_helps_groups() -> None:
    found = of_counts(F=[[900.0, 0.0], [300.0, 0.0]]).estimates["F"]["roc_auc"]
    assert isinstance(found, TooCoarse)
    assert "--steps" not in found.reason
    assert "Give a reference (--reference), or gather more rows." in found.reason


def test_without_the_reference_there_are_no_gaps_and_without_a_class_no_figures() -> None:
    alone = of_counts(M=[[8.0, 2.0], [6.0, 4.0]])
    assert alone.gaps("recall@0.5") == {}
    assert alone.rows() == []
    empty = of_counts(F=[[8.0, 2.0], [4.0, 6.0]], M=[[8.0, 2.0], [0.0, 0.0]])
    assert [row[3:] for row in empty.rows()][1] == ["not enough", "", ""]


def test_rows_in_no_group_shown_are_all_rows_less_the_groups() -> None:
    """Exact sums of two large groups, one of 11 rows, and 120 rows without a group."""
    groups = np.array((["F"] * 3000 + ["M"] * 2000 + ["D"] * 11 + [None] * 120), dtype=object)
    labels = np.arange(len(groups)) % 2
    scores = (np.arange(len(groups)) * 37 % 997) / 997
    result = fedassay.simulate(labels, scores, group=groups, privacy="secure", smallest_cell=20)
    counts = group_counts(result)
    assert set(counts.histograms) == {"F", "M"}
    assert counts.rows["(in no group shown)"].value == 131
    assert {name: each.total for name, each in counts.histograms.items()} == {"F": 3000, "M": 2000}


def test_noise_does_not_pass_for_rows_without_a_group() -> None:
    """Nobody is without one: of 200 noisy sums about 30 pass one deviation, and next to none 3.

    Sums of 8 Laplace figures pass 3 deviations 1 time in 400: more than 8 of 200 do once in 1e8
    times, and fewer than 9 pass one deviation 4 times in 1e7.
    """
    groups, labels = ["F", "M"] * 150, [0, 0, 1, 1] * 75
    scores = [(i * 37 % 101) / 101 for i in range(300)]
    settings: dict[str, Any] = {"privacy": "distributed", "epsilon": 1, "height": 2}
    above = shown = 0
    for seed in range(100):
        result = fedassay.simulate(labels, scores, group=groups, seed=seed, **settings)
        counts = group_counts(result)
        unnamed = {name: each for name, each in counts.rows.items() if name not in ("F", "M")}
        assert len(unnamed) == 2
        above += sum(each.value > each.noise_sd for each in unnamed.values())
        shown += sum(name in counts.histograms for name in unnamed)
    assert shown <= 8 < above


def test_every_group_has_the_noise_of_its_own_cells() -> None:
    """Locally private counts err by how large they are: of a large group more."""
    result = fedassay.simulate(Y, S, group=G, privacy="local", epsilon=6, seed=3)
    counts = group_counts(result)
    parts = counts.groups.parts
    survey = result.survey
    leaves, joint = decode_leaves(survey, result.tally, decode_options=result.decode_options)
    for place, name in enumerate(parts):
        own = np.zeros((2, len(parts), leaves.shape[1] // len(parts)))
        own[:, place] = 1.0
        expected = joint.variance(own.reshape(2, -1)) ** 0.5
        assert counts.rows[name].noise_sd == pytest.approx(expected, rel=1e-9)
    assert counts.rows["F"].noise_sd > 1.05 * counts.rows["D"].noise_sd
