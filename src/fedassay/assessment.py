"""The assessment: what is released from a tally, with every estimate and its errors."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from fedassay.decoding import DecodeOptions, decode, require_enough
from fedassay.errors import FileInvalid
from fedassay.estimate import Estimate, NotEnoughData
from fedassay.files import Fields, read_json, write_json
from fedassay.histogram import ScoreHistogram
from fedassay.metrics import named_metrics
from fedassay.survey import Survey
from fedassay.survey_json import survey_from_json
from fedassay.tally import Tally

ASSESSMENT_FORMAT = "fedassay.assessment/2"


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """A tally with the survey that it answers and the way it is read."""

    survey: Survey
    tally: Tally
    decode_options: DecodeOptions
    thresholds: tuple[float, ...] = (0.5,)

    def histogram(self) -> ScoreHistogram:
        """Decode the tally; raises `TooFewReports` below the survey's minimum."""
        return decode(self.survey, self.tally, decode_options=self.decode_options)

    def estimates(self) -> dict[str, Estimate]:
        """Every metric, by name."""
        return named_metrics(self.histogram(), self.thresholds, buckets=self.decode_options.buckets)

    @property
    def is_complete(self) -> bool:
        """Whether enough reports are in."""
        return min(self.tally.reports) >= self.survey.minimum_reports

    def to_json(self) -> dict[str, Any]:
        """The file's content; raises `TooFewReports` below the survey's minimum.

        Ids of reports are not in it: the tally file, which stays with its owner, has them.
        """
        require_enough(self.survey, self.tally)
        return {
            "format": ASSESSMENT_FORMAT,
            "survey": self.survey.to_json(),
            "reports": list(self.tally.reports),
            "counters": self.tally.counters.tolist(),
            "decode_options": asdict(self.decode_options),
            "thresholds": list(self.thresholds),
            "guarantee": self.survey.guarantee.sentence(),
            "estimates": estimates_json(self.estimates()),
        }

    def save(self, path: Path) -> None:
        """Write the assessment file, whole or not at all; below the minimum there is none."""
        write_json(path, self.to_json())

    @classmethod
    def load(cls, path: Path) -> "Assessment":
        """Read an assessment file; its estimates are computed again from its counters."""
        where = str(path)
        fields = Fields(read_json(path, ASSESSMENT_FORMAT), where)
        fields.only(
            "format", "survey", "reports", "counters", "decode_options", "thresholds",
            "guarantee", "estimates",
        )  # fmt: skip
        survey = survey_from_json(fields.get("survey"), where=where)
        thresholds = tuple(fields.numbers("thresholds", 10_000))
        if not all(0.0 <= threshold <= 1.0 for threshold in thresholds):
            raise FileInvalid(f"{where}: thresholds must lie in [0, 1].")
        tally = Tally.checked(
            survey,
            reports=fields.integers("reports", survey.hierarchy.levels),
            counters=np.array(fields.integers("counters", survey.hierarchy.width), np.int64),
            where=where,
        )
        require_enough(survey, tally)
        return cls(
            survey=survey,
            tally=tally,
            decode_options=_decode_options(
                Fields(fields.get("decode_options"), f"{where}, decode_options")
            ),
            thresholds=thresholds,
        )


def estimates_json(estimates: Mapping[str, Estimate]) -> dict[str, dict[str, Any]]:
    """Estimates by name, in JSON's terms: what is not finite becomes null."""
    return {name: estimate_json(estimate) for name, estimate in estimates.items()}


def estimate_json(estimate: Estimate) -> dict[str, Any]:
    """One estimate with its 95 % interval for the population's value."""
    low, high = estimate.interval(0.95)
    content: dict[str, Any] = {
        "value": _finite(estimate.value),
        "low": _finite(low),
        "high": _finite(high),
        "noise_sd": _finite(estimate.noise_sd),
        "binning_bound": _finite(estimate.binning_bound),
        "binning_sd": _finite(estimate.binning_sd),
        "sampling_sd": _finite(estimate.sampling_sd),
    }
    if isinstance(estimate, NotEnoughData):
        content["reason"] = estimate.reason
    return content


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _decode_options(fields: Fields) -> DecodeOptions:
    fields.only("smooth", "reconcile", "buckets")
    return DecodeOptions(
        smooth=fields.boolean("smooth"),
        reconcile=fields.boolean("reconcile"),
        buckets=None if fields.get("buckets") is None else fields.integer("buckets", 1, 2**16),
    )
