"""A client in another language: the same surveys, the same bytes, files that are tallied."""

import json
import re
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedassay import DecodeOptions, Grid, Hierarchy, Survey, Tally, new_survey
from fedassay.cli import main
from fedassay.cut_levels import CutLevels
from fedassay.errors import FedassayError
from fedassay.files import canonical, parse_json
from fedassay.hierarchy import Interleaved
from fedassay.level_draw import hashed_level, rows_of_step
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Privacy, UnitKind
from fedassay.pair_grid import PairGrid
from fedassay.pair_levels import PairLevels
from fedassay.planning.candidates import LEAVES, THOROUGH, candidate_grids, candidate_surveys
from fedassay.planning.request import Preset, SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.survey_json import survey_from_json
from fedassay.two_steps import decode_two
from fedassay.wire import messages
from tests.cc import c_verdicts
from tests.node import CLIENT, SCRIPTS, node_verdicts, run_node
from tests.steps import first_local, second_local
from tests.vectors.surveys import LOCAL, SURVEYS, local, secure

ROWS = 3000


def test_node_reproduces_every_vector() -> None:
    done = run_node(CLIENT / "vectors.js")
    assert done.returncode == 0, done.stderr
    assert " 0 failed" in done.stdout


def test_node_notices_a_vector_that_is_wrong(tmp_path: Path) -> None:
    """The twin: one digit of one fingerprint, one bit of one answer."""
    folder = SCRIPTS.parent / "vectors"
    for name, kind in (("surveys", "fingerprint"), ("answers", "bytes")):
        for file in folder.glob("*.json"):
            (tmp_path / file.name).write_bytes(file.read_bytes())
        content = json.loads((folder / f"{name}.json").read_text())
        digit = content["good"][0][kind][-1]
        content["good"][0][kind] = content["good"][0][kind][:-1] + f"{int(digit, 16) ^ 1:x}"
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
        done = run_node(CLIENT / "vectors.js", tmp_path)
        assert done.returncode == 1
        assert " 1 failed" in done.stdout


# --- surveys --------------------------------------------------------------------------------


def planned_surveys() -> list[Survey]:
    """What the planner makes, and all that it weighs on the way."""
    requests = [
        SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(5), clients=10**5, allow_empty=True),
        SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction("0.7"), thresholds=(0.1, 0.35)),
        SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(2), thresholds=(0.2, 0.5, 0.8)),
        SurveyRequest(
            privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1, 3), clients=4000, colluders=9
        ),
    ]
    surveys = [
        survey
        for request in requests
        for leaves in LEAVES
        for grid in candidate_grids(request, leaves)
        for survey in candidate_surveys(request, grid, THOROUGH)
    ]
    generator = np.random.default_rng(1)
    for shape in (0.2, 1.0, 5.0):
        reference = generator.beta(shape, 1.0, 5000)
        surveys.append(design_survey(SurveyRequest(reference=reference, smallest_cell=0)).survey)
    for preset in Preset:
        request = SurveyRequest(preset=preset, thresholds=(0.3,), smallest_cell=0)
        surveys.append(design_survey(request).survey)
    return surveys


fractions = st.fractions(Fraction(1, 1000), 50, max_denominator=10**6)
thresholds = st.lists(st.floats(0.0, 1.0, exclude_min=True, exclude_max=True), max_size=3)
grids = st.builds(
    lambda make, cells, at: make(cells).with_edges_at(at),
    st.sampled_from([Grid.uniform, Grid.cubic, Grid.fine, Grid.octaves]),
    st.integers(1, 200),
    thresholds,
) | st.lists(st.floats(0.0, 1.0, exclude_min=True, exclude_max=True), max_size=30, unique=True).map(
    lambda inner: Grid.explicit([0.0, *sorted(inner), 1.0])
)


