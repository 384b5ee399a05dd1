"""`fedassay answer` to a survey of classes: one client's report about all parts, made once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fedassay.classes.answers import answer_classes, check_class_policy
from fedassay.classes.class_survey import ClassSurvey
from fedassay.classes.rows import chosen_columns
from fedassay.classes.survey_file import class_fingerprint, load_class_survey
from fedassay.classes.table import read_class_cohort
from fedassay.cli.accounts import ReceiptKeeper, files_of
from fedassay.cli.class_files import refuse
from fedassay.cli.columns import TableOptions
from fedassay.cli.console import out, plain, progress
from fedassay.cli.outputs import Voice, check_output
from fedassay.client import CEILING, ClientPolicy, default_epsilon
from fedassay.engines.departure import Departure, slot_seconds
from fedassay.engines.kept_answers import KeptAnswers
from fedassay.engines.report_files import read_messages
from fedassay.errors import FedassayError, SettingInvalid, SurveyRefused, SurveyRepeated
from fedassay.files import write_whole
from fedassay.randomness import SystemRandomness
from fedassay.tables.columns import Columns
from fedassay.tables.sources import column_names, row_count

CLASSES_ANSWERED_FORMAT = "fedassay.classes-answered/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassAnswer:
    """How one client answers a survey of classes, and where its report goes."""

    survey_file: Path
    file: Path
    scores: str | None
    tables: TableOptions
    policy: ClientPolicy
    account: ReceiptKeeper | None
    output: Path
    again: bool
    force: bool
    of_one_score: Mapping[str, object]
    """Options that are about one score, and what was given for each."""


def answer_class_survey(asked: ClassAnswer, voice: Voice) -> None:
    """Make one client's report about all parts, once, and keep it."""
    refuse(
        asked.of_one_score,
        "a survey of classes is answered from columns of probabilities (--scores)",
    )
    survey, account = load_class_survey(asked.survey_file), asked.account
    if not (voice.as_json or voice.quiet):
        out.print(survey.guarantee.sentence(), markup=False)
    _check_policy(asked.policy, survey)
    surveys = tuple(part.survey for part in survey.parts)
    kept = None if account is None else KeptAnswers.beside(account.ledger.path)
    name = class_fingerprint(survey)
    if account is not None and kept is not None and not asked.again:
        earlier = kept.find_by(name, account.part, surveys)
        if earlier is not None:
            account.ledger.read()
            _send_again(earlier, asked, voice)
            return
    is_answer = _holds_answer(asked.output, survey)
    if is_answer and not (asked.force or asked.again):
        raise SurveyRepeated(
            f"{asked.output}: holds an answer to this survey already. Send that file, as often as "
            "you like: it counts once. A new answer would be a second report and spend again; "
            "--force makes one."
        )
    check_output(
        asked.output,
        asked.file,
        asked.survey_file,
        *files_of(account),
        force=asked.force or is_answer,
    )
    departure = Departure.begin()
    columns = asked.tables.as_named()
    scores = _columns_of(survey, asked, columns)
    with progress("reading rows", row_count(asked.file)) as advance:
        cohort = read_class_cohort(
            asked.file, scores, columns, classes=survey.names, progress=advance
        )
    made = answer_classes(
        survey,
        cohort.rows,
        randomness=SystemRandomness(),
        policy=asked.policy,
        account=account,
        patients=cohort.held.patient_of_row,
        times=cohort.held.time_of_row,
    )
    content = made.to_bytes()
    if account is not None and kept is not None:
        kept.keep_by(name, account.part, content)
    # Whoever sees when the file appears must not see how long the noise took, nor of which part.
    departure.wait(max(slot_seconds(each) for each in surveys) * len(surveys))
    write_whole(asked.output, content)
    voice.say(f"Wrote {plain(asked.output)}: {len(content):,} bytes for survey {name.hex()[:12]}.")
    if account is not None:
        voice.say(account.receipt_text())
    voice.result(
        {
            "format": CLASSES_ANSWERED_FORMAT,
            "file": str(asked.output),
            "given_before": False,
            "survey": name.hex(),
            "bytes": len(content),
            "rows": len(cohort.rows),
            "guarantee": survey.guarantee.sentence(),
        }
    )


def _columns_of(survey: ClassSurvey, asked: ClassAnswer, columns: Columns) -> str:
    """The columns in the order of the survey's classes; by default p and the class's name."""
    usual = ",".join(f"p{name}" for name in survey.names)
    wanted, suffixes = chosen_columns(asked.scores or usual, column_names(asked.file, columns))
    place = dict(zip(suffixes, wanted, strict=True))
    if set(place) != set(survey.names) or len(wanted) != len(survey.names):
        raise SettingInvalid(
            f"the survey asks about the classes {', '.join(survey.names[:8])}; the columns stand "
            f"for {', '.join(suffixes[:8])}. Name one column for each class, ending in its name "
            "(--scores)."
        )
    return ",".join(place[name] for name in survey.names)


def _check_policy(policy: ClientPolicy, survey: ClassSurvey) -> None:
    try:
        check_class_policy(policy, survey)
    except SurveyRefused as error:
        allows = ""
        most = policy.largest_epsilon or default_epsilon(survey.privacy)
        if survey.epsilon is None and not policy.exact_sums:
            allows = " Or answer it knowingly: --exact-sums."
        elif survey.epsilon is not None and most < survey.epsilon <= CEILING:
            allows = f" Or answer it knowingly: --largest-epsilon {survey.epsilon}."
        raise SurveyRefused(f"{error}{allows}") from None


def _send_again(earlier: bytes, asked: ClassAnswer, voice: Voice) -> None:
    if not (asked.output.is_file() and asked.output.read_bytes() == earlier):
        check_output(asked.output, force=asked.force)
        write_whole(asked.output, earlier)
    voice.say(
        f"Wrote {plain(asked.output)}: the answer that was given to this survey before, with the "
        "same bytes.\nNothing is charged: whoever counts reports counts it once. --again answers "
        "anew."
    )
    voice.result(
        {"format": CLASSES_ANSWERED_FORMAT, "file": str(asked.output), "given_before": True}
    )


def _holds_answer(output: Path, survey: ClassSurvey) -> bool:
    try:
        surveys = [part.survey for part in survey.parts]
        return output.is_file() and next(read_messages(output, *surveys), None) is not None
    except FedassayError:
        return False
