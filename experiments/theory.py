"""The constants beside the O() of the paper's results, measured.

`python -m experiments.theory` writes `src/fedassay/data/theory.json` and
`experiments/theory.md`; with --quick it prints a smaller run and writes nothing.
"""

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict, replace
from fractions import Fraction
from math import exp, log
from pathlib import Path

import numpy as np

from experiments.data import ROOT
from fedassay.calibration import fit_binning
from fedassay.decoding import DecodeOptions, decode
from fedassay.draws import draw_tally
from fedassay.examples import IntArray
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import AnyMechanism, Exact, Polya, Privacy, UnaryEncoding
from fedassay.metrics import accuracy, precision, recall, roc_auc
from fedassay.planning import theory
from fedassay.planning.request import Preset, SurveyRequest
from fedassay.planning.search import SurveyDesign, design_survey
from fedassay.planning.theory import PAPER_MODELS, Case, Constant
from fedassay.survey import Survey

_PAGE = Path(__file__).with_name("theory.md")
_DATA = ROOT / "src" / "fedassay" / "data" / "theory.json"
THRESHOLDS = tuple(i / 11 for i in range(1, 11))
CLIENTS = {
    Privacy.SECURE: (160_000,),
    Privacy.DISTRIBUTED: (10_000, 40_000, 160_000),
    # Below, privacy noise drowns a class under the paper's ten levels.
    Privacy.LOCAL: (400_000, 1_600_000, 6_400_000),
}
EPSILONS = (Fraction(1, 4), Fraction(1, 2), Fraction(1))
BUCKETS = (10, 30, 100)
_FINE = 2**14
_SPREAD = 0.75


def balanced() -> ScoreHistogram:
    """A balanced classifier, too sure of itself: class means 1.5 apart, log-odds stretched."""
    from scipy.special import ndtr

    grid = Grid.uniform(_FINE)
    inner = grid.edges[1:-1]
    odds = (np.log(inner) - np.log1p(-inner)) * _SPREAD
    below = np.stack([ndtr(odds + 0.75), ndtr(odds - 0.75)])
    below = np.concatenate([np.zeros((2, 1)), below, np.ones((2, 1))], axis=1)
    return ScoreHistogram(grid.edges, np.diff(below, axis=1))


def cases(privacy: Privacy) -> Iterator[Case]:
    """Clients and epsilon; for exact sums, buckets."""
    if privacy is Privacy.SECURE:
        for buckets in BUCKETS:
            yield Case(privacy, CLIENTS[privacy][0], buckets=buckets)
        return
    for clients in CLIENTS[privacy]:
        for epsilon in EPSILONS:
            yield Case(privacy, clients, float(epsilon))


def given_classifier_error(case: Case, trials: int, generator: np.random.Generator) -> float:
    """Two cells, one survey: mean absolute error of precision, recall and accuracy."""
    return _flat_error(case, Grid.given_classifier(0.5), (0.5,), trials, generator)


def threshold_error(case: Case, trials: int, generator: np.random.Generator) -> float:
    """The proof's own survey: flat quantile buckets, as many as balance noise and width."""
    buckets = case.buckets if case.privacy is Privacy.SECURE else theory.threshold_buckets(case)
    deep = balanced().equi_depth(buckets) if buckets < _FINE else balanced()
    return _flat_error(case, Grid.explicit(deep.edges), THRESHOLDS, trials, generator)


def auc_error(case: Case, trials: int, generator: np.random.Generator) -> float:
    """The paper preset: binary tree of height 10, 100 quantile buckets."""
    design = design_survey(_paper_request(case))
    if case.privacy is Privacy.SECURE:
        design = replace(
            design, decode_options=replace(design.decode_options, buckets=case.buckets)
        )
    errors = []
    for leaves, exact in _rows(design.survey.grid, case.clients, trials, generator):
        histogram = _drawn(design, leaves, generator).equi_depth(design.decode_options.buckets or 1)
        errors.append(abs(roc_auc(histogram).value - roc_auc(exact).value))
    return float(np.nanmean(errors))


def calibration_error(case: Case, trials: int, generator: np.random.Generator) -> float:
    """Binning into the theorem's number of buckets; the error of the fitted map itself."""
    design = design_survey(_paper_request(case))
    model = balanced()
    buckets = theory.calibration_buckets(case)
    errors = []
    for leaves, _ in _rows(design.survey.grid, case.clients, trials, generator):
        found = fit_binning(_drawn(design, leaves, generator), buckets=buckets, noise_aware=False)
        predicted = found.predict(0.5 * (model.edges[1:] + model.edges[:-1]))
        mass = model.counts.sum(axis=0)
        rate = np.divide(model.positives, mass, out=np.zeros_like(mass), where=mass > 0.0)
        errors.append(float(mass @ np.abs(predicted - rate) / mass.sum()))
    return float(np.mean(errors))


MEASURES = {
    "given_classifier": given_classifier_error,
    "threshold_metrics": threshold_error,
    "auc": auc_error,
    "calibration_error": calibration_error,
}


def constant(result: str, privacy: Privacy, *, trials: int) -> Constant:
    """Error over rate, over the cases."""
    ratios = []
    for case in cases(privacy):
        error = MEASURES[result](case, trials, np.random.default_rng(3))
        ratios.append(error / theory.RESULTS[result](case))
    return Constant(exp(sum(map(log, ratios)) / len(ratios)), min(ratios), max(ratios))


