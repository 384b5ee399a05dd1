"""What groups cost, and what attributes that overlap cost."""

from fractions import Fraction

import pytest

from fedassay.errors import SettingInvalid
from fedassay.mechanisms import Privacy
from fedassay.planning.attributes import attribute_costs
from fedassay.planning.request import SurveyRequest

ASKED = SurveyRequest(privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=20_000)


def test_overlapping_attributes_share_epsilon_exactly_and_joined_ones_keep_it() -> None:
    apart, joined = attribute_costs(ASKED, [2, 3, 2])
    assert [each.epsilon for each in apart] == [Fraction(1, 3)] * 3
    assert joined is not None
    assert (joined.groups, joined.epsilon) == (12, Fraction(1))
    assert attribute_costs(ASKED, [2])[1] is None


def test_a_group_is_told_as_well_as_a_survey_of_its_rows_alone() -> None:
    ((cost,), _) = attribute_costs(ASKED, [4])
    alone, _ = attribute_costs(
        SurveyRequest(privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=10_000), [2]
    )
    assert cost.half_width == pytest.approx(alone[0].half_width, rel=0.1)
    # Sampling alone: twice the rows are a factor of the square root of two.
    ((wider,), _) = attribute_costs(ASKED, [8])
    assert wider.half_width is not None
    assert cost.half_width is not None
    assert 1.25 * cost.half_width < wider.half_width < 2.5 * cost.half_width


@pytest.mark.parametrize("groups", [[], [1], [100, 100, 2]])
def test_what_is_no_attribute_is_refused(groups: list[int]) -> None:
    with pytest.raises(SettingInvalid, match="an attribute has 2 to 100 groups"):
        attribute_costs(ASKED, groups)
