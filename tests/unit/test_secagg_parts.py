"""The parts of secure aggregation, against brute force, scipy and planted bugs."""

import json
import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedassay.client import OPEN_POLICY
from fedassay.errors import (
    CohortTooSmall,
    FileInvalid,
    KeyInvalid,
    MessageMalformed,
    SettingInvalid,
    SignatureInvalid,
    StateStale,
)
from fedassay.randomness import SimulatedRandomness
from fedassay.secagg import Identity, Named, Roster, RoundStore, SecAggClient, Terms, merkle
from fedassay.secagg.graph import Graph, Ring, log2_binomial_below, log2_tail
from fedassay.secagg.identity import check_signature
from fedassay.secagg.keys import agree
from fedassay.secagg.masks import Masker
from fedassay.secagg.shamir import combine, draw_element, split
from fedassay.secagg.state import Stage
from tests.secagg import RANDOM, Federation, flat

PRIME = 2**256 - 189


class Scripted:
    """Randomness that a test dictates."""

    is_secret = False

    def __init__(self, values: list[int]) -> None:
        self._values = values

    def bytes(self, count: int) -> bytes:
        return self._values.pop(0).to_bytes(count, "little")


@given(
    st.lists(st.integers(0, PRIME - 1), min_size=1, max_size=8),
    st.integers(0, 6),
)
def test_shares_are_values_of_the_polynomial(coefficients: list[int], more: int) -> None:
    threshold = len(coefficients)
    secret, rest = coefficients[-1], coefficients[:-1]
    shares = split(secret, threshold + more, threshold, randomness=Scripted(list(rest)))
    degree = threshold - 1
    by_hand = [
        sum(c * x ** (degree - i) for i, c in enumerate(coefficients)) % PRIME
        for x in range(1, threshold + more + 1)
    ]
    assert shares == by_hand


def test_any_threshold_of_shares_give_the_secret_and_fewer_do_not() -> None:
    secret = draw_element(RANDOM)
    shares = split(secret, 7, 4, randomness=RANDOM)
    for slots in combinations(range(7), 4):
        assert combine(slots, [shares[slot] for slot in slots]) == secret
    for fewer in combinations(range(7), 3):
        assert combine(fewer, [shares[slot] for slot in fewer]) != secret


@given(st.sets(st.integers(0, 40), min_size=1))
def test_a_share_weighs_as_much_as_lagrange_gives_it(holders: set[int]) -> None:
    """The product over all other points, which may be any subset."""
    slots = sorted(holders)
    for slot in slots:
        weight = combine(slots, [int(other == slot) for other in slots])
        product = 1
        for other in holders - {slot}:
            product = product * (other + 1) * pow(other - slot, -1, PRIME) % PRIME
        assert weight == product


def test_fewer_shares_fit_every_secret_equally() -> None:
    # With two of three shares given, each candidate for the secret has exactly one polynomial.
    shares = split(123, 3, 3, randomness=RANDOM)
    for candidate in (0, 1, 123, PRIME - 1):
        points = {0: candidate, 1: shares[0], 2: shares[1]}
        third = sum(y * weight(x, [0, 1, 2], at=3) for x, y in points.items()) % PRIME
        assert combine((0, 1, 2), [shares[0], shares[1], third]) == candidate


def weight(x: int, points: list[int], *, at: int) -> int:
    found = 1
    for other in points:
        if other != x:
            found = found * (at - other) * pow(x - other, -1, PRIME) % PRIME
    return found


def test_field_elements_are_drawn_below_the_prime() -> None:
    assert draw_element(Scripted([2**256 - 1, PRIME, PRIME - 1])) == PRIME - 1


