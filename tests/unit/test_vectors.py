"""The library reproduces the test vectors that every other client runs."""

import hashlib
import json
import struct
from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction
from io import BytesIO
from typing import Any

import numpy as np
import pytest

from fedassay import Examples, Survey, Tally
from fedassay.client import make_answer
from fedassay.errors import FileInvalid, ReportForeign, ReportMalformed, ReportTooLarge
from fedassay.files import canonical, number_text, parse_json
from fedassay.hierarchy import SharedCuts
from fedassay.level_draw import answers_step, hashed_level, levels_of_reports, rows_of_step
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import RandomizedResponse, UnaryEncoding, UnitKind
from fedassay.mechanisms.rational import scaled_exp
from fedassay.mechanisms.sampling import CoinBytes
from fedassay.survey_cells import count_rows
from fedassay.survey_json import survey_from_json
from fedassay.wire import Report, decode, encode, messages
from tests.randomness import ScriptedRandomness
from tests.vectors.make import FOLDER

Vector = dict[str, Any]


def vectors(file: str, kind: str = "good") -> list[Any]:
    listed: list[Any] = json.loads((FOLDER / f"{file}.json").read_text())[kind]
    assert listed
    return listed


def named(file: str, kind: str = "good") -> pytest.MarkDecorator:
    listed = vectors(file, kind)
    return pytest.mark.parametrize("vector", listed, ids=[each["name"] for each in listed])


# --- canonical JSON -------------------------------------------------------------------------


