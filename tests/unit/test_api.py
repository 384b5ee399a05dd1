"""The door: a newcomer's ten lines, every kind of input, the figures of the command line."""

import ast
import importlib.util
import json
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

import fedassay
from fedassay import api
from fedassay.api_columns import client_codes
from fedassay.api_inputs import as_fraction
from fedassay.calibration import CalibrationDisplay
from fedassay.cli.app import app
from fedassay.client import OPEN_POLICY
from fedassay.errors import FileInvalid
from fedassay.metrics import PrecisionRecallDisplay, RocCurveDisplay
from tests.tables import ROOT

SCORES = np.random.default_rng(0).beta(2, 5, 4000)
LABELS = (np.random.default_rng(1).random(4000) < SCORES).astype(np.int64)
CLIENTS = np.array([f"site-{number}" for number in np.arange(4000) % 7])
PAIRS = np.array([f"pair-{number}" for number in np.arange(4000) // 2])
VERBS = ("answer", "load", "new_survey", "plan", "simulate", "tally_answers")


@cache
def result() -> fedassay.Assessment:
    return fedassay.simulate(LABELS, SCORES, privacy="local", epsilon=5, seed=0)


def test_a_newcomers_ten_lines_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    y_true, y_score = LABELS, SCORES
    sites = [(LABELS[i::1000], SCORES[i::1000]) for i in range(1000)]

    result = fedassay.simulate(
        y_true, y_score, privacy="local", epsilon=5, thresholds=[0.5], seed=0
    )
    auc = result["roc_auc"]
    calibrator = result.calibrate()
    result.save("assessment.json")
    again = fedassay.load("assessment.json")
    survey = fedassay.new_survey(
        privacy="distributed", epsilon="1/3", clients=1000, minimum_reports=900
    )
    answers = [fedassay.answer(survey, y, s) for y, s in sites]
    tallied = fedassay.tally_answers(survey, answers)
    made = fedassay.plan(privacy="local", epsilon=2, target_error=0.005)

    exact = roc_auc_score(LABELS, SCORES)
    assert exact in auc.interval(0.9999)
    assert re.fullmatch(r"0\.\d{3} \[0\.\d{3}, 0\.\d{3}\]", str(auc))
    assert f"{auc:.3f}" == f"{float(auc):.3f}" == str(auc)[:5]
    assert calibrator.predict_proba(np.array([0.2, 0.8])).shape == (2, 2)
    assert isinstance(again, fedassay.Assessment)
    assert again["roc_auc"] == auc
    assert survey.epsilon == Fraction(1, 3)
    assert survey.minimum_reports == 900
    # Noise at epsilon 1/3 over few cells: ten standard deviations.
    assert tallied.histogram().total == pytest.approx(4000, abs=1000)
    assert made.is_enough
    assert made.solved_for == ("clients",)


# --- The same figures as the command line -------------------------------------------------

SETTINGS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "secure": ({}, []),
    "local": ({"privacy": "local", "epsilon": 5}, ["--privacy", "local", "--epsilon", "5"]),
    "distributed over clients": (
        {"privacy": "distributed", "epsilon": 0.5, "clients": "site", "minimum_reports": 5},
        ["--privacy", "distributed", "--epsilon", "0.5", "--client", "site",
         "--minimum-reports", "5"],
    ),
    "unit client, one level each": (
        {"privacy": "local", "epsilon": "8", "clients": "pair", "unit": "client", "height": 2,
         "preset": "paper"},
        ["--privacy", "local", "--epsilon", "8", "--client", "pair", "--unit", "client",
         "--height", "2", "--preset", "paper"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_arrays_give_the_figures_of_the_command_line_with_the_same_seed(
    name: str, tmp_path: Path
) -> None:
    settings, options = SETTINGS[name]
    file = tmp_path / "scores.parquet"
    owners = {"site": CLIENTS, "pair": PAIRS}
    pd.DataFrame({"label": LABELS, "score": SCORES, **owners}).to_parquet(file)
    arrays = dict(settings)
    if "clients" in settings:
        arrays["clients"] = owners[settings["clients"]]
    ours = fedassay.simulate(LABELS, SCORES, thresholds=[0.3, 0.5], seed=7, **arrays)
    by_name = fedassay.simulate(
        "label", "score", data=file, thresholds=[0.3, 0.5], seed=7, **settings
    )
    command = ["simulate", str(file), *options, "--threshold", "0.3", "--threshold", "0.5"]
    done = CliRunner().invoke(app, [*command, "--seed", "7", "--json"])
    assert done.exit_code == 0, done.output
    theirs = json.loads(done.stdout)["trials"][0]
    shown = {name: [each.value, *each.interval()] for name, each in ours.estimates().items()}
    finite = {key: values for key, values in shown.items() if np.isfinite(values).all()}
    assert len(finite) > 5
    for key, values in finite.items():
        assert values == [theirs[key]["value"], theirs[key]["low"], theirs[key]["high"]]
    assert by_name.to_dict() == ours.to_dict()


def test_a_result_prints_the_table_that_the_command_line_prints(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    pd.DataFrame({"label": LABELS, "score": SCORES}).to_csv(file, index=False)
    command = ["simulate", str(file), "--privacy", "local", "--epsilon", "5", "--seed", "0"]
    done = CliRunner().invoke(app, [*command, "--steps", "1"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    once = fedassay.simulate(LABELS, SCORES, privacy="local", epsilon=5, seed=0, steps=1)
    printed = [line.split() for line in str(once).splitlines() if line]
    theirs = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert len(printed) == 36
    assert [word for line in printed for word in line] == [word for line in theirs for word in line]


def test_the_same_seed_repeats_and_no_seed_does_not() -> None:
    def auc(seed: int | None) -> float:
        return float(
            fedassay.simulate(LABELS, SCORES, privacy="local", epsilon=1, seed=seed)["roc_auc"]
        )

    assert auc(3) == auc(3)
    assert auc(None) != auc(None)


# --- Every kind of input ------------------------------------------------------------------


class Streaming:
    """A table that nothing is known of but that it streams Arrow data."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


COLUMNS: dict[str, Callable[[npt.NDArray[Any]], Any]] = {
    "lists": lambda column: column.tolist(),
    "tuples": lambda column: tuple(column.tolist()),
    "numpy": lambda column: column,
    "one column of two dimensions": lambda column: column[:, None],
    "pandas": pd.Series,
    "pandas with an index": lambda column: pd.Series(column, index=range(9, 9 + len(column))),
    "pandas nullable": lambda column: pd.Series(column).convert_dtypes(),
    "polars": pl.Series,
    "pyarrow": pa.array,
    "pyarrow chunks": lambda column: pa.chunked_array([column[:10], column[10:]]),
}
TABLES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "mapping": lambda columns: columns,
    "pandas": pd.DataFrame,
    "pandas of Arrow": lambda columns: pd.DataFrame(columns).convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "a stream of Arrow data": lambda columns: Streaming(pa.table(columns)),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("coding", ["int", "bool", "minus"])
def test_columns_of_every_kind_count_the_same(kind: str, coding: str) -> None:
    labels = {"int": LABELS, "bool": LABELS == 1, "minus": 2 * LABELS - 1}[coding]
    make = COLUMNS[kind]
    counted = fedassay.simulate(make(labels), make(SCORES), seed=0).tally
    assert counted == fedassay.simulate(LABELS, SCORES, seed=0).tally
    assert counted.counters.sum() == 4000


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_every_kind_go_by_names_of_columns(kind: str) -> None:
    table = TABLES[kind]({"y": LABELS, "s": SCORES, "who": CLIENTS, "note": ["x"] * 4000})
    settings: dict[str, Any] = {
        "privacy": "distributed",
        "epsilon": 1,
        "minimum_reports": 2,
    }
    named = fedassay.simulate("y", "s", data=table, clients="who", seed=5, **settings)
    plain = fedassay.simulate(LABELS, SCORES, clients=CLIENTS, seed=5, **settings)
    assert named.tally == plain.tally
    assert named.tally.reports == (7,) * named.survey.hierarchy.levels
    survey = fedassay.new_survey(minimum_reports=1)
    sums = fedassay.tally_answers(
        survey, [fedassay.answer(survey, "y", "s", data=table, policy=OPEN_POLICY)]
    )
    assert sums.histogram().total_positives == LABELS.sum()


@pytest.mark.parametrize(
    ("clients", "codes"),
    [
        (["b", "a", "b"], [0, 1, 0]),
        (np.array([30, 10, 30]), [0, 1, 0]),
        (pd.Series(["x", None, float("nan")], dtype=object), [0, 1, 1]),
        (pl.Series(["x", None, "y"]), [0, 1, 2]),
        (pa.array([5, None, 5]), [0, 1, 0]),
        (np.array([0.5, np.nan, np.nan]), [0, 1, 1]),
    ],
)
def test_clients_are_numbered_as_they_appear_and_missing_ones_are_one(
    clients: Any, codes: list[int]
) -> None:
    numbered, names = client_codes(clients, None)
    assert numbered.tolist() == codes
    assert len(names) == max(codes) + 1


@pytest.mark.parametrize(
    ("given", "exact"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.int64(3), Fraction(3)),
        (1e-05, Fraction(1, 100_000)),
        (Fraction(1, 3), Fraction(1, 3)),
        ("1/3", Fraction(1, 3)),
        (" 0.25 ", Fraction(1, 4)),
        (Decimal("0.3"), Fraction(3, 10)),
    ],
)
def test_an_epsilon_means_the_decimal_that_it_is_written_as(given: Any, exact: Fraction) -> None:
    assert as_fraction(given, "epsilon") == exact


def test_choices_are_texts_or_members() -> None:
    by_text = fedassay.new_survey(
        privacy="local", epsilon=2, clients=500, preset="paper", unit="client", levels="every",
        height=3, budget="2,1,1",
    )  # fmt: skip
    by_member = fedassay.new_survey(
        privacy=fedassay.Privacy.LOCAL, epsilon=Fraction(2), clients=500,
        preset=fedassay.Preset.PAPER, unit=fedassay.UnitKind.CLIENT,
        levels=fedassay.LevelChoice.EVERY, height=3, budget=(2, 1, 1),
    )  # fmt: skip
    assert by_text.fingerprint == by_member.fingerprint
    histogram_free = result().calibrate(fedassay.Method.ISOTONIC)
    assert histogram_free.values.tolist() == result().calibrate("isotonic").values.tolist()


@pytest.mark.parametrize("as_path", [str, Path])
def test_every_file_loads_by_its_format_from_text_or_path(
    as_path: Callable[[Path], Any], tmp_path: Path
) -> None:
    survey = result().survey
    calibrator = result().calibrate("sigmoid")
    values: dict[str, Any] = {"survey": survey, "assessment": result(), "calibrator": calibrator}
    for name, value in values.items():
        value.save(as_path(tmp_path / f"{name}.json"))
    loaded = {name: fedassay.load(as_path(tmp_path / f"{name}.json")) for name in values}
    assert loaded["survey"] == survey
    assert isinstance(loaded["assessment"], fedassay.Assessment)
    assert loaded["assessment"].tally == result().tally
    assert isinstance(loaded["calibrator"], fedassay.Calibrator)
    assert loaded["calibrator"].values.tolist() == calibrator.values.tolist()
    (tmp_path / "other.json").write_text('{"format": "fedassay.rubbish/9"}')
    with pytest.raises(FileInvalid, match=r"fedassay\.survey/2"):
        fedassay.load(as_path(tmp_path / "other.json"))


def test_answers_tally_as_values_bytes_and_files(tmp_path: Path) -> None:
    survey = fedassay.new_survey(minimum_reports=2)
    survey.save(tmp_path / "survey.json")
    answers = [
        fedassay.answer(str(tmp_path / "survey.json"), [0, 1], [0.2, score], policy=OPEN_POLICY)
        for score in (0.8, 0.9)
    ]
    (tmp_path / "in").mkdir()
    for number, each in enumerate(answers):
        (tmp_path / "in" / f"{number}.fa").write_bytes(each.to_bytes())
    by_value = fedassay.tally_answers(survey, answers)
    by_bytes = fedassay.tally_answers(survey, [each.to_bytes() for each in answers])
    by_folder = fedassay.tally_answers(tmp_path / "survey.json", [tmp_path / "in"])
    assert by_value.tally == by_bytes.tally == by_folder.tally
    assert by_value.reports == 2


# --- How values look ----------------------------------------------------------------------


def test_values_print_in_few_lines_and_show_themselves_in_notebooks() -> None:
    histogram = result().histogram()
    made = fedassay.plan(clients=1000)
    one_line: list[Any] = [
        result()["roc_auc"], fedassay.NotEnoughData(reason="too few"), histogram,
        result().survey, result().survey.guarantee, result().calibrate("bbq"), made, result(),
        result().tally, fedassay.Grid.fine(), fedassay.Examples(LABELS, SCORES),
        fedassay.answer(fedassay.new_survey(), LABELS, SCORES, policy=OPEN_POLICY),
    ]  # fmt: skip
    for value in one_line:
        assert len(repr(value)) < 400, repr(value)
        assert "\n" not in repr(value)
        assert len(str(value)) < 3500
    for value in one_line[:8]:
        assert value._repr_html_().startswith(("<p>", "<table>"))
    assert "&lt;" in fedassay.NotEnoughData(reason="1 < 2")._repr_html_()


def test_a_display_shows_its_figure_and_not_its_arrays() -> None:
    histogram = result().histogram()
    for kind in (RocCurveDisplay, PrecisionRecallDisplay, CalibrationDisplay):
        display: Any = kind.from_histogram(histogram)
        assert len(repr(display)) < 120
        assert display._repr_png_().startswith(b"\x89PNG")


def test_an_assessment_decodes_once_and_says_so_when_it_cannot() -> None:
    assert result().histogram() is result().histogram()
    survey = fedassay.new_survey(minimum_reports=5)
    answer = fedassay.answer(survey, [0, 1], [0.1, 0.9], policy=OPEN_POLICY)
    waiting = fedassay.tally_answers(survey, [answer])
    assert "1 reports; nothing is decoded below 5" in str(waiting)
    assert waiting._repr_html_().startswith("<p>")


def test_to_dict_is_flat_floats_under_names_that_trackers_take() -> None:
    flat = result().to_dict()
    assert all(type(value) is float for value in flat.values())
    assert all(re.fullmatch(r"[\w./ -]+", name) for name in flat)
    low, high = result()["recall@0.5"].interval()
    assert (flat["recall_at_0.5_low"], flat["recall_at_0.5_high"]) == (low, high)
    assert flat["roc_auc_exact"] == pytest.approx(roc_auc_score(LABELS, SCORES), abs=1e-12)
    assert flat["epsilon"] == 5.0


def test_metrics_at_any_threshold_are_read_by_name() -> None:
    exact = fedassay.simulate(LABELS, SCORES, thresholds=[0.25], seed=0)
    assert float(exact["recall@0.25"]) == pytest.approx((SCORES[LABELS == 1] > 0.25).mean())
    assert exact["recall@0.75"].is_available
    assert "recall@0.75" not in list(exact)


# --- The door itself ----------------------------------------------------------------------


def test_no_exported_verb_has_the_name_of_a_module() -> None:
    verbs = [name for name in fedassay.__all__ if callable(getattr(fedassay, name))]
    assert set(VERBS) <= set(verbs)
    for name in verbs:
        assert importlib.util.find_spec(f"fedassay.{name}") is None, name
    for name in VERBS:
        assert getattr(fedassay, name) is getattr(api, name)


def test_rooms_are_there_without_another_import() -> None:
    for name in ("metrics", "calibration", "planning", "ledger", "errors"):
        assert getattr(fedassay, name).__name__ == f"fedassay.{name}"
    with pytest.raises(AttributeError, match="rubbish"):
        fedassay.rubbish  # type: ignore[attr-defined]  # noqa: B018  # the looking up is the test


def test_what_a_checker_sees_at_the_top_is_what_runs() -> None:
    source = ast.parse((ROOT / "src" / "fedassay" / "__init__.py").read_text())
    (checked,) = [node for node in source.body if isinstance(node, ast.If)][:1]
    seen = {
        alias.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(seen) == set(fedassay.__all__) - {"__version__"}
    for name, module in seen.items():
        value = getattr(fedassay, name)
        assert value is getattr(importlib.import_module(str(module)), name)


def test_only_simulate_takes_a_seed() -> None:
    import inspect

    seeded = [name for name in VERBS if "seed" in inspect.signature(getattr(api, name)).parameters]
    assert seeded == ["simulate"]
    for name in VERBS:
        assert "randomness" not in inspect.signature(getattr(api, name)).parameters
