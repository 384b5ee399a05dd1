"""From a tally to a score histogram."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from fedassay.checks import require_type, require_whole
from fedassay.errors import SettingInvalid, TooFewReports
from fedassay.examples import FloatArray
from fedassay.files import Fields
from fedassay.hierarchy import Hierarchy
from fedassay.histogram import ScoreHistogram
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Law, Privacy
from fedassay.noise import (
    DenseNoise,
    NoiseModel,
    NoNoise,
    PartNoise,
    PrefixNoise,
    TreeNoise,
)
from fedassay.published import MergedTally, published
from fedassay.quiet_ends import without_quiet_ends
from fedassay.reconcile import Observed, fit_leaves, prefix_leaves, reconcile
from fedassay.survey import Survey
from fedassay.survey_cells import all_parts
from fedassay.survey_steps import SecondOfTwo
from fedassay.tally import Tally

MAX_BUCKETS = 2**16

PerLevel = tuple[FloatArray, ...]


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """How a tally is read: the defaults are the best we know."""

    smooth: bool = True
    """Interpolate inside cells by a monotone cubic, instead of evenly."""
    reconcile: bool = True
    """Fit all levels together by least squares, instead of naive prefix sums."""
    buckets: int | None = None
    """Read areas and scores from this many quantile buckets, instead of from the cells."""

    def __post_init__(self) -> None:
        require_type(self.smooth, bool, "whether to interpolate smoothly")
        require_type(self.reconcile, bool, "whether to reconcile levels")
        if self.buckets is not None:
            require_whole(self.buckets, "buckets", 1, MAX_BUCKETS)

    @classmethod
    def from_json(cls, fields: Fields) -> Self:
        """Rebuild them from untrusted JSON."""
        fields.only("smooth", "reconcile", "buckets")
        is_none = fields.get("buckets") is None
        return cls(
            smooth=fields.boolean("smooth"),
            reconcile=fields.boolean("reconcile"),
            buckets=None if is_none else fields.integer("buckets", 1, MAX_BUCKETS),
        )


def decode(survey: Survey, tally: Tally, *, decode_options: DecodeOptions) -> ScoreHistogram:
    """Debias the counters with each level's Law, join the levels, and carry the noise along.

    Guarantee: post-processing only; whatever the survey promises still holds. Below the
    survey's minimum nothing is decoded, and of exact sums nothing below its smallest cell.

    >>> from fedassay.grid import Grid
    >>> from fedassay.mechanisms import Exact, Privacy
    >>> from fedassay.wire import Report
    >>> survey = Survey(
    ...     privacy=Privacy.SECURE, grid=Grid.uniform(2), hierarchy=Hierarchy.flat(2),
    ...     mechanisms=(Exact(),), minimum_reports=2,
    ... )
    >>> first = Report(survey.fingerprint, b"1" * 16, np.array([3, 1, 0, 2]))
    >>> second = Report(survey.fingerprint, b"2" * 16, np.array([1, 0, 0, 1]))
    >>> tally = Tally.of(survey, [first, second])
    >>> decode(survey, tally, decode_options=DecodeOptions()).counts.tolist()
    [[4.0, 1.0], [0.0, 3.0]]
    """
    require_type(survey, Survey, "a survey", "fedassay.load reads survey files.")
    require_type(tally, Tally, "a tally", "fedassay.tally_answers takes answers.")
    require_type(decode_options, DecodeOptions, "decode_options", "Pass DecodeOptions().")
    tally.require(survey)
    require_enough(survey, tally)
    return decode_counters(survey, tally, decode_options=decode_options)


def decode_counters(
    survey: Survey, tally: Tally, *, decode_options: DecodeOptions
) -> ScoreHistogram:
    """As `decode`, of however few reports: of one site, where each may be seen.

    >>> from fractions import Fraction
    >>> from fedassay.grid import Grid
    >>> from fedassay.mechanisms import Polya, Privacy
    >>> survey = Survey(
    ...     privacy=Privacy.SITE, grid=Grid.uniform(2), hierarchy=Hierarchy.flat(2),
    ...     mechanisms=(Polya(Fraction(1), 1, 1),), minimum_reports=5,
    ... )
    >>> tally = Tally(survey.fingerprint, (1,), np.array([30, 10, 0, 20]))
    >>> decode_counters(survey, tally, decode_options=DecodeOptions()).total
    60.0
    """
    if isinstance(survey.step, SecondOfTwo):
        raise SettingInvalid(
            "the second of two surveys is read together with the first; found it alone. "
            "Pass the first assessment too (--first first-assessment.json)."
        )
    if survey.is_exact and not isinstance(survey.level_policy, OneLevel):
        seen = published(survey, tally)
        leaves = seen.per_level(survey)[-1].astype(np.float64)
        if not isinstance(seen, MergedTally):
            leaves = all_parts(survey, leaves)
        return ScoreHistogram(seen.edges(survey), leaves, NoNoise(), decode_options.smooth)
    leaves, noise = decode_leaves(survey, tally, decode_options=decode_options)
    if survey.groups is not None:
        leaves, noise = (
            all_parts(survey, leaves),
            PartNoise(noise, len(survey.groups.parts), None),
        )
    histogram = ScoreHistogram(survey.grid.edges, leaves, noise, decode_options.smooth)
    return without_quiet_ends(histogram) if reads_ends_alone(survey) else histogram


def reads_ends_alone(survey: Survey) -> bool:
    """Whether counters of exactly 0 and 1 may be left out where they hold noise alone.

    Those of several surveys or sites are added up first, cell by cell.

    >>> import fedassay
    >>> asked = {"epsilon": 1, "clients": 4, "examples": 1000, "steps": 1}
    >>> reads_ends_alone(fedassay.new_survey(privacy="distributed", **asked))
    True
    """
    return survey.privacy is Privacy.DISTRIBUTED and survey.step is None


def decode_leaves(
    survey: Survey, tally: Tally, *, decode_options: DecodeOptions
) -> tuple[FloatArray, NoiseModel]:
    """Unbiased counts per label and leaf, of however few reports, with their noise.

    >>> from fractions import Fraction
    >>> from fedassay.grid import Grid
    >>> from fedassay.mechanisms import Polya, Privacy
    >>> survey = Survey(
    ...     privacy=Privacy.SITE, grid=Grid.uniform(2), hierarchy=Hierarchy.flat(2),
    ...     mechanisms=(Polya(Fraction(1), 1, 1),), minimum_reports=5,
    ... )
    >>> tally = Tally(survey.fingerprint, (1,), np.array([30, 10, 0, 20]))
    >>> decode_leaves(survey, tally, decode_options=DecodeOptions())[0].tolist()
    [[30.0, 10.0], [0.0, 20.0]]
    """
    levels = range(survey.hierarchy.levels)
    values = tuple(
        debiased(survey, tally, level, clients=tally.clients(survey)) for level in levels
    )

    def variances(counts: PerLevel) -> PerLevel:
        return tuple(
            level_variance(
                survey.mechanisms[level].law(),
                clients=tally.clients(survey),
                reports=tally.reports[level],
                counts=counts[level],
                sampled=survey.samples_clients,
            )
            for level in levels
        )

    total = float(tally.clients(survey)) if survey.total_is_known else None
    leaves, noise = join_levels(
        survey, values, variances(values), decode_options=decode_options, total=total
    )
    if decode_options.reconcile and survey.samples_clients:
        # Once more, with variances from the leaves that all levels agree on.
        agreed = survey.hierarchy.climb(leaves)
        leaves, noise = join_levels(
            survey, values, variances(agreed), decode_options=decode_options, total=total
        )
    return leaves, noise


def require_enough(survey: Survey, tally: Tally) -> None:
    """Raise `TooFewReports` while any level is below the survey's minimum.

    >>> from fedassay.grid import Grid
    >>> from fedassay.mechanisms import Exact, Privacy
    >>> survey = Survey(
    ...     privacy=Privacy.SECURE, grid=Grid.uniform(2), hierarchy=Hierarchy.flat(2),
    ...     mechanisms=(Exact(),), minimum_reports=2,
    ... )
    >>> require_enough(survey, Tally.zero(survey))
    Traceback (most recent call last):
    ...
    fedassay.errors.TooFewReports: this survey needs at least 2 reports on every level...
    """
    for level, reports in enumerate(tally.reports):
        missing = survey.minimum_reports - reports
        if missing > 0:
            # Shared noise and shuffled reports depend on the crowd: local ones protect themselves.
            why = (
                f"or epsilon={float(survey.epsilon):g} would not hold"
                if survey.privacy.needs_crowd and survey.epsilon is not None
                else "before anything is decoded"
            )
            raise TooFewReports(
                f"this survey needs at least {survey.minimum_reports} reports on every level "
                f"{why}; level {level + 1} has {reports}. Wait for {missing} more, or start "
                f"a survey with a smaller minimum_reports."
            )


def level_variance(
    law: Law, *, clients: float, reports: float, counts: FloatArray, sampled: bool
) -> FloatArray:
    """The variance of a level's debiased counts, given an idea of the counts themselves.

    `sampled` counts stand for a population: reports on a level, and locally private ones, come
    from clients drawn at random, which adds (M/m) c. `TreeNoise` takes the part back that the
    table itself has. Counters that add up to the reports are treated as independent given
    their sum, as a multinomial is a set of Poisson counts given theirs.

    >>> from fractions import Fraction
    >>> from fedassay.mechanisms import Polya
    >>> law = Polya(Fraction(1), 1, 100).law()
    >>> variance = level_variance(
    ...     law, clients=100, reports=100, counts=np.array([7.0]), sampled=False
    ... )
    >>> variance.round(2).tolist()  # 2 e / (e - 1)^2, whatever the count
    [1.84]
    """
    scale = clients / reports
    hits = np.maximum(counts, 0.0) / scale
    per_report, per_hit = law.variance_per_report, law.variance_per_hit
    if law.sums_to_reports:
        per_report += law.offset**2
        per_hit += 2.0 * law.offset * law.gain
    if sampled:
        per_hit += law.gain**2
    variance: FloatArray = (reports * per_report + hits * per_hit) * (scale / law.gain) ** 2
    return variance


def join_levels(
    survey: Survey,
    values: PerLevel,
    variances: PerLevel,
    *,
    decode_options: DecodeOptions,
    total: float | None,
) -> tuple[FloatArray, NoiseModel]:
    """Leaves that fit all levels best by least squares, or naive ones, and their noise.

    >>> from fractions import Fraction
    >>> from fedassay.grid import Grid
    >>> from fedassay.mechanisms import Polya, Privacy
    >>> noise = Polya(Fraction(1), 1, 2)
    >>> survey = Survey(
    ...     privacy=Privacy.DISTRIBUTED, grid=Grid.uniform(2), hierarchy=Hierarchy.regular(2, 2),
    ...     mechanisms=(noise,) * Hierarchy.regular(2, 2).levels, minimum_reports=2,
    ... )
    >>> values = tuple(np.full((2, cells), 4.0) for cells in survey.hierarchy.cells_per_level)
    >>> variances = tuple(np.ones_like(each) for each in values)
    >>> leaves, _ = join_levels(
    ...     survey, values, variances, decode_options=DecodeOptions(), total=None
    ... )
    >>> leaves.tolist()
    [[4.0, 4.0], [4.0, 4.0]]
    """
    levels = survey.hierarchy
    local_epsilon = _local_epsilon(survey)
    if not decode_options.reconcile and isinstance(levels, Hierarchy):
        leaves = prefix_leaves(levels, values)
        table = leaves if survey.samples_clients else None
        return leaves, PrefixNoise(levels, variances, table, local_epsilon)
    if isinstance(levels, Hierarchy):
        leaves = reconcile(levels, values, variances, total=total)
        return leaves, tree_noise(survey, levels, leaves, variances)
    observed = [
        Observed(levels.rows(level), value, variance)
        for level, (value, variance) in enumerate(zip(values, variances, strict=True))
    ]
    leaves, covariance = fit_leaves(observed, total=total)
    table = leaves if survey.samples_clients else None
    return leaves, DenseNoise(covariance, table, local_epsilon)


def tree_noise(
    survey: Survey, tree: Hierarchy, leaves: FloatArray, variances: PerLevel
) -> TreeNoise:
    """The noise of leaves that were reconciled over a tree.

    >>> import fedassay
    >>> survey = fedassay.new_survey(privacy="distributed", epsilon=1, clients=1000, height=1)
    >>> noise = tree_noise(survey, Hierarchy.flat(2), np.ones((2, 2)), (np.full((2, 2), 3.0),))
    >>> noise.variance(np.array([[1.0, 0.0], [1.0, 0.0]]))
    6.0
    """
    table = leaves if survey.samples_clients else None
    return TreeNoise(tree, variances, table, survey.total_is_known, _local_epsilon(survey))


def _local_epsilon(survey: Survey) -> float | None:
    return float(survey.local_epsilon) if survey.local_epsilon else None


def debiased(survey: Survey, tally: Tally, level: int, *, clients: float) -> FloatArray:
    """Unbiased counts of one level, scaled to so many clients.

    >>> from fedassay.grid import Grid
    >>> from fedassay.mechanisms import Exact, Privacy
    >>> survey = Survey(
    ...     privacy=Privacy.SECURE, grid=Grid.uniform(2), hierarchy=Hierarchy.flat(2),
    ...     mechanisms=(Exact(),), minimum_reports=2,
    ... )
    >>> tally = Tally(survey.fingerprint, (2,), np.array([3, 1, 0, 2]))
    >>> debiased(survey, tally, 0, clients=4).tolist()
    [[6.0, 2.0], [0.0, 4.0]]
    """
    law, reports = survey.mechanisms[level].law(), tally.reports[level]
    sums = tally.per_level(survey)[level]
    return (sums.astype(np.float64) - law.offset * reports) * (clients / reports / law.gain)
