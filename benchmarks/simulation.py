"""A million clients under each privacy model, against one ROC AUC of the same rows."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.page import Aim, Section
from benchmarks.rows import scored_rows
from benchmarks.timing import median_of, race, shown
from fedassay.examples import Examples, ScoredClients
from fedassay.mechanisms import Privacy
from fedassay.metrics.named import named_metrics
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import SurveyDesign, design_survey
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import simulate

_CLIENTS = 1_000_000
_THRESHOLDS = (0.5,)
_SKLEARN = "scikit-learn: `roc_auc_score`"
_DISTRIBUTED = "distributed, epsilon 1"
_REQUESTS = {
    _DISTRIBUTED: SurveyRequest(
        privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=_CLIENTS, dropouts=Fraction(0)
    ),
    "local, epsilon 1": SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=_CLIENTS),
    "local, epsilon 5": SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(5), clients=_CLIENTS),
}
_WANTED_LOCAL_SECONDS = 1.0


def measure(*, quick: bool) -> Section:
    """Plan once, then simulate and compute every metric."""
    labels, scores = scored_rows(_CLIENTS, generator=np.random.default_rng(21))
    cohort = ScoredClients(Examples(labels, scores), None, _CLIENTS)
    planning = {
        name: median_of(1 if quick else 3, partial(design_survey, request))
        for name, request in _REQUESTS.items()
    }
    tasks: dict[str, Callable[[], float]] = {
        name: _every_metric(design_survey(request), cohort) for name, request in _REQUESTS.items()
    }
    tasks[_SKLEARN] = lambda: float(roc_auc_score(labels, scores))
    seconds = race(2 if quick else 10, tasks)
    exact = tasks[_SKLEARN]()
    rows = [
        (
            name,
            shown(taken),
            shown(planning[name]) if name in planning else "",
            f"{abs(tasks[name]() - exact):.0e}",
        )
        for name, taken in seconds.items()
    ]
    slowest = max(taken for name, taken in seconds.items() if name.startswith("local"))
    return Section(
        title="A million clients",
        about=f"{_CLIENTS:,} rows, each a client: `simulate` draws the sum of all reports, on "
        "all levels, decodes it, and `named_metrics` computes every metric. Planning "
        "(`planner.choose`) happens once for a survey and is timed apart. scikit-learn's is "
        "ROC AUC alone, without privacy.",
        header=("what", "time", "planning", "ROC AUC: distance from scikit-learn"),
        rows=rows,
        aims=[
            Aim(
                "distributed privacy faster than one `roc_auc_score`; measured "
                f"{shown(seconds[_DISTRIBUTED])} against {shown(seconds[_SKLEARN])}",
                seconds[_DISTRIBUTED] < seconds[_SKLEARN],
            ),
            Aim(
                f"local privacy under {_WANTED_LOCAL_SECONDS:.0f} s; measured {shown(slowest)} "
                "at most",
                slowest < _WANTED_LOCAL_SECONDS,
            ),
        ],
    )


def _every_metric(design: SurveyDesign, cohort: ScoredClients) -> Callable[[], float]:
    def task() -> float:
        histogram = simulate(
            design.survey,
            cohort,
            decode_options=design.decode_options,
            randomness=SimulatedRandomness(22),
        )
        return named_metrics(histogram, _THRESHOLDS)["roc_auc"].value

    return task
