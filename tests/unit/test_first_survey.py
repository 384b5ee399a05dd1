"""The first of two surveys finds scores wherever they crowd, and says what both will cost."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fedassay import SurveyRequest, Unit
from fedassay.client import OPEN_POLICY
from fedassay.errors import SettingInvalid
from fedassay.files import canonical
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Privacy, UnitKind
from fedassay.planning.first_survey import FIRST_SHARE, first_grid, first_survey
from fedassay.survey_json import survey_from_bytes
from fedassay.survey_steps import FirstOfTwo

MAX_CUT_LEAVES = 2**11

SHARED = SurveyRequest(privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=1000)
LOCAL = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(5), clients=1000)


def test_the_grid_has_octaves_even_cells_and_the_thresholds() -> None:
    thresholds = (0.0, 1e-9, 0.123, 0.5, 1.0)
    edges = set(first_grid(thresholds).edges.tolist())
    wanted = {0.0, 1.0, 1e-9, 0.123}
    # Each octave from 2^-40 to 1/2 in two parts, from 2^-10 on in four, mirrored; and 128ths.
    for k in range(1, 41):
        wanted |= {2.0**-k, 1.0 - 2.0**-k}
        if k > 1:
            wanted |= {1.5 * 2.0**-k, 1.0 - 1.5 * 2.0**-k}
        if 1 < k <= 10:
            parts = [1.25 * 2.0**-k, 1.75 * 2.0**-k]
            wanted |= {*parts, *(1.0 - part for part in parts)}
    wanted |= {i / 128 for i in range(129)}
    assert edges == wanted
    assert first_grid().cells == len(wanted) - 3


def test_thresholds_that_are_edges_already_add_none() -> None:
    assert first_grid((0.5, 0.25, 2.0**-30)).edges.tolist() == first_grid().edges.tolist()


def test_shared_noise_spends_a_tenth_on_the_first_and_asks_everybody() -> None:
    survey = first_survey(SHARED)
    assert survey.step == FirstOfTwo(Fraction(1), Fraction(1))
    assert survey.epsilon == FIRST_SHARE == Fraction(1, 10)
    assert survey.total_epsilon == 1
    assert survey.hierarchy.levels == 3


def test_local_privacy_asks_a_tenth_of_the_clients_with_the_whole_epsilon() -> None:
    survey = first_survey(LOCAL)
    assert survey.step == FirstOfTwo(Fraction(5), Fraction(1, 10))
    assert survey.epsilon == survey.total_epsilon == 5
    assert isinstance(survey.level_policy, OneLevel)


@pytest.mark.parametrize("request_", [SHARED, LOCAL], ids=["shared", "local"])
def test_a_first_survey_is_what_was_asked_for_and_survives_its_bytes(
    request_: SurveyRequest,
) -> None:
    request = replace(
        request_,
        minimum_reports=50,
        unit=Unit(UnitKind.CLIENT, 3),
        thresholds=(0.123,),
        model_digest="ab" * 32,
    )
    survey = first_survey(request)
    assert (survey.minimum_reports, survey.unit) == (50, Unit(UnitKind.CLIENT, 3))
    assert survey.model_digest == "ab" * 32
    assert 0.123 in survey.grid.edges
    assert survey_from_bytes(canonical(survey.to_json())) == survey
    OPEN_POLICY.check(survey)


def test_a_first_survey_has_no_more_leaves_than_a_second_can_have() -> None:
    """Refused before anybody answers, not when the second is made."""
    odd = (np.arange(MAX_CUT_LEAVES) + 0.37) / MAX_CUT_LEAVES
    most = MAX_CUT_LEAVES - first_grid().cells
    survey = first_survey(replace(SHARED, thresholds=tuple(odd[:most].tolist())))
    assert survey.grid.cells == MAX_CUT_LEAVES
    with pytest.raises(SettingInvalid, match="thresholds make 2,049"):
        first_survey(replace(SHARED, thresholds=tuple(odd[: most + 1].tolist())))


def test_exact_sums_have_no_first_survey() -> None:
    with pytest.raises(SettingInvalid, match="exact sums tell where scores lie"):
        first_survey(SurveyRequest(privacy=Privacy.SECURE))
