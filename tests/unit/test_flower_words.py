"""What a run and a site say: names, one line, and nothing that a terminal obeys or a path tells."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from examples.four_hospitals.hospitals import Hospital, open_hospital, share_roster
from flwr.app import ConfigRecord, Message, RecordDict

from fedassay import Examples
from fedassay.engines.flower import conversation, server_app
from fedassay.engines.flower.progress import say
from fedassay.engines.flower.records import Declined, read_reply
from fedassay.engines.flower.run import federate
from fedassay.engines.flower.settings import RunSettings
from fedassay.engines.flower.site import Site
from fedassay.errors import RoundAborted, SurveyRefused
from tests.clock import Clock
from tests.flowergrid import CONFIG, InProcessGrid, context_of


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine loses no site: stages are over by this clock, not by the wall's."""
    monkeypatch.setattr(conversation, "time", Clock())


def hospitals(folder: Path, *, pinned: bool) -> list[Hospital]:
    rows = Examples([0, 1, 1], [0.2, 0.4, 0.9])
    opened = [
        open_hospital(folder / name, rows, pinned=pinned, colluders=0)
        for name in ("north", "east", "south", "west")
    ]
    if pinned:
        share_roster(folder, opened)
    return opened


def settings(folder: Path, *, pinned: bool) -> RunSettings:
    config: dict[str, object] = {
        **CONFIG, "sites": 4, "minimum-reports": 3, "colluders": 0, "height": 2, "fanout": 2,
    }  # fmt: skip
    if pinned:
        config["roster"] = str(folder / "roster.json")
    return replace(RunSettings.from_config(config), stage_seconds=0.2, quiet_seconds=0.1)


@pytest.mark.parametrize("pinned", [True, False])
def test_sites_are_called_by_their_names(
    tmp_path: Path, pinned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = hospitals(tmp_path, pinned=pinned)
    # Flower's own numbers, which mean nothing to anybody.
    numbers = {18413445329147179000 + i: site.config for i, site in enumerate(sites)}
    lost = max(numbers)
    grid = InProcessGrid(numbers, lambda node, stage: node == lost and stage == "masked")
    federate(grid, settings(tmp_path, pinned=pinned))
    said = capsys.readouterr().out
    assert "Without site west: silent at stage masked." in said
    assert "With east, north, south, west." in said
    assert "18413445329147179" not in said


def test_a_pinned_site_cannot_take_anothers_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All say that they are north; each is called what the roster calls the key it signed with."""
    sites = hospitals(tmp_path, pinned=True)
    monkeypatch.setattr(Site, "name", "north")
    configs = {number: site.config for number, site in enumerate(sites, 1)}
    grid = InProcessGrid(configs, lambda node, stage: node == 4 and stage == "masked")
    federate(grid, settings(tmp_path, pinned=True))
    assert "Without site west: silent" in capsys.readouterr().out


def test_sites_that_share_a_name_keep_their_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = hospitals(tmp_path, pinned=False)
    path = sites[3].folder / "site" / "site.toml"
    path.write_text(path.read_text().replace('data-id = "west"', 'data-id = "north"'))
    configs = {number: site.config for number, site in enumerate(sites, 1)}
    grid = InProcessGrid(configs, lambda node, stage: node == 4 and stage == "shares")
    federate(grid, settings(tmp_path, pinned=False))
    assert "Without site north (4): silent at stage shares." in capsys.readouterr().out


def test_a_terminal_is_told_nothing_that_it_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    say("FileInvalid: scores\x1b[2J\x07.csv\nforged line")
    assert capsys.readouterr().out == "FileInvalid: scores\\x1b[2J\\x07.csv\\nforged line\n"


def test_a_servers_message_cannot_forge_a_line_of_a_name(tmp_path: Path) -> None:
    InProcessGrid({})
    fields: dict[str, int | str] = {
        "protocol": 2, "declined": "K", "reason": "r", "site": "a\x1b[2J\nb" + "c" * 900,
    }  # fmt: skip
    content = RecordDict({"fedassay": ConfigRecord(dict(fields))})
    reply = read_reply(Message(content, dst_node_id=1, message_type="query.keys", ttl=60))
    assert reply.site.isprintable()
    assert len(reply.site) == 60


def test_a_round_that_is_gone_tells_the_server_no_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = hospitals(tmp_path, pinned=False)
    configs = {number: site.config for number, site in enumerate(sites, 1)}

    def forgetful(node: int, stage: str, message: Message) -> Message:
        if node == 1 and stage == "shares":
            for path in (sites[0].folder / "site" / "rounds").glob("*.state"):
                path.unlink()
        return message

    grid = InProcessGrid(configs, tamper=forgetful)
    federate(grid, settings(tmp_path, pinned=False))
    replies = [read_reply(m) for node, stage, m in grid.heard if (node, stage) == (1, "shares")]
    assert replies == [Declined("SiteDeclined", "the site's log says what to do")]
    # The site's own log says where.
    assert str(sites[0].folder) in capsys.readouterr().out


def test_folders_of_a_site_are_its_own(tmp_path: Path) -> None:
    sites = hospitals(tmp_path, pinned=False)
    configs = {number: site.config for number, site in enumerate(sites, 1)}
    federate(InProcessGrid(configs), settings(tmp_path, pinned=False))
    for folder in (sites[0].folder / "site", sites[0].folder / "site" / "rounds"):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_refused_survey_ends_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    sites = hospitals(tmp_path, pinned=False)
    configs = {number: site.config for number, site in enumerate(sites, 1)}
    context = context_of(0, {})
    context.run_config = {
        **CONFIG, "privacy": "distributed", "epsilon": "9", "sites": 4, "minimum-reports": 3,
        "colluders": 0,
    }  # fmt: skip
    logger = logging.getLogger("flwr")
    before = list(logger.filters)
    propagates, logger.propagate = logger.propagate, True
    try:
        with pytest.raises(RoundAborted) as failure:
            server_app.main(InProcessGrid(configs), context)
        logger.error("ServerApp raised an exception", exc_info=failure.value)
    finally:
        for added in set(logger.filters) - set(before):
            logger.removeFilter(added)
        logger.propagate = propagates
    lines = capsys.readouterr().out.splitlines()
    assert sum("The run failed. RoundAborted: " in line for line in lines) == 1
    assert failure.value.__cause__ is None
    assert caplog.records[-1].exc_info is None


def test_other_errors_keep_their_traceback() -> None:
    """What is not ours is a bug, and wants to be seen."""
    for error, kept in ((ZeroDivisionError("x"), True), (SurveyRefused("x"), False)):
        record = logging.LogRecord("flwr", 40, "", 1, "m", (), (type(error), error, None))
        assert server_app._without_traceback(record)
        assert (record.exc_info is not None) is kept