@st.composite
def made_surveys(draw: st.DrawFn) -> Survey:
    grid = draw(grids)
    digest = draw(st.none() | st.integers(0, 2**256 - 1).map(lambda word: f"{word:064x}"))
    minimum = draw(st.integers(2, 2**31))
    hierarchy: Hierarchy | Interleaved = Hierarchy.flat(grid.cells)
    if 3 <= grid.cells <= 256 and draw(st.booleans()):
        hierarchy = Interleaved(grid.cells, draw(st.integers(2, min(grid.cells - 1, 12))))
    elif grid.cells > 4 and draw(st.booleans()):
        hierarchy = Hierarchy.regular(grid.cells, draw(st.integers(2, 5)))
    if draw(st.booleans()) and not isinstance(hierarchy, Interleaved):
        return secure(grid, hierarchy, model_digest=digest, minimum_reports=minimum)
    weights = draw(
        st.lists(st.integers(1, 1000), min_size=hierarchy.levels, max_size=hierarchy.levels)
    )
    policy = OneLevel(
        tuple(Fraction(weight, sum(weights)) for weight in weights), by_hash=draw(st.booleans())
    )
    kinds = draw(
        st.lists(st.sampled_from(["oue", "grr"]), min_size=len(weights), max_size=len(weights))
    )
    return local(
        " ".join(kinds),
        draw(fractions),
        grid,
        hierarchy,
        level_policy=policy,
        allow_empty=draw(st.booleans()),
        model_digest=digest,
    )


def drawn_from(strategy: st.SearchStrategy[Survey], count: int) -> list[Survey]:
    """As many different surveys as asked for."""
    drawn: dict[bytes, Survey] = {}

    @settings(max_examples=count)
    @given(strategy)
    def gather(survey: Survey) -> None:
        drawn[survey.fingerprint] = survey

    gather()
    return list(drawn.values())


def test_fingerprints_agree_on_a_thousand_surveys() -> None:
    surveys = [*planned_surveys(), *drawn_from(made_surveys(), 550)]
    different = {survey.fingerprint: survey for survey in surveys}
    assert len(different) >= 1000
    texts = [canonical(survey.to_json()) for survey in different.values()]
    assert node_verdicts(texts) == [fingerprint.hex() for fingerprint in different]
    local_ones = [each for each in different.values() if each.is_local and each.leaves <= 8192]
    assert len(local_ones) >= 300
    of_local = [canonical(survey.to_json()).decode() for survey in local_ones]
    assert c_verdicts(of_local) == [survey.fingerprint.hex() for survey in local_ones]


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**21) | st.sampled_from([0.5, 1e-9, 2.0**60])
    | st.sampled_from(["", "1", "1/2", "2/4", "local", "tree", "oue", "ab" * 32]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["kind", "cells", "step", "with"]), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip


def near(value: object) -> st.SearchStrategy[object]:
    """Other values of the same kind: many of them make a survey that is as good."""
    if isinstance(value, bool):
        return st.just(not value)
    if isinstance(value, int):
        return st.sampled_from([0, 1, 2, 4, 7, value - 1, value + 1, 2 * value, 2**20, 2**31])
    if isinstance(value, float):
        return st.sampled_from([0.0, value / 2, value + 2.0**-30, 0.3, 1.0])
    same = ["local", "secure", "client", "example", "tree", "uniform", "cubic", "1", "1/3", "5"]
    return st.sampled_from([*same, "2/6", "01", "+1", "ab" * 32, None])


def spoilt_surveys(count: int) -> list[bytes]:
    """Surveys with one field, at any depth, replaced, removed or added."""
    texts: list[bytes] = []

    @settings(max_examples=count)
    @given(st.sampled_from(sorted(SURVEYS)), st.data())
    def spoil(name: str, data: st.DataObject) -> None:
        content = SURVEYS[name].to_json()
        if name == "largest cubic grid":
            return
        place: object = content
        while isinstance(place, dict | list) and place:
            keys = sorted(place) if isinstance(place, dict) else range(len(place))
            key = data.draw(st.sampled_from(keys))
            inside = place[key]
            if isinstance(inside, dict | list) and inside and data.draw(st.booleans()):
                place = inside
                continue
            what = data.draw(st.sampled_from([*["nudge"] * 5, "replace", "remove", "add"]))
            if what == "nudge" and not isinstance(inside, dict | list):
                place[key] = data.draw(near(inside))
            elif what == "remove":
                del place[key]
            elif what == "add" and isinstance(place, dict):
                place[data.draw(st.sampled_from(["noise", "with", "edges"]))] = data.draw(junk)
            else:
                place[key] = data.draw(junk)
            break
        texts.append(canonical(content))

    spoil()
    return texts


