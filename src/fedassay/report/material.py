"""What the sections of a report are made of: an assessment, and what people say about it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property

from fedassay.assessment import Assessment
from fedassay.calibration import Calibrator
from fedassay.checks import require_type, require_whole
from fedassay.estimate import Estimate
from fedassay.histogram import ScoreHistogram
from fedassay.ledger import Entry
from fedassay.metrics import named_metrics
from fedassay.metrics.delta_method import why_one_class
from fedassay.metrics.named import AT_THRESHOLD, metric_name
from fedassay.report.threshold_table import ThresholdTable, threshold_table

USUAL_THRESHOLD = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDetails:
    """What only people know: it stands in the page as they wrote it.

    >>> ReportDetails(model="sepsis 2.1", outcome="sepsis within 48 hours").model
    'sepsis 2.1'
    """

    title: str = ""
    model: str = ""
    outcome: str = ""
    population: str = ""
    period: str = ""
    invited: int | None = None
    """How many clients were asked, where that is known."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "invited":
                if value is not None:
                    require_whole(value, "how many clients were invited", 1)
            else:
                require_type(value, str, f"a report's {each.name}", "Say it in words.")


@dataclass(frozen=True, eq=False)
class Material:
    """An assessment read once, for all sections."""

    assessment: Assessment
    details: ReportDetails
    calibrator: Calibrator | None = None
    ledger: tuple[Entry, ...] = ()
    """Entries of a ledger, of which those about this assessment's surveys are shown."""

    @property
    def histogram(self) -> ScoreHistogram:
        """The decoded counts."""
        return self.assessment.histogram()

    @cached_property
    def why_no_curves(self) -> str:
        """Why there is nothing to draw, where one class is missing or drowned in noise."""
        undefined = why_one_class(self.histogram)
        return "" if undefined is None else undefined.reason

    @cached_property
    def overall(self) -> Mapping[str, Estimate]:
        """Metrics that belong to no threshold, by name."""
        buckets = self.assessment.decode_options.buckets
        found = named_metrics(self.histogram, (), buckets=buckets)
        return {name: self.assessment.said(name, each) for name, each in found.items()}

    @cached_property
    def table(self) -> ThresholdTable:
        """What the slider computes from."""
        return threshold_table(self.histogram, [self.start, *self.assessment.thresholds])

    @property
    def rows(self) -> str:
        """How many rows were counted; about, where that is known with noise only."""
        is_noisy = not (self.histogram.noise.is_zero or self.assessment.survey.total_is_known)
        return f"{'about ' if is_noisy else ''}{self.histogram.total:,.0f}"

    @property
    def events(self) -> str:
        """How many of them are positive."""
        is_noisy = not self.histogram.noise.is_zero
        return f"{'about ' if is_noisy else ''}{self.histogram.total_positives:,.0f}"

    @property
    def start(self) -> float:
        """The threshold that the page opens with: the first that the assessment names."""
        return self.assessment.thresholds[0] if self.assessment.thresholds else USUAL_THRESHOLD

    def at_start(self, name: str) -> Estimate:
        """A metric at the threshold that the page opens with."""
        found = AT_THRESHOLD[name](self.histogram, self.start)
        return self.assessment.said(metric_name(name, self.start), found)
