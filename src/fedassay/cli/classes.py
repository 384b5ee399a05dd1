"""`fedassay simulate --scores`: a federation about more than two classes."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from fedassay.classes.class_design import ClassDesign
from fedassay.classes.confusion_matrix import ConfusionMatrix
from fedassay.classes.design import design_classes
from fedassay.classes.exact_figures import exact_confusion, exact_figures
from fedassay.classes.held_out_rows import HeldOutClasses, held_out_classes
from fedassay.classes.result import ClassAssessment, simulate_cohort
from fedassay.classes.table import read_class_cohort
from fedassay.classes.tallies import ClassCohort
from fedassay.cli.columns import TableOptions
from fedassay.cli.console import err, figures_table, plain, progress
from fedassay.cli.outputs import Voice
from fedassay.cli.simulate_output import PAGE, make_folder
from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate
from fedassay.estimate_table import estimate_header, estimate_rows, reasons
from fedassay.files import write_json
from fedassay.mechanisms import Unit
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SimulatedRandomness
from fedassay.report.classes_page import write_classes_report
from fedassay.simulation.simulate import check_sites, counted_rows, rows_counted
from fedassay.tables.sources import row_count

SIMULATION_FORMAT = "fedassay.simulation/1"
_FEW_CLASSES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassQuestion:
    """What `simulate` was asked about classes."""

    file: Path
    scores: str
    design: ClassDesign | None
    tables: TableOptions
    trials: int
    seed: int | None
    each_client: bool
    out_dir: Path | None
    calibrate: bool
    unit: Unit
    request: Mapping[str, Any]
    """What else the request says."""
    of_one_score: Mapping[str, object]
    """Options that are about one score, and what was given for each."""


def simulate_classes_command(question: ClassQuestion, voice: Voice) -> None:
    """Run the federation several times, and print or write what comes of it."""
    started = perf_counter()
    for option, given in question.of_one_score.items():
        if given:
            raise SettingInvalid(
                f"--scores is for more than two classes; found {option} too, which is about one "
                "score. Leave one of them out."
            )
    columns = question.tables.as_named()
    with progress("reading rows", row_count(question.file)) as advance:
        cohort = read_class_cohort(question.file, question.scores, columns, progress=advance)
    privacy = question.request["privacy"]
    check_sites(privacy, cohort.held)
    request = SurveyRequest(
        **question.request,
        unit=question.unit,
        clients=cohort.held.clients,
        examples=counted_rows(cohort.held, question.unit, is_local=privacy.is_local),
        dropouts=Fraction(0),
    )
    exact = exact_figures(cohort.rows)
    survey = design_classes(request, cohort.rows.names, design=question.design)
    results = []
    with progress("trials", question.trials) as advance:
        for sequence in np.random.SeedSequence(question.seed).spawn(question.trials):
            last = simulate_cohort(
                survey,
                cohort,
                randomness=SimulatedRandomness(sequence),
                exact=exact,
                each_client=question.each_client,
            )
            results.append(last.figures_json())
            advance(1)
    kept = rows_counted(survey.parts[0].survey, cohort.held)
    content: dict[str, Any] = {
        "format": SIMULATION_FORMAT,
        "rows": len(cohort.rows),
        "rows_kept": kept,
        "clients": cohort.held.clients,
        "classes": list(survey.names),
        "design": survey.design.value,
        "guarantee": survey.guarantee.sentence(),
        "exact": exact,
        "exact_confusion": exact_confusion(cohort.rows).tolist(),
        "trials": results,
        "seconds": perf_counter() - started,
    }
    tested = held_out_classes(request, cohort, seed=question.seed) if question.calibrate else []
    if tested:
        content["calibration"] = [_tested_json(each) for each in tested]
    if question.out_dir is not None:
        make_folder(question.out_dir)
        write_json(question.out_dir / "simulation.json", content)
        last.save(question.out_dir / "assessment.json")
        write_classes_report(last, question.out_dir / PAGE)
    voice.result(content)
    _print(voice, cohort, last, kept)
    _print_calibration(voice, tested)
    if question.out_dir is not None:
        voice.say(
            f"\nWrote {plain(question.out_dir)}/: assessment.json, simulation.json, {PAGE}\n"
            f"To look at: {plain(question.out_dir / PAGE)}"
        )


def _tested_json(tested: HeldOutClasses) -> dict[str, Any]:
    return {
        "method": tested.calibrator.method.value,
        "reason": tested.calibrator.reason,
        "held_out_rows": tested.rows,
        "before": tested.before,
        "after": tested.after,
    }


def _print_calibration(voice: Voice, tested: list[HeldOutClasses]) -> None:
    if not tested:
        return
    voice.say(
        "\nCalibration, each method fitted on half of the clients with all of epsilon and tested "
        f"on the other {tested[0].rows:,} rows:"
    )
    names = list(tested[0].before)
    lines = [["as they are", *(f"{tested[0].before[name]:.5f}" for name in names)]]
    lines += [
        [each.calibrator.method.value, *(f"{each.after[name]:.5f}" for name in names)]
        for each in tested
    ]
    voice.say(figures_table(["method", *names], lines))


def _print(voice: Voice, cohort: ClassCohort, result: ClassAssessment, kept: int) -> None:
    rows, held = len(cohort.rows), cohort.held
    who = "each row a client" if held.client_of_row is None else f"{held.clients:,} clients"
    voice.say(f"{rows:,} rows of {cohort.rows.classes:,} classes, {who}. {result.guarantee}")
    if kept < rows:
        voice.say(
            f"Counted {kept:,} of these rows: the survey protects "
            f"{result.survey.parts[0].survey.unit}. Raise --max-examples to count more."
        )
    voice.say()
    say_figures(voice, result)


def say_classes(voice: Voice, result: ClassAssessment) -> None:
    """Print an assessment of classes: what was gathered, and its figures."""
    voice.say(result.headline)
    voice.say()
    say_figures(voice, result)


def say_figures(voice: Voice, result: ClassAssessment) -> None:
    """Print the figures, beside exact ones where there are some, and the confusion matrix."""
    shown = _shown(result)
    voice.say(
        figures_table(
            estimate_header(exact=result.beside),
            estimate_rows(shown, exact=result.beside),
        )
    )
    for reason in () if voice.quiet else reasons(shown):
        err.print(reason, markup=False, soft_wrap=True)
    confusion = result.confusion
    if isinstance(confusion, ConfusionMatrix) and len(confusion.names) <= _FEW_CLASSES:
        voice.say("\nOf all rows, in percent: the true class by the most probable one")
        header = ["true", *confusion.names]
        lines = [
            [name, *(f"{100 * s.value:.2f}" if s.is_available else "-" for s in row)]
            for name, row in zip(confusion.names, confusion.shares, strict=True)
        ]
        voice.say(figures_table(header, lines))


def _shown(result: ClassAssessment) -> dict[str, Estimate]:
    """All figures, or those over all classes where there are many."""
    estimates, names = result.estimates(), set(result.survey.names)
    if len(names) <= _FEW_CLASSES:
        return estimates
    averages = ("macro", "weighted", "micro", "classwise", "top")
    return {
        name: estimate
        for name, estimate in estimates.items()
        if "/" not in name or name.split("/", 1)[1] in averages
    }
