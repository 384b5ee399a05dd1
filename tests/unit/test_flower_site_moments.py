"""Secure moments over Flower: the spread of sites, and no site."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fedassay.engines.flower import conversation
from fedassay.engines.flower.run import federate
from fedassay.errors import SettingInvalid
from fedassay.sites import SummedSites
from fedassay.sites.moment_words import moment_words
from tests.clock import Clock
from tests.flowergrid import InProcessGrid
from tests.hospitals import configs, hospitals, settings

ASKED: dict[str, str | int | bool] = {
    "privacy": "secure", "minimum_reports": 0, "sites": 6, "site_moments": True,
    "smallest_cell": "0",
}  # fmt: skip


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="fedassay-test-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "time", Clock())


def test_sites_add_their_moments_by_secure_aggregation(folder: Path) -> None:
    sites = hospitals(folder, count=6)
    assessment = federate(InProcessGrid(configs(sites)), settings(folder, **ASKED))
    survey = assessment.survey
    assert survey.minimum_reports == 5
    leaves = [site.counters(survey) for site in sites]
    words = [moment_words(survey, survey.hierarchy.split(each)[-1]) for each in leaves]
    assert assessment.tally.moments.tolist() == np.sum(words, axis=0).tolist()
    assert isinstance(assessment.sites, SummedSites)
    assert assessment.heterogeneity("roc_auc").sites == 6
    assert not assessment.tally.sites


def test_a_run_with_fewer_honest_sites_than_five_is_refused(folder: Path) -> None:
    with pytest.raises(SettingInvalid, match="at least 5 honest sites"):
        settings(folder, **ASKED | {"minimum_reports": 4})
    with pytest.raises(SettingInvalid, match="site-moments must be true or false"):
        settings(folder, **ASKED | {"site_moments": "yes"})
