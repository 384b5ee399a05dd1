"""An assessment of two models on the terminal: figures of each, and what differs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedassay.cli.outputs import Voice
from fedassay.errors import FedassayError, FileInvalid, SurveyMismatch
from fedassay.files import read_object
from fedassay.paired.assessment import PAIRED_FORMAT, PairedAssessment
from fedassay.planning.request import check_thresholds
from fedassay.tally_file import KeptTally

PAIR_SHOWN_FORMAT = "fedassay.paired-shown/1"


def is_pair_file(path: Path) -> bool:
    """Whether a file is the assessment of two models; whoever reads it says what else is wrong."""
    try:
        content = read_object(path)
    except FedassayError:
        return False
    return isinstance(content, dict) and content.get("format") == PAIRED_FORMAT


def show_pair(file: Path, threshold: Sequence[float] | None, voice: Voice) -> None:
    """Print an assessment of two models, at any thresholds."""
    saved = PairedAssessment.load(file)
    thresholds = tuple(dict.fromkeys(threshold or saved.thresholds))
    check_thresholds(thresholds)
    assessment = replace(saved, thresholds=thresholds)
    voice.result({"format": PAIR_SHOWN_FORMAT, **pair_content(assessment)})
    say_pair(voice, assessment)


def say_pair(voice: Voice, assessment: PairedAssessment) -> None:
    """Print both models' figures, their differences, and who is reclassified."""
    voice.say(str(assessment))


def pair_content(assessment: PairedAssessment) -> dict[str, Any]:
    """An assessment of two models in JSON's terms."""
    figures = assessment.figures_json()
    differences, tables = figures.pop("differences"), figures.pop("reclassification")
    return {
        "survey": assessment.survey.fingerprint.hex(),
        "models": list(assessment.names),
        "guarantee": assessment.guarantee.sentence(),
        "reports": assessment.reports,
        "thresholds": list(assessment.thresholds),
        "estimates": figures,
        "differences": differences,
        "reclassification": tables,
    }


def earlier_points(output: Path, kept: KeptTally, *, force: bool) -> tuple[float, ...]:
    """The thresholds of the assessment to be replaced; anything else is left alone."""
    if force or not output.exists():
        return (0.5,)
    earlier = PairedAssessment.load(output)
    if earlier.survey.fingerprint != kept.survey.fingerprint:
        raise SurveyMismatch(
            f"{output} holds survey {earlier.survey.fingerprint.hex()[:12]}; these reports go to "
            f"{kept.survey.fingerprint.hex()[:12]}. Choose another output file."
        )
    if not kept.reports:
        raise FileInvalid(
            f"{output}: was released from a tally that is not there. Name it with --from, or "
            "choose another output file."
        )
    return earlier.thresholds
