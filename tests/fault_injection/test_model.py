"""The independent model hashes and packs by the written formulas, and only by them."""

from hashlib import sha256

import msgspec
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from cerata.engine import integrity
from cerata.fault_injection.judging.model import Model, ModelBatch, ModelEvent, Packable, pack


def batch(first: int, *payloads: bytes) -> ModelBatch:
    return ModelBatch(
        tuple(
            ModelEvent(first + i, 7, None, "t", 1, i, len(payloads), None, b"s" * 16, payload)
            for i, payload in enumerate(payloads)
        )
    )


_values: st.SearchStrategy[Packable] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=40)
    | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(_values)
def test_packing_agrees_with_the_deterministic_encoder(value: Packable) -> None:
    """Two implementations of one rule: the shortest form, maps in the order of their names."""
    assert pack(value) == msgspec.msgpack.encode(value, order="deterministic")


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 33])
def test_chain_and_root_follow_the_definitions(size: int) -> None:
    """The engine computes the tree from peaks; the model from RFC 6962's recursion."""
    model = Model(b"l" * 16, [batch(seq, bytes([seq])) for seq in range(1, size + 1)])
    chain = integrity.chain_start(b"l" * 16)
    for event, leaf in zip(model.events, model.leaves, strict=True):
        header = pack([event.seq, 7, None, "t", 1, 0, 1, None])
        commitment = blake3(b"s" * 16 + bytes([event.seq])).digest()
        assert leaf == sha256(b"\0" + header + commitment).digest()
        chain = integrity.chain_next(chain, leaf)
    assert model.chains[-1] == chain
    assert model.root(size) == integrity.root_of(model.leaves)


def test_a_history_with_a_hole_is_refused() -> None:
    """The model is what everything is judged against, so it must not accept nonsense."""
    model = Model(b"l" * 16, [batch(1, b"a", b"b")])
    with pytest.raises(ValueError, match="event 4 follows 2"):
        model.append(batch(4, b"c"))
    assert model.ends == [0, 2]


def test_an_erased_event_keeps_its_leaf() -> None:
    """The commitment alone gives the same leaf, so erasure leaves the chain as it was."""
    (whole,) = batch(1, b"secret").events
    commitment = blake3(b"s" * 16 + b"secret").digest()
    erased = ModelEvent(1, 7, None, "t", 1, 0, 1, None, None, None, commitment)
    assert erased.leaf() == whole.leaf()
