"""The assessment of more than two classes; in a simulation beside the exact figures of its rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedassay.checks import unknown
from fedassay.classes.class_design import ClassDesign
from fedassay.classes.class_survey import (
    ClassSurvey,
)
from fedassay.classes.confusion_matrix import ConfusionMatrix, confusion_matrix
from fedassay.classes.design import design_classes
from fedassay.classes.exact_figures import exact_figures
from fedassay.classes.figures import class_estimates
from fedassay.classes.one_vs_rest import ClassTables, decode_classes, units_heard
from fedassay.classes.published_parts import (
    PartTally,
    part_from_json,
    part_json,
    published_parts,
)
from fedassay.classes.survey_file import class_survey_from_json, class_survey_json
from fedassay.classes.tallies import ClassCohort, tally_parts
from fedassay.decoding import DecodeOptions, require_enough
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.estimate import Estimate, NotEnoughData
from fedassay.estimate_json import estimate_json, estimates_json
from fedassay.estimate_table import estimate_header, estimate_rows
from fedassay.files import Fields, as_path, read_json, write_json
from fedassay.mechanisms import Guarantee
from fedassay.planning.request import SurveyRequest
from fedassay.presentation import aligned, html_table
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import counted_rows
from fedassay.tally import Tally

CLASSES_FORMAT = "fedassay.class-assessment/1"
MOST_ASSESSMENT_BYTES = 2**28


@dataclass(frozen=True, eq=False, repr=False)
class ClassAssessment:
    """Every figure of more than two classes with its errors, from the tallies of all parts."""

    survey: ClassSurvey
    tallies: tuple[PartTally, ...]

    @property
    def beside(self) -> Mapping[str, float | None] | None:
        """Exact figures to stand beside the estimates, where there are some."""
        return None

    @cached_property
    def tables(self) -> ClassTables:
        """A histogram for each class against the rest, and what else was counted."""
        self.require_enough()
        return decode_classes(self.survey, self.tallies, decode_options=DecodeOptions())

    def require_enough(self) -> None:
        """Raise `TooFewReports` below the minimum of any part."""
        for part, tally in zip(self.survey.parts, self.tallies, strict=True):
            if isinstance(tally, Tally):
                require_enough(part.survey, tally)

    @property
    def reports(self) -> int:
        """How many units were heard: each in all parts, or each in one."""
        return units_heard(self.survey, self.tallies)

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
        header = estimate_header(exact=self.beside, trials=1)
        rows = estimate_rows(self._estimates, exact=self.beside)
        return list(header), [list(row) for row in rows]

    @property
    def headline(self) -> str:
        """What was gathered, and under which promise."""
        return (
            f"{self.reports:,} reports about {len(self.survey.names):,} classes. "
            f"{self.guarantee.sentence()}"
        )

    def __str__(self) -> str:
        return f"{self.headline}\n\n{aligned(*self._table())}"

    def __repr__(self) -> str:
        return f"<ClassAssessment: {len(self.survey.names)} classes, {len(self)} figures>"

    def _repr_html_(self) -> str:
        return html_table(*self._table())

    def figures_json(self) -> dict[str, Any]:
        """Estimates by name and, in a field of its own, the confusion matrix."""
        found = self.confusion
        matrix = found.to_json() if isinstance(found, ConfusionMatrix) else estimate_json(found)
        return {**estimates_json(self.estimates()), "confusion": matrix}

    def to_json(self) -> dict[str, Any]:
        """The file's content; raises `TooFewReports` below the minimum of any part.

        Guarantee: of exact sums only what may be published is in it (`published_parts`).
        """
        self.require_enough()
        return {
            "format": CLASSES_FORMAT,
            "survey": class_survey_json(self.survey),
            "parts": [part_json(each) for each in published_parts(self.survey, self.tallies)],
            "guarantee": self.guarantee.sentence(),
            "estimates": self.figures_json(),
        }

    def save(self, path: str | Path) -> None:
        """Write the file, whole or not at all; below the minimum there is none."""
        write_json(as_path(path), self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> "ClassAssessment":
        """Read a file; its figures are computed again from its counters."""
        where = str(path)
        fields = Fields(read_json(as_path(path), CLASSES_FORMAT, most=MOST_ASSESSMENT_BYTES), where)
        fields.only("format", "survey", "parts", "guarantee", "estimates")
        survey = class_survey_from_json(fields.get("survey"), where=where)
        listed = fields.get("parts")
        if not isinstance(listed, list) or len(listed) != len(survey.parts):
            raise FileInvalid(
                f'{where}: "parts" lists the sums of every part of the survey; found others. Make '
                "the file again with fedassay tally."
            )
        tallies = tuple(
            part_from_json(Fields(each, where), part, survey.smallest_cell, where)
            for part, each in zip(survey.parts, listed, strict=True)
        )
        found = cls(survey, tallies)
        found.require_enough()
        return found


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedClasses(ClassAssessment):
    """An assessment of classes on rows that are at hand, with their exact figures."""

    tallies: tuple[Tally, ...]
    exact_values: Mapping[str, float | None]
    """By the names of `estimates`; None where a class never occurs."""

    @property
    def beside(self) -> Mapping[str, float | None]:
        """The exact figures."""
        return self.exact_values


def simulate_cohort(
    survey: ClassSurvey,
    cohort: ClassCohort,
    *,
    randomness: SimulatedRandomness,
    exact: Mapping[str, float | None] | None = None,
    each_client: bool = False,
) -> SimulatedClasses:
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
    return SimulatedClasses(survey, tallies, values)


def run_classes(
    request: SurveyRequest, cohort: ClassCohort, *, design: ClassDesign | None, seed: int | None
) -> SimulatedClasses:
    """One federation over the rows, as `fedassay simulate --scores` runs its first trial."""
    held = counted_rows(cohort.held, request.unit, is_local=request.privacy.is_local)
    survey = design_classes(replace(request, examples=held), cohort.rows.names, design=design)
    (sequence,) = np.random.SeedSequence(seed).spawn(1)
    return simulate_cohort(survey, cohort, randomness=SimulatedRandomness(sequence))
