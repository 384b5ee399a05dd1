import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay import (
    DecodeOptions,
    Exact,
    Grid,
    Hierarchy,
    Polya,
    Preset,
    Survey,
    SurveyRequest,
    Tally,
    Unit,
)
from fedassay.decoding import decode
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.files import canonical
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import AnyMechanism, Neighbours, Privacy, RandomizedResponse, UnitKind
from fedassay.mechanisms.shuffled_promise import ShuffledPromise
from fedassay.planning.search import design_survey
from fedassay.survey_json import load_survey, survey_from_json
from tests.surveys import flat_survey, local_survey, small_survey

MAX_JSON_BYTES = 512 * 2**20

DIGEST = "ab" * 32

SURVEYS = {
    "default": design_survey(SurveyRequest()).survey,
    "paper": design_survey(SurveyRequest(preset=Preset.PAPER, smallest_cell=0)).survey,
    "thresholds": design_survey(SurveyRequest(thresholds=(0.1, 0.3))).survey,
    "height": design_survey(SurveyRequest(height=3, fanout=4, smallest_cell=0)).survey,
    "model": design_survey(SurveyRequest(model_digest=DIGEST, minimum_reports=5)).survey,
    "client": design_survey(SurveyRequest(unit=Unit(UnitKind.CLIENT, 100))).survey,
    "two cells": flat_survey(Grid.given_classifier(0.1)),
}


@pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS.keys())
def test_a_survey_survives_its_file(survey: Survey, tmp_path: Path) -> None:
    survey.save(tmp_path / "survey.json")
    again = load_survey(tmp_path / "survey.json")
    assert again == survey
    assert again.fingerprint == survey.fingerprint
    assert canonical(again.to_json()) == canonical(survey.to_json())


def test_the_fingerprint_changes_with_every_field() -> None:
    base = small_survey(4)
    variants = [
        base,
        small_survey(5),
        replace(base, grid=Grid.explicit([0, 0.2, 0.5, 0.75, 1])),
        replace(base, hierarchy=Hierarchy.flat(4), mechanisms=(Exact(),)),
        replace(base, unit=Unit(UnitKind.CLIENT, 1)),
        replace(base, unit=Unit(UnitKind.CLIENT, 2)),
        replace(base, minimum_reports=3),
        replace(base, model_digest=DIGEST),
        replace(base, model_digest="cd" * 32),
    ]
    assert len({survey.fingerprint for survey in variants}) == len(variants)


def test_the_fingerprint_changes_with_every_field_of_a_noisy_survey() -> None:
    halves, thirds = (OneLevel((Fraction(1, k), Fraction(k - 1, k))) for k in (2, 3))
    local = local_survey(cells=4, fanouts=(2, 2), kinds="grr grr")
    variants = [
        replace(local, level_policy=halves),
        replace(local, level_policy=thirds),
        replace(local, level_policy=replace(halves, by_hash=True)),
        replace(local, minimum_reports=9),
        replace(local, minimum_reports=9, colluders=1),
        local_survey(cells=4, fanouts=(2, 2), kinds="grr grr", allow_empty=True),
        local_survey(cells=4, fanouts=(2, 2), kinds="oue oue"),
        local_survey(cells=4, fanouts=(2, 2), kinds="oue oue", allow_empty=True),
        local_survey(cells=4, fanouts=(2, 2), kinds="oue grr"),
        local_survey(Fraction(2), cells=4, fanouts=(2, 2), kinds="grr grr"),
        replace(local, unit=Unit(UnitKind.CLIENT, 1)),
        polya_survey(Fraction(1), colluders=0),
        polya_survey(Fraction(1), colluders=1),
        polya_survey(Fraction(2), colluders=0),
    ]
    assert len({survey.fingerprint for survey in variants}) == len(variants)


