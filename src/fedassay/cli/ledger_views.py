"""A ledger as tables, JSON and CSV."""

import csv
import json
from collections.abc import Sequence
from io import StringIO
from typing import Any

from rich.table import Table

from fedassay.cli.console import cell
from fedassay.files import canonical
from fedassay.ledger import Balance, Budget, Charge, Checkpoint, Entry, Loss, Part
from fedassay.ledger.budget import show as exact
from fedassay.ledger.high_water_mark import Mark
from fedassay.ledger.steps import FirstCharge, SecondCharge

EXPORT_FORMAT = "fedassay.ledger-export/1"
BALANCE_FORMAT = "fedassay.ledger-balance/1"
_COLUMNS = (
    "number", "time", "clock_went_back", "kind", "data", "window", "group", "who", "survey",
    "epsilon", "delta", "unit", "max_examples", "neighbours", "model", "status", "split_windows",
    "split_groups", "exact_sums", "known_entries", "known_head", "step", "head",
)  # fmt: skip


def balance_table(balances: Sequence[Balance]) -> Table:
    """What is spent and left, within 80 columns."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("data", overflow="fold", max_width=20)
    for name in ("budget", "spent", "left"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("per")
    table.add_column("charges", justify="right", no_wrap=True)
    table.add_column("uncovered", justify="right", no_wrap=True)
    has_delta = any(map(delta_words, balances))
    if has_delta:
        table.add_column("delta", justify="right", no_wrap=True)
    for balance in balances:
        window = balance.budget.window
        name = balance.data if window.is_ever else f"{balance.data} {window}"
        table.add_row(
            cell(name),
            exact(balance.budget.epsilon),
            exact(balance.spent),
            "any" if balance.left is None else exact(balance.left),
            f"{balance.budget.unit.value} ({balance.neighbours.value})",
            f"{balance.charges:,}",
            f"{balance.unbounded:,}",
            *([delta_words(balance)] if has_delta else []),
        )
    return table


def delta_words(balance: Balance) -> str:
    """How much of a budget's delta is spent; nothing where neither knows of one."""
    allowed = balance.budget.delta
    if allowed is None and not balance.delta:
        return ""
    spent = f"{float(balance.delta):g}"
    return spent if allowed is None else f"{spent} of {float(allowed):g}"


