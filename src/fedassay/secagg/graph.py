"""Who masks with whom: how many neighbours, which ones, and how many must come back.

Up to `COMPLETE_UP_TO` clients everybody is everybody's neighbour. Beyond, clients stand on a
ring in an order that a hash of the whole cohort decides, and each masks with the `degree`
nearest (Bell et al. 2020). With n clients, of whom c are corrupt and collude with the server,
and d random ones drop out, the degree k and the threshold t are the smallest for which

- no client has more than c_k corrupt neighbours, and 2 t > k + c_k. Corrupt neighbours alone
  then hold too few shares; and two survivor sets cannot both be unmasked, because each needs t
  shares, corrupt neighbours give theirs for both and honest ones for one: 2 t <= k + c_k;
- no window of k/2 places has more than c_w corrupt clients: while more than c_w of every window
  confirm the survivors, honest ones are chained together and only the sum over all of them
  can be unmasked, however a server chose who drops out; clients check that
  (`Graph.holds_together`);
- both of these except with probability 2^-`PRIVACY_BITS`, even for a server that tries
  2^`GRINDING_BITS` cohorts until the hash suits it;
- t neighbours of everyone and enough of every window are left when d random clients drop
  out, except with probability 2^-`AVAILABILITY_BITS`; otherwise the round is aborted.

All are exact hypergeometric tails with a union bound over clients. `quorum` is the same
inequality over the whole cohort: more than (n + c) / 2 must confirm one survivor set.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from fedassay.errors import CohortTooSmall, TermsRefused
from fedassay.examples import FloatArray, IntArray

COMPLETE_UP_TO = 256
"""A choice of cost alone: the complete graph protects more and never by chance."""
PRIVACY_BITS = 40
GRINDING_BITS = 40
AVAILABILITY_BITS = 20
MOST_NEIGHBOURS = 1024
"""More are not looked for in a sparse graph: terms that need them are refused."""
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Graph:
    """The numbers of one cohort's graph."""

    clients: int
    degree: int
    threshold: int
    """Shares that give a secret back."""
    quorum: int
    """Clients that must confirm the survivors where identities are pinned."""
    window_corrupt: int
    """The most corrupt clients in degree / 2 neighbouring places."""

    @property
    def is_complete(self) -> bool:
        """Whether all are neighbours."""
        return self.degree == self.clients - 1

    @property
    def survivors(self) -> int:
        """The fewest that can be unmasked: a quorum, and a threshold beside each of them."""
        return max(self.quorum, self.threshold + 1)

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, clients: int, corrupt: int, dropped: int) -> "Graph":
        """The graph for a cohort, its corrupt clients and those that may drop out."""
        quorum = (clients + corrupt) // 2 + 1
        if clients < corrupt + 2:
            raise CohortTooSmall(
                f"at least two clients must be honest; found {clients} clients of whom {corrupt} "
                "may collude. Wait for more clients, or lower the survey's colluders."
            )
        sparse = None if clients <= COMPLETE_UP_TO else _sparsest(clients, corrupt, dropped)
        if sparse is None:
            degree = clients - 1
            if degree > MOST_NEIGHBOURS:
                raise TermsRefused(
                    f"each of {clients} clients would need more than {MOST_NEIGHBOURS} "
                    f"neighbours to withstand {corrupt} corrupt ones and {dropped} that drop out. "
                    "Lower either, or tally fewer clients at a time."
                )
            return cls(clients, degree, _above_half(degree, corrupt), quorum, 0)
        degree, threshold, window_corrupt = sparse
        return cls(clients, degree, threshold, quorum, window_corrupt)

    def holds_together(self, ring: "Ring", confirmed: BoolArray) -> bool:
        """Whether honest clients are surely chained together by those who confirmed."""
        if self.is_complete:
            return bool(confirmed.sum() >= self.quorum)
        on_ring = confirmed[ring.order].astype(np.int64)
        window = self.degree // 2
        sums = np.cumsum(np.concatenate([[0], on_ring, on_ring[: window - 1]]))
        return bool((sums[window:] - sums[:-window]).min() > self.window_corrupt)