def test_all_clients_refuse_the_same_surveys() -> None:
    """A survey that one client reads and another does not would split a federation."""
    texts = spoilt_surveys(600)
    verdicts = []
    for text in texts:
        try:
            verdicts.append(survey_from_json(parse_json(text, "survey")).fingerprint.hex())
        except FedassayError:
            verdicts.append("refused")
    assert 50 < verdicts.count("refused") < len(verdicts) - 20
    found = ["refused" if each.startswith("refused") else each for each in node_verdicts(texts)]
    disagreed = [
        (text[:300], ours, theirs)
        for text, ours, theirs in zip(texts, verdicts, found, strict=True)
        if ours != theirs
    ]
    assert disagreed == []
    answered = [
        ours if is_for_devices(text) else "refused"
        for text, ours in zip(texts, verdicts, strict=True)
    ]
    assert c_verdicts([text.decode() for text in texts]) == answered


def is_for_devices(text: bytes) -> bool:
    """Whether a survey is local and of no more cells than a device answers."""
    content = json.loads(text)
    if content.get("privacy") != "local":
        return False
    try:
        return survey_from_json(content).leaves <= 8192
    except FedassayError:
        return False


def test_node_leaves_sites_and_patients_to_the_package() -> None:
    site = new_survey(privacy="site", epsilon=1, clients=4, examples=40_000, height=2)
    patient = new_survey(privacy="local", epsilon=1, clients=400, height=2, unit="patient")
    merged = new_survey(examples=1000)
    moments = new_survey(minimum_reports=8, smallest_cell=0, height=2, site_moments=True)
    pair = PairGrid.of(("a", "b"), Grid.uniform(2), Grid.uniform(2))
    margins = secure(pair, PairLevels.margins_and(2, 2, ((0,), (0,))))
    texts = [canonical(each.to_json()) for each in (site, patient, merged, moments, margins)]
    for verdict in node_verdicts(texts):
        assert verdict.startswith("refused")
        assert "answered with the fedassay package" in verdict


def test_both_clients_refuse_more_chosen_cells_than_a_fit_takes() -> None:
    first = first_local(leaves=2048)
    leaf = tuple(range(2048))
    texts = []
    for levels in (4, 5):
        survey = second_local(first, CutLevels(2048, ((leaf, leaf),) * 4), kinds="oue oue oue oue")
        content = survey.to_json()
        content["hierarchy"]["levels"] = [[list(leaf), list(leaf)]] * levels
        content["mechanisms"] = content["mechanisms"][:1] * levels
        content["level_policy"]["client_fractions"] = [str(Fraction(1, levels))] * levels
        texts.append(canonical(content))
    allowed, refused = node_verdicts(texts)
    assert allowed == survey_from_json(parse_json(texts[0], "survey")).fingerprint.hex()
    assert "8192 cells together" in refused
    with pytest.raises(FedassayError, match="8,192 cells together"):
        survey_from_json(parse_json(texts[1], "survey"))


