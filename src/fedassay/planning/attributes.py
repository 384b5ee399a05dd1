"""What it costs to tell groups apart, and what each attribute more costs that overlaps others.

An example is in one group of an attribute, so that one epsilon serves all its groups. Of a second
attribute it is in one group too: both are surveys of their own and share epsilon, or their values
are joined into one attribute of more and smaller groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

from fedassay.errors import SettingInvalid
from fedassay.planning.forecast import ErrorForecast
from fedassay.planning.grouped import request_for_one
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.planning.solve import predicted

MOST_GROUPS = 100


@dataclass(frozen=True, slots=True)
class AttributeCost:
    """How well a metric is known in each of an attribute's groups, all as large."""

    groups: int
    epsilon: Fraction | None
    forecast: ErrorForecast

    @property
    def half_width(self) -> float | None:
        """Half of a 95 % interval of the metric in one group; None where nothing is told."""
        return self.forecast.error_quantile() if self.forecast.is_available else None

    def to_json(self) -> dict[str, Any]:
        """In JSON's terms."""
        return {
            "groups": self.groups,
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "error": self.half_width,
        }


def attribute_costs(
    request: SurveyRequest, groups: Sequence[int], *, metric: str = "roc_auc"
) -> tuple[list[AttributeCost], AttributeCost | None]:
    """Each attribute with its share of epsilon, and all joined into one with the whole.

    >>> from fedassay.mechanisms import Privacy
    >>> asked = SurveyRequest(privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=40_000)
    >>> apart, joined = attribute_costs(asked, [2, 2])
    >>> [str(each.epsilon) for each in apart], joined.groups, str(joined.epsilon)
    (['1/2', '1/2'], 4, '1')
    """
    if not groups or min(groups) < 2 or prod(groups) > MOST_GROUPS**2:
        raise SettingInvalid(
            f"an attribute has 2 to {MOST_GROUPS} groups, and all together have at most "
            f"{MOST_GROUPS**2:,}; found {', '.join(map(str, groups)) or 'none'}. Write "
            "--groups F,M."
        )
    share = None if request.epsilon is None else request.epsilon / len(groups)
    apart = [_cost(replace(request, epsilon=share), each, metric) for each in groups]
    joined = _cost(request, prod(groups), metric) if len(groups) > 1 else None
    return apart, joined


def _cost(request: SurveyRequest, groups: int, metric: str) -> AttributeCost:
    one = request_for_one(request, groups)
    return AttributeCost(groups, request.epsilon, predicted(one, design_survey(one), metric))
