"""What `fedassay demo --out` leaves: the flights, a table for each airline, the result, a page."""

from io import BytesIO
from pathlib import Path

from fedassay.assessment import Assessment
from fedassay.cli.outputs import check_output
from fedassay.errors import FileInvalid
from fedassay.extras import needed_for
from fedassay.files import write_whole

FLIGHTS, AIRLINES, ASSESSMENT, PAGE = (
    "flights.parquet",
    "airlines",
    "assessment.json",
    "report.html",
)


def check_folder(folder: Path, *, force: bool) -> None:
    """Refuse a folder whose files would be lost, before anything is computed."""
    if folder.is_dir():
        for name in (FLIGHTS, ASSESSMENT, PAGE):
            check_output(folder / name, force=force)


def save_demo(folder: Path, sample: Path, assessment: Assessment) -> None:
    """Write the sample whole and by airline, and the assessment of all airlines."""
    with needed_for("tables"):
        import pyarrow.compute
        import pyarrow.parquet

    try:
        (folder / AIRLINES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileInvalid(
            f"{folder}: cannot be made ({error.strerror}). Choose a folder you may write to."
        ) from error
    write_whole(folder / FLIGHTS, sample.read_bytes())
    flights = pyarrow.parquet.read_table(sample)
    for carrier in flights["carrier"].unique().to_pylist():
        rows = flights.filter(pyarrow.compute.field("carrier") == carrier)
        buffer = BytesIO()
        pyarrow.parquet.write_table(rows, buffer)
        write_whole(folder / AIRLINES / f"{carrier}.parquet", buffer.getvalue())
    assessment.save(folder / ASSESSMENT)
