"""Groups compared with one of them: differences and ratios, with honest multiplicity."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import exp, inf, log, nan, sqrt
from typing import Any

from fedassay.assessment import Assessment
from fedassay.checks import unknown
from fedassay.comparison.difference import Difference
from fedassay.errors import SettingInvalid
from fedassay.estimate import (
    Estimate,
    Interval,
    NotEnoughData,
    check_confidence,
    normal_quantile,
    remedied,
)
from fedassay.estimate_json import estimates_json
from fedassay.groups.histograms import GroupCounts, group_counts
from fedassay.metrics.named import check_metric, metric_name, named_metric, named_metrics
from fedassay.presentation import aligned

AT_A_THRESHOLD = ("recall", "specificity", "precision", "flagged")
"""Equal opportunity, equal false alarms, predictive parity, and how many are acted on."""
OVERALL = ("roc_auc", "oe_ratio", "calibration_slope", "prevalence")
"""Discrimination, calibration within groups, and what no model can help."""
WORDS = {
    "recall": "equal opportunity",
    "specificity": "equal false alarms",
    "precision": "predictive parity",
    "flagged": "acted on",
    "oe_ratio": "calibration within groups",
    "calibration_slope": "calibration within groups",
}

_FINER = "Give a reference (--reference), or gather more rows."
"""What helps where cells are too coarse: groups are asked in one step."""


@dataclass(frozen=True, slots=True)
class Gap:
    """One group's figure against that of the group that all are compared with.

    `confidence` is that of the whole family: with `family` comparisons each interval misses with
    a probability of (1 - confidence) / family at most (Bonferroni), so that all of them together
    hold with the family's.

    >>> gap = Gap("recall@0.5", Estimate(0.7, sampling_sd=0.01), Estimate(0.8, sampling_sd=0.01), 4)
    >>> round(gap.difference.value, 3), gap.told_apart
    (-0.1, True)
    """

    metric: str
    figure: Estimate
    reference: Estimate
    family: int = 1
    """How many comparisons are made together."""
    confidence: float = 0.95

    def __post_init__(self) -> None:
        check_confidence(self.confidence)

    @property
    def difference(self) -> Difference:
        """The group's figure minus the other's: of different rows, whose errors are independent."""
        return Difference(self.figure, self.reference)

    @property
    def _each(self) -> float:
        return 1.0 - (1.0 - self.confidence) / self.family

    @property
    def interval(self) -> Interval:
        """Of the difference, simultaneous over the family."""
        return self.difference.interval(self._each)

    @property
    def told_apart(self) -> bool:
        """Whether the difference is surely there, all comparisons counted."""
        return self.difference.is_available and 0.0 not in self.interval

    @property
    def p_value(self) -> float:
        """Of no difference, times the number of comparisons."""
        return min(1.0, self.family * self.difference.p_value)

    @property
    def ratio(self) -> tuple[float, Interval]:
        """The group's figure by the other's, with its simultaneous interval on the log scale."""
        values = (self.figure.value, self.reference.value)
        if not self.difference.is_available or min(values) <= 0.0:
            return nan, Interval(-inf, inf)
        spread = sum(
            (each.sampling_sd**2 + each.noise_sd**2 + each.binning_sd**2) / each.value**2
            for each in (self.figure, self.reference)
        )
        centre = log(values[0] / values[1])
        half = min(normal_quantile(0.5 + self._each / 2.0) * sqrt(spread), 300.0)
        return exp(centre), Interval(exp(centre - half), exp(centre + half))

    def to_json(self) -> dict[str, Any]:
        """In JSON's terms; what is not known is null."""
        ratio, (least, most) = self.ratio
        low, high = self.interval
        known = self.difference.is_available
        return {
            "difference": _number(self.difference.value),
            "low": _number(low),
            "high": _number(high),
            "ratio": _number(ratio),
            "ratio_low": _number(least),
            "ratio_high": _number(most),
            "p_value": self.p_value if known else None,
            "told_apart": self.told_apart,
        }


