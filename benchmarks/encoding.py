"""Locally private reports: encoding one or many, against other libraries."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client
from pure_ldp.frequency_oracles.direct_encoding import DEClient
from pure_ldp.frequency_oracles.unary_encoding import UEClient

from benchmarks.page import Aim, Section
from benchmarks.timing import microseconds, race, race_calls, three_digits
from fedassay.client import make_answer
from fedassay.examples import Examples
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.mechanisms import AnyMechanism, Privacy, RandomizedResponse, UnaryEncoding
from fedassay.randomness import SystemRandomness
from fedassay.survey import Survey

_SIZE = 1024
_EPSILON = Fraction(5)
_BATCH = 4096
_CELLS = 1024
_WANTED_RATIO = 100.0
_WANTED_MICROSECONDS = 100.0
_MOST_SLOWER = 50.0
_PURE = "pure-ldp, one by one"
_OURS_SINGLE, _OURS_BATCH = "fedassay, one by one", f"fedassay, batches of {_BATCH:,}"
_OTHER = "multi-freq-ldpy, one by one"
_NUMPY = f"plain numpy, batches of {_BATCH:,}: no secret randomness"
_BATCHES = (_OURS_BATCH, _NUMPY)


def measure(*, quick: bool) -> Section:
    """Clients per second, and microseconds for all that one client does."""
    runs = 3 if quick else 20
    unary, response = (_per_client(runs, tasks) for tasks in (_unary(), _response()))
    ratio = unary[_PURE] / unary[_OURS_BATCH]
    slower = response[_OURS_SINGLE] / response[_PURE]
    surveys: dict[str, AnyMechanism] = {
        "OUE": UnaryEncoding(_EPSILON),
        "GRR": RandomizedResponse(_EPSILON, _CELLS),
    }
    whole = {name: _one_client(runs, mechanism) for name, mechanism in surveys.items()}
    rows = [*_rows("OUE", unary), *_rows("GRR", response)]
    return Section(
        title="Locally private reports",
        about=f"Optimal unary encoding (OUE) and generalised randomised response (GRR) over "
        f"{_SIZE:,} values at epsilon {_EPSILON}. Ours are exact integer draws from the "
        "system's randomness, bits packed; the others draw floating-point numbers from a "
        "simulation's generator and have no batches. One client's whole answer, from its count "
        f"on a grid of {_CELLS:,} cells to the bytes it sends (`make_answer`, `to_bytes`, "
        f"{2 * _CELLS:,} values), takes {three_digits(whole['OUE'])} µs with OUE and "
        f"{three_digits(whole['GRR'])} µs with GRR.",
        header=("what", "clients/s", "time per client", "speed against pure-ldp"),
        rows=rows,
        aims=[
            Aim(
                f"OUE in batches {_WANTED_RATIO:.0f} times faster than pure-ldp; measured "
                f"{three_digits(ratio)} times",
                ratio >= _WANTED_RATIO,
            ),
            Aim(
                f"one client's whole OUE answer under {_WANTED_MICROSECONDS:.0f} µs; measured "
                f"{three_digits(whole['OUE'])} µs",
                whole["OUE"] < _WANTED_MICROSECONDS,
            ),
            Aim(
                f"GRR one by one not {_MOST_SLOWER:.0f} times slower than pure-ldp's one call of a "
                f"generator; measured {three_digits(slower)} times slower",
                slower < _MOST_SLOWER,
            ),
        ],
    )


def _rows(kind: str, seconds: dict[str, float]) -> list[tuple[str, ...]]:
    return [
        (
            f"{kind}: {name}",
            f"{1.0 / taken:,.0f}",
            f"{three_digits(taken * 1e6)} µs",
            f"{three_digits(seconds[_PURE] / taken)} ×",
        )
        for name, taken in seconds.items()
    ]


def _per_client(runs: int, tasks: dict[str, Callable[[], object]]) -> dict[str, float]:
    for task in tasks.values():
        task()  # numba compiles at the first call
    singly = race_calls(runs, {n: task for n, task in tasks.items() if n not in _BATCHES})
    batches = race(runs, {n: task for n, task in tasks.items() if n in _BATCHES})
    seconds = singly | {n: taken / _BATCH for n, taken in batches.items()}
    return {name: seconds[name] for name in tasks}


def _unary() -> dict[str, Callable[[], object]]:
    encode = partial(UnaryEncoding(_EPSILON).encode, size=_SIZE, randomness=SystemRandomness())
    one, many = np.array([5]), np.arange(_BATCH) % _SIZE
    generator, q = np.random.default_rng(1), float(UnaryEncoding(_EPSILON).q)

    def plain() -> object:
        bits = generator.random((_BATCH, _SIZE)) < q
        bits[np.arange(_BATCH), many] = generator.random(_BATCH) < 0.5
        return np.packbits(bits, axis=1)

    return {
        _OURS_SINGLE: lambda: encode(one),
        _OURS_BATCH: lambda: encode(many),
        _PURE: partial(UEClient(float(_EPSILON), _SIZE, use_oue=True).privatise, 5),
        _OTHER: partial(UE_Client, 5, _SIZE, float(_EPSILON), True),
        _NUMPY: plain,
    }


def _response() -> dict[str, Callable[[], object]]:
    mechanism = RandomizedResponse(_EPSILON, _SIZE // 2)
    encode = partial(mechanism.encode, size=_SIZE, randomness=SystemRandomness())
    one, many = np.array([5]), np.arange(_BATCH) % _SIZE
    return {
        _OURS_SINGLE: lambda: encode(one),
        _OURS_BATCH: lambda: encode(many),
        _PURE: partial(DEClient(float(_EPSILON), _SIZE).privatise, 5),
        _OTHER: partial(GRR_Client, 5, _SIZE, float(_EPSILON)),
    }


def _one_client(runs: int, mechanism: AnyMechanism) -> float:
    survey = Survey(
        privacy=Privacy.LOCAL,
        grid=Grid.uniform(_CELLS),
        hierarchy=Hierarchy.flat(_CELLS),
        mechanisms=(mechanism,),
    )
    counts = survey.grid.count(Examples([1], [0.62]))
    randomness = SystemRandomness()
    return microseconds(runs, lambda: make_answer(survey, counts, randomness=randomness).to_bytes())
