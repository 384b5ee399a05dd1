from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import comb, exp
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from fedassay import (
    Assessment,
    ClientPolicy,
    DecodeOptions,
    Examples,
    Grid,
    Hierarchy,
    Preset,
    Privacy,
    Survey,
    SurveyRequest,
    SystemRandomness,
    Tally,
    Unit,
)
from fedassay.cli.app import app
from fedassay.client import OPEN_POLICY, Answer, answer, answer_counts, make_answer
from fedassay.decoding import decode
from fedassay.engines.report_files import write_answer
from fedassay.errors import (
    CountOverflow,
    FileInvalid,
    SettingInvalid,
    SurveyRefused,
    TooFewReports,
)
from fedassay.level_draw import choose_level
from fedassay.level_policy import OneLevel
from fedassay.limits import at_most
from fedassay.mechanisms import Polya, UnitKind
from fedassay.mechanisms.sampling import Dice
from fedassay.planning.request import (
    LevelChoice,
)
from fedassay.planning.search import design_survey
from fedassay.randomness import SimulatedRandomness
from fedassay.survey_json import load_survey, survey_from_json
from fedassay.tally_file import KeptTally, State
from fedassay.wire import Message, Report
from fedassay.wire import decode as decode_report
from fedassay.wire import encode as encode_report
from tests.laws import FALSE_ALARM

ONE = Fraction(1)
EXAMPLES = Examples([0, 1, 1], [0.2, 0.62, 1.0])
BATCHES = OneLevel((Fraction(1, 4), Fraction(3, 4)))


def noisy_survey(
    *, levels: OneLevel | None = None, minimum_reports: int = 3, colluders: int = 0
) -> Survey:
    mechanism = Polya(ONE, 1, minimum_reports - colluders)
    survey = Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(4),
        hierarchy=Hierarchy(4, (2, 2)),
        mechanisms=(mechanism, mechanism),
        minimum_reports=minimum_reports,
        colluders=colluders,
    )
    return survey if levels is None else replace(survey, level_policy=levels)


def reports_to(survey: Survey, count: int) -> list[Message]:
    counts = survey.grid.count(EXAMPLES)
    randomness = SimulatedRandomness(5)
    answers = (make_answer(survey, counts, randomness=randomness) for _ in range(count))
    return [message for answer in answers for message in answer.messages]


# --- The mechanism ------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["1/100", "1", "9/2"])
@pytest.mark.parametrize("sensitivity", [1, 5])
def test_the_law_is_a_share_of_the_discrete_laplace_variance(
    epsilon: str, sensitivity: int
) -> None:
    law = Polya(Fraction(epsilon), sensitivity, 7).law()
    step = float(Fraction(epsilon)) / sensitivity
    k = np.arange(1, int(60 / step))
    a = exp(-step)
    variance = 2 * float((k**2 * (1 - a) / (1 + a) * a**k).sum())
    assert 7 * law.variance_per_report == pytest.approx(variance)
    assert (law.gain, law.offset, law.variance_per_hit) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "epsilon", [Fraction(0), Fraction(-1), Fraction(51), Fraction(10**9), Fraction(1, 10**10)]
)
def test_an_epsilon_that_means_nothing_is_refused(epsilon: Fraction) -> None:
    with pytest.raises(SettingInvalid, match="epsilon"):
        Polya(epsilon, 1, 2)
    with pytest.raises(SettingInvalid, match="epsilon"):
        design_survey(SurveyRequest(privacy=Privacy.DISTRIBUTED, epsilon=epsilon, clients=100))


@pytest.mark.parametrize(("sensitivity", "shares"), [(0, 1), (1, 0), (-1, 5)])
def test_noise_for_nobody_is_refused(sensitivity: int, shares: int) -> None:
    with pytest.raises(SettingInvalid, match="at least 1"):
        Polya(ONE, sensitivity, shares)


def test_noise_leaves_the_counts_it_is_given_alone() -> None:
    counts = np.arange(8).reshape(2, 4)
    Polya(ONE, 1, 1).share(counts, randomness=SimulatedRandomness(1))
    assert counts.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_cohort_of_nobody_has_no_noise() -> None:
    counts = np.zeros((2, 50), dtype=np.int64)
    drawn = Polya(ONE, 1, 4).cohort(counts, reports=0, generator=np.random.default_rng(1))
    assert not drawn.any()


# --- What the planner and the survey refuse -----------------------------------------------

