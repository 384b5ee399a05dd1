"""A page is written of every assessment that there can be, and says what is missing."""

import base64
import hashlib
import json
import re
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import fedassay
from fedassay import Assessment, Calibrator, DecodeOptions, Examples
from fedassay.errors import FileInvalid, SettingInvalid, TooFewReports
from fedassay.estimate import Interval
from fedassay.ledger import Ledger, Part
from fedassay.randomness import SimulatedRandomness
from fedassay.report.forest_figure import Row, limits
from fedassay.report.material import ReportDetails
from fedassay.report.page import SECTIONS, report_page, write_report
from fedassay.simulation.simulate import tally_clients
from fedassay.sites import histogram_effects, pool_sites
from tests.pages import PRIVACY, assessment
from tests.surveys import cohort_of, local_survey, small_survey
from tests.tables import ROOT

MOST_BYTES = 400_000


def of_rows(labels: list[int], scores: list[float], cells: int = 8) -> Assessment:
    survey = small_survey(cells)
    rows = cohort_of(Examples(labels, scores))
    tally = tally_clients(survey, rows, randomness=SimulatedRandomness(0))
    return Assessment(survey, tally, DecodeOptions(), (0.5,))


@cache
def page_of(privacy: str) -> str:
    return report_page(assessment(privacy))


