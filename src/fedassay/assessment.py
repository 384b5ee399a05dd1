"""The assessment: what is released from a tally, with every estimate and its errors."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedassay.calibration import Calibrator, FourDisplays, Method, ece, fit
from fedassay.checks import require_thresholds, require_type, unknown
from fedassay.decoding import DecodeOptions, decode, decode_counters, require_enough
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.estimate import Estimate, remedied
from fedassay.estimate_json import estimates_json, tracker_name
from fedassay.estimate_table import Exact, estimate_header, estimate_rows, reasons
from fedassay.examples import IntArray
from fedassay.files import Fields, as_path, read_json, write_json
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Guarantee
from fedassay.metrics import named_metrics
from fedassay.metrics.named import headings, named_metric, threshold_of
from fedassay.presentation import aligned, html_table, html_text
from fedassay.published import (
    cells_in_words,
    coarse_in_words,
    published,
    published_from_json,
    published_json,
)
from fedassay.sites.between import BetweenSites, SeenSites, SummedSites
from fedassay.sites.displays import ForestDisplay
from fedassay.sites.heterogeneity import Heterogeneity
from fedassay.sites.moment_words import moments_by_metric, moments_from_json
from fedassay.sites.random_effects import PoolOptions
from fedassay.sites.recalibration_advice import RecalibrationAdvice, advise_recalibration
from fedassay.sites.shown import sites_parts
from fedassay.survey import Survey
from fedassay.survey_json import survey_from_json
from fedassay.survey_steps import SecondOfTwo, coarse_after_both
from fedassay.tally import Tally
from fedassay.two_steps import check_pair, decode_both, decode_two, guarantee_of_both

ASSESSMENT_FORMAT = "fedassay.assessment/3"
ASSESSMENT_FORMATS = ("fedassay.assessment/2", ASSESSMENT_FORMAT)
"""Those that are read; in the second of them no cells were merged."""


_AUTO = "auto"


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """A tally with the survey that it answers and the way it is read; decoded once.

    >>> import fedassay
    >>> survey = fedassay.new_survey(minimum_reports=2, examples=200, thresholds=0.5)
    >>> labels, scores = [0, 1, 1, 0] * 10, [0.2, 0.7, 0.4, 0.6] * 10
    >>> policy = fedassay.ClientPolicy(exact_sums=True)
    >>> answers = [fedassay.answer(survey, labels, scores, policy=policy) for _ in range(9)]
    >>> result = fedassay.tally_answers(survey, answers)
    >>> print(result["recall@0.5"])
    0.500 [0.428, 0.572]
    >>> round(result.to_dict()["accuracy_at_0.5"], 2)
    0.5
    """

    survey: Survey
    tally: Tally
    decode_options: DecodeOptions
    thresholds: tuple[float, ...] = (0.5,)
    first: "Assessment | None" = None
    """That of the first survey, where this one is the second of two."""

    def __post_init__(self) -> None:
        require_type(self.survey, Survey, "an assessment's survey", "fedassay.load reads files.")
        require_type(self.tally, Tally, "a tally", "fedassay.tally_answers takes answers.")
        require_type(self.decode_options, DecodeOptions, "decode_options", "Pass DecodeOptions().")
        require_type(self.thresholds, tuple, "thresholds", "Write them as (0.5,).")
        require_thresholds(self.thresholds)
        self.tally.require(self.survey)
        if self.survey.pair is not None:
            raise SettingInvalid(
                "a survey of two models is read as a pair; found one model's reading. Use "
                "fedassay.tally_pair, or fedassay tally."
            )
        if self.first is not None:
            require_type(self.first, Assessment, "a first assessment", "fedassay.load reads files.")
            check_pair(self.first.survey, self.survey)
        elif isinstance(self.survey.step, SecondOfTwo):
            raise SettingInvalid(
                "the second of two surveys is read together with the first; found it alone. "
                "Pass the first assessment too (--first first-assessment.json)."
            )

    @property
    def guarantee(self) -> Guarantee:
        """What the survey promises, or both surveys together where it is the second of two."""
        if self.first is None:
            return self.survey.guarantee
        return guarantee_of_both(self.first.survey, self.survey)

    def histogram(self) -> ScoreHistogram:
        """The decoded tally; raises `TooFewReports` below the survey's minimum."""
        return self._histogram

    @cached_property
    def sites(self) -> BetweenSites | None:
        """Its sites, each by itself or by sums of moments; None where neither may be known."""
        if self.tally.sites:
            return SeenSites(self.site_histograms())
        if self.survey.moments is None:
            return None
        return SummedSites(
            moments=moments_by_metric(self.survey, self.tally.moments),
            most_sites=self.survey.moments.most_sites,
            colluders=self.survey.colluders,
        )

    def heterogeneity(self, metric: str, options: PoolOptions | None = None) -> Heterogeneity:
        """What differs between sites: mean, spread, and the interval for a new site."""
        return self._known_sites().heterogeneity(metric, options)

    def plot_sites(self, metric: str = "roc_auc", *, ax: Any = None) -> ForestDisplay:
        """A forest plot of a metric at every site, where sites may be seen."""
        sites = self._known_sites()
        if not isinstance(sites, SeenSites):
            raise SettingInvalid(
                "a forest plot shows single sites; of these only sums of moments are known. Ask "
                "with privacy site."
            )
        return sites.plot(metric, ax=ax)

    def plot(self, *, name: str = "federation", figure: Any = None) -> FourDisplays:
        """ROC curve, calibration, decision curve and scores of both classes in one figure."""
        return FourDisplays.from_histogram(self._histogram, name=name, figure=figure)

    def recalibration(self) -> RecalibrationAdvice:
        """Whether scores should be recalibrated, and by site where sites may be seen."""
        if isinstance(self.sites, SeenSites):
            return self.sites.recalibration()
        return advise_recalibration({"all": self._histogram})

    def _known_sites(self) -> BetweenSites:
        if self.sites is None:
            raise SettingInvalid(
                f"nothing is known of single sites under {self.survey.privacy.value} privacy as "
                "this survey asked. Ask with privacy site (--privacy site), or for moments under "
                "secure privacy (--site-moments)."
            )
        return self.sites

    def site_histograms(self) -> dict[str, ScoreHistogram]:
        """Each site's own counts, decoded, where sites may be seen; of both surveys, if two.

        >>> import fedassay
        >>> labels, scores = [0, 1] * 500, [i / 1000 for i in range(1000)]
        >>> sites = ["north"] * 400 + ["south"] * 600
        >>> asked = {"privacy": "site", "epsilon": 1, "steps": 1, "seed": 0}
        >>> result = fedassay.simulate(labels, scores, clients=sites, **asked)
        >>> list(result.site_histograms())
        ['north', 'south']
        """
        return {
            name: self._site_histogram(name, counters)
            for name, counters in self.tally.sites.items()
            if self.first is None or name in self.first.tally.sites
        }

    def _site_histogram(self, name: str, counters: IntArray) -> ScoreHistogram:
        own = _one_report(self.survey, counters)
        if self.first is None:
            return decode_counters(self.survey, own, decode_options=self.decode_options)
        before = _one_report(self.first.survey, self.first.tally.sites[name])
        return decode_both(
            self.first.survey, before, self.survey, own, decode_options=self.decode_options
        )

    def estimates(self) -> dict[str, Estimate]:
        """Every metric, by name."""
        return dict(self._estimates)

    @cached_property
    def _histogram(self) -> ScoreHistogram:
        if self.first is None:
            return decode(self.survey, self.tally, decode_options=self.decode_options)
        return decode_two(
            self.first.survey,
            self.first.tally,
            self.survey,
            self.tally,
            decode_options=self.decode_options,
        )

    @cached_property
    def _estimates(self) -> dict[str, Estimate]:
        found = named_metrics(self._histogram, self.thresholds, buckets=self.decode_options.buckets)
        return {name: self.said(name, estimate) for name, estimate in found.items()}

    def said(self, name: str, estimate: Estimate) -> Estimate:
        """The same, with what helps where merged cells, or those of two steps, are too coarse."""
        if self.first is not None:
            return remedied(estimate, coarse_after_both(threshold_of(name)))
        merged = self.survey.smallest_cell
        return remedied(estimate, coarse_in_words(self.survey)) if merged else estimate

    def __getitem__(self, name: str) -> Estimate:
        """One metric by name; those at a threshold, such as precision@0.3, at any; and ece."""
        known: dict[str, Estimate] = vars(self).get("_estimates", {})
        if name == "ece":
            return ece(self._histogram)
        if name in known:
            return known[name]
        buckets = self.decode_options.buckets
        return self.said(name, named_metric(self._histogram, name, buckets=buckets))

    def __iter__(self) -> Iterator[str]:
        """The names of the metrics."""
        return iter(self._estimates)

    def calibrate(
        self, method: Method | str | None = None, *, monotone: bool = False
    ) -> Calibrator:
        """Fit a calibrator to the tally: by a method, its name, or the best one expected.

        With `monotone`, a map that would change ranks is refused, and never chosen.

        Guarantee: post-processing only; nothing more is spent.
        """
        known: dict[object, Method | None] = {None: None, _AUTO: None}
        known |= {member: member for member in Method}
        known |= {member.value: member for member in Method}
        asked: object = method
        if not isinstance(asked, str | Method | None) or asked not in known:
            names = [_AUTO, *(member.value for member in Method)]
            raise SettingInvalid(unknown(method, names, "a calibration method"))
        return fit(self._histogram, known[asked], monotone=monotone)

    def to_dict(self) -> dict[str, float]:
        """Every figure as a flat float, for any experiment tracker.

        A metric has its value, and `_low` and `_high` of its 95 % interval; `@` becomes
        `_at_` and `=` becomes `_`, which trackers accept in names. Metrics without a value are
        left out.
        """
        flat = {"reports": float(self.reports), "examples": self._histogram.total}
        if self.survey.total_epsilon is not None:
            flat["epsilon"] = float(self.survey.total_epsilon)
        for name, estimate in self._estimates.items():
            if estimate.is_available:
                key, (low, high) = tracker_name(name), estimate.interval()
                flat |= {key: estimate.value, f"{key}_low": low, f"{key}_high": high}
        return {name: float(value) for name, value in flat.items()}

    @property
    def reports(self) -> int:
        """How many reports were counted; of both surveys where each client answers one of two."""
        counted = self.tally.clients(self.survey)
        if self.first is not None and self.survey.is_local:
            counted += self.first.reports
        return counted

    @property
    def exact(self) -> Exact | None:
        """Exact values by metric, where they are known: in simulations."""
        return None

    @property
    def headline(self) -> str:
        """What was gathered, and under which promise."""
        held, promise = self._histogram, self.guarantee.sentence()
        counted = f"{self.reports:,} reports, {held.total:,.0f} examples, {held.buckets:,} buckets."
        return f"{counted} {promise}{self.cells_note}"

    @property
    def cells_note(self) -> str:
        """How a smallest cell was kept, or that exact sums have none; what noise leaves unseen."""
        held = self._histogram
        edges = held.edges if held.cells is None else held.edges[held.cells]
        return cells_in_words(self.survey, edges, self.thresholds)

    @property
    def steps(self) -> int:
        """How many surveys the figures come from."""
        return 1 if self.first is None else 2

    def __str__(self) -> str:
        """The table that the command line prints."""
        if not self.is_complete:
            return self._waiting
        header = estimate_header(exact=self.exact)
        table = aligned(header, self._rows())
        parts = [
            part if isinstance(part, str) else aligned(*part) for part in sites_parts(self.sites)
        ]
        above = "\n".join([self.headline, "", table, *reasons(self._estimates)])
        return "\n\n".join([above, *parts])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.reports:,} reports, {self.survey!r}>"

    def _repr_html_(self) -> str:
        if not self.is_complete:
            return html_text(self._waiting)
        header = estimate_header(exact=self.exact)
        table = html_table(header, self._rows())
        below = "".join(
            html_text(part) if isinstance(part, str) else html_table(*part)
            for part in sites_parts(self.sites)
        )
        why = "".join(map(html_text, reasons(self._estimates)))
        return html_text(self.headline) + table + why + below

    def _rows(self) -> list[list[str]]:
        above = headings(self._estimates)
        return estimate_rows(self._estimates, exact=self.exact, headings=above)

    @property
    def _waiting(self) -> str:
        return (
            f"{self.reports:,} reports; nothing is decoded below {self.survey.minimum_reports:,} "
            f"on every level. {self.guarantee.sentence()}"
        )

    @property
    def is_complete(self) -> bool:
        """Whether enough reports are in."""
        return min(self.tally.reports) >= self.survey.minimum_reports

    def to_json(self) -> dict[str, Any]:
        """The file's content; raises `TooFewReports` below the survey's minimum.

        Ids of reports are not in it: the tally file, which stays with its owner, has them.
        """
        require_enough(self.survey, self.tally)
        first = {} if self.first is None else {"first": _counted(self.first)}
        return {
            "format": ASSESSMENT_FORMAT,
            **_counted(self),
            **first,
            "decode_options": asdict(self.decode_options),
            "thresholds": list(self.thresholds),
            "guarantee": self.guarantee.sentence(),
            "estimates": estimates_json(self.estimates()),
        }

    def save(self, path: str | Path) -> None:
        """Write the assessment file, whole or not at all; below the minimum there is none."""
        write_json(as_path(path), self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> "Assessment":
        """Read an assessment file; its estimates are computed again from its counters."""
        where = str(path)
        fields = Fields(read_json(as_path(path), ASSESSMENT_FORMATS), where)
        fields.only(
            "format", "survey", "reports", "counters", "decode_options", "thresholds",
            "guarantee", "estimates",
            *(name for name in ("first", "sites", "moments", "kept", "groups") if fields.has(name)),
        )  # fmt: skip
        survey, tally = _read_counted(fields, where)
        thresholds = tuple(fields.numbers("thresholds", 10_000))
        if not all(0.0 <= threshold <= 1.0 for threshold in thresholds):
            raise FileInvalid(f"{where}: thresholds must lie in [0, 1].")
        decode_options = DecodeOptions.from_json(fields.inside("decode_options"))
        first = None
        if fields.has("first"):
            inside = fields.inside("first")
            seen = ["sites"] if inside.has("sites") else []
            inside.only("survey", "reports", "counters", *seen)
            first = cls(*_read_counted(inside, f"{where}, first"), decode_options, thresholds)
        return cls(
            survey=survey,
            tally=tally,
            decode_options=decode_options,
            thresholds=thresholds,
            first=first,
        )


def _one_report(survey: Survey, counters: IntArray) -> Tally:
    return Tally(survey.fingerprint, (1,) * survey.hierarchy.levels, counters)


def _counted(assessment: Assessment) -> dict[str, Any]:
    """A survey and the sums of its reports, and the reports by site where they may be seen."""
    moments = moments_by_metric(assessment.survey, assessment.tally.moments)
    return {
        "survey": assessment.survey.to_json(),
        **published_json(published(assessment.survey, assessment.tally)),
        **({"moments": moments} if moments else {}),
    }


def _read_counted(fields: Fields, where: str) -> tuple[Survey, Tally]:
    survey = survey_from_json(fields.get("survey"), where=where)
    moments = moments_from_json(fields, survey)
    tally = published_from_json(fields, survey, where, moments=moments)
    require_enough(survey, tally)
    return survey, tally
