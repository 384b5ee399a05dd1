"""Queries whose results are counts: run by DuckDB and PostgreSQL, parsed for the others."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
import sqlglot

from fedassay import Examples, Grid, Hierarchy, Survey
from fedassay.errors import SettingInvalid
from fedassay.group_names import GroupNames
from fedassay.mechanisms import Unit, UnitKind
from fedassay.tables.sql import Dialect, counts_query
from tests.surveys import flat_survey, local_pair, local_survey

MOST_COMPARED_CELLS, MOST_LISTED_CELLS = 2**12, 30_000

EDGES = [0.0, 5e-324, 1e-300, 1e-12, 0.1, 0.25, 1 / 3, 0.5, 0.7, 1.0 - 2**-53, 1.0]
GRIDS = {
    "uniform": Grid.uniform(8),
    "one cell": Grid.uniform(1),
    "uneven": Grid.explicit(EDGES),
    "fine": Grid.nested(300),
}
ODD = [None, float("nan"), -0.0001, 1.0001, float("inf")]


def survey_on(grid: Grid) -> Survey:
    return flat_survey(grid)


def rows_on(grid: Grid) -> Examples:
    """Scores on every edge, just beside it, and anywhere."""
    edges = grid.edges
    beside = np.concatenate([np.nextafter(edges, -1.0), edges, np.nextafter(edges, 2.0)])
    scores = np.concatenate([beside, np.random.default_rng(0).random(500), [0.0, -0.0, 1.0]])
    scores = scores[(scores >= 0.0) & (scores <= 1.0)]
    return Examples(np.arange(len(scores)) % 3 == 0, scores)


def by_brute_force(grid: Grid, examples: Examples) -> dict[tuple[int, int], int]:
    """Every row asks every cell (lo, hi] whether it is its own; 0 is the first one's."""
    low, high = grid.edges[:-1], grid.edges[1:]
    counts = {(label, cell): 0 for label in (0, 1) for cell in range(grid.cells)}
    for label, score in zip(examples.labels.tolist(), examples.scores.tolist(), strict=True):
        own = np.flatnonzero(((low < score) & (score <= high)) | ((score == 0.0) & (low == 0.0)))
        counts[int(label), int(own[0])] += 1
    return counts


def asked(connection: duckdb.DuckDBPyConnection, query: str) -> dict[tuple[int, int], int]:
    found = connection.execute(query).fetchall()
    assert [column[0] for column in connection.description or ()] == ["label", "cell", "n"]
    assert found == sorted(found, key=lambda row: row[:2])
    return {(label, cell): n for label, cell, n in found}


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def fill(connection: duckdb.DuckDBPyConnection, examples: Examples, kind: str) -> None:
    connection.execute(f"CREATE TABLE scored (score DOUBLE, label {kind})")
    both = zip(examples.scores.tolist(), examples.labels.tolist(), strict=True)
    rows = [[score, bool(label)] for score, label in both]
    text = "CASE WHEN ? THEN 'yes' ELSE 'no' END" if kind == "VARCHAR" else f"CAST(? AS {kind})"
    connection.executemany(f"INSERT INTO scored VALUES (?, {text})", rows)


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
@pytest.mark.parametrize("dialect", [Dialect.DUCKDB, Dialect.SPARK])
def test_duckdb_counts_as_brute_force_does(
    duck: duckdb.DuckDBPyConnection, grid: Grid, dialect: Dialect
) -> None:
    """The tree of comparisons is of SQL that DuckDB reads too, but for its list of cells."""
    examples = rows_on(grid)
    fill(duck, examples, "INTEGER")
    query = counts_query(survey_on(grid), dialect, table="scored")
    query = query.replace("EXPLODE(SEQUENCE(0, ", "UNNEST(RANGE(1 + ")
    assert asked(duck, query) == by_brute_force(grid, examples)


