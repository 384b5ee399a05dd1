"""Calibration judged on rows that it did not see: half of the clients fit, half evaluate."""

from dataclasses import dataclass, replace

import numpy as np

from fedassay.calibration import Calibrator, Method, fit
from fedassay.errors import SettingInvalid
from fedassay.examples import IntArray, ScoredClients
from fedassay.metrics.exact_rows import row_calibration
from fedassay.planning.search import SurveyDesign
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.two_steps import assess_cohort


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """A calibrator with its errors before and after, on the clients that did not fit it."""

    calibrator: Calibrator
    fitting_clients: int
    rows: int
    before: dict[str, float]
    after: dict[str, float]


def split_clients(
    cohort: ScoredClients, generator: np.random.Generator
) -> tuple[ScoredClients, ScoredClients]:
    """Two random halves of the clients, each with all of its rows."""
    first, second = halves_of_rows(cohort, generator)
    return _rows(cohort, first), _rows(cohort, second)


def halves_of_rows(
    cohort: ScoredClients, generator: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """The rows of a random half of the clients, and those of the other."""
    if cohort.clients < 2:
        raise SettingInvalid(
            f"holding out needs at least 2 clients; found {cohort.clients}. Use a larger table."
        )
    side = np.zeros(cohort.clients, dtype=bool)
    side[generator.permutation(cohort.clients)[: cohort.clients // 2]] = True
    of_row = side if cohort.client_of_row is None else side[cohort.client_of_row]
    return np.flatnonzero(of_row), np.flatnonzero(~of_row)


def held_out(
    design: SurveyDesign,
    fitting: ScoredClients,
    testing: ScoredClients,
    *,
    randomness: SimulatedRandomness,
    method: Method | None = None,
) -> HeldOut:
    """Survey one half, fit, and compare scores and calibrated scores on the other."""
    found = assess_cohort(design, fitting, thresholds=(), randomness=randomness)
    calibrator = fit(found.histogram(), method)
    test = testing.examples
    return HeldOut(
        calibrator=calibrator,
        fitting_clients=fitting.clients,
        rows=len(test),
        before=row_calibration(test, test.scores),
        after=row_calibration(test, calibrator.predict(test.scores)),
    )


def _rows(cohort: ScoredClients, kept: IntArray) -> ScoredClients:
    chosen = cohort.rows(kept)
    if chosen.client_of_row is None:
        return replace(chosen, clients=len(kept))
    clients, codes = np.unique(chosen.client_of_row, return_inverse=True)
    return replace(
        chosen,
        client_of_row=codes.astype(np.int64),
        clients=len(clients),
        names=cohort.names_of(clients),
    )
