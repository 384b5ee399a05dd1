"""What a report and a tally cost in time (the paper: milliseconds for a client)."""

import time

import numpy as np

from fedassay.decoding import decode
from fedassay.examples import ScoredClients
from fedassay.planning.search import SurveyDesign
from fedassay.randomness import SimulatedRandomness
from fedassay.reproduction.datasets import Dataset
from fedassay.reproduction.federations import default_design, paper_design
from fedassay.reproduction.results import Point, points_of
from fedassay.reproduction.settings import Model
from fedassay.simulation.simulate import tally_each_client

REPORT, TALLY = "a report made, sent and added: ms", "a tally read: ms"
CLIENTS = (200, 800)
"""Enough that each of ten levels has a report under local privacy: fewer can leave one empty."""


def by_clients(
    data: Dataset, model: Model, clients: int, times: int, generator: np.random.Generator
) -> list[Point]:
    """Milliseconds of each report, and of reading the tally of so many, for both designs."""
    designs = {
        model.name: paper_design(model, clients),
        f"{model.name}: default": default_design(model, clients),
    }
    points: list[Point] = []
    for name, design in designs.items():
        timed = [_timed(design, data, clients, generator) for _ in range(times)]
        for panel, values in zip((REPORT, TALLY), zip(*timed, strict=True), strict=True):
            points += points_of(data.name, panel, {(name, clients): values})
    return points


def _timed(
    design: SurveyDesign, data: Dataset, clients: int, generator: np.random.Generator
) -> tuple[float, float]:
    rows = data.examples.rows(generator.integers(len(data.examples), size=clients))
    randomness = SimulatedRandomness(int(generator.integers(2**62)))
    began = time.perf_counter()
    cohort = ScoredClients(rows, None, clients)
    tally = tally_each_client(design.survey, cohort, randomness=randomness)
    added = time.perf_counter()
    decode(design.survey, tally, decode_options=design.decode_options)
    read = time.perf_counter()
    return 1e3 * (added - began) / clients, 1e3 * (read - added)
