"""Does the time at which an answer leaves tell of its noise? Writes `timing.md`.

`python -m experiments.timing --runs 100000` takes some ten minutes on an idle machine.
"""

import time
from argparse import ArgumentParser
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from experiments.page import markdown_table, say
from fedassay import Grid, Hierarchy, Polya, Survey, SystemRandomness
from fedassay.client import make_answer
from fedassay.engines.departure import Departure
from fedassay.limits import expected_draws
from fedassay.mechanisms import Privacy
from fedassay.wire import Report

Floats = npt.NDArray[np.float64]
_SLOT_SECONDS = 0.004
"""Much shorter than in use, so that many runs fit; the noise of these surveys fits in, too."""
_EPSILONS = (Fraction(1), Fraction(1, 4))


@dataclass(frozen=True)
class Runs:
    """What was seen of many answers to one survey: seconds, and what nobody should see."""

    made: Floats
    left: Floats
    late: int
    """Answers that missed their first slot."""
    size: Floats
    """Sum of absolute noise."""
    changed: Floats
    """Counters that the noise changed."""


def survey_with(epsilon: Fraction) -> Survey:
    """Eight cells among ten clients."""
    return Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(8),
        hierarchy=Hierarchy.flat(8),
        mechanisms=(Polya(epsilon, 1, 10),),
        minimum_reports=10,
    )


def measure(survey: Survey, runs: int) -> Runs:
    """Answer with nothing to count, so that all that is reported is noise."""
    counts, randomness = np.zeros((2, 8), dtype=np.int64), SystemRandomness()
    seen = np.empty((4, runs))
    late = 0
    for run in range(runs):
        departure, begun = Departure.begin(), time.perf_counter()
        (report,) = make_answer(survey, counts, randomness=randomness).messages
        made = time.perf_counter()
        late += departure.wait(_SLOT_SECONDS) > 1
        left = time.perf_counter()
        noise = np.abs(report.counters if isinstance(report, Report) else counts)
        seen[:, run] = made - begun, left - begun, noise.sum(), (noise > 0).sum()
    made_in, left_in, size, changed = seen
    return Runs(made_in, left_in, late, size, changed)


def correlation(x: Floats, y: Floats) -> float:
    """Of ranks, ties shared: one slow run among thousands must not decide it."""
    return float(spearmanr(x, y).statistic)


def page(runs: int) -> str:
    """The measured page."""
    body = []
    for epsilon in _EPSILONS:
        survey = survey_with(epsilon)
        say(f"{runs:,} answers at epsilon {epsilon}")
        seen = measure(survey, runs)
        body.append(
            [
                f"epsilon {epsilon}, {float(expected_draws(survey)):.1f} draws",
                f"{correlation(seen.made, seen.size):.3f}",
                f"{correlation(seen.made, seen.changed):.3f}",
                f"{correlation(seen.left, seen.size):.3f}",
                f"{correlation(seen.left, seen.changed):.3f}",
                f"{np.median(seen.made) * 1e6:.0f}",
                f"{seen.late}",
            ]
        )
    header = (
        "survey", "made: size", "made: changed", "left: size", "left: changed",
        "made in, microseconds", "late",
    )  # fmt: skip
    return f"""# Does the time of an answer tell of its noise?

Rank correlations over {runs:,} answers (standard error {runs**-0.5:.4f}) between two times and two
facts about the noise: its absolute sum, and how many counters it changed. *Made* is when the answer
was ready, *left* when `engines.departure` let it go, at the end of a slot of
{_SLOT_SECONDS * 1000:.0f} ms (in use: 250 ms and more). *Late* answers missed their first slot,
because the machine was busy. Made by `python -m experiments.timing --runs {runs}`.

{markdown_table(header, body)}
"""


def main() -> None:
    """Measure, print, and write the page."""
    parser = ArgumentParser(prog="python -m experiments.timing", description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    runs: int = parser.parse_args().runs
    text = page(runs)
    print(text)
    Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
