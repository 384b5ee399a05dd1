"""What binning costs ROC AUC on grids made without a reference, and with one.

`python -m experiments.grids` writes `experiments/grids.md`; with --quick it prints only.
"""

from argparse import ArgumentParser
from collections.abc import Callable
from math import isnan, nan
from pathlib import Path

import numpy as np
from scipy.special import expit

from experiments.data import SHARED, Scored, load
from experiments.errors import geometric_mean
from fedassay.examples import Examples
from fedassay.grid import Grid
from fedassay.histogram import ScoreHistogram
from fedassay.metrics import roc_auc
from fedassay.metrics.exact_rows import row_metrics

_PAGE = Path(__file__).with_name("grids.md")
_LEAVES = (16, 32, 64, 128, 256)
_ROWS = 300_000
_EXACT = 1e-12


def logit(leaves: int) -> Grid:
    """Equal steps of the log-odds from -8 to 8."""
    return Grid.explicit(np.concatenate([[0.0], expit(np.linspace(-8.0, 8.0, leaves - 1)), [1.0]]))


def arcsine(leaves: int) -> Grid:
    """Equal steps of arcsin(sqrt(score)), which needs a sine: what cubic grids replaced."""
    edges = np.sin(0.5 * np.pi * np.arange(leaves + 1) / leaves) ** 2
    edges[0], edges[-1] = 0.0, 1.0
    return Grid.explicit(edges)


def warped(examples: Examples, leaves: int) -> Grid:
    """Quantiles of a third of the rows, as if they were public."""
    return Grid.warped(examples.scores[::3], leaves, labels=examples.labels[::3])


BLIND: dict[str, Callable[[int], Grid]] = {
    "uniform": Grid.uniform,
    "cubic": Grid.cubic,
    "arcsine": arcsine,
    "logit": logit,
}


def made_up() -> list[Scored]:
    """Shapes that the tables at hand lack: rare positives, ties, piles at 0 and 1."""
    generator = np.random.default_rng(0)
    rare = (generator.random(_ROWS) < 0.01).astype(np.uint8)
    low = expit(generator.normal(size=_ROWS) + 1.8 * rare - 4.6)
    tied = (generator.random(_ROWS) < 0.3).astype(np.uint8)
    steps = np.round(generator.beta(1 + tied, 2 - tied) * 20) / 20
    piled = (generator.random(_ROWS) < 0.2).astype(np.uint8)
    ends = np.clip(generator.normal(0.3 + 0.3 * piled, 0.3), 0.0, 1.0)
    return [
        Scored("1 % positives, low scores (made up)", Examples(rare, low)),
        Scored("21 distinct scores (made up)", Examples(tied, steps)),
        Scored("piles at 0 and 1 (made up)", Examples(piled, ends)),
    ]


def binning_error(examples: Examples, grid: Grid, exact: float) -> float:
    """The absolute error of ROC AUC from exact counts on a grid."""
    histogram = ScoreHistogram(grid.edges, grid.count(examples).astype(np.float64))
    return abs(roc_auc(histogram).value - exact)


def page(tables: list[Scored]) -> str:
    """The page."""
    header = ["table", "leaves", *BLIND, "reference", "uniform / cubic"]
    rows, ratios = [], []
    for table in tables:
        exact = row_metrics(table.examples, ())["roc_auc"] or 0.0
        for leaves in _LEAVES:
            grids = [make(leaves) for make in BLIND.values()]
            grids.append(warped(table.examples, leaves))
            errors = [binning_error(table.examples, grid, exact) for grid in grids]
            # Where ties leave nothing to bin, rounding is all there is to compare.
            is_exact = min(errors[:2]) < _EXACT
            ratio = nan if is_exact else errors[0] / errors[1]
            ratios.append(ratio)
            cells = [f"{error:.1e}" for error in errors]
            rows.append([table.name, str(leaves), *cells, "" if is_exact else f"{ratio:.2g}"])
    rule = ["---", *["---:"] * (len(header) - 1)]
    body = "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))
    return (
        "# What binning costs ROC AUC\n\n"
        "Written by `python -m experiments.grids`. Absolute errors of ROC AUC from exact "
        "counts, interpolated inside cells; no noise. *Reference* has cells of equal mass in a "
        f"third of the rows.\n\n{body}\n\n"
        "Geometric mean of uniform / cubic over all lines: "
        f"{geometric_mean(ratios):.2f}; cubic is better on {sum(r > 1 for r in ratios)} of "
        f"{sum(not isnan(r) for r in ratios)}.\n"
    )


def main() -> None:
    """Measure and write the page."""
    parser = ArgumentParser(prog="python -m experiments.grids", description=__doc__)
    parser.add_argument("--data", type=Path, default=SHARED, help="folder of scored tables")
    parser.add_argument("--quick", action="store_true", help="print only")
    arguments = parser.parse_args()
    text = page([*load(arguments.data), *made_up()])
    print(text)
    if not arguments.quick:
        _PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
