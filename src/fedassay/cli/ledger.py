"""`ledger new`, `show`, `budget`, `history`, `export`, `accept`: for the privacy officer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fedassay.cli import options
from fedassay.cli.accounts import NOBODY, WhoOption, WindowOption, WitnessOption
from fedassay.cli.console import err, plain
from fedassay.cli.ledger_views import (
    EXPORT_FORMAT,
    balance_table,
    balances_json,
    budget_words,
    csv_text,
    data_name,
    history_table,
    is_about,
    json_lines,
    reserved_words,
)
from fedassay.cli.outputs import ForceOption, JsonOption, QuietOption, Voice, check_output
from fedassay.errors import LedgerRolledBack, SettingInvalid
from fedassay.files import write_whole
from fedassay.ledger import EVER, Budget, Entry, Ledger, Window
from fedassay.ledger.high_water_mark import mark_path
from fedassay.mechanisms import UnitKind

app = typer.Typer(
    help="What was spent on which data, and what is left.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="Ledger file.")]
DataOption = Annotated[
    str | None, typer.Option("--data-id", metavar="ID", help="Only this data (default: all).")
]


@app.command("new")
def new_ledger(
    file: FileArgument,
    witness: WitnessOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make an empty ledger.

    [bold]Examples[/bold]

      fedassay ledger new ledger.db

      fedassay ledger new ledger.db --witness /mnt/other-disk/ledger.mark
    """
    voice = Voice(as_json, quiet)
    mark = Ledger.create(file, witness=witness).read().mark
    voice.result(mark.to_json())
    voice.say(
        f"Wrote {plain(file)}. Set a budget next: fedassay ledger budget {plain(file)} --epsilon 1"
    )


