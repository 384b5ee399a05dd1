"""One model month by month: twelve looks at the flights of a year, with noise and without.

`python -m experiments.months` writes `experiments/months.md`, docs/figures/months.png and
docs/figures/months-phone.png (needs Chromium and Pillow; two minutes).
"""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from PIL import Image
from tests.browser import start_browser
from tests.tables import ROOT

import fedassay
from experiments.data import SHARED
from experiments.page import markdown_table, say
from fedassay.report.history_page import write_history
from fedassay.simulation.result import SimulatedAssessment
from fedassay.tracking.advice import advise
from fedassay.tracking.alarms import Watch, find_alarms
from fedassay.tracking.history import History

_NAME = "scores_nycflights13_two_models.parquet"
_PLACES = (SHARED / _NAME, ROOT.parents[1] / "shared" / "data" / _NAME)
METRICS = ("roc_auc", "brier", "oe_ratio", "calibration_slope", "prevalence")
SETTINGS = {"secure": ("secure", None), "distributed ε = 1": ("distributed", 1)}
PAGE = Path(__file__).with_suffix(".md")
FIGURES = ROOT / "docs" / "figures"


def month_rows(month: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Labels and the first model's scores of one month."""
    table = pq.read_table(next(place for place in _PLACES if place.is_file()))
    chosen = table["month"].to_numpy() == month
    scores = table["score_a"].to_numpy().astype(np.float64)
    return table["label"].to_numpy()[chosen], scores[chosen]


def look(
    month: int, privacy: str, epsilon: int | None, reference: fedassay.Assessment | None = None
) -> SimulatedAssessment:
    """What a survey of one month finds."""
    return fedassay.simulate(
        *month_rows(month), privacy=privacy, epsilon=epsilon, seed=month, reference=reference
    )


def year(privacy: str, epsilon: int | None) -> tuple[History, list[list[str]]]:
    """Twelve assessments of the first model."""
    looks: dict[str, fedassay.Assessment] = {}
    body = []
    for month in range(1, 13):
        found = look(month, privacy, epsilon)
        name = f"2013-{month:02}"
        looks[name] = found
        cells = [
            f"{found[each]} ({found.exact_values[each] or 0.0:.3f})"
            for each in ("roc_auc", "oe_ratio", "prevalence")
        ]
        body.append([name, f"{found.rows:,}", *cells])
    return History(looks), body


def references() -> Iterator[str]:
    """Last month's noisy histogram as a reference, beside asking in two steps."""
    body = []
    for month in (2, 3, 12):
        before = look(month - 1, "distributed", 1)
        for name, reference in (("two steps", None), ("last month", before)):
            found = look(month, "distributed", 1, reference)
            figures = [str(found[each]) for each in ("roc_auc", "oe_ratio", "calibration_slope")]
            body.append([f"2013-{month:02}", name, *figures])
    header = ("month", "where cells lie is known from", "ROC AUC", "O/E", "calibration slope")
    yield "## Last month as a reference\n\nDistributed privacy, ε = 1."
    yield markdown_table(header, body)
    yield (
        "A reference costs nothing and needs one round where two steps need two. For ROC AUC it "
        "does as well; its cells are wider at the ends of the scores, where calibration is told: "
        "who watches the slope asks in two steps."
    )


def parts() -> Iterator[str]:
    """The page, one part after the other."""
    yield (
        "# One model, month by month\n\nWritten by `python -m experiments.months`: the flights of "
        "2013 (`scores_nycflights13_two_models`, model a), each month a look, each row a client. "
        "Exact values of the rows stand in brackets."
    )
    for name, (privacy, epsilon) in SETTINGS.items():
        say(name)
        history, body = year(privacy, epsilon)
        watch = Watch(METRICS, 0.05)
        yield f"## {name}"
        header = ("month", "rows", "ROC AUC", "observed / expected", "prevalence")
        yield markdown_table(header, body)
        lines = [f"- {alarm.sentence()}" for alarm in find_alarms(history, watch)]
        yield "\n".join(lines) or "No alarm."
        yield f"Advice: {advise(history, watch)}"
        if epsilon is not None:
            pictures(history, watch)
    yield (
        "The model was trained on rows of the whole year, so that what moves is the weather: in "
        "some months many more flights are late than its scores say, in others fewer. Noise "
        "hides none of it. Seasons are changes, and raise alarms in both directions; who wants "
        "other alarms keeps a history for each season."
    )
    yield from references()
    yield "![The page of the noisy year](../docs/figures/months.png)"


def pictures(history: History, watch: Watch) -> None:
    """The history's page as people see it, at two widths."""
    with TemporaryDirectory() as folder, start_browser() as browser:
        page = Path(folder) / "months.html"
        write_history(history, page, watch=watch, title="Late flights, month by month")
        for name, width in (("months.png", 1400), ("months-phone.png", 360)):
            browser.look(width=width)
            browser.open(page)
            taken = Image.open(BytesIO(browser.picture(height=1900 if width > 600 else 2400)))
            scale = 0.6 if width > 600 else 0.8
            size = (int(taken.width * scale), int(taken.height * scale))
            small = taken.resize(size, Image.Resampling.LANCZOS).convert("RGB")
            small.quantize(64, Image.Quantize.MAXCOVERAGE).save(FIGURES / name, optimize=True)


def main() -> None:
    """Write the page and its pictures."""
    PAGE.write_text("\n\n".join(parts()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
