"""The Flower engine in one process: the same handlers, without SuperLink and SuperNodes."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from examples.four_hospitals.__main__ import report
from examples.four_hospitals.hospitals import LABEL, SCORE, Hospital, open_hospital, share_roster
from flwr.app import ConfigRecord, Message, RecordDict

from fedassay import Examples
from fedassay.assessment import Assessment
from fedassay.engines.flower import client_app, conversation
from fedassay.engines.flower.participant import Participant
from fedassay.engines.flower.records import Answered, Declined, Question, question_content
from fedassay.engines.flower.records import read_reply as reply_of
from fedassay.engines.flower.run import federate
from fedassay.engines.flower.settings import RunSettings
from fedassay.errors import RoundAborted, SettingInvalid, TooFewReports
from fedassay.examples import IntArray
from fedassay.files import canonical
from fedassay.ledger import Charge, Ledger
from tests.clock import Clock
from tests.flowergrid import CONFIG, InProcessGrid, context_of, written

CANARY = 0.7310585786300049
STAGES = ("keys", "shares", "masked", "confirm", "unmask")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Like tmp_path, but others may enter it."""
    made = Path(tempfile.mkdtemp(prefix="fedassay-test-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def rows(count: int, seed: int = 1) -> Examples:
    rng = np.random.default_rng(seed)
    scores = np.append(rng.random(count), CANARY)
    return Examples((rng.random(count + 1) < scores).astype(int), scores)


def hospitals(folder: Path, *, pinned: bool = True, count: int = 4) -> list[Hospital]:
    opened = [
        open_hospital(folder / f"h{i}", rows(50 + i, seed=i), pinned=pinned, colluders=0)
        for i in range(count)
    ]
    if pinned:
        share_roster(folder, opened)
    return opened


def settings(folder: Path, **changes: str | int | bool) -> RunSettings:
    config: dict[str, object] = {
        **CONFIG, "sites": 4, "minimum-reports": 3, "colluders": 0, "height": 4, "fanout": 2,
    }  # fmt: skip
    if (folder / "roster.json").exists() and changes.get("privacy") != "local":
        config["roster"] = str(folder / "roster.json")
    config.update({name.replace("_", "-"): value for name, value in changes.items()})
    return RunSettings.from_config(config)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine loses no site: stages are over by this clock, not by the wall's."""
    monkeypatch.setattr(conversation, "time", Clock())


def configs(sites: list[Hospital]) -> dict[int, Mapping[str, str]]:
    return {number: site.config for number, site in enumerate(sites, 1)}


def exact_sum(assessment: Assessment, sites: list[Hospital]) -> IntArray:
    counters = (site.counters(assessment.survey) for site in sites)
    return sum(counters, np.zeros(1, dtype=np.int64))


def charged(site: Hospital) -> list[Fraction | None]:
    entries = Ledger(site.folder / "site" / "ledger.db").entries()
    return [entry.content.epsilon for entry in entries if isinstance(entry.content, Charge)]


def edit(site: Hospital, old: str, new: str) -> None:
    path = site.folder / "site" / "site.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize("pinned", [True, False])
@pytest.mark.parametrize("stage", STAGES)
def test_a_site_lost_at_any_stage_leaves_the_exact_sum_over_the_survivors(
    folder: Path, stage: str, pinned: bool
) -> None:
    sites = hospitals(folder, pinned=pinned)
    lost_from = STAGES.index(stage)
    grid = InProcessGrid(
        configs(sites), lambda node, at: node == 4 and STAGES.index(at) >= lost_from
    )
    assessment = federate(grid, settings(folder))
    # Once its masked vector is in, a site counts, whatever becomes of it.
    left = sites if lost_from > STAGES.index("masked") else sites[:3]
    if stage == "confirm" and not pinned:
        left = sites
    assert assessment.tally.counters.tolist() == exact_sum(assessment, left).tolist()
    assert assessment.tally.reports == (len(left),) * 4
    assert [charged(site) for site in sites[:3]] == [[None]] * 3
    assert len(charged(sites[3])) == (lost_from > STAGES.index("masked"))


@pytest.mark.parametrize("stage", STAGES)
def test_past_the_threshold_the_run_ends_without_a_sum_and_the_next_one_works(
    folder: Path, stage: str
) -> None:
    sites = hospitals(folder)
    grid = InProcessGrid(configs(sites), lambda node, at: node > 2 and at == stage)
    with pytest.raises((RoundAborted, TooFewReports), match=rf"2 silent at stage {stage}"):
        federate(grid, settings(folder, privacy="distributed", epsilon="1"))
    spent = [charged(site) for site in sites]
    paid = STAGES.index(stage) >= STAGES.index("masked")
    assert spent[0] == ([Fraction(1)] if paid else [])
    again = federate(
        InProcessGrid(configs(sites)), settings(folder, privacy="distributed", epsilon="1")
    )
    assert again.tally.reports == (4,) * again.survey.hierarchy.levels
    # What was charged stays charged, and an answer once more is charged once more.
    assert [charged(site) for site in sites] == [[*old, Fraction(1)] for old in spent]


def test_a_repeated_survey_is_refused_where_the_site_says_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = hospitals(folder)
    for site in sites:
        edit(site, "again = true", "again = false")
    federate(InProcessGrid(configs(sites)), settings(folder))
    with pytest.raises(RoundAborted, match="4 declined stage keys, SiteDeclined"):
        federate(InProcessGrid(configs(sites)), settings(folder))
    assert [charged(site) for site in sites] == [[None]] * 4
    assert "was charged before" in capsys.readouterr().out


def test_a_budget_ends(folder: Path) -> None:
    sites = hospitals(folder)
    for _ in range(4):
        federate(
            InProcessGrid(configs(sites)), settings(folder, privacy="distributed", epsilon="5")
        )
    with pytest.raises(RoundAborted, match="4 declined stage keys, SiteDeclined"):
        federate(
            InProcessGrid(configs(sites)), settings(folder, privacy="distributed", epsilon="5")
        )
    assert charged(sites[0]) == [Fraction(5)] * 4


def no_file(site: Hospital) -> None:
    (site.folder / "scores" / "scores.parquet").unlink()


def table(site: Hospital, text: str) -> None:
    """Another table under the name that the site's configuration knows."""
    no_file(site)
    (site.folder / "scores" / "scores.csv").write_text(text)


def test_a_site_without_rows_answers_zeros_like_any_other(folder: Path) -> None:
    sites = hospitals(folder)
    path = sites[3].folder / "scores" / "scores.parquet"
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    assessment = federate(InProcessGrid(configs(sites)), settings(folder))
    assert assessment.tally.reports == (4,) * 4
    assert assessment.tally.counters.tolist() == exact_sum(assessment, sites[:3]).tolist()


BAD = {
    "no file": (no_file, "FileInvalid", "Check data in the node configuration"),
    "no columns": (lambda s: table(s, f"a,b\n1,2\n{CANARY},1\n"), "ColumnMissing", "risk"),
    "no names": (lambda s: table(s, f"1,2\n{CANARY},1\n"), "ColumnMissing", "column names"),
    "text": (
        lambda s: table(s, f"{SCORE},{LABEL}\nx{CANARY},1\n"),
        "ColumnTypeInvalid",
        "Convert the column",
    ),
    "out of range": (
        lambda s: table(s, f"{SCORE},{LABEL}\n1{CANARY},1\n{CANARY},1\n"),
        "ScoreOutOfRange",
        "Map scores to probabilities",
    ),
    "odd labels": (
        lambda s: table(s, f"{SCORE},{LABEL}\n{CANARY},7\n"),
        "LabelInvalid",
        "Map the column",
    ),
    "changing type": (
        lambda s: table(s, f"{SCORE},{LABEL}\n" + "0.5,1\n" * 400_000 + f"canary {CANARY},1\n"),
        "FileInvalid",
        "Check the file",
    ),
    "a link out of the folder": (
        lambda s: (s.folder / "scores" / "scores.csv").symlink_to("/etc/passwd"),
        "FileInvalid",
        "data-folder",
    ),
    "a pipe": (
        lambda s: os.mkfifo(s.folder / "scores" / "scores.csv"),
        "FileInvalid",
        "Name one CSV or Parquet file",
    ),
    "a name that is none": (
        lambda s: edit(s, 'data-id = "h3"', 'data-id = "h\\u0007"'),
        "FileInvalid",
        "printable",
    ),
    "no agreement": (
        lambda s: (s.folder / "site" / "site.toml").unlink(),
        "FileInvalid",
        "fedassay federation site",
    ),
    "a bad agreement": (
        lambda s: (s.folder / "site" / "site.toml").write_text("format = 7"),
        "FileInvalid",
        "expected format",
    ),
    "an unknown setting": (
        lambda s: edit(s, "again = true", "aggain = true"),
        "FileInvalid",
        "aggain",
    ),
    "no ledger": (
        lambda s: (s.folder / "site" / "ledger.db").unlink(),
        "LedgerInvalid",
        "there is no ledger",
    ),
    "no roster": (
        lambda s: (s.folder / "site" / "roster.json").unlink(),
        "FileInvalid",
        "Check the path",
    ),
    "a folder in place of the rounds": (
        lambda s: (s.folder / "site" / "rounds").write_text(""),
        "FileInvalid",
        "you may write to",
    ),
}


@pytest.mark.parametrize("trouble", BAD.values(), ids=BAD.keys())
def test_a_site_in_trouble_says_what_to_do_and_tells_the_server_nothing(
    folder: Path,
    trouble: tuple[Callable[[Hospital], object], str, str],
    capfd: pytest.CaptureFixture[str],
) -> None:
    spoil, kind, remedy = trouble
    sites = hospitals(folder)
    spoil(sites[3])
    config = dict(configs(sites))
    if list((sites[3].folder / "scores").glob("*.csv")):
        config[4] = {**config[4], "data": "scores.csv"}
    grid = InProcessGrid(config)
    assessment = federate(grid, settings(folder))
    assert assessment.tally.counters.tolist() == exact_sum(assessment, sites[:3]).tolist()
    said = capfd.readouterr()
    log = said.out + said.err
    assert f"{kind}: " in log
    assert remedy in log
    assert "0.73105" not in log
    assert "Traceback" not in log
    replies = [reply_of(message) for node, _, message in grid.heard if node == 4]
    kinds = {reply.kind for reply in replies if isinstance(reply, Declined)}
    assert kinds == {"SiteDeclined"}


def test_a_read_only_folder_is_refused_before_anything_leaves(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = hospitals(folder)
    federate(InProcessGrid(configs(sites)), settings(folder))
    before = [charged(site) for site in sites]
    site = sites[3].folder / "site"
    (site / "rounds").chmod(0o555)
    site.chmod(0o555)
    for path in written(site):
        path.chmod(0o444)
    run = settings(folder)
    user = os.geteuid()
    if user == 0:
        # Root may write anywhere; all other sites are open to nobody in particular.
        for path in folder.rglob("*"):
            if site not in (path, *path.parents):
                path.chmod(0o777 if path.is_dir() else 0o666)
        os.seteuid(65534)
    try:
        assessment = federate(InProcessGrid(configs(sites)), run)
    finally:
        os.seteuid(user)
        site.chmod(0o755)
    assert assessment.tally.reports == (3,) * 4
    assert "cannot be written" in capsys.readouterr().out
    assert charged(sites[3]) == before[3]


def test_a_site_of_one_class_counts(folder: Path) -> None:
    sites = [
        *hospitals(folder, pinned=False, count=3),
        open_hospital(folder / "h9", Examples([1, 1], [0.25, CANARY]), pinned=False, colluders=0),
    ]
    assessment = federate(InProcessGrid(configs(sites)), settings(folder))
    assert assessment.tally.counters.tolist() == exact_sum(assessment, sites).tolist()


def ask(site: Hospital, stage: str, content: RecordDict) -> Answered | Declined:
    InProcessGrid({})
    message = Message(content, dst_node_id=1, message_type=f"query.{stage}", ttl=60)
    return reply_of(client_app.app(message, context_of(1, site.config)))


def question(folder: Path, **changes: bytes) -> RecordDict:
    run = settings(folder, privacy="local", epsilon="5")
    fields = {"survey": canonical(run.survey.to_json()), "round_id": b"", "payload": b"local"}
    return question_content(Question(**{**fields, **changes}))


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


def test_the_walks_verdict_is_no_where_a_site_too_many_is_summed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = hospitals(folder)
    grid = InProcessGrid(configs(sites), lambda node, at: node == 4 and at == "masked")
    assessment = federate(grid, settings(folder))
    assert report(assessment, sites[:3]) == 0
    assert "equals the exact sum over the survivors (h0, h1, h2)." in capsys.readouterr().out
    for wrong in (sites, sites[:2], sites[1:]):
        assert report(assessment, wrong) == 1
        assert "DOES NOT EQUAL" in capsys.readouterr().out


def test_clocks_that_differ_change_nothing(folder: Path) -> None:
    sites = hospitals(folder)

    def skewed(node: int, stage: str, message: Message) -> Message:
        message.metadata.__dict__["_created_at"] += {1: -86_400.0, 2: 86_400.0}.get(node, 0.0)
        return message

    assessment = federate(InProcessGrid(configs(sites), tamper=skewed), settings(folder))
    assert assessment.tally.counters.tolist() == exact_sum(assessment, sites).tolist()


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"privacy": "none"}, "privacy is one of"),
        ({"epsilon": ""}, "needs an epsilon"),
        ({"epsilon": "one"}, "epsilon is a number or a fraction"),
        ({"privacy": "secure"}, "exact sums spend no epsilon"),
        ({"thresholds": "0.5;0.7"}, "thresholds are numbers"),
        ({"thresholds": "1.5"}, r"must lie in \[0, 1\]"),
        ({"sites": -1}, "sites must be a whole number"),
        ({"sites": "four"}, "sites must be a whole number"),
        ({"stage_seconds": 0}, "stage-seconds must be from 1"),
        ({"output": ""}, "output names none"),
        ({"unit": "row"}, "unit is one of"),
        ({"privacy": 3}, "privacy must be a text"),
        ({"minimum_reports": 9}, "must not exceed the 4 clients"),
    ],
)
def test_settings_of_a_run_are_checked(
    folder: Path, changes: dict[str, str | int], message: str
) -> None:
    with pytest.raises(SettingInvalid, match=message):
        settings(folder, **{"privacy": "distributed", "epsilon": "1", **changes})


def test_a_survey_file_is_taken_as_it_is(folder: Path) -> None:
    survey = settings(folder, privacy="distributed", epsilon="1").survey
    survey.save(folder / "survey.json")
    run = settings(folder, privacy="distributed", survey=str(folder / "survey.json"))
    assert run.survey == survey
    for privacy in ("secure", "local", "trusted-server"):
        with pytest.raises(SettingInvalid, match="disagree"):
            settings(folder, privacy=privacy, survey=str(folder / "survey.json"))
