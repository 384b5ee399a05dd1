"""Site privacy over Flower: reports that may be seen, or only their sum."""

import shutil
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples.four_hospitals.hospitals import open_hospital, share_roster

from fedassay import Polya
from fedassay.engines.flower import conversation
from fedassay.engines.flower.participant import read_survey
from fedassay.engines.flower.records import Declined
from fedassay.engines.flower.run import federate
from fedassay.engines.flower.site import Site
from fedassay.errors import RoundAborted, SettingInvalid, SurveyRefused
from fedassay.files import canonical
from tests.clock import Clock
from tests.flowergrid import InProcessGrid
from tests.hospitals import (
    ask,
    charged,
    configs,
    edit,
    exact_sum,
    hospitals,
    question,
    rows,
    settings,
)
from tests.surveys import small_survey
from tests.unit.test_shuffler import shuffled_survey

ASKED: dict[str, str | int] = {
    "privacy": "site", "epsilon": "1", "minimum_reports": 0, "height": 1, "fanout": 16,
}  # fmt: skip


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="fedassay-test-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "time", Clock())


def test_every_site_is_seen_by_its_name_with_the_whole_noise_of_its_own(folder: Path) -> None:
    sites = hospitals(folder)
    grid = InProcessGrid(configs(sites))
    assessment = federate(grid, settings(folder, **ASKED))
    tally = assessment.tally
    assert {stage for _, stage, _ in grid.heard} == {"report"}
    assert sorted(tally.sites) == ["h0", "h1", "h2", "h3"]
    assert np.array_equal(sum(tally.sites.values()), tally.counters)
    noises = [tally.sites[site.name] - site.counters(assessment.survey) for site in sites]
    # Some counter of each moves, none moves alike, and none further than e^-40 allows.
    assert all(noise.any() and np.abs(noise).max() < 60 for noise in noises)
    assert len({noise.tobytes() for noise in noises}) == 4
    assert [charged(site) for site in sites] == [[Fraction(1)]] * 4


def test_one_site_is_enough_where_it_protects_itself(folder: Path) -> None:
    sites = hospitals(folder, pinned=False, count=1)
    assessment = federate(InProcessGrid(configs(sites)), settings(folder, **ASKED, sites=1))
    assert assessment.tally.reports == (1,)
    assert assessment.is_complete


def test_a_site_that_stays_away_takes_nothing_from_the_others_promise(folder: Path) -> None:
    sites = hospitals(folder)
    grid = InProcessGrid(configs(sites), lambda node, at: node == 2)
    assessment = federate(grid, settings(folder, **ASKED))
    assert sorted(assessment.tally.sites) == ["h0", "h2", "h3"]
    assert all(isinstance(m, Polya) and m.noise_shares == 1 for m in assessment.survey.mechanisms)


def test_two_sites_of_one_name_are_told_apart_by_number(folder: Path) -> None:
    sites = hospitals(folder, pinned=False, count=2)
    for site in sites:
        edit(site, f'data-id = "{site.name}"', 'data-id = "same"')
    assessment = federate(InProcessGrid(configs(sites)), settings(folder, **ASKED, sites=2))
    assert sorted(assessment.tally.sites) == ["same (1)", "same (2)"]


def test_with_sum_only_the_server_sees_the_noisy_sum_and_no_site(folder: Path) -> None:
    sites = hospitals(folder)
    grid = InProcessGrid(configs(sites))
    run = settings(folder, **ASKED | {"minimum_reports": 3}, sum_only=True)
    assessment = federate(grid, run)
    assert "masked" in {stage for _, stage, _ in grid.heard}
    assert "report" not in {stage for _, stage, _ in grid.heard}
    assert assessment.tally.sites == {}
    noise = assessment.tally.counters - exact_sum(assessment, sites)
    assert noise.any()
    assert assessment.guarantee.sentence().endswith(
        "Besides, only the sum over at least 3 reports is revealed, if you trust secure "
        "aggregation, or whoever adds up the reports."
    )


def test_with_sum_only_too_few_sites_reveal_nothing(folder: Path) -> None:
    sites = hospitals(folder)
    grid = InProcessGrid(configs(sites), lambda node, at: node > 2)
    with pytest.raises(RoundAborted, match="3 clients must have announced keys; 2 have"):
        federate(grid, settings(folder, **ASKED | {"minimum_reports": 3}, sum_only=True))


@pytest.mark.parametrize("road", [b"site", b"local", b"trusted-server"])
def test_a_server_that_promised_the_sum_only_is_shown_no_report(folder: Path, road: bytes) -> None:
    (site,) = hospitals(folder, pinned=False, count=1)
    edit(site, "trusted-server = false", "trusted-server = true")
    survey = settings(folder, **ASKED | {"minimum_reports": 3}, sum_only=True).survey
    reply = ask(site, "report", question(folder, survey=canonical(survey.to_json()), payload=road))
    assert isinstance(reply, Declined)
    assert charged(site) == []


@pytest.mark.parametrize("road", [b"local", b"trusted-server"])
def test_a_report_with_site_noise_leaves_by_its_own_road_only(folder: Path, road: bytes) -> None:
    (site,) = hospitals(folder, pinned=False, count=1)
    edit(site, "trusted-server = false", "trusted-server = true")
    survey = settings(folder, **ASKED).survey
    reply = ask(site, "report", question(folder, survey=canonical(survey.to_json()), payload=road))
    assert isinstance(reply, Declined)


def test_sum_only_is_true_or_false(folder: Path) -> None:
    with pytest.raises(SettingInvalid, match="sum-only must be true or false"):
        settings(folder, **ASKED, sum_only="yes")


def test_two_steps_are_asked_of_sites_that_are_seen_in_both(folder: Path) -> None:
    sites = [open_hospital(folder / f"h{i}", rows(4000, seed=i), colluders=0) for i in range(4)]
    share_roster(folder, sites)
    asked = ASKED | {"height": 0, "fanout": 0, "steps": 2, "examples": 16_000}
    assessment = federate(InProcessGrid(configs(sites)), settings(folder, **asked))
    assert assessment.first is not None
    for step in (assessment.first, assessment):
        assert sorted(step.tally.sites) == ["h0", "h1", "h2", "h3"]
    # The total is charged before the first, and the second costs nothing more.
    assert [charged(site) for site in sites] == [[Fraction(1), Fraction(0)]] * 4


def test_a_site_limits_its_patients_before_it_counts(folder: Path) -> None:
    (hospital,) = hospitals(folder, pinned=False, count=1)
    path = hospital.folder / "scores" / "scores.parquet"
    table = pq.read_table(path)
    patients = np.arange(table.num_rows) // 3
    pq.write_table(table.append_column("who", pa.array(patients)), path)
    asked = settings(folder, **ASKED, unit="patient", max_examples=2).survey
    counts, _ = Site.from_config({**hospital.config, "patient": "who"}).rows(asked)
    assert counts.sum() == np.minimum(np.bincount(patients), 2).sum()
    with pytest.raises(SettingInvalid, match=r"\(--patient COL\)"):
        Site.from_config(hospital.config).rows(asked)


def test_a_site_refuses_a_survey_whose_reports_need_a_shuffler() -> None:
    with pytest.raises(SurveyRefused, match="no shuffler between them and the server"):
        read_survey(canonical(shuffled_survey().to_json()))
    other = small_survey()
    assert read_survey(canonical(other.to_json())).fingerprint == other.fingerprint
