"""The page of accuracy: errors side by side, and their ratios."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import exp, isfinite, log, nan, sqrt

import numpy as np

from experiments.page import markdown_table
from experiments.trials import DEFAULT, ONE_STEP, PAPER, TWO_STEPS, Setting
from fedassay.examples import FloatArray

BARS = {"distributed 1": 4.0, "local 5": 6.0, "local 1": 4.0}
"""How many times smaller ROC AUC's error must be than the paper preset's."""
FAMILIES = {
    "roc_auc": "ROC AUC",
    "average_precision": "average precision",
    "precision": "precision",
    "recall": "recall",
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Errors:
    """Absolute errors on one table in one setting: design x trial x metric."""

    table: str
    setting: Setting
    rows: int
    positives: int
    exact: dict[str, float]
    designs: tuple[str, ...]
    default: str
    """Which of the designs is chosen when nothing is said about steps."""
    errors: FloatArray

    def of(self, design: str, family: str) -> FloatArray:
        """A family's error in every trial: the mean over its thresholds."""
        design = self.default if design == DEFAULT else design
        places = [i for i, name in enumerate(self.exact) if _is_of(name, family)]
        errors: FloatArray = self.errors[self.designs.index(design)][:, places].mean(axis=1)
        return errors

    def mean(self, design: str, family: str) -> float:
        """Over the trials that have an answer."""
        errors = self.of(design, family)
        answered = np.isfinite(errors)
        return float(errors[answered].mean()) if answered.any() else nan

    def log_ratio(self, design: str, family: str) -> tuple[float, float]:
        """Log of the paper preset's mean error over a design's, and its standard error."""
        paper, ours = (self.of(each, family) for each in (PAPER, design))
        paper, ours = paper[np.isfinite(paper)], ours[np.isfinite(ours)]
        if min(len(paper), len(ours)) < 2:
            return nan, nan
        variance = sum(
            float(np.var(e, ddof=1)) / len(e) / float(e.mean()) ** 2 for e in (paper, ours)
        )
        return log(float(paper.mean()) / float(ours.mean())), sqrt(variance)

    def with_guesses(self) -> "Errors":
        """The same where whoever has no answer takes ROC AUC for 1/2, as of a useless score."""
        errors, place = self.errors.copy(), list(self.exact).index("roc_auc")
        silent = np.isnan(errors[..., place])
        errors[..., place][silent] = abs(self.exact["roc_auc"] - 0.5)
        return replace(self, errors=errors)


def _is_of(name: str, family: str) -> bool:
    """Whether a metric belongs to a family; recall at a wanted specificity is another figure."""
    return name == family or (name.startswith(f"{family}@") and "=" not in name)


def accuracy_page(found: list[Errors]) -> str:
    """The whole page."""
    return "\n\n".join(_sections(found)) + "\n"


def _sections(found: list[Errors]) -> Iterator[str]:
    sizes = sorted({each.errors.shape[1] for each in found})
    trials = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    yield (
        "# Accuracy where scores crowd\n\n"
        "Written by `python -m experiments.accuracy`; every figure comes from one run. Mean "
        f"absolute errors over {trials} trials of each survey on each table, every row a client "
        "of its own: four tables as they are, and three made rare (1 % positives). Precision "
        "and recall are means over three thresholds that both surveys are asked for: the scores' "
        "quantiles 0.5, 0.8 and 0.95. *Times* is the paper preset's error over ours, with 95 % "
        "of the measurement's own luck (delta method on the logarithm). *Default* is what the "
        "planner chooses when nothing is said about steps. Means are over the trials that have "
        "an answer, and ratios over the tables on which both surveys have some; where either "
        "has none there is no ratio."
    )
    yield "## Geometric means over the tables\n\n" + _means(found)
    yield (
        "## Trials without an answer\n\n"
        "The preset is asked by our rules, and says “not enough data” in the trials in which it "
        "would be furthest off: leaving them out is in its favour. Here whoever has no answer in a "
        "trial, the preset or ours, takes ROC AUC for 1/2. The verdicts above do not rest on "
        "it.\n\n" + _guessed(found)
    )
    for setting in dict.fromkeys(each.setting for each in found):
        of_setting = [each for each in found if each.setting == setting]
        for family, title in FAMILIES.items():
            yield f"## {setting.name.capitalize()}: {title}\n\n" + _table(of_setting, family)


