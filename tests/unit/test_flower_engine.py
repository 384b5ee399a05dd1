"""The Flower engine in one process: the same handlers, without SuperLink and SuperNodes."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from examples.four_hospitals.__main__ import report
from examples.four_hospitals.hospitals import LABEL, SCORE, Hospital, open_hospital
from flwr.app import Message

from fedassay import Examples
from fedassay.engines.flower import conversation
from fedassay.engines.flower.records import Declined
from fedassay.engines.flower.records import read_reply as reply_of
from fedassay.engines.flower.run import federate
from fedassay.errors import RoundAborted, TooFewReports
from tests.clock import Clock
from tests.flowergrid import InProcessGrid, written
from tests.hospitals import (
    CANARY,
    STAGES,
    charged,
    configs,
    edit,
    exact_sum,
    hospitals,
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
