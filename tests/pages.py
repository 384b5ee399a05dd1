"""Assessments of every privacy model to make pages of, small enough to be quick."""

from functools import cache

import numpy as np

import fedassay
from fedassay import Assessment

PRIVACY = {"secure": None, "distributed": 1, "local": 4, "site": 1}
ROWS = 3000
KINDS = [*((name, False) for name in PRIVACY), ("secure", True), ("distributed", True)]
"""Every privacy model, and whether scores crowd near 0."""


@cache
def assessment(privacy: str, *, crowded: bool = False) -> Assessment:
    """A survey in one step; with `crowded`, of rare events whose scores lie near 0."""
    generator = np.random.default_rng(5)
    scores = generator.beta(0.4, 12.0, ROWS) if crowded else generator.beta(1.2, 2.0, ROWS)
    labels = generator.random(ROWS) < scores
    return fedassay.simulate(
        labels,
        scores,
        clients=np.arange(ROWS) % 5 if privacy == "site" else None,
        privacy=privacy,
        epsilon=PRIVACY[privacy],
        steps=1,
        height=6,
        seed=2,
        thresholds=(0.3, 0.5),
    )
