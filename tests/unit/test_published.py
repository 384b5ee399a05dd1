"""No count from 1 to below the smallest cell is in any file that leaves, nor in a difference."""

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedassay
from fedassay import Assessment, ClientPolicy, Exact, Examples, Grid, Hierarchy, Survey
from fedassay.decoding import DecodeOptions
from fedassay.errors import FileInvalid, SettingInvalid, SurveyRefused, TooFewRows
from fedassay.estimate import TooCoarse
from fedassay.examples import FloatArray
from fedassay.mechanisms import Privacy
from fedassay.published import MergedTally, published, published_json, published_sites
from fedassay.tally import Tally
from fedassay.tally_file import KeptTally


def exact_survey(grid: Grid, smallest: int) -> Survey:
    return Survey(
        privacy=Privacy.SECURE,
        grid=grid,
        hierarchy=Hierarchy.flat(grid.cells),
        mechanisms=(Exact(),),
        smallest_cell=smallest,
    )


def assessed(survey: Survey, examples: Examples, **more: Any) -> Assessment:
    tally = Tally(survey.fingerprint, (5,), survey.grid.count(examples).ravel())
    return Assessment(survey, tally, DecodeOptions(), **more)


def random_rows(seed: int) -> Examples:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(60, 1500))
    scores = rng.choice([rng.random(size), 10.0 ** rng.uniform(-8, 0, size)], axis=0)
    return Examples((rng.random(size) < 0.15 + 0.5 * scores).astype(np.uint8), scores)


def heaped_rows(seed: int) -> Examples:
    """The same with a few, many or no scores of exactly 0 and 1."""
    examples, rng = random_rows(seed), np.random.default_rng(seed)
    scores = examples.scores.copy()
    for end in (0.0, 1.0):
        scores[rng.random(len(scores)) < rng.choice([0.0, 0.01, 0.2])] = end
    return Examples(examples.labels, scores)


def random_survey(seed: int, smallest: int) -> Survey:
    rng = np.random.default_rng(seed)
    thresholds = rng.integers(1, 1000, 2) / 1000
    reference = rng.beta(0.7, 3.0, 300) if seed % 2 else None
    cells = int(rng.integers(2, 400))
    return exact_survey(
        Grid.nested(cells, reference=reference, thresholds=thresholds.tolist()), smallest
    )


def counted_content(assessment: Assessment) -> dict[str, Any]:
    """What a file holds of rows: all but estimates, which take longer and follow from it."""
    return {
        "survey": assessment.survey.to_json(),
        **published_json(published(assessment.survey, assessment.tally)),
    }


def counts_below(content: dict[str, Any]) -> dict[float, tuple[int, int]]:
    """What a file says of the rows at or below each of its edges; from its JSON alone."""
    grid = content["survey"]["grid"]
    edges = [grid["edges"][place] for place in content["kept"]]
    half = len(content["counters"]) // 2
    rows = content["counters"][:half], content["counters"][half:]
    below = [np.concatenate([[0], np.cumsum(row)]).tolist() for row in rows]
    return {edge: (below[0][i], below[1][i]) for i, edge in enumerate(edges)}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_no_file_and_no_difference_of_two_files_holds_a_count_from_1_to_9(
    data: int, one: int, other: int
) -> None:
    examples = heaped_rows(data)
    if min(examples.positives, len(examples) - examples.positives) < 10:
        return
    files = [
        json.loads(json.dumps(counted_content(assessed(random_survey(seed, 10), examples))))
        for seed in (one, other)
    ]
    first, second = map(counts_below, files)
    for file in files:
        half = len(file["counters"]) // 2
        for cell in zip(file["counters"][:half], file["counters"][half:], strict=True):
            assert min(cell) >= 10 or cell == (0, 0)
    known = first | second
    for edge in first.keys() & second.keys():
        assert first[edge] == second[edge]
    # Whoever has both files knows the counts between any two edges of either.
    for here, there in combinations(known, 2):
        between = [abs(known[there][label] - known[here][label]) for label in (0, 1)]
        assert min(between) >= 10 or between == [0, 0]


def test_a_released_file_reads_back_equal_and_holds_no_row_of_its_own(tmp_path: Path) -> None:
    before = assessed(random_survey(1, 10), random_rows(5))
    before.save(tmp_path / "assessment.json")
    after = Assessment.load(tmp_path / "assessment.json")
    assert after.survey == before.survey
    assert isinstance(after.tally, MergedTally)
    np.testing.assert_array_equal(after.histogram().counts, before.histogram().counts)
    np.testing.assert_array_equal(after.histogram().edges, before.histogram().edges)
    written = json.loads((tmp_path / "assessment.json").read_text())
    assert written.items() >= counted_content(before).items() == counted_content(after).items()
    again = replace(after, thresholds=(0.123,))
    assert again["recall@0.123"].value == before["recall@0.123"].value


