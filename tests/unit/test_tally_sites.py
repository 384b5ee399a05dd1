"""Sites that may be seen are kept by name, all or none, and add up to the sum."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedassay
from fedassay import Assessment, Examples, Survey, SystemRandomness, Tally
from fedassay import tally as tally_module
from fedassay.client import OPEN_POLICY, answer
from fedassay.decoding import DecodeOptions
from fedassay.engines.report_files import ReportFiles, collect, site_names, write_answer
from fedassay.errors import (
    FileInvalid,
    ReportDuplicate,
    SettingInvalid,
    SiteDuplicate,
    SurveyMismatch,
    TallyClosed,
)
from fedassay.examples import ScoredClients, client_names
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Polya
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import tally_clients
from fedassay.survey_json import survey_from_json
from fedassay.survey_moments import SiteMoments
from fedassay.tally import TallyBuilder
from fedassay.tally_file import KeptTally
from fedassay.wire import Report
from tests.surveys import site_survey, small_survey

SURVEY = site_survey()


def report(number: int, survey: Survey = SURVEY) -> Report:
    counters = np.arange(8, dtype=np.int64) * number + 100
    return Report(survey.fingerprint, bytes([number]) * 16, counters)


def built(names: dict[int, str | None], survey: Survey = SURVEY) -> Tally:
    builder = TallyBuilder(Tally.zero(survey), survey)
    for number, name in names.items():
        builder.add(report(number, survey), name=name)
    return builder.tally()


def listed(tally: Tally) -> dict[str, list[int]]:
    return {name: counters.tolist() for name, counters in tally.sites.items()}


def test_a_tally_keeps_every_sites_counters_by_name() -> None:
    tally = built({1: "north", 2: None})
    assert listed(tally) == {
        "north": report(1).counters.tolist(),
        "020202020202": report(2).counters.tolist(),
    }
    assert tally.counters.tolist() == (report(1).counters + report(2).counters).tolist()


@pytest.mark.parametrize("survey", [site_survey(sum_only=True, minimum_reports=2), small_survey()])
def test_nobody_is_kept_where_only_the_sum_may_be_seen(survey: Survey) -> None:
    width = survey.hierarchy.width
    builder = TallyBuilder(Tally.zero(survey), survey)
    ones = np.ones(width, dtype=np.int64)
    builder.add(Report(survey.fingerprint, bytes(16), ones), name="north")
    assert builder.tally().sites == {}


def test_tallies_of_sites_add_up_in_any_order() -> None:
    left, right = built({1: "north"}), built({2: "south", 3: "east"})
    assert left + right == right + left == built({1: "north", 2: "south", 3: "east"})
    assert Tally.zero(SURVEY) + left == left


def test_a_site_that_sends_its_report_twice_counts_once() -> None:
    with pytest.raises(ReportDuplicate, match="a report counts once"):
        TallyBuilder(built({1: "north"}), SURVEY).add(report(1), name="north")


def test_a_site_that_sends_another_report_is_refused_by_name() -> None:
    with pytest.raises(SiteDuplicate, match="a site counts once; 'north' is already in the tally"):
        TallyBuilder(built({1: "north"}), SURVEY).add(report(2), name="north")
    with pytest.raises(SiteDuplicate, match="rename one"):
        built({1: "north"}) + built({2: "north"})


def test_another_surveys_report_is_refused() -> None:
    with pytest.raises(SurveyMismatch):
        TallyBuilder(Tally.zero(SURVEY), SURVEY).add(report(1, small_survey()), name="north")


def test_sites_are_kept_all_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    some = built({1: "north"})
    unknown = Tally(SURVEY.fingerprint, (2,), np.zeros(8, dtype=np.int64))
    assert (some + unknown).sites == {}
    builder = TallyBuilder(unknown, SURVEY)
    builder.add(report(1), name="north")
    assert builder.tally().sites == {}
    monkeypatch.setattr(tally_module, "MOST_SITES", 2)
    assert len(built({1: "a", 2: "b"}).sites) == 2
    assert built({1: "a", 2: "b", 3: "c"}).sites == {}
    assert (built({1: "a", 2: "b"}) + built({3: "c"})).sites == {}
    monkeypatch.setattr(tally_module, "MOST_SITE_COUNTERS", 8)
    assert built({1: "a", 2: "b"}).sites == {}


def test_names_of_sites_are_short_and_each_there_once() -> None:
    names = client_names(["a" * 300, "a" * 250, 7, "7", None, ""])
    assert len(set(names)) == 6
    assert max(map(len, names)) <= 200


# --- Files ---------------------------------------------------------------------------------------


def test_a_tally_file_keeps_its_sites() -> None:
    kept = KeptTally(SURVEY, built({1: "north", 2: "süd"}))
    assert KeptTally.from_bytes(kept.to_bytes()).tally == kept.tally
    assert KeptTally.from_bytes(KeptTally.empty(SURVEY).to_bytes()).tally.sites == {}


def test_reports_that_protect_themselves_may_be_added_after_a_release() -> None:
    kept = KeptTally(SURVEY, built({1: "north"})).released()
    assert kept.holding(built({1: "north", 2: "south"})).reports == 2
    hidden = site_survey(sum_only=True, minimum_reports=2)
    closed = KeptTally(hidden, built({1: None, 2: None}, hidden)).released()
    with pytest.raises(TallyClosed):
        closed.holding(built({1: None, 2: None, 3: None}, hidden))


def assessed(tally: Tally) -> Assessment:
    return Assessment(SURVEY, tally, DecodeOptions())


def test_an_assessment_keeps_its_sites_and_decodes_each(tmp_path: Path) -> None:
    tally = built({1: "north", 2: "south"})
    assessed(tally).save(tmp_path / "a.json")
    again = Assessment.load(tmp_path / "a.json")
    assert listed(again.tally) == listed(tally)
    found = again.site_histograms()
    assert {name: round(histogram.total) for name, histogram in found.items()} == {
        name: int(counters.sum()) for name, counters in tally.sites.items()
    }


def test_a_site_is_decoded_below_the_minimum_that_the_sum_waits_for() -> None:
    survey = site_survey(minimum_reports=2)
    tally = built({1: "north", 2: "south"}, survey)
    assert len(Assessment(survey, tally, DecodeOptions()).site_histograms()) == 2


def wrong_sum(content: dict[str, Any]) -> None:
    content["sites"]["north"][0] += 1


def one_missing(content: dict[str, Any]) -> None:
    del content["sites"]["north"]


def no_name(content: dict[str, Any]) -> None:
    content["sites"][""] = content["sites"].pop("north")


def too_short(content: dict[str, Any]) -> None:
    content["sites"]["north"].pop()


def no_object(content: dict[str, Any]) -> None:
    content["sites"] = [1, 2]


def not_seen(content: dict[str, Any]) -> None:
    content["survey"] |= {"sum_only": True, "minimum_reports": 2}


@pytest.mark.parametrize("edit", [wrong_sum, one_missing, no_name, too_short, no_object, not_seen])
def test_an_assessment_whose_sites_do_not_fit_is_refused(edit: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assessed(built({1: "north", 2: "south"})).save(path)
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
    with pytest.raises(FileInvalid, match=r"sites|may be seen"):
        Assessment.load(path)


def test_report_files_are_named_as_their_sites(tmp_path: Path) -> None:
    rows = Examples([0, 1], [0.2, 0.7])
    paths = [tmp_path / "north.fa", tmp_path / "south.fa"]
    for path in paths:
        made = answer(SURVEY, rows, randomness=SystemRandomness(), policy=OPEN_POLICY)
        write_answer(made, path)
    assert sorted(ReportFiles([tmp_path]).tally(SURVEY).sites) == ["north", "south"]
    builder = TallyBuilder(Tally.zero(SURVEY), SURVEY)
    assert collect(builder, [*paths, paths[0]]).counted == 2
    other = tmp_path / "again" / "south.fa"
    other.parent.mkdir()
    write_answer(answer(SURVEY, rows, randomness=SystemRandomness(), policy=OPEN_POLICY), other)
    found = collect(builder, [other])
    assert (found.counted, found.rejected) == (0, 1)
    assert "SiteDuplicate: a site counts once; 'south'" in found.complaints[0]
    assert site_names([Path("a/r.fa"), Path("b/r.fa")]) == ["a/r", "b/r"]


def test_answers_by_name_are_kept_by_name() -> None:
    made = {name: fedassay.answer(SURVEY, [0, 1], [0.2, 0.7]) for name in ("north", "south")}
    assert sorted(fedassay.tally_answers(SURVEY, made).tally.sites) == ["north", "south"]
    assert len(fedassay.tally_answers(SURVEY, list(made.values())).tally.sites) == 2


# --- Simulation and survey ----------------------------------------------------------------


def test_a_simulation_says_which_site_holds_each_row() -> None:
    labels, scores = [0, 1] * 50, [i / 100 for i in range(100)]
    with pytest.raises(SettingInvalid, match=r"Add clients= \(--client COL\)"):
        fedassay.simulate(labels, scores, privacy="site", epsilon=1)


def test_sites_without_names_are_numbered() -> None:
    rows = Examples([0, 1, 1], [0.1, 0.2, 0.3])
    cohort = ScoredClients(rows, np.array([0, 1, 1]), 2)
    tally = tally_clients(SURVEY, cohort, randomness=SimulatedRandomness(1))
    assert sorted(tally.sites) == ["1", "2"]
    assert np.array_equal(np.sum([*tally.sites.values()], axis=0), tally.counters)


def changed(**changes: Any) -> Survey:
    return replace(SURVEY, **changes)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"colluders": 1, "minimum_reports": 3}, "holds whatever others do"),
        ({"sum_only": True}, "the sum of one report is that report"),
        ({"mechanisms": (Polya(Fraction(1), 1, 2),)}, "sized for one site = 1 shares; found 2"),
        ({"mechanisms": (Polya(Fraction(1), 2, 1),)}, "sensitivity"),
        ({"unit": fedassay.Unit(fedassay.UnitKind.CLIENT, 1)}, "not whole sites"),
        (
            {"level_policy": OneLevel((Fraction(1),))},
            "every site reports on every level",
        ),
    ],
)
def test_a_site_survey_that_speaks_of_others_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingInvalid, match=says):
        changed(**changes)


def test_sum_only_goes_with_site_privacy() -> None:
    with pytest.raises(SettingInvalid, match="sum_only goes with site privacy"):
        replace(small_survey(minimum_reports=2), sum_only=True)


def test_a_site_survey_survives_its_file_and_a_hostile_one_does_not() -> None:
    for survey in (SURVEY, site_survey(sum_only=True, minimum_reports=3)):
        again = survey_from_json(survey.to_json())
        assert again == survey
        assert again.fingerprint == survey.fingerprint
    # minimum_reports and colluders make no difference to a site's own noise.
    (mechanism,) = survey_from_json(site_survey(minimum_reports=50).to_json()).mechanisms
    assert isinstance(mechanism, Polya)
    assert mechanism.noise_shares == 1
    content = small_survey().to_json() | {"sum_only": False}
    with pytest.raises(FileInvalid, match=r"one way|sum_only"):
        survey_from_json(content)


def test_what_a_site_is_promised_names_nobody_to_trust() -> None:
    promise = SURVEY.guarantee
    assert (promise.epsilon, promise.trust) == (Fraction(1), "nobody")
    assert promise.participant_epsilon is None
    assert promise.sentence() == (
        "1-differential privacy for one example of a site (add or remove neighbours): every site "
        "adds the whole noise to its own counts, so that it holds whoever sees its report and "
        "whatever other sites and the server do."
    )


def test_a_survey_that_saw_no_site_says_how_to_ask_for_some() -> None:
    survey = small_survey()
    found = Assessment(survey, Tally.zero(survey), DecodeOptions())
    assert found.exact is None
    for ask in (found.plot_sites, lambda: found.heterogeneity("roc_auc")):
        with pytest.raises(
            SettingInvalid, match=r"of single sites under secure privacy .*site-moments"
        ):
            ask()


def test_sums_of_moments_have_no_forest_plot() -> None:
    survey = replace(small_survey(minimum_reports=20), moments=SiteMoments())
    found = Assessment(survey, Tally.zero(survey), DecodeOptions())
    with pytest.raises(
        SettingInvalid, match=r"only sums of moments are known\. Ask with privacy site"
    ):
        found.plot_sites()