# --- the command line -----------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(name for name in LOCAL if LOCAL[name].step is None))
def test_a_report_file_from_node_is_tallied(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey = LOCAL[name]
    survey.save(tmp_path / "survey.json")
    generator = np.random.default_rng(5)
    rows = [f"{label},{score}" for label, score in zip(*random_rows(generator), strict=True)]
    (tmp_path / "scores.csv").write_text("\n".join(["label,score", *rows, ""]))
    ids = one_id_for_each_level(survey)
    for client_id in ids:
        done = run_node(
            CLIENT / "answer.js",
            *(tmp_path / file for file in ("survey.json", "scores.csv", f"{client_id}.fa")),
            *("--largest-epsilon", "5", "--client-id", client_id),
        )
        assert done.returncode == 0, done.stderr
        assert (tmp_path / f"{client_id}.fa").stat().st_mode & 0o777 == 0o600
    files = [str(tmp_path / f"{client_id}.fa") for client_id in ids]
    output = tmp_path / "assessment.json"
    command = ["fedassay", "tally", str(tmp_path / "survey.json"), *files, "-o", str(output)]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    sent = b"".join(Path(file).read_bytes() for file in files)
    tally = Tally.of(survey, messages(BytesIO(sent), survey))
    per_client = 1 if survey.unit.kind is UnitKind.CLIENT else ROWS
    assert sum(tally.reports) == len(ids) * per_client
    assert output.exists()


def test_each_row_answers_one_of_two_surveys_from_node(tmp_path: Path) -> None:
    first, second = LOCAL["first of two, by hash"], LOCAL["second of two, cells for each label"]
    rows = list(zip(*random_rows(np.random.default_rng(6)), strict=True))
    lines = [f"{label},{score}" for label, score in rows]
    (tmp_path / "scores.csv").write_text("\n".join(["label,score", *lines, ""]))
    ids, tallies = one_id_for_each_level(first), []
    for survey in (first, second):
        survey.save(tmp_path / "survey.json")
        tally = Tally.zero(survey)
        for client_id in ids:
            (tmp_path / "report.fa").unlink(missing_ok=True)
            files = [tmp_path / file for file in ("survey.json", "scores.csv", "report.fa")]
            limits = ["--largest-epsilon", "5"]
            without = run_node(CLIENT / "answer.js", *files, *limits)
            assert "found no" in without.stderr
            done = run_node(CLIENT / "answer.js", *files, *limits, "--client-id", client_id)
            assert done.returncode == 0, done.stderr
            sent = BytesIO((tmp_path / "report.fa").read_bytes())
            tally = tally + Tally.of(survey, messages(sent, survey))
        asked = sum(int(rows_of_step(survey, each, range(ROWS)).sum()) for each in ids)
        assert sum(tally.reports) == asked
        tallies.append(tally)
    assert sum(sum(tally.reports) for tally in tallies) == len(ids) * ROWS
    options = DecodeOptions()
    histogram = decode_two(first, tallies[0], second, tallies[1], decode_options=options)
    assert histogram.total == pytest.approx(len(ids) * ROWS)


def random_rows(generator: np.random.Generator) -> tuple[list[int], list[float]]:
    return generator.integers(0, 2, ROWS).tolist(), generator.random(ROWS).tolist()


def one_id_for_each_level(survey: Survey) -> list[str]:
    """Clients enough to hear of every level, where an id decides on it."""
    if not isinstance(survey.level_policy, OneLevel) or not survey.level_policy.by_hash:
        return ["anna"]
    ids = {hashed_level(survey, each): each for each in (f"client {i}" for i in range(100))}
    assert len(ids) == survey.hierarchy.levels
    return list(ids.values())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--largest-epsilon", "1/2"], "at most epsilon 1/2"),
        (["--largest-epsilon", "1", "--smallest-cohort", "2"], "crowd of at least 2"),
        (["--largest-epsilon", "1", "--model-digest", "ab" * 32], "models it knows"),
        ([], "usage"),
    ],
)
def test_node_refuses_what_its_owner_does_not_allow(
    given: list[str], says: str, tmp_path: Path
) -> None:
    LOCAL["oue, one level"].save(tmp_path / "survey.json")
    (tmp_path / "scores.csv").write_text("label,score\n1,0.7312345\n")
    files = [tmp_path / file for file in ("survey.json", "scores.csv", "report.fa")]
    done = run_node(CLIENT / "answer.js", *files, *given)
    assert done.returncode == 1
    assert says in done.stderr
    assert not (tmp_path / "report.fa").exists()


@pytest.mark.parametrize(
    "row", ["1,1.7312345", "1,", "2,0.7312345", "7312345,0.5", "1,x7312345", "1,NaN", ",0.7312345"]
)
def test_nodes_refusals_withhold_the_data(row: str, tmp_path: Path) -> None:
    LOCAL["oue, one level"].save(tmp_path / "survey.json")
    (tmp_path / "scores.csv").write_text(f"label,score\n1,0.5\n{row}\n")
    files = [tmp_path / file for file in ("survey.json", "scores.csv", "report.fa")]
    done = run_node(CLIENT / "answer.js", *files, "--largest-epsilon", "5")
    assert done.returncode == 1
    assert "item 2" in done.stderr
    assert "7312345" not in done.stderr + done.stdout
    assert not (tmp_path / "report.fa").exists()


def test_the_readme_names_every_file_and_the_options_that_there_are() -> None:
    readme = (CLIENT / "README.md").read_text()
    assert [path.name for path in CLIENT.glob("*.js") if f"`{path.name}`" not in readme] == []
    commands = [line for line in readme.splitlines() if not line.startswith("fedassay")]
    options = set(re.findall(r"--([a-z-]+)", "\n".join(commands).replace("---", "")))
    known = set(re.findall(r'^  "?([a-z-]+)"?: \{ type', (CLIENT / "answer.js").read_text(), re.M))
    assert options == known