def polya_survey(epsilon: Fraction, *, colluders: int) -> Survey:
    return Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(4),
        hierarchy=Hierarchy.flat(4),
        mechanisms=(Polya(epsilon, 1, 5 - colluders),),
        minimum_reports=5,
        colluders=colluders,
    )


def test_clients_on_one_level_each_spend_the_largest_epsilon() -> None:
    """A client may be on any level: the promise is that of the weakest."""
    hierarchy = Hierarchy(4, (2, 2))
    uneven = (RandomizedResponse(Fraction(1), 2), RandomizedResponse(Fraction(4), 4))
    half = Fraction(1, 2)
    survey = Survey(
        privacy=Privacy.LOCAL,
        grid=Grid.uniform(4),
        hierarchy=hierarchy,
        mechanisms=uneven,
        level_policy=OneLevel((half, half)),
        minimum_reports=1,
    )
    assert survey.epsilon == survey.guarantee.epsilon == 4
    noisy = Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(4),
        hierarchy=hierarchy,
        mechanisms=(Polya(Fraction(1), 1, 5), Polya(Fraction(4), 1, 5)),
        minimum_reports=5,
    )
    assert noisy.epsilon == 5
    assert replace(noisy, level_policy=OneLevel((half, half))).epsilon == 4


@pytest.mark.parametrize("privacy", Privacy)
def test_each_privacy_model_takes_its_own_mechanisms_only(privacy: Privacy) -> None:
    own: dict[Privacy, AnyMechanism] = {
        Privacy.SECURE: Exact(),
        Privacy.DISTRIBUTED: Polya(Fraction(1), 1, 5),
        Privacy.SITE: Polya(Fraction(1), 1, 1),
        Privacy.LOCAL: RandomizedResponse(Fraction(1), 4),
        Privacy.SHUFFLED: RandomizedResponse(Fraction(1), 4),
    }
    promise = ShuffledPromise(Fraction(1), Fraction(1, 10**8))
    for mechanism in own.values():
        made = partial(
            Survey,
            privacy=privacy,
            grid=Grid.uniform(4),
            hierarchy=Hierarchy.flat(4),
            mechanisms=(mechanism,),
            minimum_reports=5,
            shuffled=promise if privacy is Privacy.SHUFFLED else None,
        )
        if mechanism == own[privacy]:
            assert made().privacy is privacy
        else:
            rule = f"{privacy.value} privacy goes with|noise must be sized for"
            with pytest.raises(SettingInvalid, match=rule):
                made()


def test_a_survey_with_colluders_survives_its_file(tmp_path: Path) -> None:
    survey = polya_survey(Fraction(1, 3), colluders=2)
    survey.save(tmp_path / "survey.json")
    again = load_survey(tmp_path / "survey.json")
    assert again == survey
    assert again.mechanisms == (Polya(Fraction(1, 3), 1, 3),)


def test_a_survey_that_says_a_thing_in_another_way_is_refused() -> None:
    """2/6 is 1/3, and a hash of the file would not be the survey's fingerprint."""
    content = polya_survey(Fraction(1, 3), colluders=0).to_json()
    survey_from_json(content)
    for epsilon in ("2/6", "01/3"):
        changed = {**content, "mechanisms": [{"kind": "polya", "epsilon": epsilon}]}
        with pytest.raises(FileInvalid, match="everything in one way"):
            survey_from_json(changed)


@pytest.mark.parametrize(("kind", "name"), [("oue", "q"), ("grr", "p")])
def test_a_survey_that_states_another_probability_is_refused(kind: str, name: str) -> None:
    content = local_survey(Fraction(1), kinds=kind).to_json()
    (mechanism,) = content["mechanisms"]
    numerator, _, denominator = mechanism[name].partition("/")
    survey_from_json(content)
    for changed in (f"{int(numerator) - 1}/{denominator}", f"{int(numerator) + 1}/{denominator}"):
        with pytest.raises(FileInvalid, match="as the other fields have it"):
            survey_from_json({**content, "mechanisms": [{**mechanism, name: changed}]})


