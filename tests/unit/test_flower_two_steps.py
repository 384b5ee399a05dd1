"""Two surveys in one run over Flower: one total, charged before the first, and nothing twice."""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from examples.four_hospitals.hospitals import Hospital, open_hospital, share_roster
from flwr.app import Context, Message, RecordDict

from fedassay import Examples, Grid, Polya, Survey, SystemRandomness
from fedassay.assessment import Assessment
from fedassay.cut_levels import CutLevels
from fedassay.engines.flower import conversation, server_app
from fedassay.engines.flower.participant import Participant
from fedassay.engines.flower.records import Declined, Question, read_reply
from fedassay.engines.flower.run import federate
from fedassay.engines.flower.server_app import main
from fedassay.engines.flower.settings import RunSettings
from fedassay.engines.flower.site import Site
from fedassay.errors import (
    FedassayError,
    RoundAborted,
    SettingInvalid,
    SurveyRefused,
    TooFewReports,
)
from fedassay.files import canonical
from fedassay.ledger import Budget, Charge, Ledger
from fedassay.level_draw import rows_of_step
from fedassay.planning.second_survey import second_survey
from fedassay.secagg import Terms
from fedassay.survey_json import survey_from_bytes
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo
from tests.clock import Clock
from tests.flowergrid import CONFIG, InProcessGrid
from tests.pages import assessment as assessed
from tests.surveys import shared_pair

TOTAL = Fraction(4)
STAGES = ("keys", "shares", "masked", "confirm", "unmask")


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="fedassay-test-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "time", Clock())


def rows(seed: int, count: int = 400) -> Examples:
    rng = np.random.default_rng(seed)
    scores = rng.random(count)
    return Examples((rng.random(count) < scores).astype(int), scores)


def hospitals(folder: Path) -> list[Hospital]:
    opened = [open_hospital(folder / f"h{i}", rows(i), colluders=0) for i in range(4)]
    share_roster(folder, opened)
    return opened


def run_config(folder: Path, **changes: str | int) -> dict[str, str | int | float]:
    config: dict[str, str | int | float] = {
        **CONFIG, "privacy": "distributed", "epsilon": str(TOTAL), "sites": 4, "steps": 2,
        "minimum-reports": 3, "colluders": 0, "roster": str(folder / "roster.json"),
        "output": str(folder / "assessment.json"),
    }  # fmt: skip
    config.update({name.replace("_", "-"): value for name, value in changes.items()})
    return config


def settings(folder: Path, **changes: str | int) -> RunSettings:
    return RunSettings.from_config(run_config(folder, **changes))


def configs(sites: list[Hospital]) -> dict[int, Mapping[str, str]]:
    return {number: site.config for number, site in enumerate(sites, 1)}


def charged(site: Hospital) -> list[Fraction | None]:
    entries = Ledger(site.folder / "site" / "ledger.db").entries()
    return [entry.content.epsilon for entry in entries if isinstance(entry.content, Charge)]


def steps_of(message: Message) -> str:
    """Which survey a message brings along, if any."""
    content = message.content.config_records["fedassay"]["survey"]
    assert isinstance(content, bytes)
    if not content:
        return ""
    return type(survey_from_bytes(content, where="a message").step).__name__


class Watched(InProcessGrid):
    """Knows in which step a message is sent: by the last survey that went out."""

    step = "FirstOfTwo"

    def _deliver(self, message: Message) -> str:
        Watched.step = steps_of(message) or Watched.step
        return super()._deliver(message)


def test_one_run_asks_both_steps_and_charges_their_total_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = hospitals(folder)
    kept: list[Assessment] = []
    run = settings(folder)
    assert isinstance(run.survey.step, FirstOfTwo)
    assessment = federate(InProcessGrid(configs(sites)), run, keep=kept.append)
    assert assessment.first is not None
    assert assessment.first.survey == run.survey
    assert kept == [assessment.first]
    assert isinstance(assessment.survey.step, SecondOfTwo)
    assert [charged(site) for site in sites] == [[TOTAL, 0]] * 4
    for site in sites:
        (balance,) = Ledger(site.folder / "site" / "ledger.db").balances(site.name)
        assert balance.spent == assessment.survey.total_epsilon == TOTAL
    # 1,600 rows, and noise whose deviation over both classes is below 30.
    assert abs(assessment.histogram().total - 1600) < 200
    assessment.save(folder / "assessment.json")
    assert Assessment.load(folder / "assessment.json").first is not None
    said = capsys.readouterr().out
    assert re.search(r"Survey \w{12}, first of two: .*Survey \w{12}, second of two: ", said, re.S)
    assert "Both surveys together spend epsilon 4, which sites charge before the first." in said
    assert "Stage masked, first of two: 4 of 4 sites" in said
    assert "Stage masked, second of two: 4 of 4 sites" in said
    assert "fedassay: answered stage masked, second of two with" in said


