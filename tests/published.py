"""Meta-analyses that others have published, typed in as data with their sources."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedassay.sites import Scale, SiteEffect, SiteEffects

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Studies:
    """Effects and variances, as a meta-analysis takes them in."""

    values: FloatArray
    variances: FloatArray

    def effects(self, metric: str = "ks") -> SiteEffects:
        """The same as sites on a scale that leaves values alone."""
        each = zip(self.values.tolist(), self.variances.tolist(), strict=True)
        found = tuple(
            SiteEffect(f"{i}", value, variance) for i, (value, variance) in enumerate(each)
        )
        return SiteEffects(metric, Scale.IDENTITY, found)


# Colditz et al. (1994), JAMA 271, 698-702, as R's metadat::dat.bcg has it: cases and others among
# the vaccinated, cases and others among the controls. Effects are log relative risks.
_BCG = np.array(
    [
        (4, 119, 11, 128),
        (6, 300, 29, 274),
        (3, 228, 11, 209),
        (62, 13536, 248, 12619),
        (33, 5036, 47, 5761),
        (180, 1361, 372, 1079),
        (8, 2537, 10, 619),
        (505, 87886, 499, 87892),
        (29, 7470, 45, 7232),
        (17, 1699, 65, 1600),
        (186, 50448, 141, 27197),
        (5, 2493, 3, 2338),
        (27, 16886, 29, 17825),
    ],
    dtype=np.float64,
)


def bcg() -> Studies:
    """Thirteen trials of BCG vaccine, the example of R's metafor."""
    cases, others, control_cases, control_others = _BCG.T
    treated, control = cases + others, control_cases + control_others
    return Studies(
        np.log(cases / treated) - np.log(control_cases / control),
        1.0 / cases - 1.0 / treated + 1.0 / control_cases - 1.0 / control,
    )


BCG_REML = {"tau2": 0.313243325980895, "q": 152.233008082373, "mean": -0.714532348365102}
"""metafor's tests/testthat/test_misc_influence.r (tau2, QE); the estimate of rma(yi, vi)."""
BCG_WITHOUT_FIRST = {
    "mean": -0.707083788031436,
    "q": 151.582572747109,
    "tau2": 0.336156745300306,
    "i2": 0.932259349111223,
}
"""leave1out() of the same file, the first row."""
BCG_HEDGES_OLKIN = 0.328564
"""rma(yi, vi, method="HE") of metafor 4.8-0, six digits."""
BCG_DERSIMONIAN_LAIRD = {
    "tau2": 0.308760,
    "mean": -0.714117,
    "low": -1.107821,
    "high": -0.320413,
}
"""rma(yi, vi, method="DL", test="knha") of metafor 4.8-0, six digits."""
BCG_I2 = 0.9222
"""rma(yi, vi) of metafor prints I² of 92.22 %."""

KACKER = Studies(
    np.array([61.00, 61.40, 62.21, 62.30, 62.34, 62.60, 62.70, 62.84, 65.90]),
    np.array([0.2025, 1.2100, 0.0900, 0.2025, 0.3844, 0.5625, 0.0676, 0.0225, 1.8225]),
)
"""Kacker (2004), Metrologia 41, 132-136; in statsmodels' tests of meta_analysis too."""
KACKER_PAULE_MANDEL = {
    "tau2": 0.705395309224248,
    "mean": 62.4076199113286,
    "q": 24.801897741835,
    "i2": 0.837218626490482,
}
"""rma(y, v, method="PM", control=list(tol=1e-9)), statsmodels' results_meta.exk1_metafor."""
KACKER_DERSIMONIAN_LAIRD = {
    "tau2": 0.288049246973751,
    "mean": 62.3901386044504,
    "low": 61.710383798052,
    "high": 63.0698934108488,
    "i2": 0.67744403741711,
}
"""rma(y, v, method="DL", test="knha", control=list(tol=1e-9)), exk1_dl_hksj."""
KACKER_COCHRAN = 1.1837
"""tau with equal weights, table 1 of the paper, four digits."""

CLASP = (
    np.array([(5, 156, 8, 74), (5, 303, 17, 303), (12, 565, 9, 477)], dtype=np.float64),
    np.array([(69, 1570, 94, 1565), (9, 103, 11, 105), (313, 4659, 352, 4650)], dtype=np.float64),
)


def clasp() -> Studies:
    """Aspirin against pre-eclampsia: log odds ratios, DerSimonian and Kacker (2007)."""
    a, n1, c, n2 = np.concatenate(CLASP).T
    b, d = n1 - a, n2 - c
    return Studies(np.log(a * d / (b * c)), 1 / a + 1 / b + 1 / c + 1 / d)


CLASP_TABLE = {
    "REML": (0.1843, -0.2980),
    "Paule-Mandel": (0.3681, -0.3811),
    "DerSimonian-Laird": (0.2323, -0.3240),
    "Hedges-Olkin": (0.4410, -0.4035),
}
"""tau and the mean, tables 3 and 4 of the paper, as metafor's test file has them."""
