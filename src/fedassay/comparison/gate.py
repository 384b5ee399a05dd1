"""Gates for pipelines: does an assessment show what is required of it, or that it fails?

Error rates, for confidence c and k requirements: all pass although one is not met in the
population, at most 1 - c (each passes by a one-sided interval of confidence c, and all must);
one fails although all are met, at most 1 - c (each fails by one of confidence 1 - (1 - c)/k).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import ceil, inf, isinf
from typing import Any

from fedassay.assessment import Assessment
from fedassay.checks import require_number, require_type, shown
from fedassay.comparison.difference import Difference, Growth
from fedassay.comparison.requirement import Requirement
from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate, Interval, NotEnoughData, check_confidence
from fedassay.mechanisms import Privacy
from fedassay.metrics.named import check_metric

GATE_FORMAT = "fedassay.gate/1"
LOWER_IS_BETTER = frozenset(
    {"brier", "log_loss", "ici", "e50", "e90", "emax", "lr_minus", "flagged"}
)
_NEITHER = frozenset(
    {"calibration_in_the_large", "calibration_intercept", "calibration_slope", "oe_ratio"}
    | {"prevalence"}
)
_MOST_REPORTS = 1e12


class Verdict(Enum):
    """What the figures allow to say."""

    PASS = "pass"  # noqa: S105  # a verdict, no password
    FAIL = "fail"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Finding:
    """One requirement, what was found for it, and what follows."""

    requirement: str
    verdict: Verdict
    value: float
    interval: Interval
    """Two-sided, its ends those that pass and fail were decided by."""
    reports_needed: int | None = None
    """Where it cannot be told: so many reports in all would do, if the figure stays."""
    reason: str = ""
    """Why no number of reports would, or why there is no figure."""

    def sentence(self) -> str:
        """The finding for a terminal or a log."""
        low, high = self.interval
        found = "" if isinf(low) and isinf(high) else f" {self.value:.4f} [{low:.4f}, {high:.4f}]"
        told = f"{self.requirement}: {self.verdict.value}{found}"
        if self.verdict is not Verdict.CANNOT_TELL:
            return f"{told}."
        if self.reports_needed is not None:
            return f"{told}; {self.reports_needed:,} reports in all would tell, if it stays so."
        return f"{told}; {self.reason}"


@dataclass(frozen=True, slots=True)
class GateResult:
    """All findings, and the verdict over them: one failure fails, one doubt leaves it open."""

    findings: tuple[Finding, ...]
    confidence: float

    @property
    def verdict(self) -> Verdict:
        """Fail if any fails, pass if all pass, and otherwise nobody can tell."""
        found = {finding.verdict for finding in self.findings}
        for verdict in (Verdict.FAIL, Verdict.CANNOT_TELL):
            if verdict in found:
                return verdict
        return Verdict.PASS

    def to_json(self) -> dict[str, Any]:
        """The result in JSON's terms: what is not finite becomes null."""
        return {
            "format": GATE_FORMAT,
            "verdict": self.verdict.value,
            "confidence": self.confidence,
            "findings": [
                {
                    "requirement": each.requirement,
                    "verdict": each.verdict.value,
                    "value": _finite(each.value),
                    "low": _finite(each.interval.low),
                    "high": _finite(each.interval.high),
                    "reports_needed": each.reports_needed,
                    "reason": each.reason or None,
                }
                for each in self.findings
            ],
        }


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """An earlier assessment that must not be fallen behind, by more than a margin."""

    assessment: Assessment
    by: float = 0.0
    metrics: tuple[str, ...] = ("roc_auc",)

    def __post_init__(self) -> None:
        require_type(self.assessment, Assessment, "a baseline", "fedassay.load reads files.")
        if not 0.0 <= require_number(self.by, "a margin") < inf:
            raise SettingInvalid(
                f"a margin is a number from 0 on; found {self.by:g}. Write --by 0.005."
            )
        for name in self.metrics:
            check_metric(name)
            if name.partition("@")[0] in _NEITHER:
                raise SettingInvalid(
                    f"{name} is neither better nor worse for being larger; found it to be compared "
                    "with a baseline. Require its value: --require 'oe_ratio >= 0.9'."
                )


