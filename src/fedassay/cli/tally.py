"""`tally` and `merge`: reports become a tally, and a tally, once, an assessment."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fedassay.api_inputs import as_assessment
from fedassay.assessment import Assessment
from fedassay.classes.survey_file import is_class_survey
from fedassay.cli import options
from fedassay.cli.class_files import refuse
from fedassay.cli.class_tally import tally_class_survey
from fedassay.cli.console import complain, progress
from fedassay.cli.groups import groups_content
from fedassay.cli.outputs import ForceOption, JsonOption, QuietOption, Voice, check_output
from fedassay.cli.show import assessment_content, say_assessment
from fedassay.cli.show_pair import earlier_points, pair_content, say_pair
from fedassay.cli.sites import SiteQuestions, sites_content
from fedassay.cli.survey import SurveyArgument
from fedassay.decoding import DecodeOptions
from fedassay.engines.bulk_tally import BulkBuilder
from fedassay.engines.report_files import collect, report_files
from fedassay.engines.unfinished import Collected, Unfinished
from fedassay.errors import FileInvalid, SettingInvalid, SurveyMismatch, TooFewReports
from fedassay.mechanisms import Privacy
from fedassay.paired.assessment import PairedAssessment
from fedassay.planning.request import Preset, check_buckets, check_thresholds
from fedassay.planning.search import decode_options_for
from fedassay.survey import Survey
from fedassay.survey_json import load_survey
from fedassay.survey_steps import FirstOfTwo
from fedassay.tally import Tally
from fedassay.tally_file import KeptTally, State

TALLIED_FORMAT = "fedassay.tallied/1"


def tally(
    survey_file: SurveyArgument,
    reports: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[REPORT...]", help="Report files, or folders of them."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Assessment to release."),
    ] = None,
    collect_in: Annotated[
        Path | None,
        typer.Option("--collect", metavar="FILE.tally", help="Only collect, and release nothing."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE.tally", help="Tally to release (default: the one beside -o)."
        ),
    ] = None,
    first: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="First assessment, where this survey is the second."),
    ] = None,
    threshold: options.ThresholdOption = None,
    preset: Annotated[
        Preset | None, typer.Option(help="How to read the tally (default: as before, or the best).")
    ] = None,
    buckets: options.BucketsOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Add reports up, and assess the classifier.

    Reports are collected in a tally file, private to its owner: the one beside the assessment,
    or that of --collect. What it has already is not counted again. At the survey's minimum -o
    releases an assessment, which closes the tally under secure and distributed privacy; to wait
    for more clients, collect first and release when all are in. Bad reports are named and left
    out; then the exit code is 2, and a tally that releasing would close is not released.

    [bold]Examples[/bold]

      fedassay tally survey.json reports/*.fa -o assessment.json

      fedassay tally survey.json inbox/ --collect study.tally

      fedassay tally survey.json --from study.tally -o assessment.json

      fedassay tally second.json inbox/ --first first-assessment.json -o assessment.json
    """
    check_buckets(buckets)
    voice = Voice(as_json, quiet)
    place = _tally_place(output, collect_in, source)
    if is_class_survey(survey_file):
        refuse(
            {"--first": first, "--preset": preset, "--buckets": buckets, "--threshold": threshold},
            "a survey of classes is read in one way",
        )
        tally_class_survey(
            survey_file,
            reports or [],
            place=place,
            output=output,
            must_exist=source is not None or not reports,
            force=force,
            voice=voice,
        )
    survey = load_survey(survey_file)
    kept = _kept(place, survey, must_exist=source is not None or not reports)
    if output is None:
        kept, collected = _collected(kept, reports or [], place)
        kept.save(place)
        _say_collected(voice, place, kept, collected)
        voice.result(_content(place, kept, collected))
        raise typer.Exit(2 if collected.rejected else 0)
    check_output(output, survey_file, place, first, *(reports or []), force=True)
    if survey.pair is not None:
        if first is not None or preset is not None or buckets is not None:
            raise SettingInvalid(
                "a survey of two models is read in one way; found --first, --preset or --buckets. "
                "Leave it out."
            )
        points = tuple(dict.fromkeys(threshold or earlier_points(output, kept, force=force)))
        check_thresholds(points)
        kept, collected = _collected(kept, reports or [], place)
        pair = PairedAssessment(survey, kept.tally, DecodeOptions(), points)
        _release(pair, kept, collected, places=(place, output), voice=voice)
        raise typer.Exit(2 if collected.rejected else 0)
    before = None if first is None else as_assessment(first)
    earlier = _earlier(output, kept, place, first=before, force=force)
    options_given = preset is not None or buckets is not None
    decode_options = (
        decode_options_for(preset or Preset.DEFAULT, buckets)
        if options_given
        else earlier.decode_options
    )
    thresholds = tuple(dict.fromkeys(threshold or earlier.thresholds))
    check_thresholds(thresholds)
    kept, collected = _collected(kept, reports or [], place)
    _release(
        Assessment(survey, kept.tally, decode_options, thresholds, earlier.first),
        kept,
        collected,
        places=(place, output),
        voice=voice,
    )
    if collected.rejected:
        raise typer.Exit(2)


