"""A survey in two steps at the command line: files that follow each other, and what is refused."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import fedassay
from fedassay.assessment import Assessment
from fedassay.decoding import DecodeOptions
from fedassay.errors import FileInvalid, SettingInvalid, SurveyMismatch
from fedassay.survey import Survey
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo
from tests.program import Run, check_refused

CLIENTS = 4
ROWS = 1500
TWO = ("--privacy", "distributed", "--epsilon", 2, "--steps", 2)


def table(path: Path, seed: int, rows: int = ROWS) -> Path:
    generator = np.random.default_rng(seed)
    scores = generator.beta(0.4, 3.0, rows)
    labels = generator.random(rows) < scores
    np.savetxt(path, np.c_[scores, labels], fmt=["%.17g", "%d"], delimiter=",",
               header="score,label", comments="")  # fmt: skip
    return path


def columns(path: Path) -> tuple[list[int], list[float]]:
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    return rows[:, 1].astype(int).tolist(), rows[:, 0].tolist()


@pytest.fixture
def tables(tmp_path: Path) -> list[Path]:
    return [table(tmp_path / f"client{i}.csv", i) for i in range(CLIENTS)]


def first_step(run: Run, folder: Path, tables: list[Path]) -> Path:
    """The first survey, answered and released."""
    survey = folder / "first.json"
    made = run("survey", "new", *TWO, "--minimum-reports", CLIENTS, "--clients", CLIENTS,
               "--examples", CLIENTS * ROWS, "--threshold", 0.3, "-o", survey)  # fmt: skip
    assert made.code == 0, made.err
    words = " ".join(made.out.split())
    assert "2-differential privacy" in words
    assert "this one, the first, spends 0.2 of it" in words
    assert "fedassay survey new --after first-assessment.json -o second.json" in words
    return released(run, folder, survey, tables, "first-assessment.json")


def released(
    run: Run, folder: Path, survey: Path, tables: list[Path], name: str, *more: object
) -> Path:
    for number, path in enumerate(tables):
        report = folder / f"{survey.stem}-{number}.fa"
        answered = run("answer", survey, path, "--largest-epsilon", 2, "-o", report)
        assert answered.code == 0, answered.err
    reports = sorted(folder.glob(f"{survey.stem}-*.fa"))
    result = run("tally", survey, *reports, *more, "-o", folder / name)
    assert result.code == 0, result.err
    return folder / name


def test_two_surveys_travel_as_files_and_are_read_as_one(
    run: Run, tmp_path: Path, tables: list[Path]
) -> None:
    first = first_step(run, tmp_path, tables)
    survey = tmp_path / "second.json"
    made = run("survey", "new", "--after", first, "-o", survey, "--json")
    assert made.code == 0, made.err
    content = json.loads(made.out)
    assert (content["step"], content["epsilon"], content["total_epsilon"]) == ("second", "9/5", "2")
    asked = fedassay.load(survey)
    assert isinstance(asked, Survey)
    assert asked == fedassay.new_survey(after=first)
    assert isinstance(asked.step, SecondOfTwo)
    result = released(run, tmp_path, survey, tables, "both.json", "--first", first)
    both = fedassay.load(result)
    assert isinstance(both, Assessment)
    assert both.first is not None
    assert isinstance(both.first.survey.step, FirstOfTwo)
    shown = json.loads(run("show", result, "--threshold", 0.3, "--json").out)
    assert (shown["steps"], shown["reports"]) == (2, CLIENTS)
    assert "Two surveys spent it, 0.2 and 1.8." in shown["guarantee"]
    labels, scores = (np.concatenate(each) for each in zip(*map(columns, tables), strict=True))
    exact = fedassay.simulate(labels, scores, thresholds=0.3, seed=0).exact or {}
    for name in ("roc_auc", "recall@0.3"):
        found, truth = shown["estimates"][name], exact[name]
        assert truth is not None
        # Six standard deviations of what noise there is: a false alarm in a million.
        assert abs(found["value"] - truth) < 6 * found["noise_sd"] + found["binning_bound"]
    reports = sorted(tmp_path.glob("second-*.fa"))
    again = fedassay.tally_answers(asked, reports, first=first, thresholds=both.thresholds)
    assert again.to_dict() == both.to_dict()
    assert run("calibrate", result, "-o", tmp_path / "map.json").code == 0


def test_a_second_survey_is_never_read_without_its_first(
    run: Run, tmp_path: Path, tables: list[Path]
) -> None:
    first = first_step(run, tmp_path, tables)
    survey, result = tmp_path / "second.json", tmp_path / "both.json"
    assert run("survey", "new", "--after", first, "-o", survey).code == 0
    report = tmp_path / "second-0.fa"
    assert run("answer", survey, tables[0], "--largest-epsilon", 2, "-o", report).code == 0
    check_refused(run("tally", survey, report, "-o", result), "read together with the first")
    assert not result.exists()
    assert not result.with_suffix(".tally").exists()
    other = tmp_path / "other"
    other.mkdir()
    foreign = first_step(run, other, [table(other / f"{i}.csv", 50 + i) for i in range(CLIENTS)])
    same_survey = json.loads(foreign.read_text())
    assert same_survey["survey"] == json.loads(first.read_text())["survey"]
    changed = same_survey | {"survey": same_survey["survey"] | {"minimum_reports": 3}}
    foreign.write_text(json.dumps(changed))
    check_refused(run("tally", survey, report, "--first", foreign, "-o", result), "follow")
    assert not result.with_suffix(".tally").exists()
    plain = tmp_path / "plain.json"
    assert run("survey", "new", "--minimum-reports", 2, "-o", plain).code == 0
    check_refused(run("survey", "new", "--after", plain, "-o", tmp_path / "x.json"), "assessment")


def test_an_edited_first_assessment_makes_no_second_survey(
    run: Run, tmp_path: Path, tables: list[Path]
) -> None:
    first = first_step(run, tmp_path, tables)
    content = json.loads(first.read_text())
    for name, edited in (
        ("counters", content | {"counters": [7 * count for count in content["counters"]]}),
        ("estimates", content | {"estimates": {"roc_auc": {"value": 0.99}}}),
    ):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(edited))
        with pytest.raises(FileInvalid, match="follow from its counters"):
            fedassay.new_survey(after=path)
    older = tmp_path / "older.json"
    older.write_text(json.dumps(content | {"format": "fedassay.assessment/1"}))
    check_refused(run("survey", "new", "--after", older, "-o", tmp_path / "s.json"), "assessment/1")
    other_epsilon = content | {
        "survey": content["survey"] | {"step": content["survey"]["step"] | {"total_epsilon": "9"}}
    }
    raised = tmp_path / "raised.json"
    raised.write_text(json.dumps(other_epsilon))
    second = fedassay.new_survey(after=first)
    foreign, nothing = Assessment.load(raised), fedassay.Tally.zero(second)
    with pytest.raises(SurveyMismatch, match="follows"):
        Assessment(second, nothing, DecodeOptions(), (), foreign)
    assert not (tmp_path / "s.json").exists()


def test_a_second_survey_keeps_what_the_first_said(
    run: Run, tmp_path: Path, tables: list[Path]
) -> None:
    first = first_step(run, tmp_path, tables)
    output = tmp_path / "second.json"
    for options in (("--epsilon", 3), ("--privacy", "local"), ("--steps", 2), ("--colluders", 1)):
        check_refused(run("survey", "new", "--after", first, *options, "-o", output), "keeps what")
    check_refused(
        run("survey", "new", "--after", first, "--threshold", 0.123, "-o", output), "no edge at"
    )
    assert not output.exists()
    for settings in ({"epsilon": 3}, {"height": 4}, {"unit": "client"}, {"privacy": "local"}):
        with pytest.raises(SettingInvalid, match="keeps what the first one said"):
            fedassay.new_survey(after=first, **settings)
    with pytest.raises(SettingInvalid, match="an assessment, or a path"):
        fedassay.new_survey(after=None)  # type: ignore[arg-type]  # what a user may pass
    told = fedassay.new_survey(after=first, thresholds=0.3, clients=CLIENTS)
    assert told.epsilon == fedassay.new_survey(after=first).epsilon


def test_an_assessment_of_one_survey_has_no_second(run: Run, tmp_path: Path) -> None:
    labels, scores = [0, 1] * 500, np.linspace(0.01, 0.99, 1000)
    alone = fedassay.simulate(labels, scores, privacy="distributed", epsilon=2, steps=1, seed=0)
    alone.save(tmp_path / "alone.json")
    made = run("survey", "new", "--after", tmp_path / "alone.json", "-o", tmp_path / "s.json")
    check_refused(made, "stands alone")


@pytest.mark.parametrize("privacy", ["distributed", "local"])
def test_simulate_says_that_it_asked_twice_and_gives_the_figures_of_python(
    run: Run, tmp_path: Path, privacy: str
) -> None:
    path = table(tmp_path / "rows.csv", 9, 3000)
    options = ("--privacy", privacy, "--epsilon", 4, "--steps", 2, "--seed", 3)
    content = json.loads(run("simulate", path, *options, "--json").out)
    assert content["steps"] == 2
    assert "wo surveys" in content["guarantee"]
    labels, scores = columns(path)
    same = fedassay.simulate(labels, scores, privacy=privacy, epsilon=4, steps=2, seed=3)
    for name, estimate in content["trials"][0].items():
        if estimate["value"] is not None:
            assert estimate["value"] == same[name].value
    said = " ".join(run("simulate", path, *options).out.split())
    assert "The first survey found where the scores lie, the second asked there" in said
    once = json.loads(run("simulate", path, *options[:4], "--steps", 1, "--json").out)
    assert once["steps"] == 1


def test_rows_of_a_local_survey_answer_one_of_the_two(run: Run, tmp_path: Path) -> None:
    path = table(tmp_path / "rows.csv", 11, 4000)
    first = tmp_path / "first.json"
    made = run("survey", "new", "--privacy", "local", "--epsilon", 5, "--clients", 4000,
               "--steps", 2, "-o", first)  # fmt: skip
    assert made.code == 0
    assert "is for 10 % of them" in " ".join(made.out.split())
    check_refused(run("answer", first, path, "-o", tmp_path / "f.fa"), "--client-id")
    asked = ("--client-id", "ward 7", "--json")
    one = json.loads(run("answer", first, path, "-o", tmp_path / "f.fa", *asked).out)
    assert 300 < one["rows_counted"] < 500  # a tenth, give or take five times 19
    assessment = tmp_path / "fa.json"
    assert run("tally", first, tmp_path / "f.fa", "-o", assessment).code == 0
    second = tmp_path / "second.json"
    assert run("survey", "new", "--after", assessment, "-o", second).code == 0
    other = json.loads(run("answer", second, path, "-o", tmp_path / "s.fa", *asked).out)
    assert one["rows_counted"] + other["rows_counted"] == one["rows"] == 4000
    labels, scores = columns(path)
    in_memory = fedassay.answer(second, labels, scores, client_id="ward 7")
    assert in_memory.reports == other["rows_counted"]
    with pytest.raises(SettingInvalid, match="found no id"):
        fedassay.answer(second, labels, scores)
    both = tmp_path / "both.json"
    result = run("tally", second, tmp_path / "s.fa", "--first", assessment, "-o", both, "--json")
    assert result.code == 0, result.err
    loaded = fedassay.load(both)
    assert isinstance(loaded, Assessment)
    assert loaded.reports == 4000
    assert "each example answered one" in loaded.guarantee.sentence()


def test_what_cannot_be_read_does_not_close_the_tally(run: Run, tmp_path: Path) -> None:
    """Ten clients answered the first survey and four the second: too few, until more do."""
    first = fedassay.new_survey(
        privacy="distributed", epsilon=2, clients=10, examples=10_000, minimum_reports=4, steps=2
    )
    policy = fedassay.ClientPolicy(largest_epsilon=Fraction(2))
    rows = [columns(table(tmp_path / f"{i}.csv", i, 1000)) for i in range(10)]
    answers = [fedassay.answer(first, *each, policy=policy) for each in rows]
    found = fedassay.tally_answers(first, answers)
    found.save(tmp_path / "first.json")
    second = fedassay.new_survey(after=found)
    second.save(tmp_path / "second.json")
    for number, each in enumerate(rows):
        report = fedassay.answer(second, *each, policy=policy)
        (tmp_path / f"{number}.fa").write_bytes(report.to_bytes())
    result = tmp_path / "both.json"
    few = [tmp_path / f"{number}.fa" for number in range(4)]
    given = ("--first", tmp_path / "first.json", "-o", result)
    check_refused(run("tally", tmp_path / "second.json", *few, *given), "same clients answer both")
    assert not result.exists()
    more = run("tally", tmp_path / "second.json", *sorted(tmp_path.glob("*.fa")), *given)
    assert more.code == 0, more.err
    assert "10 reports in all" in " ".join(more.out.split())
