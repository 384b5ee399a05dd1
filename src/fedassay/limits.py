"""What one answer may cost: draws, bytes, and how large a counter can grow.

All of it follows from the survey and from counts that are there already, so that a client
refuses before it charges, draws or allocates anything.
"""

from fractions import Fraction

import numpy as np

from fedassay.checks import require_fraction
from fedassay.errors import SettingInvalid, SurveyRefused
from fedassay.examples import IntArray
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import LocalMechanism, Polya
from fedassay.mechanisms.sampling import Dice
from fedassay.survey import Survey
from fedassay.wire import row_bytes

MOST_DRAWS = 2**20
"""Candidate jumps of Polya noise that a client draws on average: some fifteen seconds."""
MOST_ANSWER_BYTES = 2**28
"""Of locally private reports in one answer; also the most that a Flower message carries."""
COUNTER_LIMIT = 2**31
"""Counters travel in four bytes, with a sign."""
SURE_BITS = 40
"""Noise passes `largest_noise` with a probability of at most 2^-40 for each answer."""


def expected_draws(survey: Survey) -> Fraction:
    """Candidate jumps that one client's noise takes on average, over all levels it reports on.

    >>> from fedassay.grid import Grid
    >>> from fedassay.hierarchy import Hierarchy
    >>> from fedassay.mechanisms import Privacy
    >>> survey = Survey(
    ...     privacy=Privacy.DISTRIBUTED, grid=Grid.uniform(4), hierarchy=Hierarchy.flat(4),
    ...     mechanisms=(Polya(Fraction(1, 2), 1, 10),), minimum_reports=10,
    ... )
    >>> expected_draws(survey)
    Fraction(16, 5)
    """
    draws = [
        mechanism.expected_draws(2 * cells)
        for mechanism, cells in zip(
            survey.mechanisms, survey.hierarchy.cells_per_level, strict=True
        )
        if isinstance(mechanism, Polya)
    ] or [Fraction(0)]
    return max(draws) if isinstance(survey.level_policy, OneLevel) else sum(draws, Fraction(0))


def check_draws(survey: Survey) -> None:
    """Raise `SurveyRefused` when the noise would take more work than a client gives."""
    draws = expected_draws(survey)
    if draws > MOST_DRAWS:
        raise SurveyRefused(
            f"a client draws at most {MOST_DRAWS:,} numbers for its noise; this survey's takes "
            f"{float(draws):,.0f} on average. Raise epsilon or minimum_reports, lower the unit's "
            "examples, or use fewer cells."
        )


def largest_noise(survey: Survey) -> int:
    """What no counter's noise passes in one answer, except with probability 2^-`SURE_BITS`."""
    width = survey.hierarchy.width
    return max(
        (m.largest_noise(width, SURE_BITS) for m in survey.mechanisms if isinstance(m, Polya)),
        default=0,
    )


def largest_counter(survey: Survey, leaf_counts: IntArray) -> int:
    """The largest counter that an answer to these counts holds, its noise included."""
    hierarchy = survey.hierarchy
    counted = max(
        int(np.abs(hierarchy.at_level(leaf_counts, level)).max())
        for level in range(hierarchy.levels)
    )
    return counted + largest_noise(survey)


def check_counters(survey: Survey, leaf_counts: IntArray) -> None:
    """Raise `SurveyRefused` when a counter with its noise might not fit into a report."""
    if (
        int(leaf_counts.sum()) >= COUNTER_LIMIT
        or largest_counter(survey, leaf_counts) >= COUNTER_LIMIT
    ):
        raise SurveyRefused(
            "a report's counters must stay below 2^31 with their noise; those of this table might "
            "not. Split the table, or start a survey with a larger epsilon."
        )


def answer_bytes(survey: Survey, reports: int) -> int:
    """The most bytes that so many locally private reports take, whatever their levels."""
    rows = [
        row_bytes(survey, level)
        for level, mechanism in enumerate(survey.mechanisms)
        if isinstance(mechanism, LocalMechanism)
    ]
    return reports * max(rows, default=0)


