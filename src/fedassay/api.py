"""The door: the only place that takes texts, floats, arrays, frames and paths.

Every function here turns what it is given into the library's values, or refuses it in one
sentence, and hands over to the rooms below. Randomness that nobody passes is the system's;
a seed goes to `simulate` alone.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any, Unpack

from fedassay.api_columns import Column, as_table
from fedassay.api_inputs import (
    NewSurveySettings,
    Number,
    Rows,
    SurveySettings,
    as_assessment,
    as_thresholds,
    survey_request,
)
from fedassay.assessment import ASSESSMENT_FORMAT, Assessment
from fedassay.calibration.calibrator import CALIBRATOR_FORMAT, Calibrator
from fedassay.checks import choice, require_type, require_whole, shown, unknown
from fedassay.client import Account, Answer, ClientPolicy
from fedassay.client import answer as answer_examples
from fedassay.decoding import DecodeOptions
from fedassay.engines.report_files import answer_file, read_messages, report_files
from fedassay.errors import FileInvalid, NoRows, SettingInvalid
from fedassay.files import as_path, read_object
from fedassay.ledger import TableDigest
from fedassay.ledger.account import TableAccount
from fedassay.mechanisms import Privacy
from fedassay.metrics.named import metric_at
from fedassay.planning.first_survey import first_grid
from fedassay.planning.plan import DEFAULT_ERROR, Goal, Plan, check_start, make_plan
from fedassay.planning.request import Preset
from fedassay.planning.search import decode_options_for, design_survey
from fedassay.planning.second_survey import second_survey
from fedassay.planning.solve import Target
from fedassay.randomness import SystemRandomness
from fedassay.simulation.result import SimulatedAssessment, simulated_assessment
from fedassay.simulation.simulate import check_sites, counted_rows
from fedassay.survey import MAX_CLIENTS, SURVEY_FORMAT, Survey
from fedassay.survey_json import load_survey
from fedassay.tables.split_rows import splits_rows
from fedassay.tally import Tally, TallyBuilder
from fedassay.tally_file import KeptTally, is_tally_file
from fedassay.wire import Message, messages

LARGEST_SEED = 2**64


def simulate(
    y_true: Column,
    y_score: Column,
    *,
    data: Any = None,
    clients: Column | None = None,
    privacy: Privacy | str = Privacy.SECURE,
    epsilon: Number | None = None,
    thresholds: float | Iterable[float] = (0.5,),
    reference: Any = None,
    seed: int | None = None,
    **settings: Unpack[SurveySettings],
) -> SimulatedAssessment:
    """Run a federation over rows at hand, and compare its answers with the exact ones.

    Each row is a client, or `clients` says who holds it. Where it pays, and with steps=2, two
    surveys follow each other: `result.first` is then that of the first. With `data` (a frame,
    an Arrow table, a mapping, a path to CSV or Parquet) the columns go by name. The same seed
    gives the figures of `fedassay simulate --seed`; without one, every run is another.

    >>> import fedassay
    >>> labels, scores = [0, 1, 0, 1] * 500, [0.1, 0.3, 0.6, 0.9] * 500
    >>> result = fedassay.simulate(labels, scores, privacy="local", epsilon=5, seed=0)
    >>> 0.6 < float(result["roc_auc"]) < 0.9
    True
    """
    if seed is not None:
        require_whole(seed, "a seed", 0, LARGEST_SEED, "Leave it out for other draws each time.")
    points = as_thresholds(thresholds)
    cohort = Rows(y_true, y_score, as_table(data)).scored_clients(clients)
    request = survey_request(
        settings,
        privacy=privacy,
        epsilon=epsilon,
        clients=cohort.clients,
        dropouts=settings.get("dropouts", Fraction(0)),
        thresholds=points,
        reference=reference,
        is_simulated=True,
    )
    check_sites(request.privacy, cohort)
    design = design_survey(replace(request, examples=counted_rows(cohort, request.unit)))
    return simulated_assessment(design, cohort, thresholds=points, seed=seed)


def new_survey(
    *,
    privacy: Privacy | str = Privacy.SECURE,
    epsilon: Number | None = None,
    clients: int | None = None,
    examples: int | None = None,
    thresholds: float | Iterable[float] = (),
    reference: Any = None,
    **settings: Unpack[NewSurveySettings],
) -> Survey:
    """Design a survey that clients can answer; what is left open is chosen for small errors.

    Where two surveys pay (`steps`), this is the first of them; once it is answered,
    `new_survey(after=assessment)` makes the second, which says itself what is left to spend.

    Guarantee: see `survey.guarantee`, which `print(survey)` says in words.

    >>> import fedassay
    >>> survey = fedassay.new_survey(
    ...     privacy="distributed", epsilon="1/3", clients=1000, minimum_reports=900
    ... )
    >>> survey.total_epsilon, survey.minimum_reports
    (Fraction(1, 3), 900)
    """
    if "after" in settings:
        first = as_assessment(settings.pop("after"))
        given = {"epsilon": epsilon, "examples": examples, "reference": reference, **settings}
        if choice(Privacy, privacy, "privacy") not in (Privacy.SECURE, first.survey.privacy):
            given["privacy"] = privacy
        others = [name for name, value in given.items() if value is not None]
        return _second_survey(first, others, as_thresholds(thresholds), clients)
    request = survey_request(
        settings,
        privacy=privacy,
        epsilon=epsilon,
        clients=clients,
        examples=examples,
        thresholds=as_thresholds(thresholds),
        reference=reference,
    )
    return design_survey(request).survey


def _second_survey(
    first: Assessment, others: list[str], thresholds: tuple[float, ...], clients: int | None
) -> Survey:
    """The survey that follows a first one, whose settings it keeps."""
    if others:
        raise SettingInvalid(
            "a second survey keeps what the first one said, but for thresholds and clients; "
            f"found {', '.join(others)}. Leave that out."
        )
    if clients is not None:
        require_whole(clients, "clients", 1, MAX_CLIENTS)
    edges = first.survey.grid.edges
    off = [threshold for threshold in thresholds if threshold not in edges]
    if off:
        raise SettingInvalid(
            f"a second survey has the cells of the first, which have no edge at {off[0]:g}. Name "
            "thresholds with the first survey; others are read between edges, without naming them."
        )
    # Those that the first survey was told are the edges that it has besides its usual ones.
    told = set(edges.tolist()) - set(first_grid().edges.tolist())
    read = {each for each in first.thresholds if each in edges}
    wanted = thresholds or tuple(sorted(told | read))
    return second_survey(first.survey, first.tally, thresholds=wanted, clients=clients)


def answer(
    survey: Survey | str | Path,
    y_true: Column,
    y_score: Column,
    *,
    data: Any = None,
    policy: ClientPolicy | None = None,
    client_id: str | None = None,
    account: Account | None = None,
) -> Answer:
    """Answer a survey with one client's rows: all that may leave it.

    Guarantee: that of `survey.guarantee`, with the system's randomness. Without a policy
    the client is closed: no exact sums, and no more epsilon than is common. With an account
    (`LedgerAccount`) it is charged before any noise is drawn. Where each row answers one of
    two locally private surveys, `client_id` (or the account's data) and the row's number say
    which: pass the same rows in the same order to both.

    >>> import fedassay
    >>> survey = fedassay.new_survey(privacy="local", epsilon=2, clients=1000)
    >>> fedassay.answer(survey, [0, 1, 1], [0.2, 0.62, 1.0])
    <Answer: 3 reports>
    """
    asked, randomness = _survey_of(survey), SystemRandomness()
    own_policy = ClientPolicy() if policy is None else policy
    require_type(own_policy, ClientPolicy, "a client's policy", "Pass ClientPolicy(...).")
    if client_id is not None:
        require_type(client_id, str, "a client id", "Pass a text.")
        if not client_id:
            raise SettingInvalid("a client id must not be empty; found one that is. Leave it out.")
    if account is not None and not callable(getattr(account, "charge", None)):
        raise SettingInvalid(
            f"an account is what is charged; found {shown(account)}. "
            "Pass LedgerAccount(ledger, part)."
        )
    rows = Rows(y_true, y_score, as_table(data))
    if rows.path is not None:
        return answer_file(
            asked,
            rows.path,
            rows.columns,
            randomness=randomness,
            policy=own_policy,
            client_id=client_id,
            account=account,
        )
    examples = rows.examples()
    if splits_rows(asked) and isinstance(account, TableAccount):
        client_id = account.part.data if client_id is None else client_id
        account = account.of_table(TableDigest.of(examples))
    return answer_examples(
        asked,
        examples,
        randomness=randomness,
        policy=own_policy,
        client_id=client_id,
        account=account,
    )


def tally_answers(
    survey: Survey | str | Path,
    answers: Iterable[Answer | bytes | str | Path],
    *,
    thresholds: float | Iterable[float] = (0.5,),
    preset: Preset | str = Preset.DEFAULT,
    buckets: int | None = None,
    first: Assessment | str | Path | None = None,
) -> Assessment:
    """Add up answers, their bytes or their files, and assess the classifier.

    A repeated, foreign or malformed report raises: nothing is left out in silence. The second
    of two surveys is read together with the `first` assessment.

    >>> import fedassay
    >>> survey = fedassay.new_survey(minimum_reports=2)
    >>> policy = fedassay.ClientPolicy(exact_sums=True)
    >>> answers = [fedassay.answer(survey, [0, 1], [0.2, 0.7], policy=policy) for _ in range(3)]
    >>> print(fedassay.tally_answers(survey, answers)["accuracy@0.5"].value)
    1.0
    """
    asked = _survey_of(survey)
    earlier = None if first is None else as_assessment(first)
    # A second survey without its first is refused before anything is read.
    Assessment(asked, Tally.zero(asked), DecodeOptions(), (), earlier)
    if isinstance(answers, Answer | bytes | str | Path) or not isinstance(answers, Iterable):
        raise SettingInvalid(
            f"answers come as a list of them; found {shown(type(answers))}. Write [answer]."
        )
    options = decode_options_for(choice(Preset, preset, "preset"), buckets)
    points = as_thresholds(thresholds)
    builder = TallyBuilder(Tally.zero(asked), asked)
    for each in answers:
        for message in _messages_of(each, asked):
            builder.add(message)
    tally = builder.tally()
    if not any(tally.reports):
        raise NoRows(
            "at least one answer is needed; found none. Pass what fedassay.answer made, or paths."
        )
    return Assessment(asked, tally, options, points, earlier)


def plan(
    *,
    privacy: Privacy | str = Privacy.SECURE,
    epsilon: Number | None = None,
    clients: int | None = None,
    examples: int | None = None,
    target_error: float | None = None,
    metric: str = "roc_auc",
    power: float = 0.8,
    thresholds: float | Iterable[float] = (0.5,),
    reference: Any = None,
    **settings: Unpack[SurveySettings],
) -> Plan:
    """Predict every metric's error before anybody answers, and find what is left open.

    Without clients, or without an epsilon, the one that meets the target error is found.

    >>> import fedassay
    >>> made = fedassay.plan(clients=20_000)
    >>> made.is_enough, made.request.clients
    (True, 20000)
    """
    points = as_thresholds(thresholds)
    wanted = DEFAULT_ERROR if target_error is None else target_error
    goal = Goal(Target(metric_at(metric, points), wanted), power)
    preset = choice(Preset, settings.get("preset", Preset.DEFAULT), "preset")
    request = survey_request(
        settings,
        privacy=privacy,
        epsilon=epsilon,
        clients=clients,
        examples=examples,
        thresholds=() if preset is Preset.PAPER else points,
        reference=reference,
    )
    check_start(request, target_error)
    return make_plan(request, goal, thresholds=points, progress=lambda _: None)


def load(path: str | Path) -> Survey | Assessment | Calibrator | KeptTally:
    """Read any file that fedassay wrote: a survey, an assessment, a calibrator or a tally.

    >>> import fedassay, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fedassay.new_survey().save(f"{folder}/survey.json")
    ...     fedassay.load(f"{folder}/survey.json")
    <Survey ...: secure, 20,378 cells>
    """
    place = as_path(path)
    if is_tally_file(place):
        return KeptTally.load(place)
    content = read_object(place)
    kind = content.get("format") if isinstance(content, dict) else None
    if kind not in _LOADERS:
        raise FileInvalid(
            f"{place}: {unknown(kind, _LOADERS, 'a format')} "
            "Pass such a file, or use the fedassay version that wrote it."
        )
    return _LOADERS[kind](place)


_LOADERS: dict[str, Callable[[Path], Survey | Assessment | Calibrator]] = {
    SURVEY_FORMAT: load_survey,
    ASSESSMENT_FORMAT: Assessment.load,
    CALIBRATOR_FORMAT: Calibrator.load,
}


def _survey_of(survey: Survey | str | Path) -> Survey:
    return survey if isinstance(survey, Survey) else load_survey(as_path(survey))


def _messages_of(each: object, survey: Survey) -> Iterator[Message]:
    """The messages of an answer, of its bytes, or of the files that it is in."""
    match each:
        case Answer():
            yield from each.messages
        case bytes():
            yield from messages(BytesIO(each), survey)
        case str() | Path():
            for path in report_files([as_path(each)]):
                yield from read_messages(path, survey)
        case _:
            raise SettingInvalid(
                "an answer is what fedassay.answer made, its bytes, or a path to its file; found "
                f"{shown(each)}. Pass those."
            )
