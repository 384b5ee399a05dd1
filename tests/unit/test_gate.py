"""Pass, fail, cannot tell: decided on assessments of known figures."""

from dataclasses import replace
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest
from scipy.stats import norm

import fedassay
from fedassay.calibration import ece
from fedassay.comparison.gate import Baseline, Verdict, check
from fedassay.comparison.junit import junit_xml
from fedassay.errors import SettingInvalid
from tests.surveys import counted


def rows(count: int, share: float, seed: int = 0) -> tuple[list[int], list[float]]:
    """Scores of 0.25 and 0.75; of those flagged at 0.5, a share is positive."""
    flagged = np.arange(count) % 2 == 1
    order = np.random.default_rng(seed).permutation(count // 2)
    labels = np.zeros(count, dtype=int)
    labels[flagged] = order < share * (count // 2)
    labels[~flagged] = order < 0.1 * (count // 2)
    return labels.tolist(), np.where(flagged, 0.75, 0.25).tolist()


def exact(labels: list[int], scores: list[float]) -> fedassay.Assessment:
    """Exact sums in cells of any size, so that figures are those of the rows."""
    return fedassay.simulate(labels, scores, smallest_cell=0, seed=0)


@pytest.fixture(scope="module")
def assessment() -> fedassay.Assessment:
    """A precision of exactly 0.7 over 2,000 flagged rows: sampling sd 0.01025."""
    return exact(*rows(4000, 0.7))


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        ("precision@0.5 >= 0.68", Verdict.PASS),
        ("precision@0.5 >= 0.6816", Verdict.PASS),  # 1.8 sd: outside 1.645, inside 1.96
        ("precision@0.5 >= 0.69", Verdict.CANNOT_TELL),
        ("precision@0.5 >= 0.71", Verdict.CANNOT_TELL),
        ("precision@0.5 >= 0.72", Verdict.FAIL),
        ("precision@0.5 <= 0.72", Verdict.PASS),
        ("precision@0.5 <= 0.71", Verdict.CANNOT_TELL),
        ("precision@0.5 <= 0.68", Verdict.FAIL),
    ],
)
def test_a_bound_passes_fails_or_stays_open_by_one_sided_intervals(
    assessment: fedassay.Assessment, rule: str, verdict: Verdict
) -> None:
    # 1.645 sd are 0.0169: 0.69 and 0.71 lie inside, 0.68 and 0.72 outside.
    result = check(assessment, [rule])
    assert result.verdict is verdict
    assert result.findings[0].value == pytest.approx(0.7, abs=1e-9)


def test_a_pass_needs_no_more_confidence_for_several_rules_and_a_failure_does(
    assessment: fedassay.Assessment,
) -> None:
    sd = (0.7 * 0.3 / 2000) ** 0.5
    one_sided, split = norm.isf(0.05), norm.isf(0.05 / 3)
    between = 0.7 + sd * (one_sided + split) / 2.0
    rule, lax = f"precision@0.5 >= {between}", "roc_auc >= 0.5"
    assert check(assessment, [rule]).verdict is Verdict.FAIL
    assert check(assessment, [rule, lax, lax]).verdict is Verdict.CANNOT_TELL
    below = f"precision@0.5 >= {0.7 - sd * (one_sided + split) / 2.0}"
    assert check(assessment, [below, lax, lax]).verdict is Verdict.PASS


def test_one_failure_fails_all_and_one_doubt_leaves_all_open(
    assessment: fedassay.Assessment,
) -> None:
    good, open_, bad = "roc_auc >= 0.6", "precision@0.5 >= 0.7", "roc_auc >= 0.99"
    assert check(assessment, [good, open_]).verdict is Verdict.CANNOT_TELL
    assert check(assessment, [good, open_, bad]).verdict is Verdict.FAIL


def test_reports_that_are_said_to_be_enough_are(assessment: fedassay.Assessment) -> None:
    finding = check(assessment, ["precision@0.5 >= 0.69"]).findings[0]
    needed = finding.reports_needed or 0
    # (1.645 x 0.01025 / 0.01)^2 = 2.84 times 4,000.
    assert needed == pytest.approx(2.84 * 4000, rel=0.02)
    larger = exact(*rows(2 * round(0.505 * needed), 0.7))
    fewer = exact(*rows(2 * round(0.45 * needed), 0.7))
    assert check(larger, ["precision@0.5 >= 0.69"]).verdict is Verdict.PASS
    assert check(fewer, ["precision@0.5 >= 0.69"]).verdict is Verdict.CANNOT_TELL


def test_a_figure_on_its_bound_is_never_told(assessment: fedassay.Assessment) -> None:
    finding = check(assessment, ["precision@0.5 >= 0.7"]).findings[0]
    assert finding.reports_needed is None
    assert finding.reason == "the figure lies too close to the bound for any number of reports."


def test_no_figure_is_no_verdict() -> None:
    few = fedassay.simulate(
        [0, 1] * 50, [0.25, 0.75] * 50, privacy="local", epsilon=0.1, steps=1, seed=0
    )
    finding = check(few, ["precision@0.5 >= 0.1"]).findings[0]
    assert finding.verdict is Verdict.CANNOT_TELL
    assert finding.reason
    assert "nan" not in finding.sentence()


def test_a_baseline_is_kept_up_with_within_the_margin(assessment: fedassay.Assessment) -> None:
    older = exact(*rows(4000, 0.76, seed=1))
    names = ("precision@0.5",)
    # Worse by 0.06, with a standard error of 0.0140 of the difference.
    assert check(assessment, baseline=Baseline(older, 0.01, names)).verdict is Verdict.FAIL
    assert check(assessment, baseline=Baseline(older, 0.06, names)).verdict is Verdict.CANNOT_TELL
    assert check(assessment, baseline=Baseline(older, 0.10, names)).verdict is Verdict.PASS


def test_errors_may_not_grow_where_less_is_better(assessment: fedassay.Assessment) -> None:
    better = exact(*rows(4000, 0.95, seed=1))
    assert check(assessment, baseline=Baseline(better, 0.0, ("brier",))).verdict is Verdict.FAIL
    assert check(better, baseline=Baseline(assessment, 0.0, ("brier",))).verdict is Verdict.PASS


def test_what_is_neither_better_nor_worse_has_no_baseline(assessment: fedassay.Assessment) -> None:
    with pytest.raises(SettingInvalid, match="neither better nor worse"):
        Baseline(assessment, 0.0, ("oe_ratio",))


@pytest.mark.parametrize("confidence", [0.5, 0.3, 95])
def test_a_confidence_below_a_coins_is_refused(
    assessment: fedassay.Assessment, confidence: float
) -> None:
    with pytest.raises(SettingInvalid, match="confidence"):
        check(assessment, ["roc_auc >= 0.5"], confidence=confidence)


def test_a_check_of_nothing_is_refused(assessment: fedassay.Assessment) -> None:
    with pytest.raises(SettingInvalid, match="something to hold the assessment to"):
        check(assessment)
    with pytest.raises(SettingInvalid, match="requirements come as a list"):
        check(assessment, "roc_auc >= 0.8")  # a text is a list of letters, too


def test_junit_shows_failures_and_what_cannot_be_told_as_such(
    assessment: fedassay.Assessment,
) -> None:
    rules = ["roc_auc >= 0.6", "precision@0.5 >= 0.7", "roc_auc >= 0.99"]
    result = check(assessment, rules)
    hostile = replace(result.findings[2], requirement='<script>"&')
    written = junit_xml(replace(result, findings=(*result.findings[:2], hostile)))
    suite = fromstring(written)[0]  # noqa: S314  # our own text
    assert suite.attrib["failures"] == "1"
    assert suite.attrib["errors"] == "1"
    assert [[child.tag for child in case] for case in suite] == [[], ["error"], ["failure"]]
    assert suite[2].attrib["name"] == '<script>"&'


@pytest.mark.parametrize("by", [-0.01, float("inf"), float("nan")])
def test_a_margin_is_a_number_from_0_on(assessment: fedassay.Assessment, by: float) -> None:
    with pytest.raises(SettingInvalid, match=r"margin"):
        Baseline(assessment, by=by)


def test_what_cells_hide_is_told_by_no_number_of_reports() -> None:
    """Of 72 million rows in eight cells only these leave anything open."""
    coarse = counted(10**6 * np.array([np.arange(8, 0, -1), np.arange(1, 9)]))
    area = coarse["roc_auc"]
    bound = area.value + 0.3 * (area.interval().high - area.value)
    (finding,) = check(coarse, [f"roc_auc >= {bound}"]).findings
    assert (finding.verdict, finding.reports_needed) == (Verdict.CANNOT_TELL, None)
    assert finding.reason == "the grid's cells leave too much open: use finer ones, or two steps."


def test_the_calibration_error_over_bins_is_held_to_a_bound_by_its_own_interval() -> None:
    """Scores that are right, and others that are a fifth too low."""
    generator = np.random.default_rng(3)
    scores = generator.uniform(0.05, 0.75, 20_000)
    verdicts = {}
    for by in (0.0, 0.2):
        labels = (generator.random(20_000) < scores + by).astype(int)
        seen = fedassay.simulate(labels, scores, seed=0)
        found = check(seen, ["ece <= 0.05"])
        verdicts[by] = found.verdict
        assert found.findings[0].interval == pytest.approx(ece(seen.histogram()).interval(0.9))
    assert verdicts == {0.0: Verdict.PASS, 0.2: Verdict.FAIL}
