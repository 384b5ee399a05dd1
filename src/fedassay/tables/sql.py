"""One query whose result is a survey's counts, for tables that stay in their warehouse.

Cells are (lo, hi], and the first also holds 0. A dialect that finds a place among sorted numbers
takes a number itself to the upper side, as for cells [lo, hi); so scores and edges are negated,
which turns the side round, and what comes out is counted from the other end. Where a dialect has
no such function, a tree of comparisons halves the cells until one is left.

Names and texts of the user's are quoted here, not bound: the query is printed, and run elsewhere.
"""

import re
from dataclasses import dataclass
from enum import Enum

from fedassay.checks import choice, require_type
from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray
from fedassay.grid_rules import MAX_CELLS
from fedassay.patient_rows import limits_patients
from fedassay.survey import Survey
from fedassay.tables.counts_file import edges_mark, require_plain_cells

MOST_COMPARED_CELLS = 2**12
"""A tree of comparisons over more cells is longer than warehouses read."""
MOST_LISTED_CELLS = 30_000
"""Edges of so many cells fit into the million characters that Trino and BigQuery read."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_NAME = 300
# Words that some dialect takes for its own: whoever has such a name had to quote it too.
_RESERVED = """
    all and any array as asc at between both by case cast check column constraint create cross
    current default desc distinct else end except exists false fetch for foreign from full grant
    group grouping having if in inner intersect interval into is join lateral left like limit
    natural not null offset on only or order outer over partition primary range references right
    rows select set some table then to true union unique unnest user using values when where
    window with within
"""


class Dialect(Enum):
    """The SQL of one kind of warehouse."""

    DUCKDB = "duckdb"
    SPARK = "spark"
    BIGQUERY = "bigquery"
    TRINO = "trino"
    POSTGRES = "postgres"
    SNOWFLAKE = "snowflake"


@dataclass(frozen=True, slots=True)
class _Words:
    """What a dialect calls things."""

    number: str
    text: str
    numbers_below: str
    """Every whole number from 0 to {last} as a column `cell`."""
    quote: str = '"'
    """Round names that need it."""
    apostrophe: str = "''"
    """How one is written within a text."""
    place: str | None = None
    """How many of a sorted list of {edges} are at most {score}."""
    array: str = "ARRAY[{numbers}]"
    """A list of {numbers}."""
    most_cells: int | None = MOST_COMPARED_CELLS
    """Of a survey that can be asked; None is any number."""
    most_in_array: int = MAX_CELLS
    """A longer list is joined of shorter ones."""


_WORDS = {
    Dialect.DUCKDB: _Words(
        "DOUBLE", "VARCHAR", "SELECT UNNEST(RANGE({last} + 1)) AS cell", most_cells=None
    ),
    Dialect.SPARK: _Words(
        "DOUBLE",
        "STRING",
        "SELECT EXPLODE(SEQUENCE(0, {last})) AS cell",
        quote="`",
        apostrophe="\\'",
    ),
    Dialect.BIGQUERY: _Words(
        "FLOAT64",
        "STRING",
        "SELECT cell FROM UNNEST(GENERATE_ARRAY(0, {last})) AS cell",
        quote="`",
        apostrophe="\\'",
        place="RANGE_BUCKET({score}, {edges})",
        array="[{numbers}]",
        most_cells=MOST_LISTED_CELLS,
    ),
    Dialect.TRINO: _Words(
        "DOUBLE",
        "VARCHAR",
        # A sequence has at most 10,000 numbers.
        "SELECT 256 * high + low AS cell FROM UNNEST(SEQUENCE(0, {last} / 256)) AS highs (high)"
        " CROSS JOIN UNNEST(SEQUENCE(0, 255)) AS lows (low) WHERE 256 * high + low <= {last}",
        place="WIDTH_BUCKET({score}, {edges})",
        most_cells=MOST_LISTED_CELLS,
        # Before 2024 an array was written with at most 254 numbers; CONCAT takes 127 of them.
        most_in_array=250,
    ),
    Dialect.POSTGRES: _Words(
        "DOUBLE PRECISION",
        "TEXT",
        "SELECT GENERATE_SERIES(0, {last}) AS cell",
        place="WIDTH_BUCKET({score}, {edges})",
        array="CAST(ARRAY[{numbers}] AS DOUBLE PRECISION[])",
        most_cells=None,
    ),
    Dialect.SNOWFLAKE: _Words(
        "DOUBLE",
        "VARCHAR",
        "SELECT ROW_NUMBER() OVER (ORDER BY SEQ4()) - 1 AS cell"
        " FROM TABLE(GENERATOR(ROWCOUNT => {last} + 1))",
    ),
}


def counts_query(
    survey: Survey,
    dialect: Dialect | str,
    *,
    table: str,
    score: str = "score",
    label: str = "label",
    positive: str | None = None,
    mark: bool = False,
) -> str:
    """The query whose result, with columns label, cell and n, `answer --counts` takes.

    Every cell of both labels is a row, empty ones too. Rows without a label of 0 or 1, or without
    a score from 0 to 1, are counted under -1, so that nothing is lost in silence. With `mark`
    there is one more row of label -1 that counts nothing; its cell says whose edges these are.

    >>> from fedassay import new_survey
    >>> survey = new_survey(privacy="site", epsilon=1, height=1)
    >>> query = counts_query(survey, "postgres", table="loans")
    >>> query.splitlines()[4].strip()
    'FROM loans'
    """
    require_type(survey, Survey, "a survey", "fedassay.load reads survey files.")
    dialect = choice(Dialect, dialect, "dialect")
    _check_survey(survey, dialect)
    words = _WORDS[dialect]
    edges = survey.grid.edges[1:-1]
    cells = words.numbers_below.format(last=len(edges))
    named = {name: _name(text, words.quote) for name, text in (("score", score), ("label", label))}
    if dialect is Dialect.DUCKDB:
        coded, counted = "s", _histogram(survey.grid.edges[1:])
    else:
        cell = _tree(edges) if words.place is None else _place(words, words.place, edges)
        coded = f"CASE WHEN s >= 0 AND s <= 1 THEN {cell} ELSE -1 END AS cell"
        counted = "SELECT label, cell, COUNT(*) AS n FROM fedassay_coded GROUP BY label, cell"
    row = f"UNION ALL\nSELECT -1 AS label, {edges_mark(survey)} AS cell, 0 AS n\n"
    marked = row if mark else ""
    # Names of its own, so that none hides the user's table.
    return f"""\
