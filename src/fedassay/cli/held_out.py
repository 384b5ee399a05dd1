"""Calibration in a simulation: fitted on half of the clients, tested on the rest."""

from dataclasses import replace
from typing import Any

import numpy as np

from fedassay.cli.console import err
from fedassay.cli.outputs import Voice
from fedassay.examples import ScoredClients
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.heldout import HeldOut, held_out, split_clients
from fedassay.simulation.simulate import counted_rows


def calibrate_half(request: SurveyRequest, cohort: ScoredClients, *, seed: int | None) -> HeldOut:
    """Survey a random half of the clients for a calibrator, and test it on the other's rows."""
    split, noise = np.random.SeedSequence(seed, spawn_key=(2**30,)).spawn(2)
    fitting, testing = split_clients(cohort, np.random.default_rng(split))
    half = replace(
        request,
        clients=fitting.clients,
        examples=counted_rows(fitting, request.unit, is_local=request.privacy.is_local),
        minimum_reports=None
        if request.minimum_reports is None
        else min(request.minimum_reports, fitting.clients),
    )
    return held_out(design_survey(half), fitting, testing, randomness=SimulatedRandomness(noise))


def calibration_json(tested: HeldOut) -> dict[str, Any]:
    """What a held-out calibration found, in JSON's terms."""
    return {
        "method": tested.calibrator.method.value,
        "reason": tested.calibrator.reason,
        "fitting_clients": tested.fitting_clients,
        "held_out_rows": tested.rows,
        "bins": 20,
        "before": tested.before,
        "after": tested.after,
    }


def print_calibration(voice: Voice, tested: HeldOut) -> None:
    """Print errors before and after on the held-out rows."""
    voice.say(
        f"\nCalibration ({tested.calibrator.method.value}) fitted on {tested.fitting_clients:,} "
        f"clients, tested on the other {tested.rows:,} rows, ECE with 20 bins:"
    )
    for name, before in tested.before.items():
        voice.say(f"  {name:<9} {before:.5f} -> {tested.after[name]:.5f}")
    if not voice.quiet:
        err.print(tested.calibrator.reason, markup=False, soft_wrap=True)
