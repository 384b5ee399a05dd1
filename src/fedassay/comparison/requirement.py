"""What is required of a figure, as people write it: roc_auc >= 0.80."""

import re
from dataclasses import dataclass

from fedassay.checks import require_number, require_type
from fedassay.errors import SettingInvalid
from fedassay.metrics.named import check_metric, metric_at

_FORM = re.compile(r"\s*([a-z][a-z0-9_@=.]*?)\s*(>=|<=|>|<|≥|≤)\s*([^\s<>=]+)\s*")
_LARGEST_TEXT = 200
_EXAMPLE = "Write 'roc_auc >= 0.80' or 'brier <= 0.15'."


@dataclass(frozen=True, slots=True)
class Requirement:
    """A metric that must reach a bound, or stay below it.

    >>> str(Requirement.parse("precision@.50>=0.7"))
    'precision@0.5 >= 0.7'
    """

    metric: str
    bound: float
    at_least: bool = True

    def __post_init__(self) -> None:
        if self.metric != "ece":  # a figure of an assessment that has an interval of its own
            check_metric(self.metric)
        require_number(self.bound, "a required value")
        require_type(self.at_least, bool, "at_least", "True asks for at least the bound.")

    @classmethod
    def parse(cls, text: str) -> "Requirement":
        """Read a requirement; equality counts as met, whichever sign is written.

        >>> Requirement.parse("roc_auc = 0.8")
        Traceback (most recent call last):
        ...
        fedassay.errors.SettingInvalid: a requirement is a metric, >= or <=, and a number; ...
        """
        require_type(text, str, "a requirement", _EXAMPLE)
        parts = _FORM.fullmatch(text) if len(text) <= _LARGEST_TEXT else None
        number = None if parts is None else _number(parts[3])
        if parts is None or number is None:
            raise SettingInvalid(
                "a requirement is a metric, >= or <=, and a number; found "
                f"{text[:40]!r}. {_EXAMPLE}"
            )
        return cls(metric_at(parts[1], ()), number, parts[2] in {">=", ">", "≥"})

    def __str__(self) -> str:
        return f"{self.metric} {'>=' if self.at_least else '<='} {self.bound:g}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
