"""What differs between sites: effects, random effects, prediction intervals, secure moments."""

from fedassay.sites.effects import (
    Scale,
    SiteEffect,
    SiteEffects,
    SiteLeftOut,
    histogram_effects,
    scale_of,
    site_effects,
)
from fedassay.sites.heterogeneity import Heterogeneity
from fedassay.sites.moments import from_moments, site_moments
from fedassay.sites.predictive import TauPrior
from fedassay.sites.random_effects import (
    HeldOutSite,
    PoolOptions,
    PredictionRule,
    leave_one_out,
    pool_sites,
)
from fedassay.sites.tau import TauEstimator

__all__ = [
    "HeldOutSite",
    "Heterogeneity",
    "PoolOptions",
    "PredictionRule",
    "Scale",
    "SiteEffect",
    "SiteEffects",
    "SiteLeftOut",
    "TauEstimator",
    "TauPrior",
    "from_moments",
    "histogram_effects",
    "leave_one_out",
    "pool_sites",
    "scale_of",
    "site_effects",
    "site_moments",
]