DISTRIBUTED = SurveyRequest(privacy=Privacy.DISTRIBUTED, epsilon=ONE, clients=1000)

REFUSED: dict[str, tuple[Callable[[], SurveyRequest], str]] = {
    "no epsilon": (lambda: replace(DISTRIBUTED, epsilon=None), "needs an epsilon"),
    "no clients": (lambda: replace(DISTRIBUTED, clients=None), "minimum_reports"),
    "minimum of one": (lambda: replace(DISTRIBUTED, minimum_reports=1), "at least 2"),
    "minimum of none": (lambda: replace(DISTRIBUTED, minimum_reports=0), "from 1"),
    "minimum below none": (lambda: replace(DISTRIBUTED, minimum_reports=-3), "from 1"),
    "minimum above clients": (
        lambda: replace(DISTRIBUTED, minimum_reports=1001),
        "must not exceed",
    ),
    "all collude": (lambda: replace(DISTRIBUTED, colluders=1000), "colluders"),
    "minimum colludes": (
        lambda: replace(DISTRIBUTED, minimum_reports=10, colluders=10),
        "colluders",
    ),
    "fewer than none collude": (lambda: replace(DISTRIBUTED, colluders=-1), "colluders"),
    "one client": (lambda: replace(DISTRIBUTED, clients=1), "at least 2"),
    "no client": (lambda: replace(DISTRIBUTED, clients=0), "from 1"),
    "epsilon without noise": (lambda: SurveyRequest(epsilon=ONE), "epsilon"),
    "budget too short": (
        lambda: replace(DISTRIBUTED, preset=Preset.PAPER, height=2, budget=(ONE,)),
        "budget",
    ),
    "budget too large": (
        lambda: replace(DISTRIBUTED, preset=Preset.PAPER, height=2, budget=(ONE, ONE)),
        "budget",
    ),
    "nothing for a level": (
        lambda: replace(DISTRIBUTED, preset=Preset.PAPER, height=2, budget=(ONE, Fraction(0))),
        "budget",
    ),
}


@pytest.mark.parametrize(("make", "rule"), REFUSED.values(), ids=REFUSED.keys())
def test_a_request_that_cannot_be_kept_is_refused(
    make: Callable[[], SurveyRequest], rule: str
) -> None:
    with pytest.raises(SettingInvalid, match=rule):
        design_survey(make())


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e400", "1e9", "one", "", "1/0"])
def test_the_command_line_refuses_such_an_epsilon_in_one_line(text: str, tmp_path: Path) -> None:
    output = tmp_path / "survey.json"
    arguments = ["survey", "new", "--privacy", "distributed", "--clients", "100"]
    result = CliRunner().invoke(app, [*arguments, f"--epsilon={text}", "-o", str(output)])
    assert result.exit_code != 0
    assert isinstance(result.exception, SettingInvalid | SystemExit)
    assert not output.exists()


@pytest.mark.parametrize("shares", [1, 2, 4, 10])
def test_noise_that_is_not_sized_for_the_honest_minimum_is_refused(shares: int) -> None:
    survey = noisy_survey(minimum_reports=5, colluders=2)
    with pytest.raises(SettingInvalid, match="sized for"):
        replace(survey, mechanisms=(Polya(ONE, 1, shares),) * 2)


def test_noise_for_another_sensitivity_is_refused() -> None:
    with pytest.raises(SettingInvalid, match="sensitivity"):
        replace(noisy_survey(), unit=Unit(UnitKind.CLIENT, 2))


def test_a_survey_file_cannot_claim_other_shares_than_its_minimum_gives() -> None:
    content = noisy_survey(minimum_reports=5, colluders=2).to_json()
    again = survey_from_json(content)
    assert {m.noise_shares for m in again.mechanisms if isinstance(m, Polya)} == {3}
    mechanism = {**content["mechanisms"][0], "shares": 1000}
    with pytest.raises(FileInvalid):
        survey_from_json({**content, "mechanisms": [mechanism] * 2})


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "1/0", "1e5", "99999999999/2", 1, 0.5, None])
def test_a_survey_file_with_a_hostile_epsilon_is_refused(epsilon: object) -> None:
    content = noisy_survey().to_json()
    mechanisms = [{"kind": "polya", "epsilon": epsilon}] * 2
    with pytest.raises(FileInvalid):
        survey_from_json({**content, "mechanisms": mechanisms})


