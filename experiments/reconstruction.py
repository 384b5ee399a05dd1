"""Rows worked out from what is published, under each privacy model, beside what is promised.

Matthews and Harel (An examination of data confidentiality and disclosure issues related to
publication of empirical ROC curves, Academic Radiology 20, 2013): every step of an empirical ROC
curve is a row, and whoever knows all rows but one works that one out from the curve.
`python -m experiments.reconstruction` writes `experiments/reconstruction.md` (a minute); with
--quick it prints a smaller run.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp
from pathlib import Path

import numpy as np

from experiments.data import Scored, rows
from experiments.page import markdown_table, run, say
from fedassay.decoding import DecodeOptions, decode
from fedassay.examples import Examples, FloatArray, ScoredClients
from fedassay.histogram import ScoreHistogram
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import LocalMechanism, Neighbours, Privacy
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import tally_clients
from fedassay.survey import Survey

_ROWS = 2000


@dataclass(frozen=True, slots=True)
class Release:
    """One way to publish: a survey, under a name."""

    name: str
    survey: Survey


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconstruction:
    """What attackers worked out, over some trials."""

    right: float
    """Share of trials in which the missing row's label was guessed right; half are by luck."""
    trials: int
    width: float
    """Median width of the cell that the missing row's score was narrowed down to."""
    singles: float
    """Rows in all that stand alone in a published count, with their label."""


def releases(size: int) -> list[Release]:
    """The models compared, for so many rows that are a client each, or of one site."""
    common = SurveyRequest(clients=size, examples=size, dropouts=Fraction(0))
    requests = {
        "secure, no smallest cell": replace(common, smallest_cell=0),
        "secure, smallest cell 10": replace(common, smallest_cell=10),
    }
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(3)):
        for privacy in Privacy:
            if privacy.spends_epsilon:
                name = f"{privacy.value}, ε = {float(epsilon):g}"
                requests[name] = replace(
                    common,
                    privacy=privacy,
                    epsilon=epsilon,
                    clients=1 if privacy is Privacy.SITE else size,
                )
    return [Release(name, design_survey(each).survey) for name, each in requests.items()]


def most_right(survey: Survey) -> float:
    """The share of labels that anybody can guess right at most, by the survey's promise.

    A label that changes is a row replaced; where neighbours add or remove a row, that is two
    steps. Who sees what is e^x times as likely under one label is e^x / (1 + e^x) sure.
    """
    guarantee = survey.guarantee
    if guarantee.epsilon is None:
        return 1.0
    steps = 1 if guarantee.neighbours is Neighbours.REPLACE else 2
    return 1.0 / (1.0 + exp(-steps * float(guarantee.epsilon)))


def reconstruct(
    survey: Survey, examples: Examples, *, trials: int, seed: int, in_order: bool = False
) -> Reconstruction:
    """Work out a missing row's label, which a coin decides, as often as told.

    `in_order`: shuffled reports come from a shuffler that did not shuffle.
    """
    generator = np.random.default_rng(seed)
    randomness = SimulatedRandomness(np.random.SeedSequence(seed))
    right, widths = 0.0, []
    for _ in range(trials):
        missing = int(generator.integers(len(examples)))
        label = int(generator.integers(2))
        labels = examples.labels.copy()
        labels[missing] = label
        truth = Examples(labels, examples.scores)
        known = truth.rows(np.delete(np.arange(len(truth)), missing))
        score = float(truth.scores[missing])
        if survey.privacy is Privacy.SHUFFLED and not in_order:
            towards, width = _mixed(survey, truth, known, score, randomness), 1.0
        elif survey.is_local:
            towards = _own_report(survey, score, label, randomness)
            width = 1.0
        else:
            towards, width = _difference(survey, truth, known, score, randomness)
        guess = int(towards > 0.0) if towards else int(generator.integers(2))
        right += guess == label
        widths.append(width)
    return Reconstruction(
        right=right / trials,
        trials=trials,
        width=float(np.median(widths)),
        singles=_singles(survey, examples, randomness),
    )


def cohort_of(survey: Survey, examples: Examples) -> ScoredClients:
    """Each row a client; all rows at one site where sites add the noise, whose report is seen."""
    if survey.privacy is Privacy.SITE:
        return ScoredClients(examples, np.zeros(len(examples), dtype=np.int64), 1)
    return ScoredClients(examples, None, len(examples))


def _difference(
    survey: Survey,
    truth: Examples,
    known: Examples,
    score: float,
    randomness: SimulatedRandomness,
) -> tuple[float, float]:
    """What is published less what is known: log odds of label 1, and the score's cell.

    The noise of a level is two-sided geometric, with probability e^(-epsilon |x|) up to a
    factor: so is the best that anybody can make of a difference.
    """
    tally = tally_clients(survey, cohort_of(survey, truth), randomness=randomness)
    if survey.is_exact:
        histogram = decode(survey, tally, decode_options=DecodeOptions())
        there = counts_between(histogram, known)
        rest = histogram.counts - there
        place = int(rest.sum(axis=0).argmax())
        return float(rest[1].sum() - rest[0].sum()), float(histogram.widths[place])
    leaf = survey.grid.locate([score])
    counts = survey.grid.count(known)
    odds = 0.0
    for level, sums in enumerate(tally.per_level(survey)):
        rest = sums - survey.hierarchy.at_level(counts, level)
        places = [int(survey.hierarchy.cell_of(leaf, level, label)[0]) for label in (0, 1)]
        negative, positive = (int(rest[label, place]) for label, place in enumerate(places))
        spent = survey.mechanisms[level].epsilon_spent or Fraction(0)
        step = float(spent) / survey.unit.sensitivity
        odds += step * (abs(positive) - abs(positive - 1) - abs(negative) + abs(negative - 1))
    return odds, 1.0


