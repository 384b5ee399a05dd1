"""Assessments side by side: how far their figures differ, and whether that can be told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isinf, isnan
from typing import Any

from fedassay.assessment import Assessment
from fedassay.checks import require_type
from fedassay.comparison.difference import Difference, Growth
from fedassay.errors import SettingInvalid
from fedassay.estimate import check_confidence
from fedassay.estimate_table import short_name
from fedassay.mechanisms import Privacy
from fedassay.metrics.named import check_metric
from fedassay.presentation import aligned, html_table, html_text

COMPARISON_FORMAT = "fedassay.comparison/1"
MOST_COMPARED = 50
_LARGE = 10.0
_SAME_ROWS = (
    "Errors are taken as independent; where the same rows answered, the intervals are too wide: "
    "a survey of both models at once (survey new --paired) has the narrower ones."
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison:
    """Assessments by name, each compared with the first.

    >>> import fedassay
    >>> labels, scores = [0, 1] * 5000, [i / 10000 for i in range(10000)]
    >>> better = [min(1.0, s + 0.2 * y) for y, s in zip(labels, scores)]
    >>> old, new = (fedassay.simulate(labels, each, seed=0) for each in (scores, better))
    >>> comparison = compare({"old": old, "new": new})
    >>> comparison.differences("new")["roc_auc"].told_apart()
    True
    >>> print(comparison.verdict("new", "roc_auc"))
    new is above old in roc_auc by 0.179... (0.16... to 0.19...).
    """

    assessments: Mapping[str, Assessment]
    metrics: tuple[str, ...]
    confidence: float = 0.95

    @property
    def first(self) -> str:
        """The name of the one that the others are compared with."""
        return next(iter(self.assessments))

    @property
    def others(self) -> tuple[str, ...]:
        """The names of the others."""
        return tuple(self.assessments)[1:]

    def differences(self, name: str) -> dict[str, Difference]:
        """One assessment's figures minus the first one's, by metric."""
        if name not in self.others:
            raise SettingInvalid(
                f"what is compared is one of {', '.join(self.others)}; found {name[:40]!r}."
            )
        one, first = self.assessments[name], self.assessments[self.first]
        return {metric: Difference(one[metric], first[metric]) for metric in self.metrics}

    def verdict(self, name: str, metric: str) -> str:
        """Whether two figures can be told apart, or how many reports it would take."""
        difference = self.differences(name)[metric]
        first = self.first
        if not difference.is_available:
            return f"{name} and {first} cannot be compared in {metric}: {difference.reason}"
        low, high = difference.interval(self.confidence)
        if difference.told_apart(self.confidence):
            side = "above" if difference.value > 0.0 else "below"
            least, most = sorted((abs(low), abs(high)))
            size = f"{_shown(abs(difference.value))} ({_shown(least)} to {_shown(most)})"
            return f"{name} is {side} {first} in {metric} by {size}."
        needed = self._needed(name, difference)
        more = "no number of reports would do" if needed is None else f"{needed:,} each would do"
        return (
            f"{name} and {first} cannot be told apart in {metric}: they differ by "
            f"{_shown(difference.value)} [{_shown(low)}, {_shown(high)}]; {more}."
        )

    def _needed(self, name: str, difference: Difference) -> int | None:
        """Reports of each assessment that would tell so small a difference."""
        both = (self.assessments[name], self.assessments[self.first])
        growth = Growth(any(each.survey.privacy is not Privacy.DISTRIBUTED for each in both))
        parts = (difference.minuend, difference.subtrahend)
        factor = growth.factor(parts, abs(difference.value), self.confidence)
        reports = factor * max(each.reports for each in both)
        return None if isinf(factor) or reports > 1e12 else ceil(reports)

    def rows(self) -> list[list[str]]:
        """The table of figures and differences, as people read it."""
        rows = []
        for metric in self.metrics:
            for name, assessment in self.assessments.items():
                row = ["", name, _shown(assessment[metric].value)]
                if name == self.first:
                    rows.append([short_name(metric), *row[1:], "", ""])
                    continue
                difference = self.differences(name)[metric]
                if not difference.is_available:
                    rows.append([*row, "-", "not enough data"])
                    continue
                low, high = difference.interval(self.confidence)
                sign = " *" if difference.told_apart(self.confidence) else ""
                interval = f"[{_shown(low)}, {_shown(high)}]"
                rows.append([*row, f"{_shown(difference.value)}{sign}", interval])
        return rows

    def __str__(self) -> str:
        return f"{aligned(self.header, self.rows())}\n\n{self.footnote}"

    def __repr__(self) -> str:
        return f"<Comparison: {', '.join(self.assessments)}>"

    def _repr_html_(self) -> str:
        return html_table(self.header, self.rows()) + html_text(self.footnote)

    @property
    def header(self) -> list[str]:
        """What the columns of `rows` are."""
        return ["metric", "assessment", "value", "difference", f"{100 * self.confidence:g} %"]

    @property
    def footnote(self) -> str:
        """What the star means, and what the intervals take for granted."""
        return f"* can be told apart from {self.first}. {_SAME_ROWS}"

    def to_json(self) -> dict[str, Any]:
        """The comparison in JSON's terms: what is not finite becomes null."""
        return {
            "format": COMPARISON_FORMAT,
            "first": self.first,
            "confidence": self.confidence,
            "differences": {
                name: {
                    metric: _difference_json(each, self.confidence)
                    for metric, each in self.differences(name).items()
                }
                for name in self.others
            },
            "verdicts": {
                name: {metric: self.verdict(name, metric) for metric in self.metrics}
                for name in self.others
            },
        }


def compare(
    assessments: Mapping[str, Assessment],
    *,
    metrics: Sequence[str] | None = None,
    confidence: float = 0.95,
) -> Comparison:
    """Compare assessments of different rows, by name, with the first of them.

    >>> compare({})
    Traceback (most recent call last):
    ...
    fedassay.errors.SettingInvalid: a comparison takes 2 to 50 assessments; found 0...
    """
    require_type(assessments, Mapping, "assessments", 'Write {"old": old, "new": new}.')
    check_confidence(confidence)
    if not 2 <= len(assessments) <= MOST_COMPARED:
        raise SettingInvalid(
            f"a comparison takes 2 to {MOST_COMPARED} assessments; found {len(assessments)}. "
            "Pass at least an old one and a new one."
        )
    for name, each in assessments.items():
        require_type(name, str, "an assessment's name", "Write it as text.")
        require_type(each, Assessment, "an assessment", "fedassay.load reads files.")
    if metrics is None:
        shared = [set(each) for each in assessments.values()]
        first = next(iter(assessments.values()))
        metrics = [name for name in first if all(name in others for others in shared)]
    for name in metrics:
        check_metric(name)
    if not metrics:
        raise SettingInvalid("a comparison needs a metric; found none. Add metrics=['roc_auc'].")
    return Comparison(dict(assessments), tuple(metrics), confidence)


def _difference_json(difference: Difference, confidence: float) -> dict[str, Any]:
    low, high = difference.interval(confidence)
    available = difference.is_available
    return {
        "value": difference.value if available else None,
        "low": low if available else None,
        "high": high if available else None,
        "p_value": difference.p_value if available else None,
        "told_apart": difference.told_apart(confidence),
    }


def _shown(value: float) -> str:
    return "-" if isnan(value) else f"{value:.4f}" if abs(value) < _LARGE else f"{value:.1f}"
