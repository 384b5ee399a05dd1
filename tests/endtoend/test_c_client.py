"""A client in C: the same surveys, the same bytes, and hostile files end in a refusal."""

import json
import math
import random
import re
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedassay import Grid, Survey, Tally
from fedassay.errors import FedassayError
from fedassay.files import canonical, number_text
from fedassay.survey_json import survey_from_bytes
from fedassay.wire import Block, messages
from tests.cc import CLIENT, asked, c_verdicts, run_command
from tests.node import node_verdicts
from tests.vectors.surveys import LOCAL, SURVEYS, local

VECTORS = Path(__file__).parents[1] / "vectors"
OWNER = ("--largest-epsilon", "5")


def vectors(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text())
    return content


def text_of(survey: Survey) -> str:
    return canonical(survey.to_json()).decode()


# --- vectors --------------------------------------------------------------------------------


def test_c_reads_the_surveys_of_the_vectors_as_everybody_does() -> None:
    good = [each for each in vectors("surveys")["good"] if each["survey"]["privacy"] == "local"]
    assert len(good) == len(LOCAL) + 1
    for each in good:
        scores = [score for score, _ in each["cells_of_scores"]]
        said, *cells = asked(
            ("survey", each["canonical"]), *(("score", repr(score)) for score in scores)
        )
        found = json.loads(said)
        for name in ("fingerprint", "edges_sha256", "levels", "epsilon"):
            assert found[name] == each[name], (each["name"], name)
        assert found["epsilon"] == each["total_epsilon"]
        assert list(map(int, cells)) == [cell for _, cell in each["cells_of_scores"]], each["name"]


def test_c_makes_the_edges_of_every_rule_to_the_last_bit() -> None:
    grids = {name: survey.grid for name, survey in SURVEYS.items() if survey.grid.cells <= 8192}
    assert {"octaves", "fine grid with thresholds", "cubic grid with ends"} < grids.keys()
    wanted = {each["name"]: each["edges_sha256"] for each in vectors("surveys")["good"]}
    lines = [("survey", text_of(local("oue", Fraction(1), grid))) for grid in grids.values()]
    for name, said in zip(grids, asked(*lines), strict=True):
        assert json.loads(said)["edges_sha256"] == wanted[name], name


OTHER_REASONS = {
    "too many edges": "at most 8192 cells",
    "exact sums in two steps": "privacy goes with",
    "privacy without its mechanism": "local surveys",
}
"""Of surveys that no local one could be, or that this client reads no further."""


def test_c_refuses_the_bad_surveys_for_the_same_reasons() -> None:
    """Bad surveys of exact sums are asked as local ones too, so that their grids are read."""
    bad = vectors("surveys")["bad"]
    texts = [
        each["text"].replace('"privacy":"secure"', '"privacy":"local"')
        if '"kind":"exact"' in each["text"]
        else each["text"]
        for each in bad
    ]
    said = asked(*(("survey", text) for text in texts))
    for each, reason in zip(bad, said, strict=True):
        assert reason.startswith("refused: "), each["name"]
        is_shared = '"privacy":"distributed"' in each["text"]
        wanted = "local surveys" if is_shared else OTHER_REASONS.get(each["name"], each["says"])
        assert wanted in reason, (each["name"], reason)
    as_they_are = asked(*(("survey", each["text"]) for each in bad))
    assert all(reason.startswith("refused: ") for reason in as_they_are)


def test_c_finds_the_levels_and_the_turns_of_the_vectors() -> None:
    for each in vectors("levels")["good"]:
        ids, words = each["ids"], each["words"]
        text = canonical(each["survey"]).decode()
        lines = [("id", name) for name, _ in ids] + [("word", word) for word, _ in words]
        _, *said = asked(("survey", text), *lines)
        assert list(map(int, said)) == [level for _, level in [*ids, *words]]
    for each in vectors("steps")["good"]:
        if each["survey"]["privacy"] != "local":
            continue
        text = canonical(each["survey"]).decode()
        _, *said = asked(("survey", text), *(("step", name) for name, _ in each["names"]))
        assert [answer == "1" for answer in said] == [is_asked for _, is_asked in each["names"]]


