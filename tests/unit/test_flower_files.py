"""A site's files, folders and messages that are not what they should be: refused, and told why."""

import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from flwr.app import ConfigRecord, Error, Message, RecordDict

from fedassay.engines.flower import client_app, conversation, records
from fedassay.engines.flower.agreement import Agreement, read_toml
from fedassay.engines.flower.conversation import Conversation
from fedassay.engines.flower.credentials import make_certificates
from fedassay.engines.flower.launch import Processes, check_private, flower_program, make_private
from fedassay.engines.flower.launch_link import check_certificate
from fedassay.engines.flower.programs import check_programs
from fedassay.engines.flower.records import Declined, Question, read_reply
from fedassay.engines.flower.settings import RunSettings
from fedassay.engines.flower.site import Site, node_config
from fedassay.engines.flower.site_setup import SiteOptions, make_roster, prepare_site
from fedassay.engines.flower.versions import check_seams
from fedassay.engines.kept_answers import KeptAnswers
from fedassay.errors import FileInvalid, MessageTooLarge, SettingInvalid, TooFewReports
from fedassay.ledger import Part
from tests.clock import Clock
from tests.flowergrid import CONFIG, InProcessGrid
from tests.surveys import local_survey


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    prepare_site(tmp_path / "site", SiteOptions(name="a", data_folder=tmp_path / "data"))
    return tmp_path / "site"


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def with_digests(value: str) -> Callable[[Path], object]:
    def spoil(path: Path) -> None:
        lines = [line for line in path.read_text().splitlines() if "model-digests" not in line]
        path.write_text("\n".join([f"model-digests = {value}", *lines]))

    return spoil


SPOILT: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: path.unlink(), "a site answers nothing without this file"),
    "a folder": (make_folder, "cannot be read (Is a directory)"),
    "too long": (lambda path: path.write_text("#" * 10**7), "such files are at most"),
    "no TOML": (lambda path: path.write_text("name = ["), "not a TOML file. Correct it"),
    "no text": (lambda path: path.write_bytes(b"\xff\xfe"), "not a TOML file. Correct it"),
    "a digest": (with_digests('"ab"'), "is a list of SHA-256 digests"),
    "short digests": (with_digests('["ab"]'), "sha256sum model.bin"),
    "many digests": (
        with_digests(str(["0" * 64] * 10_001)),
        "is a list of SHA-256 digests",
    ),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_an_agreement_that_is_none_answers_nothing(site: Path, kind: str) -> None:
    spoil, said = SPOILT[kind]
    Agreement.load(site / "site.toml")
    spoil(site / "site.toml")
    with pytest.raises(FileInvalid) as refused:
        Agreement.load(site / "site.toml")
    assert said in str(refused.value)


def test_a_virtual_node_is_known_by_its_number_and_a_real_one_by_its_own_settings(
    tmp_path: Path,
) -> None:
    (tmp_path / "1.toml").write_text('agreement = "a"\n')
    run = {"simulation": str(tmp_path)}
    virtual = {"partition-id": 1, "num-partitions": 2}
    assert node_config(virtual, run) == {"agreement": "a"}
    with pytest.raises(SettingInvalid, match="known by its number; this one has none"):
        node_config(virtual | {"partition-id": "../1"}, run)
    real = {"agreement": "b"}
    assert node_config(real, run) is real
    assert read_toml(tmp_path / "1.toml") == {"agreement": "a"}


@pytest.mark.parametrize("value", [None, 3, "", "x" * 4097])
def test_a_site_needs_its_settings_as_text(value: object) -> None:
    with pytest.raises(SettingInvalid, match="the node configuration must name 'where'"):
        Site.from_config({"where": value})


@pytest.mark.parametrize("value", ["a half", True])
def test_a_rate_of_a_run_is_a_number(value: object) -> None:
    with pytest.raises(SettingInvalid, match="positive-rate must be a number; found a"):
        RunSettings.from_config({**CONFIG, "sites": 4, "positive-rate": value})


def test_a_roster_of_one_is_none(site: Path) -> None:
    with pytest.raises(FileInvalid, match="at least 2 sites; found 1"):
        make_roster([site / "member.json"])


