"""Chain and tree: the shapes of RFC 6962, and proofs that nothing else can pass for."""

import os
import signal
import time
from hashlib import sha256

from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from cerata.engine.integrity import (
    Tree,
    chain_next,
    chain_start,
    chain_through,
    commitment_of,
    hash_bytes,
    inclusion_proof,
    leaf_of,
    root_of,
    verify_inclusion,
)


def leaves(count: int) -> list[bytes]:
    return [blake3(number.to_bytes(4, "big")).digest() for number in range(count)]


def plain_root(rows: list[bytes]) -> bytes:
    """The definition of RFC 6962 section 2.1, word by word, over leaves hashed already."""
    if not rows:
        return sha256(b"").digest()
    if len(rows) == 1:
        return rows[0]
    split = 1
    while split * 2 < len(rows):
        split *= 2
    return sha256(b"\x01" + plain_root(rows[:split]) + plain_root(rows[split:])).digest()


def test_roots_are_those_of_the_definition() -> None:
    """Every size up to 130 meets every shape that a tree of eight levels has."""
    for count in range(131):
        assert root_of(leaves(count)) == plain_root(leaves(count))


@given(st.lists(st.integers(0, 20), max_size=12))
def test_a_tree_does_not_remember_how_it_grew(steps: list[int]) -> None:
    """One by one or in batches, the peaks are the same."""
    tree, rows = Tree(), leaves(sum(steps))
    at = 0
    for step in steps:
        tree = tree.extend(rows[at : at + step])
        at += step
    assert tree == Tree().extend(rows)
    assert len(tree.peaks) == at.bit_count()


def test_every_leaf_can_be_proven() -> None:
    """For all leaves of all trees up to 40."""
    for count in range(1, 41):
        rows = leaves(count)
        root = root_of(rows)
        for index in range(count):
            proof = inclusion_proof(rows, index)
            assert verify_inclusion(rows[index], index, count, proof, root)


def test_no_mutation_of_a_proof_passes() -> None:
    """Every single bit of leaf, proof and root; every other place and length."""
    rows = leaves(7)
    root = root_of(rows)
    for index in range(7):
        proof = inclusion_proof(rows, index)
        told = b"".join([rows[index], *proof, root])
        for bit in range(8 * len(told)):
            bent = bytearray(told)
            bent[bit // 8] ^= 1 << bit % 8
            parts = [bytes(bent[at : at + 32]) for at in range(0, len(bent), 32)]
            assert not verify_inclusion(parts[0], index, 7, parts[1:-1], parts[-1])
        for place in range(-1, 9):
            assert verify_inclusion(rows[index], place, 7, proof, root) == (place == index)
        assert not verify_inclusion(rows[index], index, 7, proof[:-1], root)
        assert not verify_inclusion(rows[index], index, 7, [*proof, root], root)
        assert not verify_inclusion(rows[index], index, 7, proof[::-1], root) or len(proof) < 2


def test_nothing_stands_past_the_end_of_a_tree() -> None:
    """The root of one leaf is the leaf itself, and proves no second one."""
    (leaf,) = leaves(1)
    assert verify_inclusion(leaf, 0, 1, [], leaf)
    assert not verify_inclusion(leaf, 1, 1, [], leaf)


def test_large_and_small_are_hashed_alike() -> None:
    """On several cores or on one."""
    for size in (0, 1000, (1 << 20) - 1, 1 << 20, 3 << 20):
        data = bytes(range(256)) * (size // 256) + bytes(size % 256)
        assert hash_bytes(data) == blake3(data).digest()


def test_a_forked_child_hashes_what_is_large() -> None:
    """Its parent had done so, and it waited for ever for threads that a fork does not copy."""
    data = bytes(2 << 20)
    expected = hash_bytes(data)
    child = os.fork()
    if child == 0:
        os._exit(0 if hash_bytes(data) == expected else 1)
    deadline = time.monotonic() + 20
    done = (0, 0)
    while done == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.005)
        done = os.waitpid(child, os.WNOHANG)
    if done == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert done == (child, 0)


def test_a_node_is_no_leaf() -> None:
    """Their first bytes differ, so an inner node never passes for an event."""
    two = leaves(2)
    assert leaf_of(two[0], two[1]) != root_of(two)


RFC_6962_ENTRIES = (
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
)
RFC_6962_ROOTS = (
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)
"""The entries and the roots after 0 to 8 of them that Certificate Transparency's logs test with."""


def test_the_tree_is_that_of_public_logs() -> None:
    """Their verifiers check our proofs only if leaf, node and empty root are theirs."""
    entries = [bytes.fromhex(entry) for entry in RFC_6962_ENTRIES]
    hashes = [leaf_of(entry, b"") for entry in entries]
    roots = [root_of(hashes[:size]).hex() for size in range(9)]
    assert roots == list(RFC_6962_ROOTS)


def test_the_formulas_are_the_documented_ones() -> None:
    """Whoever verifies without this code computes these."""
    log_id, header, salt, payload = b"i" * 16, b"header", b"s" * 16, b"payload"
    commitment = blake3(salt + payload).digest()
    leaf = sha256(b"\x00" + header + commitment).digest()
    start = blake3(b"\x02" + log_id).digest()
    assert commitment_of(salt, payload) == commitment
    assert leaf_of(header, commitment) == leaf
    assert chain_start(log_id) == start
    then = blake3(b"\x02" + start + leaf).digest()
    assert chain_next(start, leaf) == chain_through(start, [leaf]) == then
    assert chain_through(start, [leaf, header]) == chain_next(then, header)