def test_c_finds_the_leaves_of_rows_with_a_group_or_two_scores() -> None:
    content = vectors("leaves")
    for each in content["good"]:
        is_pair = each["name"] == "two models"
        rows = [
            (row[0], repr(row[1]), (row[2] if is_pair else row[3]) or "") for row in each["rows"]
        ]
        said, *places = asked(
            ("survey", canonical(each["survey"]).decode()), *(("place", *row) for row in rows)
        )
        assert json.loads(said)["fingerprint"] == each["fingerprint"]
        assert list(map(int, places)) == [row[4] for row in each["rows"]]
    reasons = asked(*(("survey", each["text"]) for each in content["bad"]))
    for each, reason in zip(content["bad"], reasons, strict=True):
        assert reason.startswith("refused: "), each["name"]
        assert each["says"] in reason, (each["name"], reason)


def test_c_computes_the_probabilities_of_the_vectors() -> None:
    good = vectors("probabilities")["good"]
    lines = [("probabilities", each["epsilon"], *(v for v, _ in each["grr"])) for each in good]
    for each, said in zip(good, asked(*lines), strict=True):
        power, q, *ps = said.split(" ")
        assert int(power, 16) == int(each["scaled_exp"])
        assert q == each["oue"]
        assert ps == [p for _, p in each["grr"]]


def script_of(survey: Survey, drawn: dict[str, Any]) -> bytes:
    """Recorded draws as the bytes that C's client draws them from, in its order."""
    made = b""
    if "kept" in drawn:
        made += drawn["kept"].to_bytes(8, "big")
    order: list[int] = drawn["order"]
    shuffled = list(range(len(order)))
    for last in range(len(order) - 1, 0, -1):
        other = shuffled.index(order[last])
        shuffled[last], shuffled[other] = shuffled[other], shuffled[last]
        made += other.to_bytes(8, "big")
    made += b"".join(word.to_bytes(4, "big") for word in drawn.get("level_words", []))
    ids = iter(drawn["report_ids"])
    for level in range(survey.hierarchy.levels):
        reports = [each for each in drawn["reports"] if each["level"] == level]
        made += b"".join(script_of_report(survey, each) for each in reports)
        made += bytes.fromhex(next(ids)) if reports else b""
    return made


def script_of_report(survey: Survey, report: dict[str, Any]) -> bytes:
    if "word" in report:
        numerator = survey.mechanisms[report["level"]].numerator
        is_kept = int(report["word"], 16) < numerator
        other = b"" if is_kept else report["other"].to_bytes(8, "big")
        return bytes.fromhex(report["word"]) + other
    # 0 is below any numerator, 2^24 - 1 is not.
    bits = [b"\0\0\0" if bit == "1" else b"\xff\xff\xff" for bit in report["others"]]
    if report["place"] >= 0:
        bits.insert(report["place"], bytes([report["own"]]))
    return b"".join(bits)


def test_c_makes_the_bytes_of_the_answers_from_the_recorded_noise() -> None:
    for each in vectors("answers")["good"]:
        survey = survey_from_bytes(canonical(each["survey"]))
        rows = [value for label, score in each["examples"] for value in (label, repr(score))]
        script = script_of(survey, each["drawn"]).hex()
        _, said = asked(
            ("survey", text_of(survey)), ("answer", script, each["client_id"] or "-", *rows)
        )
        assert said == each["bytes"], each["name"]


# --- canonical JSON -------------------------------------------------------------------------


def doubles() -> list[float]:
    """Every power of two and its neighbours, and doubles of random bits."""
    powers = [math.ldexp(1.0, k) for k in range(-1074, 1024)]
    near = [math.nextafter(x, math.inf) for x in powers[::7]]
    generator = np.random.default_rng(3)
    drawn = generator.integers(0, 0x7FF << 52, 1500, dtype=np.uint64).view(np.float64)
    return [*powers, *near, *drawn.tolist(), *generator.random(1500).tolist()]