def words(page: str) -> str:
    """What is read of a page, without its style, its script and its data."""
    text = re.sub(r"<(style|script)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


@pytest.mark.parametrize("privacy", PRIVACY)
def test_every_section_is_there_in_the_order_of_reading(privacy: str) -> None:
    page = page_of(privacy)
    # Sites where they may be seen, groups where the survey has some.
    left_out = {"groups"} if privacy == "site" else {"groups", "sites"}
    there = [name for name in SECTIONS if name not in left_out]
    places = [page.index(f'<section id="{name}"') for name in there]
    assert re.findall('<section id="(.*?)"', page) == there
    assert re.findall('<a href="#(.*?)">', page)[1:] == there
    assert places == sorted(places)
    assert len(page.encode()) < MOST_BYTES


def test_groups_have_a_section_where_the_survey_has_some() -> None:
    generator = np.random.default_rng(0)
    labels, scores = generator.integers(0, 2, 2000), generator.random(2000)
    result = fedassay.simulate(labels, scores, group=["<F>", "M"] * 1000, height=3, smallest_cell=0)
    page = report_page(result)
    assert '<section id="groups"' in page
    text = words(page)
    assert "&lt;F&gt;" in page
    assert "no difference is sure, all 8 comparisons counted" in text
    assert "(missing) 0" in text


def test_the_appendix_has_the_entries_of_a_ledger_about_this_survey(tmp_path: Path) -> None:
    result, other = assessment("distributed"), assessment("local")
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.charge(result.survey, Part("<ward>"), who="board")
    ledger.charge(other.survey, Part("elsewhere"))
    page = report_page(result, ledger=ledger.entries())
    text = words(page)
    assert "What was charged for this survey" in text
    assert "&lt;ward&gt;" in page
    assert "elsewhere" not in text
    assert "Ledger" not in words(report_page(result))
    assert "has no entry about this survey" in words(
        report_page(assessment("site"), ledger=ledger.entries())
    )


def test_the_policy_allows_its_own_style_and_script_and_nothing_else() -> None:
    page = page_of("secure")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    assert policy.replace("&#x27;", "'") == (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def test_the_page_in_docs_has_todays_style_and_script() -> None:
    """Make it again with: python -m experiments.report_pictures."""
    example = (ROOT / "docs" / "report-example.html").read_text("utf-8")
    for tag in ("style", "script"):
        (there,), (today,) = (
            re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
            for text in (example, page_of("secure"))
        )
        assert there == today
    assert len(example.encode()) < MOST_BYTES


def test_the_page_names_no_address_and_no_file_outside() -> None:
    page = page_of("secure")
    assert re.findall(r'(?:src|href)="(?!#)[^"]*"', page) == []
    assert set(re.findall(r"https?://[\w./]+", page)) <= {"http://www.w3.org/2000/svg"}


def test_the_data_block_is_json_that_cannot_end_its_element() -> None:
    page = page_of("distributed")
    (block,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page)
    assert "<" not in block
    assert json.loads(block)["totals"] == pytest.approx(
        assessment("distributed").histogram().counts.sum(axis=1)
    )


def test_headline_figures_are_the_assessments() -> None:
    result = assessment("distributed")
    page = words(page_of("distributed"))
    for label, name in (("ROC AUC", "roc_auc"), ("Brier score", "brier")):
        low, high = result[name].interval()
        assert re.search(
            rf"{label}[a-z ;,]+ {result[name].value:.3f} {low:.3f} to {high:.3f}", page
        )


def test_what_people_said_is_in_the_page_and_what_nobody_said_is_marked() -> None:
    details = ReportDetails(model="sepsis 2.1", outcome="sepsis", invited=9000)
    page = words(report_page(assessment("secure"), details=details))
    assert "The model sepsis 2.1 (outcome: sepsis ) was assessed" in page
    assert "Clients invited 9,000" in page
    assert "Dropped out, or declined 6,000" in page
    assert "Period not named" in page
    assert "open: for you to write" in page


def test_without_positives_the_page_says_so() -> None:
    page = words(report_page(of_rows([0] * 40, [0.1, 0.6] * 20)))
    assert "There are no curves: there must be positives" in page
    assert "There is no decision curve" in page
    assert "not enough data" in page


def test_what_is_drowned_in_noise_is_missing_with_its_reason() -> None:
    survey = local_survey(cells=8)
    rows = cohort_of(Examples([0, 1] * 20, [0.3, 0.7] * 20))
    tally = tally_clients(survey, rows, randomness=SimulatedRandomness(1))
    page = words(report_page(Assessment(survey, tally, DecodeOptions(), (0.5,))))
    assert "must stand clear of the privacy noise" in page


@pytest.mark.parametrize("cells", [1, 2])
def test_one_bucket_is_enough_for_a_page(cells: int) -> None:
    page = words(report_page(of_rows([0, 1] * 30, [0.2, 0.7] * 30, cells)))
    assert "In words" in page


def test_no_thresholds_are_as_good_as_one() -> None:
    page = report_page(replace(assessment("secure"), thresholds=()))
    assert 'id="number" type="number" min="0" max="1" step="any" value="0.5"' in page


def test_one_row_is_enough_for_a_page() -> None:
    assert "0 rows" not in words(report_page(of_rows([1], [0.3])))


def test_a_calibrator_shows_before_and_after() -> None:
    result = assessment("secure")
    page = words(report_page(result, calibrator=result.calibrate("sigmoid")))
    assert re.search(r"By sigmoid, the calibration error \(ECE, debiased\) goes from 0\.\d+", page)
    assert "bins after calibration" in page
    assert "No calibrator was given" in words(page_of("secure"))
    same = Calibrator(
        fedassay.Method.NONE, np.array([0.0, 1.0]), np.array([0.0, 1.0]), reason="<x>"
    )
    page = report_page(result, calibrator=same)
    assert "Why: <bdi>&lt;x&gt;</bdi>" in page
    assert "bins after calibration" not in page


def test_sites_that_may_be_seen_are_listed_with_what_a_new_one_may_show() -> None:
    result = assessment("site")
    pooled = pool_sites(histogram_effects("roc_auc", result.site_histograms()))
    page = words(page_of("site"))
    assert "a new site like these it may be {:.3f} to {:.3f}".format(*pooled.prediction) in page
    assert f"ROC AUC {pooled.mean:.3f} ({pooled.interval.low:.3f}" in page
    for name in result.site_histograms():
        assert f"<bdi>{name}</bdi>" in page_of("site")
    assert "Sites" not in words(page_of("distributed"))


def test_a_site_that_is_too_small_is_listed_and_its_name_is_text() -> None:
    generator = np.random.default_rng(3)
    scores = generator.random(900)
    names = np.where(np.arange(900) % 3 == 0, "north", "south").astype(object)
    names[:4] = "<script>tiny</script>"
    result = fedassay.simulate(
        generator.random(900) < scores,
        scores,
        clients=names,
        privacy="site",
        epsilon=4,
        steps=1,
        height=4,
        seed=0,
    )
    page = report_page(result)
    assert "<script>tiny" not in page
    assert re.search(r"<li><bdi>&lt;script&gt;tiny&lt;/script&gt;</bdi>: ", page)


def test_sums_of_moments_tell_of_a_new_site_and_show_none() -> None:
    generator = np.random.default_rng(7)
    scores = generator.random(4000)
    result = fedassay.simulate(
        generator.random(4000) < scores,
        scores,
        clients=[f"clinic {i % 8}" for i in range(4000)],
        site_moments=True,
        height=5,
        seed=0,
    )
    found = result.heterogeneity("roc_auc")
    page = report_page(result)
    assert f"Over 8 sites the mean ROC AUC is {found.mean:.3f}; at a new site" in words(page)
    assert "clinic 1" not in page
    assert 'id="forest' not in page


def test_a_forest_leaves_room_for_what_is_known_and_not_for_what_is_vague() -> None:
    known = [
        Row(f"{i}", 0.7 + i / 100, Interval(0.65 + i / 100, 0.75 + i / 100), "site")
        for i in range(5)
    ]
    vague = Row("vague", 3.0, Interval(-9.0, 15.0), "site")
    new = Row("a new site", float("nan"), Interval(0.5, 0.9), "new")
    low, high = limits([*known, vague, new])
    assert 0.4 < low <= 0.5
    assert 0.9 <= high < 1.0


def test_too_few_reports_make_no_page(tmp_path: Path) -> None:
    short = small_survey(8, minimum_reports=99)
    rows = cohort_of(Examples([0, 1], [0.2, 0.7]))
    tally = tally_clients(short, rows, randomness=SimulatedRandomness(0))
    with pytest.raises(TooFewReports):
        write_report(Assessment(short, tally, DecodeOptions()), tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_files_of_another_version_or_cut_short_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "assessment.json"
    assessment("distributed").save(path)
    whole = path.read_text()
    for text in (
        whole.replace("fedassay.assessment/", "fedassay.assessment/9"),
        whole[:-500],
        "{}",
    ):
        path.write_text(text)
        with pytest.raises(FileInvalid, match=r"assessment\.json"):
            fedassay.write_report(path, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_the_door_takes_paths_and_words(tmp_path: Path) -> None:
    result = assessment("secure")
    result.save(tmp_path / "assessment.json")
    result.calibrate("sigmoid").save(tmp_path / "calibrator.json")
    place = fedassay.write_report(
        str(tmp_path / "assessment.json"),
        str(tmp_path / "page.html"),
        calibrator=str(tmp_path / "calibrator.json"),
        title="A title",
    )
    assert "<h1><bdi>A title</bdi></h1>" in place.read_text("utf-8")


def test_what_does_not_belong_is_refused_with_a_remedy(tmp_path: Path) -> None:
    result, path = assessment("secure"), tmp_path / "page.html"
    with pytest.raises(SettingInvalid, match=r"fedassay\.load reads files"):
        fedassay.write_report(7, path)  # type: ignore[arg-type]  # what a user may pass
    with pytest.raises(SettingInvalid, match="a calibrator must be"):
        fedassay.write_report(result, path, calibrator=3)  # type: ignore[arg-type]  # what a user may pass
    with pytest.raises(SettingInvalid, match="a report's model must be a str"):
        fedassay.write_report(result, path, model=b"x")  # type: ignore[arg-type]  # what a user may pass
    with pytest.raises(SettingInvalid, match="how many clients were invited"):
        fedassay.write_report(result, path, invited=0)
    with pytest.raises(SettingInvalid, match="outcome"):
        fedassay.write_report(result, path, outcom="x")  # type: ignore[call-arg]  # what a user may pass
    with pytest.raises(FileInvalid, match="Choose a folder"):
        fedassay.write_report(result, tmp_path / "nowhere" / "page.html")
    assert not path.exists()


def test_a_page_takes_less_than_three_seconds_of_work(tmp_path: Path) -> None:
    result = assessment("distributed")
    result.histogram()
    started = time.process_time()
    write_report(result, tmp_path / "page.html")
    assert time.process_time() - started < 3.0
