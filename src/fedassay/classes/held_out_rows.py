"""Calibration of many classes judged on rows that it did not see."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedassay.classes.exact_figures import classwise_ece
from fedassay.classes.multi_calibrators import ClassCalibrator, ClassMethod, calibrate_cohort
from fedassay.classes.rows import ClassRows
from fedassay.classes.tallies import ClassCohort
from fedassay.examples import FloatArray, IntArray
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.heldout import halves_of_rows
from fedassay.simulation.simulate import counted_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutClasses:
    """A calibrator with figures before and after, on the clients that did not fit it."""

    calibrator: ClassCalibrator
    rows: int
    before: dict[str, float]
    after: dict[str, float]


def held_out_classes(
    request: SurveyRequest,
    cohort: ClassCohort,
    *,
    seed: int | None,
    methods: Sequence[ClassMethod] = tuple(ClassMethod),
) -> list[HeldOutClasses]:
    """Every method fitted on a random half of the clients, with all of epsilon, and tested."""
    split, *noises = np.random.SeedSequence(seed, spawn_key=(2**30,)).spawn(1 + len(methods))
    first, second = halves_of_rows(cohort.held, np.random.default_rng(split))
    fitting, testing = _rows(cohort, first), _rows(cohort, second)
    half = replace(
        request,
        clients=fitting.held.clients,
        examples=counted_rows(fitting.held, request.unit, is_local=request.privacy.is_local),
        minimum_reports=None
        if request.minimum_reports is None
        else min(request.minimum_reports, fitting.held.clients),
    )
    before = calibration_figures(testing.rows, testing.rows.scores)
    results = []
    for method, noise in zip(methods, noises, strict=True):
        made = calibrate_cohort(half, fitting, method, randomness=SimulatedRandomness(noise))
        after = calibration_figures(testing.rows, made.predict_proba(testing.rows.scores))
        results.append(
            HeldOutClasses(calibrator=made, rows=len(testing.rows), before=before, after=after)
        )
    return results


def calibration_figures(rows: ClassRows, predictions: FloatArray) -> dict[str, float]:
    """Classwise calibration error, Brier score and log loss of predictions for these rows."""
    own = np.clip(predictions[np.arange(len(rows)), rows.labels], 2.0**-52, 1.0)
    hits = np.eye(rows.classes)[rows.labels]
    return {
        "ece/classwise": classwise_ece(rows, predictions),
        "brier": float(((predictions - hits) ** 2).sum(axis=1).mean()),
        "log_loss": float(-np.log(own).mean()),
    }


def _rows(cohort: ClassCohort, kept: IntArray) -> ClassCohort:
    rows = cohort.rows.rows(kept)
    held = cohort.held
    owners = None
    if held.client_of_row is not None:
        owners = np.unique(held.client_of_row[kept], return_inverse=True)[1].astype(np.int64)
    return ClassCohort.of(
        rows,
        owners,
        patient_of_row=None if held.patient_of_row is None else held.patient_of_row[kept],
        time_of_row=None if held.time_of_row is None else held.time_of_row[kept],
    )
