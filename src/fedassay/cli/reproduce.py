"""`fedassay reproduce`: the paper's tables and figures again."""

from pathlib import Path
from typing import Annotated

import typer

from fedassay.cli.console import err, plain
from fedassay.cli.outputs import ForceOption, JsonOption, QuietOption, Voice
from fedassay.reproduction.datasets import load_datasets
from fedassay.reproduction.figures import chosen_figures
from fedassay.reproduction.run import parts_folder, refuse_losses, reproduce, run_of, write_results
from fedassay.reproduction.settings import PAPER, QUICK

_EXAMPLES = """
[bold]Examples[/bold]

  fedassay reproduce auc --quick

  fedassay reproduce auc pra --data flights --out figures/

  fedassay reproduce all --data scores.parquet --data november

  fedassay reproduce all --kaggle downloads/
"""


def reproduce_command(
    figure: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIGURE]...", help="auc, auc-pop, ... or all (the default)."),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="NAME|FILE",
            help="stand-ins, september, october, november, flights, a table or a folder of them.",
        ),
    ] = None,
    kaggle: Annotated[
        Path | None,
        typer.Option("--kaggle", metavar="DIR", help="The paper's original files, downloaded."),
    ] = None,
    out_dir: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Write JSON, plots and pages there.")
    ] = Path("reproduction"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer points, repetitions and rows.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Measure the paper's tables and figures again; a run that was stopped goes on."""
    voice = Voice(as_json, quiet)
    figures = chosen_figures(figure or [])
    settings = QUICK if quick else PAPER
    parts_folder(out_dir)

    def say(message: str) -> None:
        if not quiet:
            err.print(message, markup=False, soft_wrap=True)

    def told(name: str, done: int, parts: int, left: float) -> None:
        place = [each.name for each in figures].index(name) + 1
        which = f"{name} ({place} of {len(figures)})" if len(figures) > 1 else name
        if done == parts:
            say(f"{which}: {parts} parts done")
        elif left > 0.0:
            say(f"{which}: {done} of {parts} parts, about {_duration(left)} left")
        elif done:
            say(f"{which}: {done} of {parts} parts were finished before and are kept")

    tables = load_datasets(data or [], settings, kaggle=kaggle, say=say)
    # Before any of them is measured: what is in the way of the last one counts too.
    run = run_of(tables, settings)
    if not force:
        refuse_losses(out_dir, figures, run)
    written: dict[str, str] = {}
    for each in figures:
        try:
            reproduce(each, tables, settings, folder=out_dir, force=force, told=told)
        except KeyboardInterrupt:
            say(f"Stopped. Finished parts are kept in {out_dir}/parts: the same command goes on.")
            raise
        written[each.name] = str(out_dir / f"{each.name}.json")
        voice.say(f"Wrote {plain(out_dir)}/{each.name}: .json, .png, .md")
    page = write_results(out_dir, run)
    voice.say(f"Wrote {plain(page)}: the paper's claims beside what was found")
    voice.result({"figures": written, "data": [table.name for table in tables]})


reproduce_command.__doc__ = f"{reproduce_command.__doc__}\n{_EXAMPLES}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90.0 else f"{seconds / 60.0:.0f} min"
