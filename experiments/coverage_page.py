"""The page of coverage: verdicts, the lowest share and the widest interval of every metric."""

from collections.abc import Callable, Iterator, Sequence
from math import isfinite, nan
from typing import NamedTuple

from experiments.crowded import SITES, SYNTHETIC_ROWS
from experiments.odd_tables import HOSPITAL_ROWS, ODD_ROWS
from experiments.page import markdown_table
from experiments.verdicts import (
    AT_LEAST,
    AT_MOST,
    FALSE_ALARMS,
    NEVER_WIDE,
    Cell,
    Trials,
    all_cells,
)


class _About(NamedTuple):
    """What differs between the page of the tables that are studied and that of odd ones."""

    title: str
    command: str
    tables: str
    rows: str


_STUDIED = _About(
    title="Coverage of 95 % intervals",
    command="python -m experiments.coverage",
    tables="",
    rows=f"{SYNTHETIC_ROWS:,} rows",
)
_ODD = _About(
    title="Coverage of 95 % intervals on odd tables",
    command="python -m experiments.coverage --odd",
    tables=(
        "Tables that score in ways which [those of the other page](coverage.md) lack "
        "(`experiments.odd_tables`), to find where intervals miss. "
    ),
    rows=f"{ODD_ROWS:,} rows, those of the hospitals {HOSPITAL_ROWS:,}",
)
_WHOSE = {"rows": "these rows", "population": "the population"}
_LISTED = 60
_SMALL = 1e-3


def coverage_page(
    found: list[Trials],
    metrics: list[str] | None = None,
    missing: Sequence[str] = (),
    newer: Sequence[str] | None = None,
    *,
    odd: bool = False,
) -> str:
    """The whole page, from whatever trials there are, and what there was no time for.

    `newer` are tables and settings measured with the present sources, if others are older.
    """
    cells = all_cells(found, metrics)
    about = _ODD if odd else _STUDIED
    return "\n\n".join(_sections(about, found, cells, missing, newer)) + "\n"


def _sections(
    about: "_About",
    found: list[Trials],
    cells: list[Cell],
    missing: Sequence[str],
    newer: Sequence[str] | None,
) -> Iterator[str]:
    sizes = sorted({len(trials.values) for trials in found})
    trials = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    low = sorted((cell for cell in cells if cell.is_low(len(cells))), key=lambda cell: cell.share)
    wide = sorted(
        (cell for cell in cells if cell.is_wide(len(cells))), key=lambda cell: -cell.width
    )
    below = [cell for cell in cells if cell.answers and cell.share < AT_LEAST]
    wider = [cell for cell in cells if cell.width > AT_MOST and cell.half_width > NEVER_WIDE]
    yield (
        f"# {about.title}\n\n"
        f"Written by `{about.command}`. "
        f"{about.tables}{trials} trials of every table in every setting. "
        "A trial draws as many rows as the table has from it, with replacement, "
        "asks them as the planner chooses by default (two steps where those are chosen), "
        "and reads the named metrics, but for the distances of "
        "the calibration curve (`ici`, `e50`, `e90`, `emax`): "
        "`interval(population=False)` is to hold the metric of the drawn rows, `interval()` that "
        "of the table. Both are computed from sorted rows. "
        "Thresholds are 0.1, 0.5 and quantiles "
        "of the table's scores, q50, q80 and q95, all asked for before; of made-up shapes only "
        "0.1 and 0.5 are, and the quantiles read nevertheless, in the middle of cells. Every "
        f"row is a client, except for the small federations of {SITES} sites. "
        f"Made-up tables have {about.rows}.\n\n"
        f"- *Too low*: fewer intervals hold their value than {100 * AT_LEAST:g} % would by luck, "
        f"by a binomial test of each of {len(cells):,} cells at {FALSE_ALARMS:g} over their "
        f"number (Bonferroni): if all hold {100 * AT_LEAST:g} %, this page names any with a "
        f"chance below {100 * FALSE_ALARMS:g} %.\n"
        f"- *Too wide*: the median half-width is more than {AT_MOST:g} times 1.96 standard "
        "deviations of the errors around their mean, which an oracle that knows the bias would "
        "use, beyond the luck of that standard deviation, by the same rule; half-widths below "
        f"{NEVER_WIDE:g}, which change no shown digit, are let be. At a threshold that was not "
        "asked for, the oracle adds what the cell around it may hide (`binning_bound`): whoever "
        "reads the same grid knows no more.\n"
        "- *No answer*: the outcome is “not enough data” or “too coarse”; shares are of those "
        "that answer."
    )
    if newer is not None:
        yield (
            "With the present sources were measured: "
            f"{'; '.join(newer) or 'none'}. All others were with the state before them."
        )
    if missing:
        yield f"Not measured in this run, for want of time: {'; '.join(missing)}."
    yield (
        "## Verdict\n\n"
        f"{len(low)} of {len(cells):,} cells are too low, {len(wide)} too wide. Luck included, "
        f"{len(below)} have a share below {100 * AT_LEAST:g} %, and {len(wider)} are more than "
        f"{AT_MOST:g} times as wide as the oracle's."
    )
    yield "### Where they are too wide\n\n" + _causes(wide, len(cells))
    yield "### By setting\n\n" + _by(cells, lambda cell: cell.setting, "setting", low, wide)
    yield "### By metric\n\n" + _by(cells, lambda cell: cell.family, "metric", low, wide)
    yield "### By kind\n\n" + _by(cells, lambda cell: cell.kind, "metrics", low, wide)
    yield "### By table\n\n" + _by(cells, lambda cell: cell.table, "table", low, wide)
    for title, named in (("Too low", low), ("Too wide", wide)):
        asked = [cell for cell in named if "another" not in cell.kind]
        yield (
            f"### {title}\n\nBesides {len(named) - len(asked)} at thresholds in the middle of a "
            f"cell, where an oracle knows what the survey did not ask:\n\n{_listed(asked)}"
        )
    for setting in dict.fromkeys(trials.setting for trials in found):
        of_setting = [cell for cell in cells if cell.setting == setting]
        yield from _setting(setting, of_setting)


