"""The four pictures that STRATOS asks for of a model that predicts risks, in one figure."""

from dataclasses import dataclass
from typing import Any, Self

from fedassay.calibration.displays import CalibrationDisplay
from fedassay.extras import needed_for
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.decision_display import DecisionCurveDisplay
from fedassay.metrics.displays import RocCurveDisplay
from fedassay.metrics.score_display import ScoreHistogramDisplay


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class FourDisplays:
    """ROC curve, calibration, decision curve and scores of both classes (Van Calster 2025)."""

    roc: RocCurveDisplay
    calibration: CalibrationDisplay
    decision: DecisionCurveDisplay
    scores: ScoreHistogramDisplay
    figure_: Any

    @classmethod
    def from_histogram(
        cls, histogram: ScoreHistogram, *, name: str = "federation", figure: Any = None
    ) -> Self:
        """Compute all four and draw them on the given figure, or on a new one."""
        if figure is None:
            with needed_for("drawing"):
                import matplotlib.pyplot as plt

            figure = plt.figure(figsize=(10, 10), layout="constrained")
        (roc, calibration), (decision, scores) = figure.subplots(2, 2)
        return cls(
            roc=RocCurveDisplay.from_histogram(histogram, name=name, ax=roc),
            calibration=CalibrationDisplay.from_histogram(histogram, name=name, ax=calibration),
            decision=DecisionCurveDisplay.from_histogram(histogram, name=name, ax=decision),
            scores=ScoreHistogramDisplay.from_histogram(histogram, name=name, ax=scores),
            figure_=figure,
        )

    def __repr__(self) -> str:
        return f"<FourDisplays {self.roc.name}: {self.roc.figures()}, {self.calibration.figures()}>"

    def _repr_png_(self) -> bytes | None:
        return self.roc._repr_png_()  # all are on one figure
