"""`fedassay tally` of a survey of classes: all parts are collected and released together."""

from pathlib import Path
from typing import Any, NoReturn

import typer

from fedassay.classes.class_survey import ClassSurvey
from fedassay.classes.class_tally import ClassTallyBuilder, KeptClassTally
from fedassay.classes.result import ClassAssessment
from fedassay.classes.survey_file import class_fingerprint, load_class_survey
from fedassay.cli.classes import say_classes
from fedassay.cli.console import complain, plain, progress
from fedassay.cli.outputs import Voice, check_output
from fedassay.engines.report_files import collect, report_files
from fedassay.engines.unfinished import Collected
from fedassay.errors import FileInvalid, SurveyMismatch, TooFewReports
from fedassay.tally_file import State

CLASSES_TALLIED_FORMAT = "fedassay.classes-tallied/1"


def tally_class_survey(
    survey_file: Path,
    reports: list[Path],
    *,
    place: Path,
    output: Path | None,
    must_exist: bool,
    force: bool,
    voice: Voice,
) -> NoReturn:
    """Collect reports about classes and, with an output, release their assessment."""
    survey = load_class_survey(survey_file)
    kept = _kept(place, survey, must_exist=must_exist)
    if output is not None:
        check_output(output, survey_file, place, *reports, force=True)
        _check_earlier(output, survey, force=force)
    builder = ClassTallyBuilder(survey, kept.tallies)
    paths = report_files(reports)
    with progress("files", len(paths)) as advance:
        collected = collect(builder, paths, progress=advance)
    complain(collected.complaints)
    kept = kept.holding(builder.tallies())
    if not kept.reports:
        raise TooFewReports(
            "a tally holds at least one report; found none that counts, so nothing was written. "
            "Name report files, or a folder of them."
        )
    closes = not kept.reports_may_be_seen and kept.state is State.COLLECTING
    if output is None or (collected.rejected and closes):
        kept.save(place)
        _say_collected(voice, place, kept, collected)
        if output is not None:
            voice.say(
                "Nothing is released, since that closes the tally and a report was rejected. Mend "
                f"it, or release without it: fedassay tally SURVEY --from {place} -o {output}"
            )
        voice.result(class_tally_content(place, kept, collected))
        raise typer.Exit(2 if collected.rejected else 0)
    try:
        released = kept.released()
    except TooFewReports:
        kept.save(place)
        _say_collected(voice, place, kept, collected)
        voice.result(class_tally_content(place, kept, collected))
        raise
    assessment = ClassAssessment(survey, released.tallies)
    # What cannot be read must not close the tally.
    content = assessment.figures_json()
    released.save(place)
    assessment.save(output)
    _say_collected(voice, place, released, collected)
    voice.say(f"Released {plain(output)}.\n")
    say_classes(voice, assessment)
    voice.result(
        {
            **class_tally_content(place, released, collected),
            "assessment": str(output),
            "estimates": content,
        }
    )
    raise typer.Exit(2 if collected.rejected else 0)


def _kept(place: Path, survey: ClassSurvey, *, must_exist: bool) -> KeptClassTally:
    if not place.exists():
        if must_exist:
            raise FileInvalid(
                f"{place}: there is no such tally, and no report is given. Name report files, or "
                "the tally with --from."
            )
        check_output(place, force=False)
        return KeptClassTally.empty(survey)
    kept = KeptClassTally.load(place)
    _same(class_fingerprint(kept.survey), class_fingerprint(survey), place)
    return kept


def _check_earlier(output: Path, survey: ClassSurvey, *, force: bool) -> None:
    """An assessment of the same survey is replaced; anything else only with --force."""
    if force or not output.exists():
        return
    earlier = ClassAssessment.load(output)
    _same(class_fingerprint(earlier.survey), class_fingerprint(survey), output)


def _same(found: bytes, wanted: bytes, place: Path) -> None:
    if found != wanted:
        raise SurveyMismatch(
            f"{place} holds survey {found.hex()[:12]}; these reports go to {wanted.hex()[:12]}. "
            "Choose another file."
        )


def _say_collected(voice: Voice, place: Path, kept: KeptClassTally, collected: Collected) -> None:
    there = f"{collected.already_there:,} already there, " if collected.already_there else ""
    voice.say(
        f"Counted reports of {collected.counted:,} clients or rows, {there}rejected "
        f"{collected.rejected:,} files or blocks; {kept.reports:,} in all in {plain(place)}, "
        f"{kept.state.value}."
    )


def class_tally_content(
    place: Path, kept: KeptClassTally, collected: Collected | None = None
) -> dict[str, Any]:
    """How far a tally of classes is, in JSON's terms."""
    became = Collected() if collected is None else collected
    return {
        "format": CLASSES_TALLIED_FORMAT,
        "tally": str(place),
        "survey": class_fingerprint(kept.survey).hex(),
        "state": kept.state.value,
        "reports": kept.reports,
        "reports_per_part": [max(each.tally.reports) for each in kept.parts],
        "counted": became.counted,
        "already_there": became.already_there,
        "rejected": became.rejected,
        "assessment": None,
    }
