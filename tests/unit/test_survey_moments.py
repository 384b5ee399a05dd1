"""Secure moments in a survey: only exact sums, only among five honest sites or more."""

import pytest

import fedassay
from fedassay.errors import FileInvalid, SettingInvalid, SurveyRefused
from fedassay.survey_json import survey_from_json
from fedassay.survey_moments import SiteMoments


def asked(**settings: object) -> fedassay.Survey:
    small = {"height": 3} | ({} if "privacy" in settings else {"smallest_cell": 0})
    return fedassay.new_survey(site_moments=True, **small, **settings)  # type: ignore[arg-type]  # settings by name


def test_a_survey_with_moments_waits_for_five_honest_sites() -> None:
    assert asked().minimum_reports == 5
    assert asked(colluders=2).minimum_reports == 7


@pytest.mark.parametrize(
    "settings", [{"minimum_reports": 4}, {"minimum_reports": 6, "colluders": 2}]
)
def test_fewer_honest_sites_could_be_solved_for_and_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(SettingInvalid, match="at least 5 honest sites"):
        asked(**settings)


@pytest.mark.parametrize("privacy", ["distributed", "site", "local"])
def test_moments_are_sums_without_noise_and_go_with_no_other_privacy(privacy: str) -> None:
    with pytest.raises(SettingInvalid, match="sums without noise"):
        asked(privacy=privacy, epsilon=1, clients=100)


def test_a_stranger_cannot_write_a_survey_that_tells_more() -> None:
    survey = asked()
    written = survey.to_json()
    assert survey_from_json(written) == survey
    for change in (
        {"minimum_reports": 4},
        {"moments": {"metrics": ["roc_auc"], "most_sites": 4}},
        {"moments": {"metrics": ["roc_auc", "roc_auc"], "most_sites": 63}},
        {"moments": {"metrics": ["prevalence"], "most_sites": 63}},
        {"moments": {"metrics": "roc_auc", "most_sites": 63}},
        {"moments": {"metrics": [], "most_sites": 63}},
        {"moments": {"metrics": ["roc_auc"], "most_sites": 63, "all": True}},
        {"moments": None},
    ):
        with pytest.raises(FileInvalid):
            survey_from_json({**written, **change})


def test_a_survey_without_moments_says_nothing_of_them() -> None:
    plain = fedassay.new_survey(height=3, smallest_cell=0)
    assert "moments" not in plain.to_json()
    assert plain.moment_words == 0
    assert asked().moment_words == 5 * 4
    assert plain.fingerprint != asked(minimum_reports=5).fingerprint


def test_there_is_room_for_twice_the_sites_that_are_expected() -> None:
    for sites in (1, 31, 32, 100, 5000):
        room = SiteMoments.for_sites(sites).most_sites
        assert room >= min(2 * sites, 2**14)
        assert room >= 63


def test_a_client_that_cannot_find_moments_answers_nothing_and_spends_nothing() -> None:
    from fedassay.client import OPEN_POLICY, answer_counts
    from fedassay.randomness import SystemRandomness

    charged = []

    class Book:
        def charge(self, survey: fedassay.Survey) -> None:
            charged.append(survey)

    survey = asked()
    counts = survey.grid.count(fedassay.Examples([0, 1], [0.2, 0.7]))
    with pytest.raises(SurveyRefused, match="no way to find its own"):
        answer_counts(
            survey, counts, randomness=SystemRandomness(), policy=OPEN_POLICY, account=Book()
        )
    assert charged == []