def _release(
    assessment: Assessment | PairedAssessment,
    kept: KeptTally,
    collected: Collected,
    *,
    places: tuple[Path, Path],
    voice: Voice,
) -> None:
    """Keep the tally and, where it may be, release the assessment; the tally is closed first."""
    place, output = places
    if (
        collected.rejected
        and not kept.survey.reports_may_be_seen
        and kept.state is State.COLLECTING
    ):
        kept.save(place)
        _say_collected(voice, place, kept, collected)
        voice.say(
            "Nothing is released, since that closes the tally and a report was rejected. Mend it, "
            f"or release without it: fedassay tally SURVEY --from {place} -o {output}"
        )
        voice.result(_content(place, kept, collected))
        return
    try:
        released = kept.released()
    except TooFewReports:
        kept.save(place)
        _say_collected(voice, place, kept, collected)
        voice.result(_content(place, kept, collected))
        raise
    # What cannot be read must not close the tally.
    _ = assessment.headline
    released.save(place)
    assessment.save(output)
    _say_collected(voice, place, released, collected)
    closes = "" if kept.survey.reports_may_be_seen else " No report can be added to it any more."
    voice.say(f"Released {output}.{closes}\n")
    if isinstance(assessment.survey.step, FirstOfTwo):
        voice.say(
            "It is the first of two. The second asks where the scores lie: fedassay survey new "
            f"--after {output} -o second.json\n"
        )
    content = {**_content(place, released, collected), "assessment": str(output)}
    if isinstance(assessment, PairedAssessment):
        say_pair(voice, assessment)
        voice.result({**content, **pair_content(assessment)})
    else:
        say_assessment(voice, assessment)
        voice.result({**content, **_estimates(assessment)})