@dataclass(frozen=True, eq=False, repr=False)
class GroupComparison:
    """Figures of every group, and how far each is from the largest, or from a named one."""

    counts: GroupCounts
    thresholds: tuple[float, ...]
    reference: str
    metrics: tuple[str, ...]
    confidence: float = 0.95
    buckets: int | None = field(default=None, kw_only=True)

    @cached_property
    def estimates(self) -> dict[str, dict[str, Estimate]]:
        """Every metric of every group that has figures."""
        found = {}
        for name, histogram in self.counts.histograms.items():
            found[name] = named_metrics(histogram, self.thresholds, buckets=self.buckets)
            for metric in self.metrics:
                if metric not in found[name]:
                    found[name][metric] = named_metric(histogram, metric, buckets=self.buckets)
        return {
            name: {metric: remedied(each, _FINER) for metric, each in figures.items()}
            for name, figures in found.items()
        }

    @property
    def compared(self) -> tuple[str, ...]:
        """The named groups that are compared with the reference."""
        return tuple(
            name
            for name in self.counts.groups.names
            if name in self.counts.histograms and name != self.reference
        )

    @property
    def family(self) -> int:
        """How many comparisons are made: of every group, in every metric."""
        return max(len(self.compared) * len(self.metrics), 1)

    def gaps(self, metric: str) -> dict[str, Gap]:
        """How far every group is from the reference in one of the metrics."""
        if metric not in self.metrics:
            raise SettingInvalid(unknown(metric, self.metrics, "a metric that groups differ in"))
        if self.reference not in self.estimates:
            return {}
        base = self.estimates[self.reference][metric]
        return {
            name: Gap(metric, self.estimates[name][metric], base, self.family, self.confidence)
            for name in self.compared
        }

    def header(self) -> list[str]:
        """What the columns of `rows` are."""
        return ["metric", "group", "value", f"minus {self.reference}", "interval", "ratio"]

    def rows(self) -> list[list[str]]:
        """Every metric's value in every group, the difference with its interval, and the ratio."""
        table = []
        for metric in self.metrics:
            heading = metric
            if self.reference in self.estimates:
                base = self.estimates[self.reference][metric]
                table.append([heading, self.reference, _shown(base), "", "", ""])
                heading = ""
            for name, gap in self.gaps(metric).items():
                table.append([heading, name, _shown(gap.figure), *_gap_cells(gap)])
                heading = ""
        return table

    def lines(self) -> list[str]:
        """What is to be said of the table: what intervals cover, who is in no group, who is few."""
        lines = [
            f"Intervals hold for all {self.family:,} comparisons at once with "
            f"{100 * self.confidence:g} % (* where the difference is sure)."
        ]
        for name, each in self.counts.rows.items():
            if name in self.counts.groups.names:
                continue
            told = "held back" if isinstance(each, NotEnoughData) else _rows_shown(each)
            lines.append(f"Rows {name[1:-1]}: {told}.")
        lines += [f"{name}: not enough: {why}" for name, why in self.counts.held_back.items()]
        return lines

    def __str__(self) -> str:
        return "\n".join([aligned(self.header(), self.rows()), "", *self.lines()])

    def __repr__(self) -> str:
        return f"<GroupComparison: {', '.join(self.counts.histograms)}>"

    def to_json(self) -> dict[str, Any]:
        """Groups with their estimates, how many rows each part has, and the gaps."""
        held = dict.fromkeys(self.counts.held_back)
        return {
            "groups": {
                name: estimates_json(estimates) for name, estimates in self.estimates.items()
            }
            | {
                name: estimates_json(dict.fromkeys(self._metric_names(), self.counts.rows[name]))
                for name in held
            },
            "group_rows": estimates_json(self.counts.rows),
            "group_gaps": {
                "reference": self.reference,
                "comparisons": self.family,
                "confidence": self.confidence,
                "gaps": {
                    metric: {name: gap.to_json() for name, gap in self.gaps(metric).items()}
                    for metric in self.metrics
                },
            },
        }

    def _metric_names(self) -> Sequence[str]:
        return list(next(iter(self.estimates.values()), self.metrics))


def compare_groups(
    assessment: Assessment,
    *,
    reference: str | None = None,
    metrics: Sequence[str] | None = None,
    confidence: float = 0.95,
) -> GroupComparison:
    """Every group's figures, and their distance from the largest group or from a named one.

    >>> import fedassay
    >>> labels, scores = [0, 1] * 600, [i / 1200 for i in range(1200)]
    >>> sexes = ["F"] * 700 + ["M"] * 500
    >>> result = fedassay.simulate(labels, scores, group=sexes, smallest_cell=0)
    >>> comparison = compare_groups(result, metrics=["recall@0.5"])
    >>> round(comparison.gaps("recall@0.5")["M"].difference.value, 2)
    0.86
    """
    check_confidence(confidence)
    counts = group_counts(assessment)
    known = [name for name in counts.groups.names if name in counts.histograms]
    if reference is not None and reference not in counts.groups.names:
        raise SettingInvalid(unknown(reference, counts.groups.names, "a group"))
    largest = max(known, key=lambda name: counts.histograms[name].total, default="")
    chosen = usual_metrics(assessment.thresholds) if metrics is None else tuple(metrics)
    for metric in chosen:
        check_metric(metric)
    return GroupComparison(
        counts,
        assessment.thresholds,
        largest if reference is None else reference,
        chosen,
        confidence,
        buckets=assessment.decode_options.buckets,
    )


def usual_metrics(thresholds: Sequence[float]) -> tuple[str, ...]:
    """What groups are compared in where nobody says.

    >>> usual_metrics([0.5])[:2]
    ('roc_auc', 'oe_ratio')
    """
    at = [metric_name(name, point) for point in thresholds for name in AT_A_THRESHOLD]
    return (*OVERALL, *at)


def _gap_cells(gap: Gap) -> list[str]:
    if not gap.difference.is_available:
        return ["not enough", "", ""]
    low, high = gap.interval
    ratio, _ = gap.ratio
    sure = " *" if gap.told_apart else ""
    shown = "" if ratio != ratio else f"{ratio:.2f}"  # noqa: PLR0124
    return [f"{gap.difference.value:+.3f}{sure}", f"[{low:.3f}, {high:.3f}]", shown]


def _shown(figure: Estimate) -> str:
    return f"{figure.value:.3f}" if figure.is_available else "not enough"


def _rows_shown(each: Estimate) -> str:
    if not each.noise_sd:
        return f"{each.value:,.0f}"
    low, high = each.interval()
    return f"{max(each.value, 0.0):,.0f} ({max(low, 0.0):,.0f} to {max(high, 0.0):,.0f})"


def _number(value: float) -> float | None:
    return value if -inf < value < inf else None
