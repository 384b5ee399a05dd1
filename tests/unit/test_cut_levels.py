"""Levels chosen after a look: cells of their own for each label, and weighted sums."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay import Grid, Hierarchy
from fedassay.cut_levels import CutLevels, levels_from_json
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.examples import IntArray
from fedassay.files import Fields, canonical, parse_json
from fedassay.survey_json import survey_from_bytes, survey_from_json
from tests.steps import CUTS, WEIGHTS, first_local, first_shared, second_local, second_shared

MAX_CUT_CELLS = 2**13
MAX_CUT_LEAVES = 2**11
MAX_CUT_LEVELS = 2**5
MAX_WEIGHT = 2**10

LEVELS = CutLevels(6, CUTS, WEIGHTS)


@st.composite
def chosen(draw: st.DrawFn) -> CutLevels:
    leaves = draw(st.integers(1, 12))

    def starts() -> tuple[int, ...]:
        return (0, *sorted(draw(st.sets(st.integers(1, leaves - 1))) if leaves > 1 else ()))

    cuts = tuple((starts(), starts()) for _ in range(draw(st.integers(1, 3))))
    weight = st.integers(-MAX_WEIGHT, MAX_WEIGHT)
    row = st.lists(weight, min_size=leaves, max_size=leaves).map(tuple)
    weights = draw(st.none() | st.tuples(row, row).filter(lambda rows: any(map(any, rows))))
    return CutLevels(leaves, cuts, weights)


def counts_of(levels: CutLevels, seed: int) -> IntArray:
    return np.random.default_rng(seed).integers(0, 100, (2, levels.leaves))


def summed(levels: CutLevels, counts: IntArray, level: int) -> list[list[int]]:
    """A level's counters, example by example."""
    if level == len(levels.cuts):
        assert levels.weights is not None
        return [
            [sum(int(counts[y, leaf]) * levels.weights[y][leaf] for leaf in range(levels.leaves))]
            for y in (0, 1)
        ]
    sums = [[0] * max(len(starts) for starts in levels.cuts[level]) for _ in (0, 1)]
    for y in (0, 1):
        for leaf in range(levels.leaves):
            sums[y][placed(levels, leaf, level, y)] += int(counts[y, leaf])
    return sums


def placed(levels: CutLevels, leaf: int, level: int, label: int) -> int:
    cell = -1
    for start in levels.cuts[level][label]:
        cell += start <= leaf
    return cell


@given(chosen(), st.integers(0, 2**31))
def test_counters_are_what_a_loop_over_the_leaves_adds_up(levels: CutLevels, seed: int) -> None:
    counts = counts_of(levels, seed)
    assert levels.levels == len(levels.cuts) + (levels.weights is not None)
    for level in range(levels.levels):
        wanted = summed(levels, counts, level)
        assert levels.at_level(counts, level).tolist() == wanted
        assert levels.at_level(counts.astype(np.float64), level).tolist() == wanted
        assert levels.cells_per_level[level] == len(wanted[0])


@given(chosen(), st.integers(0, 2**31))
def test_rows_times_leaves_are_the_counters(levels: CutLevels, seed: int) -> None:
    counts = counts_of(levels, seed)
    for level in range(levels.levels):
        rows = levels.rows(level)
        assert rows.shape == (2, levels.cells_per_level[level], levels.leaves)
        for label in (0, 1):
            product = rows[label] @ counts[label]
            assert product.tolist() == summed(levels, counts, level)[label]


@given(chosen())
def test_the_cell_of_a_leaf_is_the_last_that_starts_at_or_before_it(levels: CutLevels) -> None:
    leaf = np.arange(levels.leaves)
    for level in range(len(levels.cuts)):
        for label in (0, 1):
            wanted = [placed(levels, int(each), level, label) for each in leaf]
            assert levels.cell_of(leaf, level, label).tolist() == wanted


