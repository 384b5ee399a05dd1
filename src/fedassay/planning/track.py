"""A budget that lasts: one epsilon over many looks at a model, and how soon a change is seen.

What the looks spend adds up for who is asked at every one of them (sequential composition), so that
each spends an exact fraction of the whole. How soon a change is seen follows from the error of one
look, by the very alarms that will watch (`fedassay.tracking`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import hypot, isfinite, isnan
from typing import Any

from fedassay.calibration import ece
from fedassay.checks import require_number, require_type, require_whole
from fedassay.errors import SettingInvalid
from fedassay.estimate import NotEnoughData
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Privacy
from fedassay.metrics.named import metric_name
from fedassay.planning.forecast import (
    ErrorForecast,
    expected_histogram,
    expected_reports,
    model_for,
    no_forecast,
)
from fedassay.planning.noise_for_looks import NoiseForLooks, compare_noise
from fedassay.planning.open_settings import check_one_group, check_request
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import SurveyDesign, design_survey
from fedassay.planning.solve import predicted
from fedassay.sites.effects import scale_of
from fedassay.tracking.alarms import MODEL, Watch
from fedassay.tracking.delay import median_delay
from fedassay.tracking.gap_delay import median_gap_delay
from fedassay.tracking.gap_series import GapSeries, cuts_among, gaps_between

TRACK_PLAN_FORMAT = "fedassay.track-plan/1"
USUAL_SHIFTS = (-0.01, -0.02, -0.05)
USUAL_RISES = (0.01, 0.02, 0.05)
"""Of ECE, which a calibrated model has none of."""
_UNITS = {"months": 12, "weeks": 52}


@dataclass(frozen=True, slots=True)
class Looks:
    """How many looks there will be, and how many a year.

    >>> Looks.parse("months=12")
    Looks(count=12, per_year=12)
    """

    count: int
    per_year: int = 12

    def __post_init__(self) -> None:
        require_whole(self.count, "the looks to plan for", 2, 600)
        require_whole(self.per_year, "looks a year", 1, 366)

    @classmethod
    def parse(cls, text: str) -> "Looks":
        """From months=12 or weeks=104."""
        unit, equals, count = text.strip().partition("=")
        if unit not in _UNITS or not equals or not count.isdecimal():
            raise SettingInvalid(
                f"looks are planned as {' or '.join(f'{each}=12' for each in _UNITS)}; found "
                f"{text[:40]!r}."
            )
        return cls(int(count), _UNITS[unit])

    @property
    def unit(self) -> str:
        """What one look is called."""
        return "week" if self.per_year == _UNITS["weeks"] else "month"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrackPlan:
    """What each look spends and shows, and after how many a change is noticed."""

    request: SurveyRequest
    """Of all looks together."""
    looks: Looks
    metric: str
    watch: Watch
    epsilon: Fraction | None
    """Of one look; exactly a part of the whole."""
    design: SurveyDesign
    look: ErrorForecast
    """The metric's errors at one look."""
    delays: Mapping[float, float]
    """By how much the metric changes, half way through: the looks until half are noticed."""
    noise: NoiseForLooks | None = None
    """What noise whose losses add up in squares would gain, where noise is added to counts."""

    def to_json(self) -> dict[str, Any]:
        """In JSON's terms; a delay that has no end is null."""
        total = self.request.epsilon
        return {
            "format": TRACK_PLAN_FORMAT,
            "looks": self.looks.count,
            "looks_per_year": self.looks.per_year,
            "epsilon": None if total is None else str(total),
            "epsilon_per_look": None if self.epsilon is None else str(self.epsilon),
            "metric": self.metric,
            "value": self.look.value,
            "standard_error": self.look.standard_error if self.look.is_available else None,
            "false_alarms_per_year": self.watch.false_alarms,
            "watched": list(self.watch.metrics),
            "delays": {
                f"{shift:g}": delay if isfinite(delay) else None
                for shift, delay in self.delays.items()
            },
            "noise_for_looks": None if self.noise is None else self.noise.to_json(),
        }

    def lines(self) -> list[str]:
        """The plan in words."""
        unit = self.looks.unit
        lines = []
        if self.epsilon is not None:
            lines.append(
                f"Epsilon {self.request.epsilon} over {self.looks.count} {unit}s is exactly "
                f"{self.epsilon} ({float(self.epsilon):.4g}) a {unit} for who answers every one; "
                f"a ledger with a budget of {self.request.epsilon} takes {self.looks.count} "
                "such surveys and no more. Rows that are new each time spend it once."
            )
        if self.noise is not None:
            lines.append(self.noise.sentence())
        if not self.look.is_available:
            return [*lines, f"One {unit} shows nothing of {self.metric}: {self.look.reason}"]
        lines.append(
            f"One {unit} shows {self.metric} = {self.look.value:.4f} with a standard error of "
            f"{self.look.standard_error:.2g}. Alarms: at most {100 * self.watch.false_alarms:g} % "
            f"of years without change have any, over {len(self.watch.metrics)} metrics."
        )
        for shift, delay in self.delays.items():
            lasts = self.looks.count - self.looks.count // 2
            seen = f"noticed within {delay:.0f} {unit}{'s' if delay > 1 else ''}, half of the time"
            if delay > lasts:
                seen = "mostly not noticed while this plan lasts: ask more clients, or spend more"
            lines.append(f"  a change of {shift:+g} half way through: {seen}.")
        lines.append(
            f"Pass each {unit}'s assessment to the next survey (--reference last.json): where its "
            "noisy histogram found the scores costs nothing more."
        )
        return lines


