"""One client's exact noise share, against opendp's discrete Laplace noise."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import opendp.prelude as dp

from benchmarks.page import Aim, Section
from benchmarks.timing import race, shown, three_digits
from fedassay.mechanisms import Polya
from fedassay.randomness import SystemRandomness

_COUNTERS = 2 * 4096
_MANY = 100_000
_SHARES = (_MANY, 1_000, 4, 1)
_WANTED_RATIO = 100.0
_OPENDP = "opendp: discrete Laplace noise"


def measure(*, quick: bool) -> Section:
    """Time noise for the same counters at the same epsilon."""
    tasks: dict[str, Callable[[], object]] = {
        _name(shares): partial(
            Polya(Fraction(1), 1, shares).noise, _COUNTERS, randomness=SystemRandomness()
        )
        for shares in _SHARES
    }
    tasks[_OPENDP] = partial(_opendp_laplace(), [0] * _COUNTERS)
    seconds = race(2 if quick else 10, tasks)
    theirs = seconds[_OPENDP]
    ratio = theirs / seconds[_name(_MANY)]
    return Section(
        title="Noise for distributed privacy",
        about=f"Exact integer noise for {_COUNTERS:,} counters at epsilon 1. A client adds its "
        "share of discrete Laplace noise (`Polya.noise`), sized for the clients that must "
        "answer: the fewer, the larger each share, and a single one has to draw all of it. "
        "opendp's is the whole noise of a trusted server.",
        header=("what", "time", "speed against opendp"),
        rows=[
            (name, shown(taken), f"{three_digits(theirs / taken)} ×")
            for name, taken in seconds.items()
        ],
        aims=[
            Aim(
                f"a share among {_MANY:,} clients {_WANTED_RATIO:.0f} times faster than opendp; "
                f"measured {three_digits(ratio)} times",
                ratio >= _WANTED_RATIO,
            )
        ],
    )


def _name(shares: int) -> str:
    clients = "one client" if shares == 1 else f"{shares:,} clients"
    return f"fedassay: one share for {clients}"


def _opendp_laplace() -> Callable[[list[int]], object]:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    mechanism: Callable[[list[int]], object] = dp.m.make_laplace(*space, scale=1.0)
    return mechanism