@pytest.mark.parametrize("shares", [["1"], ["1/2", "1/4"], ["0", "1"], ["2", "-1"], [], "11"])
def test_a_survey_file_with_hostile_level_shares_is_refused(shares: object) -> None:
    content = noisy_survey(levels=BATCHES).to_json()
    with pytest.raises(FileInvalid):
        survey_from_json({**content, "levels": {"policy": "one", "shares": shares}})


# --- What a survey promises ---------------------------------------------------------------


def test_levels_add_up_unless_each_client_answers_one() -> None:
    assert noisy_survey().guarantee.epsilon == 2
    assert noisy_survey(levels=BATCHES).guarantee.epsilon == 1


@pytest.mark.parametrize("levels", list(LevelChoice))
@pytest.mark.parametrize("preset", list(Preset))
@pytest.mark.parametrize("epsilon", ["1/10", "1", "5"])
def test_chosen_surveys_spend_exactly_what_was_asked_for(
    epsilon: str, preset: Preset, levels: LevelChoice
) -> None:
    request = replace(
        DISTRIBUTED,
        epsilon=Fraction(epsilon),
        preset=preset,
        levels=levels,
        minimum_reports=50,
        colluders=7,
        unit=Unit(UnitKind.CLIENT, 3),
    )
    survey = design_survey(request).survey
    assert survey.guarantee.epsilon == Fraction(epsilon)
    assert survey.guarantee.minimum_reports == 50
    assert {(m.noise_shares, m.sensitivity) for m in survey.mechanisms if isinstance(m, Polya)} == {
        (43, 3)
    }
    sentence = survey.guarantee.sentence()
    for part in (f"{float(Fraction(epsilon)):g}-diff", "50 reports", "7", "at most 3 examples"):
        assert part in sentence


# --- Clients ------------------------------------------------------------------------------


def test_a_client_refuses_randomness_that_repeats() -> None:
    for survey in (noisy_survey(), noisy_survey(levels=BATCHES)):
        with pytest.raises(SettingInvalid, match="SystemRandomness"):
            answer(survey, EXAMPLES, randomness=SimulatedRandomness(1), policy=OPEN_POLICY)
        with pytest.raises(SettingInvalid, match="SystemRandomness"):
            answer_counts(
                survey,
                survey.grid.count(EXAMPLES),
                randomness=SimulatedRandomness(1),
                policy=OPEN_POLICY,
            )
        answer(survey, EXAMPLES, randomness=SystemRandomness(), policy=OPEN_POLICY)


def test_a_client_refuses_to_spend_more_than_its_limit() -> None:
    policy = ClientPolicy(largest_epsilon=Fraction(3, 2))
    with pytest.raises(SurveyRefused, match="epsilon"):
        answer(noisy_survey(), EXAMPLES, randomness=SystemRandomness(), policy=policy)
    batches = noisy_survey(levels=BATCHES)
    answer(batches, EXAMPLES, randomness=SystemRandomness(), policy=policy)


def test_colluders_do_not_count_towards_the_crowd() -> None:
    survey = noisy_survey(minimum_reports=5, colluders=2)
    with pytest.raises(SurveyRefused, match="guarantees 3"):
        replace(OPEN_POLICY, smallest_cohort=4).check(survey)
    replace(OPEN_POLICY, smallest_cohort=3).check(survey)


@pytest.mark.statistical
def test_at_most_keeps_a_uniform_subset() -> None:
    # False alarms: 1e-6 on a fixed stream. Draws: 10,000.
    counts = np.array([[2, 0, 1], [3, 0, 1]])
    dice = Dice(SimulatedRandomness(9))
    drawn = Counter(tuple(at_most(counts, 4, dice).ravel().tolist()) for _ in range(10_000))
    flat = counts.ravel().tolist()
    chances = {
        kept: np.prod([comb(n, k) for n, k in zip(flat, kept, strict=True)]) / comb(7, 4)
        for kept in product(*(range(n + 1) for n in flat))
        if sum(kept) == 4
    }
    assert set(drawn) <= set(chances)
    observed = [drawn[kept] for kept in chances]
    expected = np.array(list(chances.values())) * 10_000
    assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM
    # The twin: keeping the first four.
    assert stats.chisquare([10_000, *[0] * (len(chances) - 1)], expected).pvalue < FALSE_ALARM


