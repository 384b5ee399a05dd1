"""What K classes cost by each way to ask: the predicted error of one class's ROC AUC."""

from dataclasses import dataclass
from typing import Any

from fedassay.classes.class_design import ClassDesign
from fedassay.classes.class_survey import (
    draws_one_part,
    exact_survey,
)
from fedassay.classes.design import (
    check_class_request,
    possible_designs,
    smallest_error,
)
from fedassay.planning.request import SurveyRequest


@dataclass(frozen=True, slots=True)
class DesignCost:
    """One way to ask about classes, and how well it tells a class."""

    design: ClassDesign
    draws_one_part: bool
    cells: int
    error: float
    """Standard error of the ROC AUC of a class that is one of K alike."""

    def to_json(self) -> dict[str, Any]:
        """In JSON's terms."""
        return {
            "design": self.design.value,
            "draws_one_part": self.draws_one_part,
            "cells": self.cells,
            "error": self.error,
        }


def design_costs(request: SurveyRequest, names: tuple[str, ...]) -> list[DesignCost]:
    """Every possible design with its best grid, the best first; of exact sums there is one.

    >>> from fractions import Fraction
    >>> from fedassay.mechanisms import Privacy
    >>> asked = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(2), clients=100_000)
    >>> [each.design.value for each in design_costs(asked, tuple("abcdefghij"))]
    ['own', 'drawn', 'every']
    """
    check_class_request(request, None)
    if not request.privacy.spends_epsilon:
        cells = exact_survey(request, names).parts[0].survey.grid.cells
        return [DesignCost(ClassDesign.EVERY, False, cells, 0.0)]
    found = []
    for design in possible_designs(request, len(names)):
        error, grid = smallest_error(request, len(names), design)
        drawn = draws_one_part(request, design)
        found.append(DesignCost(design, drawn, grid.cells, error))
    return sorted(found, key=lambda each: each.error)