@pytest.mark.parametrize("kind", ["INTEGER", "BOOLEAN", "DOUBLE", "DECIMAL(3, 1)", "VARCHAR"])
def test_labels_of_any_type_are_read(duck: duckdb.DuckDBPyConnection, kind: str) -> None:
    grid = GRIDS["uniform"]
    examples = rows_on(grid)
    fill(duck, examples, kind)
    positive = "yes" if kind == "VARCHAR" else None
    query = counts_query(survey_on(grid), "duckdb", table="scored", positive=positive)
    assert asked(duck, query) == by_brute_force(grid, examples)
    if kind in {"INTEGER", "DOUBLE", "BOOLEAN"}:
        value = "true" if kind == "BOOLEAN" else "1"
        same = counts_query(survey_on(grid), "duckdb", table="scored", positive=value)
        assert asked(duck, same) == by_brute_force(grid, examples)


def test_rows_that_fit_nowhere_are_counted_apart(duck: duckdb.DuckDBPyConnection) -> None:
    duck.execute("CREATE TABLE scored (score DOUBLE, label INTEGER)")
    duck.executemany("INSERT INTO scored VALUES (?, ?)", [[odd, 1] for odd in ODD])
    duck.executemany("INSERT INTO scored VALUES (?, ?)", [[0.5, None], [0.5, 2], [0.5, 0]])
    for dialect in (Dialect.DUCKDB, Dialect.SPARK):
        query = counts_query(survey_on(GRIDS["uniform"]), dialect, table="scored")
        found = asked(duck, query.replace("EXPLODE(SEQUENCE(0, ", "UNNEST(RANGE(1 + "))
        assert found[1, -1] == len(ODD)
        assert sum(n for (label, _), n in found.items() if label == -1) == 2
        assert found[0, 3] == 1
        assert sum(found.values()) == len(ODD) + 3


def test_names_are_quoted_where_they_need_it(duck: duckdb.DuckDBPyConnection) -> None:
    duck.execute('CREATE SCHEMA "order"')
    duck.execute('CREATE TABLE "order"."fedassay ""x""; --" ("a score" DOUBLE, "Y" BOOLEAN)')
    duck.execute("""INSERT INTO "order"."fedassay ""x""; --" VALUES (0.9, true)""")
    duck.execute('SET schema = "order"')
    query = counts_query(
        survey_on(GRIDS["uniform"]), "duckdb", table='fedassay "x"; --', score="a score", label="Y"
    )
    assert asked(duck, query)[1, 7] == 1
    assert "`my-project.data.scored`" not in counts_query(
        survey_on(GRIDS["uniform"]), "bigquery", table="my-project.data.scored"
    )


def test_names_that_are_words_of_sql_are_quoted(
    duck: duckdb.DuckDBPyConnection, postgres: list[str]
) -> None:
    names = {"table": "order", "score": "end", "label": "group"}
    made = 'CREATE TEMP TABLE "order" AS SELECT 0.9 AS "end", 1 AS "group";'
    duck.execute(made)
    survey = survey_on(GRIDS["uniform"])
    assert asked(duck, counts_query(survey, "duckdb", **names))[1, 7] == 1  # type: ignore[arg-type]  # names alone
    query = counts_query(survey, "postgres", **names)  # type: ignore[arg-type]  # names alone
    assert postgres_counts(postgres, made, query)[1, 7] == 1
    spark = counts_query(survey, "spark", **names)  # type: ignore[arg-type]  # names alone
    assert "`order`" in spark


@pytest.mark.parametrize("name", ["", "a\nb", "a\\b", "x" * 400])
def test_names_that_no_warehouse_has_are_refused(name: str) -> None:
    survey = survey_on(GRIDS["uniform"])
    for names in ({"table": name}, {"table": "t", "score": name}, {"table": "t", "label": name}):
        with pytest.raises(SettingInvalid, match="the name of a table or column"):
            counts_query(survey, "duckdb", **names)  # type: ignore[arg-type]  # names alone
    if name:
        with pytest.raises(SettingInvalid, match="the label of a positive"):
            counts_query(survey, "duckdb", table="t", positive=name)


