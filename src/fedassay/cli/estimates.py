"""Estimates as people see them in a terminal."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from fedassay.cli.console import figures_table
from fedassay.estimate import Estimate
from fedassay.estimate_table import estimate_header, estimate_rows
from fedassay.metrics.named import headings


def estimates_table(
    estimates: Mapping[str, Estimate],
    *,
    exact: Mapping[str, float | None] | None = None,
    trials: Sequence[Mapping[str, Estimate]] = (),
) -> Table:
    """Estimates with 95 % intervals and, where known, exact values and errors.

    With several trials, their mean absolute error stands beside the last one's.
    """
    return figures_table(
        estimate_header(exact=exact, trials=len(trials)),
        estimate_rows(estimates, exact=exact, trials=trials, headings=headings(estimates)),
    )
