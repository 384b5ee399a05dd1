"""Counts that came out of a warehouse: read whole, or refused with the line and the rule."""

from pathlib import Path

import numpy as np
import pytest

from fedassay import ClientPolicy, Examples, Grid, Report
from fedassay.engines.report_files import answer_counts_file
from fedassay.errors import FileInvalid, SettingInvalid, SurveyRefused
from fedassay.randomness import SystemRandomness
from fedassay.survey import MAX_CLIENTS
from fedassay.tables.counts_file import read_counts
from tests.surveys import flat_survey, local_pair, site_survey

SURVEY = flat_survey(Grid.uniform(2))
GOOD = ["label,cell,n", "0,0,5", "0,1,0", "1,0,2", "1,1,3"]


class Account:
    """Writes down what was charged."""

    def __init__(self) -> None:
        self.charged = 0

    def charge(self, survey: object) -> None:
        self.charged += 1


def written(folder: Path, lines: list[str], *, end: str = "\n") -> Path:
    path = folder / "counts.csv"
    path.write_bytes((end.join(lines) + end).encode())
    return path


def test_every_cell_has_its_count_in_any_order_and_writing(tmp_path: Path) -> None:
    expected = [[5, 0], [2, 3]]
    for lines in (
        GOOD,
        [GOOD[0], *GOOD[:0:-1]],
        ["LABEL,CELL,N", *GOOD[1:]],
        ['"label","cell","n"', '"0","0","5"', *GOOD[2:]],
        ["n,cell,label", "5,0,0", "0,1,0", "2,0,1", "3,1,1"],
        [*GOOD[:4], "1,1,3.0", ""],
        [*GOOD, "-1,0,0", "1,-1,0"],
    ):
        assert read_counts(written(tmp_path, lines), SURVEY).tolist() == expected
    assert read_counts(written(tmp_path, GOOD, end="\r\n"), SURVEY).tolist() == expected
    marked = tmp_path / "marked.csv"
    marked.write_bytes(b"\xef\xbb\xbf" + written(tmp_path, GOOD).read_bytes())
    assert read_counts(marked, SURVEY).tolist() == expected


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "first line must name the columns"),
        (GOOD[1:], "first line must name the columns"),
        (["label,cell", "0,0"], "first line must name the columns"),
        (["label,cell,n,n", "0,0,1,1"], "first line must name the columns"),
        (GOOD[:-1], "1 are missing"),
        (GOOD[:1], "4 are missing"),
        ([*GOOD[:4], "1,1,-3"], "line 5 has less"),
        ([*GOOD[:4], "1,1,2.5"], "line 5 does not"),
        ([*GOOD[:4], "1,1,"], "line 5 does not"),
        ([*GOOD[:4], "1,1"], "line 5 does not"),
        ([*GOOD[:4], "1,1,3,4"], "line 5 does not"),
        ([*GOOD[:4], "1,1,nan"], "line 5 does not"),
        ([*GOOD[:4], "1,1,9999999999999999"], "line 5 does not"),
        ([*GOOD[:4], "1,1,٣٣"], "line 5 does not"),
        ([*GOOD, "1,1,3"], "line 6 has one again"),
        ([*GOOD, "1,2,0"], "cells 0 to 1; line 6"),
        ([*GOOD, "2,0,0"], "labels are 0 and 1; line 6"),
        ([*GOOD, "-1,0,7"], "labels must be 0 or 1"),
        ([*GOOD, "-1,-1,7"], "labels must be 0 or 1"),
        ([*GOOD, "1,-1,7"], "scores must lie from 0 to 1"),
        ([*GOOD, f"-1,{2**30},0"], "other edges than this survey's, by line 6"),
        ([*GOOD[:4], f"1,1,{MAX_CLIENTS}"], "at most 2,147,483,648 rows"),
        ([*GOOD, *["0,0,5"] * 200], "at most"),
        ([*GOOD[:4], '1,1,"3'], "is no CSV file"),
    ],
)
def test_anything_else_is_refused_with_its_rule(
    tmp_path: Path, lines: list[str], said: str
) -> None:
    with pytest.raises(FileInvalid, match=said):
        read_counts(written(tmp_path, lines), SURVEY)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_bytes(b"label,cell,n\n0,0,\xff\n")
    with pytest.raises(FileInvalid, match="UTF-8"):
        read_counts(path, SURVEY)
    with pytest.raises(FileInvalid, match="cannot be read"):
        read_counts(tmp_path / "nowhere.csv", SURVEY)


def test_counts_cannot_say_whose_turn_a_row_is(tmp_path: Path) -> None:
    for survey in local_pair():
        with pytest.raises(SettingInvalid, match="--steps 1"):
            read_counts(written(tmp_path, GOOD), survey)


def test_an_answer_from_counts_is_that_of_the_rows(tmp_path: Path) -> None:
    """Exact sums leave as they are: the report of the rows themselves."""
    rows = Examples([0] * 5 + [1] * 5, [0.1, 0.2, 0.3, 0.4, 0.5, 0.1, 0.2, 0.7, 0.8, 0.9])
    policy, account = ClientPolicy(exact_sums=True, smallest_cell=0), Account()
    made, counted = answer_counts_file(
        SURVEY, written(tmp_path, GOOD), randomness=SystemRandomness(), policy=policy,
        account=account,
    )  # fmt: skip
    (report,) = made.messages
    assert isinstance(report, Report)
    assert counted == 10
    assert account.charged == 1
    assert np.array_equal(report.counters, SURVEY.grid.count(rows).ravel())


def test_noise_is_added_on_this_side(tmp_path: Path) -> None:
    survey = site_survey(cells=2)
    path = written(tmp_path, GOOD)
    drawn = {
        answer_counts_file(
            survey, path, randomness=SystemRandomness(), policy=ClientPolicy()
        )[0].to_bytes()[40:-4]
        for _ in range(20)
    }  # fmt: skip
    assert len(drawn) > 5


def test_nothing_is_charged_for_what_is_refused(tmp_path: Path) -> None:
    account = Account()
    ask = {"randomness": SystemRandomness(), "account": account}
    with pytest.raises(SurveyRefused):
        answer_counts_file(SURVEY, written(tmp_path, GOOD), policy=ClientPolicy(), **ask)  # type: ignore[arg-type]  # settings by name
    policy = ClientPolicy(exact_sums=True, smallest_cell=0)
    with pytest.raises(FileInvalid):
        answer_counts_file(SURVEY, written(tmp_path, GOOD[:-1]), policy=policy, **ask)  # type: ignore[arg-type]  # settings by name
    assert account.charged == 0