def test_c_reads_every_double_from_its_one_text() -> None:
    values = doubles()
    said = asked(*(("number", number_text(value)) for value in values))
    assert said == [np.float64(value).view(np.uint64).item().to_bytes(8).hex() for value in values]
    numbers = vectors("canonical")["numbers"]
    unsigned = [(bits, text) for bits, text in numbers if bits != "8000000000000000"]
    assert asked(*(("number", text) for _, text in unsigned)) == [bits for bits, _ in unsigned]


def test_c_refuses_any_other_text_of_a_number() -> None:
    """Longer texts of the same double, and texts as long that are farther from it."""
    texts = [
        "-0",
        "1.0",
        "01",
        ".5",
        "5.",
        "1e5",
        "1E21",
        "1e21",
        "+1",
        "0.0",
        "1e-5",
        "0.00000001",
        "1e999",
        "1e-999",
    ]
    texts += ["9007199254740993", "1e+21 ", "--1", "1e+", "e", "", "-", "."]
    for value in doubles():
        canonical_text = number_text(value)
        longer = f"{value:.17g}"
        if float(longer) == value and len(longer) > len(canonical_text):
            texts.append(longer)
        if "e" not in canonical_text and "." in canonical_text and canonical_text[-1] not in "09":
            for digit in (int(canonical_text[-1]) - 1, int(canonical_text[-1]) + 1):
                other = f"{canonical_text[:-1]}{digit}"
                if 0 < digit < 10 and float(other) == value:
                    texts.append(other)
    assert len(texts) > 500
    assert set(asked(*(("number", text) for text in texts))) == {""}


def test_c_takes_canonical_texts_and_no_others() -> None:
    content = vectors("canonical")
    good = [each["canonical"] for each in content["good"]]
    bad = [each["json"] for each in content["bad"]] + [
        each["json"] for each in content["good"] if each["json"] != each["canonical"]
    ]
    bad += ['{"b":1,"a":2}', '["\\u0041"]', '["\\/"]', '["\\u000A"]', '["\\n', '"\\', "tru", "[1 ]"]
    assert set(asked(*(("json", text) for text in good))) == {"1"}
    assert set(asked(*(("json", text) for text in bad))) == {"0"}


# --- hostile files --------------------------------------------------------------------------


def python_verdict(text: bytes) -> str:
    """The fingerprint of a survey that Python's client would answer, or that it is refused."""
    try:
        survey = survey_from_bytes(text)
    except FedassayError:
        return "refused"
    is_canonical = canonical(survey.to_json()) == text
    return survey.fingerprint.hex() if is_canonical and survey.is_local else "refused"


def test_a_survey_that_is_cut_short_anywhere_is_refused() -> None:
    text = text_of(LOCAL["second of two, cells for each label"])
    assert set(c_verdicts([text[:end] for end in range(len(text))])) == {"refused"}


def test_c_and_python_judge_spoilt_surveys_alike() -> None:
    """One to three characters changed, removed or doubled; few of them leave a survey whole."""
    chooser, texts = random.Random(4), []  # noqa: S311  # repeatable
    for survey in LOCAL.values():
        for _ in range(60):
            text = text_of(survey)
            for _ in range(chooser.randint(1, 3)):
                at = chooser.randrange(len(text))
                kind = chooser.random()
                new = chooser.choice('0123456789abc{}[]",:.-e\\/ufltrué\x01')
                text = text[:at] + (new if kind < 0.7 else "") + text[at + (kind < 0.9) :]
            texts.append(text)
    verdicts = [python_verdict(text.encode()) for text in texts]
    assert c_verdicts(texts) == verdicts
    assert len(texts) > verdicts.count("refused") > 500


def test_c_nests_no_deeper_than_a_survey_does() -> None:
    """Sixteen lists in each other are canonical JSON, and seventeen are refused."""
    texts = ["[" * depth + "]" * depth for depth in (16, 17, 1000)]
    assert asked(*(("json", text) for text in texts)) == ["1", "0", "0"]


