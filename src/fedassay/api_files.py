"""Surveys, answers and other files as the door takes them: values, bytes, or paths."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path

from fedassay.assessment import ASSESSMENT_FORMATS, Assessment
from fedassay.calibration.calibrator import CALIBRATOR_FORMAT, Calibrator
from fedassay.checks import shown, unknown
from fedassay.classes.class_survey import ClassSurvey
from fedassay.classes.class_tally import KeptClassTally, is_class_tally
from fedassay.classes.result import CLASSES_FORMAT, MOST_ASSESSMENT_BYTES, ClassAssessment
from fedassay.classes.survey_file import (
    CLASS_SURVEY_FORMAT,
    MAX_CLASS_SURVEY_BYTES,
    load_class_survey,
)
from fedassay.client import Answer
from fedassay.engines.report_files import read_messages, report_files, site_names
from fedassay.errors import FileInvalid, NoRows, SettingInvalid
from fedassay.files import as_path, read_object
from fedassay.paired.assessment import PAIRED_FORMAT, PairedAssessment
from fedassay.shuffler import Shuffler
from fedassay.survey import SURVEY_FORMATS, Survey
from fedassay.survey_json import load_survey
from fedassay.tally import Tally, TallyBuilder
from fedassay.tally_file import KeptTally, is_tally_file
from fedassay.wire import Message, messages

AnyAnswer = Answer | bytes | str | Path


_Loaded = Survey | ClassSurvey | Assessment | PairedAssessment | ClassAssessment | Calibrator


def load(path: str | Path) -> _Loaded | KeptTally | KeptClassTally:
    """Read any file that fedassay wrote: a survey, an assessment, a calibrator or a tally.

    >>> import fedassay, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fedassay.new_survey().save(f"{folder}/survey.json")
    ...     fedassay.load(f"{folder}/survey.json")
    <Survey ...: secure, 200 cells>
    """
    place = as_path(path)
    if is_tally_file(place):
        return KeptTally.load(place)
    if is_class_tally(place):
        return KeptClassTally.load(place)
    content = read_object(place, most=max(MOST_ASSESSMENT_BYTES, MAX_CLASS_SURVEY_BYTES))
    kind = content.get("format") if isinstance(content, dict) else None
    if kind not in _LOADERS:
        raise FileInvalid(
            f"{place}: {unknown(kind, _LOADERS, 'a format')} "
            "Pass such a file, or use the fedassay version that wrote it."
        )
    return _LOADERS[kind](place)


_LOADERS: dict[str, Callable[[Path], _Loaded]] = {
    **dict.fromkeys(SURVEY_FORMATS, load_survey),
    **dict.fromkeys(ASSESSMENT_FORMATS, Assessment.load),
    CALIBRATOR_FORMAT: Calibrator.load,
    PAIRED_FORMAT: PairedAssessment.load,
    CLASS_SURVEY_FORMAT: load_class_survey,
    CLASSES_FORMAT: ClassAssessment.load,
}


def load_assessment(path: str | Path) -> Assessment | PairedAssessment | ClassAssessment:
    """Read an assessment of any kind: of one model, of two on the same rows, or of classes."""
    content = read_object(as_path(path), most=MOST_ASSESSMENT_BYTES)
    match content.get("format") if isinstance(content, dict) else None:
        case formats if formats == PAIRED_FORMAT:
            return PairedAssessment.load(path)
        case formats if formats == CLASSES_FORMAT:
            return ClassAssessment.load(path)
        case _:
            return Assessment.load(path)


def tally_of(survey: Survey, answers: Iterable[AnyAnswer] | Mapping[str, AnyAnswer]) -> Tally:
    """Add up answers, their bytes or their files; a bad one raises."""
    _check_listed(answers)
    builder = TallyBuilder(Tally.zero(survey), survey)
    named = answers.items() if isinstance(answers, Mapping) else ((None, each) for each in answers)
    for name, each in named:
        for message, called in _messages_of(each, survey):
            builder.add(message, name=name or called)
    tally = builder.tally()
    if not any(tally.reports):
        raise NoRows(
            "at least one answer is needed; found none. Pass what fedassay.answer made, or paths."
        )
    return tally


def shuffle_answers(survey: Survey | str | Path, answers: Iterable[AnyAnswer]) -> Answer:
    """Mix answers to a shuffled survey: one batch, which `tally_answers` then takes.

    A repeated, foreign or malformed report raises, and so does too small a crowd. Run it where
    no data scientist works: whoever sees the answers too knows who sent which.

    Guarantee: that of `survey.guarantee`, towards everybody who sees the batch and no answer.

    >>> import fedassay
    >>> survey = fedassay.new_survey(
    ...     privacy="shuffled", epsilon=1, clients=40, minimum_reports=30, height=1
    ... )
    >>> answers = [fedassay.answer(survey, [i % 2], [i / 40]) for i in range(40)]
    >>> batch = fedassay.shuffle_answers(survey, answers)
    >>> batch.reports, fedassay.tally_answers(survey, [batch]).survey.minimum_reports
    (40, 30)
    """
    asked = survey_of(survey)
    shuffler = Shuffler(asked)
    _check_listed(answers)
    for each in answers:
        for message, _ in _messages_of(each, asked):
            shuffler.add(message)
    return Answer(shuffler.batch())


def survey_of(survey: Survey | str | Path) -> Survey:
    """A survey, or the one in a file."""
    return survey if isinstance(survey, Survey) else load_survey(as_path(survey))


def _check_listed(answers: object) -> None:
    if isinstance(answers, Answer | bytes | str | Path) or not isinstance(answers, Iterable):
        raise SettingInvalid(
            f"answers come as a list of them; found {shown(type(answers))}. Write [answer]."
        )


def _messages_of(each: object, survey: Survey) -> Iterator[tuple[Message, str | None]]:
    """The messages of an answer, of its bytes, or of the files that it is in, with their names."""
    match each:
        case Answer():
            yield from ((message, None) for message in each.messages)
        case bytes():
            yield from ((message, None) for message in messages(BytesIO(each), survey))
        case str() | Path():
            files = report_files([as_path(each)])
            for path, name in zip(files, site_names(files), strict=True):
                yield from ((message, name) for message in read_messages(path, survey))
        case _:
            raise SettingInvalid(
                "an answer is what fedassay.answer made, its bytes, or a path to its file; found "
                f"{shown(each)}. Pass those."
            )
