"""Secure aggregation: the server learns the sum over the survivors and nothing else.

Bonawitz et al. (2017) with the sparse neighbour graph of Bell et al. (2020), on integer
vectors modulo 2^32, as state machines without a transport: `SecAggClient` and
`SecAggServer` turn bytes into bytes.
"""

from fedassay.secagg.client import SecAggClient
from fedassay.secagg.identity import Identity, Named, Pinned, Roster
from fedassay.secagg.server import Outcome, SecAggServer
from fedassay.secagg.store import RoundStore
from fedassay.secagg.terms import Terms

__all__ = [
    "Identity",
    "Named",
    "Outcome",
    "Pinned",
    "Roster",
    "RoundStore",
    "SecAggClient",
    "SecAggServer",
    "Terms",
]
