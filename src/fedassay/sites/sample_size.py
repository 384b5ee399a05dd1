"""How many rows a validation needs, before it begins.

The four criteria of pmvalsampsize (Riley et al. 2021, Statistics in Medicine 40, 4230-4251, and
2024, BMJ 384, e074821), each the fewest rows whose 95 % interval is no wider than wanted. They
treat all rows as one sample: `fedassay.sites.how_many_sites` asks about sites.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import asinh, ceil, sqrt

import numpy as np

from fedassay.checks import require_number, require_type
from fedassay.errors import SettingInvalid, TargetImpossible
from fedassay.examples import FloatArray
from fedassay.extras import needed_for
from fedassay.histogram import ScoreHistogram, require_histogram

Z = 1.96
"""As the published figures have it."""
_NODES = 200
_QUANTILES = 8192
_NEAREST = 2.0**-20


@dataclass(frozen=True, slots=True, eq=False)
class RiskDistribution:
    """How predicted risks are expected to lie, as log-odds with weights that add up to 1.

    >>> round(RiskDistribution.normal(-5.0, 2.5).prevalence, 3)
    0.052
    """

    log_odds: FloatArray
    weights: FloatArray

    @classmethod
    def normal(cls, mean: float, sd: float) -> "RiskDistribution":
        """Log-odds that are normal."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        return cls(mean + sd * nodes, weights / weights.sum())

    @classmethod
    def beta(cls, alpha: float, beta: float) -> "RiskDistribution":
        """Risks with a beta distribution."""
        with needed_for("sample sizes"):
            from scipy.special import betaincinv

        risks = betaincinv(alpha, beta, (np.arange(_QUANTILES) + 0.5) / _QUANTILES)
        risks = np.clip(risks, 1e-300, 1.0 - 1e-16)
        return cls(np.log(risks) - np.log1p(-risks), np.full(_QUANTILES, 1.0 / _QUANTILES))

    @classmethod
    def of_histogram(cls, histogram: ScoreHistogram) -> "RiskDistribution":
        """Scores as an earlier survey counted them, each bucket at its middle."""
        require_histogram(histogram)
        sizes = np.maximum(histogram.counts.sum(axis=0), 0.0)
        middle = 0.5 * (histogram.edges[:-1] + histogram.edges[1:])
        risks = np.clip(middle, _NEAREST, 1.0 - _NEAREST)
        return cls(np.log(risks) - np.log1p(-risks), sizes / sizes.sum())

    @property
    def risks(self) -> FloatArray:
        """The same as probabilities."""
        risks: FloatArray = 1.0 / (1.0 + np.exp(-self.log_odds))
        return risks

    @property
    def prevalence(self) -> float:
        """The share of positives, if risks are right."""
        return float(self.weights @ self.risks)

    def at(self, threshold: float) -> tuple[float, float]:
        """Sensitivity and specificity of risks above a threshold, if risks are right."""
        above = self.risks > threshold
        positive = self.weights * self.risks
        negative = self.weights - positive
        return (
            float(positive[above].sum() / positive.sum()),
            float(negative[~above].sum() / negative.sum()),
        )


def rows_for_oe(prevalence: float, *, width: float = 0.2, oe: float = 1.0) -> int:
    """Rows for an interval of observed/expected no wider than this.

    n = (1 - p) / (p se²), where 2 oe sinh(1.96 se) is the width.

    >>> rows_for_oe(0.018, width=1.0)
    906
    """
    require_inside(prevalence, "prevalence")
    require_positive(width, "the width of O/E")
    require_positive(oe, "O/E")
    sd = asinh(width / (2.0 * oe)) / Z
    return ceil((1.0 - prevalence) / (prevalence * sd**2))


def rows_for_slope(
    risks: RiskDistribution, *, width: float = 0.2, intercept: float = 0.0, slope: float = 1.0
) -> int:
    """Rows for an interval of the calibration slope no wider than this.

    n = I00 / (se² (I00 I11 - I01²)) with the information of one row, I_ij = E[p (1 - p) x^(i + j)]
    at log-odds x, for risks that need this intercept and slope.

    >>> rows_for_slope(RiskDistribution.normal(-5.0, 2.5))
    4554
    """
    require_type(risks, RiskDistribution, "the risks", "Write RiskDistribution.normal(mean, sd).")
    require_positive(width, "the width of the slope")
    x = risks.log_odds
    p = 1.0 / (1.0 + np.exp(-(intercept + slope * x)))
    spread = risks.weights * p * (1.0 - p)
    i00, i01, i11 = (float((spread * x**power).sum()) for power in (0, 1, 2))
    room = i00 * i11 - i01**2
    if not room > 1e-12 * max(i00 * i11, 1e-300):
        raise TargetImpossible(
            "a calibration slope needs risks that differ; these are all the same. No number of "
            "rows would do."
        )
    return ceil(i00 / ((width / (2.0 * Z)) ** 2 * room))


