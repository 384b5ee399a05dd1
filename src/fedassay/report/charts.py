"""Curves of an assessment as one picture."""

from pathlib import Path
from typing import Any

from fedassay.assessment import Assessment
from fedassay.errors import FileInvalid
from fedassay.extras import needed_for
from fedassay.metrics import PrecisionRecallDisplay, RocCurveDisplay


def write_plots(assessment: Assessment, path: Path) -> None:
    """Draw ROC and precision-recall curves side by side."""
    with needed_for("drawing"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    histogram = assessment.histogram()
    RocCurveDisplay.from_histogram(histogram, ax=left)
    PrecisionRecallDisplay.from_histogram(histogram, ax=right)
    save_figure(figure, path)


def write_forest(assessment: Assessment, path: Path, metric: str = "roc_auc") -> None:
    """Draw every site with its interval, the mean, and what a new site may show."""
    with needed_for("drawing"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    sites = 0 if assessment.sites is None else len(assessment.site_histograms())
    figure = Figure(figsize=(8, 1.5 + 0.24 * (sites + 2)), layout="constrained")
    FigureCanvasAgg(figure)
    assessment.plot_sites(metric, ax=figure.subplots())
    save_figure(figure, path)


def save_figure(figure: Any, path: Path) -> None:
    """Write a picture; what cannot be written, or is no picture's name, is said so."""
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise FileInvalid(
            f"{path}: cannot be written ({error.strerror}). Choose a folder you may write to."
        ) from error
    except ValueError as error:
        raise FileInvalid(f"{path}: pictures end in .png, .svg or .pdf. Rename it.") from error
