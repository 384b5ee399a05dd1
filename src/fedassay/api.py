"""The door: the only place that takes texts, floats, arrays, frames and paths.

Every function here turns what it is given into the library's values, or refuses it in one
sentence, and hands over to the rooms below. Randomness that nobody passes is the system's;
a seed goes to `simulate` alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Unpack, overload

from fedassay.api_columns import Column, as_table
from fedassay.api_files import load, load_assessment, survey_of, tally_of  # noqa: F401
from fedassay.api_inputs import (
    NewSurveySettings,
    Number,
    ReportWords,
    SurveySettings,
    as_assessment,
    as_details,
    as_thresholds,
    survey_request,
)
from fedassay.api_pairs import as_names, as_references, simulate_pair
from fedassay.api_rows import Rows
from fedassay.assessment import Assessment
from fedassay.calibration.calibrator import Calibrator
from fedassay.checks import choice, require_type, require_whole, shown
from fedassay.client import Account, Answer, ClientPolicy
from fedassay.client import answer as answer_examples
from fedassay.decoding import DecodeOptions
from fedassay.engines.base import RowCounter
from fedassay.engines.report_files import answer_file
from fedassay.engines.spark import answer_spark
from fedassay.errors import SettingInvalid
from fedassay.files import as_path
from fedassay.ledger import TableDigest
from fedassay.ledger.account import TableAccount
from fedassay.mechanisms import Privacy
from fedassay.metrics.named import metric_at
from fedassay.planning.follow_up import follow_up
from fedassay.planning.pair_search import design_pair
from fedassay.planning.plan import DEFAULT_ERROR, Goal, Plan, check_start, make_plan
from fedassay.planning.request import Preset, simulated_smallest
from fedassay.planning.search import decode_options_for, design_survey
from fedassay.planning.solve import Target
from fedassay.randomness import SystemRandomness
from fedassay.report.any_page import AnyAssessment, write_any_report
from fedassay.simulation.pairs import SimulatedPair
from fedassay.simulation.result import SimulatedAssessment, simulated_assessment
from fedassay.simulation.simulate import check_sites, counted_rows
from fedassay.simulation.site_rows import adds_moments, check_shown, shown_sites
from fedassay.sites.moment_words import moment_words
from fedassay.sites.sample_size import IntervalWidths
from fedassay.survey import Survey
from fedassay.tables.split_rows import splits_rows
from fedassay.tally import Tally

LARGEST_SEED = 2**64


@overload
def simulate(y_true: Column, y_score: Mapping[str, Column], **settings: Any) -> SimulatedPair: ...


@overload
def simulate(
    y_true: Column,
    y_score: Column,
    *,
    data: Any = None,
    clients: Column | None = None,
    patients: Column | None = None,
    times: Column | None = None,
    group: Column | None = None,
    privacy: Privacy | str = Privacy.SECURE,
    epsilon: Number | None = None,
    thresholds: float | Iterable[float] = (0.5,),
    reference: Any = None,
    seed: int | None = None,
    show_sites: bool = False,
    **settings: Unpack[SurveySettings],
) -> SimulatedAssessment: ...


def simulate(
    y_true: Column,
    y_score: Column | Mapping[str, Column],
    *,
    data: Any = None,
    clients: Column | None = None,
    patients: Column | None = None,
    times: Column | None = None,
    group: Column | None = None,
    privacy: Privacy | str = Privacy.SECURE,
    epsilon: Number | None = None,
    thresholds: float | Iterable[float] = (0.5,),
    reference: Any = None,
    seed: int | None = None,
    show_sites: bool = False,
    **settings: Any,
) -> SimulatedAssessment | SimulatedPair:
    """Run a federation over rows at hand, and compare its answers with the exact ones.

    Each row is a client, or `clients` says who holds it; with unit="patient", `patients` says
    whose it is, and with keep="latest" `times` when it was. Where it pays, and with steps=2, two
    surveys follow each other: `result.first` is then that of the first. With `data` (a frame,
    an Arrow table, a mapping, a path to CSV or Parquet) the columns go by name. The same seed
    gives the figures of `fedassay simulate --seed`; without one, every run is another.
    `result.sites` are the sites where they may be seen, under secure privacy with `show_sites`,
    and `result.heterogeneity(metric)` is what differs between them. Scores of two models by name,
    {"a": s1, "b": s2}, are one report of each row, and `result.differences()` is what differs.

    >>> import fedassay
    >>> labels, scores = [0, 1, 0, 1] * 500, [0.1, 0.3, 0.6, 0.9] * 500
    >>> result = fedassay.simulate(labels, scores, privacy="local", epsilon=5, seed=0)
    >>> 0.6 < float(result["roc_auc"]) < 0.9
    True
    """
    if seed is not None:
        require_whole(seed, "a seed", 0, LARGEST_SEED, "Leave it out for other draws each time.")
    if isinstance(y_score, Mapping):
        if show_sites or group is not None:
            raise SettingInvalid(
                "sites and groups are told apart of one model; found two. Drop them."
            )
        return simulate_pair(
            y_true,
            y_score,
            settings=settings,
            privacy=privacy,
            epsilon=epsilon,
            thresholds=thresholds,
            reference=reference,
            seed=seed,
            data=data,
            clients=clients,
            patients=patients,
            times=times,
        )
    points = as_thresholds(thresholds)
    rows = Rows(y_true, y_score, as_table(data), patients, times, group)
    cohort = rows.scored_clients(clients)
    preset = choice(Preset, settings.get("preset", Preset.DEFAULT), "preset")
    request = survey_request(
        settings,
        privacy=privacy,
        epsilon=epsilon,
        clients=cohort.clients,
        groups=cohort.groups,
        smallest_cell=simulated_smallest(
            preset, settings.get("height"), settings.get("smallest_cell")
        ),
        dropouts=settings.get("dropouts", Fraction(0)),
        thresholds=points,
        reference=reference,
        is_simulated=True,
    )
    check_sites(request.privacy, cohort)
    require_type(show_sites, bool, "show_sites", "Pass True or False.")
    if show_sites:
        check_shown(request, cohort)
    moments = adds_moments(request, cohort, settings.get("site_moments"))
    held = counted_rows(cohort, request.unit, is_local=request.privacy.is_local)
    design = design_survey(replace(request, examples=held, site_moments=moments))
    shown = shown_sites(design.survey, cohort, design.decode_options) if show_sites else None
    return simulated_assessment(design, cohort, thresholds=points, seed=seed, shown=shown)


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
        return follow_up(first, others, as_thresholds(thresholds), clients)
    paired = settings.pop("paired", False)
    request = survey_request(
        settings,
        privacy=privacy,
        epsilon=epsilon,
        clients=clients,
        examples=examples,
        thresholds=as_thresholds(thresholds),
        reference=None if paired else reference,
    )
    if paired:
        names = as_names(paired)
        return design_pair(request, names, references=as_references(reference, names)).survey
    return design_survey(request).survey


def answer(
    survey: Survey | str | Path,
    y_true: Column,
    y_score: Column | Mapping[str, Column],
    *,
    data: Any = None,
    patients: Column | None = None,
    times: Column | None = None,
    group: Column | None = None,
    policy: ClientPolicy | None = None,
    client_id: str | None = None,
    account: Account | None = None,
    engine: RowCounter | str = RowCounter.PLAIN,
) -> Answer:
    """Answer a survey with one client's rows: all that may leave it.

    Guarantee: that of `survey.guarantee`, with the system's randomness. Without a policy
    the client is closed: no exact sums, and no more epsilon than is common. With an account
    (`LedgerAccount`) it is charged before any noise is drawn. Where each row answers one of
    two locally private surveys, `client_id` (or the account's data) and the row's number say
    which: pass the same rows in the same order to both. Where patients are protected, `patients`
    says whose each row is, and `times` when it was, if the latest count. A survey of two models
    takes the scores of both by their names. With engine="spark" `data` is a frame of Spark's, a
    folder of Parquet or CSV files, an address or the name of a table, and Spark counts its rows.

    >>> import fedassay
    >>> survey = fedassay.new_survey(privacy="local", epsilon=2, clients=1000)
    >>> fedassay.answer(survey, [0, 1, 1], [0.2, 0.62, 1.0])
    <Answer: 3 reports>
    """
    asked, randomness = survey_of(survey), SystemRandomness()
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
    counter = choice(RowCounter, engine, "engine")
    table = data if counter is RowCounter.SPARK else as_table(data)
    rows = Rows(y_true, y_score, table, patients, times, group, asked.pair)
    if counter is RowCounter.SPARK:
        return answer_spark(
            asked,
            data,
            rows.columns,
            randomness=randomness,
            policy=own_policy,
            client_id=client_id,
            account=account,
        )[0]
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
    examples = rows.examples(asked.groups)
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
        patients=rows.patient_numbers(),
        times=rows.time_numbers(),
        moments=moment_words,
    )


def tally_answers(
    survey: Survey | str | Path,
    answers: Iterable[Answer | bytes | str | Path] | Mapping[str, Answer | bytes | str | Path],
    *,
    thresholds: float | Iterable[float] = (0.5,),
    preset: Preset | str = Preset.DEFAULT,
    buckets: int | None = None,
    first: Assessment | str | Path | None = None,
) -> Assessment:
    """Add up answers, their bytes or their files, and assess the classifier.

    A repeated, foreign or malformed report raises: nothing is left out in silence. The second
    of two surveys is read together with the `first` assessment. Where sites may be seen they are
    kept by name: as a mapping names them, as their files are called, or by their reports' ids.

    >>> import fedassay
    >>> survey = fedassay.new_survey(minimum_reports=2, examples=200, thresholds=0.5)
    >>> policy = fedassay.ClientPolicy(exact_sums=True)
    >>> labels, scores = [0, 1, 0, 1] * 10, [0.2, 0.3, 0.6, 0.7] * 10
    >>> answers = [fedassay.answer(survey, labels, scores, policy=policy) for _ in range(3)]
    >>> print(fedassay.tally_answers(survey, answers)["accuracy@0.5"].value)
    0.5
    """
    asked = survey_of(survey)
    earlier = None if first is None else as_assessment(first)
    # A second survey without its first is refused before anything is read.
    Assessment(asked, Tally.zero(asked), DecodeOptions(), (), earlier)
    options = decode_options_for(choice(Preset, preset, "preset"), buckets)
    points = as_thresholds(thresholds)
    tally = tally_of(asked, answers)
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
    widths: IntervalWidths | None = None,
    tau: float | None = None,
    thresholds: float | Iterable[float] = (0.5,),
    reference: Any = None,
    **settings: Unpack[SurveySettings],
) -> Plan:
    """Predict every metric's error before anybody answers, and find what is left open.

    Without clients, or without an epsilon, the one that meets the target error is found. What a
    validation study needs is in `plan.needs`: rows for intervals of these `widths`, and how many
    sites it takes to see that they differ by `tau`, on the logit scale of the ROC AUC.

    >>> import fedassay
    >>> made = fedassay.plan(clients=20_000)
    >>> made.is_enough, made.request.clients
    (True, 20000)
    """
    points = as_thresholds(thresholds)
    wanted = DEFAULT_ERROR if target_error is None else target_error
    wide = IntervalWidths() if widths is None else widths
    goal = Goal(Target(metric_at(metric, points), wanted), power, wide, tau)
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


def write_report(
    result: AnyAssessment | str | Path,
    path: str | Path,
    *,
    calibrator: Calibrator | str | Path | None = None,
    **words: Unpack[ReportWords],
) -> Path:
    """Write one self-contained page about an assessment, for people who will never run this.

    Words that only people know (title, model, outcome, population, period, invited) stand in it
    as they are given. Returns where the page is.

    >>> import fedassay, tempfile
    >>> result = fedassay.simulate([0, 1, 0, 1] * 50, [0.1, 0.3, 0.6, 0.9] * 50, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fedassay.write_report(result, f"{folder}/report.html", outcome="rain").name
    'report.html'
    """
    place, details = as_path(path), as_details(words)
    assessment = load_assessment(result) if isinstance(result, str | Path) else result
    fitted = Calibrator.load(calibrator) if isinstance(calibrator, str | Path) else calibrator
    write_any_report(assessment, place, calibrator=fitted, details=details)
    return place
