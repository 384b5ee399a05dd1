"""A bounded run of the fuzzer, and messages that claim to be enormous."""

import sys
import time
import tracemalloc
from collections.abc import Callable

import pytest

from fedassay import wire
from fedassay.errors import FedassayError, SecAggError
from fedassay.secagg import Terms
from tests.fuzz import Target, fuzz, targets
from tests.secagg import Federation
from tests.surveys import report_of, small_survey

MESSAGES = 2000
MEGABYTE = 2**20


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_hostile_bytes_raise_typed_errors_and_change_nothing(target: Target) -> None:
    assert fuzz(target, MESSAGES, seed=1) < MESSAGES


def test_the_fuzzer_finds_a_decoder_that_trusts_its_input() -> None:
    trusting = Target(
        "planted", lambda data: data[40 + data[44]], (bytes(100),), targets()[0].mutate
    )
    with pytest.raises(AssertionError, match="IndexError"):
        fuzz(trusting, MESSAGES, seed=1)


def enormous() -> dict[str, Callable[[], object]]:
    """Messages that declare a gigabyte or more without having it."""
    federation = Federation.of(4)
    roster = bytearray(federation.keys()["0"])
    clients, nodes = bytearray(roster), bytearray(roster)
    clients[40:44] = (2**30).to_bytes(4, "little")
    nodes[80:84] = (2**25).to_bytes(4, "little")
    terms = bytearray(federation.terms.to_bytes())
    terms[54:58] = (2**28).to_bytes(4, "little")
    survey = small_survey(16)
    report = bytearray(wire.encode(report_of(survey)))
    report[5], report[56:60] = 0, (2**28).to_bytes(4, "little")
    client = federation.clients["0"]
    return {
        "clients of a roster": lambda: client.shares(bytes(clients)),
        "nodes of a roster": lambda: client.shares(bytes(nodes)),
        "words of a round": lambda: Terms.from_bytes(bytes(terms)),
        "counters of a report": lambda: wire.decode(bytes(report), survey),
    }


@pytest.mark.parametrize(
    "name", ["clients of a roster", "nodes of a roster", "words of a round", "counters of a report"]
)
def test_a_message_that_declares_a_gigabyte_is_refused_for_next_to_nothing(name: str) -> None:
    act = enormous()[name]
    tracemalloc.start()
    start = time.perf_counter()
    with pytest.raises(FedassayError):
        act()
    seconds = time.perf_counter() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    sys.stdout.write(f"{name}: {1000 * seconds:.2f} ms, {peak / MEGABYTE:.2f} MB\n")
    assert peak < MEGABYTE


def test_a_gigabyte_that_is_really_sent_is_not_copied() -> None:
    federation = Federation.of(4)
    federation.shares()
    sent = bytes(2**30)
    for act in (
        lambda: federation.clients["0"].masked(sent, federation.vectors["0"]),
        lambda: federation.server.receive_masked("0", sent),
    ):
        tracemalloc.start()
        with pytest.raises(SecAggError):
            act()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < MEGABYTE
