"""A survey of classes and what comes of it, as files: made, shown, and its figures."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedassay.classes.answers import question_of
from fedassay.classes.class_design import ClassDesign
from fedassay.classes.class_survey import (
    ClassSurvey,
)
from fedassay.classes.class_tally import KeptClassTally
from fedassay.classes.design import design_classes
from fedassay.classes.result import (
    CLASSES_FORMAT,
    MOST_ASSESSMENT_BYTES,
    ClassAssessment,
)
from fedassay.classes.rows import checked_names, names_of_columns
from fedassay.classes.survey_file import (
    class_fingerprint,
    load_class_survey,
    save_class_survey,
)
from fedassay.cli.accounts import ReceiptKeeper
from fedassay.cli.class_tally import class_tally_content
from fedassay.cli.classes import say_classes
from fedassay.cli.console import plain
from fedassay.cli.outputs import Voice
from fedassay.errors import FedassayError, SettingInvalid
from fedassay.files import read_object
from fedassay.ledger import Status
from fedassay.mechanisms.plain_words import plain_words
from fedassay.planning.request import SurveyRequest

CLASS_SURVEY_SHOWN_FORMAT = "fedassay.class-survey-shown/1"
CLASSES_SHOWN_FORMAT = "fedassay.classes-shown/1"


def refuse(given: Mapping[str, object], why: str) -> None:
    """Raise for the first option that was given and does not go with classes."""
    for option, value in given.items():
        if value:
            raise SettingInvalid(f"{why}; found {option}. Leave it out.")


def class_names(scores: str) -> tuple[str, ...]:
    """Classes by the columns that a survey will ask for: no table is there to look at.

    >>> class_names("p0,p1,p2")
    ('0', '1', '2')
    """
    if "*" in scores:
        raise SettingInvalid(
            "a survey of classes lists its columns, since no table is read; found a pattern, "
            f"{scores[:40]!r}. Write --scores p0,p1,p2."
        )
    columns = [name.strip() for name in scores.split(",") if name.strip()]
    return checked_names(names_of_columns(columns) if columns else ())


def new_class_survey(
    scores: str,
    design: ClassDesign | None,
    request: SurveyRequest,
    output: Path,
    *,
    account: ReceiptKeeper | None,
    voice: Voice,
) -> None:
    """Write a survey of all classes that the columns stand for."""
    survey = design_classes(request, class_names(scores), design=design)
    if account is not None:
        account.status = Status.ISSUED
        account.charge(question_of(survey))
    save_class_survey(survey, output)
    voice.say(f"Wrote {plain(output)}: {_asked(survey)}\n{survey.guarantee.sentence()}")
    voice.result({"file": str(output), **class_survey_content(survey)})
    if account is not None:
        voice.say(account.receipt_text())


def _asked(survey: ClassSurvey) -> str:
    each = "each client answers one" if survey.draws_one_part else "each client answers all"
    return (
        f"{len(survey.names):,} classes ({', '.join(survey.names[:8])}"
        f"{', ...' if len(survey.names) > 8 else ''}) in {len(survey.parts):,} parts, of which "
        f"{each}; design {survey.design.value}, fingerprint {class_fingerprint(survey).hex()[:12]}."
    )


def show_class_survey(path: Path, voice: Voice) -> None:
    """Say what a survey of classes asks and promises, in plain words too."""
    survey = load_class_survey(path)
    voice.say(f"{plain(path)}: {survey.privacy.value} privacy, {_asked(survey)}")
    voice.say(f"\n{survey.guarantee.sentence()}\n")
    for sentence in plain_words(survey.guarantee):
        voice.say(f"- {sentence}")
    voice.result(class_survey_content(survey))


def class_survey_content(survey: ClassSurvey) -> dict[str, Any]:
    """What a survey of classes asks and promises, in JSON's terms."""
    return {
        "format": CLASS_SURVEY_SHOWN_FORMAT,
        "fingerprint": class_fingerprint(survey).hex(),
        "privacy": survey.privacy.value,
        "classes": list(survey.names),
        "design": survey.design.value,
        "parts": len(survey.parts),
        "draws_one_part": survey.draws_one_part,
        "epsilon": None if survey.epsilon is None else str(survey.epsilon),
        "smallest_cell": survey.smallest_cell,
        "model_digest": survey.model_digest,
        "guarantee": survey.guarantee.sentence(),
        "plain_words": list(plain_words(survey.guarantee)),
    }


def show_classes(path: Path, voice: Voice) -> None:
    """Print an assessment of classes."""
    found = ClassAssessment.load(path)
    voice.result(
        {
            "format": CLASSES_SHOWN_FORMAT,
            "survey": class_fingerprint(found.survey).hex(),
            "classes": list(found.survey.names),
            "design": found.survey.design.value,
            "guarantee": found.guarantee.sentence(),
            "reports": found.reports,
            "estimates": found.figures_json(),
        }
    )
    say_classes(voice, found)


def is_classes_file(path: Path) -> bool:
    """Whether a file is the assessment of classes; whoever reads it says what else is wrong."""
    try:
        content = read_object(path, most=MOST_ASSESSMENT_BYTES)
    except FedassayError:
        return False
    return isinstance(content, dict) and content.get("format") == CLASSES_FORMAT


def show_class_tally(path: Path, voice: Voice) -> None:
    """Say how far a tally of classes is."""
    kept = KeptClassTally.load(path)
    voice.say(
        f"{plain(path)}: {kept.reports:,} clients or rows heard about {len(kept.survey.names):,} "
        f"classes, {kept.state.value}."
    )
    voice.result(class_tally_content(path, kept))