@settings(max_examples=200)
@given(st.integers(1, 40), st.data())
def test_a_proof_gives_the_root_of_all_leaves(count: int, data: st.DataObject) -> None:
    leaves = [bytes([i]) * 5 for i in range(count)]
    ranks = data.draw(st.sets(st.integers(0, count - 1), min_size=1))
    levels = merkle.tree(leaves)
    proof = merkle.prove(levels, sorted(ranks))
    known = {rank: leaves[rank] for rank in ranks}
    assert merkle.root_from(known, count, proof) == levels[-1][0]
    victim = data.draw(st.sampled_from(sorted(ranks)))
    assert merkle.root_from({**known, victim: b"other"}, count, proof) != levels[-1][0]
    with pytest.raises(MessageMalformed):
        merkle.root_from(known, count, [*proof, bytes(32)])
    if proof:
        with pytest.raises(MessageMalformed):
            merkle.root_from(known, count, proof[:-1])


def test_a_leaf_and_a_node_never_have_one_hash() -> None:
    # Else four leaves and the two nodes above them, taken for leaves, would have one root.
    below, above, _ = merkle.tree([b"a", b"b", b"c", b"d"])
    assert (
        merkle.tree([b"".join(below[:2]), b"".join(below[2:])])[-1]
        != merkle.tree([b"a", b"b", b"c", b"d"])[-1]
    )
    assert merkle.leaf_hash(b"".join(below[:2])) != above[0]


@given(st.integers(1, 400), st.data())
def test_tails_are_those_of_scipy(population: int, data: st.DataObject) -> None:
    marked, draws = (data.draw(st.integers(0, population)) for _ in range(2))
    at_least = data.draw(st.integers(0, population))
    expected = stats.hypergeom(population, marked, draws).logsf(at_least - 1) / np.log(2)
    found = log2_tail(population, marked, draws, at_least)
    # scipy loses digits where the probability is all but 1.
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9) or max(found, expected) < -900


@given(st.integers(1, 2000), st.floats(0.01, 0.99), st.integers(1, 500))
def test_binomial_tails_are_those_of_scipy(draws: int, share: float, least: int) -> None:
    expected = stats.binom(draws, share).logcdf(least - 1) / np.log(2)
    found = log2_binomial_below(draws, share, least)
    # scipy's probabilities end at 2^-1074.
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9) or max(found, expected) < -900


@pytest.mark.parametrize("clients", [257, 300, 1000, 10_000])
@pytest.mark.parametrize(("corrupt_share", "dropped_share"), [(20, 5), (20, 10), (10, 5), (50, 4)])
def test_sparse_graphs_keep_their_promises_and_smaller_ones_do_not(
    clients: int, corrupt_share: int, dropped_share: int
) -> None:
    corrupt, dropped = clients // corrupt_share, clients // dropped_share
    graph = Graph.of(clients, corrupt, dropped)
    assert not graph.is_complete
    thresholds, windows = admissible(clients, graph.degree, corrupt, dropped)
    assert graph.threshold == min(thresholds)
    assert graph.window_corrupt == min(windows)
    thresholds, windows = admissible(clients, graph.degree - 2, corrupt, dropped)
    assert not thresholds or not windows


def admissible(
    clients: int, degree: int, corrupt: int, dropped: int
) -> tuple[list[int], list[int]]:
    """Thresholds and corrupt per window that keep the promises, by scipy's tails."""
    # One round in 2^40 for a server that tries 2^40 cohorts; one abort in 2^20 by chance.
    private = np.log(2.0) * -(40 + 40) - np.log(2 * clients)
    available = np.log(2.0) * -20 - np.log(2 * clients)
    threshold, window = np.arange(1, degree + 1), degree // 2
    # Two views need 2 threshold <= degree + corrupt neighbours.
    two_views = stats.hypergeom(clients - 1, corrupt, degree).logsf(2 * threshold - degree - 1)
    short = stats.hypergeom(clients - 1, dropped, degree).logsf(degree - threshold)
    most = np.arange(window)
    cut = stats.hypergeom(clients, corrupt, window).logsf(most)
    gone = stats.hypergeom(clients, dropped, window).logsf(window - most - 1)
    return (
        threshold[(two_views <= private) & (short <= available)].tolist(),
        most[(cut <= private) & (gone <= available)].tolist(),
    )


