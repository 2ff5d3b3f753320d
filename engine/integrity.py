"""Hashes that bind the log: salted commitments, leaves, the chain and the Merkle tree.

Owns the formulas and the compact range (the peaks of a growing tree). Leaves out storage.
H is BLAKE3-256. The tree is that of RFC 6962 section 2.1 with SHA-256, so that the verifiers and
witnesses of public logs can check it; the entry of a leaf is ``header ‖ commitment``.

    commitment = H(salt16 ‖ payload)
    leaf       = SHA-256(0x00 ‖ header ‖ commitment)
    node       = SHA-256(0x01 ‖ left ‖ right)
    chain_n    = H(0x02 ‖ chain_{n−1} ‖ leaf_n),  chain_0 = H(0x02 ‖ log id)
"""

import os
from collections.abc import Iterable, Sequence
from functools import partial
from hashlib import sha256

import msgspec
from blake3 import blake3

from .disk.storage import Buffer
from .errors import Corrupt

SALT_SIZE = 16
SEED_SIZE = 32
HASH_SIZE = 32

_THREADS_PAY_SIZE = 1 << 20
"""Measured; below this size, starting threads costs more than they save."""

_forked: list[bool] = []
"""Not empty in a forked child: the hashing threads stayed in the parent, and the child would wait
for them for ever."""
os.register_at_fork(after_in_child=partial(_forked.append, True))


def hash_bytes(data: Buffer) -> bytes:
    """Return BLAKE3-256 of ``data``, on several cores if it is large."""
    if len(data) >= _THREADS_PAY_SIZE and not _forked:
        return blake3(data, max_threads=blake3.AUTO).digest()
    return blake3(data).digest()


def hashes_of(pieces: Iterable[bytes], size: int = HASH_SIZE) -> list[bytes]:
    """Return the first ``size`` bytes of the BLAKE3 hash of each of many small pieces."""
    return [blake3(piece).digest(size) for piece in pieces]


def derived_salts(seed: bytes, first: int, count: int) -> bytes:
    """Return the salts of events ``first`` (from 0) to before ``first + count`` of a batch.

    The salts are 16 bytes each of the output of keyed BLAKE3 over nothing, with the seed as key.
    """
    return blake3(b"", key=seed).digest(SALT_SIZE * count, seek=SALT_SIZE * first)


class IncompletePayload(bytes):
    """A payload without the hash of a damaged vector: its fields can be read, and no more."""


def commitment_of(salt: bytes, payload: bytes, seq: int | None = None) -> bytes:
    """Return H(salt ‖ payload), which binds the payload without revealing it after erasure.

    ``seq`` is that of the event, for an error.

    Raises:
        Corrupt: the payload is incomplete.
    """
    if isinstance(payload, IncompletePayload):
        raise Corrupt(
            f"The vector of {'an event' if seq is None else f'event {seq:,}'} is damaged, "
            "so the event cannot be proven",
            remedy="Run 'cerata file verify' to see what is affected.",
        )
    return blake3(salt + payload).digest()


def leaf_of(header: bytes, commitment: bytes) -> bytes:
    """Return SHA-256(0x00 ‖ header ‖ commitment), which outlives the payload."""
    return sha256(b"\x00" + header + commitment).digest()


def node_of(left: bytes, right: bytes) -> bytes:
    """Return SHA-256(0x01 ‖ left ‖ right), an inner node of the tree."""
    return sha256(b"\x01" + left + right).digest()


def chain_start(log_id: bytes) -> bytes:
    """Return chain_0 of the log with this id (16 bytes)."""
    return blake3(b"\x02" + log_id).digest()


def chain_next(chain: bytes, leaf: bytes) -> bytes:
    """Return H(0x02 ‖ chain ‖ leaf)."""
    return blake3(b"\x02" + chain + leaf).digest()


def chain_through(chain: bytes, leaves: Iterable[bytes]) -> bytes:
    """Return the chain hash after ``leaves``."""
    for leaf in leaves:
        chain = blake3(b"\x02" + chain + leaf).digest()
    return chain


class Tree(msgspec.Struct, frozen=True):
    """The compact range of a Merkle tree: its size and the roots of its perfect subtrees.

    ``peaks`` are ordered from the largest subtree to the smallest, one per set bit of ``size``.
    """

    size: int = 0
    peaks: tuple[bytes, ...] = ()

    def extend(self, leaves: Iterable[bytes]) -> "Tree":
        """Return the tree with leaves appended; O(1) hashes a leaf on average."""
        size = self.size
        peaks = list(self.peaks)
        pop = peaks.pop
        push = peaks.append
        for leaf in leaves:
            node = leaf
            carry = size
            while carry & 1:
                # `node_of`, without the cost of a call.
                node = sha256(b"\x01" + pop() + node).digest()
                carry >>= 1
            push(node)
            size += 1
        return Tree(size, tuple(peaks))

    def root(self) -> bytes:
        """Return the root: the peaks folded from the right; SHA-256 of nothing for none."""
        if not self.peaks:
            return sha256(b"").digest()
        root = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            root = node_of(peak, root)
        return root


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the audit path of leaf ``index`` (RFC 6962 section 2.1.1), leaf's sibling first.

    Cost: O(n) hashes over the leaves.
    """
    if len(leaves) <= 1:
        return []
    split = 1 << (len(leaves) - 1).bit_length() - 1
    if index < split:
        return [*inclusion_proof(leaves[:split], index), root_of(leaves[split:])]
    return [*inclusion_proof(leaves[split:], index - split), root_of(leaves[:split])]


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root of the tree over ``leaves``."""
    return Tree().extend(leaves).root()


def verify_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> bool:
    """Return whether ``proof`` shows that ``leaf`` is at ``index`` of the tree with ``root``.

    The algorithm of RFC 9162 section 2.1.3.2.
    """
    if not 0 <= index < size:
        return False
    place = index
    last = size - 1
    node = leaf
    for sibling in proof:
        if last == 0:
            return False
        if place & 1 or place == last:
            node = node_of(sibling, node)
            while not place & 1 and place:
                place >>= 1
                last >>= 1
        else:
            node = node_of(node, sibling)
        place >>= 1
        last >>= 1
    return last == 0 and node == root
