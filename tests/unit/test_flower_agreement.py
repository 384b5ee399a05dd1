"""A site is closed by default: what it agrees to has limits, and more is said aloud."""

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from examples.four_hospitals.hospitals import LABEL, SCORE
from flwr.app import Message
from typer.testing import CliRunner

from fedassay import ClientPolicy, Grid, Hierarchy, Polya, Survey
from fedassay.cli.app import app
from fedassay.engines.flower import client_app, conversation
from fedassay.engines.flower.agreement import Agreement, default_colluders
from fedassay.engines.flower.records import Answered, Declined, Question, question_content
from fedassay.engines.flower.records import read_reply as reply_of
from fedassay.engines.flower.run import federate
from fedassay.engines.flower.settings import RunSettings
from fedassay.engines.flower.site import Site
from fedassay.engines.flower.site_setup import SiteOptions, make_roster, prepare_site
from fedassay.errors import (
    FileInvalid,
    LedgerInvalid,
    RoundAborted,
    SettingInvalid,
    SurveyRefused,
)
from fedassay.files import canonical
from fedassay.ledger import Budget, Charge, Ledger
from fedassay.mechanisms import Privacy
from fedassay.randomness import SystemRandomness
from fedassay.secagg.terms import Terms
from tests.clock import Clock
from tests.flowergrid import CONFIG, InProcessGrid, context_of
from tests.surveys import local_survey


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "time", Clock())


def site_config(folder: Path, name: str, **options: object) -> dict[str, str]:
    """A site's folder and table, with the defaults but for these options."""
    scores = folder / f"{name}-scores"
    scores.mkdir()
    rng = np.random.default_rng(len(name))
    lines = "".join(f"{score},{int(rng.random() < score)}\n" for score in rng.random(40))
    (scores / "scores.csv").write_text(f"{SCORE},{LABEL}\n{lines}")
    wishes = SiteOptions(name=name, data_folder=scores)
    prepare_site(folder / name, replace(wishes, **options))  # type: ignore[arg-type]  # settings by name
    return {"data": "scores.csv", "score": SCORE, "label": LABEL, "where": str(folder / name)}


def pinned_sites(folder: Path, count: int, **options: object) -> dict[int, dict[str, str]]:
    configs = {i: site_config(folder, f"s{i}", **options) for i in range(1, count + 1)}
    roster = make_roster([folder / f"s{i}" / "member.json" for i in configs])
    roster.save(folder / "roster.json")
    for config in configs.values():
        roster.save(Path(config["where"]) / "roster.json")
    return configs


def settings(folder: Path, **changes: str | int) -> RunSettings:
    config: dict[str, object] = {
        **CONFIG, "privacy": "distributed", "epsilon": "1", "sites": 5, "height": 2, "fanout": 2,
        "roster": str(folder / "roster.json"),
    }  # fmt: skip
    config.update({name.replace("_", "-"): value for name, value in changes.items()})
    return RunSettings.from_config(config)


def charged(config: dict[str, str]) -> list[Fraction | None]:
    entries = Ledger(Path(config["where"]) / "ledger.db").entries()
    return [entry.content.epsilon for entry in entries if isinstance(entry.content, Charge)]


def test_a_site_without_options_has_limits_and_says_what_they_mean(tmp_path: Path) -> None:
    config = site_config(tmp_path, "north")
    path = Path(config["where"]) / "site.toml"
    agreement = Agreement.load(path)
    assert agreement.largest_epsilon == 1
    assert agreement.budget == 5
    assert agreement.reason == ""
    assert not agreement.exact_sums
    assert agreement.smallest_cohort == 3
    text = path.read_text()
    assert 'largest-epsilon = "1"' in text
    assert 'budget = "5"' in text
    assert "e^epsilon" in text
    (balance,) = Ledger(Path(config["where"]) / "ledger.db").balances("north")
    assert balance.budget.epsilon == 5
    assert balance.budget.exact_sums == 0


@pytest.mark.parametrize("options", [{"largest_epsilon": Fraction(2)}, {"budget": Fraction(11, 2)}])
def test_more_than_the_default_needs_a_reason_and_nothing_is_written_without(
    tmp_path: Path, options: dict[str, Fraction]
) -> None:
    with pytest.raises(SettingInvalid, match="without a reason"):
        site_config(tmp_path, "north", **options)
    assert not (tmp_path / "north").exists()
    site_config(tmp_path, "other", **options, reason="public rows")
    assert 'reason = "public rows"' in (tmp_path / "other" / "site.toml").read_text()
    for wrong in ("two\nlines", "\x1b[2J", "long " * 100):
        with pytest.raises(SettingInvalid, match="one line"):
            site_config(tmp_path, f"wrong{len(wrong)}", **options, reason=wrong)


