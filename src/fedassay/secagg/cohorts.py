"""One survey, many cohorts: who is in which, and how many of one may be corrupt.

Every cohort runs a round of its own under the survey as it is: its minimum, its colluders and its
noise shares are those of one cohort, which every client checks (`Terms.check`). The sums of
cohorts are then added.

Guarantee: what the survey promises, towards whoever sees the sum of every cohort: each of them
has the whole noise, and a client is in one. For the noise to be shared out over all cohorts, each
would have to hide what it adds up; then the promise would hold for the total alone.
"""

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from math import log2

from fedassay.errors import SettingInvalid
from fedassay.secagg.graph import GRINDING_BITS, PRIVACY_BITS, log2_tail
from fedassay.secagg.identity import Roster
from fedassay.secagg.terms import MAX_COHORT, required_survivors
from fedassay.survey import Survey


def divide(members: Sequence[bytes], survey: Survey, cohorts: int) -> list[list[bytes]]:
    """Members in cohorts of equal size, but for one, by a hash that nobody chooses.

    Whoever has the list of members computes the same, so that a server cannot put a client
    among its friends; and one that looks for a survey whose hash suits it is bounded in
    `corrupt_in_a_cohort`.
    """
    smallest, largest = len(members) // max(cohorts, 1), -(-len(members) // max(cohorts, 1))
    needed = required_survivors(survey)
    if cohorts < 1 or smallest < needed or largest > MAX_COHORT:
        raise SettingInvalid(
            f"every cohort has from {needed:,} clients, so many this survey needs, to "
            f"{MAX_COHORT:,}; {len(members):,} clients in {cohorts:,} cohorts do not. Choose from "
            f"{max(1, -(-len(members) // MAX_COHORT)):,} to {len(members) // needed:,} cohorts."
        )
    order = sorted(set(members), key=lambda member: _place(member, survey, cohorts))
    if len(order) < len(members):
        raise SettingInvalid("a client is in one cohort; a member stands twice in the list.")
    bounds = [number * len(order) // cohorts for number in range(cohorts + 1)]
    return [order[first:last] for first, last in pairwise(bounds)]


def divide_roster(roster: Roster, survey: Survey, cohorts: int) -> list[Roster]:
    """The rosters of the cohorts; every site computes its own from the one that all hold."""
    names = dict(zip(roster.keys, roster.names, strict=True))
    return [
        Roster.of((names[key], key) for key in sorted(keys, key=roster.index))
        for keys in divide(roster.keys, survey, cohorts)
    ]


def corrupt_in_a_cohort(clients: int, corrupt: int, cohorts: int) -> int:
    """The most corrupt clients in any cohort, for `colluders` of the survey.

    More are in one with probability at most 2^-40, even for a server that tries 2^40 surveys: an
    exact hypergeometric tail with a union bound over cohorts.

    >>> corrupt_in_a_cohort(100_000, 1_000, 100)
    58
    """
    if not (1 <= cohorts <= clients and 0 <= corrupt <= clients):
        raise SettingInvalid(
            f"there are from 1 to {clients:,} cohorts and from 0 to {clients:,} corrupt clients; "
            f"found {cohorts:,} and {corrupt:,}."
        )
    drawn = -(-clients // cohorts)
    bits = PRIVACY_BITS + GRINDING_BITS + log2(cohorts)
    low, high = 0, min(corrupt, drawn)
    while low < high:
        middle = (low + high) // 2
        if log2_tail(clients, corrupt, drawn, middle + 1) <= -bits:
            high = middle
        else:
            low = middle + 1
    return low


def _place(member: bytes, survey: Survey, cohorts: int) -> bytes:
    content = survey.fingerprint + cohorts.to_bytes(4, "little") + member
    return hashlib.sha256(b"fedassay secagg cohorts" + content).digest()