def test_sizes_are_refused_before_anything_is_built_of_them() -> None:
    whole = text_of(LOCAL["oue, one level"])
    huge = whole.replace('"uniform"', f'"{"u" * 2**22}"')
    listed = whole.replace('{"cells":4,"kind":"uniform"}', f"[{'0,' * 2**18}0]")
    said = asked(
        ("survey", huge),
        ("survey", listed),
        ("survey", "[" * 1000),
        ("survey", "[" * 1000 + "]" * 1000),
        ("survey", "[" * 2000),
        ("survey", whole.replace('"cells":4', '"cells":1048576')),
        ("survey", whole.replace('"cells":4', '"cells":4e+99')),
        ("survey", whole.replace('"fanouts":[4]', '"fanouts":[16777216,16777216]')),
    )
    reasons = ["at most 4194304 bytes", "items", "not canonical", "not canonical", "1024 lists",
               "at most 8192 cells", "whole number", "product"]  # fmt: skip
    for each, reason in zip(said, reasons, strict=True):
        assert each.startswith("refused: ")
        assert reason in each


@pytest.mark.parametrize("kind", ["uniform", "fine", "octaves"])
def test_a_short_survey_makes_no_device_allocate_megabytes(kind: str) -> None:
    """The largest grids of all rules; the twin is a survey that needs two megabytes to be read."""
    cells = {"uniform": 2**20, "fine": 2**19, "octaves": 78 * 2**12 + 2}[kind]
    grid = json.dumps({"cells": cells, "kind": kind}, separators=(",", ":"))
    whole = text_of(LOCAL["oue, one level"])
    text = whole.replace('{"cells":4,"kind":"uniform"}', grid)
    (said,) = asked(("survey", text), megabytes=1)
    assert "at most 8192 cells" in said
    with pytest.raises(AssertionError, match="allocation"):
        asked(("survey", whole.replace('"cells":4', f'"cells":[{"0," * 70_000}0]')), megabytes=1)


# --- groups and pairs -----------------------------------------------------------------------

NAMES = ("F", "M", "2", "a b", 'say "x"', "Zoë")


def grouped() -> Survey:
    """Three cells for each name, for rows that say nothing, and for all others."""
    content = local("grr", Fraction(5), Grid.uniform(3 * (len(NAMES) + 2))).to_json()
    content["grid"]["cells"] = 3
    content["groups"] = {"column": "sex", "names": list(NAMES)}
    return survey_from_bytes(canonical(content))


def test_c_counts_a_row_in_the_group_that_python_does() -> None:
    values = [*NAMES, " F ", "F\u00a0", "\u2003M\u3000", "X", "  ", "(missing)", "zoë", "F" * 300]
    values += ["é" * 199, "x" + " " * 300, "2.0", "\ufeffF"]
    _, *said = asked(("survey", text_of(grouped())), *(("group", value) for value in values))
    groups = grouped().groups
    assert groups is not None
    assert list(map(int, said)) == groups.codes(values).tolist()


@pytest.mark.parametrize(
    "names", [[], ["F", "F"], [" F"], ["F\u2003"], ["(missing)"], [""], ["x" * 201], ["\x00"], [1]]
)
def test_c_refuses_names_of_groups_as_python_does(names: list[object]) -> None:
    content = grouped().to_json()
    content["groups"]["names"] = names
    text = canonical(content)
    assert c_verdicts([text.decode()]) == ["refused"]
    assert python_verdict(text) == "refused" or names == ["\x00"]


def first_values(answers: list[str], survey: Survey) -> list[int]:
    """The value of the one row of each answer."""
    read = [next(iter(messages(BytesIO(bytes.fromhex(each)), survey))) for each in answers]
    assert all(isinstance(message, Block) and message.reports == 1 for message in read)
    return [int.from_bytes(message.rows.tobytes(), "little") for message in read]  # type: ignore[union-attr]  # the survey has one


OWN = bytes(8).hex()
"""A word below any numerator: the report is the own value."""


def test_c_puts_a_row_of_a_group_into_the_cells_of_its_group() -> None:
    survey = grouped()
    rows = [(1, 0.5, "M"), (0, 0.9, "F"), (1, 0.1, ""), (0, 1.0, "east")]
    _, *said = asked(("survey", text_of(survey)), *(("answer", OWN, "-", *row) for row in rows))
    assert first_values(said, survey) == [24 + 3 + 1, 2, 24 + 18, 21 + 2]