def test_no_reason_is_good_enough_for_more_than_any_client_answers(tmp_path: Path) -> None:
    with pytest.raises(SettingInvalid, match="at most 10"):
        site_config(tmp_path, "north", largest_epsilon=Fraction(50), reason="why not")


def test_the_command_says_aloud_what_is_beyond_the_defaults(tmp_path: Path) -> None:
    base = ["federation", "site", "--name", "n", "--data-folder", str(tmp_path)]
    quiet = CliRunner().invoke(app, [*base, str(tmp_path / "a")])
    assert quiet.exit_code == 0
    assert "NOTE" not in quiet.output
    refused = CliRunner().invoke(app, [*base, str(tmp_path / "b"), "--budget", "9"])
    assert isinstance(refused.exception, SettingInvalid)
    assert not (tmp_path / "b").exists()
    loud = CliRunner().invoke(
        app, [*base, str(tmp_path / "b"), "--budget", "9", "--reason", "a trial", "--exact-sums"]
    )
    assert loud.exit_code == 0
    said = " ".join(loud.output.split())
    assert "9 on all (default 5). Reason given: a trial" in said
    assert "sums without noise" in said


def spoiled(config: dict[str, str], pattern: str, replacement: str) -> None:
    path = Path(config["where"]) / "site.toml"
    text, changes = re.subn(pattern, replacement, path.read_text(), flags=re.MULTILINE)
    assert changes == 1
    path.write_text(text)


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r"^largest-epsilon.*\n", ""),
        (r"^budget.*\n", ""),
        (r"^largest-epsilon.*$", 'largest-epsilon = "2"'),
        (r"^budget.*$", 'budget = "6"'),
        (r"^largest-epsilon.*$", 'largest-epsilon = "11"\nreason = "because"'),
        (r"^largest-epsilon.*$", 'largest-epsilon = "inf"\nreason = "because"'),
        (r"^budget.*$", 'budget = "0"'),
    ],
)
def test_a_site_without_a_limit_answers_nothing_and_does_not_start(
    tmp_path: Path, pattern: str, replacement: str
) -> None:
    config = site_config(tmp_path, "north", pinned=False)
    assert isinstance(ask(config, "report", local_survey(), b"local"), Answered)
    spoiled(config, pattern, replacement)
    with pytest.raises(FileInvalid):
        Site.from_config(config).check()
    reply = ask(config, "report", local_survey(), b"local")
    assert isinstance(reply, Declined)
    assert reply.kind == "SiteDeclined"
    assert charged(config) == [Fraction(1)]


@pytest.mark.parametrize("epsilon", [None, Fraction(6)])
def test_a_ledger_without_the_sites_budget_stops_it(
    tmp_path: Path, epsilon: Fraction | None
) -> None:
    config = site_config(tmp_path, "north", pinned=False)
    Site.from_config(config).check()
    Ledger(Path(config["where"]) / "ledger.db").set_budget(Budget("north", epsilon))
    with pytest.raises(LedgerInvalid, match="fedassay ledger budget"):
        Site.from_config(config).check()
    reply = ask(config, "report", local_survey(), b"local")
    assert isinstance(reply, Declined)
    assert reply.kind == "SiteDeclined"


def ask(config: dict[str, str], stage: str, survey: Survey, payload: bytes) -> Answered | Declined:
    InProcessGrid({})
    content = question_content(Question(canonical(survey.to_json()), b"", payload))
    message = Message(content, dst_node_id=1, message_type=f"query.{stage}", ttl=60)
    return reply_of(client_app.app(message, context_of(1, config)))


def keys_for(survey: Survey, folder: Path) -> bytes:
    roster = make_roster(sorted(folder.glob("s*/member.json")))
    return Terms.of(survey, randomness=SystemRandomness(), roster=roster.digest).to_bytes()


def distributed(epsilon: Fraction, *, minimum: int = 4, colluders: int = 1) -> Survey:
    return Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(4),
        hierarchy=Hierarchy.flat(4),
        mechanisms=(Polya(epsilon, 1, minimum - colluders),),
        minimum_reports=minimum,
        colluders=colluders,
    )


