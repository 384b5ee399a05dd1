"""Calibration judged on rows that it did not see: half of the clients fit, half evaluate."""

from dataclasses import dataclass

import numpy as np

from fedassay.calibration import Calibrator, Method, fit
from fedassay.engines.rows import row_calibration
from fedassay.engines.simulation import simulate
from fedassay.engines.tables import Cohort
from fedassay.errors import SettingInvalid
from fedassay.examples import Examples, IntArray
from fedassay.planner import Choice
from fedassay.randomness import SimulatedRandomness


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A calibrator with its errors before and after, on the clients that did not fit it."""

    calibrator: Calibrator
    fitting_clients: int
    rows: int
    before: dict[str, float]
    after: dict[str, float]


def split_clients(cohort: Cohort, generator: np.random.Generator) -> tuple[Cohort, Cohort]:
    """Two random halves of the clients, each with all of its rows."""
    if cohort.clients < 2:
        raise SettingInvalid(
            f"holding out needs at least 2 clients; found {cohort.clients}. Use a larger table."
        )
    side = np.zeros(cohort.clients, dtype=bool)
    side[generator.permutation(cohort.clients)[: cohort.clients // 2]] = True
    of_row = side if cohort.client_of_row is None else side[cohort.client_of_row]
    return _rows(cohort, np.flatnonzero(of_row)), _rows(cohort, np.flatnonzero(~of_row))


def held_out(
    choice: Choice,
    fitting: Cohort,
    testing: Cohort,
    *,
    randomness: SimulatedRandomness,
    method: Method | None = None,
) -> HeldOut:
    """Survey one half, fit, and compare scores and calibrated scores on the other."""
    histogram = simulate(choice.survey, fitting, readout=choice.readout, randomness=randomness)
    epsilon = choice.survey.epsilon if choice.survey.is_local else None
    found = fit(histogram, method, local_epsilon=None if epsilon is None else float(epsilon))
    test = testing.examples
    return HeldOut(
        found,
        fitting.clients,
        len(test),
        row_calibration(test, test.scores),
        row_calibration(test, found.predict(test.scores)),
    )


def _rows(cohort: Cohort, kept: IntArray) -> Cohort:
    examples = Examples(cohort.examples.labels[kept], cohort.examples.scores[kept])
    if cohort.client_of_row is None:
        return Cohort(examples, None, len(kept))
    clients, codes = np.unique(cohort.client_of_row[kept], return_inverse=True)
    return Cohort(examples, codes.astype(np.int64), len(clients))
