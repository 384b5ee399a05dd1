"""A history as one picture: a panel for each metric."""

from collections.abc import Sequence
from pathlib import Path

from fedassay.extras import needed_for
from fedassay.report.charts import save_figure
from fedassay.tracking.alarms import Alarm
from fedassay.tracking.displays import HistoryDisplay
from fedassay.tracking.history import History

_PANEL = 2.4


def write_history_chart(
    history: History, metrics: Sequence[str], alarms: Sequence[Alarm], path: Path
) -> None:
    """Draw metrics over time, one below the other."""
    with needed_for("drawing"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 0.8 + _PANEL * len(metrics)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(metrics), 1, squeeze=False)[:, 0]
    for metric, panel in zip(metrics, panels, strict=True):
        HistoryDisplay.from_history(history, metric, alarms=alarms, ax=panel)
        if panel is not panels[-1]:
            panel.set_xticklabels([])
    save_figure(figure, path)