@given(chosen(), st.integers(0, 2**31))
def test_counters_beyond_the_cells_of_a_label_stay_empty(levels: CutLevels, seed: int) -> None:
    counts = counts_of(levels, seed) + 1
    for level, both in enumerate(levels.cuts):
        for label, starts in enumerate(both):
            counters = levels.at_level(counts, level)[label]
            assert (counters[: len(starts)] > 0).all()
            assert not counters[len(starts) :].any()
            assert not levels.rows(level)[label, len(starts) :].any()


@given(chosen())
def test_the_largest_weight_is_what_one_example_moves_a_level_at_most(levels: CutLevels) -> None:
    for level in range(levels.levels):
        moved = []
        for label in (0, 1):
            for leaf in range(levels.leaves):
                one = np.zeros((2, levels.leaves), dtype=np.int64)
                one[label, leaf] = 1
                moved.append(int(np.abs(levels.at_level(one, level)).sum()))
        assert levels.largest_weight(level) == max(moved)


@given(chosen())
def test_chosen_levels_survive_their_json(levels: CutLevels) -> None:
    text = canonical(levels.to_json())
    again = levels_from_json(Fields(parse_json(text, "levels"), "levels"), levels.leaves)
    assert again == levels
    assert again.cells_per_level == levels.cells_per_level
    assert canonical(again.to_json()) == text


def test_the_json_of_chosen_levels_is_this() -> None:
    assert canonical(LEVELS.to_json()).decode() == (
        '{"kind":"cuts","levels":[[[0,2,5],[0,3]],[[0,4],[0,1,2,4]]],'
        '"weights":[[-3,-2,-2,0,1,3],[-7,-1,0,0,2,5]]}'
    )
    assert "weights" not in CutLevels(6, CUTS).to_json()


@pytest.mark.parametrize("make", [lambda: second_shared(first_shared()),
                                  lambda: second_local(first_local()),
                                  first_shared, first_local])  # fmt: skip
def test_a_survey_of_two_steps_survives_its_bytes(make: Callable[[], Any]) -> None:
    survey = make()
    data = canonical(survey.to_json())
    again = survey_from_bytes(data)
    assert again == survey
    assert again.fingerprint == survey.fingerprint
    assert canonical(again.to_json()) == data


# --- hostile files ---------------------------------------------------------------------------

HOSTILE: list[dict[str, Any]] = [
    {"levels": None},
    {"levels": {}},
    {"levels": "[[0],[0]]"},
    {"levels": []},
    {"levels": [[]]},
    {"levels": [[[0]]]},
    {"levels": [[[0], [0], [0]]]},
    {"levels": [[[0], None]]},
    {"levels": [[[0], {"0": 0}]]},
    {"levels": [[[0], []]]},
    {"levels": [[[1], [0]]]},
    {"levels": [[[0, 3, 2], [0]]]},
    {"levels": [[[0, 2, 2], [0]]]},
    {"levels": [[[0, -1], [0]]]},
    {"levels": [[[0, 6], [0]]]},
    {"levels": [[[0, 10**9], [0]]]},
    {"levels": [[[0, 10**400], [0]]]},
    {"levels": [[[0, 10**4000], [0]]]},
    {"levels": [[[0, 2.5], [0]]]},
    {"levels": [[[0, 2.0], [0]]]},
    {"levels": [[[False, True], [0]]]},
    {"levels": [[[0, "2"], [0]]]},
    {"levels": [[list(range(7)), [0]]]},
    {"levels": [[[0] * 10**6, [0]]]},
    {"levels": [[[0], [0]]] * (MAX_CUT_LEVELS + 1)},
    {"levels": [[[0], [0]]] * 10**5},
    {"weights": None},
    {"weights": []},
    {"weights": [[1] * 6]},
    {"weights": [[1] * 6] * 3},
    {"weights": [[1] * 5, [1] * 6]},
    {"weights": [[1] * 7, [1] * 6]},
    {"weights": [[0] * 6, [0] * 6]},
    {"weights": [[1] * 6, [True] * 6]},
    {"weights": [[1] * 6, [0.5] * 6]},
    {"weights": [[1] * 6, ["1"] * 6]},
    {"weights": [[1] * 6, [MAX_WEIGHT + 1] * 6]},
    {"weights": [[1] * 6, [-MAX_WEIGHT - 1] * 6]},
    {"weights": [[1] * 6, [10**9] * 6]},
    {"weights": [[1] * 6, [10**4000] * 6]},
    {"weights": [[1] * 6, [1] * 10**6]},
    {"surprise": 1},
    {"fanouts": [6]},
    {"kind": "cut"},
    {"kind": 3},
    {"kind": "c" * 5000},
]