def test_hostile_questions_are_refused_by_a_site_with_the_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = pinned_sites(tmp_path, 5)[1]
    local = {
        "epsilon": local_survey(Fraction(50), cells=2**20, kinds="grr"),
        "epsilon 1 ": local_survey(Fraction(2)),
        "cells": local_survey(Fraction(1), cells=2**20, kinds="grr"),
    }
    for word, survey in local.items():
        reply = ask(config, "report", survey, b"local")
        assert isinstance(reply, Declined)
        assert reply.kind == "SiteDeclined"
        assert word in capsys.readouterr().out
    summed = {
        "epsilon": distributed(Fraction(50)),
        "withstands 0": distributed(Fraction(1), minimum=5, colluders=0),
        "guarantees 2": distributed(Fraction(1), minimum=3, colluders=1),
    }
    for word, survey in summed.items():
        reply = ask(config, "keys", survey, keys_for(survey, tmp_path))
        assert isinstance(reply, Declined)
        assert reply.kind == "SiteDeclined"
        assert word in capsys.readouterr().out
    good = distributed(Fraction(1))
    assert isinstance(ask(config, "keys", good, keys_for(good, tmp_path)), Answered)
    assert charged(config) == []


def test_the_twin_that_opened_itself_knowingly_answers_what_the_defaults_refuse(
    tmp_path: Path,
) -> None:
    opened = {"largest_epsilon": Fraction(10), "budget": Fraction(50), "reason": "a twin"}
    config = pinned_sites(tmp_path, 5, colluders=0, smallest_cohort=2, **opened)[1]
    for survey in (
        distributed(Fraction(10)),
        distributed(Fraction(1), minimum=5, colluders=0),
        distributed(Fraction(1), minimum=3, colluders=1),
    ):
        assert isinstance(ask(config, "keys", survey, keys_for(survey, tmp_path)), Answered)


def test_rounds_end_with_the_budget_so_that_no_average_can_be_taken(tmp_path: Path) -> None:
    configs = pinned_sites(tmp_path, 5)
    run = settings(tmp_path)
    for _ in range(5):
        federate(InProcessGrid(configs), run)
    with pytest.raises(RoundAborted, match="5 declined stage keys, SiteDeclined"):
        federate(InProcessGrid(configs), run)
    for _ in range(144):
        reply = ask(configs[1], "keys", run.survey, keys_for(run.survey, tmp_path))
        assert isinstance(reply, Declined)
        assert reply.kind == "SiteDeclined"
    assert [charged(config) for config in configs.values()] == [[Fraction(1)] * 5] * 5


def test_a_victim_and_two_friends_are_no_crowd(tmp_path: Path) -> None:
    """Whatever the server says of colluders, a sum over three is not answered by default."""
    configs = pinned_sites(tmp_path, 5)
    three = {node: configs[node] for node in (1, 2, 3)}
    for changes in ({"minimum_reports": 3, "colluders": 0}, {"minimum_reports": 3, "colluders": 1}):
        run = settings(tmp_path, sites=3, **changes)
        with pytest.raises(RoundAborted, match="3 declined stage keys, SiteDeclined"):
            federate(InProcessGrid(three), run)
    assert all(charged(config) == [] for config in configs.values())


def test_five_sites_with_the_defaults_lose_one_and_go_on(tmp_path: Path) -> None:
    configs = pinned_sites(tmp_path, 5)
    grid = InProcessGrid(configs, lambda node, stage: node == 5 and stage == "masked")
    assessment = federate(grid, settings(tmp_path))
    assert set(assessment.tally.reports) == {4}
    assert assessment.survey.colluders == 1


def test_a_run_chooses_colluders_as_sites_ask_for_them(tmp_path: Path) -> None:
    pinned_sites(tmp_path, 2)
    assert settings(tmp_path, sites=9).survey.colluders == 3
    assert settings(tmp_path, sites=9).survey.minimum_reports == 6
    assert settings(tmp_path, sites=9, colluders=0).survey.colluders == 0
    # Under local privacy nobody needs to be trusted, and nobody is counted.
    assert settings(tmp_path, privacy="local").survey.colluders == 0
    for wrong in ("x", -1):
        with pytest.raises(SettingInvalid, match="colluders must be"):
            settings(tmp_path, colluders=wrong)


def test_a_floor_is_a_third_of_the_roster_and_at_least_one(tmp_path: Path) -> None:
    assert [default_colluders(sites) for sites in (0, 2, 4, 5, 6, 9, 30)] == [1, 1, 1, 1, 2, 3, 10]
    configs = pinned_sites(tmp_path, 6)
    assert Site.from_config(configs[1]).colluders == 2
    spoiled(configs[1], r"^# colluders = 1$", "colluders = 3")
    assert Site.from_config(configs[1]).colluders == 3


def test_a_floor_under_colluders_holds_for_the_survey_itself() -> None:
    """A report that travels without secure aggregation has no terms that would be refused."""
    policy = ClientPolicy(colluders=1, smallest_cohort=3)
    policy.check(distributed(Fraction(1), minimum=4, colluders=1))
    with pytest.raises(SurveyRefused, match="survey withstands 0"):
        policy.check(distributed(Fraction(1), minimum=5, colluders=0))
