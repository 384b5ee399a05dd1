"""Contests: who runs against whom in one trust model, and the errors of every trial."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import nan

import numpy as np

from experiments.peers import bell, central, dp_ecdf, dpauc, fedcurve
from experiments.peers.roc import Distances, RocCurve
from experiments.resampled import SortedRows
from experiments.trials import Reader, Setting
from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray, IntArray
from fedassay.mechanisms import Privacy
from fedassay.metrics import roc_curve
from fedassay.metrics.named import named_metric
from fedassay.planning.request import Preset, Steps
from fedassay.planning.search import design_survey

OURS, PRESET, ONE_STEP = "our default", "the paper's preset", "ours in one step"
SITES = 10
# As many as any survey has cells: no point of a curve is left out.
_POINTS = 2**14

Answer = tuple[float, RocCurve | None]
"""ROC AUC, and the whole curve where there is one."""
Entrant = Callable[[np.random.Generator], Answer]


@dataclass(frozen=True, slots=True)
class Contest:
    """A trust model with its epsilon, and the entrants besides ours: name, then setting."""

    name: str
    setting: Setting
    entrants: Callable[[SortedRows, float], Mapping[tuple[str, str], Entrant]]
    has_preset: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Errors of one entrant with one of its settings on one table."""

    entrant: str
    setting: str
    area: FloatArray
    """Absolute errors of ROC AUC."""
    curve: FloatArray
    """Areas between its curve and the exact one."""


def run_contest(contest: Contest, rows: SortedRows, trials: int) -> list[Outcome]:
    """Every entrant on a table's own rows, trial after trial."""
    counts = rows.counts()
    exact = RocCurve.of_counts(counts)
    distances = Distances(exact)
    epsilon = float(contest.setting.epsilon or 0)
    entrants = {(OURS, ""): survey(contest.setting, rows, Preset.DEFAULT)}
    if contest.has_preset:
        entrants[PRESET, ""] = survey(contest.setting, rows, Preset.PAPER, Steps.ONE)
    entrants |= contest.entrants(rows, epsilon)
    found = []
    for (name, setting), entrant in entrants.items():
        generator = np.random.default_rng(11)
        pairs = [_errors(entrant(generator), exact.area, distances) for _ in range(trials)]
        found.append(Outcome(name, setting, *np.array(pairs).T))
    return found


def _errors(answer: Answer, exact: float, distances: Distances) -> tuple[float, float]:
    area, curve = answer
    return abs(area - exact), nan if curve is None else distances.to(curve)


def survey(
    setting: Setting, rows: SortedRows, preset: Preset, steps: Steps = Steps.AUTO
) -> Entrant:
    """One of our surveys, the second of two with it where that is the default."""
    design = design_survey(setting.request(len(rows), (), steps=steps, preset=preset))
    reader = Reader(design, rows, (), setting.sites or len(rows))
    buckets, counts = design.decode_options.buckets, rows.counts()

    def enter(generator: np.random.Generator) -> Answer:
        try:
            histogram = reader.histogram(counts, generator)
        except SettingInvalid:  # the first survey found nothing but noise
            return nan, None
        value = named_metric(histogram, "roc_auc", buckets=buckets).value
        drawn = histogram if buckets is None else histogram.equi_depth(buckets)
        try:
            curve = roc_curve(drawn, points=_POINTS, monotone=True)
        except SettingInvalid:  # a class does not stand clear of the noise
            return value, None
        return value, RocCurve(curve.x, curve.y)

    return enter


def _cells(rows: SortedRows, cells: int) -> IntArray:
    return rows.on_grid(rows.counts(), np.linspace(0.0, 1.0, cells + 1))


def _with_area(curve: RocCurve) -> Answer:
    return curve.area, curve


