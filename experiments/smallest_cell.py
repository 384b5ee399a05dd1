"""What a smallest cell costs ROC AUC, and how many cells are small before they are merged.

`python -m experiments.smallest_cell` writes `experiments/smallest_cell.md` (a minute); with
--quick it prints one table's rows only.
"""

from collections.abc import Iterator
from math import nan
from pathlib import Path

import numpy as np
from scipy.special import expit

from experiments.data import Scored
from experiments.page import markdown_table, run, say
from fedassay.decoding import DecodeOptions, decode
from fedassay.errors import TooFewRows
from fedassay.examples import Examples
from fedassay.metrics import roc_auc
from fedassay.metrics.exact_rows import row_metrics
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.survey import Survey
from fedassay.tally import Tally

_SETTINGS = (
    (100_000, 0.2, 10),
    (100_000, 0.2, 5),
    (100_000, 0.2, 30),
    (100_000, 0.02, 10),
    (100_000, 0.002, 10),
    (30_000, 0.2, 10),
    (10_000, 0.2, 10),
    (10_000, 0.02, 10),
    (2_000, 0.2, 10),
    (2_000, 0.02, 10),
)
_HEADER = (
    "table", "rows", "positives", "k", "cells asked", "rows in small cells", "cells published",
    "ROC AUC off by", "its sampling sd",
)  # fmt: skip
_ROWS = 300_000


def page(tables: list[Scored], trials: int, quick: bool) -> Iterator[str]:
    """The page, one part after the other."""
    yield (
        "# What a smallest cell costs\n\nWritten by `python -m experiments.smallest_cell`. Samples "
        "without replacement that have the share of positives; exact sums on the grid that "
        "`survey new --examples ROWS --smallest-cell K` chooses, merged by its rule until each "
        f"published cell holds k of each label. Medians over {trials} samples. *Rows in small "
        "cells* are those that whoever adds up sees in a count from 1 to k - 1 before merging; "
        "*off by* is the absolute difference from the ROC AUC of the same rows."
    )
    chosen = tables[-1:] if quick else [*tables, crowded()]
    body = []
    for table in chosen:
        say(table.name)
        body += [line for setting in _SETTINGS if (line := measured(table, setting, trials))]
    yield markdown_table(_HEADER, body)
    yield (
        "With a fifth of positives merging costs ROC AUC less than a hundredth of what sampling "
        "does at 100,000 rows. With few positives cells are as wide as it takes to find k of "
        "them, and what it costs comes near the sampling error, or passes it where few positives "
        "have low scores; intervals count it. Where cells are too few to tell there is no answer, "
        "and the sentence says so. A grid that is chosen before anybody looked cannot have the "
        "same number of rows in every cell: some hold few, mostly of the rarer label. A reference "
        "(`--reference last-month.json`) says where scores lie and makes such cells rarer."
    )


def crowded() -> Scored:
    """Scores around 1e-4, where cells of equal width tell nothing apart."""
    generator = np.random.default_rng(0)
    labels = (generator.random(_ROWS) < 0.25).astype(np.uint8)
    scores = expit(1.2 * generator.normal(size=_ROWS) + 1.5 * labels - 9.0)
    return Scored("scores around 1e-4 (made up)", Examples(labels, scores))


def measured(table: Scored, setting: tuple[int, float, int], trials: int) -> list[str] | None:
    """One row of the table; None where the table has too few rows for it."""
    size, rate, smallest = setting
    survey = design_survey(SurveyRequest(examples=size, smallest_cell=smallest)).survey
    figures = []
    for trial in range(trials):
        generator = np.random.default_rng([size, smallest, trial])
        sample = drawn(table.examples, size, rate, generator)
        if sample is None:
            return None
        figures.append(one_sample(survey, sample))
    small, cells, off, sampling = np.median(np.array(figures), axis=0)
    answer = [f"{off:.1e}", f"{sampling:.1e}"] if np.isfinite(off) else ["no answer", ""]
    return [
        table.name, f"{size:,}", f"{rate:.1%}", str(smallest), f"{survey.grid.cells:,}",
        f"{small:.2%}", f"{cells:,.0f}", *answer,
    ]  # fmt: skip


def drawn(
    examples: Examples, size: int, rate: float, generator: np.random.Generator
) -> Examples | None:
    """So many rows with this share of positives, without replacement; None where there are not."""
    wanted = {1: round(size * rate), 0: size - round(size * rate)}
    kept = []
    for label, count in wanted.items():
        there = np.flatnonzero(examples.labels == label)
        if len(there) < count:
            return None
        kept.append(generator.choice(there, count, replace=False))
    return examples.rows(np.concatenate(kept))


def one_sample(survey: Survey, examples: Examples) -> tuple[float, float, float, float]:
    """Share of rows in small counts before merging, cells published, error of AUC, its sd."""
    counts = survey.grid.count(examples)
    small = counts[(counts > 0) & (counts < survey.smallest_cell)].sum() / counts.sum()
    tally = Tally(survey.fingerprint, (survey.minimum_reports,), counts.ravel())
    try:
        histogram = decode(survey, tally, decode_options=DecodeOptions())
    except TooFewRows:
        return float(small), 0.0, nan, nan
    estimate = roc_auc(histogram)
    exact = row_metrics(examples, ())["roc_auc"] or nan
    return float(small), histogram.buckets, abs(estimate.value - exact), estimate.sampling_sd


if __name__ == "__main__":
    run(Path(__file__), __doc__, page, trials=9)
