"""`fedassay shuffle`, as a command and from Python."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fedassay
from fedassay.cli.app import app
from fedassay.errors import FileInvalid, ReportMalformed, SettingInvalid, TooFewReports
from fedassay.examples import Examples, ScoredClients
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import tally_each_client
from fedassay.wire import Block, encode
from tests.unit.test_shuffler import reports, shuffled_survey


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A survey and an inbox of 30 reports, one of them sent twice."""
    survey = shuffled_survey()
    survey.save(tmp_path / "survey.json")
    (tmp_path / "inbox").mkdir()
    for number, message in enumerate(sent := reports(survey, 30)):
        (tmp_path / "inbox" / f"{number}.fa").write_bytes(encode(message))
    (tmp_path / "inbox" / "again.fa").write_bytes(encode(sent[0]))
    return tmp_path


def shuffle(study: Path, *options: str) -> dict[str, object]:
    batch = study / "batch.fa"
    line = ["shuffle", str(study / "survey.json"), str(study / "inbox"), "-o", str(batch)]
    done = CliRunner().invoke(app, [*line, "--json", *options], catch_exceptions=False)
    content: dict[str, object] = json.loads(done.stdout)
    return content


def test_an_inbox_becomes_a_batch_that_a_tally_takes(study: Path) -> None:
    said = shuffle(study)
    assert (said["reports"], said["repeated"], said["left_out"]) == (30, 1, 0)
    result = fedassay.tally_answers(study / "survey.json", [study / "batch.fa"])
    assert sum(result.tally.reports) == 30
    by_hand = fedassay.shuffle_answers(
        study / "survey.json", sorted((study / "inbox").glob("[0-9]*.fa"))
    )
    assert by_hand.to_bytes() == (study / "batch.fa").read_bytes()


def test_clients_of_many_rows_to_a_message_are_shuffled_once(study: Path) -> None:
    """A message of three rows is one of its own, and counts once though it came twice."""
    survey = shuffled_survey()
    leaves = [one.rows for one in reports(survey, 40, first=100) if one.level == 1]
    rows = np.concatenate(leaves[:3])
    many = Block(survey.fingerprint, b"many" * 4, rows, 1)
    for name in ("many.fa", "many-again.fa"):
        (study / "inbox" / name).write_bytes(encode(many))
    said = shuffle(study)
    assert (said["reports"], said["repeated"], said["left_out"]) == (33, 1 + 3, 0)
    result = fedassay.tally_answers(study / "survey.json", [study / "batch.fa"])
    assert sum(result.tally.reports) == 33


def test_a_second_batch_is_not_written_over_the_first(study: Path) -> None:
    shuffle(study)
    before = (study / "batch.fa").read_bytes()
    (study / "inbox" / "7.fa").unlink()
    with pytest.raises(FileInvalid, match="A survey has one batch"):
        shuffle(study)
    assert (study / "batch.fa").read_bytes() == before


def test_a_file_of_another_survey_stops_the_batch_unless_it_is_left_out(study: Path) -> None:
    other = reports(shuffled_survey(minimum=9), 1)[0]
    (study / "inbox" / "other.fa").write_bytes(encode(other))
    with pytest.raises(ReportMalformed, match=r"1 file\(s\) hold something else"):
        shuffle(study)
    assert not (study / "batch.fa").exists()
    assert shuffle(study, "--leave-out-bad")["left_out"] == 1


def test_what_is_wrong_with_very_many_files_is_said_in_few_lines(study: Path) -> None:
    for number, other in enumerate(reports(shuffled_survey(minimum=9), 50)):
        (study / "inbox" / f"other-{number}.fa").write_bytes(encode(other))
    line = ["shuffle", str(study / "survey.json"), str(study / "inbox"), "-o", str(study / "b.fa")]
    done = CliRunner().invoke(app, line)
    assert isinstance(done.exception, ReportMalformed)
    said = done.stderr.splitlines()
    assert len(said) == 21
    assert said[-1] == "... and 30 more of the kind."


def test_an_inbox_below_the_minimum_is_kept_back(study: Path) -> None:
    for path in sorted((study / "inbox").iterdir())[3:]:
        path.unlink()
    with pytest.raises(TooFewReports, match="nothing was written"):
        shuffle(study)
    assert not (study / "batch.fa").exists()


def test_answers_to_shuffle_come_as_a_list() -> None:
    with pytest.raises(SettingInvalid, match="answers come as a list"):
        fedassay.shuffle_answers(shuffled_survey(), b"")  # type: ignore[arg-type]


def test_a_simulation_of_each_client_goes_through_the_shuffler() -> None:
    survey = fedassay.new_survey(
        privacy="shuffled", epsilon=1, clients=60, minimum_reports=50, height=1
    )
    rows = Examples([0, 1] * 30, [0.2, 0.7] * 30)
    tally = tally_each_client(
        survey, ScoredClients(rows, None, 60), randomness=SimulatedRandomness(1)
    )
    assert tally.reports == (60,)
    assert len(tally.report_ids) == 1