def check(
    assessment: Assessment,
    require: Sequence[Requirement | str] = (),
    *,
    confidence: float = 0.95,
    baseline: Baseline | None = None,
) -> GateResult:
    """Hold an assessment to requirements, and to a baseline where one is given.

    >>> import fedassay
    >>> labels, scores = [0, 1] * 5000, [i / 10000 for i in range(10000)]
    >>> result = fedassay.simulate(labels, scores, seed=0)
    >>> check(result, ["roc_auc >= 0.9"]).verdict
    <Verdict.FAIL: 'fail'>
    """
    require_type(assessment, Assessment, "an assessment", "fedassay.load reads files.")
    check_confidence(confidence)
    if confidence <= 0.5:
        raise SettingInvalid(
            f"a check's confidence lies between 0.5, a coin's, and 1; found {confidence:g}. "
            "Usual is 0.95."
        )
    if not isinstance(require, list | tuple):
        raise SettingInvalid(
            f"requirements come as a list; found {shown(require)}. Write ['roc_auc >= 0.80']."
        )
    requirements = [
        each if isinstance(each, Requirement) else Requirement.parse(each) for each in require
    ]
    if not requirements and baseline is None:
        raise SettingInvalid(
            "a check needs something to hold the assessment to; found nothing. "
            "Add --require 'roc_auc >= 0.80' or --no-worse-than old.json."
        )
    count = len(requirements) + (len(baseline.metrics) if baseline is not None else 0)
    tails = _Tails(1.0 - confidence, (1.0 - confidence) / count)
    findings = [_of_requirement(assessment, each, tails) for each in requirements]
    if baseline is not None:
        findings += [_of_baseline(assessment, baseline, name, tails) for name in baseline.metrics]
    return GateResult(tuple(findings), confidence)


@dataclass(frozen=True, slots=True)
class _Tails:
    """The chance of a wrong pass, and of a wrong fail, of one requirement."""

    wrong_pass: float
    wrong_fail: float


def _of_requirement(assessment: Assessment, asked: Requirement, tails: _Tails) -> Finding:
    estimate = assessment[asked.metric]
    return _decided(
        str(asked),
        estimate,
        (estimate,),
        bound=asked.bound,
        at_least=asked.at_least,
        tails=tails,
        assessment=assessment,
    )


def _of_baseline(assessment: Assessment, baseline: Baseline, name: str, tails: _Tails) -> Finding:
    new, old = assessment[name], baseline.assessment[name]
    lower = name.partition("@")[0] in LOWER_IS_BETTER
    sign = "+" if lower else "-"
    return _decided(
        f"{name} no worse than the baseline {sign} {baseline.by:g}",
        Difference(new, old),
        (new, old),
        bound=baseline.by if lower else -baseline.by,
        at_least=not lower,
        tails=tails,
        assessment=assessment,
    )


def _decided(
    requirement: str,
    figure: Estimate | Difference,
    parts: tuple[Estimate, ...],
    *,
    bound: float,
    at_least: bool,
    tails: _Tails,
    assessment: Assessment,
) -> Finding:
    if not figure.is_available:
        lacking = next(each for each in parts if isinstance(each, NotEnoughData))
        reason = lacking.reason or "there is no figure."
        return Finding(requirement, Verdict.CANNOT_TELL, figure.value, _ANYTHING, reason=reason)
    pass_at = figure.interval(1.0 - 2.0 * tails.wrong_pass)
    fail_at = figure.interval(1.0 - 2.0 * tails.wrong_fail)
    if at_least:
        interval = Interval(pass_at.low, fail_at.high)
        passes, fails = interval.low >= bound, interval.high < bound
    else:
        interval = Interval(fail_at.low, pass_at.high)
        passes, fails = interval.high <= bound, interval.low > bound
    if passes or fails:
        verdict = Verdict.PASS if passes else Verdict.FAIL
        return Finding(requirement, verdict, figure.value, interval)
    needed, reason = _needed(assessment, parts, abs(figure.value - bound), tails)
    return Finding(requirement, Verdict.CANNOT_TELL, figure.value, interval, needed, reason)


def _needed(
    assessment: Assessment, parts: tuple[Estimate, ...], distance: float, tails: _Tails
) -> tuple[int | None, str]:
    """How many reports would tell, or why none would."""
    growth = Growth(assessment.survey.privacy is not Privacy.DISTRIBUTED)
    tail = min(tails.wrong_pass, tails.wrong_fail)
    factor = growth.factor(parts, distance, 1.0 - 2.0 * tail)
    if isinf(factor) and distance > 0.0:
        return None, "the grid's cells leave too much open: use finer ones, or two steps."
    if factor * assessment.reports > _MOST_REPORTS:
        return None, "the figure lies too close to the bound for any number of reports."
    # An interval that is not quite symmetric may need a report more than its width says.
    return max(ceil(factor * assessment.reports), assessment.reports + 1), ""


def _finite(value: float) -> float | None:
    return float(value) if abs(value) < inf else None


_ANYTHING = Interval(-inf, inf)