def test_a_mark_is_one_row_more_that_counts_nothing(
    duck: duckdb.DuckDBPyConnection, postgres: list[str]
) -> None:
    duck.execute("CREATE TABLE scored AS SELECT 0.9 AS score, 1 AS label")
    made = "CREATE TEMP TABLE scored AS SELECT 0.9 AS score, 1 AS label;"
    marks = set()
    for edge in (0.25, 0.5):
        survey = survey_on(Grid.explicit([0.0, edge, 1.0]))
        plain = asked(duck, counts_query(survey, "duckdb", table="scored"))
        found = asked(duck, counts_query(survey, "duckdb", table="scored", mark=True))
        query = counts_query(survey, "postgres", table="scored", mark=True)
        assert postgres_counts(postgres, made, query) == found
        (mark,) = found.keys() - plain.keys()
        assert found == {**plain, mark: 0}
        assert mark[0] == -1
        assert mark[1] >= 2**30
        marks.add(mark)
    assert len(marks) == 2


def test_a_positive_with_a_quote_is_one_text(duck: duckdb.DuckDBPyConnection) -> None:
    duck.execute("CREATE TABLE scored AS SELECT 0.9 AS score, 'it''s' AS label")
    query = counts_query(survey_on(GRIDS["uniform"]), "duckdb", table="scored", positive="it's")
    assert asked(duck, query)[1, 7] == 1


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_every_dialect_reads_its_query(dialect: Dialect, grid: Grid) -> None:
    query = counts_query(survey_on(grid), dialect, table="a.scored", score="p q", positive="it's")
    (read,) = sqlglot.parse(query, read=dialect.value)
    assert read is not None
    assert "it's" in {each.this for each in read.find_all(sqlglot.exp.Literal)}
    tables = {each.name for each in read.find_all(sqlglot.exp.Table)}
    assert "scored" in tables
    assert isinstance(read, sqlglot.exp.Query)
    assert read.named_selects == ["label", "cell", "n"]


# Trino's functions that DuckDB does not have, by what their documentation says.
STAND_INS = """
CREATE MACRO WIDTH_BUCKET(x, bins) AS LEN(LIST_FILTER(bins, lambda b: b <= x));
CREATE MACRO SEQUENCE(low, high) AS RANGE(low, CAST(FLOOR(high) AS BIGINT) + 1);
"""


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_a_query_for_trino_counts_as_brute_force_does_by_stand_ins(
    duck: duckdb.DuckDBPyConnection, grid: Grid
) -> None:
    examples = rows_on(grid)
    fill(duck, examples, "BOOLEAN")
    duck.execute(STAND_INS)
    query = counts_query(survey_on(grid), "trino", table="scored")
    assert asked(duck, query) == by_brute_force(grid, examples)


def test_trino_gets_no_list_and_no_sequence_that_is_too_long_for_it() -> None:
    query = counts_query(flat_survey(Grid.uniform(MOST_LISTED_CELLS)), "trino", table="scored")
    # Its limits: 254 numbers in an array, 127 arguments, sequences of 10,000, 10^6 characters.
    (read,) = sqlglot.parse(query, read="trino")
    assert read is not None
    assert max(len(each.expressions) for each in read.find_all(sqlglot.exp.Array)) <= 254
    assert len(list(read.find_all(sqlglot.exp.Array))) <= 127
    assert f"SEQUENCE(0, {MOST_LISTED_CELLS - 1} / 256)" in query
    assert MOST_LISTED_CELLS / 256 < 10_000
    assert len(query) < 1_000_000


@pytest.mark.parametrize(
    ("survey", "dialect", "said"),
    [
        (flat_survey(Grid.uniform(2 * MOST_COMPARED_CELLS)), "spark", "at most 4,096 cells"),
        (flat_survey(Grid.uniform(2 * MOST_COMPARED_CELLS)), "snowflake", "at most 4,096 cells"),
        (flat_survey(Grid.uniform(MOST_LISTED_CELLS + 1)), "trino", "at most 30,000 cells"),
        (flat_survey(Grid.uniform(MOST_LISTED_CELLS + 1)), "bigquery", "at most 30,000 cells"),
        (local_pair()[0], "duckdb", "by its number in the table"),
        (local_pair()[1], "postgres", "by its number in the table"),
    ],
)
def test_what_no_query_can_count_is_refused(survey: Survey, dialect: str, said: str) -> None:
    with pytest.raises(SettingInvalid, match=said):
        counts_query(survey, dialect, table="scored")


