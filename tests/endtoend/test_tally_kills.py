"""A collector killed at any moment goes on from there to the same tally.

A child process collects single reports, and is killed with SIGKILL: before or after one of its
system calls in turn (ptrace), and at random times. Then another goes on, which may be killed
too. In CI a part of the stops, with FEDASSAY_VERIFY=1 more than 100 random moments.
"""

from pathlib import Path

import pytest

from fedassay import Tally
from fedassay.engines import report_files
from fedassay.engines.bulk_tally import BulkBuilder
from fedassay.engines.report_files import collect
from fedassay.engines.unfinished import Collected, Unfinished
from fedassay.tally_file import KeptTally
from tests.kills import Announce, can_trace, killed_after, killed_at_call, moments
from tests.laws import IS_FULL
from tests.singles import as_bytes, made
from tests.surveys import local_survey

STEP = 3 if IS_FULL else 211
TIMED = 120 if IS_FULL else 8
SURVEY = local_survey(cells=9, fanouts=(3, 3), kinds="grr oue")
SENT = made(SURVEY, 1200)
WHOLE = Tally.of(SURVEY, SENT)

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


class Study:
    """Two files of reports that share some, and the tally that they are collected in."""

    def __init__(self, folder: Path) -> None:
        self.files = [folder / "a.fa", folder / "b.fa"]
        for path, blocks in zip(self.files, (SENT[:700], SENT[600:]), strict=True):
            path.write_bytes(as_bytes(blocks))
        self.place = folder / "study.tally"

    def work(self, announce: Announce) -> None:
        self.collect()
        announce()

    def collect(self) -> Collected:
        kept = KeptTally.load(self.place) if self.place.exists() else KeptTally.empty(SURVEY)
        builder = BulkBuilder(kept.tally, SURVEY)
        unfinished = Unfinished(self.place, builder, every=150)
        collected = collect(builder, self.files, unfinished=unfinished)
        kept.holding(builder.tally()).save(self.place)
        unfinished.finish()
        return collected

    def check(self) -> int:
        """Collect what is left; how much had not to be counted again."""
        collected = self.collect()
        assert KeptTally.load(self.place).tally == WHOLE
        assert not self.place.with_name("study.tally.parts").exists()
        self.place.unlink()
        return collected.resumed


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.setattr(report_files, "READ_BYTES", 5000)
    return Study(tmp_path)


def test_a_kill_at_any_moment_and_a_resume_give_the_same_tally(study: Study) -> None:
    resumed = []
    if can_trace():
        stop, alive = 1, True
        while alive:
            alive, _ = killed_at_call(study.work, stop)
            resumed.append(study.check())
            stop += STEP
    for seconds in moments(TIMED, 0.1):
        killed_after(study.work, seconds)
        killed_after(study.work, seconds / 2)
        resumed.append(study.check())
    # Some of the kills came before the first part, and some after it.
    assert 0 in resumed
    assert max(resumed) >= 150


def test_a_note_that_runs_ahead_of_its_part_loses_reports(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the check above would see: a collector that skips what it has not counted."""
    monkeypatch.setattr(Unfinished, "opened", lambda self, path, stream: 68)
    study.collect()
    assert KeptTally.load(study.place).tally != WHOLE
