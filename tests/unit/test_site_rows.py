"""Which sites a simulation may show by their exact counts."""

from dataclasses import replace

import numpy as np
import pytest

import fedassay
from fedassay import Examples, Privacy, SurveyRequest
from fedassay.errors import SettingInvalid
from fedassay.examples import ScoredClients
from fedassay.mechanisms import Unit, UnitKind
from fedassay.simulation.site_rows import check_shown

MOST_SITES = 2**12

ROWS = Examples([0, 1, 1], [0.1, 0.2, 0.9])
SITES = ScoredClients(ROWS, np.array([0, 1, 1]), 2)
SECURE = SurveyRequest(privacy=Privacy.SECURE, clients=2)


def test_sites_are_shown_by_exact_counts_of_all_their_rows() -> None:
    check_shown(SECURE, SITES)
    with pytest.raises(SettingInvalid, match=r"goes with secure privacy; found local"):
        check_shown(replace(SECURE, privacy=Privacy.LOCAL), SITES)
    unit = Unit(UnitKind.CLIENT, 1)
    with pytest.raises(SettingInvalid, match=r"count all of their rows; found client as the unit"):
        check_shown(replace(SECURE, unit=unit), SITES)


@pytest.mark.parametrize(
    "cohort",
    [ScoredClients(ROWS, None, 3), ScoredClients(ROWS, np.array([0, 1, 1]), MOST_SITES + 1)],
)
def test_rows_say_whose_they_are_and_sites_are_not_a_crowd(cohort: ScoredClients) -> None:
    with pytest.raises(
        SettingInvalid, match=r"Name the column of sites: clients= \(--client COL\)"
    ):
        check_shown(SECURE, cohort)


def test_the_door_asks_before_it_shows() -> None:
    with pytest.raises(SettingInvalid, match=r"goes with secure privacy; found site"):
        fedassay.simulate(
            [0, 1, 1, 0], [0.1, 0.2, 0.9, 0.3], clients=[0, 0, 1, 1], privacy="site", epsilon=1,
            show_sites=True,
        )  # fmt: skip