def plan_track(
    request: SurveyRequest,
    looks: Looks,
    *,
    metric: str = "roc_auc",
    shifts: Sequence[float] | None = None,
    false_alarms: float = 0.05,
) -> TrackPlan:
    """Split one epsilon over the looks, and predict how soon a change in the metric is noticed.

    >>> from fedassay.mechanisms import Privacy
    >>> request = SurveyRequest(privacy=Privacy.DISTRIBUTED, epsilon=Fraction(6), clients=20_000)
    >>> made = plan_track(request, Looks(12), shifts=[-0.03])
    >>> made.epsilon, made.delays[-0.03] <= 2.0
    (Fraction(1, 2), True)
    """
    require_type(looks, Looks, "looks", "Write Looks(12).")
    check_one_group(request)
    check_request(request)
    each = replace(
        request, epsilon=None if request.epsilon is None else request.epsilon / looks.count
    )
    if shifts is None:
        shifts = USUAL_RISES if metric == GapSeries.metric else USUAL_SHIFTS
    design = design_survey(each)
    counted = _counted(each, design) if metric == GapSeries.metric else None
    found = predicted(each, design, metric) if counted is None else _ece(each, counted)
    # As `usual_metrics` has it, with the middle score that nobody knows yet.
    usual = (*MODEL, metric_name("flagged", 0.5))
    watched = usual if metric in usual else (*usual, metric)
    watch = Watch(watched, false_alarms, looks.per_year)
    # Of two steps a row is in the levels of both.
    steps = [design.survey, *([] if design.second is None else [design.second])]
    levels = sum(survey.hierarchy.levels for survey in steps)
    before = max(looks.count // 2, 1)
    delays = {}
    for shift in shifts if found.is_available else ():
        if counted is None:
            delays[shift] = _delay(found, metric, shift, watch=watch, before=before)
        else:
            # Published cells differ from look to look, and with them where rows may lie.
            tied = bool(design.survey.smallest_cell)
            gaps = gaps_between(counted, cuts_among(counted.edges), tied=tied)
            delays[shift] = median_gap_delay(gaps, shift, looks_before=before, watch=watch)
    return TrackPlan(
        request=request,
        looks=looks,
        metric=metric,
        watch=watch,
        epsilon=each.epsilon,
        design=design,
        look=found,
        delays=delays,
        noise=_noise(request, looks, levels),
    )


def _counted(each: SurveyRequest, design: SurveyDesign) -> ScoreHistogram:
    """What one look is expected to count."""
    return expected_histogram(
        design.survey,
        model_for(each),
        clients=expected_reports(each),
        decode_options=design.decode_options,
        second=design.second,
    )


def _ece(each: SurveyRequest, counted: ScoreHistogram) -> ErrorForecast:
    """One look's ECE of a model as the request describes it."""
    truth, found = ece(model_for(each), debiased=False), ece(counted)
    if isinstance(found, NotEnoughData):
        return no_forecast(found.reason, value=truth.value)
    low, high = found.interval()
    return ErrorForecast(
        value=truth.value,
        noise_sd=found.noise_sd,
        sampling_sd=found.sampling_sd,
        binning_bound=found.binning_bound,
        binning_sd=found.binning_sd,
        binning_bias=found.value - truth.value,
        half_width=(high - low) / 2.0,
    )


def _noise(request: SurveyRequest, looks: Looks, levels: int) -> NoiseForLooks | None:
    """Where noise is added to counts, which is discrete Laplace; local reports have none."""
    match request.privacy:
        case Privacy.SECURE | Privacy.LOCAL | Privacy.SHUFFLED:
            return None
        case Privacy.DISTRIBUTED | Privacy.SITE:
            return compare_noise(float(request.epsilon or 1), looks.count * levels)


def _delay(look: ErrorForecast, metric: str, shift: float, *, watch: Watch, before: int) -> float:
    """In looks, for a change by so much after some looks without any."""
    require_number(shift, "a change")
    scale = scale_of(metric)
    moved = scale.forward(look.value + shift) - scale.forward(look.value)
    if isnan(moved):
        raise SettingInvalid(
            f"{metric} is expected to be {look.value:.3g} and cannot change by {shift:+g}. Name a "
            "smaller change (--shift)."
        )
    # Alarms allow for binning as for luck, though it is the same at every look.
    told = scale.slope(look.value) * hypot(look.standard_error, look.binning_sd)
    spread = look.standard_error / hypot(look.standard_error, look.binning_sd)
    return median_delay(moved / told, looks_before=before, watch=watch, spread=spread)
