"""Rows counted by Apache Spark: folders of files, and tables too large for one machine.

Files are read by fedassay's own reader, part by part, in Spark's Python workers, so that whatever
the plain reader takes or refuses, this does too. Frames and tables, which only Spark can read,
are counted inside Spark: a binary search finds each score's cell, one aggregation counts. Either
way rows stay with the workers, counts come to the driver, and policy, ledger and noise are in the
driver's process, after the sum.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fedassay.client import OPEN_POLICY, Account, Answer, ClientPolicy, answer_counts
from fedassay.errors import (
    ColumnMissing,
    EngineFailed,
    FileInvalid,
    LabelInvalid,
    ScoreOutOfRange,
    SettingInvalid,
)
from fedassay.examples import IntArray
from fedassay.extras import needed_for
from fedassay.patient_rows import limits_patients
from fedassay.randomness import Randomness
from fedassay.sites.moment_words import moment_words
from fedassay.survey import Survey
from fedassay.tables.columns import Columns
from fedassay.tables.counts_file import require_plain_cells
from fedassay.tables.names import listed
from fedassay.tables.parts import PartCounter, table_parts
from fedassay.tables.sql import label_code
from fedassay.tally import Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    SparkData: TypeAlias = DataFrame | str | Path | Sequence[str | Path]
    """A frame; files and folders; an address such as s3://bucket/scored; a table's name."""