def test_a_promise_names_its_neighbours_and_whom_to_trust() -> None:
    exact = small_survey().guarantee
    noisy = polya_survey(Fraction(1), colluders=2).guarantee
    local = local_survey(Fraction(1)).guarantee
    assert (exact.epsilon, exact.neighbours) == (None, None)
    assert (noisy.epsilon, noisy.neighbours) == (Fraction(1), Neighbours.ADD_OR_REMOVE)
    assert (local.epsilon, local.neighbours, local.trust) == (
        Fraction(1),
        Neighbours.REPLACE,
        "nobody",
    )
    assert "secure aggregation" in exact.trust
    assert "secure aggregation" in noisy.trust
    assert (noisy.minimum_reports, noisy.colluders) == (5, 2)


def test_reports_of_empty_clients_are_not_taken_for_examples() -> None:
    """20,000 reports, half of them empty: 10,000 examples within eight standard deviations.

    The sum over 8 cells has variance below 8 x 20,000 q + 10,000 / (1/2 - q)^2 / 4 with
    q = 1 / (e^5 + 1), so a standard deviation below 150.
    """
    survey = local_survey(Fraction(5), allow_empty=True)
    counts = np.array([[4000, 1000, 0, 0], [0, 0, 2000, 3000]])
    (mechanism,) = survey.mechanisms
    drawn = mechanism.cohort(counts, reports=20_000, generator=np.random.default_rng(5))
    tally = Tally(survey.fingerprint, (20_000,), drawn.ravel())
    total = float(decode(survey, tally, decode_options=DecodeOptions()).counts.sum())
    assert abs(total - 10_000) < 8 * 150


def test_the_fingerprint_is_the_hash_of_the_file_however_it_is_laid_out(tmp_path: Path) -> None:
    survey = small_survey()
    shuffled = dict(reversed(survey.to_json().items()))
    (tmp_path / "s.json").write_text(json.dumps(shuffled, indent=3))
    assert load_survey(tmp_path / "s.json").fingerprint == survey.fingerprint


@pytest.mark.parametrize(
    "make",
    [
        lambda s: replace(s, hierarchy=Hierarchy.flat(9), mechanisms=(Exact(),)),
        lambda s: replace(s, mechanisms=(Exact(),) * 3),
        lambda s: replace(s, minimum_reports=0),
        lambda s: replace(s, model_digest="abc"),
        lambda s: replace(s, unit=Unit(UnitKind.CLIENT, 0)),
        lambda s: replace(s, unit=Unit(UnitKind.CLIENT, 2**20 + 1)),
        lambda s: replace(s, unit=Unit(UnitKind.EXAMPLE, 5)),
        lambda s: replace(s, colluders=s.minimum_reports),
        lambda s: replace(s, colluders=-1),
    ],
)
def test_a_survey_that_cannot_work_is_not_made(make: Callable[[Survey], Survey]) -> None:
    with pytest.raises(SettingInvalid):
        make(small_survey())