def test_what_the_owner_keeps_has_all_cells_and_is_released_merged(tmp_path: Path) -> None:
    survey, examples = random_survey(2, 10), random_rows(5)
    tally = assessed(survey, examples).tally
    KeptTally(survey, tally).save(tmp_path / "own.tally")
    kept = KeptTally.load(tmp_path / "own.tally")
    assert kept.tally == tally
    assert published(survey, kept.tally).counters.min() >= 10


@pytest.mark.parametrize("change", ["count", "kept", "width", "dropped"])
def test_a_file_that_breaks_the_promise_is_refused(change: str, tmp_path: Path) -> None:
    content = assessed(random_survey(1, 10), random_rows(5)).to_json()
    if change == "count":
        content["counters"][0] = 9
    elif change == "kept":
        content["kept"][1] = content["kept"][2]
    elif change == "width":
        content["counters"] = content["counters"][:-2]
    else:
        del content["kept"]
    path = tmp_path / "assessment.json"
    path.write_text(json.dumps(content))
    with pytest.raises(FileInvalid):
        Assessment.load(path)


def test_a_file_whose_cell_holds_one_label_alone_is_refused(tmp_path: Path) -> None:
    content = assessed(random_survey(1, 10), random_rows(5)).to_json()
    held = len(content["counters"]) // 2
    place = next(i for i in range(held) if content["counters"][i] >= 10)
    content["counters"][place] = 0
    path = tmp_path / "assessment.json"
    path.write_text(json.dumps(content))
    with pytest.raises(FileInvalid, match="of either label, the survey's smallest cell, or nobody"):
        Assessment.load(path)
    content["counters"][held + place] = 0
    path.write_text(json.dumps(content))
    assert Assessment.load(path).tally.counters.reshape(2, -1)[:, place].tolist() == [0, 0]


def test_a_file_of_the_version_before_is_read(tmp_path: Path) -> None:
    survey = exact_survey(Grid.uniform(4), 0)
    content = assessed(survey, random_rows(5)).to_json() | {"format": "fedassay.assessment/2"}
    path = tmp_path / "assessment.json"
    path.write_text(json.dumps(content))
    assert Assessment.load(path).histogram().buckets == 4
    assert isinstance(fedassay.load(path), Assessment)


def test_fewer_rows_of_a_label_than_the_smallest_cell_publish_nothing() -> None:
    survey = exact_survey(Grid.nested(8), 10)
    rows = Examples([1] * 9 + [0] * 50, np.linspace(0.0, 1.0, 59))
    result = assessed(survey, rows)
    for attempt in (result.histogram, result.to_json):
        with pytest.raises(TooFewRows, match="fewer rows of one label"):
            attempt()


def test_a_classifier_that_is_never_wrong_has_one_cell_and_the_answer_says_why() -> None:
    survey = exact_survey(Grid.nested(50), 10)
    labels = np.repeat([0, 1], 100)
    result = assessed(survey, Examples(labels, np.where(labels, 0.9, 0.1)))
    auc = result["roc_auc"]
    assert isinstance(auc, TooCoarse)
    assert "at least 10 of either label" in auc.reason
    assert "--steps" not in str(result.estimates())
    assert result["prevalence"].value == 0.5


def test_metrics_at_a_threshold_that_was_merged_away_say_how_wide_they_are() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 2000)
    examples = Examples(labels, np.clip(rng.normal(0.45 + 0.1 * labels, 0.1), 0.0, 1.0))
    survey = exact_survey(Grid.nested(40, thresholds=[0.5, 0.51, 0.999]), 10)
    result = assessed(survey, examples, thresholds=(0.51, 0.999, 1 / 3))
    assert result["recall@0.51"].binning_sd == 0.0
    inside = result["specificity@0.333333"], result["recall@0.999"]
    assert all(each.binning_sd > 0.0 or isinstance(each, TooCoarse) for each in inside)
    assert "Inside a cell, and read between its edges: 0.999, 0.333333." in result.headline


def test_cells_of_one_label_alone_are_not_published() -> None:
    """Nobody of a label in a cell tells what label all in it have."""
    survey = exact_survey(Grid.explicit([0.0, 0.5, 1.0]).with_ends(), 10)
    tally = Tally(survey.fingerprint, (2,), np.array([0, 100, 50, 0, 0, 0, 50, 0]))
    assert published(survey, tally).counters.tolist() == [150, 50]