def merge(
    tallies: Annotated[list[Path], typer.Argument(metavar="TALLY...", help="Tally files.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Merged tally.")],
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Merge tallies of one survey that were collected in several places.

    Under secure and distributed privacy the parts are marked as merged, so that only the whole
    is ever released.

    [bold]Example[/bold]

      fedassay merge north.tally south.tally -o study.tally
    """
    if len(tallies) < 2:
        raise SettingInvalid(f"merging takes two tallies or more; found {len(tallies)}.")
    check_output(output, *tallies, force=force)
    parts = [KeptTally.load(path) for path in tallies]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    whole.save(output)
    if not whole.survey.reports_may_be_seen:
        for path, part in zip(tallies, parts, strict=True):
            KeptTally(part.survey, part.tally, State.MERGED).save(path)
    voice = Voice(as_json, quiet)
    voice.say(
        f"Wrote {output}: {whole.reports:,} reports of {len(parts)} tallies, unreleased. "
        "Keep it private."
    )
    voice.result({"format": TALLIED_FORMAT, "tally": str(output), **kept_content(whole)})


def _tally_place(output: Path | None, collect_in: Path | None, source: Path | None) -> Path:
    """Where the tally is kept."""
    if (output is None) == (collect_in is None):
        raise SettingInvalid(
            "tally either releases an assessment (-o FILE) or only collects (--collect "
            "FILE.tally); found both or neither."
        )
    if collect_in is not None:
        if source is not None:
            raise SettingInvalid(
                "--from names the tally to release; --collect releases none. Drop one of them."
            )
        return collect_in
    if source is not None:
        return source
    if output is None or output.suffix == ".tally":
        raise SettingInvalid("-o names the assessment; for a tally use --collect FILE.tally.")
    return output.with_suffix(".tally")


def _kept(place: Path, survey: Survey, *, must_exist: bool) -> KeptTally:
    """The tally that is already there, or an empty one."""
    if not place.exists():
        if must_exist:
            raise FileInvalid(
                f"{place}: there is no such tally, and no report is given. Name report files, or "
                "the tally with --from."
            )
        check_output(place, force=False)
        return KeptTally.empty(survey)
    kept = KeptTally.load(place)
    if kept.survey.fingerprint != survey.fingerprint:
        raise SurveyMismatch(
            f"{place} holds survey {kept.survey.fingerprint.hex()[:12]}; these reports go to "
            f"{survey.fingerprint.hex()[:12]}. Choose another file."
        )
    return kept


def _earlier(
    output: Path, kept: KeptTally, place: Path, *, first: Assessment | None, force: bool
) -> Assessment:
    """The assessment to be replaced, for the way it is read; anything else is left alone."""
    if force or not output.exists():
        options = decode_options_for(Preset.DEFAULT, None)
        points = (0.5,) if first is None else first.thresholds
        return Assessment(kept.survey, Tally.zero(kept.survey), options, points, first)
    earlier = Assessment.load(output)
    if earlier.survey.fingerprint != kept.survey.fingerprint:
        raise SurveyMismatch(
            f"{output} holds survey {earlier.survey.fingerprint.hex()[:12]}; these reports go to "
            f"{kept.survey.fingerprint.hex()[:12]}. Choose another output file."
        )
    if not kept.reports:
        raise FileInvalid(
            f"{output}: was released from a tally that is not at {place}. Name it with --from, or "
            "choose another output file."
        )
    return earlier if first is None else replace(earlier, first=first)


def _collected(kept: KeptTally, reports: list[Path], place: Path) -> tuple[KeptTally, Collected]:
    """The tally with the reports in it, and what became of them."""
    builder = BulkBuilder(kept.tally, kept.survey)
    paths = report_files(reports)
    is_local = kept.survey.privacy is Privacy.LOCAL
    unfinished = Unfinished(place, builder) if is_local else None
    with progress("files", len(paths)) as advance:
        collected = collect(builder, paths, progress=advance, unfinished=unfinished)
    complain(collected.complaints)
    kept = kept.holding(builder.tally())
    if not kept.reports:
        raise TooFewReports(
            "a tally holds at least one report; found none that counts, so nothing was written. "
            "Name report files, or a folder of them."
        )
    if unfinished is not None and unfinished.folder.exists():
        # Parts go when what they hold is in the tally, and not before.
        kept.save(place)
        unfinished.finish()
    return kept, collected


def _say_collected(voice: Voice, place: Path, kept: KeptTally, collected: Collected) -> None:
    if collected.resumed:
        voice.say(f"Went on after {collected.resumed:,} reports that an interrupted run counted.")
    there = f"{collected.already_there:,} already there, " if collected.already_there else ""
    voice.say(
        f"Counted {collected.counted:,} reports, {there}rejected {collected.rejected:,} files or "
        f"blocks; {kept.reports:,} reports in all in {place}, {kept.state.value}."
    )


def _content(place: Path, kept: KeptTally, collected: Collected) -> dict[str, Any]:
    return {
        "format": TALLIED_FORMAT,
        "tally": str(place),
        **kept_content(kept),
        "counted": collected.counted,
        "already_there": collected.already_there,
        "rejected": collected.rejected,
        "assessment": None,
    }


def kept_content(kept: KeptTally) -> dict[str, Any]:
    """How far a tally is, in JSON's terms."""
    return {
        "survey": kept.survey.fingerprint.hex(),
        "state": kept.state.value,
        "reports": kept.reports,
        "reports_per_level": list(kept.tally.reports),
    }


def _estimates(assessment: Assessment) -> dict[str, Any]:
    content = assessment_content(assessment)
    between = sites_content(assessment.sites, SiteQuestions(assessment.thresholds))
    between |= groups_content(assessment)
    shown = ("guarantee", "examples", "buckets", "estimates")
    return {**{name: content[name] for name in shown}, **between}
