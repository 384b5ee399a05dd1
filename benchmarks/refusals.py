"""What it costs a client to refuse what a stranger asks for."""

import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction

import numpy as np

from benchmarks.memory import MIB
from benchmarks.page import Aim, Section
from benchmarks.timing import median_of, shown, three_digits
from fedassay import Grid, Hierarchy, Polya, Survey, SystemRandomness
from fedassay.client import OPEN_POLICY, answer_counts
from fedassay.errors import FedassayError
from fedassay.files import canonical
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Privacy, UnaryEncoding
from fedassay.secagg.graph import Graph
from fedassay.secagg.terms import required_survivors
from fedassay.survey_json import MAX_SURVEY_BYTES, survey_from_bytes

_WANTED_SECONDS, _WANTED_MIB = 0.05, 50.0


def measure(*, quick: bool) -> Section:
    """Time and memory of each refusal, from the bytes of the question on."""
    taken = {
        name: (median_of(1 if quick else 5, task), _peak_mib(task))
        for name, task in _questions().items()
    }
    seconds = max(time for time, _ in taken.values())
    mebibytes = max(memory for _, memory in taken.values())
    return Section(
        title="Refusals",
        about="What a client or site gives to a question that it does not answer, reading "
        "included; memory is the peak of what Python and numpy allocate. Limits: "
        "docs/threat-model.md.",
        header=("asked", "time", "memory, MiB"),
        rows=[(name, shown(time), three_digits(memory)) for name, (time, memory) in taken.items()],
        aims=[
            Aim(f"each under 50 ms; measured {shown(seconds)}", seconds < _WANTED_SECONDS),
            Aim(f"each under 50 MiB; measured {three_digits(mebibytes)}", mebibytes < _WANTED_MIB),
        ],
    )


def _questions() -> dict[str, Callable[[], None]]:
    noisy = canonical(_flat(Privacy.DISTRIBUTED, Polya(Fraction(1, 10**9), 1, 4), 64).to_json())
    wide = canonical(_flat(Privacy.LOCAL, UnaryEncoding(Fraction(1)), 2**20).to_json())
    many = _flat(Privacy.LOCAL, UnaryEncoding(Fraction(1)), 2**13)
    rows = np.full((2, 2**13), 100, dtype=np.int64)
    crowd = Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(4),
        hierarchy=Hierarchy.regular(4, 2),
        mechanisms=(Polya(Fraction(1), 1, 2**31),) * 2,
        level_policy=OneLevel((Fraction(1, 2),) * 2),
        minimum_reports=2**31,
    )
    lists = b"[" + b"[]," * (MAX_SURVEY_BYTES // 3 - 2) + b"1]"
    large = b"[" + b"[]," * (2**26 // 3 - 2) + b"1]"
    return {
        "noise at epsilon 1e-9": _refused(lambda: OPEN_POLICY.check(survey_from_bytes(noisy))),
        "unary encoding on 2^20 cells": _refused(
            lambda: OPEN_POLICY.check(survey_from_bytes(wide))
        ),
        "1.6 million unary reports of 2^13 cells": _refused(
            lambda: answer_counts(many, rows, randomness=SystemRandomness(), policy=OPEN_POLICY)
        ),
        "survey of 4 MiB of lists": _refused(lambda: survey_from_bytes(lists)),
        "survey of 64 MiB": _refused(lambda: survey_from_bytes(large)),
        "cohort of 65,536, a third corrupt, half lost": _refused(lambda: _graph(21_823, 32_768)),
        "cohort of 65,536 that almost works": _refused(lambda: _graph(13_107, 16_384)),
        "levels for 2^31 clients": _refused(lambda: required_survivors(crowd)),
    }


def _flat(privacy: Privacy, mechanism: Polya | UnaryEncoding, cells: int) -> Survey:
    return Survey(
        privacy=privacy,
        grid=Grid.uniform(cells),
        hierarchy=Hierarchy.flat(cells),
        mechanisms=(mechanism,),
        minimum_reports=4,
    )


def _graph(corrupt: int, dropped: int) -> None:
    Graph.of.cache_clear()
    Graph.of(2**16, corrupt, dropped)


def _refused(act: Callable[[], object]) -> Callable[[], None]:
    def asked() -> None:
        with suppress(FedassayError):
            act()
            raise SystemExit("a question that must be refused was answered.")

    return asked


def _peak_mib(task: Callable[[], None]) -> float:
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1] / MIB
    finally:
        tracemalloc.stop()