def counts_between(histogram: ScoreHistogram, examples: Examples) -> FloatArray:
    """Counts of rows between a published histogram's edges."""
    return np.stack(
        [
            np.histogram(examples.scores[examples.labels == label], _open(histogram))[0]
            for label in (0, 1)
        ]
    )


def _open(histogram: ScoreHistogram) -> FloatArray:
    """Edges for cells (lo, hi], where numpy's are [lo, hi)."""
    return np.concatenate([[-1.0], np.nextafter(histogram.edges[1:], 2.0)])


def _mixed(
    survey: Survey,
    truth: Examples,
    known: Examples,
    score: float,
    randomness: SimulatedRandomness,
) -> float:
    """Log odds of label 1, up to a factor, from the sums of all reports: nobody sees whose.

    Of each level, what both counters have more than the known rows let expect, over its variance.
    """
    tally = tally_clients(survey, cohort_of(survey, truth), randomness=randomness)
    leaf, counts, odds = survey.grid.locate([score]), survey.grid.count(known), 0.0
    for level, sums in enumerate(tally.per_level(survey)):
        law, heard = survey.mechanisms[level].law(), tally.reports[level]
        there = survey.hierarchy.at_level(counts, level) * (heard / len(truth))
        more = sums - law.gain * there - law.offset * heard
        variance = heard * law.variance_per_report + law.variance_per_hit * there
        places = [int(survey.hierarchy.cell_of(leaf, level, each)[0]) for each in (0, 1)]
        negative, positive = (more[each, at] / variance[each, at] for each, at in enumerate(places))
        odds += law.gain * float(positive - negative)
    return odds


def _own_report(survey: Survey, score: float, label: int, randomness: SimulatedRandomness) -> float:
    """Log odds of label 1, up to a factor, from the missing row's own report, which all see."""
    policy = survey.level_policy
    level = 0
    if isinstance(policy, OneLevel):
        shares = [float(share) for share in policy.client_fractions]
        level = int(randomness.generator.choice(len(shares), p=shares))
    mechanism, hierarchy = survey.mechanisms[level], survey.hierarchy
    if not isinstance(mechanism, LocalMechanism):
        raise TypeError("a locally private survey has local mechanisms")
    cells = hierarchy.cells_per_level[level]
    leaf = survey.grid.locate([score])
    places = [each * cells + int(hierarchy.cell_of(leaf, level, each)[0]) for each in (0, 1)]
    sent = mechanism.encode(np.array([places[label]]), 2 * cells, randomness=randomness)
    seen = mechanism.sums(sent, 2 * cells)
    return float(seen[places[1]] - seen[places[0]])


def _singles(survey: Survey, examples: Examples, randomness: SimulatedRandomness) -> float:
    """Rows that a published count of exactly 1 is true of: a step of the ROC curve each."""
    tally = tally_clients(survey, cohort_of(survey, examples), randomness=randomness)
    histogram = decode(survey, tally, decode_options=DecodeOptions())
    true = counts_between(histogram, examples)
    claimed = np.rint(histogram.counts) == 1.0
    return float((claimed & (true == 1)).sum())


def page(tables: list[Scored], trials: int, quick: bool) -> Iterator[str]:
    """The page, one part after the other."""
    size = 500 if quick else _ROWS
    table = tables[-1]
    sample = rows(table.examples, size, np.random.default_rng(0))
    yield (
        "# Rows worked out from what is published\n\nWritten by `python -m "
        f"experiments.reconstruction`: {size:,} rows of {table.name}, each a client or, under site "
        f"privacy, all of one site whose report is seen; {trials:,} trials for each "
        "line. Matthews and Harel (Academic Radiology 20, 2013) read rows off a published ROC "
        "curve. Their attacker knows all rows but one, and its score; a coin decided "
        "that row's label. *Right* is how often the best guess from all that is seen was the "
        "label (± two standard errors), *at most* what the promise lets anybody reach: e^x / (1 + "
        "e^x), with x = ε where a row is replaced and 2ε where one is added and one removed. "
        "*Cell* is how closely the file alone places the missing row's score. *Single rows* stand "
        "alone in a published count, so that the curve itself tells their label and score to "
        "whoever knows no row at all."
    )
    body = []
    for release in releases(size):
        say(release.name)
        found = reconstruct(release.survey, sample, trials=trials, seed=1)
        error = 2.0 * (found.right * (1.0 - found.right) / trials) ** 0.5
        exact = release.survey.is_exact
        body.append(
            [
                release.name,
                f"{found.right:.3f} ± {error:.3f}",
                "no bound" if exact else f"{most_right(release.survey):.3f}",
                f"{found.width:.1g}" if exact else "-",
                f"{found.singles:,.0f}" if exact else f"{found.singles:,.0f} (by luck)",
            ]
        )
    header = ["release", "right", "at most", "cell", "single rows"]
    yield markdown_table(header, body)
    yield (
        "A smallest cell hides single rows from whoever sees the file, and places a score no "
        "closer than a cell of ten rows of each label. It is no differential privacy: who knows "
        "all other rows still subtracts them. Only noise bounds that, and no attack passes its "
        "bound."
    )


if __name__ == "__main__":
    run(Path(__file__), __doc__, page, trials=2000)