def test_c_puts_a_row_with_two_scores_into_their_joint_cell() -> None:
    content = local("grr", Fraction(5), Grid.uniform(6)).to_json()
    content["grid"] = {
        "kind": "pair",
        "names": ["old", "new"],
        "first": Grid.uniform(2).to_json(),
        "second": Grid.explicit([0, 0.1, 0.5, 1]).to_json(),
    }
    survey = survey_from_bytes(canonical(content))
    rows = [(1, 0.5, 0.2), (0, 0.6, 0.05), (0, 0.6, 1.0)]
    _, *said = asked(("survey", text_of(survey)), *(("answer", OWN, "-", *row) for row in rows))
    assert first_values(said, survey) == [6 + 1, 3, 5]
    _, said_of_one = asked(("survey", text_of(survey)), ("answer", OWN, "-", 1, 0.5, 7312345.5))
    assert "second scores" in said_of_one
    assert "7312345" not in said_of_one


# --- shuffled reports -----------------------------------------------------------------------


def shuffled(**changed: object) -> dict[str, Any]:
    """Reports that keep the promise alone, so that any crowd does."""
    content = local("grr", Fraction(2), Grid.uniform(4)).to_json() | {"privacy": "shuffled"}
    return content | {"shuffled": {"epsilon": "2", "delta": "1/100000000"}} | changed


def test_devices_answer_shuffled_surveys_by_what_a_report_spends_alone() -> None:
    text = canonical(shuffled())
    survey = survey_from_bytes(text)
    said, answered = asked(("survey", text.decode()), ("answer", OWN, "-", 1, 0.6))
    assert json.loads(said)["fingerprint"] == survey.fingerprint.hex()
    assert json.loads(said)["epsilon"] == ["2", "1"]
    assert first_values([answered], survey) == [4 + 2]
    assert node_verdicts([text]) == [survey.fingerprint.hex()]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (shuffled(privacy="local"), "goes with shuffled privacy"),
        (shuffled(shuffled={"epsilon": "2", "delta": "1"}), "delta must lie between 0 and 1"),
        (shuffled(shuffled={"epsilon": "2", "delta": "0"}), "delta must lie between 0 and 1"),
        (shuffled(shuffled={"epsilon": "0", "delta": "1/9"}), "epsilon must be"),
        (shuffled(shuffled={"epsilon": "2"}), "is missing"),
        (shuffled(shuffled={"epsilon": "2", "delta": "1/9", "n": 1}), "unknown field"),
        (shuffled(step=LOCAL["first of two, by hash"].to_json()["step"]), "asked for once"),
    ],
)
def test_a_promise_that_is_none_is_refused_by_all(content: dict[str, Any], says: str) -> None:
    text = canonical(content)
    (of_c,) = asked(("survey", text.decode()))
    (of_node,) = node_verdicts([text])
    assert of_c.startswith("refused: ")
    assert of_node.startswith("refused: ")
    assert says in of_c
    assert says in of_node
    assert python_verdict(text) == "refused"


# --- answers --------------------------------------------------------------------------------


def test_a_refusal_costs_nothing_and_a_charge_comes_before_the_noise() -> None:
    text = text_of(LOCAL["grr, one level"])
    bad, good, again = asked(
        ("survey", text),
        ("charged answer", "-", "-", 1, 7312345.5),
        ("charged answer", "-", "-", 1, 0.5),
        ("charged answer", "!", "-", 1, 0.5),
    )[1:]
    assert "item 1" in bad
    assert "7312345" not in bad
    assert len(good) == 2 * 68
    # Without randomness it would be refused for that, had it come so far.
    assert "account" in again


def test_without_randomness_nothing_is_sent() -> None:
    _, said = asked(("survey", text_of(LOCAL["oue, one level"])), ("answer", "!", "-", 1, 0.5))
    assert said == "refused: the system gives no randomness; nothing was sent"