def _distributed(rows: SortedRows, epsilon: float) -> dict[tuple[str, str], Entrant]:
    found: dict[tuple[str, str], Entrant] = {}
    for quantiles, fanout in fedcurve.SETTINGS:
        leaves = _cells(rows, fanout ** fedcurve.height_of(quantiles, fanout))

        def quantile_curve(
            generator: np.random.Generator,
            leaves: IntArray = leaves,
            quantiles: int = quantiles,
            fanout: int = fanout,
        ) -> Answer:
            return _with_area(
                fedcurve.fedcurve(
                    leaves, quantiles=quantiles, fanout=fanout, epsilon=epsilon, generator=generator
                )
            )

        found["fedcurve", f"{quantiles} quantiles, fan-out {fanout}"] = quantile_curve
    for points in dp_ecdf.SETTINGS:
        cells = _cells(rows, points)

        def ecdf(generator: np.random.Generator, cells: IntArray = cells) -> Answer:
            return _with_area(dp_ecdf.dp_ecdf(cells, epsilon=epsilon, generator=generator))

        found["DP-ECDF", f"{points} points"] = ecdf
    return found


def _one_step(rows: SortedRows, epsilon: float) -> dict[tuple[str, str], Entrant]:
    setting = Setting(Privacy.DISTRIBUTED, Fraction(epsilon))
    return {(ONE_STEP, "--steps 1"): survey(setting, rows, Preset.DEFAULT, Steps.ONE)}


def _central(rows: SortedRows, epsilon: float) -> dict[tuple[str, str], Entrant]:
    found: dict[tuple[str, str], Entrant] = {}
    for buckets in central.SETTINGS:
        cells = _cells(rows, buckets)

        def noisy(generator: np.random.Generator, cells: IntArray = cells) -> Answer:
            return _with_area(central.noisy_curve(cells, epsilon=epsilon, generator=generator))

        found["noisy histogram", f"{buckets} buckets"] = noisy
    area = RocCurve.of_counts(rows.counts()).area
    smaller = int(rows.counts().sum(axis=1).min())

    def one_figure(generator: np.random.Generator) -> Answer:
        return central.noisy_area(area, smaller, epsilon=epsilon, generator=generator), None

    found["noise on the one figure", "smooth sensitivity"] = one_figure
    return found


def _local(rows: SortedRows, epsilon: float) -> dict[tuple[str, str], Entrant]:
    found: dict[tuple[str, str], Entrant] = {}
    for height in bell.SETTINGS:
        leaves = _cells(rows, 2**height)

        def tree(generator: np.random.Generator, leaves: IntArray = leaves) -> Answer:
            return bell.bell_area(leaves, epsilon=epsilon, generator=generator), None

        found["Bell et al.", f"height {height}"] = tree
    return found


def _sites(rows: SortedRows, epsilon: float) -> dict[tuple[str, str], Entrant]:
    found: dict[tuple[str, str], Entrant] = {}
    for thresholds in dpauc.SETTINGS:

        def noisy(generator: np.random.Generator, thresholds: int = thresholds) -> Answer:
            return _with_area(
                dpauc.dpauc(
                    rows.counts(),
                    rows.distinct,
                    thresholds=thresholds,
                    epsilon=epsilon,
                    sites=SITES,
                    generator=generator,
                )
            )

        found["DPAUC", f"{thresholds} thresholds"] = noisy
    return found


_ONE = Fraction(1)
CONTESTS = (
    Contest("Distributed privacy, ε = 1", Setting(Privacy.DISTRIBUTED, _ONE), _distributed),
    Contest("A trusted server's noise, ε = 1", Setting(Privacy.DISTRIBUTED, _ONE), _central, False),
    Contest("Local privacy, ε = 5", Setting(Privacy.LOCAL, Fraction(5)), _local),
    Contest("Local privacy, ε = 1", Setting(Privacy.LOCAL, _ONE), _local),
    Contest(
        f"Noise of {SITES} sites, ε = 1",
        Setting(Privacy.SITE, _ONE, SITES),
        _sites,
        has_preset=False,
    ),
    Contest("Our two steps and one, ε = 1", Setting(Privacy.DISTRIBUTED, _ONE), _one_step, False),
)