def test_folders_that_cannot_be_made_or_read_are_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    attempts: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: make_certificates(file / "x", ["localhost"]), "cannot be written"),
        (lambda: make_private(file / "x"), "cannot be made (Not a directory)"),
        (lambda: check_private(tmp_path / "none"), "cannot be read (No such file"),
        (lambda: check_certificate(tmp_path), "must hold ca.crt, server.crt and server.key"),
        (lambda: check_programs(tmp_path / "none", {}), "programs that run in place of Flower's"),
        (lambda: KeptAnswers(file).find(local_survey(), Part("a")), "cannot be read (Not a dir"),
        (lambda: KeptAnswers(file / "x").keep(local_survey(), Part("a"), b""), "cannot be made"),
    )
    for attempt, said in attempts:
        with pytest.raises(FileInvalid) as refused:
            attempt()
        assert said in str(refused.value)


def test_a_program_of_flowers_that_is_not_there_is_named_with_the_extra() -> None:
    with pytest.raises(SettingInvalid, match=r"flower-nothing is not installed.*fedassay\[flower"):
        flower_program("flower-nothing")


def test_another_flower_answers_nothing() -> None:
    runtime = ModuleType("runtime")
    with pytest.raises(SystemExit, match=r"nothing is answered\. Flower's runtime has no entry"):
        check_seams(runtime, ["entry"])
    runtime.__dict__["entry"] = None
    check_seams(runtime, ["entry"])


@pytest.fixture
def _signals() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_signals")
def test_a_process_that_ends_by_itself_is_noticed_with_its_code() -> None:
    with Processes({}) as processes:
        processes.start(sys.executable, "-S", "-c", "raise SystemExit(3)")
        end = time.monotonic() + 60.0
        while (code := processes.ended()) is None and time.monotonic() < end:
            time.sleep(0.01)
    assert code == 3


def test_an_error_without_a_trace_has_an_unknown_place() -> None:
    assert client_app._innermost(ValueError("score 0.7")) == "an unknown place"


def question() -> Message:
    InProcessGrid({})  # says which run this is
    asked = Message(RecordDict(), dst_node_id=1, message_type="query.keys")
    asked.metadata.__dict__["_message_id"] = "m"
    return asked


def test_an_error_of_flowers_own_counts_as_a_refusal() -> None:
    told = read_reply(Message(Error(code=7, reason="score 0.7"), reply_to=question()))
    assert told == Declined("Flower error 7", "the site's log says more")


def test_a_reply_of_more_bytes_than_any_answer_has_is_declined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "MOST_BYTES", 3)
    record: dict[str, Any] = {"protocol": records.PROTOCOL, "payload": b"four", "site": "a"}
    content = RecordDict({records.RECORD: ConfigRecord(record)})
    told = read_reply(Message(content, reply_to=question()))
    assert isinstance(told, Declined)
    assert told.kind == "MessageTooLarge"
    assert "at most 3 bytes; found 4" in told.reason


@dataclass
class Deaf(InProcessGrid):
    """A SuperLink that takes some messages only."""

    ids: Iterable[str] = ()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        return list(self.ids)


def talk_to(grid: InProcessGrid, monkeypatch: pytest.MonkeyPatch) -> Conversation:
    monkeypatch.setattr(conversation, "time", Clock())
    return Conversation(grid, 2, stage_seconds=5.0, quiet_seconds=1.0)


def test_too_few_connected_sites_are_told_after_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = talk_to(InProcessGrid({4: {}}), monkeypatch)
    with pytest.raises(TooFewReports, match=r"needs 2 sites; 1 are connected after 9 s\. Start"):
        talk.gather(3, 9.0)
    enough = talk_to(InProcessGrid({9: {}, 4: {}}), monkeypatch)
    assert enough.gather(3, 9.0) == [4, 9]


def test_messages_that_the_superlink_does_not_take_are_noted_or_end_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Question(b"", b"", b"")
    sites: dict[int, dict[str, str]] = {1: {}, 2: {}}
    some = talk_to(Deaf(sites, ids=["", "b"]), monkeypatch)
    assert some.ask("keys", dict.fromkeys(sites, asked)) == {}
    assert "1 the SuperLink took no message for stage keys" in some.missing()
    none = talk_to(Deaf(sites, ids=["a"]), monkeypatch)
    with pytest.raises(MessageTooLarge, match=r"must take 2 messages for stage keys; it took 1"):
        none.ask("keys", dict.fromkeys(sites, asked))


def test_an_identity_goes_with_a_roster(site: Path, tmp_path: Path) -> None:
    (tmp_path / "data" / "t.csv").write_text("score,label\n0.5,1\n")
    agreement = Agreement.load(site / "site.toml")
    config = {"where": str(site), "data": "t.csv"}
    half = replace(Site.from_config(config), agreement=replace(agreement, roster=None))
    with pytest.raises(SettingInvalid, match=r"identity and roster; found one\. Add the other"):
        half.check()
