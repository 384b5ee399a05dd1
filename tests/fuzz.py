"""Hostile bytes for every decoder: typed errors only, and nothing changed.

`python -m tests.fuzz 1000000` (`make fuzz`) runs a million messages through each decoder, and a
twentieth of that through the state machines, whose cryptography takes its time. Names after the
number choose some of them.
"""

import copy
import hashlib
import json
import random
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedassay import Grid, Report, Unit, UnitKind, wire
from fedassay.calibration.calibrator import Calibrator, Method
from fedassay.errors import FedassayError
from fedassay.files import parse_json
from fedassay.secagg import Roster, SecAggClient, SecAggServer, Terms, messages
from fedassay.secagg.state import ClientState
from fedassay.survey_json import survey_from_bytes
from fedassay.survey_moments import SiteMoments
from fedassay.tally import Tally, TallyBuilder
from fedassay.tally_file import KeptTally
from tests.secagg import Federation, members_of
from tests.steps import first_local, first_shared, second_local, second_shared
from tests.surveys import flat_survey, local_survey, site_survey, small_survey

HEADER_BYTES = 40
MACHINE_SHARE = 20
HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**31, 2**63, 10**40, 10**400, -(10**400), 1e308, 0.5,
    "", "x", "1/0", "1/3", "oue", "z" * 2000,
    [], {}, [0], ["1"], [[]], {"kind": "x"}, [0.0, 0.5, 1.0], [2, 2],
    [[0], [0]], [[[0, 2], [0]]], [[1] * 6, [-1] * 6], {"kind": "first"}, "ab" * 32,
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A decoder, and valid messages for it."""

    name: str
    decode: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    mutate: Callable[[random.Random, bytes], bytes]
    share: int = 1
    """It gets one message in so many, where each takes long."""


def mutated(source: random.Random, seed: bytes) -> bytes:
    """A valid message with something wrong; mostly with its header left alone."""
    kind = source.randrange(7)
    if kind == 0:
        return source.randbytes(source.randrange(2 * len(seed) + 2))
    first = 0 if kind == 1 else min(HEADER_BYTES, max(len(seed) - 1, 0))
    data = bytearray(seed)
    if kind in (1, 2):
        for _ in range(source.choice((1, 1, 2, 8))):
            data[source.randrange(first, len(data))] ^= 1 << source.randrange(8)
    elif kind == 3:
        del data[source.randrange(first, len(data)) :]
    elif kind == 4:
        data += source.randbytes(source.choice((1, 4, 32, 80, 200)))
    elif kind == 5:
        place = source.randrange(first, len(data))
        data[place : place + 4] = source.choice(
            (bytes(4), b"\xff" * 4, b"\x00\x00\x00\x40", b"\x01\x00\x00\x00", b"\xff\xff\x00\x00")
        )
    else:
        place = source.randrange(first, len(data))
        size = source.choice((1, 32, 80))
        data[place:place] = data[place : place + size]
    return bytes(data)


def mutated_report(source: random.Random, seed: bytes) -> bytes:
    """As `mutated`, half of the time with a checksum that fits."""
    data = mutated(source, seed)
    if source.random() < 0.5 or len(data) < 4:
        return data
    return data[:-4] + zlib.crc32(data[:-4]).to_bytes(4, "little")


def mutated_tally(source: random.Random, seed: bytes) -> bytes:
    """A tally file with header, counters or ids wrong, mostly with a checksum that fits."""
    size = 12 + int.from_bytes(seed[8:12], "little")
    header, body = seed[12:size], seed[size:-32]
    if source.random() < 0.4:
        header = mutated_json(source, header)
    else:
        body = mutated(source, body)
    start = seed[:8] + len(header).to_bytes(4, "little")
    data = start + header + body
    data = mutated(source, data) if source.random() < 0.2 else data
    fitting = hashlib.sha256(data).digest()
    return data + (fitting if source.random() < 0.8 else source.randbytes(32))


def mutated_json(source: random.Random, seed: bytes) -> bytes:
    """A JSON document with one value replaced, dropped or added, or with bytes wrong."""
    if source.random() < 0.2:
        return mutated(source, seed)
    content = json.loads(seed)
    where: Any = content
    while True:
        keys = list(where) if isinstance(where, dict) else range(len(where))
        if not keys:
            break
        key = source.choice(list(keys))
        if isinstance(where[key], dict | list) and where[key] and source.random() < 0.7:
            where = where[key]
            continue
        if isinstance(where, dict) and source.random() < 0.2:
            del where[key]
        else:
            where[key] = source.choice(HOSTILE)
        break
    return json.dumps(content).encode()


def parsed(read: Callable[[object], object]) -> Callable[[bytes], object]:
    """A reader of JSON objects, for bytes."""

    def decode(data: bytes) -> object:
        return read(parse_json(data, "fuzzed"))

    return decode


def targets() -> list[Target]:
    """Everything that reads what others wrote."""
    return [*_decoders(), *_documents(), *_machines()]


def _decoders() -> list[Target]:
    found = []
    for is_pinned in (False, True):
        federation = Federation.of(4, is_pinned=is_pinned)
        requests = federation.requests()
        terms, said = federation.terms, federation.said
        roster_members = 4 if is_pinned else 0
        degree = federation.server.cohort.graph.degree
        reveal = federation.clients["0"].unmask(requests["0"])
        survivors = messages.encode_survivors(terms, np.ones(4, dtype=np.bool_))
        pairs: list[tuple[str, Callable[..., object], tuple[int, ...], bytes]] = [
            ("keys", messages.decode_keys, (), federation.clients["0"].keys()),
            ("roster", messages.decode_roster, (roster_members,), said["roster"]["0"]),
            ("shares", messages.decode_shares, (degree,), said["shares"]["0"]),
            ("inbox", messages.decode_inbox, (degree,), said["inbox"]["0"]),
            ("masked", messages.decode_masked, (), said["masked"]["0"]),
            ("survivors", messages.decode_survivors, (4,), survivors),
            ("confirm", messages.decode_confirm, (), messages.encode_confirm(terms, bytes(64))),
            ("unmask", messages.decode_unmask, (4,), requests["0"]),
            ("reveal", messages.decode_reveal, (degree,), reveal),
        ]  # fmt: skip
        who = "pinned" if is_pinned else "named"
        for name, decode, sizes, seed in pairs:
            found.append(
                Target(
                    f"{name}, {who}",
                    lambda data, d=decode, t=terms, s=sizes: d(data, t, *s),  # type: ignore[misc]  # bound when made
                    (seed,),
                    mutated,
                )
            )
    return found


def _documents() -> list[Target]:
    federation = Federation.of(3)
    terms = federation.terms
    states = [federation.clients["0"].to_bytes()]
    federation.masked()
    states.append(federation.clients["0"].to_bytes())
    roster, _ = members_of(3, is_pinned=True)
    assert roster is not None
    tree, local = small_survey(16), local_survey(cells=4, fanouts=(2, 2), kinds="grr oue")
    report = Report(tree.fingerprint, bytes(16), np.arange(tree.hierarchy.width, dtype=np.int64))
    counted = Tally.of(tree, [report, Report(tree.fingerprint, b"b" * 16, report.counters)])
    tallies = tuple(KeptTally(tree, tally).to_bytes() for tally in (counted, Tally.zero(tree)))
    fitted = Calibrator(
        Method.SIGMOID, np.array([0.0, 0.5, 1.0]), np.array([0.1, 0.4, 0.8]),
        parameters={"slope": 1.5, "intercept": -0.25},
    )  # fmt: skip
    calibrator = json.dumps(fitted.to_json()).encode()
    first, also = first_shared(), first_local()
    stepped = (first, second_shared(first), also, second_local(also))
    sites = site_survey()
    seen = TallyBuilder(Tally.zero(sites), sites)
    for number, name in enumerate(("north", "south")):
        own = np.arange(sites.hierarchy.width, dtype=np.int64) - number
        seen.add(Report(sites.fingerprint, bytes([number]) * 16, own), name=name)
    tallies += (KeptTally(sites, seen.tally()).to_bytes(),)
    patients = replace(local, unit=Unit(UnitKind.PATIENT, 3))
    exact = flat_survey(Grid.nested(8))
    merged = replace(exact, smallest_cell=10, minimum_reports=9)
    moments = replace(merged, moments=SiteMoments(("roc_auc", "oe_ratio"), 16))
    asked = (tree, local, sites, patients, merged, moments, *stepped)
    surveys = tuple(json.dumps(each.to_json()).encode() for each in asked)
    return [
        Target("terms", Terms.from_bytes, (terms.to_bytes(),), mutated),
        Target("client state", ClientState.from_bytes, tuple(states), mutated_json),
        Target("survey", survey_from_bytes, surveys, mutated_json),
        Target("calibrator", parsed(Calibrator.from_json), (calibrator,), mutated_json),
        Target(
            "pinned roster", parsed(Roster.from_json), (json.dumps(roster.to_json()).encode(),),
            mutated_json,
        ),
        Target("tally file", KeptTally.from_bytes, tallies, mutated_tally),
        Target(
            "report", lambda data: wire.decode(data, tree), (wire.encode(report),), mutated_report
        ),
    ]  # fmt: skip


def _machines() -> list[Target]:
    found = []
    for is_pinned in (False, True):
        steps: list[tuple[str, str, Callable[[Federation], dict[str, bytes]]]] = [
            ("", "receive_keys", _announced),
            ("shares", "receive_shares", Federation.keys),
            ("masked", "receive_masked", Federation.shares),
            ("unmask", "receive_unmask", Federation.requests),
        ]
        if is_pinned:
            steps.append(("confirm", "receive_confirm", Federation.survivors))
        for stage, receive, error_quantile in steps:
            federation = Federation.of(4, is_pinned=is_pinned)
            seed = error_quantile(federation)["0"]
            who, vector = "pinned" if is_pinned else "named", federation.vectors["0"]
            extra = (vector,) if stage == "masked" else ()
            reply = seed
            if stage:
                client = federation.clients["0"]
                found.append(_machine(f"client.{stage}, {who}", client, stage, seed, extra))
                reply = getattr(copy.copy(client), stage)(seed, *extra)
            name = f"server.{receive}, {who}"
            found.append(_machine(name, federation.server, receive, reply, ()))
    return found


def _announced(federation: Federation) -> dict[str, bytes]:
    return {name: client.keys() for name, client in federation.clients.items()}


def _machine(
    name: str,
    machine: SecAggClient | SecAggServer,
    method: str,
    seed: bytes,
    extra: tuple[object, ...],
) -> Target:
    """A stage of a client or a server, each time as it stood before."""

    is_client = isinstance(machine, SecAggClient)

    def act(data: bytes) -> None:
        attempt = copy.copy(machine) if is_client else copy.deepcopy(machine)
        before = _state(attempt)
        try:
            if is_client:
                getattr(attempt, method)(data, *extra)
            else:
                getattr(attempt, method)("0", data)
        except FedassayError:
            if _state(attempt) != before:
                raise AssertionError(f"{name} refused and yet changed") from None
            raise

    return Target(name, act, (seed,), mutated, MACHINE_SHARE)


def _state(machine: SecAggClient | SecAggServer) -> object:
    if isinstance(machine, SecAggClient):
        return machine.to_bytes()
    return {
        name: value.tobytes() if isinstance(value, np.ndarray) else repr(value)
        for name, value in vars(machine).items()
        if name != "_cohort"
    }


def fuzz(target: Target, count: int, *, seed: int) -> int:
    """Feed a target; returns how many messages it accepted, and raises on a wrong error."""
    source = random.Random(seed)  # noqa: S311  # repeatable
    accepted = 0
    for _ in range(max(count // target.share, 1)):
        data = target.mutate(source, source.choice(target.seeds))
        try:
            target.decode(data)
            accepted += 1
        except FedassayError:
            pass
        except Exception as error:
            raise AssertionError(f"{target.name}: {error!r} on {data.hex()}") from error
    return accepted


def main() -> None:
    """Fuzz everything and print a line for each decoder."""
    count, *wanted = int(sys.argv[1]), *sys.argv[2:]
    for target in targets():
        if wanted and not any(name in target.name for name in wanted):
            continue
        start = time.perf_counter()
        accepted = fuzz(target, count, seed=int(time.time()))
        seconds = time.perf_counter() - start
        done = max(count // target.share, 1)
        line = f"{target.name:28} {done:>9,} messages {accepted:>9,} accepted {seconds:8.1f} s"
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