@pytest.mark.parametrize("changed", HOSTILE, ids=lambda changed: repr(changed)[:50])
def test_hostile_levels_are_refused_as_a_file(changed: dict[str, Any]) -> None:
    content = second_shared(first_shared(), CutLevels(6, CUTS[:1], WEIGHTS)).to_json()
    survey_from_json(content)
    hostile = {**content, "hierarchy": {**content["hierarchy"], **changed}}
    with pytest.raises(FileInvalid) as caught:
        survey_from_json(hostile)
    assert len(str(caught.value)) < 400
    # Not because other levels would need other mechanisms.
    if changed.get("levels") != []:
        assert "one mechanism per level" not in str(caught.value)


@pytest.mark.parametrize("name", ["kind", "levels"])
def test_levels_without_one_of_their_fields_are_refused(name: str) -> None:
    content = second_shared(first_shared()).to_json()
    del content["hierarchy"][name]
    with pytest.raises(FileInvalid, match=f'"{name}" is missing'):
        survey_from_json(content)


def test_weights_that_are_dropped_or_added_on_the_way_do_not_fit_the_mechanisms() -> None:
    weighted = second_shared(first_shared()).to_json()
    del weighted["hierarchy"]["weights"]
    with pytest.raises(FileInvalid, match="one mechanism per level"):
        survey_from_json(weighted)
    local = second_local(first_local()).to_json()
    local["hierarchy"]["weights"] = [[1] * 6, [2] * 6]
    with pytest.raises(FileInvalid, match="one mechanism per level"):
        survey_from_json(local)


def test_weights_are_refused_under_local_privacy() -> None:
    first = first_local()
    with pytest.raises(SettingInvalid, match="Drop the weights"):
        second_local(first, CutLevels(6, CUTS[:1], WEIGHTS), kinds="oue oue")
    content = second_local(first).to_json()
    content["hierarchy"]["levels"].pop()
    content["hierarchy"]["weights"] = [list(row) for row in WEIGHTS]
    content["mechanisms"] = [content["mechanisms"][0]] * 2
    with pytest.raises(FileInvalid, match="Drop the weights"):
        survey_from_json(content)


@pytest.mark.parametrize(
    ("leaves", "cuts", "weights"),
    [
        (6, [((0,), (0,))], None),
        (6, ([(0,), (0,)],), None),
        (6, (((0,),),), None),
        (6, ((0, 0),), None),
        (6, (((0,), (0,), (0,)),), None),
        (6, ((("0",), (0,)),), None),
        (6, (((True,), (0,)),), None),
        (0, (((0,), (0,)),), None),
        (MAX_CUT_LEAVES + 1, (((0,), (0,)),), None),
        (6.0, (((0,), (0,)),), None),
        (6, (), None),
        (6, (((0,), (0,)),) * (MAX_CUT_LEVELS + 1), None),
        (6, (((0,), (0,)),) * MAX_CUT_LEVELS, ((1,) * 6, (1,) * 6)),
        (6, (((0,), (0,)),), ((1,) * 6,)),
        (6, (((0,), (0,)),), ([1] * 6, [1] * 6)),
        (6, (((0,), (0,)),), ((1.5,) * 6, (1,) * 6)),
    ],
)
def test_levels_that_cannot_be_are_not_made(leaves: Any, cuts: Any, weights: Any) -> None:
    with pytest.raises(SettingInvalid):
        CutLevels(leaves, cuts, weights)


