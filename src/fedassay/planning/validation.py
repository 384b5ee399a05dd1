"""What a validation study needs: rows for intervals of a wanted width, sites to see a spread.

The criteria are pmvalsampsize's (Riley et al. 2021, 2024), for scores as the plan takes them to be.
They are of sampling alone: what privacy adds is in the plan's own errors.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import floor
from typing import Any

from fedassay.checks import require_type, unknown
from fedassay.errors import SettingInvalid, TargetImpossible
from fedassay.estimate import Interval
from fedassay.files import parse_fraction
from fedassay.metrics.roc_auc import roc_auc
from fedassay.planning.forecast import expected_reports, model_for
from fedassay.planning.request import SurveyRequest
from fedassay.sites.effects import Scale
from fedassay.sites.how_many_sites import (
    expected_prediction,
    power_to_see_heterogeneity,
    sites_to_see_heterogeneity,
)
from fedassay.sites.predictive import TauPrior
from fedassay.sites.sample_size import (
    IntervalWidths,
    RiskDistribution,
    c_statistic_sd,
    require_positive,
    validation_rows,
)

FEWEST_ROWS = 20
"""A site with fewer rows has no effect of its own: it is a client like others."""
_FEWEST_SITES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SitesNeeded:
    """How many sites it takes to see that they differ, and what a new one may then show."""

    sites: int
    rows_per_site: int
    tau: float
    """On the logit scale of the ROC AUC."""
    is_assumed: bool
    """Whether tau is that of other models, because none was given."""
    power: float
    to_see: int | None
    """Sites among which the spread shows with this power; None where no number would do."""
    chance_to_see: float
    """With the sites that are expected."""
    prediction: Interval | None
    """The interval for a new site that they would give; None below three sites."""

    def __str__(self) -> str:
        of_others = ", as between validations of other models" if self.is_assumed else ""
        text = (
            f"{self.sites:,} sites of {self.rows_per_site:,} rows, ROC AUC with tau {self.tau:.3g} "
            f"on the logit scale{of_others}: the spread shows with a chance of "
            f"{self.chance_to_see:.0%}"
        ).replace("%", " %")
        enough = "no number of sites" if self.to_see is None else f"{self.to_see:,} sites"
        text += f"; {enough} would show it with {self.power:g}."
        if self.prediction is not None:
            text += " A new site would be foretold at {:.3f} to {:.3f}.".format(*self.prediction)
        return text

    def to_json(self) -> dict[str, Any]:
        """The same in JSON's terms."""
        low, high = (None, None) if self.prediction is None else self.prediction
        return {
            "sites": self.sites,
            "rows_per_site": self.rows_per_site,
            "tau": self.tau,
            "tau_assumed": self.is_assumed,
            "power": self.power,
            "to_see": self.to_see,
            "chance_to_see": self.chance_to_see,
            "prediction_low": low,
            "prediction_high": high,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationNeeds:
    """Rows for each criterion by its metric, and sites where clients are sites."""

    widths: Mapping[str, float]
    rows: Mapping[str, int]
    expected_rows: int
    sites: SitesNeeded | None = None
    obstacle: str = ""
    """Why no number of rows meets a criterion."""

    @property
    def most_rows(self) -> int:
        """What the study needs: the most of all criteria."""
        return max(self.rows.values(), default=0)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the criteria."""
        body = [[name, f"{self.widths[name]:g}", f"{rows:,}"] for name, rows in self.rows.items()]
        return ["interval of", "width", "rows"], body

    def sentence(self) -> str:
        """Whether the rows that are expected meet all criteria, and how many sites it takes."""
        verdict = "enough for all" if self.expected_rows >= self.most_rows else "fewer"
        text = f"All of them: {self.most_rows:,} rows; {self.expected_rows:,} are expected, "
        text += f"{verdict}."
        return " ".join(part for part in (text, self.obstacle) if part)

    def to_json(self) -> dict[str, Any]:
        """The needs in JSON's terms."""
        return {
            "widths": dict(self.widths),
            "rows": dict(self.rows),
            "most_rows": self.most_rows,
            "expected_rows": self.expected_rows,
            "sites": None if self.sites is None else self.sites.to_json(),
        }


def validation_needs(
    request: SurveyRequest,
    *,
    widths: IntervalWidths | None = None,
    threshold: float | None = None,
    tau: float | None = None,
    power: float = 0.8,
) -> ValidationNeeds:
    """Rows and sites for scores as the request takes them to be.

    >>> needs = validation_needs(SurveyRequest(clients=10, examples=5000, auc=0.8))
    >>> needs.rows["oe_ratio"], needs.sites.rows_per_site
    (900, 500)
    """
    wanted = IntervalWidths() if widths is None else widths
    require_type(wanted, IntervalWidths, "the widths", "Write IntervalWidths(oe=0.5).")
    model = model_for(request)
    c_statistic = roc_auc(model).value
    prevalence = model.total_positives / model.total
    risks = RiskDistribution.of_histogram(model)
    rows: Mapping[str, int] = {}
    obstacle = ""
    try:
        rows = validation_rows(c_statistic, prevalence, risks, widths=wanted, threshold=threshold)
    except TargetImpossible as error:
        obstacle = str(error)
    of_metric = {
        "oe_ratio": wanted.oe,
        "calibration_slope": wanted.slope,
        "roc_auc": wanted.c_statistic,
    }
    return ValidationNeeds(
        widths={name: of_metric.get(name, wanted.net_benefit) for name in rows},
        rows=rows,
        expected_rows=round(model.total),
        sites=_sites(request, c_statistic, prevalence, model.total, tau=tau, power=power),
        obstacle=obstacle,
    )


def parse_widths(text: str) -> IntervalWidths:
    """Read widths such as oe=0.2,c_statistic=0.05.

    >>> parse_widths("oe=0.5").oe
    0.5
    """
    known = [field.name for field in fields(IntervalWidths)]
    given = {}
    for item in text.split(","):
        name, equals, width = item.strip().partition("=")
        if name not in known or not equals:
            raise SettingInvalid(
                unknown(item[:40], [f"{name}=0.2" for name in known], "a width of an interval")
            )
        given[name] = float(parse_fraction(width, "a width"))
        require_positive(given[name], f"the width {name}")
    return IntervalWidths(**given)


def _sites(
    request: SurveyRequest,
    c_statistic: float,
    prevalence: float,
    rows: float,
    *,
    tau: float | None,
    power: float,
) -> SitesNeeded | None:
    """What the clients give as sites, where they have rows enough to be some."""
    sites = expected_reports(request)
    each = floor(rows / sites)
    if each < FEWEST_ROWS or sites < 2:
        return None
    slope = Scale.LOGIT.slope(c_statistic)
    spread = TauPrior().mean * slope if tau is None else tau
    sd = c_statistic_sd(c_statistic, prevalence, each) * slope
    try:
        to_see: int | None = sites_to_see_heterogeneity(spread, sd, power=power)
    except TargetImpossible:
        to_see = None
    prediction = None
    if sites >= _FEWEST_SITES:
        prediction = expected_prediction(sites, spread, sd, metric="roc_auc", value=c_statistic)
    return SitesNeeded(
        sites=sites,
        rows_per_site=each,
        tau=spread,
        is_assumed=tau is None,
        power=power,
        to_see=to_see,
        chance_to_see=power_to_see_heterogeneity(sites, spread, sd),
        prediction=prediction,
    )
