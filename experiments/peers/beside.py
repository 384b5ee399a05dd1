"""Two comparisons without a contest: averages of clients' own figures, and smECE beside ECE."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq

from experiments.crowded import crowded_table, real_names
from experiments.data import SHARED
from experiments.peers.client_average import client_average, rank_area
from experiments.peers.smooth_ece import smooth_ece
from experiments.resampled import SortedRows
from experiments.trials import SECURE, Reader, Setting
from fedassay.calibration import ece
from fedassay.examples import Examples
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Privacy
from fedassay.metrics.exact_rows import row_calibration
from fedassay.metrics.named import named_metric
from fedassay.planning.search import design_survey

KEYS = {
    "scores_acs_income_lgbm": "state",
    "scores_nycflights13_xgb": "carrier",
    "scores_covertype_lr": "wilderness",
    "scores_kdd_census_lr": "major_ind_code",
}
CLIENT_ROWS = (1_000, 100, 20)

Row = dict[str, float | str]


def averages() -> Iterator[Row]:
    """Clients as the tables' keys have them, and as even parts of shuffled rows."""
    for stem, key in KEYS.items():
        table = pq.read_table(SHARED / f"{stem}.parquet", columns=["label", "score", key])
        examples = Examples(table["label"].to_numpy(), table["score"].to_numpy())
        exact = rank_area(examples)
        ours = _secure_area(examples) - exact
        _, clients = np.unique(table[key].to_numpy(zero_copy_only=False), return_inverse=True)
        kinds = {f"{clients.max() + 1} by {key}": clients}
        order = np.random.default_rng(3).permutation(len(examples))
        kinds |= {f"of {size:,} random rows": order // size for size in CLIENT_ROWS}
        for name, each in kinds.items():
            average, held = client_average(examples, each)
            yield {
                "table": stem.removeprefix("scores_"),
                "clients": name,
                "exact": exact,
                "average": average,
                "held": held,
                "ours": ours,
            }


def _histogram(examples: Examples, setting: Setting) -> ScoreHistogram:
    rows = SortedRows.of(examples)
    design = design_survey(setting.request(len(rows), ()))
    reader = Reader(design, rows, (), len(rows))
    return reader.histogram(rows.counts(), np.random.default_rng(7))


def _secure_area(examples: Examples) -> float:
    return named_metric(_histogram(examples, SECURE), "roc_auc").value


def calibration_errors() -> Iterator[Row]:
    """Both errors of the scores as they are, from rows and from our survey's histogram."""
    for name in real_names():
        examples = crowded_table(name).examples
        histogram = _histogram(examples, Setting(Privacy.DISTRIBUTED, Fraction(1)))
        rows = SortedRows.of(examples)
        even = histogram.monotone()
        middles = (even.edges[1:] + even.edges[:-1]) / 2.0
        yield {
            "table": name,
            "ece": row_calibration(examples, examples.scores, bins=20)["ece"],
            "ours": ece(histogram, bins=20).value,
            "fine": row_calibration(examples, examples.scores, bins=100)["ece"],
            "smooth": smooth_ece(rows.counts().astype(np.float64), rows.distinct),
            "ours_smooth": smooth_ece(even.counts, middles),
        }