WITH fedassay_rows AS (
  SELECT
    CAST({named["score"]} AS {words.number}) AS s,
    CAST({named["label"]} AS {words.text}) AS y
  FROM {_table(table, words.quote)}
),
fedassay_coded AS (
  SELECT {label_code(positive, words.apostrophe)} AS label, {coded} FROM fedassay_rows
),
fedassay_counted AS (
  {counted}
),
fedassay_cells AS (
  {cells}
),
fedassay_labels AS (
  SELECT 0 AS label UNION ALL SELECT 1 AS label
)
SELECT l.label AS label, c.cell AS cell, COALESCE(f.n, 0) AS n
FROM fedassay_labels AS l
CROSS JOIN fedassay_cells AS c
LEFT JOIN fedassay_counted AS f ON f.label = l.label AND f.cell = c.cell
UNION ALL
SELECT label, cell, n FROM fedassay_counted WHERE label < 0 OR cell < 0
{marked}ORDER BY 1, 2
"""


def _check_survey(survey: Survey, dialect: Dialect) -> None:
    if limits_patients(survey):
        raise SettingInvalid(
            f"this survey protects {survey.unit}, and counts do not say whose rows they are. "
            "Answer from the table: fedassay answer survey.json scores.parquet."
        )
    require_plain_cells(survey)
    cells, most = survey.grid.cells, _WORDS[dialect].most_cells
    if most is not None and cells > most:
        raise SettingInvalid(
            f"a query for {dialect.value} compares every score with the edges of at most "
            f"{most:,} cells; this survey has {cells:,}. Make one with a "
            "smallest cell (--smallest-cell 10) or of a given --height."
        )


def label_code(positive: str | None, apostrophe: str) -> str:
    """The label of a row by the text y of its column: 1, 0, or -1 where it is neither.

    >>> label_code("it's", "''")
    "CASE WHEN y IS NULL THEN -1 WHEN y IN ('it''s') THEN 1 ELSE 0 END"
    """
    if positive is not None:
        same = ", ".join(_text(each, apostrophe) for each in _spellings(positive))
        return f"CASE WHEN y IS NULL THEN -1 WHEN y IN ({same}) THEN 1 ELSE 0 END"
    # What warehouses make of booleans, whole numbers and others as texts.
    return (
        "CASE WHEN LOWER(y) IN ('1', '1.0', 'true', 't') THEN 1"
        " WHEN LOWER(y) IN ('0', '0.0', 'false', 'f') THEN 0 ELSE -1 END"
    )


def _spellings(positive: str) -> list[str]:
    """A value as typed and, of a number or a truth value, as warehouses may write it."""
    found = [positive]
    try:
        value = float(positive)
    except ValueError:
        if positive.lower() in ("true", "false"):
            found += [positive.lower()]
    else:
        found += [repr(value), *([str(int(value))] if value == int(value) else [])]
    return list(dict.fromkeys(found))


def _place(words: _Words, place: str, edges: FloatArray) -> str:
    """The number of inner edges below the score, from the number of negated ones at most -s."""
    if not len(edges):
        return "0"
    negated = [_number(-edge) for edge in edges[::-1]]
    most = words.most_in_array
    arrays = [
        words.array.format(numbers=", ".join(negated[first : first + most]))
        for first in range(0, len(negated), most)
    ]
    listed = arrays[0] if len(arrays) == 1 else f"CONCAT({', '.join(arrays)})"
    return f"{len(edges)} - {place.format(score='-s', edges=listed)}"


def _tree(edges: FloatArray, first: int = 0) -> str:
    """A tree of comparisons whose leaves are cells."""
    if not len(edges):
        return f"{first}"
    middle = len(edges) // 2
    low = _tree(edges[:middle], first)
    high = _tree(edges[middle + 1 :], first + middle + 1)
    return f"CASE WHEN s <= {_number(edges[middle])} THEN {low} ELSE {high} END"


def _histogram(upper: FloatArray) -> str:
    """DuckDB counts (lo, hi] between sorted numbers by itself, in one pass."""
    bins = ", ".join(map(_number, upper))
    inside = "label >= 0 AND s >= 0 AND s <= 1"
    return f"""\