@app.command("show")
def show_ledger(
    file: FileArgument,
    data_id: DataOption = None,
    expect_head: Annotated[
        str | None,
        typer.Option("--expect-head", metavar="HASH", help="Head that the ledger must have had."),
    ] = None,
    witness: WitnessOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print what is spent and left, per data.

    [bold]Examples[/bold]

      fedassay ledger show ledger.db

      fedassay ledger show ledger.db --data-id ward-3 --json

      fedassay ledger show ledger.db --expect-head 6508e67644a82679
    """
    voice = Voice(as_json, quiet)
    with err.status("reading the ledger"):
        snapshot = Ledger(file, witness).read()
        balances = snapshot.balances(data_id)
    if expect_head is not None and not snapshot.had_head(expect_head):
        raise LedgerRolledBack(
            f"{file}: no entry has head {expect_head[:16]!r}. The file is an older copy or another "
            "ledger; find the newest one. (At least 8 digits are needed.)"
        )
    waiting = snapshot.reserved(data_id)
    voice.result(balances_json(snapshot.mark, balances, waiting))
    if balances:
        voice.say(balance_table(balances))
    if waiting:
        voice.say("\n" + "\n".join(map(reserved_words, waiting)))
    if snapshot.losses:
        err.print(
            f"Entries were lost {snapshot.losses} time(s) and the loss was accepted: what is spent "
            "is at least what is shown.",
            style="red",
        )
    if any(balance.unbounded for balance in balances):
        voice.say(
            "\nuncovered: exact sums, and surveys per example under a budget per client; they "
            "are recorded, not added up."
        )
    voice.say(f"\n{snapshot.mark.entries:,} entries, head\n{snapshot.head}")


@app.command("budget")
def budget_command(
    file: FileArgument,
    data_id: Annotated[
        str | None,
        typer.Option("--data-id", metavar="ID", help="For this data (default: any without one)."),
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="E", help="The most that one unit may spend.")
    ] = None,
    no_limit: Annotated[
        bool, typer.Option("--unlimited", "--no-limit", help="Lift the limit, on record.")
    ] = False,
    unit: Annotated[UnitKind, typer.Option(help="Whose spend is limited.")] = UnitKind.EXAMPLE,
    split: Annotated[
        list[str] | None,
        typer.Option(metavar="WHAT", help="Disjoint parts: windows or groups; may be repeated."),
    ] = None,
    window: WindowOption = None,
    delta: Annotated[
        str | None, typer.Option(metavar="D", help="Compose tightly, at this delta.")
    ] = None,
    exact_sums: Annotated[
        int,
        typer.Option(
            "--exact-sums", metavar="N", help="Answer so many exact sums, which no epsilon covers."
        ),
    ] = 0,
    who: WhoOption = NOBODY,
    witness: WitnessOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Set a budget; the old one stays on record. Without --epsilon, print those in force.

    Disjoint windows and groups share a budget, unless they are declared to
    split it: each then has the whole budget for itself.

    [bold]Examples[/bold]

      fedassay ledger budget ledger.db --epsilon 3 --who "privacy officer"

      fedassay ledger budget ledger.db --data-id ward --epsilon 1 --split windows

      fedassay ledger budget ledger.db --epsilon 8 --delta 1e-6 --unit client
    """
    voice = Voice(as_json, quiet)
    ledger = Ledger(file, witness)
    unknown = set(split or ()) - {"windows", "groups"}
    if unknown:
        raise SettingInvalid(f"--split is windows or groups; found {min(unknown)[:40]!r}.")
    if epsilon is None and not no_limit:
        if split or window or delta or exact_sums:
            raise SettingInvalid("a budget needs an epsilon; found none. Add --epsilon E.")
        _print_budgets(voice, ledger.entries(), data_id)
        return
    if epsilon is not None and no_limit:
        raise SettingInvalid("a budget has an epsilon or no limit; found both. Leave one out.")
    budget = Budget(
        data=data_id,
        epsilon=options.fraction_option(epsilon, "epsilon"),
        window=EVER if window is None else Window.parse(window),
        unit=unit,
        delta=options.fraction_option(delta, "delta"),
        split_windows="windows" in (split or ()),
        split_groups="groups" in (split or ()),
        exact_sums=exact_sums,
    )
    entry = ledger.set_budget(budget, who=who)
    voice.result(_entry_json(entry))
    voice.say(
        f"Set for {data_name(budget.data)}: {budget_words(budget)}.\n"
        f"Ledger entry {entry.number:,}; keep its head elsewhere:\n{entry.head}"
    )


@app.command("verify")
def verify(
    file: FileArgument,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Write what the entries come to anew, from all of them."),
    ] = False,
    witness: WitnessOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check every entry, the marks, and what the entries come to.

    A charge checks the entries since the last checkpoint; this reads the whole file.

    [bold]Example[/bold]

      fedassay ledger verify ledger.db
    """
    voice = Voice(as_json, quiet)
    with err.status("reading the ledger"):
        snapshot = Ledger(file, witness).verify(rebuild=rebuild)
    voice.result(snapshot.mark.to_json())
    voice.say(
        f"{snapshot.size:,} entries, each follows from the one before it; head\n{snapshot.head}"
    )


@app.command("history")
def history(
    file: FileArgument,
    data_id: DataOption = None,
    last: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only the last N entries.")
    ] = None,
    witness: WitnessOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print entries in order, oldest first.

    [bold]Examples[/bold]

      fedassay ledger history ledger.db

      fedassay ledger history ledger.db --data-id ward-3 --last 20
    """
    voice = Voice(as_json, quiet)
    with err.status("reading the ledger"):
        entries = Ledger(file, witness).entries()
    chosen = [entry for entry in entries if is_about(entry, data_id)]
    chosen = chosen[-last:] if last else chosen
    voice.result({"format": EXPORT_FORMAT, "entries": [entry.to_json() for entry in chosen]})
    voice.say(history_table(chosen) if chosen else "No entries.")
    if any(entry.stamp.clock_went_back for entry in chosen):
        voice.say("\n!: the clock was behind that of an earlier entry.")


@app.command("export")
def export(
    file: FileArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Ends in .jsonl or .csv.")
    ],
    witness: WitnessOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Write all entries as JSON Lines or CSV, with the hash chain.

    [bold]Examples[/bold]

      fedassay ledger export ledger.db -o ledger.jsonl

      fedassay ledger export ledger.db -o ledger.csv
    """
    voice = Voice(as_json, quiet)
    writers = {".jsonl": json_lines, ".csv": csv_text}
    if output.suffix not in writers:
        raise SettingInvalid(
            f"an export ends in .jsonl or .csv; found {output.name[-40:]!r}. Rename it."
        )
    check_output(output, file, mark_path(file), witness, force=force)
    with err.status("writing the export"):
        snapshot = Ledger(file, witness).read()
        write_whole(output, writers[output.suffix](snapshot.mark, snapshot.entries).encode())
    voice.result({**snapshot.mark.to_json(), "output": str(output)})
    voice.say(f"Wrote {plain(output)}: {len(snapshot.entries):,} entries, head\n{snapshot.head}")


@app.command("accept")
def accept(
    file: FileArgument,
    who: Annotated[str, typer.Option("--who", metavar="NAME", help="Who takes this on.")],
    witness: WitnessOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Go on with a ledger that lost entries; that it did stays on record.

    Look for the newest copy first. What the ledger says was spent is then
    only a lower bound: lower its budgets by what may have been lost.

    [bold]Examples[/bold]

      fedassay ledger accept ledger.db --who "privacy officer"
    """
    voice = Voice(as_json, quiet)
    entry = Ledger(file, witness).accept_loss(who=who)
    voice.result({"format": EXPORT_FORMAT, "entries": []} if entry is None else _entry_json(entry))
    if entry is None:
        voice.say("Nothing is missing; nothing was written.")
        return
    voice.say(
        "Recorded that entries were lost. What is spent is at least what the ledger shows; lower "
        f"its budgets accordingly.\nLedger entry {entry.number:,}; keep its head elsewhere:\n"
        f"{entry.head}"
    )


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {"format": EXPORT_FORMAT, "entries": [entry.to_json()]}


def _print_budgets(voice: Voice, entries: Sequence[Entry], data_id: str | None) -> None:
    latest = {
        (entry.content.data, entry.content.window): entry.content
        for entry in entries
        if isinstance(entry.content, Budget) and data_id in (None, entry.content.data)
    }
    voice.result(
        {"format": EXPORT_FORMAT, "budgets": [budget.to_json() for budget in latest.values()]}
    )
    for budget in latest.values():
        voice.say(f"{data_name(budget.data)}: {budget_words(budget)}")
    if not latest:
        voice.say("No budget is set: everything is recorded and nothing is refused but repeats.")
