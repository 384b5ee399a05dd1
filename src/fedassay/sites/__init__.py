"""What differs between sites: effects, random effects, prediction intervals, secure moments."""

from fedassay.sites.between import BetweenSites, SeenSite, SeenSites, SummedSites
from fedassay.sites.displays import ForestDisplay
from fedassay.sites.effects import (
    Scale,
    SiteEffect,
    SiteEffects,
    SiteLeftOut,
    histogram_effects,
    scale_of,
    site_effects,
)
from fedassay.sites.heterogeneity import Covers, Heterogeneity
from fedassay.sites.how_many_sites import (
    expected_prediction,
    power_to_see_heterogeneity,
    sites_for_prediction,
    sites_to_see_heterogeneity,
)
from fedassay.sites.moments import from_moments, site_moments
from fedassay.sites.pooling import pooled_histogram
from fedassay.sites.predictive import TauPrior
from fedassay.sites.random_effects import (
    HeldOutSite,
    PoolOptions,
    PredictionRule,
    leave_one_out,
    pool_sites,
)
from fedassay.sites.recalibration_advice import (
    Change,
    RecalibrationAdvice,
    Scope,
    advise_recalibration,
)
from fedassay.sites.sample_size import (
    IntervalWidths,
    RiskDistribution,
    rows_for_c_statistic,
    rows_for_net_benefit,
    rows_for_oe,
    rows_for_slope,
    validation_rows,
)
from fedassay.sites.tau import TauEstimator

__all__ = [
    "BetweenSites",
    "Change",
    "Covers",
    "ForestDisplay",
    "HeldOutSite",
    "Heterogeneity",
    "IntervalWidths",
    "PoolOptions",
    "PredictionRule",
    "RecalibrationAdvice",
    "RiskDistribution",
    "Scale",
    "Scope",
    "SeenSite",
    "SeenSites",
    "SiteEffect",
    "SiteEffects",
    "SiteLeftOut",
    "SummedSites",
    "TauEstimator",
    "TauPrior",
    "advise_recalibration",
    "expected_prediction",
    "from_moments",
    "histogram_effects",
    "leave_one_out",
    "pool_sites",
    "pooled_histogram",
    "power_to_see_heterogeneity",
    "rows_for_c_statistic",
    "rows_for_net_benefit",
    "rows_for_oe",
    "rows_for_slope",
    "scale_of",
    "site_effects",
    "site_moments",
    "sites_for_prediction",
    "sites_to_see_heterogeneity",
    "validation_rows",
]