def _means(found: list[Errors]) -> str:
    body = []
    for setting in dict.fromkeys(each.setting for each in found):
        of_setting = [each for each in found if each.setting == setting]
        for family, title in FAMILIES.items():
            bar = BARS.get(setting.name, nan) if family == "roc_auc" else nan
            ratios = [each.log_ratio(DEFAULT, family)[0] for each in of_setting]
            worse = [
                each.table
                for each, ratio in zip(of_setting, ratios, strict=True)
                if isfinite(ratio) and ratio < 0.0
            ]
            mean, error = geometric(of_setting, DEFAULT, family)
            body.append(
                [
                    setting.name,
                    title,
                    _times(*geometric(of_setting, ONE_STEP, family)),
                    _times(*geometric(of_setting, TWO_STEPS, family)),
                    _times(mean, error),
                    f"{bar:g}" if isfinite(bar) else "",
                    _reached(mean, error, bar),
                    ", ".join(worse) or "none",
                ]
            )
    header = [
        "setting",
        "metric",
        "one step",
        "two steps",
        "default",
        "bar",
        "reached",
        "worse than the preset on",
    ]
    return markdown_table(header, body)


def _guessed(found: list[Errors]) -> str:
    """ROC AUC with trials without an answer counted in."""
    guessed, body = [each.with_guesses() for each in found], []
    for setting in dict.fromkeys(each.setting for each in guessed):
        of_setting = [each for each in guessed if each.setting == setting]
        designs = (ONE_STEP, TWO_STEPS, DEFAULT)
        times = [_times(*geometric(of_setting, design, "roc_auc")) for design in designs]
        body.append([setting.name, *times])
    return markdown_table(["setting", "one step", "two steps", "default"], body)


def geometric(found: list[Errors], design: str, family: str) -> tuple[float, float]:
    """The mean log ratio over the tables that have one, and its standard error."""
    ratios = [each.log_ratio(design, family) for each in found]
    known = [(ratio, error) for ratio, error in ratios if isfinite(ratio)]
    if not known:
        return nan, nan
    values, errors = zip(*known, strict=True)
    return float(np.mean(values)), sqrt(sum(e * e for e in errors)) / len(known)


def _reached(mean: float, error: float, bar: float) -> str:
    if not isfinite(bar):
        return ""
    clear = 1.96 * error
    if mean - clear >= log(bar):
        return "yes"
    return "no" if mean + clear < log(bar) else "within luck"


def _times(mean: float, error: float) -> str:
    if not isfinite(mean):
        return "–"
    low, high = (exp(mean + sign * 1.96 * error) for sign in (-1.0, 1.0))
    return f"{exp(mean):.2f} ({low:.2f} to {high:.2f})"


def _table(found: list[Errors], family: str) -> str:
    header = ["table", "clients", "positives", "paper", "one step", "two steps", "one: times"]
    header += ["two: times", "without an answer (paper, one, two)"]
    body = []
    for each in found:
        means = [each.mean(design, family) for design in (PAPER, ONE_STEP, TWO_STEPS)]
        silent = [
            float(np.isnan(each.of(design, family)).mean())
            for design in (PAPER, ONE_STEP, TWO_STEPS)
        ]
        row = [each.table, f"{each.rows:,}", f"{each.positives:,}"]
        row += [f"{mean:.5f}" for mean in means]
        row += [_times(*each.log_ratio(design, family)) for design in (ONE_STEP, TWO_STEPS)]
        row.append(", ".join(f"{100 * share:.0f} %" for share in silent))
        body.append(row)
    return markdown_table(header, body)
