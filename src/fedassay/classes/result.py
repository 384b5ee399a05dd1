"""What a simulation about classes gives: estimates beside the exact figures of its rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedassay.checks import unknown
from fedassay.classes.class_survey import ClassDesign, ClassSurvey
from fedassay.classes.confusion_matrix import ConfusionMatrix, confusion_matrix
from fedassay.classes.design import design_classes
from fedassay.classes.exact_figures import exact_figures
from fedassay.classes.figures import class_estimates
from fedassay.classes.one_vs_rest import ClassTables, decode_classes
from fedassay.classes.tallies import ClassCohort, tally_parts
from fedassay.decoding import DecodeOptions
from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate, NotEnoughData
from fedassay.estimate_table import estimate_header, estimate_rows
from fedassay.mechanisms import Guarantee
from fedassay.planning.request import SurveyRequest
from fedassay.presentation import aligned, html_table
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import counted_rows
from fedassay.tally import Tally


@dataclass(frozen=True, eq=False, repr=False)
class ClassAssessment:
    """Every figure of more than two classes with its errors, from the tallies of all parts."""

    survey: ClassSurvey
    tallies: tuple[Tally, ...]
    exact_values: Mapping[str, float | None]
    """Of the rows at hand; None where a class never occurs."""

    @cached_property
    def tables(self) -> ClassTables:
        """A histogram for each class against the rest, and what else was counted."""
        return decode_classes(self.survey, self.tallies, decode_options=DecodeOptions())

    @cached_property
    def _estimates(self) -> dict[str, Estimate]:
        return class_estimates(self.tables)

    def estimates(self) -> dict[str, Estimate]:
        """Every figure by name."""
        return dict(self._estimates)

    @property
    def confusion(self) -> ConfusionMatrix | NotEnoughData:
        """Who is taken for whom, or why that cannot be said."""
        return confusion_matrix(self.tables)

    @property
    def guarantee(self) -> Guarantee:
        """What one unit is promised for all parts together."""
        return self.survey.guarantee

    def __getitem__(self, name: str) -> Estimate:
        if name not in self._estimates:
            raise SettingInvalid(unknown(name, self._estimates, "a figure of these classes"))
        return self._estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._estimates)

    def __len__(self) -> int:
        return len(self._estimates)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        header = estimate_header(exact=self.exact_values, trials=1)
        rows = estimate_rows(self._estimates, exact=self.exact_values)
        return list(header), [list(row) for row in rows]

    def __str__(self) -> str:
        return f"{self.guarantee.sentence()}\n\n{aligned(*self._table())}"

    def __repr__(self) -> str:
        return f"<ClassAssessment: {len(self.survey.names)} classes, {len(self)} figures>"

    def _repr_html_(self) -> str:
        return html_table(*self._table())


def simulate_cohort(
    survey: ClassSurvey,
    cohort: ClassCohort,
    *,
    randomness: SimulatedRandomness,
    exact: Mapping[str, float | None] | None = None,
    each_client: bool = False,
) -> ClassAssessment:
    """Ask the cohort every part, and put its answers together.

    >>> from fedassay.classes.rows import ClassRows
    >>> rows = ClassRows([0, 1, 2] * 40, np.tile(np.eye(3), (40, 1)), [0, 1, 2])
    >>> survey = design_classes(SurveyRequest(smallest_cell=0, clients=120), rows.names)
    >>> randomness = SimulatedRandomness(np.random.SeedSequence(0))
    >>> simulate_cohort(survey, ClassCohort.of(rows), randomness=randomness)["accuracy"].value
    1.0
    """
    tallies = tally_parts(survey, cohort, randomness=randomness, each_client=each_client)
    values = exact_figures(cohort.rows) if exact is None else exact
    return ClassAssessment(survey, tallies, values)


def run_classes(
    request: SurveyRequest, cohort: ClassCohort, *, design: ClassDesign | None, seed: int | None
) -> ClassAssessment:
    """One federation over the rows, as `fedassay simulate --scores` runs its first trial."""
    held = counted_rows(cohort.held, request.unit, is_local=request.privacy.is_local)
    survey = design_classes(replace(request, examples=held), cohort.rows.names, design=design)
    (sequence,) = np.random.SeedSequence(seed).spawn(1)
    return simulate_cohort(survey, cohort, randomness=SimulatedRandomness(sequence))