def check_bytes(survey: Survey, reports: int) -> None:
    """Raise `SurveyRefused` when an answer would be larger than anybody takes."""
    if answer_bytes(survey, reports) > MOST_ANSWER_BYTES:
        raise SurveyRefused(
            f"an answer has at most {MOST_ANSWER_BYTES:,} bytes; this table's would have more. "
            "Split the table, or start a survey with fewer cells."
        )


def check_published(survey: Survey, smallest: int) -> None:
    """Raise `SurveyRefused` when exact counts below a client's smallest are published."""
    if smallest > max(survey.smallest_cell, 1):
        raise SurveyRefused(
            f"this client lets no count below {smallest} be published; the survey publishes "
            f"counts from {max(survey.smallest_cell, 1)} on. Start one with --smallest-cell "
            f"{smallest}."
        )


def check_cells(survey: Survey, rows: int, smallest: int) -> None:
    """Raise `SurveyRefused` when exact sums have too many cells for a client's rows.

    Whoever adds up sees the sums before they are merged. If all honest clients that a survey
    waits for hold as many rows, its cells hold rows x clients / cells on average.
    """
    if not survey.is_exact or smallest < 2:
        return
    honest = survey.minimum_reports - survey.colluders
    cells = max(survey.hierarchy.cells_per_level)
    if cells * smallest > rows * honest:
        most = rows * honest // smallest
        fewer = f"Start a survey of at most {most:,} cells" if most else "Start one with noise"
        raise SurveyRefused(
            f"whoever adds up sees exact sums before they are merged, and this client wants "
            f"{smallest} rows in a cell on average; in {cells:,} cells there are fewer "
            f"if the {honest} clients that the survey waits for have as many rows as this one. "
            f"{fewer} (--examples says for how many rows it is), or raise its minimum_reports."
        )


def at_most(leaf_counts: IntArray, most: int, dice: Dice) -> IntArray:
    """Keep `most` of a client's examples, chosen uniformly, where it has more."""
    flat = leaf_counts.ravel()
    total = int(flat.sum())
    if total <= most:
        return leaf_counts
    chosen: set[int] = set()
    # Floyd's sampling without replacement: uniform over subsets, one draw for each member.
    for last in range(total - most, total):
        rank = dice.below(last + 1)
        chosen.add(last if rank in chosen else rank)
    cells = np.searchsorted(np.cumsum(flat), sorted(chosen), side="right")
    return np.bincount(cells, minlength=flat.size).reshape(leaf_counts.shape)


def check_alone(survey: Survey, *, largest: Fraction, delta: Fraction) -> None:
    """Raise where a shuffled report tells too much alone, or its survey fails too often.

    >>> import fedassay
    >>> survey = fedassay.new_survey(privacy="shuffled", epsilon=1, clients=20_000, height=2)
    >>> check_alone(survey, largest=Fraction(4), delta=Fraction(1, 10**6))
    Traceback (most recent call last):
    ...
    fedassay.errors.SurveyRefused: this client sends reports of at most epsilon 4 each, which is ...
    """
    promise, local = survey.shuffled, survey.local_epsilon
    if promise is None or local is None:
        return
    if local > largest:
        raise SurveyRefused(
            f"this client sends reports of at most epsilon {float(largest):g} each, which is left "
            f"if shuffler and collector collude; this survey's have {float(local):g}. Lower its "
            "largest local epsilon (--largest-local)."
        )
    if promise.delta > delta:
        raise SurveyRefused(
            f"this client answers surveys with a delta of at most {float(delta):g}; this one's is "
            f"{float(promise.delta):g}. Lower it (--delta)."
        )


def check_largest(epsilon: Fraction | None, name: str, ceiling: Fraction) -> None:
    """Raise unless a client's own limit, where it has one, is above 0 and within the ceiling.

    >>> check_largest(Fraction(1), "largest_epsilon", Fraction(10))
    """
    if epsilon is None:
        return
    require_fraction(epsilon, name)
    if not 0 < epsilon <= ceiling:
        raise SettingInvalid(
            f"a client's {name.replace('_', ' ')} must be above 0 and at most {ceiling}, the most "
            f"that any client answers; found {float(epsilon):g}. Common choices lie between 0.1 "
            "and 5."
        )
