"""What `fedassay simulate` writes and prints."""

from pathlib import Path
from typing import Any

from fedassay.assessment import Assessment
from fedassay.cli.console import err
from fedassay.cli.estimates import estimates_table
from fedassay.cli.outputs import Voice
from fedassay.errors import FileInvalid
from fedassay.estimate import Estimate
from fedassay.estimate_table import reasons
from fedassay.examples import ScoredClients
from fedassay.files import write_json
from fedassay.report.charts import write_plots
from fedassay.report.page import write_report
from fedassay.simulation.simulate import rows_counted
from fedassay.simulation.two_steps import stood_alone

PAGE = "report.html"


def make_folder(folder: Path) -> None:
    """Make the folder of --out, if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileInvalid(
            f"{folder}: cannot be made ({error.strerror}). Choose a folder you may write to."
        ) from error


def save_results(folder: Path, content: dict[str, Any], assessment: Assessment) -> None:
    """Write the simulation, its last assessment, curves, and a page about it."""
    make_folder(folder)
    write_json(folder / "simulation.json", content)
    assessment.save(folder / "assessment.json")
    write_plots(assessment, folder / "curves.png")
    write_report(assessment, folder / PAGE)


def print_results(
    voice: Voice,
    cohort: ScoredClients,
    results: list[dict[str, Estimate]],
    exact: dict[str, float | None],
    assessment: Assessment,
) -> None:
    """Print the last trial's estimates beside the exact values."""
    survey, rows = assessment.survey, len(cohort.examples)
    held = "each row a client" if cohort.client_of_row is None else f"{cohort.clients:,} clients"
    voice.say(f"{rows:,} rows, {held}. {assessment.guarantee.sentence()}{assessment.cells_note}")
    if assessment.steps > 1:
        voice.say(
            "The first survey found where the scores lie, the second asked there; both are read "
            "together (--steps 1 asks once)."
        )
    elif stood_alone(assessment):
        voice.say(stood_alone(assessment))
    kept = rows_counted(survey, cohort)
    if kept < rows:
        voice.say(
            f"Counted {kept:,} of these rows, and left out {100 * (1 - kept / rows):.2g} %, since "
            f"the survey protects {survey.unit}. Raise --max-examples to count more."
        )
    if len(results) > 1:
        voice.say(f"Trial {len(results)} of {len(results)}, and |error|, the mean over all:")
    voice.say()
    voice.say(estimates_table(results[-1], exact=exact, trials=results))
    for reason in () if voice.quiet else reasons(results[-1]):
        err.print(reason, markup=False, soft_wrap=True)