def history_table(entries: Sequence[Entry]) -> Table:
    """One line per entry, within 80 columns."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("time (UTC)", no_wrap=True)
    table.add_column("data", overflow="fold", max_width=22)
    table.add_column("who", overflow="fold", max_width=12)
    table.add_column("epsilon", justify="right", no_wrap=True)
    table.add_column("what", overflow="fold")
    for entry in entries:
        data, epsilon, what = _history_cells(entry)
        back = "!" if entry.stamp.clock_went_back else ""
        table.add_row(
            f"{entry.number}",
            f"{entry.stamp.time:%Y-%m-%d %H:%M}{back}",
            cell(data),
            cell(entry.stamp.who),
            epsilon,
            cell(what),
        )
    return table


def _history_cells(entry: Entry) -> tuple[str, str, str]:
    content = entry.content
    if isinstance(content, Charge):
        epsilon = "exact" if content.epsilon is None else exact(content.epsilon)
        if content.delta is not None:
            epsilon = f"({epsilon}, {float(content.delta):g})"
        what = f"{content.status.value} {content.survey[:8]}{_step_words(content)}"
        return _part_words(content.part), epsilon, what
    if isinstance(content, Budget):
        return content.data or "any", "", f"budget: {budget_words(content)}"
    if isinstance(content, Checkpoint):
        return "", "", "checkpoint"
    return "", "", f"loss accepted ({content.known_entries} entries were known)"


def _step_words(charge: Charge) -> str:
    """Which of two surveys it was, and who paid."""
    match charge.step:
        case None:
            return ""
        case FirstCharge() as step:
            return f", first of two: {exact(step.spends)}, second {exact(step.left)}"
        case SecondCharge() as step:
            paid = "paid" if step.reserved else "not paid"
            return f", second: {exact(step.spends)}, {paid} with {step.first[:8]}"


def reserved_words(charge: Charge) -> str:
    """A first survey that waits for its second, in one line."""
    left = charge.step.left if isinstance(charge.step, FirstCharge) else None
    return (
        f"{charge.part}: {exact(left)} waits for the second survey after {charge.survey[:8]}; "
        "it counts as spent."
    )


def _part_words(part: Part) -> str:
    # Broken between its ends, where it is easiest to read.
    window = "" if part.window.is_ever else "\n" + str(part.window).replace("..", "..\n")
    return f"{part.data}{window}" + ("" if part.group is None else f"\n({part.group})")


def budget_words(budget: Budget) -> str:
    """A budget as people say it."""
    if budget.epsilon is None:
        return "no limit"
    words = f"epsilon {exact(budget.epsilon)} per {budget.unit.value}"
    if budget.delta is not None:
        words += f" at delta {float(budget.delta):g}"
    if not budget.window.is_ever:
        words += f" in {budget.window}"
    split = ["windows"] * budget.split_windows + ["groups"] * budget.split_groups
    words += f", split by {' and '.join(split)}" if split else ""
    return words + (f", {budget.exact_sums} exact sum(s)" if budget.exact_sums else "")


def data_name(data: str | None) -> str:
    """Which data a budget is for."""
    return "any data without its own" if data is None else f"data {data!r}"


def is_about(entry: Entry, data_id: str | None) -> bool:
    """Whether an entry concerns this data (None: any)."""
    content = entry.content
    if data_id is None or isinstance(content, Loss | Checkpoint):
        return True
    return data_id == (content.part.data if isinstance(content, Charge) else content.data)


def balances_json(
    mark: Mark, balances: Sequence[Balance], waiting: Sequence[Charge] = ()
) -> dict[str, Any]:
    """What `ledger show --json` prints."""
    reserved = [charge.to_json() for charge in waiting]
    return {
        **({"reserved": reserved} if reserved else {}),
        "format": BALANCE_FORMAT,
        "ledger": mark.ledger,
        "entries": mark.entries,
        "head": mark.head,
        "balances": [
            {
                **balance.budget.to_json(),
                "kind": "balance",
                "data": balance.data,
                "spent": str(balance.spent),
                "left": None if balance.left is None else str(balance.left),
                "neighbours": balance.neighbours.value,
                "charges": balance.charges,
                "uncovered": balance.unbounded,
                **({"spent_delta": str(balance.delta)} if balance.delta else {}),
            }
            for balance in balances
        ],
    }


def json_lines(mark: Mark, entries: Sequence[Entry]) -> str:
    """One JSON object per line: the ledger, then its entries."""
    first = {**mark.to_json(), "format": EXPORT_FORMAT}
    lines = [first, *(entry.to_json() for entry in entries)]
    return "".join(json.dumps(line) + "\n" for line in lines)


def csv_text(_mark: Mark, entries: Sequence[Entry]) -> str:
    """One row per entry, with all columns of all kinds."""
    stream = StringIO(newline="")
    writer = csv.DictWriter(stream, _COLUMNS, restval="")
    writer.writeheader()
    for entry in entries:
        row = entry.to_json()
        if isinstance(row.get("unit"), dict):
            row["max_examples"] = row["unit"]["max_examples"]
            row["unit"] = row["unit"]["kind"]
        if "step" in row:
            row["step"] = canonical(row["step"]).decode()
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return stream.getvalue()


def _cell(value: object) -> object:
    """A cell that no spreadsheet takes for a formula."""
    if isinstance(value, str) and value[:1] in {"=", "+", "-", "@"}:
        return f"'{value}"
    return "" if value is None else value