def test_groups_are_not_counted_by_a_query() -> None:
    groups = GroupNames("ward", ("a", "b"))
    grouped = replace(flat_survey(Grid.uniform(4)), hierarchy=Hierarchy.flat(16), groups=groups)
    with pytest.raises(SettingInvalid, match="as for groups"):
        counts_query(grouped, "duckdb", table="scored")


def test_patients_are_not_counted_by_a_query() -> None:
    patients = replace(local_survey(cells=4), unit=Unit(UnitKind.PATIENT, 3))
    with pytest.raises(SettingInvalid, match="whose rows they are"):
        counts_query(patients, "duckdb", table="scored")


def test_an_unknown_dialect_is_named_with_those_there_are() -> None:
    with pytest.raises(SettingInvalid, match="duckdb"):
        counts_query(survey_on(GRIDS["uniform"]), "mysql", table="scored")


SERVER = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))), None)


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """A server of its own on a socket, and how to ask it."""
    if SERVER is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: postgresql)")
    folder = tmp_path_factory.mktemp("postgres")
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    if os.geteuid() == 0:
        # The server refuses to run as root.
        for each in (folder, *folder.parents):
            if each.is_relative_to(tmp_path_factory.getbasetemp().parent.parent):
                each.chmod(0o755)
        shutil.chown(folder, user)
    become = ["runuser", "-u", user, "--"] if os.geteuid() == 0 else []
    data, bins = folder / "data", SERVER.parent
    subprocess.run(
        [*become, bins / "initdb", "-D", data, "-A", "trust", "--no-sync"],
        check=True, capture_output=True, cwd=folder,
    )  # fmt: skip
    settings = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
    subprocess.run(
        [*become, bins / "pg_ctl", "-D", data, "-o", settings, "-l", folder / "log", "-w", "start"],
        check=True, capture_output=True, cwd=folder,
    )  # fmt: skip
    try:
        yield [
            *become,
            "psql",
            "-h",
            str(folder),
            "-d",
            "postgres",
            "-v",
            "ON_ERROR_STOP=1",
            "-qAt",
        ]
    finally:
        subprocess.run(
            [*become, bins / "pg_ctl", "-D", data, "-m", "immediate", "stop"],
            check=True, capture_output=True, cwd=folder,
        )  # fmt: skip


def postgres_counts(ask: list[str], statements: str, query: str) -> dict[tuple[int, int], int]:
    found = subprocess.run(
        [*ask, "-F", ","], input=f"{statements}\n{query};", text=True, check=True,
        capture_output=True, cwd="/",
    )  # fmt: skip
    lines = [tuple(map(int, line.split(","))) for line in found.stdout.split()]
    return {(label, cell): n for label, cell, n in lines}


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_postgres_counts_as_brute_force_does(postgres: list[str], grid: Grid) -> None:
    examples = rows_on(grid)
    rows = ", ".join(
        f"({score!r}::float8, {bool(label)})"
        for score, label in zip(examples.scores.tolist(), examples.labels.tolist(), strict=True)
    )
    made = f"CREATE TEMP TABLE scored AS SELECT * FROM (VALUES {rows}) AS v (score, label);"
    query = counts_query(survey_on(grid), "postgres", table="scored")
    assert postgres_counts(postgres, made, query) == by_brute_force(grid, examples)


def test_postgres_counts_odd_rows_apart(postgres: list[str]) -> None:
    odd = "(NULL, '1'), ('NaN', '1'), (-0.1, '1'), (1.5, '1'), ('Infinity', '1'), (0.5, 'x')"
    made = (
        "CREATE TEMP TABLE scored (score float8, label text);"
        f"INSERT INTO scored VALUES {odd}, (0.5, NULL), (0.5, 't'), (0.5, '0');"
    )
    query = counts_query(survey_on(GRIDS["uniform"]), "postgres", table="scored")
    found = postgres_counts(postgres, made, query)
    assert found[1, -1] == 5
    assert sum(n for (label, _), n in found.items() if label == -1) == 2
    assert (found[1, 3], found[0, 3]) == (1, 1)
