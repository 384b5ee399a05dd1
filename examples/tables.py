"""Every table that a command of README or docs names, from the bundled flights.

`make sandbox` fills the folder `sandbox` with them; in it each command works as it stands on its
page. The tests run the pages in such a folder, too.
"""

import shutil
import sys
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

HOSPITALS = 4
ROWS = 6000


def make_tables(folder: Path, rows: int = ROWS) -> None:
    """Write the tables; the flights are dealt to hospitals, wards and patients at random."""
    folder.mkdir(parents=True, exist_ok=True)
    with as_file(files("fedassay") / "data" / "nycflights13_xgb.parquet") as path:
        shutil.copy(path, folder / "flights.parquet")
        flights = pq.read_table(path, columns=["score", "label"])
    generator = np.random.default_rng(1)
    drawn = flights.take(generator.permutation(len(flights))[: 2 * rows])
    table, train = drawn.slice(0, rows), drawn.slice(rows)
    hospital = generator.integers(1, HOSPITALS + 1, rows)
    patient = pa.array(generator.integers(0, rows // 2, rows))

    pq.write_table(table.rename_columns(["s", "y"]), folder / "scores.parquet")
    pq.write_table(train, folder / "train.parquet")
    named = table.append_column("hospital", pa.array([f"hospital {each}" for each in hospital]))
    named = named.append_column("patient_id", patient)
    sex = pa.array(generator.choice(["F", "M"], rows))
    listed = named.drop(["patient_id"]).append_column("sex", sex)
    score = table["score"].to_numpy().astype(np.float64)
    other = np.clip(score + generator.normal(0.0, 0.1, rows), 0.0, 1.0)  # a model beside it
    listed = listed.append_column("score_a", pa.array(score))
    listed = listed.append_column("score_b", pa.array(other))
    pyarrow.csv.write_csv(listed, folder / "scores.csv")
    for number in range(1, HOSPITALS + 1):
        rows_there = named.filter(hospital == number).drop(["hospital"])
        pq.write_table(rows_there, folder / f"hospital-{number}.parquet")
    pq.write_table(table.slice(0, 500), folder / "ward-3.parquet")
    write_classes(generator, folder / "delays.parquet")
    write_export(table, folder / "export.csv")


def write_classes(generator: np.random.Generator, path: Path, rows: int = 2000) -> None:
    """Four probabilities a row, and a class that is drawn from them."""
    matrix = generator.dirichlet([4.0, 3.0, 2.0, 1.0], rows)
    drawn = (matrix.cumsum(axis=1) < generator.random((rows, 1))).sum(axis=1)
    columns = {f"p{number}": matrix[:, number] for number in range(matrix.shape[1])}
    pq.write_table(pa.table(columns | {"delay": np.minimum(drawn, 3)}), path)


def write_export(table: pa.Table, path: Path) -> None:
    """A table as a spreadsheet writes it: semicolons, decimal commas, percentages, yes and no."""
    pairs = zip(table["score"].to_pylist(), table["label"].to_pylist(), strict=True)
    lines = [
        f"{100 * score:.4f}".replace(".", ",") + (";yes" if y else ";no") for score, y in pairs
    ]
    path.write_text("\n".join(["score;label", *lines]) + "\n", "utf-8")


if __name__ == "__main__":
    make_tables(Path(sys.argv[1] if len(sys.argv) > 1 else "sandbox"))
