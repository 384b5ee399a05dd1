"""`track add`, `show` and `plot`: one model over time."""

from pathlib import Path
from typing import Annotated

import typer

from fedassay.assessment import Assessment
from fedassay.cli.console import plain
from fedassay.cli.outputs import ForceOption, JsonOption, QuietOption, Voice, check_output
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.estimate_json import estimates_json
from fedassay.estimate_table import short_name, value_and_interval
from fedassay.presentation import aligned
from fedassay.report.history_chart import write_history_chart
from fedassay.report.history_page import write_history
from fedassay.tracking.advice import advise
from fedassay.tracking.alarms import Watch, find_alarms, usual_metrics
from fedassay.tracking.history import History, form_of
from fedassay.tracking.trends import trend

HISTORY_SHOWN_FORMAT = "fedassay.history-shown/1"
_COLUMNS = 2

track_app = typer.Typer(help="Follow one model over time.", no_args_is_help=True)

FolderArgument = Annotated[
    Path, typer.Argument(metavar="HISTORY", help="A folder of assessments by time.")
]
MetricsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metric", metavar="NAME", help="A metric to watch, ece among them; may be repeated."
    ),
]
FalseAlarmsOption = Annotated[
    float,
    typer.Option("--false-alarms", metavar="P", help="Chance of any false alarm in a year."),
]
LooksOption = Annotated[
    int | None,
    typer.Option(
        "--looks-per-year", metavar="N", help="Default 12 for months, 52 or 366 for days."
    ),
]


@track_app.command("add")
def add(
    folder: FolderArgument,
    assessment: Annotated[Path, typer.Argument(metavar="ASSESSMENT", help="Assessment file.")],
    at: Annotated[str, typer.Option("--at", metavar="TIME", help="2026-10 or 2026-10-05.")],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Add an assessment to a history, under its month or day.

    [bold]Example[/bold]

      fedassay track add history assessment.json --at 2026-10
    """
    form_of(at)
    if folder.exists() and not folder.is_dir():
        raise FileInvalid(f"{plain(folder)}: a history is a folder; found a file. Name another.")
    looked = Assessment.load(assessment)
    before = History.load(folder) if folder.is_dir() else History({})
    history = before.with_look(at, looked)
    target = folder / f"{at}.json"
    folder.mkdir(parents=True, exist_ok=True)
    check_output(target, assessment, force=False)
    looked.save(target)
    voice = Voice(as_json, quiet)
    looks = "1 look" if len(history) == 1 else f"{len(history)} looks"
    voice.say(f"{plain(folder)}: {looks}, the last at {at}.")
    voice.result({"format": HISTORY_SHOWN_FORMAT, "looks": list(history)})


@track_app.command("show")
def show(
    folder: FolderArgument,
    metric: MetricsOption = None,
    false_alarms: FalseAlarmsOption = 0.05,
    looks_per_year: LooksOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print a history: every look, alarms at a stated rate, and what to do.

    [bold]Example[/bold]

      fedassay track show history --metric roc_auc --metric prevalence
    """
    history = _some(folder)
    watch = _watch(history, metric, false_alarms, looks_per_year)
    alarms, advice = find_alarms(history, watch), advise(history, watch)
    voice = Voice(as_json, quiet)
    for first in range(0, len(watch.metrics), _COLUMNS):
        names = watch.metrics[first : first + _COLUMNS]
        header = ["", *(text for name in names for text in (short_name(name), "95 %"))]
        rows = [
            [time, *(text for name in names for text in value_and_interval(history[time][name]))]
            for time in history
        ]
        voice.say(f"{aligned(header, rows)}\n")
    trends = {name: trend(history, name) for name in watch.metrics}
    header = ["trend", "a year", "95 %"]
    rows = [[short_name(name), *value_and_interval(each)] for name, each in trends.items()]
    voice.say(f"{aligned(header, rows)}\n")
    for alarm in alarms:
        voice.say(alarm.sentence())
    voice.say(str(advice))
    voice.result(
        {
            "format": HISTORY_SHOWN_FORMAT,
            "looks": list(history),
            "estimates": {
                time: estimates_json({name: history[time][name] for name in watch.metrics})
                for time in history
            },
            "watch": {
                "metrics": list(watch.metrics),
                "false_alarms_per_year": watch.false_alarms,
                "looks_per_year": watch.looks_per_year,
            },
            "alarms": [
                {
                    "metric": alarm.metric,
                    "at": alarm.at,
                    "since": alarm.since,
                    "before": alarm.before,
                    "after": alarm.after,
                }
                for alarm in alarms
            ],
            "trends": estimates_json(trends),
            "advice": {"action": advice.action.value, "reason": advice.reason},
        }
    )


@track_app.command("plot")
def plot(
    folder: FolderArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="A picture.")],
    metric: MetricsOption = None,
    false_alarms: FalseAlarmsOption = 0.05,
    looks_per_year: LooksOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Draw a history: a panel for each metric, with intervals and alarms.

    [bold]Example[/bold]

      fedassay track plot history -o history.png
    """
    check_output(output, force=force)
    history = _some(folder)
    watch = _watch(history, metric, false_alarms, looks_per_year)
    write_history_chart(history, watch.metrics, find_alarms(history, watch), output)
    voice = Voice(as_json, quiet)
    voice.say(f"Wrote {plain(output)}.")
    voice.result({"format": HISTORY_SHOWN_FORMAT, "looks": list(history), "picture": str(output)})


@track_app.command("report")
def report(
    folder: FolderArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The page.")],
    metric: MetricsOption = None,
    false_alarms: FalseAlarmsOption = 0.05,
    looks_per_year: LooksOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write one page about a history: advice, alarms, every metric over time.

    [bold]Example[/bold]

      fedassay track report history -o history.html
    """
    check_output(output, force=force)
    history = _some(folder)
    watch = _watch(history, metric, false_alarms, looks_per_year)
    size = write_history(history, output, watch=watch)
    voice = Voice(as_json, quiet)
    voice.say(f"Wrote {plain(output)}: {size / 1000:,.0f} KB, to open in any browser.")
    voice.result({"format": HISTORY_SHOWN_FORMAT, "looks": list(history), "page": str(output)})


def _some(folder: Path) -> History:
    history = History.load(folder)
    if not history.looks:
        raise SettingInvalid(
            f"{plain(folder)}: a history needs a look; found none. Add one with "
            "fedassay track add FOLDER assessment.json --at 2026-10."
        )
    return history


def _watch(
    history: History, metrics: list[str] | None, false_alarms: float, looks: int | None
) -> Watch:
    watched = tuple(metrics) if metrics else usual_metrics(history)
    return Watch(watched, false_alarms, looks or history.looks_per_year)
