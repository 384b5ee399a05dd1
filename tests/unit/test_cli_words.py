"""What commands refuse before they read anything, and rare things that they say."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fedassay import ClientPolicy, Examples, Grid
from fedassay.classes.class_survey import exact_survey
from fedassay.classes.held_out_rows import HeldOutClasses
from fedassay.classes.multi_calibrators import ClassCalibrator, ClassMethod
from fedassay.classes.result import simulate_cohort
from fedassay.classes.rows import ClassRows
from fedassay.classes.tallies import ClassCohort
from fedassay.cli.accounts import step_words
from fedassay.cli.app import app
from fedassay.cli.classes import _print, _print_calibration, _shown, _tested_json
from fedassay.cli.columns import TableOptions, one_score
from fedassay.cli.groups import exact_groups, one_column
from fedassay.cli.outputs import Voice
from fedassay.cli.plan_more import plan_pair
from fedassay.cli.promise import _option_that_allows
from fedassay.cli.show_pair import earlier_points
from fedassay.cli.sites import SiteQuestions, recalibration_of
from fedassay.errors import FileInvalid, SettingInvalid, SurveyMismatch
from fedassay.examples import ScoredClients
from fedassay.group_names import GroupNames
from fedassay.ledger import Charge, Ledger, Part
from fedassay.ledger.steps import FirstCharge
from fedassay.paired.assessment import PairedAssessment
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SimulatedRandomness
from fedassay.sites.between import SummedSites
from fedassay.tally import Tally
from fedassay.tally_file import KeptTally, State
from tests.surveys import counted, flat_survey, local_survey, shared_pair
from tests.unit.test_paired_assessment import found as pair_found

RUNNER = CliRunner()


def refused(*arguments: object) -> str:
    """What a command says when it refuses a setting."""
    result = RUNNER.invoke(app, [str(each) for each in arguments])
    assert isinstance(result.exception, SettingInvalid), result.output
    return str(result.exception)


def test_two_columns_of_scores_need_two_models() -> None:
    with pytest.raises(SettingInvalid, match=r"the scores of one model; found two"):
        one_score(["a=x", "b=y"])
    with pytest.raises(SettingInvalid, match=r"found scores of several classes \(--scores\)"):
        one_column(["sex"], scores="p*")
    told = refused("survey", "new", "--score", "a=x", "--score", "b=y", "-o", "no.json")
    assert "asked for with --paired" in told
    with pytest.raises(SettingInvalid, match=r"--pipeline and --plot do not go with it"):
        plan_pair(SurveyRequest(clients=10), Voice(), None, has_more=True)


def test_public_rows_of_two_models_are_read_from_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("label,one,two\n0,0.1,0.2\n1,0.7,0.6\n")
    tables = TableOptions(models={"a": "one", "b": "two"}, quiet=True)
    assert tables.references(None) is None
    found = tables.references(path)
    assert found is not None
    assert [each.scores.tolist() for each in found] == [[0.1, 0.7], [0.2, 0.6]]


def test_a_pair_on_file_is_shown_and_replaced_with_care(tmp_path: Path) -> None:
    path, found = tmp_path / "pair.json", pair_found()
    kept = KeptTally(found.survey, found.tally)
    assert earlier_points(path, kept, force=False) == (0.5,)
    replace(found, thresholds=(0.25,)).save(path)
    assert earlier_points(path, kept, force=False) == (0.25,)
    assert earlier_points(path, kept, force=True) == (0.5,)
    with pytest.raises(FileInvalid, match=r"released from a tally that is not there"):
        earlier_points(path, KeptTally.empty(found.survey), force=False)
    other = replace(found.survey, minimum_reports=9)
    with pytest.raises(SurveyMismatch, match=r"Choose another output file"):
        earlier_points(path, KeptTally.empty(other), force=False)
    assert "found an option for one model" in refused("show", path, "--metric", "brier")
    survey = tmp_path / "survey.json"
    found.survey.save(survey)
    source = tmp_path / "study.tally"
    kept.save(source)
    told = refused("tally", survey, "--from", source, "--buckets", 4, "-o", tmp_path / "new.json")
    assert "a survey of two models is read in one way" in told


def test_a_plan_of_two_models_writes_its_survey(tmp_path: Path) -> None:
    asked = SurveyRequest(clients=50, smallest_cell=0)
    plan_pair(asked, Voice(quiet=True), tmp_path / "survey.json", has_more=False)
    assert json.loads((tmp_path / "survey.json").read_text())["format"].startswith(
        "fedassay.survey"
    )


def test_groups_of_one_class_have_no_exact_figures() -> None:
    rows = Examples([0, 1, 1], [0.1, 0.7, 0.9]).in_groups(np.array([0, 0, 1]))
    cohort = ScoredClients(rows, None, 3, groups=GroupNames("sex", ("F", "M")))
    exact = exact_groups(cohort, (0.5,))["exact_groups"]
    assert exact["F"]["roc_auc"] == 1.0
    assert exact["M"] is None


def test_what_a_first_of_two_reserves_is_said(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.charge(shared_pair()[0], Part("ward"))
    charge = ledger.entries()[-1].content
    assert isinstance(charge, Charge)
    assert isinstance(charge.step, FirstCharge)
    assert step_words(charge) == (
        ": the first of two surveys spends 1/5, and at most 4/5 is reserved for the second, "
        "1 in all"
    )
    nothing = replace(charge, step=replace(charge.step, left=Fraction(0)))
    assert step_words(nothing).endswith("with nothing reserved for the second")
    divided = replace(charge, step=replace(charge.step, client_fraction=Fraction(1, 5)))
    assert step_words(divided).startswith(": each row answers one of two surveys")


@pytest.mark.parametrize(("cell", "option"), [(0, ""), (10, " --smallest-cell 0")])
def test_a_client_is_told_what_to_type_and_no_more(cell: int, option: str) -> None:
    policy = ClientPolicy(smallest_cell=cell)
    told = _option_that_allows(flat_survey(Grid.uniform(4)), policy)
    assert told == f" Or answer it knowingly: --exact-sums{option}."


def test_what_sums_of_sites_can_answer_is_asked() -> None:
    sums = SummedSites(moments={"roc_auc": (0, 0, 0, 0, 0)}, most_sites=63)
    wanted = SiteQuestions(wanted={"roc_auc": 0.8})
    assert wanted.fitting(sums).wanted == {"roc_auc": 0.8}
    with pytest.raises(SettingInvalid, match=r"of brier at single sites nothing is known"):
        SiteQuestions(wanted={"brier": 0.1}).fitting(sums)


def test_counts_of_one_class_get_no_advice() -> None:
    lines, content = recalibration_of(counted([[3, 2], [0, 0]]))
    assert lines[0].startswith("No advice on recalibration: ")
    assert content == {"recalibration": None}


@pytest.mark.parametrize(
    ("flags", "is_printed"), [([], True), (["--quiet"], False), (["--json"], False)]
)
def test_a_query_is_printed_unless_silence_or_json_was_asked_for(
    flags: list[str], is_printed: bool, tmp_path: Path
) -> None:
    survey = tmp_path / "survey.json"
    flat_survey(Grid.uniform(4)).save(survey)
    result = RUNNER.invoke(
        app, ["sql", str(survey), "--dialect", "duckdb", "--table", "scored", *flags]
    )
    assert result.exit_code == 0
    assert ("SELECT" in result.stdout.partition('"query"')[0]) is is_printed


def test_tallies_of_reports_that_protect_themselves_stay_open_when_merged(tmp_path: Path) -> None:
    survey = local_survey()
    paths = [tmp_path / f"{name}.tally" for name in ("north", "south", "study")]
    for path in paths[:2]:
        KeptTally(survey, Tally(survey.fingerprint, (3,), np.arange(8))).save(path)
    result = RUNNER.invoke(app, ["merge", *map(str, paths[:2]), "-o", str(paths[2])])
    assert result.exit_code == 0, result.output
    assert [KeptTally.load(path).state for path in paths] == [State.COLLECTING] * 3
    assert KeptTally.load(paths[2]).tally.counters.tolist() == (2 * np.arange(8)).tolist()


def test_a_report_is_made_at_thresholds_that_scores_can_have(tmp_path: Path) -> None:
    saved = tmp_path / "assessment.json"
    counted([[3, 2], [0, 0]]).save(saved)
    told = refused("report", saved, "--threshold", "1.5", "-o", tmp_path / "report.html")
    assert "must lie in [0, 1]" in told


@pytest.mark.parametrize("count", [3, 9])
def test_of_many_classes_averages_are_shown_and_rows_that_were_left_out(
    count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    names = tuple(f"kind {number}" for number in range(count))
    cohort = ClassCohort.of(ClassRows(names[:2], np.full((2, count), 1.0 / count), names))
    survey = exact_survey(SurveyRequest(clients=2), names)
    randomness = SimulatedRandomness(np.random.SeedSequence(0))
    result = simulate_cohort(survey, cohort, randomness=randomness, exact={})
    assert any("kind 1" in name for name in _shown(result)) is (count < 9)
    _print(Voice(), cohort, result, 1)
    told = capsys.readouterr().out
    assert "Counted 1 of these rows" in told
    assert "macro" in told
    assert ("kind 1" in told) is (count < 9)


def test_calibrators_of_classes_are_compared_with_the_scores_as_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = ClassCalibrator(("a", "b", "c"), ClassMethod.FEDTEMP, sharpness=1.0, reason="sharp")
    tested = HeldOutClasses(
        calibrator=made, rows=1234, before={"brier": 0.5}, after={"brier": 0.25}
    )
    _print_calibration(Voice(), [])
    assert capsys.readouterr().out == ""
    _print_calibration(Voice(), [tested])
    told = capsys.readouterr().out
    assert "on the other 1,234 rows" in told
    assert [line.split()[-1] for line in told.splitlines()[-2:]] == ["0.50000", "0.25000"]
    assert _tested_json(tested) == {
        "method": "fedtemp",
        "reason": "sharp",
        "held_out_rows": 1234,
        "before": {"brier": 0.5},
        "after": {"brier": 0.25},
    }


def test_a_simulation_of_two_models_writes_a_folder(tmp_path: Path) -> None:
    table, out = tmp_path / "t.csv", tmp_path / "out"
    table.write_text("label,one,two\n" + "0,0.1,0.2\n1,0.7,0.6\n0,0.6,0.3\n1,0.2,0.8\n" * 5)
    arguments = ["simulate", table, "--score", "a=one", "--score", "b=two", "--smallest-cell", 0]
    result = RUNNER.invoke(app, [str(each) for each in (*arguments, "--out", out, "--quiet")])
    assert result.exit_code == 0, result.output
    content = json.loads((out / "simulation.json").read_text())
    assert (content["rows"], content["models"]) == (20, {"a": "one", "b": "two"})
    assert PairedAssessment.load(out / "assessment.json").reports == 20


def test_alarms_of_a_history_are_told_in_sentences(tmp_path: Path) -> None:
    """Events become a tenth as many after the third month."""
    for month in range(1, 5):
        positives = 400 if month < 4 else 40
        counted([[500, 500], [0, positives]]).save(tmp_path / f"2026-{month:02}.json")
    result = RUNNER.invoke(app, ["track", "show", str(tmp_path), "--metric", "prevalence"])
    assert result.exit_code == 0, result.output
    assert "prevalence" in result.output.partition("2026-04")[2]
    assert "2026-04" in result.output.partition("2026-04")[2]