@given(st.integers(2, 256), st.data())
def test_no_two_survivor_sets_fit_into_a_complete_cohort(clients: int, data: st.DataObject) -> None:
    corrupt = data.draw(st.integers(0, clients - 2))
    graph = Graph.of(clients, corrupt, 0)
    assert graph.is_complete
    others = clients - 1
    # Of a victim's neighbours the corrupt give both kinds of share, honest ones either.
    honest = others - min(corrupt, others)
    assert all(
        min(corrupt + first, corrupt + honest - first) < graph.threshold
        for first in range(honest + 1)
    )
    assert 2 * graph.quorum > clients + corrupt
    assert graph.threshold == (others + corrupt) // 2 + 1


def test_two_honest_clients_are_the_least() -> None:
    with pytest.raises(CohortTooSmall, match="at least two clients must be honest"):
        Graph.of(3, 2, 0)


@pytest.mark.parametrize(("clients", "degree"), [(7, 6), (8, 7), (300, 92), (301, 4)])
def test_neighbours_are_mutual_distinct_and_as_many_as_the_degree(
    clients: int, degree: int
) -> None:
    ring = Ring.of(clients, b"seed")
    near = [ring.neighbours(rank, degree) for rank in range(clients)]
    for rank, peers in enumerate(near):
        assert len(set(peers)) == len(peers) == degree
        assert rank not in peers
        assert all(rank in near[peer] for peer in peers)


def test_the_ring_is_a_uniform_order() -> None:
    # Chi-square over 4! orders; false alarm 1e-6.
    orders = [tuple(Ring.of(4, i.to_bytes(4, "big")).order.tolist()) for i in range(4800)]
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-6


