"""What a client answers without being told: little, and it says so before it reads a row."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fedassay
from fedassay import Grid, Hierarchy, Polya, Survey, SystemRandomness
from fedassay.cli.app import app
from fedassay.client import CEILING, OPEN_POLICY, ClientPolicy, most_cells
from fedassay.errors import SettingInvalid, SurveyRefused
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Privacy, RandomizedResponse
from fedassay.planning.candidates import MORE_LEAVES
from tests.steps import first_shared
from tests.surveys import local_survey, small_survey


def distributed(
    epsilon: Fraction, *, cells: int = 4, minimum: int = 5, colluders: int = 0
) -> Survey:
    return Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(cells),
        hierarchy=Hierarchy.flat(cells),
        mechanisms=(Polya(epsilon, 1, minimum - colluders),),
        minimum_reports=minimum,
        colluders=colluders,
    )


def flat_local(kind: str, epsilon: Fraction, cells: int) -> Survey:
    return local_survey(epsilon, cells=cells, kinds=kind)


HOSTILE = {
    "rows sent as they are": (flat_local("grr", Fraction(50), 2**20), "epsilon"),
    "all bits of every row": (flat_local("oue", Fraction(50), 2**12), "epsilon"),
    "noise that is none": (distributed(Fraction(50)), "epsilon"),
    "a little too much": (distributed(Fraction(11, 10)), "epsilon"),
    "local, a little too much": (local_survey(Fraction(51, 10)), "epsilon"),
    "exact sums": (small_survey(minimum_reports=9), "no sum without noise"),
    "more cells than rows": (flat_local("grr", Fraction(1), 2**20), "cells"),
    "bits without end": (flat_local("oue", Fraction(1), 2**20), "cells"),
    "a counter for every score": (distributed(Fraction(1), cells=2**15), "cells"),
}
MODEST = {
    "distributed": distributed(Fraction(1)),
    "local": local_survey(Fraction(5)),
    "the most cells, distributed": distributed(Fraction(1), cells=2**14),
    "the most cells, local": flat_local("oue", Fraction(5), 2**13),
}


@pytest.mark.parametrize(("survey", "word"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_client_that_was_told_nothing_refuses(survey: Survey, word: str) -> None:
    with pytest.raises(SurveyRefused, match=word):
        ClientPolicy().check(survey)


@pytest.mark.parametrize("survey", MODEST.values(), ids=MODEST.keys())
def test_a_client_that_was_told_nothing_answers_what_is_modest(survey: Survey) -> None:
    ClientPolicy().check(survey)


def test_no_client_spends_more_than_the_ceiling_whatever_it_is_told() -> None:
    assert CEILING == 10
    with pytest.raises(SettingInvalid, match="at most 10"):
        ClientPolicy(largest_epsilon=Fraction(101, 10))
    OPEN_POLICY.check(local_survey(Fraction(10)))
    for survey in (local_survey(Fraction(101, 10)), distributed(Fraction(50))):
        with pytest.raises(SurveyRefused, match="at most epsilon 10"):
            OPEN_POLICY.check(survey)


def test_levels_that_each_keep_the_limit_may_not_pass_it_together() -> None:
    one = distributed(Fraction(3, 4))
    both = Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=one.grid,
        hierarchy=Hierarchy(4, (2, 2)),
        mechanisms=(*one.mechanisms, *one.mechanisms),
        minimum_reports=5,
    )
    ClientPolicy().check(one)
    with pytest.raises(SurveyRefused, match=r"epsilon 1\.5"):
        ClientPolicy().check(both)
    half = Fraction(1, 2)
    ClientPolicy().check(replace(both, level_policy=OneLevel((half, half))))


def test_planned_surveys_have_room_below_the_most_cells() -> None:
    assert Grid.fine().cells * 4 <= most_cells(Privacy.SECURE)
    for privacy in (Privacy.DISTRIBUTED, Privacy.LOCAL):
        assert max(MORE_LEAVES) * 8 <= most_cells(privacy)


def test_a_survey_must_withstand_as_many_colluders_as_the_client_says() -> None:
    policy = ClientPolicy(colluders=2)
    policy.check(distributed(Fraction(1), minimum=5, colluders=2))
    with pytest.raises(SurveyRefused, match="withstands 1"):
        policy.check(distributed(Fraction(1), minimum=5, colluders=1))


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, f"{result.output} {result.exception or ''}"


@pytest.mark.parametrize(("survey", "word"), HOSTILE.values(), ids=HOSTILE.keys())
def test_the_command_says_the_promise_and_refuses_before_it_reads_the_table(
    survey: Survey, word: str, tmp_path: Path
) -> None:
    survey.save(tmp_path / "survey.json")
    code, said = run(
        "answer", tmp_path / "survey.json", tmp_path / "none.csv", "-o", tmp_path / "r.fa"
    )
    assert code != 0
    assert word in said
    # There is no table; nobody has looked for it.
    assert "none.csv" not in said
    assert " ".join(survey.guarantee.sentence().split()[:4]) in " ".join(said.split())
    assert not (tmp_path / "r.fa").exists()


@pytest.mark.parametrize(
    ("survey", "option"),
    [
        (distributed(Fraction(3)), ("--largest-epsilon", "3")),
        (local_survey(Fraction(10)), ("--largest-epsilon", "10")),
        (small_survey(), ("--exact-sums", "--smallest-cell", "0")),
    ],
)
def test_the_refusal_names_the_option_that_allows_it(
    survey: Survey, option: tuple[str, ...], tmp_path: Path
) -> None:
    survey.save(tmp_path / "survey.json")
    (tmp_path / "scores.csv").write_text("score,label\n0.5,1\n0.25,0\n")
    arguments = ("answer", tmp_path / "survey.json", tmp_path / "scores.csv", "-o")
    code, said = run(*arguments, tmp_path / "r.fa")
    assert code != 0
    assert " ".join(option) in said
    assert run(*arguments, tmp_path / "r.fa", *option)[0] == 0
    assert (tmp_path / "r.fa").exists()


def test_what_is_left_of_a_shuffled_report_alone_is_allowed_by_its_own_option(
    tmp_path: Path,
) -> None:
    survey = fedassay.new_survey(privacy="shuffled", epsilon=1, clients=20_000, height=2)
    local = survey.local_epsilon
    assert local is not None
    assert 2 < local <= 5
    survey.save(tmp_path / "survey.json")
    (tmp_path / "scores.csv").write_text("score,label\n0.5,1\n")
    asked = ("answer", tmp_path / "survey.json", tmp_path / "scores.csv", "--client-id", "a", "-o",
             tmp_path / "r.fa", "--largest-local")  # fmt: skip
    code, said = run(*asked, "2")
    assert code != 0
    assert "if shuffler and collector collude" in said
    assert f"Or answer it knowingly: --largest-local {local}." in said
    assert "--largest-epsilon" not in said
    assert run(*asked, str(local))[0] == 0


def test_no_option_allows_more_than_the_ceiling(tmp_path: Path) -> None:
    distributed(Fraction(50)).save(tmp_path / "survey.json")
    (tmp_path / "scores.csv").write_text("score,label\n0.5,1\n0.25,0\n")
    code, said = run(
        "answer", tmp_path / "survey.json", tmp_path / "scores.csv", "-o", tmp_path / "r.fa",
        "--largest-epsilon", "50",
    )  # fmt: skip
    assert code != 0
    assert "at most 10" in said
    assert "--largest-epsilon" not in said


def test_without_the_limit_randomised_response_at_epsilon_50_is_the_row_itself() -> None:
    """The twin: what the default keeps from happening."""
    survey = flat_local("grr", Fraction(50), 2**10)
    (oracle,) = survey.mechanisms
    assert isinstance(oracle, RandomizedResponse)
    hits = np.arange(2**11)
    rows = oracle.encode(hits, 2**11, randomness=SystemRandomness())
    assert (rows.view("<u4").ravel() == hits).all()


def test_a_first_survey_is_refused_by_what_both_cost_and_the_remedy_names_that(
    tmp_path: Path,
) -> None:
    first_shared(total=Fraction(2), minimum_reports=5).save(tmp_path / "first.json")
    table = tmp_path / "rows.csv"
    table.write_text("score,label\n0.2,0\n0.7,1\n")
    asked = ["answer", str(tmp_path / "first.json"), str(table), "-o", str(tmp_path / "r.fa")]
    refused = CliRunner().invoke(app, asked)
    assert isinstance(refused.exception, SurveyRefused)
    assert "asks for epsilon 2" in str(refused.exception)
    assert "--largest-epsilon 2." in str(refused.exception)
    assert CliRunner().invoke(app, [*asked, "--largest-epsilon", "2"]).exit_code == 0
