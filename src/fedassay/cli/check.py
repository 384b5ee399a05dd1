"""`check`: a gate for pipelines; `compare`: assessments side by side."""

from pathlib import Path
from typing import Annotated

import typer

from fedassay.assessment import Assessment
from fedassay.cli import options
from fedassay.cli.outputs import ForceOption, JsonOption, QuietOption, Voice, check_output
from fedassay.comparison.gate import Baseline, Verdict
from fedassay.comparison.gate import check as check_requirements
from fedassay.comparison.junit import junit_xml
from fedassay.comparison.side_by_side import compare as compare_assessments
from fedassay.errors import SettingInvalid
from fedassay.files import write_whole
from fedassay.metrics.named import metric_at
from fedassay.report.comparison_page import write_comparison

EXIT_CODES = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.CANNOT_TELL: 3}

ConfidenceOption = Annotated[
    float, typer.Option("--confidence", metavar="C", help="Confidence of what is said.")
]


def check(
    file: Annotated[Path, typer.Argument(metavar="ASSESSMENT", help="Assessment file.")],
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require", metavar="RULE", help="Such as 'roc_auc >= 0.80'; may be repeated."
        ),
    ] = None,
    no_worse_than: Annotated[
        Path | None,
        typer.Option(
            "--no-worse-than", metavar="FILE", help="An earlier assessment, to keep up with."
        ),
    ] = None,
    by: Annotated[
        float, typer.Option("--by", metavar="D", help="How much worse is still good enough.")
    ] = 0.0,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="What to compare with the earlier one (default roc_auc); may be repeated.",
        ),
    ] = None,
    confidence: ConfidenceOption = 0.95,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Hold an assessment to what is required: pass, fail, or cannot tell.

    Exit codes: 0 pass, 1 fail, 3 cannot tell, 2 an error.

    [bold]Examples[/bold]

      fedassay check assessment.json --require 'roc_auc >= 0.80' --require 'precision@0.5 >= 0.7'

      fedassay check new.json --no-worse-than old.json --by 0.005

      fedassay check assessment.json --require 'oe_ratio >= 0.9' --junit gate.xml
    """
    if no_worse_than is None and (metric or by):
        raise SettingInvalid(
            "--by and --metric say how to keep up with an earlier assessment; found none. "
            "Add --no-worse-than old.json."
        )
    if junit is not None:
        check_output(junit, file, no_worse_than, force=force)
    assessment = Assessment.load(file)
    baseline = None
    if no_worse_than is not None:
        names = tuple(metric_at(name, assessment.thresholds) for name in metric or ("roc_auc",))
        baseline = Baseline(Assessment.load(no_worse_than), by, names)
    result = check_requirements(
        assessment, list(require or ()), confidence=confidence, baseline=baseline
    )
    voice = Voice(as_json, quiet)
    for finding in result.findings:
        voice.say(finding.sentence())
    voice.say(f"{result.verdict.value} (confidence {confidence:g})")
    voice.result(result.to_json())
    if junit is not None:
        write_whole(junit, junit_xml(result).encode())
    raise typer.Exit(EXIT_CODES[result.verdict])


def compare(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="ASSESSMENT...", help="Assessments; the first is compared with."),
    ],
    metric: options.MetricOption = None,
    confidence: ConfidenceOption = 0.95,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write a page there.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare assessments of different rows, metric by metric, with the first one.

    [bold]Examples[/bold]

      fedassay compare old.json new.json

      fedassay compare old.json new.json -o compare.html

      fedassay compare may.json june.json july.json --metric roc_auc --metric brier
    """
    if len({str(file) for file in files}) < len(files):
        raise SettingInvalid("an assessment is compared once; found a file twice. Drop one.")
    if output is not None:
        check_output(output, *files, force=force)
    names_are_clear = len({file.name for file in files}) == len(files)
    assessments = {
        file.name if names_are_clear else str(file): Assessment.load(file) for file in files
    }
    thresholds = next(iter(assessments.values())).thresholds
    names = [metric_at(name, thresholds) for name in metric] if metric else None
    comparison = compare_assessments(assessments, metrics=names, confidence=confidence)
    voice = Voice(as_json, quiet)
    voice.say(str(comparison))
    for name in comparison.others:
        voice.say(comparison.verdict(name, comparison.metrics[0]))
    if output is not None:
        write_comparison(comparison, output)
        voice.say(f"Wrote {output}.")
    voice.result(comparison.to_json())