@pytest.mark.parametrize(("bits", "text"), vectors("canonical", "numbers"))
def test_a_number_is_written_as_recorded(bits: str, text: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert number_text(value) == text


@named("canonical")
def test_content_is_written_as_recorded(vector: Vector) -> None:
    content = parse_json(vector["json"].encode(), "vector")
    assert canonical(content).decode() == vector["canonical"]


@named("canonical", "bad")
def test_content_that_is_not_json_is_refused(vector: Vector) -> None:
    with pytest.raises(FileInvalid):
        canonical(parse_json(vector["json"].encode(), "vector"))


# --- surveys --------------------------------------------------------------------------------


@named("surveys")
def test_a_survey_is_what_its_vector_says(vector: Vector) -> None:
    survey = survey_from_json(vector["survey"])
    assert canonical(survey.to_json()).decode() == vector["canonical"]
    assert survey.fingerprint.hex() == vector["fingerprint"]
    assert hashlib.sha256(vector["canonical"].encode()).hexdigest() == vector["fingerprint"]
    edges = survey.grid.edges.astype(">f8").tobytes()
    assert hashlib.sha256(edges).hexdigest() == vector["edges_sha256"]
    scores, cells = zip(*vector["cells_of_scores"], strict=True)
    assert survey.grid.locate(scores).tolist() == list(cells)
    for level, wanted in enumerate(vector["levels"]):
        assert survey.hierarchy.cells_per_level[level] == wanted["cells"]
        assert starts_of(survey, level, 0)[:20] == wanted["starts"]
        if "starts_of_positives" in wanted:
            assert starts_of(survey, level, 1)[:20] == wanted["starts_of_positives"]
        assert str(getattr(survey.mechanisms[level], "numerator", "")) == wanted["probability"]
    assert parts_of(survey.epsilon) == vector["epsilon"]
    assert parts_of(survey.total_epsilon) == vector["total_epsilon"]


def starts_of(survey: Survey, level: int, label: int) -> list[int]:
    """The first leaf of each cell, from the cells of all leaves."""
    if isinstance(survey.hierarchy, SharedCuts):
        starts: list[int] = survey.hierarchy.starts(level).tolist()
        return starts
    rows = survey.hierarchy.rows(level)[label]
    # A weighted sum is one cell, whatever its weights.
    return [0] if len(rows) == 1 else np.unique(rows.argmax(axis=0), return_index=True)[1].tolist()


def parts_of(epsilon: Fraction | None) -> list[str] | None:
    return None if epsilon is None else [str(epsilon.numerator), str(epsilon.denominator)]


@named("surveys", "bad")
def test_a_bad_survey_is_refused_for_its_reason(vector: Vector) -> None:
    with pytest.raises(FileInvalid) as caught:
        survey_from_json(parse_json(vector["text"].encode(), "survey"))
    assert vector["says"] in str(caught.value)


@pytest.mark.parametrize("vector", vectors("levels"))
def test_levels_of_ids_and_words_are_as_recorded(vector: Vector) -> None:
    survey = survey_from_json(vector["survey"])
    for client_id, level in vector["ids"]:
        assert hashed_level(survey, client_id) == level
        assert hashed_by_definition(survey, client_id) == level
    words, levels = zip(*vector["words"], strict=True)
    drawn = ScriptedRandomness(np.array(words, dtype="<u4").tobytes())
    assert levels_of_reports(survey, len(words), drawn).tolist() == list(levels)


@named("leaves")
def test_a_row_with_a_group_or_two_scores_is_in_its_leaf(vector: Vector) -> None:
    survey = survey_from_json(vector["survey"])
    assert survey.fingerprint.hex() == vector["fingerprint"]
    for label, score, second, group, place in vector["rows"]:
        rows = Examples([label], [score])
        if survey.pair is not None:
            rows = survey.pair.examples(rows, Examples([label], [second]))
        if survey.groups is not None:
            rows = rows.in_groups(survey.groups.codes([group]))
        assert count_rows(survey, rows).ravel().nonzero()[0].tolist() == [place]


@named("leaves", "bad")
def test_a_bad_survey_of_groups_or_models_is_refused_for_its_reason(vector: Vector) -> None:
    with pytest.raises(FileInvalid) as refused:
        survey_from_json(parse_json(vector["text"].encode(), "survey"))
    assert vector["says"] in str(refused.value)


@pytest.mark.parametrize("vector", vectors("steps"))
def test_who_answers_which_of_two_surveys_is_as_recorded(vector: Vector) -> None:
    survey = survey_from_json(vector["survey"])
    for name, is_asked in vector["names"]:
        assert answers_step(survey, name) == is_asked
    rows = [is_asked for name, is_asked in vector["names"] if name.startswith("north:")]
    if survey.unit.kind is not UnitKind.CLIENT:
        assert rows_of_step(survey, "north", range(len(rows))).tolist() == rows


def hashed_by_definition(survey: Survey, client_id: str) -> int:
    assert isinstance(survey.level_policy, OneLevel)
    digest = hashlib.sha256(survey.fingerprint + client_id.encode()).hexdigest()
    mark = Fraction(int(digest[:16], 16), 2**64)
    fractions = survey.level_policy.client_fractions
    return next(k for k in range(len(fractions)) if mark < sum(fractions[: k + 1]))


@pytest.mark.parametrize("vector", vectors("probabilities"), ids=lambda v: v["epsilon"])
def test_probabilities_are_as_recorded_and_as_decimals_have_them(vector: Vector) -> None:
    epsilon = Fraction(vector["epsilon"])
    assert str(scaled_exp(epsilon)) == vector["scaled_exp"]
    assert str(UnaryEncoding(epsilon).numerator) == vector["oue"]
    power = exp_by_decimals(epsilon)
    # The next whole number above or below the ideal probability, never further.
    assert int(vector["oue"]) == -(-(2**24) // (power + 1))
    for values, numerator in vector["grr"]:
        mechanism = RandomizedResponse(epsilon, values // 2, bool(values % 2))
        assert str(mechanism.numerator) == numerator
        assert int(numerator) == 2**64 * power // (power + values - 1)


def exp_by_decimals(epsilon: Fraction) -> Fraction:
    """e^epsilon to 100 digits."""
    context = Context(prec=100)
    ratio = context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    return Fraction(context.exp(ratio))


# --- reports --------------------------------------------------------------------------------


@named("answers")
def test_recorded_noise_makes_the_recorded_bytes(vector: Vector) -> None:
    survey = survey_from_json(vector["survey"])
    labels, scores = np.array(vector["examples"]).reshape(-1, 2).T
    client_id = vector["client_id"]
    asked = rows_of_step(survey, client_id or "", range(len(labels)))
    counts = survey.grid.count(Examples(labels[asked], scores[asked]))
    randomness = ScriptedRandomness(*pieces(survey, vector["drawn"], client_id, int(counts.sum())))
    sent = make_answer(survey, counts, randomness=randomness, client_id=client_id)
    assert sent.to_bytes().hex() == vector["bytes"]
    assert randomness.is_used_up()


def pieces(survey: Survey, drawn: Vector, client_id: str | None, rows: int) -> Iterator[bytes]:
    """The random bytes with which this client comes to draw what was recorded."""
    if survey.unit.kind is UnitKind.CLIENT and rows > 1:
        yield int(drawn["kept"]).to_bytes(128, "little")
    keys = np.empty(len(drawn["order"]), dtype=np.uint64)
    keys[drawn["order"]] = np.arange(len(keys))
    yield keys.tobytes()
    policy = survey.level_policy
    if isinstance(policy, OneLevel) and (client_id is None or not policy.by_hash):
        yield np.array(drawn["level_words"], dtype="<u4").tobytes()
    ids = list(drawn["report_ids"])
    for level, mechanism in enumerate(survey.mechanisms):
        here = [report for report in drawn["reports"] if report["level"] == level]
        if not here:
            continue
        if isinstance(mechanism, RandomizedResponse):
            yield b"".join(int(each["word"], 16).to_bytes(8, "little") for each in here)
            yield b"".join(each["other"].to_bytes(8, "little") for each in here)
        elif isinstance(mechanism, UnaryEncoding):
            yield coin_digits(mechanism, here)
            yield bytes(each["own"] for each in here if each["place"] >= 0)
        yield bytes.fromhex(ids.pop(0))


def coin_digits(mechanism: UnaryEncoding, reports: list[Vector]) -> bytes:
    """Digits that stand for the recorded coins, eight to a byte; the own one is a 0 here."""
    table = CoinBytes.of(mechanism.numerator).table
    digits = []
    for report in reports:
        bits, place = report["others"], report["place"]
        if place >= 0:
            bits = bits[:place] + "0" + bits[place:]
        row = int(bits[::-1], 2).to_bytes(-(-len(bits) // 8), "little")
        digits += [np.flatnonzero(table == byte)[0] for byte in row]
    return np.array(digits, dtype=np.uint16).tobytes()


@named("answers")
def test_a_tally_reads_the_recorded_answers(vector: Vector) -> None:
    survey = survey_from_json(vector["survey"])
    tally = Tally.of(survey, messages(BytesIO(bytes.fromhex(vector["bytes"])), survey))
    levels = [report["level"] for report in vector["drawn"]["reports"]]
    assert list(tally.reports) == [levels.count(k) for k in range(survey.hierarchy.levels)]


@named("reports")
def test_counters_make_the_recorded_bytes(vector: Vector) -> None:
    survey = survey_from_json(vector["survey"])
    report = Report(
        survey.fingerprint,
        bytes.fromhex(vector["report_id"]),
        np.array(vector["counters"]),
        vector["level"],
    )
    assert encode(report).hex() == vector["bytes"]
    assert decode(bytes.fromhex(vector["bytes"]), survey) == report


@named("reports", "bad")
def test_a_bad_report_is_refused_for_its_reason(vector: Vector) -> None:
    survey = survey_from_json(vector["survey"])
    with pytest.raises((ReportMalformed, ReportForeign, ReportTooLarge)) as caught:
        decode(bytes.fromhex(vector["bytes"]), survey)
    assert vector["says"] in str(caught.value)
