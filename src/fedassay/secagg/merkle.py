"""A commitment to the whole cohort that a client checks against its neighbours only.

A binary tree of SHA-256 over the leaves in order; a level of odd length carries its last node
up as it is. The leaf count is bound by whoever hashes the root.
"""

import hashlib
from collections.abc import Mapping, Sequence

from fedassay.errors import MessageMalformed

NODE_BYTES = 32
_LEAF, _NODE = b"\x00fedassay secagg leaf", b"\x01fedassay secagg node"


def leaf_hash(leaf: bytes) -> bytes:
    """The lowest node above a leaf."""
    return hashlib.sha256(_LEAF + leaf).digest()


def tree(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """All levels, from the leaf hashes to the root."""
    levels = [[leaf_hash(leaf) for leaf in leaves]]
    while len(levels[-1]) > 1:
        below = levels[-1]
        paired = [_parent(below[i], below[i + 1]) for i in range(0, len(below) - 1, 2)]
        levels.append(paired + below[len(paired) * 2 :])
    return levels


def prove(levels: Sequence[Sequence[bytes]], ranks: Sequence[int]) -> list[bytes]:
    """The nodes that, beside these leaves, are needed to compute the root."""
    nodes: list[bytes] = []
    known = sorted(set(ranks))
    for level in levels[:-1]:
        have = set(known)
        nodes += [level[i ^ 1] for i in known if i ^ 1 not in have and i ^ 1 < len(level)]
        known = sorted({i // 2 for i in known})
    return nodes


def root_from(leaves: Mapping[int, bytes], count: int, nodes: Sequence[bytes]) -> bytes:
    """The root of `count` leaves, some of which are known, and the nodes of a proof."""
    known = {rank: leaf_hash(leaf) for rank, leaf in leaves.items()}
    given = iter(nodes)
    try:
        while count > 1:
            above: dict[int, bytes] = {}
            for i in sorted(known):
                if i // 2 in above:
                    continue
                if i ^ 1 >= count:
                    above[i // 2] = known[i]
                    continue
                other = known[i ^ 1] if i ^ 1 in known else next(given)
                above[i // 2] = _parent(known[i], other) if i % 2 == 0 else _parent(other, known[i])
            known, count = above, (count + 1) // 2
    except StopIteration:
        raise MessageMalformed(
            "a roster's proof must reach from the neighbours to the root; it is cut short. "
            "Ask the server to send it again."
        ) from None
    if next(given, None) is not None:
        raise MessageMalformed("a roster's proof has more nodes than it needs. Refused.")
    return known[0]


def _parent(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(_NODE + left + right).digest()