def test_the_cohort_holds_together_unless_a_whole_window_is_gone() -> None:
    graph, ring = Graph.of(300, 0, 60), Ring.of(300, b"seed")
    window = graph.degree // 2
    everyone = np.ones(300, dtype=np.bool_)
    assert graph.holds_together(ring, everyone)
    for start in (0, 100, 299):
        places = (start + np.arange(window)) % 300
        cut = everyone.copy()
        cut[ring.order[places]] = False
        assert not graph.holds_together(ring, cut)
        cut[ring.order[places[window // 2]]] = True
        assert graph.holds_together(ring, cut)


def test_masks_cancel() -> None:
    masker, total = Masker(1000), np.arange(1000, dtype=np.uint32)
    for key in (bytes(32), bytes(range(32))):
        masker.add(total, key)
    assert np.count_nonzero(total != np.arange(1000)) > 990
    for key in (bytes(range(32)), bytes(32)):
        masker.subtract(total, key)
    assert total.tolist() == list(range(1000))


def test_masked_vectors_are_uniform_and_independent_of_each_other() -> None:
    # Chi-square over bytes of masked vectors, and of their difference: false alarm 1e-6 each.
    federation = Federation.of(3, survey=flat(2000))
    inbox = federation.shares()["0"]
    copies = [
        SecAggClient.from_bytes(
            federation.clients["0"].to_bytes(), Named("0"), randomness=RANDOM
        ).masked(inbox, federation.vectors[name])
        for name in "12"
    ]
    peer = federation.clients["1"].masked(federation.said["inbox"]["1"], federation.vectors["1"])
    first, second, other = (np.frombuffer(m[40:], "<u4") for m in (*copies, peer))
    for words in (first, second, other, first - other):
        assert uniform(words)
    # Planted: masks that serve twice.
    assert not uniform(first - second)


def uniform(words: np.typing.NDArray[np.uint32]) -> bool:
    counts = np.bincount(np.frombuffer(words.tobytes(), np.uint8), minlength=256)
    return bool(stats.chisquare(counts).pvalue > 1e-6)


LOW_ORDER = [
    0,
    1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
    2**255 - 20,
    2**255 - 19,
    2**255 - 18,
]


@pytest.mark.parametrize("point", LOW_ORDER)
def test_points_of_low_order_are_refused(point: int) -> None:
    with pytest.raises(KeyInvalid, match="low order"):
        agree(X25519PrivateKey.generate(), point.to_bytes(32, "little"))


def test_identities_and_rosters_survive_their_files(tmp_path: Path) -> None:
    identity = Identity.generate()
    path = tmp_path / "site.pem"
    identity.save(path)
    assert path.stat().st_mode & 0o077 == 0
    assert Identity.load(path).public == identity.public
    check_signature(identity.public, identity.sign(b"text"), b"text")
    with pytest.raises(SignatureInvalid):
        check_signature(identity.public, identity.sign(b"text"), b"other")
    with pytest.raises(FileInvalid, match="Choose a new file"):
        identity.save(path)
    path.with_suffix(".bad").write_text("no key")
    with pytest.raises(FileInvalid, match="not an Ed25519 key"):
        Identity.load(path.with_suffix(".bad"))
    with pytest.raises(FileInvalid, match="cannot be read"):
        Identity.load(tmp_path / "absent.pem")
    roster = Roster.of([("a", identity.public), ("b", Identity.generate().public)])
    roster.save(tmp_path / "roster.json")
    assert Roster.load(tmp_path / "roster.json") == roster
    assert Roster.load(tmp_path / "roster.json").digest == roster.digest
    with pytest.raises(SettingInvalid, match="one is twice"):
        Roster.of([("a", identity.public), ("b", identity.public)])
    with pytest.raises(KeyInvalid, match="not in the roster"):
        roster.index(bytes(32))


def started(federation: Federation, store: RoundStore) -> bytes:
    store.begin(federation.clients["0"])
    return federation.terms.round_id


def test_a_round_goes_on_after_every_restart(tmp_path: Path) -> None:
    store, federation = RoundStore(tmp_path / "rounds"), Federation.of(4)
    round_id = started(federation, store)
    for name, client in federation.clients.items():
        federation.server.receive_keys(name, client.keys())
    for name, message in federation.server.roster_messages():
        if name == "0":
            with store.turn(round_id, Named("0"), randomness=RANDOM) as stored:
                reply = stored.shares(message)
        else:
            reply = federation.clients[name].shares(message)
        federation.server.receive_shares(name, reply)
    for name, message in federation.server.inboxes():
        if name == "0":
            with store.turn(round_id, Named("0"), randomness=RANDOM) as stored:
                reply = stored.masked(message, federation.vectors["0"])
            with store.turn(round_id, Named("0"), randomness=RANDOM) as stored:
                assert stored.masked(message, federation.vectors["1"]) == reply
        else:
            reply = federation.clients[name].masked(message, federation.vectors[name])
        federation.server.receive_masked(name, reply)
    for name, message in federation.server.unmask_requests():
        if name == "0":
            with store.turn(round_id, Named("0"), randomness=RANDOM) as stored:
                reply = stored.unmask(message)
        else:
            reply = federation.clients[name].unmask(message)
        federation.server.receive_unmask(name, reply)
    assert federation.server.outcome().total.tolist() == federation.total()
    with store.turn(round_id, Named("0"), randomness=RANDOM) as stored:
        assert stored.stage is Stage.UNMASKED
        assert '"secrets":null' in stored.to_bytes().decode()
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.rglob("*.state"))


def test_an_older_copy_of_a_round_is_refused(tmp_path: Path) -> None:
    store, federation = RoundStore(tmp_path), Federation.of(4)
    round_id = started(federation, store)
    (old,) = tmp_path.glob("*.state")
    kept = old.read_bytes()
    message = federation.keys()["0"]
    with store.turn(round_id, Named("0"), randomness=RANDOM) as stored:
        stored.shares(message)
    (newest,) = tmp_path.glob("*.state")
    newest.write_bytes(kept)
    with (
        pytest.raises(StateStale, match="not the state that was stored last"),
        store.turn(round_id, Named("0"), randomness=RANDOM),
    ):
        pass
    newest.rename(old)
    with (
        pytest.raises(StateStale, match="an older one will not do"),
        store.turn(round_id, Named("0"), randomness=RANDOM),
    ):
        pass


def test_a_crash_before_the_marker_leaves_the_round_where_it_was(tmp_path: Path) -> None:
    store, federation = RoundStore(tmp_path), Federation.of(4)
    round_id = started(federation, store)
    message = federation.keys()["0"]
    kept = {path: path.read_bytes() for path in tmp_path.glob("*.*")}
    with store.turn(round_id, Named("0"), randomness=RANDOM) as stored:
        lost = stored.shares(message)
    for path, content in kept.items():
        path.write_bytes(content)
    # The first answer never left, so that another may.
    with store.turn(round_id, Named("0"), randomness=RANDOM) as stored:
        assert stored.shares(message) != lost


def test_a_refused_request_stores_nothing(tmp_path: Path) -> None:
    store, federation = RoundStore(tmp_path), Federation.of(4)
    round_id = started(federation, store)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with (
        pytest.raises(MessageMalformed),
        store.turn(round_id, Named("0"), randomness=RANDOM) as stored,
    ):
        stored.shares(b"nonsense")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_that_cannot_remember_stops_the_round(tmp_path: Path) -> None:
    federation = Federation.of(3)
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(FileInvalid, match="cannot remember"):
        RoundStore(blocked).begin(federation.clients["0"])
    with (
        pytest.raises(FileInvalid, match="cannot be"),
        RoundStore(tmp_path / "nowhere").turn(bytes(16), Named("0"), randomness=RANDOM),
    ):
        pass
    shutil.rmtree(tmp_path)


def test_a_state_belongs_to_its_identity_and_needs_secret_randomness() -> None:
    client = Federation.of(3).clients["0"]
    with pytest.raises(StateStale, match="the identity that began it"):
        SecAggClient.from_bytes(client.to_bytes(), Named("1"), randomness=RANDOM)
    with pytest.raises(SettingInvalid, match="SystemRandomness"):
        SecAggClient.from_bytes(client.to_bytes(), Named("0"), randomness=SimulatedRandomness(1))
    seated = Federation.of(3)
    seated.shares()
    content = json.loads(seated.clients["0"].to_bytes())
    content["seat"]["peers"] = content["seat"]["peers"][:256]
    with pytest.raises(FileInvalid, match="as many neighbours"):
        SecAggClient.from_bytes(json.dumps(content).encode(), Named("0"), randomness=RANDOM)
    with pytest.raises(FileInvalid, match="not JSON"):
        SecAggClient.from_bytes(client.to_bytes()[:-2], Named("0"), randomness=RANDOM)


def test_terms_survive_their_bytes_and_differ_in_every_field() -> None:
    terms = Terms.of(flat(), randomness=RANDOM)
    assert Terms.from_bytes(terms.to_bytes()) == terms
    data = terms.to_bytes()
    digests = {terms.digest}
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            digests.add(Terms.from_bytes(bytes(flipped)).digest)
        except MessageMalformed:
            digests.add(bytes([bit % 256, bit // 256]))
    assert len(digests) == 8 * len(data) + 1


def test_every_attempt_has_fresh_keys() -> None:
    survey = flat()
    terms = Terms.of(survey, randomness=RANDOM)
    keys = {
        SecAggClient.start(terms, survey, Named("0"), policy=OPEN_POLICY, randomness=RANDOM).keys()
        for _ in range(3)
    }
    assert len(keys) == 3