def test_levels_over_other_leaves_than_the_grids_are_refused() -> None:
    with pytest.raises(SettingInvalid, match="the grid's 6 cells"):
        second_shared(first_shared(), CutLevels(5, (((0, 2), (0,)),)))


def test_the_largest_chosen_levels_fit_into_a_survey_file() -> None:
    """Whatever can be made can be read: bytes, lists and items all stay within their limits."""
    leaf = tuple(range(MAX_CUT_LEAVES))
    edges = np.arange(MAX_CUT_LEAVES + 1) / MAX_CUT_LEAVES
    edges[1:-1] += 1e-7 / 3
    listed = {"grid": Grid.explicit(edges).to_json()}
    some = leaf[:1] + leaf[-MAX_CUT_CELLS // MAX_CUT_LEVELS + 1 :]
    many = CutLevels(MAX_CUT_LEAVES, ((some, some),) * MAX_CUT_LEVELS)
    fine = CutLevels(MAX_CUT_LEAVES, ((leaf, leaf),) * (MAX_CUT_CELLS // MAX_CUT_LEAVES))
    heavy = CutLevels(MAX_CUT_LEAVES, ((leaf, leaf),) * 3, ((-MAX_WEIGHT,) * MAX_CUT_LEAVES,) * 2)
    assert sum(many.cells_per_level) == sum(fine.cells_per_level) == MAX_CUT_CELLS
    before = first_local(leaves=MAX_CUT_LEAVES)
    surveys = [
        second_local(before, levels, kinds=" ".join(["oue"] * levels.levels))
        for levels in (many, fine)
    ]
    surveys.append(second_shared(first_shared(leaves=MAX_CUT_LEAVES), heavy))
    for survey in surveys:
        for content in (survey.to_json(), survey.to_json() | listed):
            assert survey_from_bytes(canonical(content)).hierarchy == survey.hierarchy


def test_more_cells_than_a_fit_takes_are_refused() -> None:
    leaf = tuple(range(MAX_CUT_LEAVES))
    levels = ((leaf, leaf),) * (MAX_CUT_CELLS // MAX_CUT_LEAVES)
    CutLevels(MAX_CUT_LEAVES, levels)
    for cuts, weights in (
        ((*levels, ((0,), (0,))), None),
        (levels, ((1,) * MAX_CUT_LEAVES,) * 2),
    ):
        with pytest.raises(SettingInvalid, match="found 8,193"):
            CutLevels(MAX_CUT_LEAVES, cuts, weights)


def test_one_level_more_is_refused_before_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[CutLevels] = []

    def recorded(self: CutLevels) -> None:
        made.append(self)

    monkeypatch.setattr(CutLevels, "__post_init__", recorded)
    for hostile in (
        {"levels": [[[0], [0]]] * (MAX_CUT_LEVELS + 1)},
        {"levels": [[list(range(7)), [0]]]},
        {"levels": [[[0], [0]]], "weights": [[1] * 7, [1] * 6]},
    ):
        with pytest.raises(FileInvalid):
            levels_from_json(Fields({"kind": "cuts", **hostile}, "levels"), 6)
    assert made == []


def test_other_kinds_of_levels_take_no_weights() -> None:
    with pytest.raises(FileInvalid, match="unknown field"):
        levels_from_json(Fields({"kind": "tree", "fanouts": [6], "weights": []}, "levels"), 6)
    tree = levels_from_json(Fields({"kind": "tree", "fanouts": [6]}, "levels"), 6)
    assert tree == Hierarchy(6, (6,))
    assert tree.largest_weight(0) == 1