SELECT label, UNNEST(RANGE({len(upper)})) AS cell, UNNEST(MAP_VALUES(bins)) AS n
  FROM (
    SELECT label, HISTOGRAM(s, [{bins}]) AS bins
    FROM fedassay_coded WHERE {inside} GROUP BY label
  )
  UNION ALL
  SELECT label, -1 AS cell, COUNT(*) AS n
  FROM fedassay_coded WHERE ({inside}) IS NOT TRUE GROUP BY label"""


def _number(value: float) -> str:
    """A double in every dialect: without an exponent some take it for a decimal fraction."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def _text(value: str, apostrophe: str) -> str:
    if len(value) > _MOST_NAME or "\\" in value or not value.isprintable():
        raise SettingInvalid(
            f"the label of a positive is a printable text of at most {_MOST_NAME} characters "
            "without a backslash; found another. Name the value as the table has it."
        )
    return "'" + value.replace("'", apostrophe) + "'"


def _table(name: str, quote: str) -> str:
    """A table's name, with its parts quoted where they need it."""
    parts = name.split(".") if _is_dotted(name) else [name]
    return ".".join(_name(part, quote) for part in parts)


def _is_dotted(name: str) -> bool:
    return all(re.fullmatch(r"[A-Za-z0-9_-]+", part) for part in name.split("."))


def _name(name: str, quote: str) -> str:
    """A column's name; warehouses fold plain ones, so only others and words of SQL are quoted."""
    odd = "\\" in name or "`" in name or not name.isprintable()
    if not name or len(name) > _MOST_NAME or odd:
        raise SettingInvalid(
            f"the name of a table or column is a printable text of 1 to {_MOST_NAME} characters "
            "without backslash and backtick; found another. Rename it, or ask a view."
        )
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in _RESERVED.split():
        return name
    return f"{quote}{name.replace(quote, quote * 2)}{quote}"
