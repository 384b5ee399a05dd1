"""How many sites it takes to see that they differ, or to say what a new one will show.

More rows at each site make their effects sharper and tell no more about the next site: beyond a
point only sites help, and below the spread itself nothing does.
"""

import numpy as np

from fedassay.checks import require_number, require_whole
from fedassay.errors import SettingInvalid, TargetImpossible
from fedassay.estimate import Interval
from fedassay.extras import needed_for
from fedassay.sites.effects import scale_of
from fedassay.sites.heterogeneity import ends_of
from fedassay.sites.moments import MomentSummary
from fedassay.sites.predictive import chi2_above
from fedassay.sites.sample_size import Z, require_inside, require_positive, smallest

MOST_SITES = 100_000
_FEWEST_SITES = 3


def power_to_see_heterogeneity(
    sites: int, tau: float, site_sd: float, *, false_alarm: float = 0.05
) -> float:
    """The chance that Cochran's Q tells sites with a spread tau from equal ones.

    Among sites with errors of one size, Q is (1 + tau² / sd²) times chi-square with k - 1 degrees.

    >>> round(power_to_see_heterogeneity(14, 0.1, 0.1), 3)
    0.596
    """
    with needed_for("sample sizes"):
        from scipy.special import chdtri

    require_whole(sites, "sites", 2)
    require_positive(site_sd, "a site's standard deviation")
    if not require_number(tau, "tau") >= 0.0:
        raise SettingInvalid(f"tau must be 0 or more; found {tau}. It is a standard deviation.")
    require_inside(false_alarm, "the false-alarm rate")
    critical = float(chdtri(sites - 1, false_alarm))
    return float(chi2_above(np.array([critical / (1.0 + (tau / site_sd) ** 2)]), sites - 1)[0])


def sites_to_see_heterogeneity(
    tau: float, site_sd: float, *, power: float = 0.8, false_alarm: float = 0.05
) -> int:
    """The fewest sites among which a spread tau shows with this power.

    >>> sites_to_see_heterogeneity(0.1, 0.1)
    26
    """
    require_positive(tau, "tau")
    require_inside(power, "the power")
    return smallest(
        lambda sites: (
            power_to_see_heterogeneity(sites, tau, site_sd, false_alarm=false_alarm) >= power
        ),
        2,
        MOST_SITES,
    )


def expected_prediction(
    sites: int, tau: float, site_sd: float, *, metric: str, value: float
) -> Interval:
    """The prediction interval as it comes out when spread and errors are as expected.

    tau and the site's standard deviation are on the metric's scale, logit for a ROC AUC.

    >>> ten = expected_prediction(10, 0.1, 0.1, metric="roc_auc", value=0.8)
    >>> [round(end, 3) for end in ten]
    [0.75..., 0.84...]
    """
    require_whole(sites, "sites", _FEWEST_SITES, MOST_SITES)
    require_positive(site_sd, "a site's standard deviation")
    require_positive(tau, "tau")
    scale = scale_of(metric)
    variance = site_sd**2
    moments = MomentSummary(sites, tau**2 + variance, variance, sites * variance**2)
    return ends_of(scale, moments.new_site(scale.forward(value)), 0.95)


def sites_for_prediction(
    width: float, tau: float, site_sd: float, *, metric: str = "roc_auc", value: float
) -> int:
    """The fewest sites whose prediction interval is expected to be no wider than this.

    >>> sites_for_prediction(0.1, 0.1, 0.1, metric="roc_auc", value=0.8)
    8
    >>> sites_for_prediction(0.05, 0.1, 0.1, metric="roc_auc", value=0.8)
    Traceback (most recent call last):
    fedassay.errors.TargetImpossible: a new site cannot be foretold more closely than 0.063: ...
    """
    require_positive(width, "the width")
    require_positive(tau, "tau")
    scale = scale_of(metric)
    effect, half = scale.forward(require_number(value, "the metric's value")), Z * tau
    floor = scale.back(effect + half) - scale.back(effect - half)
    if floor >= width:
        raise TargetImpossible(
            f"a new site cannot be foretold more closely than {floor:.2g}: so far apart do sites "
            f"with tau = {tau:g} lie, however many were seen; found a wanted width of {width:g}. "
            "Ask for a wider interval, or calibrate at the site."
        )

    def is_narrow(sites: int) -> bool:
        low, high = expected_prediction(sites, tau, site_sd, metric=metric, value=value)
        return high - low <= width

    return smallest(is_narrow, _FEWEST_SITES, MOST_SITES)