def test_the_commands_report_has_68_bytes_and_is_tallied(tmp_path: Path) -> None:
    survey = LOCAL["grr, one level"]
    survey.save(tmp_path / "survey.json")
    reports = []
    for i in range(3):
        path = tmp_path / f"{i}.fa"
        done = run_command(tmp_path / "survey.json", path, *OWNER, 1, 0.73)
        assert done.returncode == 0, done.stderr
        assert path.stat().st_mode & 0o777 == 0o600
        reports.append(path.read_bytes())
    assert [len(report) for report in reports] == [68] * 3
    tally = Tally.of(survey, messages(BytesIO(b"".join(reports)), survey))
    assert sum(tally.reports) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "0.fa",
        "1.fa",
        "2.fa",
        "survey.json",
    ]


def test_a_retry_of_the_command_leaves_the_same_bytes(tmp_path: Path) -> None:
    """A new report id would count twice, and spend twice."""
    survey, path = LOCAL["oue, one level"], tmp_path / "report.fa"
    survey.save(tmp_path / "survey.json")
    files = [tmp_path / "survey.json", path]
    assert run_command(*files, *OWNER, 1, 0.73).returncode == 0
    first = path.read_bytes()
    again = run_command(*files, *OWNER, 0, 0.1)
    assert (again.returncode, path.read_bytes()) == (0, first)
    assert "the same bytes" in again.stderr
    LOCAL["grr, one level"].save(tmp_path / "survey.json")
    other = run_command(*files, *OWNER, 0, 0.1)
    assert (other.returncode, path.read_bytes()) == (1, first)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--largest-epsilon", "1/2", "1", "0.7312345"), "at most epsilon 1/2"),
        (("--largest-epsilon", "11", "1", "0.7312345"), "at most 10"),
        ((*OWNER, "--smallest-cohort", "2", "1", "0.7312345"), "crowd of at least 2"),
        ((*OWNER, "--model-digest", "ab" * 32, "1", "0.7312345"), "models it knows"),
        ((*OWNER, "--what", "2", "1", "0.7312345"), "usage"),
        (("1", "0.7312345"), "usage"),
        ((*OWNER,), "hold an example"),
        ((*OWNER, "1"), "2 values"),
        ((*OWNER, "1", "1.7312345"), "item 1"),
        ((*OWNER, "1", "0.5", "1", "7312345x"), "item 2"),
        ((*OWNER, "1", "0.5", "7312345", "0.5"), "item 2"),
        ((*OWNER, "1", "nan"), "item 1"),
    ],
)
def test_c_refuses_what_its_owner_does_not_allow_and_withholds_the_data(
    given: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    LOCAL["oue, one level"].save(tmp_path / "survey.json")
    done = run_command(tmp_path / "survey.json", tmp_path / "report.fa", *given)
    assert done.returncode == 1
    assert says in done.stderr
    assert "7312345" not in done.stderr + done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["survey.json"]


def test_each_row_answers_one_of_two_surveys_from_c() -> None:
    first, second = LOCAL["first of two, by hash"], LOCAL["second of two, cells for each label"]
    rows = [value for i in range(40) for value in (i % 2, repr(i / 40))]
    counted = 0
    for survey in (first, second):
        _, without, said = asked(
            ("survey", text_of(survey)),
            ("answer", "-", "-", *rows),
            ("answer", "-", "anna", *rows),
        )
        assert "no id" in without or "its id" in without
        tally = Tally.of(survey, messages(BytesIO(bytes.fromhex(said)), survey))
        counted += sum(tally.reports)
    assert counted == 40


def test_readme_and_makefile_name_every_file_and_every_option() -> None:
    readme = (CLIENT / "README.md").read_text()
    files = [path.name for path in CLIENT.iterdir() if path.suffix in (".c", ".h")]
    assert [name for name in files if f"`{name}`" not in readme] == []
    parts = re.search(r"^PARTS := (.*)$", (CLIENT / "Makefile").read_text(), re.MULTILINE)
    assert parts is not None
    assert {f"{part}.c" for part in parts[1].split()} | {"report.c"} == {
        name for name in files if name.endswith(".c")
    }
    source = (CLIENT / "report.c").read_text()
    for option in ("--largest-epsilon", "--smallest-cohort", "--model-digest", "--client-id"):
        assert option in readme
        assert f'"{option}"' in source