@pytest.mark.parametrize("stage", ["keys", "unmask"])
def test_a_second_step_that_fails_leaves_the_first_and_costs_nothing_more(
    folder: Path, stage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = hospitals(folder)
    grid = Watched(
        configs(sites),
        lambda node, at: node > 2 and at == stage and Watched.step == "SecondOfTwo",
    )
    assessment = federate(grid, settings(folder))
    assert assessment.first is None
    assert isinstance(assessment.survey.step, FirstOfTwo)
    assert assessment.tally.reports == (4,) * assessment.survey.hierarchy.levels
    said = capsys.readouterr().out
    assert "The second step failed; what the first gathered stands alone." in said
    assert f"2 silent at stage {stage}" in said
    answered = stage == "unmask"
    assert [charged(site) for site in sites[2:]] == [[TOTAL, 0] if answered else [TOTAL]] * 2

    assessment.save(folder / "assessment.json")
    again = settings(folder, after=str(folder / "assessment.json"))
    whole = federate(InProcessGrid(configs(sites)), again)
    assert whole.first is not None
    # What was answered before is an answer once more; what was not has been paid for.
    rest = TOTAL * Fraction(9, 10)
    for site in sites:
        before = [TOTAL, 0] if (stage != "keys" and site not in sites[2:]) or answered else [TOTAL]
        assert charged(site) == [*before, rest if len(before) == 2 else 0]


def test_a_server_that_dies_between_the_steps_has_written_the_first(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = hospitals(folder)

    def dies(node: int, stage: str, message: Message) -> Message:
        if steps_of(message) == "SecondOfTwo":
            raise KeyboardInterrupt
        return message

    grid = InProcessGrid(configs(sites), tamper=dies)
    context = Context(
        run_id=1, node_id=0, node_config={}, state=RecordDict(), run_config=run_config(folder)
    )
    with pytest.raises(KeyboardInterrupt):
        main(grid, context)
    kept = Assessment.load(folder / "assessment.json")
    assert isinstance(kept.survey.step, FirstOfTwo)
    assert kept.is_complete
    assert "the first of two steps; the second follows." in capsys.readouterr().out


def test_a_first_step_that_fails_is_asked_again_for_its_own_part(folder: Path) -> None:
    """What was reserved for the second step still waits, and is not paid for twice."""
    sites = hospitals(folder)
    grid = InProcessGrid(configs(sites), lambda node, at: node > 2 and at == "unmask")
    with pytest.raises((RoundAborted, TooFewReports)):
        federate(grid, settings(folder))
    assert [charged(site) for site in sites] == [[TOTAL]] * 4
    federate(InProcessGrid(configs(sites)), settings(folder))
    assert [charged(site) for site in sites] == [[TOTAL, TOTAL / 10, 0]] * 4


def test_a_site_that_leaves_between_the_steps_is_in_the_first_sum_only(folder: Path) -> None:
    sites = hospitals(folder)
    grid = Watched(configs(sites), lambda node, at: node == 4 and Watched.step == "SecondOfTwo")
    assessment = federate(grid, settings(folder))
    assert assessment.first is not None
    assert assessment.first.tally.reports[0] == 4
    assert assessment.tally.reports[0] == 3
    assert [charged(site) for site in sites] == [[TOTAL, 0]] * 3 + [[TOTAL]]


def test_a_site_that_missed_the_first_step_is_not_asked_the_second(folder: Path) -> None:
    sites = hospitals(folder)
    grid = Watched(configs(sites), lambda node, at: node == 4 and Watched.step == "FirstOfTwo")
    assessment = federate(grid, settings(folder))
    assert assessment.first is not None
    assert (assessment.first.tally.reports[0], assessment.tally.reports[0]) == (3, 3)
    assert charged(sites[3]) == []


def test_a_sites_largest_epsilon_is_compared_with_the_total_of_both(folder: Path) -> None:
    """The first alone spends 2/5, which every one of these limits allows."""
    sites = hospitals(folder)
    run = settings(folder)
    assert run.survey.epsilon == Fraction(2, 5)
    for limit, is_answered in (("4", True), ("399/100", False), ("1", False)):
        for site in sites:
            path = site.folder / "site" / "site.toml"
            text = re.sub(
                'largest-epsilon = ".*"', f'largest-epsilon = "{limit}"', path.read_text()
            )
            path.write_text(text)
        asked = Site.from_config(sites[0].config)
        if is_answered:
            asked.policy(run.survey).check(run.survey)
            continue
        with pytest.raises(SurveyRefused, match="spends at most epsilon"):
            asked.policy(run.survey).check(run.survey)
    with pytest.raises(RoundAborted, match="4 declined stage keys, SiteDeclined"):
        federate(InProcessGrid(configs(sites)), run)
    assert [charged(site) for site in sites] == [[]] * 4


def test_a_budget_without_room_for_both_steps_is_not_begun(folder: Path) -> None:
    sites = hospitals(folder)
    for site in sites:
        ledger = Ledger(site.folder / "site" / "ledger.db")
        ledger.set_budget(Budget(None, TOTAL - Fraction(1, 10**6)))
    with pytest.raises(RoundAborted, match="4 declined stage keys, SiteDeclined"):
        federate(InProcessGrid(configs(sites)), settings(folder))
    assert [charged(site) for site in sites] == [[]] * 4


def participant(site: Hospital, node: int) -> Participant:
    return Participant(Site.from_config(site.config), str(node), "run 1")


def hostile(survey: Survey, change: str) -> Survey:
    step = survey.step
    assert isinstance(step, SecondOfTwo)
    assert isinstance(survey.hierarchy, CutLevels)
    levels = CutLevels(survey.grid.cells, survey.hierarchy.cuts)
    shares = survey.minimum_reports - survey.colluders
    match change:
        case "more epsilon":
            noise = tuple(
                Polya(m.epsilon * Fraction(21, 20), m.sensitivity, shares)
                for m in survey.mechanisms
                if isinstance(m, Polya)
            )
            return replace(survey, mechanisms=noise)
        case "another total":
            return replace(survey, step=replace(step, total_epsilon=Fraction(5)))
        case "another grid":
            edges = np.sort(np.unique(np.append(survey.grid.edges[1:-1] * 0.999, [0.0, 1.0])))
            return replace(survey, grid=Grid.explicit(edges.tolist()))
        case "more cells":
            cells = survey.grid.cells + 7
            grid = Grid.explicit(np.linspace(0.0, 1.0, cells + 1).tolist())
            return replace(
                survey,
                grid=grid,
                hierarchy=CutLevels(cells, survey.hierarchy.cuts),
                mechanisms=survey.mechanisms[: len(levels.cuts)],
            )
        case "another model":
            return replace(survey, model_digest="ab" * 32)
        case _:
            raise AssertionError(change)


def test_a_second_survey_that_was_not_announced_is_declined_before_a_row_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites = hospitals(folder)
    first = federate(
        Watched(configs(sites), lambda node, at: Watched.step == "SecondOfTwo"),
        settings(folder),
    )
    second = second_survey(first.survey, first.tally, thresholds=(0.5,))

    def unread(*_: object) -> None:
        raise AssertionError("a row was read")

    monkeypatch.setattr(Site, "rows", unread)
    for change, message in (
        ("more epsilon", "reserved for the second survey"),
        ("another total", "both surveys announce one total"),
        ("another grid", "keeps every edge"),
        ("more cells", "keeps every edge"),
        ("another model", "has others"),
    ):
        survey = hostile(second, change)
        terms = Terms.of(survey, randomness=SystemRandomness(), roster=roster_digest(sites[0]))
        question = Question(canonical(survey.to_json()), b"", terms.to_bytes())
        with pytest.raises(SurveyRefused, match=message):
            participant(sites[0], 1).keys(question)
    assert charged(sites[0]) == [TOTAL]


def roster_digest(site: Hospital) -> bytes:
    roster = Site.from_config(site.config).roster()
    assert roster is not None
    return roster.digest


def test_weights_beyond_their_limit_are_declined(folder: Path) -> None:
    (site, *_) = hospitals(folder)
    first = settings(folder).survey
    content = canonical(
        replace(
            first,
            hierarchy=CutLevels(first.grid.cells, (((0,), (0,)),), ((1,) * first.grid.cells,) * 2),
            mechanisms=(Polya(Fraction(1), 1, 3), Polya(Fraction(1), 1, 3)),
            step=SecondOfTwo(TOTAL, Fraction(1), first.fingerprint),
        ).to_json()
    )
    heavy = content.replace(b"[1,1,", b"[1000000,1,", 1)
    assert heavy != content
    with pytest.raises(FedassayError):
        participant(site, 1).keys(Question(heavy, b"", b""))
    assert charged(site) == []


def test_a_second_survey_after_a_foreign_first_is_charged_as_any_other(folder: Path) -> None:
    """A site that joins only for the second step: nothing was reserved there."""
    sites = hospitals(folder)
    first = federate(
        Watched(configs(sites), lambda node, at: node == 4 or Watched.step == "SecondOfTwo"),
        settings(folder),
    )
    first.save(folder / "first.json")
    run = settings(folder, after=str(folder / "first.json"))
    federate(InProcessGrid(configs(sites)), run)
    assert [charged(site) for site in sites] == [[TOTAL, 0]] * 3 + [[TOTAL * Fraction(9, 10)]]


def test_a_stage_of_the_second_step_that_is_replayed_is_declined(folder: Path) -> None:
    sites = hospitals(folder)
    sent: list[Message] = []

    def remember(node: int, stage: str, message: Message) -> Message:
        if node == 1 and stage == "masked":
            sent.append(message)
        return message

    grid = InProcessGrid(configs(sites), tamper=remember)
    federate(grid, settings(folder))
    replayed = InProcessGrid(configs(sites))
    for message in sent:
        replayed.push_messages([message])
    replies = [read_reply(message) for _, _, message in replayed.heard]
    assert all(isinstance(reply, Declined) for reply in replies)
    assert charged(sites[0]) == [TOTAL, 0]


# Under local privacy.


def test_each_row_answers_one_of_two_local_surveys(folder: Path) -> None:
    sites = hospitals(folder)
    run = settings(folder, privacy="local", examples=1600)
    assessment = federate(InProcessGrid(configs(sites)), run)
    assert assessment.first is not None
    reports = [step.tally.clients(step.survey) for step in (assessment.first, assessment)]
    # By the sites' names in the roster.
    expected = sum(int(rows_of_step(run.survey, s.name, range(400)).sum()) for s in sites)
    assert reports == [expected, 1600 - expected]
    assert [charged(site) for site in sites] == [[TOTAL, 0]] * 4


def test_a_table_that_changes_between_two_local_surveys_is_declined(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = hospitals(folder)
    run = settings(folder, privacy="local", examples=1600)

    def spoil(node: int, stage: str, message: Message) -> Message:
        if node == 4 and steps_of(message) == "SecondOfTwo":
            other = open_hospital(folder / "elsewhere", rows(9, 401))
            shutil.copy(other.folder / "scores" / "scores.parquet", sites[3].folder / "scores")
        return message

    assessment = federate(InProcessGrid(configs(sites), tamper=spoil), run)
    assert assessment.first is not None
    assert "a row might answer both" in capsys.readouterr().out
    assert [charged(site) for site in sites] == [[TOTAL, 0]] * 3 + [[TOTAL]]


# Settings.


BAD: dict[str, tuple[Callable[[Path], dict[str, str | int]], str]] = {
    "exact sums": (lambda _: {"privacy": "secure", "epsilon": ""}, "steps"),
    "three": (lambda _: {"steps": 3}, "steps must be a text|steps is one of"),
    "a height": (lambda _: {"height": 4}, "steps"),
    "both": (lambda f: {"after": str(f / "x.json"), "survey": "s.json"}, "both survey and after"),
}


@pytest.mark.parametrize("name", BAD)
def test_settings_of_two_steps_are_checked(folder: Path, name: str) -> None:
    hospitals(folder)
    changes, message = BAD[name]
    with pytest.raises(SettingInvalid, match=message):
        settings(folder, **changes(folder))


def test_a_complete_assessment_is_not_taken_up_again(folder: Path) -> None:
    sites = hospitals(folder)
    federate(InProcessGrid(configs(sites)), settings(folder, steps=1)).save(folder / "one.json")
    with pytest.raises(SettingInvalid, match="this assessment is complete"):
        settings(folder, after=str(folder / "one.json"))


def test_a_second_survey_alone_is_refused_before_anybody_is_asked(folder: Path) -> None:
    hospitals(folder)
    _, second = shared_pair(TOTAL, minimum_reports=3)
    second.save(folder / "second.json")
    with pytest.raises(SettingInvalid, match="after='FILE'"):
        settings(folder, survey=str(folder / "second.json"))


def test_a_run_ends_with_a_page_and_goes_on_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = settings(tmp_path)
    server_app._write_page(assessed("distributed"), asked)
    page = tmp_path / "assessment.html"
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert f"Wrote {page.resolve()}, a page about it." in capsys.readouterr().out
    page.unlink()
    page.mkdir()
    server_app._write_page(assessed("distributed"), asked)
    assert "There is no page about it. FileInvalid: " in capsys.readouterr().out
