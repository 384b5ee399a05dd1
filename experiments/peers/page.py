"""The page of peers, from the outcomes of all contests."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log, nan, sqrt

import numpy as np

from experiments.page import markdown_table
from experiments.peers.contests import OURS, Outcome
from fedassay.examples import FloatArray

MEASURES = {"area": "ROC AUC", "curve": "the whole curve"}

ABOUT = {
    "Distributed privacy, ε = 1": "Secure aggregation is trusted to show the sum alone; noise is "
    "in it before anybody sees it. *fedcurve* (Xu and Cormode, arXiv 2510.04979): quantiles of "
    "each class from a tree. *DP-ECDF* (Barczewski, Mawass and Ramon, arXiv 2502.06651): noisy "
    "distribution functions of each class.",
    "A trusted server's noise, ε = 1": "The server holds every row. *Noisy histogram*: even "
    "buckets with Laplace noise, as libraries of differential privacy offer it. *Noise on the one "
    "figure*: ROC AUC itself by its smooth sensitivity; there is no curve. Ours is the survey "
    "under distributed privacy, whose noise follows the same law without a server to trust.",
    "Local privacy, ε = 5": "Nobody is trusted. *Bell et al.* 2020 (arXiv 1910.03861): pairs "
    "counted level by level of a tree; labels are private here, as in ours.",
    "Local privacy, ε = 1": "The same at a smaller epsilon.",
    "Noise of 10 sites, ε = 1": "Everybody trusts the own site, which adds noise before it "
    "answers. *DPAUC* (Sun et al. 2022, arXiv 2208.12294) protects labels alone; ours protects "
    "rows, scores and all.",
    "Our two steps and one, ε = 1": "Our own survey in one step, under distributed privacy. Two "
    "steps put their cells where scores lie; where these spread evenly one step, with more "
    "of them, may have the finer curve: whoever wants that more than the one figure asks once.",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """An entrant's best setting on one table by one measure, against ours."""

    contest: str
    table: str
    measure: str
    entrant: str
    setting: str
    theirs: float
    ours: float
    log_sd: float
    """The standard error of the logarithm of their ratio."""
    answered: float
    """The smaller share of trials with an answer."""

    @property
    def times(self) -> tuple[float, float, float]:
        """How many times larger their error is: the ratio and its 95 % interval."""
        if not (isfinite(self.theirs) and isfinite(self.ours)):
            return nan, nan, nan
        ratio = log(self.theirs / self.ours)
        low, high = ratio - 1.96 * self.log_sd, ratio + 1.96 * self.log_sd
        return exp(ratio), exp(low), exp(high)

    @property
    def verdict(self) -> str:
        """Ours, theirs, or nobody's beyond the measurement's luck."""
        ratio, low, high = self.times
        if not isfinite(ratio):
            return "no answer"
        return "ours" if low > 1.0 else "**theirs**" if high < 1.0 else "alike"


def comparisons(contest: str, table: str, outcomes: Sequence[Outcome]) -> list[Comparison]:
    """Ours against every other entrant, each with the setting that hindsight likes best."""
    found = []
    ours = next(each for each in outcomes if each.entrant == OURS)
    for measure in MEASURES:
        mine = _of(ours, measure)
        for entrant in dict.fromkeys(each.entrant for each in outcomes if each is not ours):
            tried = [each for each in outcomes if each.entrant == entrant]
            tried = [each for each in tried if np.isfinite(_of(each, measure)).any()]
            if not tried:
                continue
            best = min(tried, key=lambda each: float(np.nanmean(_of(each, measure))))
            theirs = _of(best, measure)
            shares = [float(np.isfinite(errors).mean()) for errors in (mine, theirs)]
            found.append(
                Comparison(
                    contest,
                    table,
                    measure,
                    entrant,
                    best.setting,
                    _mean(theirs),
                    _mean(mine),
                    sqrt(_relative_variance(mine) + _relative_variance(theirs)),
                    min(shares),
                )
            )
    return found


def _of(outcome: Outcome, measure: str) -> FloatArray:
    return outcome.area if measure == "area" else outcome.curve


def _mean(errors: FloatArray) -> float:
    return float(np.nanmean(errors)) if np.isfinite(errors).any() else nan


def _relative_variance(errors: FloatArray) -> float:
    """Of the mean, over its square."""
    known = errors[np.isfinite(errors)]
    if len(known) < 2:
        return nan
    return float(np.var(known, ddof=1) / len(known) / np.mean(known) ** 2)


def contest_sections(found: Sequence[Comparison]) -> Iterator[str]:
    """A table for every contest and measure."""
    for contest in dict.fromkeys(each.contest for each in found):
        yield f"## {contest}\n\n{ABOUT[contest]}"
        for measure, title in MEASURES.items():
            here = [each for each in found if (each.contest, each.measure) == (contest, measure)]
            if here:
                yield f"### {title}\n\n{_table(here)}"


def _table(found: Sequence[Comparison]) -> str:
    header = ["table", "entrant", "best setting", "its error", "ours", "times ours", "better"]
    body = []
    for each in found:
        ratio, low, high = each.times
        silent = f" ({each.answered:.0%} of trials answered)" if each.answered < 1.0 else ""
        times = f"{ratio:.1f} ({low:.1f} to {high:.1f})" if isfinite(ratio) else "–"
        errors = [f"{value:.2g}" if isfinite(value) else "–" for value in (each.theirs, each.ours)]
        body.append(
            [each.table, each.entrant, each.setting or "–", *errors, times, each.verdict + silent]
        )
    return markdown_table(header, body)


def summary(found: Sequence[Comparison]) -> str:
    """Who is beaten how often, and every case in which ours is not better."""
    body = []
    for key in dict.fromkeys((each.contest, each.measure, each.entrant) for each in found):
        here = [each for each in found if (each.contest, each.measure, each.entrant) == key]
        known = [log(each.times[0]) for each in here if isfinite(each.times[0])]
        others = [f"{each.table} ({each.verdict})" for each in here if each.verdict != "ours"]
        contest, measure, entrant = key
        body.append(
            [
                contest,
                entrant,
                MEASURES[measure],
                f"{exp(float(np.mean(known))):.1f}" if known else "–",
                f"{sum(each.verdict == 'ours' for each in here)} of {len(here)}",
                ", ".join(others) or "none",
            ]
        )
    header = ["trust", "entrant", "of", "times ours, geometric mean", "ours better on", "not on"]
    return markdown_table(header, body)


def averages_table(rows: Sequence[Mapping[str, float | str]]) -> str:
    """Clients' own ROC AUCs, averaged."""
    header = ["table", "clients", "ROC AUC of all rows", "average of clients", "off by",
              "rows that count", "ours, exact sums, off by"]  # fmt: skip
    body = [
        [
            str(row["table"]),
            str(row["clients"]),
            f"{row['exact']:.4f}",
            f"{row['average']:.4f}",
            f"{float(row['average']) - float(row['exact']):+.4f}",
            f"{row['held']:.1%}",
            f"{row['ours']:+.6f}",
        ]
        for row in rows
    ]
    return markdown_table(header, body)


def calibration_table(rows: Sequence[Mapping[str, float | str]]) -> str:
    """ECE and smooth ECE, of rows and of private histograms."""
    columns = {
        "ece": "ECE, 20 bins",
        "ours": "ours at ε = 1",
        "fine": "ECE, 100 bins",
        "smooth": "smECE",
        "ours_smooth": "smECE of our histogram at ε = 1",
    }
    body = [[str(row["table"]), *(f"{row[name]:.4f}" for name in columns)] for row in rows]
    return markdown_table(["table", *columns.values()], body)