ATTEMPTS = 4
"""How often a part is counted at most, if workers are lost; Spark's own figure on clusters."""
_LOCAL = {
    "spark.master": f"local[*,{ATTEMPTS}]",
    "spark.app.name": "fedassay",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
"""Of a session on this machine alone: no port but the loopback's, and a lost task tried again."""


def answer_spark(
    survey: Survey,
    data: "SparkData",
    columns: Columns,
    *,
    randomness: Randomness,
    policy: ClientPolicy,
    client_id: str | None = None,
    account: Account | None = None,
) -> tuple[Answer, int]:
    """Answer a survey as one client from rows that Spark counts; and how many rows they are.

    Guarantee: that of `survey.guarantee`. Policy first, then the count, then charge and noise in
    this process: Spark's workers see the rows and the cells, and draw nothing.
    """
    policy.check(survey)
    counts = count_spark(survey, data, columns)
    made = answer_counts(
        survey,
        counts,
        randomness=randomness,
        policy=policy,
        client_id=client_id,
        account=account,
        moments=moment_words,
    )
    return made, int(counts.sum())


def count_spark(survey: Survey, data: "SparkData", columns: Columns) -> IntArray:
    """Rows per label and cell of a survey, counted by Spark; exact, and as private as the rows.

    `data` is a frame of Spark's; files and folders that every worker can read at the same path;
    an address that Spark reads as Parquet (s3://..., hdfs://...); or the name of a table.
    """
    if isinstance(data, str | Path):
        data = [data] if _is_path(data) else _frame(str(data))
    if isinstance(data, Sequence):
        return _count_files(survey, data, columns)
    return _count_frame(survey, data, columns)


def _is_path(data: str | Path) -> bool:
    """Whether a text is of a file or folder, be it there or not, and no address or table's name."""
    if isinstance(data, Path) or Path(data).exists():
        return True
    looks_so = "/" in data or Path(data).suffix.lower() in (
        ".parquet",
        ".pq",
        ".csv",
        ".tsv",
        ".gz",
    )
    return looks_so and "://" not in data


def _count_files(survey: Survey, paths: Sequence[str | Path], columns: Columns) -> IntArray:
    """The sum of all parts' counts: each is a task, and sums are added up by workers too."""
    counter = PartCounter.of(survey, columns)
    parts = table_parts([Path(path).absolute() for path in paths])
    context = spark_session().sparkContext
    with _spark_trouble():
        counted = context.parallelize(parts, len(parts)).map(counter).treeReduce(add)
    return counter.total([counted])


def _count_frame(survey: Survey, frame: "DataFrame", columns: Columns) -> IntArray:
    with needed_for("--engine spark"):
        from pyspark.ml.feature import Bucketizer
        from pyspark.sql import functions as sql

    if limits_patients(survey):
        raise SettingInvalid(
            f"this survey protects {survey.unit}, and counts do not say whose rows they are. "
            "Answer from one file, without --engine."
        )
    require_plain_cells(survey)
    for name in (columns.score, columns.label):
        if name not in frame.columns:
            raise ColumnMissing(
                f'there is no column "{name}". The table has: {listed(frame.columns)}. Name '
                "the columns (--score COL, --label COL)."
            )
    # Buckets are [lo, hi), and the last holds its end: with scores and edges negated they are the
    # survey's cells (lo, hi] from the other end, and the first cell also holds 0. There must be two
    # buckets at least: one more, of what no score is, stands before them.
    cells, edges = survey.grid.cells, [-float(edge) for edge in survey.grid.edges[::-1]]
    find = Bucketizer(splits=[-2.0, *edges], inputCol="s", outputCol="place", handleInvalid="keep")
    score = sql.col(_quoted(columns.score)).try_cast("double") / sql.lit(columns.scale)
    y = sql.col(_quoted(columns.label)).cast("string")
    inside = (sql.col("t") >= 0.0) & (sql.col("t") <= 1.0)
    rows = (
        frame.select(score.alias("t"), y.alias("y"))
        .select(
            sql.expr(label_code(columns.positive, "\\'")).alias("label"),
            sql.when(inside, -sql.col("t")).otherwise(sql.lit(float("nan"))).alias("s"),
        )
        .transform(find.transform)
        .groupBy("label", "place")
        .count()
    )
    with _spark_trouble():
        found = rows.collect()
    counts = np.zeros((2, cells + 1), dtype=np.int64)
    for label, place, n in found:
        if label not in (0, 1):
            raise LabelInvalid(
                "labels must be 0 or 1, or booleans; some rows have another or none (values "
                "withheld). Name the label of positives (--positive VALUE), or drop such rows."
            )
        # What is missing, not a number or out of range has a bucket of its own behind the others.
        counts[label, cells - int(place)] = n
    if counts[:, -1].any():
        raise ScoreOutOfRange(
            f'scores must lie in [0, {columns.scale:g}]; some in column "{columns.score}" do not, '
            "or are missing (values withheld). Repair the scores, or drop such rows; percentages "
            "are read with --scale 100."
        )
    return counts[:, :-1]


def spark_session() -> "SparkSession":
    """The session there is; else one as PYSPARK_SUBMIT_ARGS says, or on this machine's cores."""
    with needed_for("--engine spark"):
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

    active: SparkSession | None = SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = SparkSession.builder
    if not os.environ.keys() & {"PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS"}:
        os.environ.setdefault("SPARK_LOCAL_IP", _LOCAL["spark.driver.host"])
        # Not the python3 of the path, which may know nothing of fedassay.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        for name, value in _LOCAL.items():
            builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise EngineFailed(
            "Spark must be able to start Java, version 17 or later; it did not. Install it "
            "(Debian: default-jre-headless), or set JAVA_HOME."
        ) from error


def _frame(name: str) -> "DataFrame":
    """What Spark knows by an address or as a table."""
    session = spark_session()
    with needed_for("--engine spark"):
        from pyspark.errors import AnalysisException, ParseException

    try:
        return session.read.parquet(name) if "://" in name else session.table(name)
    except (AnalysisException, ParseException) as error:
        raise FileInvalid(
            f"{name[:200]}: neither a file or folder here nor a table or address that Spark "
            "knows. Check the name."
        ) from error


@contextmanager
def _spark_trouble() -> Iterator[None]:
    """Turn what ends a job into one line; Spark's own message may hold rows."""
    with needed_for("--engine spark"):
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException):
        raise EngineFailed(
            f"Spark gave up: a part failed {ATTEMPTS} times, or the job was cancelled (message "
            "withheld: it may hold values). Spark's log has more; every worker needs fedassay "
            "installed and the files at the same path. Nothing was charged or answered."
        ) from None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class SparkTables:
    """An engine: tables that Spark counts, each of which is one client's."""

    tables: Sequence["SparkData"]
    columns: Columns
    randomness: Randomness
    policy: ClientPolicy = field(default=OPEN_POLICY)

    def tally(self, survey: Survey) -> Tally:
        """Answer as every client, and add up."""
        answers = [
            answer_spark(
                survey, table, self.columns, randomness=self.randomness, policy=self.policy
            )[0]
            for table in self.tables
        ]
        return Tally.of(survey, (message for made in answers for message in made.messages))