@dataclass(frozen=True, slots=True, eq=False)
class Ring:
    """The order in which a cohort's clients, known by their rank, stand on the ring."""

    order: IntArray
    """The rank at each place."""
    place: IntArray
    """The place of each rank."""

    @classmethod
    def of(cls, clients: int, seed: bytes) -> "Ring":
        """The order that a seed decides."""
        key = hashlib.sha256(b"fedassay secagg ring" + seed).digest()
        stream = Cipher(ChaCha20(key, nonce=bytes(16)), mode=None).encryptor()
        order = np.argsort(np.frombuffer(stream.update(bytes(8 * clients)), "<u8"), kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(clients)
        return cls(order, place)

    def neighbours(self, rank: int, degree: int) -> list[int]:
        """The ranks of a client's neighbours, clockwise from itself."""
        clients = len(self.order)
        ahead = np.arange(1, degree - degree // 2 + 1)
        behind = np.arange(clients - degree // 2, clients)
        found: list[int] = self.order[
            (self.place[rank] + np.concatenate([ahead, behind])) % clients
        ].tolist()
        return found


def log2_tail(population: int, marked: int, draws: int, at_least: int) -> float:
    """log2 of P[X >= at_least], X marked ones among draws without replacement."""
    low, high = max(at_least, draws - (population - marked), 0), min(marked, draws)
    if low > high:
        return -np.inf
    x = np.arange(low, high + 1)
    logs = (
        _log_choose(marked, x)
        + _log_choose(population - marked, draws - x)
        - _log_choose(population, np.array(draws))
    )
    top = logs.max()
    return float((top + np.log(np.exp(logs - top).sum())) / np.log(2.0))


def log2_binomial_below(draws: int, probability: float, least: int) -> float:
    """log2 of P[X < least], X successes among independent draws."""
    if probability >= 1.0:
        return -np.inf if draws >= least else 0.0
    x = np.arange(0, min(least, draws + 1))
    logs = _log_choose(draws, x) + x * np.log(probability) + (draws - x) * np.log1p(-probability)
    top = logs.max()
    return float((top + np.log(np.exp(logs - top).sum())) / np.log(2.0))


def _above_half(degree: int, corrupt: int) -> int:
    """The smallest t with 2 t > degree + corrupt."""
    return (degree + corrupt) // 2 + 1


def _sparsest(clients: int, corrupt: int, dropped: int) -> tuple[int, int, int] | None:
    """The smallest even degree that keeps all promises, its threshold and window's corrupt."""
    largest = min(clients - 2, MOST_NEIGHBOURS) // 2 * 2
    if 2 * dropped + corrupt >= clients:
        # Too few are left on average: 2 (1 - d/n) k <= k + k c/n for every degree k.
        return None
    if not any(_kept(clients, corrupt, dropped, largest - step) for step in range(0, 8, 2)):
        # Where the largest do not suffice, smaller ones need not be tried one by one.
        return None
    tried = (
        (degree, _kept(clients, corrupt, dropped, degree)) for degree in range(2, largest + 1, 2)
    )
    return next(((degree, *kept) for degree, kept in tried if kept is not None), None)


def _kept(clients: int, corrupt: int, dropped: int, degree: int) -> tuple[int, int] | None:
    """Threshold and window's corrupt with which a degree keeps all promises, or None."""
    union = float(np.log2(clients))
    private = PRIVACY_BITS + GRINDING_BITS + union + 1.0
    available = AVAILABILITY_BITS + union + 1.0
    window = degree // 2
    near = _at_most(clients - 1, corrupt, degree, private)
    threshold = _above_half(degree, near)
    in_window = _at_most(clients, corrupt, window, private)
    if threshold > degree or in_window >= window:
        return None
    shares_missing = log2_tail(clients - 1, dropped, degree, degree - threshold + 1)
    window_missing = log2_tail(clients, dropped, window, window - in_window)
    if max(shares_missing, window_missing) > -available:
        return None
    return threshold, in_window


def _at_most(population: int, marked: int, draws: int, bits: float) -> int:
    """The smallest c with P[X > c] <= 2^-bits."""
    low, high = 0, min(marked, draws)
    while low < high:
        middle = (low + high) // 2
        if log2_tail(population, marked, draws, middle + 1) <= -bits:
            high = middle
        else:
            low = middle + 1
    return low


def _log_choose(top: int, chosen: IntArray) -> FloatArray:
    logs = _log_factorials(1 << max(top, 1).bit_length())
    found: FloatArray = logs[top] - logs[chosen] - logs[top - chosen]
    return found


@lru_cache(maxsize=32)
def _log_factorials(largest: int) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, largest + 1)))])
