"""What a server may ask of a site, and what it gets."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from flwr.app import ConfigRecord, Message, RecordDict

from fedassay.engines.flower import client_app, conversation
from fedassay.engines.flower.participant import Participant
from fedassay.engines.flower.records import Answered, Declined
from fedassay.engines.flower.records import read_reply as reply_of
from fedassay.engines.flower.run import federate
from fedassay.errors import TooFewReports
from fedassay.files import canonical
from tests.clock import Clock
from tests.flowergrid import InProcessGrid, context_of
from tests.hospitals import (
    CANARY,
    STAGES,
    ask,
    charged,
    configs,
    edit,
    exact_sum,
    hospitals,
    question,
    settings,
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Like tmp_path, but others may enter it."""
    made = Path(tempfile.mkdtemp(prefix="fedassay-test-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine loses no site: stages are over by this clock, not by the wall's."""
    monkeypatch.setattr(conversation, "time", Clock())


def test_surveys_of_another_version_and_broken_ones_are_refused(folder: Path) -> None:
    (site,) = hospitals(folder, pinned=False, count=1)
    survey = canonical(settings(folder, privacy="local", epsilon="5").survey.to_json())
    assert isinstance(ask(site, "report", question(folder)), Answered)
    for content in (
        survey.replace(b"fedassay.survey/2", b"fedassay.survey/3"),
        survey.replace(b'"minimum_reports":3', b'"minimum_reports":0'),
        survey[:-5],
        b"",
        b"[" * 100_000,
    ):
        assert isinstance(ask(site, "report", question(folder, survey=content)), Declined)
    assert len(charged(site)) == 1


@pytest.mark.parametrize("stage", [*STAGES, "report"])
def test_whatever_a_server_sends_is_declined_in_one_line(
    folder: Path, stage: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (site,) = hospitals(folder, pinned=False, count=1)
    rng = np.random.default_rng(3)
    good = question(folder).config_records["fedassay"]
    contents = [
        RecordDict(),
        RecordDict({"fedassay": ConfigRecord()}),
        RecordDict({"other": good}),
        RecordDict({"fedassay": good, "more": good}),
        *(
            RecordDict({"fedassay": ConfigRecord({**good, name: value})})
            for name in (*good, "extra")
            for value in (b"\x00" * 1000, "text", 2, 1.5, True, [1, 2], rng.bytes(99))
        ),
    ]
    for content in contents:
        reply = ask(site, stage, content)
        assert isinstance(reply, Declined | Answered)
        if isinstance(reply, Answered):
            assert stage == "report"
    log = capfd.readouterr()
    assert "Traceback" not in log.out + log.err
    assert "Unexpected" not in log.out


def test_an_exception_never_reaches_flower_and_its_text_is_withheld(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (site,) = hospitals(folder, pinned=False, count=1)

    def broken(*_: object) -> bytes:
        raise ZeroDivisionError(f"row 7 holds {CANARY}")

    monkeypatch.setattr(Participant, "report", broken)
    assert ask(site, "report", question(folder)) == Declined(
        "SiteDeclined", "the site's log says what to do"
    )
    log = capfd.readouterr()
    assert "Unexpected ZeroDivisionError in broken, line " in log.out
    assert "0.73" not in log.out + log.err


def test_no_server_is_trusted_unless_the_site_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = hospitals(folder)
    run = settings(folder, privacy="trusted-server")
    with pytest.raises(TooFewReports, match="4 declined stage report, SiteDeclined"):
        federate(InProcessGrid(configs(sites)), run)
    for site in sites:
        edit(site, "trusted-server = false", "trusted-server = true")
    assessment = federate(InProcessGrid(configs(sites)), run)
    assert assessment.tally.counters.tolist() == exact_sum(assessment, sites).tolist()
    assert "TRUSTED SERVER: this server sees the exact report" in capsys.readouterr().out


def test_a_distributed_report_is_never_shown_to_a_server(folder: Path) -> None:
    """Its noise share alone protects nobody, whatever the site set."""
    (site,) = hospitals(folder, pinned=False, count=1)
    edit(site, "trusted-server = false", "trusted-server = true")
    survey = settings(folder, privacy="distributed", epsilon="1").survey
    content = question(folder, survey=canonical(survey.to_json()), payload=b"local")
    reply = ask(site, "report", content)
    assert isinstance(reply, Declined)
    assert reply.kind == "SiteDeclined"


def test_a_stage_asked_twice_is_answered_alike_and_charged_once(folder: Path) -> None:
    sites = hospitals(folder)
    answers: list[bytes] = []

    def twice(node: int, stage: str, message: Message) -> Message:
        if node == 1 and stage == "masked":
            reply = reply_of(client_app.app(message, context_of(1, sites[0].config)))
            assert isinstance(reply, Answered)
            answers.append(reply.payload)
        return message

    grid = InProcessGrid(configs(sites), tamper=twice)
    assessment = federate(grid, settings(folder))
    given = [reply_of(m) for node, stage, m in grid.heard if (node, stage) == (1, "masked")]
    assert given == [Answered(answers[0])]
    assert charged(sites[0]) == [None]
    assert assessment.tally.counters.tolist() == exact_sum(assessment, sites).tolist()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"colluders":0', b'"colluders":1'),
        # Nothing but the fingerprint changes: the same cells would be counted.
        (b'"model_digest":null', b'"model_digest":"' + b"ab" * 32 + b'"'),
    ],
    ids=["colluders", "model"],
)
def test_a_survey_changed_on_the_way_is_refused_and_not_charged(
    folder: Path, before: bytes, after: bytes
) -> None:
    sites = hospitals(folder)

    def changed(node: int, stage: str, message: Message) -> Message:
        if node == 1 and stage == "masked":
            fields = message.content.config_records["fedassay"]
            survey = fields["survey"]
            assert isinstance(survey, bytes)
            fields["survey"] = survey.replace(before, after)
            assert fields["survey"] != survey
        return message

    assessment = federate(InProcessGrid(configs(sites), tamper=changed), settings(folder))
    assert assessment.tally.counters.tolist() == exact_sum(assessment, sites[1:]).tolist()
    assert charged(sites[0]) == []


def test_an_inbox_that_cannot_be_answered_costs_nothing(folder: Path) -> None:
    sites = hospitals(folder)

    def flipped(node: int, stage: str, message: Message) -> Message:
        if node == 1 and stage == "masked":
            fields = message.content.config_records["fedassay"]
            payload = fields["payload"]
            assert isinstance(payload, bytes)
            fields["payload"] = payload[:-1] + bytes([payload[-1] ^ 1])
        return message

    federate(InProcessGrid(configs(sites), tamper=flipped), settings(folder))
    assert [len(charged(site)) for site in sites] == [0, 1, 1, 1]
