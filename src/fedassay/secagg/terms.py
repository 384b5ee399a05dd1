"""The terms of one round: what every derivation, seal and signature of it is bound to."""

import hashlib
import struct
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from fedassay.client import ClientPolicy
from fedassay.errors import (
    CountOverflow,
    MessageMalformed,
    RoundMismatch,
    SettingInvalid,
    TermsRefused,
)
from fedassay.examples import IntArray
from fedassay.level_policy import OneLevel
from fedassay.randomness import Randomness
from fedassay.secagg.graph import PRIVACY_BITS, Graph, log2_binomial_below
from fedassay.secagg.masks import WordArray
from fedassay.survey import Survey

ROUND_ID_BYTES = 16
MAX_COHORT = 2**16
MAX_LENGTH = 2**24
LEAST_CORRUPT_PERMILLE = 50
"""Corrupt clients in a thousand that every round withstands; a client accepts no fewer."""
WORD_LIMIT = 2**31
"""Sums are read as signed 32-bit words, so that they must stay below this in size."""
_TERMS = struct.Struct("<4sBB32s16sIIIHH32s")
_MAGIC = b"FAST"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Terms:
    """One attempt at one survey's sum.

    All clients of a round hold the same terms, because the digest enters everything they
    derive: a server that tells two clients different ones learns nothing from either.
    """

    fingerprint: bytes
    """Of the survey."""
    round_id: bytes
    """Random, fresh for every attempt."""
    length: int
    """Words to be summed."""
    minimum: int
    """The fewest survivors whose sum is unmasked."""
    colluders: int
    """Corrupt clients that are withstood, at least."""
    corrupt_permille: int = LEAST_CORRUPT_PERMILLE
    """Corrupt clients that are withstood, for a thousand in the cohort."""
    dropout_permille: int = 200
    """Random dropouts for a thousand that a sparse graph is sized for."""
    roster: bytes | None = None
    """Digest of the roster of pinned identities, or None when anybody may join."""
    digest: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.fingerprint) != 32 or len(self.round_id) != ROUND_ID_BYTES:
            raise SettingInvalid("terms need a fingerprint of 32 bytes and a round id of 16.")
        if self.roster is not None and (len(self.roster) != 32 or not any(self.roster)):
            raise SettingInvalid("a roster's digest has 32 bytes, not all zero.")
        if not 1 <= self.length <= MAX_LENGTH:
            raise SettingInvalid(
                f"a round sums from 1 to {MAX_LENGTH} words; found {self.length}. "
                "Start a survey with fewer cells."
            )
        if not self.colluders + 2 <= self.minimum <= MAX_COHORT:
            raise SettingInvalid(
                f"the fewest survivors must be from {self.colluders + 2}, two honest ones beside "
                f"the colluders, to {MAX_COHORT}; found {self.minimum}. "
                "Change minimum_reports or colluders."
            )
        if not (0 <= self.corrupt_permille <= 333 and 0 <= self.dropout_permille <= 500):
            raise SettingInvalid(
                "at most 333 clients in a thousand may be corrupt and 500 drop out; found "
                f"{self.corrupt_permille} and {self.dropout_permille}."
            )
        digest = hashlib.sha256(b"fedassay secagg terms" + self.to_bytes()).digest()
        object.__setattr__(self, "digest", digest)

    @classmethod
    def of(
        cls,
        survey: Survey,
        *,
        randomness: Randomness,
        roster: bytes | None = None,
        corrupt_permille: int = LEAST_CORRUPT_PERMILLE,
        dropout_permille: int = 200,
    ) -> "Terms":
        """Fresh terms for an attempt at a survey."""
        return cls(
            fingerprint=survey.fingerprint,
            round_id=randomness.bytes(ROUND_ID_BYTES),
            length=words(survey),
            minimum=required_survivors(survey),
            colluders=survey.colluders,
            corrupt_permille=corrupt_permille,
            dropout_permille=dropout_permille,
            roster=roster,
        )

    def check(self, survey: Survey, policy: ClientPolicy) -> None:
        """Raise unless these terms keep the survey's promises, and the client's own."""
        policy.check(survey)
        if self.fingerprint != survey.fingerprint:
            raise RoundMismatch(
                f"this client answers survey {survey.fingerprint.hex()[:12]}; the round is for "
                f"{self.fingerprint.hex()[:12]}. Send the survey that the round is for."
            )
        if self.length != words(survey):
            raise TermsRefused(
                f"the survey has {words(survey)} words to sum; the round asks for {self.length}. "
                "Make the terms from the survey."
            )
        needed = required_survivors(survey)
        if self.minimum < needed or self.colluders < survey.colluders:
            raise TermsRefused(
                f"the survey needs {needed} survivors and withstands {survey.colluders} "
                f"colluders; the round offers {self.minimum} and {self.colluders}. "
                "Make the terms from the survey."
            )
        if self.corrupt_permille < LEAST_CORRUPT_PERMILLE:
            raise TermsRefused(
                f"a round withstands {LEAST_CORRUPT_PERMILLE} corrupt clients in a thousand or "
                f"more; this one only {self.corrupt_permille}. Raise corrupt_permille."
            )
        if self.minimum - self.colluders < policy.smallest_cohort:
            raise TermsRefused(
                f"this client hides only among {policy.smallest_cohort} honest ones; the round "
                f"guarantees {self.minimum - self.colluders}. Raise minimum_reports."
            )

    def graph(self, clients: int) -> Graph:
        """The graph of a cohort of this size: both sides compute it, nobody sends it."""
        corrupt = max(self.colluders, clients * self.corrupt_permille // 1000)
        return Graph.of(clients, corrupt, clients * self.dropout_permille // 1000)

    def to_bytes(self) -> bytes:
        """What the server sends first, and what the digest is made of."""
        return _TERMS.pack(
            _MAGIC, _VERSION, self.roster is not None, self.fingerprint, self.round_id,
            self.length, self.minimum, self.colluders, self.corrupt_permille,
            self.dropout_permille, self.roster or bytes(32),
        )  # fmt: skip

    @classmethod
    def from_bytes(cls, data: bytes) -> "Terms":
        """Read untrusted bytes."""
        if len(data) != _TERMS.size:
            raise MessageMalformed(f"terms have {_TERMS.size} bytes; found {len(data)}.")
        magic, version, pinned, *values, roster = _TERMS.unpack(data)
        if magic != _MAGIC or version != _VERSION or pinned > 1 or (not pinned and any(roster)):
            raise MessageMalformed(
                "these bytes are not terms of this version. Use the same fedassay on both sides."
            )
        try:
            return cls(
                fingerprint=values[0],
                round_id=values[1],
                length=values[2],
                minimum=values[3],
                colluders=values[4],
                corrupt_permille=values[5],
                dropout_permille=values[6],
                roster=roster if pinned else None,
            )
        except SettingInvalid as error:
            raise MessageMalformed(f"terms that cannot be: {error}") from error


def words(survey: Survey) -> int:
    """Words of a survey's vector: reports on each level, all counters, and sites' moments."""
    return survey.hierarchy.levels + survey.hierarchy.width + survey.moment_words


def required_survivors(survey: Survey) -> int:
    """The fewest survivors with which the survey's promise holds on every level.

    Clients that report on one level each draw it in secret, so that enough of them must be
    left for every level to have its `minimum_reports`, except with probability
    2^-`PRIVACY_BITS` for each level.
    """
    least = max(survey.minimum_reports, survey.colluders + 2)
    if not isinstance(survey.level_policy, OneLevel):
        return least
    if survey.level_policy.by_hash:
        raise TermsRefused(
            "under secure aggregation a client's level is its secret, or a server could choose "
            "who is left on a level; this survey takes it from a public hash. "
            "Start one without it."
        )
    return max(_enough(share, least) for share in survey.level_policy.client_fractions)


def _enough(share: Fraction, least: int) -> int:
    """The fewest clients of whom surely `least` draw a level of this share."""
    low, high = least, max(2 * least, 64)
    # Beyond, the tails themselves would take more memory than anybody has.
    while least > MAX_COHORT or log2_binomial_below(high, float(share), least) > -PRIVACY_BITS:
        low, high = high, 2 * high
        if high > MAX_COHORT:
            raise TermsRefused(
                f"for {least} reports on a level that one client in {float(1 / share):.0f} draws, "
                f"more than {MAX_COHORT} clients are needed. Lower minimum_reports, or use fewer "
                "levels."
            )
    while low < high:
        middle = (low + high) // 2
        if log2_binomial_below(middle, float(share), least) > -PRIVACY_BITS:
            low = middle + 1
        else:
            high = middle
    return low


def largest_count(clients: int) -> int:
    """The largest counter, noise included, that each of so many clients may add.

    clients x largest_count(clients) < 2^31, so that a sum of honest words never wraps
    round. Noise does not break it: one share of Polya noise exceeds m with probability at
    most 2 exp(-m epsilon / sensitivity), and a client whose counter is too large does not
    answer.
    """
    return (WORD_LIMIT - 1) // clients


def as_words(vector: IntArray, clients: int) -> WordArray:
    """A signed vector modulo 2^32, or `CountOverflow` when a sum could wrap round."""
    if vector.dtype.kind not in "iu":
        raise SettingInvalid(f"words to sum are integers; found {vector.dtype}.")
    limit = largest_count(clients)
    if len(vector) and not -limit <= int(vector.min()) <= int(vector.max()) <= limit:
        raise CountOverflow(
            f"with {clients} clients each counter must stay within {limit}, "
            "because sums are modulo 2^32; this client has a larger one (value withheld). "
            "Tally fewer clients at a time, or split the table."
        )
    return vector.astype(np.int64).astype("<u4")