def test_only_exact_sums_on_one_level_of_the_nesting_have_a_smallest_cell() -> None:
    with pytest.raises(SettingInvalid, match="one nesting of cells"):
        exact_survey(Grid.uniform(3), 10)
    with pytest.raises(SettingInvalid, match="from 2 to"):
        exact_survey(Grid.nested(4), 1)
    two_levels = Hierarchy.regular(4, 2)
    with pytest.raises(SettingInvalid, match="on one level; found 2"):
        Survey(
            privacy=Privacy.SECURE,
            grid=Grid.nested(4),
            hierarchy=two_levels,
            mechanisms=(Exact(),) * two_levels.levels,
            smallest_cell=10,
        )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_no_sum_or_difference_of_shown_sites_and_all_together_holds_fewer(
    seed: int, sites: int
) -> None:
    survey = random_survey(seed, 10)
    rng = np.random.default_rng(seed)
    whole = random_rows(seed)
    owner = rng.choice(sites, len(whole), p=rng.dirichlet(np.full(sites, 0.6)))
    tallies = {
        str(site): Tally(
            survey.fingerprint, (1,), survey.grid.count(whole.rows(owner == site)).ravel()
        )
        for site in range(sites)
    }
    pooled = Tally(survey.fingerprint, (sites,), survey.grid.count(whole).ravel())
    if pooled.per_level(survey)[0].sum(axis=1).min() < 10:
        return
    shown, held_back = published_sites(survey, tallies)
    assert sorted([*shown, *held_back]) == sorted(tallies)
    files = [published(survey, pooled), *shown.values()]
    for size in range(len(shown) + 1):
        for chosen in combinations(range(1, len(files)), size):
            edges = _common([files[0].edges(survey), *(files[i].edges(survey) for i in chosen)])
            rest = _on(edges, files[0], survey) - sum(_on(edges, files[i], survey) for i in chosen)
            # Of each label ten or more, or nobody at all.
            assert ((rest.min(axis=0) >= 10) | (rest.max(axis=0) == 0)).all()
            assert (rest >= 0).all()


def _common(edges: list[FloatArray]) -> FloatArray:
    common = edges[0]
    for more in edges[1:]:
        common = np.intersect1d(common, more)
    return common


def _on(edges: FloatArray, tally: Tally, survey: Survey) -> Any:
    starts = np.searchsorted(tally.edges(survey), edges[:-1])
    return np.add.reduceat(tally.per_level(survey)[0], starts, axis=1)


def test_a_client_refuses_sums_that_publish_smaller_counts_than_it_allows() -> None:
    policy = ClientPolicy(exact_sums=True, smallest_cell=10)
    policy.check(exact_survey(Grid.nested(4), 10))
    policy.check(exact_survey(Grid.nested(4), 11))
    for survey in (exact_survey(Grid.nested(4), 9), exact_survey(Grid.nested(4), 0)):
        with pytest.raises(SurveyRefused, match="no count below 10"):
            policy.check(survey)
        for off in (0, 1):
            ClientPolicy(exact_sums=True, smallest_cell=off).check(survey)


def test_published_cells_do_not_add_up() -> None:
    survey = exact_survey(Grid.nested(8), 10)
    seen = assessed(survey, random_rows(1)).tally
    merged = published(survey, seen)
    assert isinstance(merged, MergedTally)
    with pytest.raises(SettingInvalid, match=r"Add tallies before they are published"):
        merged + seen


def test_sites_of_a_survey_without_a_smallest_cell_are_all_shown_as_counted() -> None:
    survey = exact_survey(Grid.uniform(2), 0)
    tallies = {"tiny": Tally(survey.fingerprint, (1,), np.array([1, 0, 0, 1]))}
    assert published_sites(survey, tallies) == (tallies, ())


def test_a_file_with_a_group_that_the_survey_does_not_name_is_refused(tmp_path: Path) -> None:
    labels, scores = [0, 1] * 600, [i / 1200 for i in range(1200)]
    sexes = ["F"] * 600 + ["M"] * 600
    path = tmp_path / "assessment.json"
    fedassay.simulate(labels, scores, group=sexes, seed=0).save(path)
    content = json.loads(path.read_text())
    counters = content["groups"]["counters"]
    counters["X"] = counters.pop("F")
    path.write_text(json.dumps(content))
    with pytest.raises(FileInvalid, match=r"groups are those that the survey names; found others"):
        Assessment.load(path)


def test_published_cells_of_two_tallies_are_not_added_up() -> None:
    survey = exact_survey(Grid.nested(16), 10)
    tallies = [
        Tally(survey.fingerprint, (5,), survey.grid.count(random_rows(seed)).ravel())
        for seed in (1, 2)
    ]
    first, second = (published(survey, tally) for tally in tallies)
    assert isinstance(first, MergedTally)
    for added in (second, tallies[1]):
        with pytest.raises(SettingInvalid, match=r"each tally has its own\. Add tallies before"):
            first + added
