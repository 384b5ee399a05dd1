"""The assessment of two models on the same rows: figures of each, and what differs."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

from fedassay.checks import require_thresholds, require_type, unknown
from fedassay.decoding import DecodeOptions, require_enough
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.estimate import Estimate, remedied
from fedassay.estimate_json import estimates_json, tracker_name
from fedassay.estimate_table import short_name
from fedassay.files import Fields, as_path, read_json, write_json
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Guarantee
from fedassay.metrics.named import named_metrics
from fedassay.pair_grid import Names
from fedassay.paired.decoding import decode_pair
from fedassay.paired.difference import FINER_PAIR, PairedDifference, PairReader
from fedassay.paired.gradients import compared_metrics
from fedassay.paired.pair_histogram import PairHistogram
from fedassay.paired.published import (
    pair_from_json,
    pair_json,
    pair_of,
    published_pair,
)
from fedassay.paired.reclassification import Reclassification, reclassification
from fedassay.presentation import aligned, html_table, html_text
from fedassay.survey import Survey
from fedassay.survey_json import survey_from_json
from fedassay.tally import Tally

PAIRED_FORMAT = "fedassay.paired-assessment/1"
_LARGE = 10.0


def model_metric(metric: str, model: str) -> str:
    """What one model's figure is called.

    >>> model_metric("roc_auc", "a"), model_metric("precision@0.5", "b")
    ('roc_auc[a]', 'precision[b]@0.5')
    """
    name, at, where = metric.partition("@")
    return f"{name}[{model}]{at}{where}"


@dataclass(frozen=True, eq=False, repr=False)
class PairedAssessment:
    """A tally of two models with the survey that it answers; decoded once."""

    survey: Survey
    tally: Tally
    decode_options: DecodeOptions
    thresholds: tuple[float, ...] = (0.5,)

    def __post_init__(self) -> None:
        require_type(self.survey, Survey, "an assessment's survey", "fedassay.load reads files.")
        require_type(self.tally, Tally, "a tally", "fedassay.tally_answers takes answers.")
        require_type(self.decode_options, DecodeOptions, "decode_options", "Pass DecodeOptions().")
        require_type(self.thresholds, tuple, "thresholds", "Write them as (0.5,).")
        require_thresholds(self.thresholds)
        pair_of(self.survey)
        self.tally.require(self.survey)

    @property
    def names(self) -> Names:
        """What the two models are called."""
        return pair_of(self.survey).names

    @property
    def guarantee(self) -> Guarantee:
        """What the survey promises: a row's two scores are one report."""
        return self.survey.guarantee

    @property
    def reports(self) -> int:
        """How many reports were counted."""
        return self.tally.clients(self.survey)

    def pair(self) -> PairHistogram:
        """Both histograms and the joint counts; raises `TooFewReports` below the minimum."""
        return self._pair

    def histogram(self, name: str) -> ScoreHistogram:
        """One model's histogram by its name."""
        if name not in self.names:
            raise SettingInvalid(unknown(name, self.names, "a model"))
        return self._pair.of(name)

    def estimates(self) -> dict[str, Estimate]:
        """Every metric of either model, by names such as roc_auc[a] and precision[b]@0.5."""
        return dict(self._estimates)

    def differences(self) -> dict[str, PairedDifference]:
        """The first model's figures minus the second's, by metric."""
        return dict(self._differences)

    def reclassification(self, threshold: float) -> Reclassification:
        """Who is above a threshold by one model and not by the other."""
        require_thresholds([threshold])
        return reclassification(self._pair, threshold)

    @cached_property
    def _pair(self) -> PairHistogram:
        return decode_pair(self.survey, self.tally, decode_options=self.decode_options)

    @cached_property
    def _estimates(self) -> dict[str, Estimate]:
        buckets = self.decode_options.buckets
        return {
            model_metric(metric, name): remedied(estimate, FINER_PAIR)
            for name in self.names
            for metric, estimate in named_metrics(
                self._pair.of(name), self.thresholds, buckets=buckets
            ).items()
        }

    @cached_property
    def _differences(self) -> dict[str, PairedDifference]:
        reader = PairReader(self._pair, buckets=self.decode_options.buckets)
        return {name: reader.difference(name) for name in compared_metrics(self.thresholds)}

    def __getitem__(self, name: str) -> Estimate:
        """One model's figure by name."""
        if name not in self._estimates:
            raise SettingInvalid(unknown(name, list(self._estimates), "a metric"))
        return self._estimates[name]

    def __iter__(self) -> Iterator[str]:
        """The names of the figures."""
        return iter(self._estimates)

    def to_dict(self) -> dict[str, float]:
        """Every figure as a flat float, for any experiment tracker."""
        flat = {"reports": float(self.reports), "examples": self._pair.first.total}
        figures: Mapping[str, Estimate | PairedDifference] = {
            **self._estimates,
            **{f"{name}_difference": each for name, each in self._differences.items()},
        }
        for name, each in figures.items():
            if each.is_available:
                key, (low, high) = _tracked(name), each.interval()
                flat |= {key: each.value, f"{key}_low": low, f"{key}_high": high}
        return {name: float(value) for name, value in flat.items()}

    @property
    def is_complete(self) -> bool:
        """Whether enough reports are in."""
        return min(self.tally.reports) >= self.survey.minimum_reports

    @property
    def headline(self) -> str:
        """What was gathered, and under which promise."""
        pair = self._pair
        cells = f"{pair.joint.shape[1]:,} x {pair.joint.shape[2]:,}"
        return (
            f"{self.reports:,} reports, {pair.first.total:,.0f} examples with two scores each, "
            f"{pair.first.buckets:,} and {pair.second.buckets:,} buckets, {cells} joint cells. "
            f"{self.guarantee.sentence()}"
        )

    @property
    def header(self) -> list[str]:
        """What the columns of `rows` are."""
        first, second = self.names
        return ["metric", first, second, f"{first} - {second}", "95 %", "p"]

    def rows(self) -> list[list[str]]:
        """Both models' figures and their differences, as people read them."""
        rows = []
        for name, each in self._differences.items():
            values = [_shown(each.first.value), _shown(each.second.value)]
            if not each.is_available:
                rows.append([short_name(name), *values, "-", "not enough data", ""])
                continue
            low, high = each.interval()
            star = " *" if each.told_apart() else ""
            interval = f"[{_shown(low)}, {_shown(high)}]"
            figures = [f"{_shown(each.value)}{star}", interval, _p(each.p_value)]
            rows.append([short_name(name), *values, *figures])
        return rows

    @property
    def footnote(self) -> str:
        """What the star means, and what the intervals know."""
        if self._pair.is_drawn:
            return (
                "* can be told apart. Each row answered for one of the models, which under this "
                "noise tells more: the intervals are those of different rows."
            )
        return "* can be told apart. Both models score the same rows: the intervals are paired."

    def __str__(self) -> str:
        if not self.is_complete:
            return self._waiting
        parts = [self.headline, aligned(self.header, self.rows()), self.footnote]
        for threshold in self.thresholds:
            table = self.reclassification(threshold)
            if table.counts is None:
                parts.append(f"Reclassification: {table.reason}")
            else:
                parts.append(aligned(self._sides(threshold), table.rows()))
        return "\n\n".join(parts)

    def _sides(self, threshold: float) -> list[str]:
        first, second = self.names
        return [
            f"above {threshold:g} by", "neither", f"{second} only", f"{first} only", "both",
        ]  # fmt: skip

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.reports:,} reports, {self.survey!r}>"

    def _repr_html_(self) -> str:
        if not self.is_complete:
            return html_text(self._waiting)
        table = html_table(self.header, self.rows())
        return html_text(self.headline) + table + html_text(self.footnote)

    @property
    def _waiting(self) -> str:
        return (
            f"{self.reports:,} reports; nothing is decoded below {self.survey.minimum_reports:,} "
            f"on every level. {self.guarantee.sentence()}"
        )

    def figures_json(self) -> dict[str, Any]:
        """Estimates, differences and reclassification tables in JSON's terms."""
        return {
            **estimates_json(self.estimates()),
            "differences": differences_json(self.differences()),
            "reclassification": self._tables_json(),
        }

    def _tables_json(self) -> dict[str, Any]:
        return {repr(each): self.reclassification(each).to_json() for each in self.thresholds}

    def to_json(self) -> dict[str, Any]:
        """The file's content; raises `TooFewReports` below the survey's minimum."""
        require_enough(self.survey, self.tally)
        return {
            "format": PAIRED_FORMAT,
            "survey": self.survey.to_json(),
            **pair_json(published_pair(self.survey, self.tally)),
            "decode_options": asdict(self.decode_options),
            "thresholds": list(self.thresholds),
            "guarantee": self.guarantee.sentence(),
            "estimates": estimates_json(self.estimates()),
            "differences": differences_json(self.differences()),
            "reclassification": self._tables_json(),
        }

    def save(self, path: str | Path) -> None:
        """Write the file, whole or not at all; below the minimum there is none."""
        write_json(as_path(path), self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> "PairedAssessment":
        """Read a file; its figures are computed again from its counters."""
        where = str(path)
        fields = Fields(read_json(as_path(path), (PAIRED_FORMAT,)), where)
        fields.only(
            "format", "survey", "reports", "counters", "decode_options", "thresholds", "guarantee",
            "estimates", "differences", "reclassification",
            *(["kept"] if fields.has("kept") else []),
        )  # fmt: skip
        survey = survey_from_json(fields.get("survey"), where=where)
        pair_of(survey)
        tally = pair_from_json(fields, survey, where)
        require_enough(survey, tally)
        thresholds = tuple(fields.numbers("thresholds", 10_000))
        if not all(0.0 <= threshold <= 1.0 for threshold in thresholds):
            raise FileInvalid(f"{where}: thresholds must lie in [0, 1].")
        options = DecodeOptions.from_json(fields.inside("decode_options"))
        return cls(survey, tally, options, thresholds)


def differences_json(differences: Mapping[str, PairedDifference]) -> dict[str, Any]:
    """Differences by metric, with their 95 % interval and p-value; what is not finite is null."""
    content = {}
    for name, each in differences.items():
        low, high = each.interval()
        content[name] = {
            "value": _finite(each.value),
            "low": _finite(low),
            "high": _finite(high),
            "p_value": each.p_value if each.is_available else None,
            "noise_sd": _finite(each.noise_sd),
            "sampling_sd": _finite(each.sampling_sd),
            "binning_sd": _finite(each.binning_sd),
        }
    return content


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _tracked(name: str) -> str:
    return tracker_name(name).replace("[", "_").replace("]", "")


def _shown(value: float) -> str:
    if not isfinite(value):
        return "-"
    return f"{value:.4f}" if abs(value) < _LARGE else f"{value:.1f}"


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 1e-3 else "<.001"
