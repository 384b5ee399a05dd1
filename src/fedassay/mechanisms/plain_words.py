"""What a guarantee means for one row, for people who do not work with epsilon."""

from collections.abc import Iterator
from math import ceil, exp

from fedassay.mechanisms.law import Guarantee, Keep, Neighbours, UnitKind

ROWS_OF_A_PATIENT = 3
_WHOSE = {
    UnitKind.EXAMPLE: "one row",
    UnitKind.CLIENT: "all rows of one client together",
    UnitKind.PATIENT: "all rows that a site counts of one patient",
}


def plain_words(guarantee: Guarantee) -> Iterator[str]:
    """A guarantee in sentences: what an onlooker can learn of a row, and of whom it is not.

    Somebody to whom two cases are equally likely, and who sees what is e^epsilon times as
    likely in one as in the other, holds that one for e^epsilon / (1 + e^epsilon) likely.
    """
    epsilon = guarantee.in_all
    if epsilon is None:
        yield (
            "There is no noise: whoever receives the sum knows the exact counts of all clients "
            "together. Someone who knows all rows but one can work that one out."
        )
        if guarantee.smallest_cell:
            yield (
                f"What is published has been merged into cells of at least "
                f"{guarantee.smallest_cell:,} rows of each label, and no two published files of "
                "the same rows differ by fewer. Whoever adds up the reports sees the sums before."
            )
    else:
        yield from _odds(guarantee, float(epsilon))
    yield (
        "What a client holds is protected, not that it took part: which clients answered is public."
    )


def _odds(guarantee: Guarantee, epsilon: float) -> Iterator[str]:
    is_row = guarantee.unit.kind is UnitKind.EXAMPLE
    whose = _WHOSE[guarantee.unit.kind]
    cases = (
        f"with {whose} as with any other in place"
        if guarantee.neighbours is Neighbours.REPLACE
        else f"with {whose} as without"
    )
    yield (
        f"Epsilon {epsilon:g} means: whatever is published is at most {_times(epsilon)} times as "
        f"likely {cases}. Who could only toss a coin between the two cases before can be at most "
        f"{_sure(epsilon)} sure after."
    )
    if guarantee.delta is not None:
        yield f"That may fail with probability {float(guarantee.delta):g}."
    if guarantee.local_epsilon is not None:
        alone = float(guarantee.local_epsilon)
        yield (
            "That is so for whoever sees the shuffled batch alone. Who sees a report before it is "
            f"shuffled, knowing whose it is, can be {_sure(alone)} sure (epsilon {alone:g})."
        )
    if is_row:
        several = ROWS_OF_A_PATIENT * epsilon
        # Of a group, each step may fail, and e^epsilon times as likely as the one before.
        fails = sum(exp(epsilon * row) for row in range(ROWS_OF_A_PATIENT))
        failing = "" if guarantee.delta is None else f", and fails {fails:.1f} times as often"
        yield (
            f"A row is not a patient: whoever has {ROWS_OF_A_PATIENT} rows is protected with "
            f"epsilon {several:g} only, {_times(several)} times and {_sure(several)}{failing}."
        )
    else:
        is_local = guarantee.neighbours is Neighbours.REPLACE
        most = 1 if is_local else guarantee.unit.max_examples
        kind = guarantee.unit.kind.value
        chosen = "drawn at random" if guarantee.unit.keep is Keep.RANDOM else "the latest"
        yield f"At most {most:,} row(s) of a {kind} are counted, {chosen} where there are more."
    if guarantee.unit.kind is UnitKind.PATIENT:
        several = 2 * epsilon
        yield (
            "A patient at two sites is counted at both, and is protected with epsilon "
            f"{several:g} only, {_times(several)} times and {_sure(several)}. How many rows were "
            "left out is told to nobody but the site itself."
        )


def _times(epsilon: float) -> str:
    # Rounded up, as below: never less than what can be.
    factor = exp(epsilon)
    return f"{ceil(100.0 * factor) / 100:g}" if factor < 100.0 else f"{ceil(factor):,}"


def _sure(epsilon: float) -> str:
    return f"{ceil(1000.0 / (1.0 + exp(-epsilon))) / 10:g} %"
