"""What a simulation gives: an assessment beside the exact values that it should have found."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property

import numpy as np

from fedassay.assessment import Assessment
from fedassay.estimate_json import tracker_name
from fedassay.estimate_table import Exact
from fedassay.examples import ScoredClients
from fedassay.mechanisms import Keep
from fedassay.metrics.exact_rows import row_metrics
from fedassay.planning.search import SurveyDesign
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import rows_counted
from fedassay.simulation.two_steps import assess_cohort, stood_alone
from fedassay.sites.between import BetweenSites, SeenSites


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedAssessment(Assessment):
    """An assessment of rows that are at hand, with their exact metrics."""

    _: KW_ONLY
    exact_values: Mapping[str, float | None] = field(default_factory=dict)
    rows: int = 0
    counted: int = 0
    """How many of the rows the unit of privacy lets count."""
    clients: int | None = None
    """How many clients hold the rows; None where each row is one."""
    shown: SeenSites | None = None
    """Sites by their exact counts, as if each allowed that."""

    @cached_property
    def sites(self) -> BetweenSites | None:
        """Its sites: shown, seen, or by sums of moments; None where neither may be known."""
        return super().sites if self.shown is None else self.shown

    @property
    def exact(self) -> Exact | None:
        """Exact values by metric; None where a metric has none."""
        return self.exact_values

    @property
    def headline(self) -> str:
        """What was simulated, and under which promise."""
        held = "each row a client" if self.clients is None else f"{self.clients:,} clients"
        line = f"{self.rows:,} rows, {held}. {self.guarantee.sentence()}{self.cells_note}"
        alone = stood_alone(self)
        line += f"\n{alone}" if alone else ""
        if self.counted < self.rows:
            unit = self.survey.unit
            most, kind = 1 if self.survey.is_local else unit.max_examples, unit.kind.value
            chosen = "drawn at random" if unit.keep is Keep.RANDOM else "the latest"
            left_out = 100 * (1 - self.counted / self.rows)
            line += (
                f"\nCounted {self.counted:,} of these rows, and left out {left_out:.2g} %: at most "
                f"{most:,} of each {kind}, {chosen}. Raise max_examples to count more."
            )
        return line

    def to_dict(self) -> dict[str, float]:
        """As `Assessment.to_dict`, with exact values under names that end in `_exact`."""
        exact = {
            f"{tracker_name(name)}_exact": float(value)
            for name, value in self.exact_values.items()
            if value is not None
        }
        return super().to_dict() | exact


def simulated_assessment(
    design: SurveyDesign,
    cohort: ScoredClients,
    *,
    thresholds: tuple[float, ...],
    seed: int | None,
    shown: SeenSites | None = None,
) -> SimulatedAssessment:
    """One federation over the rows, as `fedassay simulate` runs its first trial."""
    (sequence,) = np.random.SeedSequence(seed).spawn(1)
    randomness = SimulatedRandomness(sequence)
    found = assess_cohort(design, cohort, thresholds=thresholds, randomness=randomness)
    return SimulatedAssessment(
        found.survey,
        found.tally,
        found.decode_options,
        thresholds,
        found.first,
        exact_values=row_metrics(cohort.examples, thresholds),
        rows=len(cohort.examples),
        counted=rows_counted(design.survey, cohort),
        clients=None if cohort.client_of_row is None else cohort.clients,
        shown=shown,
    )
