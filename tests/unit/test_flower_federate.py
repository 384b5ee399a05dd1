"""Answers that cannot be counted leave their site out, and the run goes on or says why not."""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from flwr.app import Message

from fedassay.engines.flower import conversation
from fedassay.engines.flower.records import Answered, reply_content
from fedassay.engines.flower.run import federate as run
from fedassay.errors import TooFewReports
from tests.clock import Clock
from tests.flowergrid import InProcessGrid
from tests.hospitals import charged, configs, exact_sum, hospitals, settings


class Forged(InProcessGrid):
    """The last site's answer to one stage is a stranger's bytes."""

    stage = "masked"

    def _deliver(self, message: Message) -> str:
        message_id = super()._deliver(message)
        node, stage, _ = self.heard[-1]
        if node == max(self.sites) and stage == self.stage:
            self._replies[message_id].content = reply_content(Answered(b"a stranger"))
        return message_id


@pytest.fixture
def folder() -> Iterator[Path]:
    """Like tmp_path, but others may enter it."""
    made = Path(tempfile.mkdtemp(prefix="fedassay-test-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "time", Clock())


def test_a_site_whose_masked_vector_cannot_be_read_is_left_out_of_the_exact_sum(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = hospitals(folder)
    found = run(Forged(configs(sites)), settings(folder))
    assert found.tally.counters.tolist() == exact_sum(found, sites[:3]).tolist()
    assert "left out at stage masked, MessageMalformed" in capsys.readouterr().out


def test_a_report_that_cannot_be_read_is_not_counted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = hospitals(folder, pinned=False)
    grid = Forged(configs(sites))
    grid.stage = "report"
    found = run(grid, settings(folder, privacy="site", epsilon="1", height=1, fanout=16))
    assert found.tally.reports == (3,)
    assert "left out at stage report" in capsys.readouterr().out
    assert len(charged(sites[3])) == 1


def test_too_few_reports_of_sites_that_all_answered_miss_nobody(folder: Path) -> None:
    sites = hospitals(folder, pinned=False, count=2)
    asked: dict[str, str | int] = {"privacy": "local", "epsilon": "5", "sites": 2}
    survey = replace(settings(folder, **asked, minimum_reports=2).survey, minimum_reports=1000)
    survey.save(folder / "survey.json")
    with pytest.raises(TooFewReports, match=r"1,?000") as error:
        run(
            InProcessGrid(configs(sites)), settings(folder, **asked, survey=f"{folder}/survey.json")
        )
    assert "Missing sites" not in str(error.value)
