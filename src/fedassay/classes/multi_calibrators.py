"""Calibration of more than two classes: one map for all, or one for each class, then normalised."""

from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from fedassay.calibration.bbq import fit_bbq
from fedassay.calibration.binning import fit_binning
from fedassay.calibration.calibrator import Calibrator
from fedassay.calibration.methods import HistogramFit
from fedassay.calibration.parametric import fit_sigmoid
from fedassay.classes.class_design import ClassDesign
from fedassay.classes.class_survey import (
    ClassSurvey,
    build_part,
    exact_survey,
)
from fedassay.classes.design import best_tables, check_class_request
from fedassay.classes.encodings import PartKind
from fedassay.classes.one_vs_rest import decode_classes
from fedassay.classes.tallies import ClassCohort, tally_parts
from fedassay.classes.temperature import fitted_sharpness, softened, temperature_grid
from fedassay.decoding import DecodeOptions, decode
from fedassay.errors import FedassayError
from fedassay.estimate import NotEnoughData
from fedassay.examples import FloatArray
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SimulatedRandomness
from fedassay.tally import Tally


class ClassMethod(Enum):
    """How probabilities of many classes are calibrated."""

    FEDTEMP = "fedtemp"
    """One temperature: softmax(log p / T)."""
    VECTOR = "vector"
    """Platt's sigmoid of each class against the rest, then normalised."""
    BINNING = "binning"
    """Rates of equi-depth buckets of each class, then normalised."""
    FEDBBQ = "fedbbq"
    """Bayesian binning into quantiles of each class, then normalised."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassCalibrator:
    """A map from probabilities of all classes to calibrated ones, row by row."""

    names: tuple[str, ...]
    method: ClassMethod
    maps: tuple[Calibrator, ...] = ()
    """One for each class; none where there is one temperature."""
    sharpness: float = 1.0
    """1 / temperature."""
    reason: str = ""

    def __repr__(self) -> str:
        return f"<ClassCalibrator: {self.method.value}, {len(self.names)} classes>"

    def predict_proba(self, scores: npt.ArrayLike) -> FloatArray:
        """Calibrated probabilities, row x class; each row sums up to 1.

        Where all maps of a row give 0, its probabilities stay as they are.

        >>> cold = ClassCalibrator(("a", "b", "c"), ClassMethod.FEDTEMP, sharpness=2.0)
        >>> cold.predict_proba([[0.5, 0.25, 0.25]]).round(3).tolist()
        [[0.667, 0.167, 0.167]]
        """
        matrix = np.asarray(scores, dtype=np.float64)
        if not self.maps:
            return softened(matrix, self.sharpness)
        columns = [own.predict(matrix[:, k]) for k, own in enumerate(self.maps)]
        raw = np.stack(columns, axis=1)
        total = raw.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, raw / np.where(total > 0.0, total, 1.0), matrix)


def calibration_survey(
    request: SurveyRequest, names: tuple[str, ...], method: ClassMethod
) -> ClassSurvey:
    """What is asked to calibrate by a method, which gets all of epsilon.

    >>> calibration_survey(SurveyRequest(), ("a", "b", "c"), ClassMethod.FEDTEMP).parts[0].kind
    <PartKind.TEMPERATURE: 'temperature'>
    """
    check_class_request(request, None)
    if method is ClassMethod.FEDTEMP:
        exact = replace(request, smallest_cell=None if request.privacy.spends_epsilon else 0)
        part = build_part(
            exact,
            PartKind.TEMPERATURE,
            temperature_grid(),
            share=Fraction(1),
            drawn=False,
            about="temperature",
        )
        return ClassSurvey(names=names, design=ClassDesign.EVERY, parts=(part,))
    if not request.privacy.spends_epsilon:
        whole = exact_survey(request, names)
        kept = tuple(part for part in whole.parts if part.kind is PartKind.CLASS)
        return replace(whole, parts=kept)
    return best_tables(request, names)


def fit_classes(
    survey: ClassSurvey, tallies: tuple[Tally, ...], method: ClassMethod
) -> ClassCalibrator:
    """The calibrator from what its survey brought in.

    A class of which too little is seen keeps its probabilities until all are normalised.
    """
    match method:
        case ClassMethod.FEDTEMP:
            options = DecodeOptions(smooth=False)
            histogram = decode(survey.parts[0].survey, tallies[0], decode_options=options)
            sharpness, reason = fitted_sharpness(histogram)
            return ClassCalibrator(survey.names, method, sharpness=sharpness, reason=reason)
        case ClassMethod.VECTOR:
            fit: HistogramFit = fit_sigmoid
        case ClassMethod.BINNING:
            fit = fit_binning
        case ClassMethod.FEDBBQ:
            fit = fit_bbq
    tables = decode_classes(survey, tallies, decode_options=DecodeOptions())
    maps, left = [], []
    for name, histogram_or_reason in zip(survey.names, tables.histograms, strict=True):
        try:
            if isinstance(histogram_or_reason, NotEnoughData):
                raise FedassayError(histogram_or_reason.reason)
            maps.append(fit(histogram_or_reason))
        except FedassayError as error:
            maps.append(Calibrator.identity(str(error)))
            left.append(name)
    reason = f"left as they are: {', '.join(left[:8])}" if left else "every class has a map"
    return ClassCalibrator(survey.names, method, tuple(maps), reason=reason)


def calibrate_cohort(
    request: SurveyRequest,
    cohort: ClassCohort,
    method: ClassMethod,
    *,
    randomness: SimulatedRandomness,
) -> ClassCalibrator:
    """Ask the cohort what a method needs, and fit it."""
    survey = calibration_survey(request, cohort.rows.names, method)
    return fit_classes(survey, tally_parts(survey, cohort, randomness=randomness), method)
