"""One federation of a repetition: rows drawn again, surveyed by the preset or by the default."""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np

from fedassay.decoding import decode
from fedassay.draws import draw_tally
from fedassay.examples import Examples, ScoredClients
from fedassay.histogram import ScoreHistogram
from fedassay.planning.request import Preset, Steps, SurveyRequest
from fedassay.planning.search import SurveyDesign, design_survey
from fedassay.randomness import SimulatedRandomness
from fedassay.reproduction.settings import HEIGHT, Model
from fedassay.simulation.two_steps import assess_cohort

# The paper publishes every count of exact sums, however small; both designs do here.
_PUBLISHED = 0


def repetitions(
    examples: Examples, clients: int, *, times: int, generator: np.random.Generator
) -> Iterator[Examples]:
    """So many clients with one row each, drawn again with replacement for every repetition."""
    for _ in range(times):
        yield examples.rows(generator.integers(len(examples), size=clients))


@lru_cache(maxsize=512)
def paper_design(
    model: Model, clients: int, *, height: int = HEIGHT, fanout: int = 2
) -> SurveyDesign:
    """The paper's tree; how many quantile buckets are read from it is left to the figure."""
    return design_survey(
        SurveyRequest(
            privacy=model.privacy,
            epsilon=model.epsilon,
            clients=clients,
            dropouts=Fraction(0),
            preset=Preset.PAPER,
            smallest_cell=_PUBLISHED,
            height=height,
            fanout=fanout,
        )
    )


@lru_cache(maxsize=512)
def default_design(model: Model, clients: int, thresholds: tuple[float, ...] = ()) -> SurveyDesign:
    """What is asked when nobody says otherwise, in two steps where that pays.

    But for one thing: exact counts below 10 are published, as the paper's preset does.
    """
    return design_survey(
        SurveyRequest(
            privacy=model.privacy,
            epsilon=model.epsilon,
            clients=clients,
            dropouts=Fraction(0),
            steps=Steps.AUTO,
            smallest_cell=_PUBLISHED,
            thresholds=thresholds,
        )
    )


def paper_histogram(
    design: SurveyDesign, examples: Examples, generator: np.random.Generator
) -> ScoreHistogram:
    """The leaves that naive prefix sums leave, without what is known about their noise.

    The paper reads values alone, and a value does not depend on it.
    """
    survey, leaves = design.survey, design.survey.grid.count(examples)
    tally = draw_tally(survey, leaves, clients=len(examples), generator=generator)
    found = decode(survey, tally, decode_options=design.decode_options)
    return ScoreHistogram(found.edges, found.counts, smooth=False)


def default_histogram(
    design: SurveyDesign,
    examples: Examples,
    generator: np.random.Generator,
    thresholds: tuple[float, ...] = (),
) -> ScoreHistogram:
    """What the default survey, or both of them, tell of the rows."""
    cohort = ScoredClients(examples, None, len(examples))
    randomness = SimulatedRandomness(int(generator.integers(2**62)))
    return assess_cohort(design, cohort, thresholds=thresholds, randomness=randomness).histogram()