def _causes(wide: list[Cell], cells: int) -> str:
    groups = {setting: [cell for cell in wide if cell.setting == setting] for setting in
              dict.fromkeys(cell.setting for cell in wide)}  # fmt: skip
    body = []
    for name, inside in {**groups, "all": wide}.items():
        causes = [
            [cell.is_hidden for cell in inside],
            [cell.is_needed(cells) for cell in inside],
            [cell.half_width < _SMALL for cell in inside],
        ]
        neither = sum(not any(each) for each in zip(*causes, strict=True))
        body.append([name, *map(str, (len(inside), *map(sum, causes), neither))])
    return (
        "*Hidden by cells* are those no wider than an oracle needs that knows bias and noise, "
        "but not where rows lie inside the cells that are published or asked for "
        "(`binning_bound`); *needed* those whose mean error is so large that intervals of "
        f"{AT_MOST:g} times the oracle's, around the same values, would be too low; *small* those "
        f"of a half-width below {_SMALL:g}. One may be several.\n\n"
        + markdown_table(
            ["setting", "too wide", "hidden by cells", "needed", "small", "none of these"], body
        )
    )


def _by(cells: list[Cell], key: Callable[[Cell], str], title: str, *named: list[Cell]) -> str:
    low, wide = map(set, named)
    body = []
    for group in dict.fromkeys(map(key, cells)):
        inside = [cell for cell in cells if key(cell) == group]
        trials = sum(cell.trials for cell in inside)
        body.append(
            [
                group,
                str(len(inside)),
                str(sum(cell in low for cell in inside)),
                str(sum(cell in wide for cell in inside)),
                _percent(min((cell.share for cell in inside if cell.answers), default=nan)),
                _percent(sum(cell.not_enough for cell in inside) / trials),
                _percent(sum(cell.too_coarse for cell in inside) / trials),
            ]
        )
    header = [title, "cells", "too low", "too wide", "lowest share", "not enough", "too coarse"]
    return markdown_table(header, body)


def _listed(cells: list[Cell]) -> str:
    if not cells:
        return "None."
    header = [
        "table",
        "setting",
        "metric",
        "of",
        "held",
        "half-width",
        "over the oracle's",
        "mean error",
    ]
    body = [
        [
            cell.table,
            cell.setting,
            cell.metric,
            _WHOSE[cell.whose],
            f"{_percent(cell.share)} of {cell.answers}",
            f"{cell.half_width:.2g}",
            f"{cell.width:.2f}",
            f"{cell.bias:+.2g}",
        ]
        for cell in cells[:_LISTED]
    ]
    more = len(cells) - _LISTED
    rest = f"\n\nand {more} more, less far off" if more > 0 else ""
    return markdown_table(header, body) + rest


def _setting(setting: str, cells: list[Cell]) -> Iterator[str]:
    """For each table and metric the lowest share, and the median width over the oracle's."""
    metrics = list(dict.fromkeys(cell.family for cell in cells))
    for whose, title in _WHOSE.items():
        body = []
        for table in dict.fromkeys(cell.table for cell in cells):
            row = [table]
            for metric in metrics:
                of_metric = [
                    cell
                    for cell in cells
                    if (cell.table, cell.whose) == (table, whose) and cell.family == metric
                ]
                row.append(_entry(of_metric))
            body.append(row)
        yield (
            f"## {setting.capitalize()}, {title}\n\nThe lowest share that held over the "
            "thresholds, and the largest median half-width over the oracle's; in brackets the "
            "share without an answer.\n\n" + markdown_table(["table", *metrics], body)
        )


def _entry(cells: list[Cell]) -> str:
    trials = sum(cell.trials for cell in cells)
    if not trials:
        return "–"
    silent = sum(cell.trials - cell.answers for cell in cells) / trials
    share = min((cell.share for cell in cells if cell.answers), default=nan)
    widths = [cell.width for cell in cells if cell.answers and cell.half_width > NEVER_WIDE]
    width = max((width for width in widths if isfinite(width)), default=nan)
    times = f" {width:.1f}×" if isfinite(width) else ""
    none = f" ({_percent(silent)})" if silent else ""
    return f"{_percent(share)}{times}{none}" if isfinite(share) else f"none{none}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %" if isfinite(share) else "–"