def _flat_error(
    case: Case,
    grid: Grid,
    thresholds: tuple[float, ...],
    trials: int,
    generator: np.random.Generator,
) -> float:
    design = SurveyDesign(
        Survey(
            privacy=case.privacy,
            grid=grid,
            hierarchy=Hierarchy.flat(grid.cells),
            mechanisms=(_mechanism(case),),
            minimum_reports=case.clients,
        ),
        DecodeOptions(smooth=False),
    )
    errors = []
    for leaves, exact in _rows(grid, case.clients, trials, generator):
        histogram = _drawn(design, leaves, generator)
        errors += [
            abs(metric(histogram, threshold).value - metric(exact, threshold).value)
            for threshold in thresholds
            for metric in (precision, recall, accuracy)
        ]
    return float(np.nanmean(errors))


def _mechanism(case: Case) -> AnyMechanism:
    epsilon = Fraction(case.epsilon).limit_denominator(1000)
    match case.model:
        case Privacy.SECURE:
            return Exact()
        case Privacy.DISTRIBUTED:
            return Polya(epsilon, 1, case.clients)
        case Privacy.LOCAL:
            return UnaryEncoding(epsilon)


def _paper_request(case: Case) -> SurveyRequest:
    is_exact = case.privacy is Privacy.SECURE
    return SurveyRequest(
        privacy=case.privacy,
        epsilon=None if is_exact else Fraction(case.epsilon).limit_denominator(1000),
        clients=case.clients,
        dropouts=Fraction(0),
        preset=Preset.PAPER,
        height=case.height,
        smallest_cell=0,
    )


def _rows(
    grid: Grid, clients: int, trials: int, generator: np.random.Generator
) -> Iterator[tuple[IntArray, ScoreHistogram]]:
    """Clients' leaf counts with the same clients on a grid too fine to matter."""
    model = balanced()
    shares = model.counts.ravel() / model.counts.sum()
    middle = 0.5 * (model.edges[1:] + model.edges[:-1])
    place = grid.locate(middle)
    for _ in range(trials):
        fine = generator.multinomial(clients, shares).reshape(2, -1)
        leaves = np.stack([np.bincount(place, row, grid.cells) for row in fine]).astype(np.int64)
        yield leaves, ScoreHistogram(model.edges, fine.astype(np.float64), smooth=False)


def _drawn(
    design: SurveyDesign, leaves: IntArray, generator: np.random.Generator
) -> ScoreHistogram:
    clients = int(leaves.sum())
    tally = draw_tally(design.survey, leaves, clients=clients, generator=generator)
    return decode(design.survey, tally, decode_options=design.decode_options)


def _page(found: dict[str, dict[str, Constant]], trials: int) -> str:
    rates = {
        "given_classifier": "0, 1/(εM), 1/(ε√M)",
        "threshold_metrics": "1/B, (εM)^(-2/3), ε^(-2/3) M^(-1/3)",
        "auc": "1/B², (1/ε + 1/B)/M, h/(ε√M)",
        "calibration_error": "M^(-1/3), M^(-1/3) + 1/(εM^(2/3)), ε^(-1/2) M^(-1/4)",
    }
    rows = ["| result | rates | secure | distributed | local |", "| --- | --- | --- | --- | --- |"]
    for result, by_privacy in found.items():
        cells = [
            f"{each.mean:.2g} ({each.smallest:.2g} to {each.largest:.2g})" if each else "exact"
            for each in (by_privacy.get(privacy.value) for privacy in PAPER_MODELS)
        ]
        rows.append(f"| {result} | {rates[result]} | {' | '.join(cells)} |")
    return (
        "# The constants beside the O()\n\n"
        "Written by `python -m experiments.theory`, with `src/fedassay/data/theory.json` from "
        "which `fedassay.planning.theory.measured` reads. Mean absolute error over the rate of "
        f"`tab:results`, over {trials} trials for each case (distributed M = "
        f"{_list(CLIENTS[Privacy.DISTRIBUTED])}; local M = {_list(CLIENTS[Privacy.LOCAL])}; ε = "
        f"{', '.join(map(str, EPSILONS))}; secure B = {_list(BUCKETS)}): geometric mean "
        "(smallest to largest). A rate that describes the error has a narrow range. The "
        "classifier is balanced and too sure of itself (log-odds stretched by a third). The "
        "surveys are those of the proofs: two cells; flat quantile buckets, as many as the proof "
        "of `thm:pra` asks for; the binary tree of height 10 with 100 buckets for ROC AUC and, "
        "with the theorems' number of buckets, for calibration.\n\n" + "\n".join(rows) + "\n"
    )


def _list(numbers: tuple[int, ...]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)


def main() -> None:
    """Measure and write both files."""
    parser = ArgumentParser(prog="python -m experiments.theory", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller run, printed only")
    parser.add_argument("--trials", type=int, default=12, help="for each case (default: 12)")
    arguments = parser.parse_args()
    trials: int = 3 if arguments.quick else arguments.trials
    found: dict[str, dict[str, Constant]] = {}
    for result in MEASURES:
        found[result] = {}
        for privacy in PAPER_MODELS:
            if result == "given_classifier" and privacy is Privacy.SECURE:
                continue
            print(f"{time.strftime('%H:%M:%S')} {result}, {privacy.value}", file=sys.stderr)
            found[result][privacy.value] = constant(result, privacy, trials=trials)
    text = _page(found, trials)
    print(text)
    if not arguments.quick:
        content = {
            "format": "fedassay.planning.theory/1",
            "constants": {
                result: {privacy: asdict(each) for privacy, each in by_privacy.items()}
                for result, by_privacy in found.items()
            },
        }
        _DATA.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        _PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