def c_statistic_sd(c_statistic: float, prevalence: float, rows: float) -> float:
    """The standard error of a c-statistic after Newcombe (2006), from its value alone.

    c (1 - c) [1 + (n/2 - 1) (1 - c)/(2 - c) + (n/2 - 1) c/(1 + c)] / (n² p (1 - p)), its root.

    >>> round(c_statistic_sd(0.8, 0.018, 4252), 4)
    0.0255
    """
    c, half = c_statistic, rows / 2.0 - 1.0
    inside = 1.0 + half * (1.0 - c) / (2.0 - c) + half * c / (1.0 + c)
    return sqrt(c * (1.0 - c) * inside / (prevalence * (1.0 - prevalence))) / rows


def rows_for_c_statistic(c_statistic: float, prevalence: float, *, width: float = 0.1) -> int:
    """Rows for an interval of the c-statistic no wider than this.

    >>> rows_for_c_statistic(0.8, 0.018)
    4252
    """
    require_inside(c_statistic, "the c-statistic")
    require_inside(prevalence, "prevalence")
    require_positive(width, "the width of the c-statistic")
    return smallest(
        lambda rows: 2.0 * Z * c_statistic_sd(c_statistic, prevalence, rows) <= width, 2
    )


def rows_for_net_benefit(
    prevalence: float,
    threshold: float,
    *,
    sensitivity: float,
    specificity: float,
    width: float = 0.2,
) -> int:
    """Rows for an interval of net benefit over prevalence no wider than this.

    n = [se (1 - se) / p + w² sp (1 - sp) / (1 - p) + w² (1 - sp)² / (p (1 - p))] / sd², with
    w = (1 - p) / p times t / (1 - t).

    >>> rows_for_net_benefit(0.018, 0.08, sensitivity=0.5, specificity=0.9)
    11020
    """
    for value, name in ((prevalence, "prevalence"), (threshold, "the threshold")):
        require_inside(value, name)
    for value, name in ((sensitivity, "sensitivity"), (specificity, "specificity")):
        if not 0.0 <= require_number(value, name) <= 1.0:
            raise SettingInvalid(f"{name} lies between 0 and 1; found {value}. Write 0.8 for 80 %.")
    require_positive(width, "the width of net benefit")
    weight = (1.0 - prevalence) / prevalence * threshold / (1.0 - threshold)
    false = 1.0 - specificity
    of_one_row = (
        sensitivity * (1.0 - sensitivity) / prevalence
        + weight**2 * specificity * false / (1.0 - prevalence)
        + weight**2 * false**2 / (prevalence * (1.0 - prevalence))
    )
    return ceil(of_one_row / (width / (2.0 * Z)) ** 2)


@dataclass(frozen=True, slots=True)
class IntervalWidths:
    """How wide 95 % intervals may be; the defaults are pmvalsampsize's."""

    oe: float = 0.2
    slope: float = 0.2
    c_statistic: float = 0.1
    net_benefit: float = 0.2


def validation_rows(
    c_statistic: float,
    prevalence: float,
    risks: RiskDistribution,
    *,
    widths: IntervalWidths | None = None,
    threshold: float | None = None,
) -> Mapping[str, int]:
    """Rows for each criterion by its metric's name; the study needs the most of them.

    >>> validation_rows(
    ...     0.8, 0.018, RiskDistribution.normal(-5.0, 2.5), widths=IntervalWidths(oe=1.0)
    ... )
    {'oe_ratio': 906, 'calibration_slope': 4554, 'roc_auc': 4252}
    """
    wanted = IntervalWidths() if widths is None else widths
    require_type(wanted, IntervalWidths, "the widths", "Write IntervalWidths(oe=0.5).")
    rows = {
        "oe_ratio": rows_for_oe(prevalence, width=wanted.oe),
        "calibration_slope": rows_for_slope(risks, width=wanted.slope),
        "roc_auc": rows_for_c_statistic(c_statistic, prevalence, width=wanted.c_statistic),
    }
    if threshold is not None:
        sensitivity, specificity = risks.at(threshold)
        rows[f"net_benefit@{threshold!r}"] = rows_for_net_benefit(
            prevalence,
            threshold,
            sensitivity=sensitivity,
            specificity=specificity,
            width=wanted.net_benefit,
        )
    return rows


def smallest(is_enough: Callable[[int], bool], low: int, high: int = 2**40) -> int:
    """The smallest whole number that is enough, where more of it never hurts.

    >>> smallest(lambda rows: rows >= 905, 2)
    905
    """
    top = low
    while not is_enough(top):
        if top >= high:
            raise TargetImpossible(
                f"not even {high:,} would be enough. Ask for a wider interval or less power."
            )
        low, top = top + 1, min(2 * top, high)
    while low < top:
        middle = (low + top) // 2
        if is_enough(middle):
            top = middle
        else:
            low = middle + 1
    return top


def require_inside(value: float, name: str) -> None:
    """Raise unless a share lies inside (0, 1).

    >>> require_inside(0.5, "prevalence")
    """
    if not 0.0 < require_number(value, name) < 1.0:
        raise SettingInvalid(
            f"{name} lies between 0 and 1, ends excluded; found {value}. Write 0.3 for 30 %."
        )


def require_positive(value: float, name: str) -> None:
    """Raise unless a number is above 0 and finite.

    >>> require_positive(0.5, "the width")
    """
    if not 0.0 < require_number(value, name) < float("inf"):
        raise SettingInvalid(f"{name} must be above 0 and finite; found {value}. Raise it.")