HOSTILE: list[tuple[str, Any]] = [
    ("format", "fedassay.survey/1"),
    ("format", ["fedassay.survey/1"]),
    ("surprise", 1),
    ("grid", None),
    ("grid", {"kind": "uniform", "cells": 10**30}),
    ("grid", {"kind": "uniform", "cells": -1}),
    ("grid", {"kind": "uniform", "cells": True}),
    ("grid", {"kind": "uniform", "cells": 4.0}),
    ("grid", {"kind": "uniform", "cells": 8}),
    ("grid", {"kind": "uniform", "cells": 4, "surprise": 0}),
    ("grid", {"kind": "edges", "edges": [0, 10**400, 1]}),
    ("grid", {"kind": "edges", "edges": [0, float("inf"), float("inf"), 1]}),
    ("grid", {"kind": "edges", "edges": [0, float("nan"), 1]}),
    ("grid", {"kind": "edges", "edges": [0, "0.5", 1]}),
    ("grid", {"kind": "edges", "edges": [0, True, 1]}),
    ("grid", {"kind": "edges", "edges": []}),
    ("grid", {"kind": "edges", "edges": {"0": 1}}),
    ("grid", {"kind": "edges", "edges": [0.0] * 2_000_000}),
    ("grid", {"kind": "e" * 10_000}),
    ("grid", {"kind": 3}),
    ("fanouts", []),
    ("fanouts", [2]),
    ("fanouts", [2, 2.0]),
    ("fanouts", [0, 4]),
    ("fanouts", [2**52] * 20),
    ("fanouts", [10**400]),
    ("fanouts", [2] * 1000),
    ("fanouts", "22"),
    ("levels", "one"),
    ("levels", None),
    ("mechanisms", []),
    ("mechanisms", [{"kind": "exact"}]),
    ("mechanisms", [{"kind": "exact"}] * 1000),
    ("mechanisms", [{"kind": "pickle"}] * 2),
    ("mechanisms", [{"kind": "exact", "epsilon": 1}] * 2),
    ("mechanisms", ["exact", "exact"]),
    ("mechanisms", [{}, {}]),
    ("unit", {"kind": "village", "max_examples": 1}),
    ("unit", {"kind": "client", "max_examples": 0}),
    ("unit", {"kind": "client", "max_examples": 10**30}),
    ("unit", {"kind": "client"}),
    ("unit", []),
    ("minimum_reports", 0),
    ("minimum_reports", "2"),
    ("minimum_reports", 2**40),
    ("minimum_reports", float("nan")),
    ("model_digest", "AB" * 32),
    ("model_digest", 5),
    ("model_digest", "a" * 10_000),
]


@pytest.mark.parametrize(("field", "value"), HOSTILE)
def test_a_hostile_survey_is_refused_as_a_file(field: str, value: object) -> None:
    with pytest.raises(FileInvalid) as caught:
        survey_from_json({**small_survey().to_json(), field: value})
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("field", sorted(small_survey().to_json()))
def test_a_survey_without_one_of_its_fields_is_refused(field: str) -> None:
    content = small_survey().to_json()
    del content[field]
    with pytest.raises(FileInvalid):
        survey_from_json(content)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.sampled_from(sorted(small_survey().to_json())), json_values)
def test_any_json_in_any_field_is_a_survey_or_an_invalid_file(field: str, value: object) -> None:
    content = {**small_survey().to_json(), field: value}
    try:
        survey = survey_from_json(content)
    except FileInvalid:
        return
    assert survey.to_json()[field] == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"fedassay.survey/1"',
        "NaN",
        '{"format": NaN}',
        "[" * 100_000,
        '{"format": ' + "[" * 900 + "]" * 900 + "}",
        '{"a":' * 50_000,
        "1" * 10_000,
        '{"format": "fedassay.survey/1", "fanouts": [' + "9" * 5000 + "]}",
        "\x00",
        '{"format": "\\ud800"}',
    ],
)
def test_a_file_that_is_no_survey_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(FileInvalid) as caught:
        load_survey(path)
    assert len(str(caught.value).splitlines()) == 1


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_bytes(b"\xff\xfe\x00{" * 10)
    with pytest.raises(FileInvalid):
        load_survey(tmp_path / "s.json")


def test_an_oversized_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    with path.open("wb") as stream:
        stream.truncate(MAX_JSON_BYTES + 1)
    with pytest.raises(FileInvalid, match="at most"):
        load_survey(path)


def test_a_missing_file_or_a_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(FileInvalid):
            load_survey(path)


def test_a_failed_write_leaves_one_line_and_the_old_file(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("kept")
    for path in (old / "below.json", tmp_path, Path(), tmp_path / ("x" * 300)):
        with pytest.raises(FileInvalid):
            small_survey().save(path)
    assert old.read_text() == "kept"
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