def test_at_most_leaves_few_examples_alone() -> None:
    counts = np.array([[2, 0], [1, 1]])
    for most in (4, 5, 100):
        assert at_most(counts, most, Dice(SimulatedRandomness(1))).tolist() == counts.tolist()


@pytest.mark.statistical
def test_levels_are_chosen_with_their_shares() -> None:
    # False alarms: 1e-6 on a fixed stream. Draws: 10,000.
    policy = OneLevel((Fraction(1, 6), Fraction(1, 2), Fraction(1, 3)))
    dice = Dice(SimulatedRandomness(10))
    drawn = np.bincount([choose_level(policy, dice) for _ in range(10_000)], minlength=3)
    expected = np.array([1 / 6, 1 / 2, 1 / 3]) * 10_000
    assert stats.chisquare(drawn, expected).pvalue > FALSE_ALARM
    assert stats.chisquare(drawn, expected[::-1]).pvalue < FALSE_ALARM


# --- The way to the tally -----------------------------------------------------------------


def test_a_survey_of_one_level_each_survives_wire_tally_and_decode(tmp_path: Path) -> None:
    survey = noisy_survey(levels=BATCHES)
    survey.save(tmp_path / "survey.json")
    again = load_survey(tmp_path / "survey.json")
    assert again == survey
    reports = reports_to(again, 60)
    levels = Counter(report.level for report in reports)
    assert set(levels) == {0, 1}
    for report in reports:
        assert isinstance(report, Report)
        assert len(report.counters) == 2 * survey.hierarchy.cells_per_level[report.level or 0]
        assert decode_report(encode_report(report), survey) == report
    tally = Tally.of(survey, reports)
    assert tally.reports == (levels[0], levels[1])
    assert tally.clients(survey) == 60
    assert KeptTally.from_bytes(KeptTally(survey, tally).to_bytes()).tally == tally
    split = Tally.of(survey, reports[:20]) + Tally.of(survey, reports[20:])
    assert split == tally
    histogram = decode(survey, tally, decode_options=DecodeOptions())
    assert histogram.buckets == 4
    assert histogram.total == pytest.approx(180, abs=60)


@pytest.mark.parametrize("levels", [None, BATCHES])
def test_below_the_minimum_nothing_is_decoded(levels: OneLevel | None) -> None:
    survey = noisy_survey(levels=levels, minimum_reports=40)
    tally = Tally.of(survey, reports_to(survey, 39 if levels is None else 60))
    with pytest.raises(TooFewReports, match="Wait for"):
        decode(survey, tally, decode_options=DecodeOptions())


def test_below_the_minimum_there_is_a_tally_and_no_assessment(tmp_path: Path) -> None:
    survey = noisy_survey()
    survey.save(tmp_path / "survey.json")
    paths = []
    for i, report in enumerate(reports_to(survey, 3)):
        paths.append(str(tmp_path / f"{i}.fa"))
        write_answer(Answer((report,)), Path(paths[-1]))
    output = tmp_path / "assessment.json"
    command = ["tally", str(tmp_path / "survey.json")]
    early = CliRunner().invoke(app, [*command, *paths[:2], "-o", str(output)])
    assert isinstance(early.exception, TooFewReports | SystemExit)
    assert not output.exists()
    saved = KeptTally.load(tmp_path / "assessment.tally")
    assert (saved.tally.reports, saved.state) == ((2, 2), State.COLLECTING)
    late = CliRunner().invoke(app, [*command, paths[2], "-o", str(output)])
    assert late.exit_code == 0
    whole = Tally.of(survey, reports_to(survey, 3))
    assert Assessment.load(output).tally.counters.tolist() == whole.counters.tolist()
    assert KeptTally.load(tmp_path / "assessment.tally").tally == whole


def test_sums_that_secure_aggregation_cannot_carry_are_refused() -> None:
    survey = noisy_survey()
    counters = np.zeros(survey.hierarchy.width, dtype=np.int64)
    for most in (2**31 - 1, -(2**31) + 1):
        Tally(survey.fingerprint, (3, 3), np.append(counters[1:], most))
    for beyond in (2**31, -(2**31), 2**40):
        with pytest.raises(CountOverflow, match="2\\^31"):
            Tally(survey.fingerprint, (3, 3), np.append(counters[1:], beyond))
    half = Tally(survey.fingerprint, (3, 3), np.append(counters[1:], 2**30))
    with pytest.raises(CountOverflow):
        half + half
