"""Each byte of a call is hashed, checked and encoded once; counts, since times differ by the load.

The same drafts without their mark go the long way, and must give the same bytes.
"""

import gc
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest import mock

import msgspec
import numpy as np
import pytest

import cerata
from cerata import Store, agents
from cerata.engine import codec, draft_validation, events
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.errors import InvalidInput
from cerata.engine.events import Attachment, Draft, Embedding, PutFrame
from cerata.engine.integrity import hash_bytes, hashes_of
from cerata.engine.segments.segment_reader import Segment
from cerata.memory.batch.writer import session_of

from ...clocks import StandingClock
from ...inside import fold_of

DIMENSION = 96
ROW_SIZE = 4 * DIMENSION
COUNT = 120
"""Documents of a batch: enough that its events go beside the ring."""


def matrix(seed: int, count: int = COUNT) -> Any:
    return np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)


def texts(seed: int, count: int = COUNT) -> list[str]:
    source = Random(seed)
    return [" ".join(f"word{source.randrange(500)}" for _ in range(20)) for _ in range(count)]


@contextmanager
def counted(name: str, replaced: Callable[..., Any]) -> Generator[list[Any]]:
    """Record the first argument of each call of a function of the engine, in all its importers."""
    calls: list[Any] = []

    def record(*arguments: Any) -> Any:
        calls.append(arguments[0])
        return replaced(*arguments)

    modules = [
        module
        for key, module in sys.modules.items()
        if key.startswith("cerata.") and vars(module).get(name) is replaced
    ]
    assert modules
    patches = [mock.patch.object(module, name, record) for module in modules]
    for patch in patches:
        patch.start()
    try:
        yield calls
    finally:
        for patch in patches:
            patch.stop()


@pytest.fixture
def disk() -> Environment:
    return Environment(MemoryStorage(), StandingClock(1_700_000_000_000_000), Random(7).randbytes)


def image(disk: Environment, path: str = "a.cera") -> bytes:
    file = disk.storage.open(path, mode="r")
    return bytes(file.read_at(0, file.size()))


def test_a_vector_is_hashed_and_looked_through_once(store: Store) -> None:
    """The append hashed each vector again, and looked at its numbers one row at a time."""
    with (
        counted("hash_bytes", hash_bytes) as hashed,
        counted("hashes_of", hashes_of) as columns,
        mock.patch.object(np, "isfinite", wraps=np.isfinite) as looked,
    ):
        store.put_frames(texts(1), vectors=cerata.Vectors(dense=matrix(1), space="s"))
    assert hashed == []
    assert [[len(data) for data in column] for column in columns] == [[ROW_SIZE] * COUNT]
    assert looked.call_count == 1


def test_a_checked_draft_is_not_decoded_again(store: Store) -> None:
    """What was just encoded was decoded, to learn what the call had checked already."""
    with (
        counted("check_attachments", draft_validation.check_attachments) as checked,
        counted("decoders", events.decoders) as decoded,
    ):
        store.put_frames(texts(2), vectors=cerata.Vectors(dense=matrix(2), space="s"))
    assert checked == []
    assert decoded == []


def python_calls(work: Callable[[], object]) -> int:
    """Return the count of calls of functions written in Python."""
    count = 0

    def enter(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    # A collection would call the finalizers of objects of earlier tests.
    gc.collect()
    gc.disable()
    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        work()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


@pytest.mark.parametrize("has_vectors", [True, False])
def test_a_document_of_a_batch_takes_few_calls(*, has_vectors: bool) -> None:
    """A call for each check, rule and effect of a document took most of the time: 30 and 25."""

    def calls(count: int) -> tuple[int, int]:
        documents = texts(9, count)
        rows: dict[str, Any] = {}
        if has_vectors:
            rows = {"vectors": cerata.Vectors(dense=matrix(9, count), space="s")}
        with cerata.open(":memory:") as store:
            # Code that runs once, and words that are new once.
            store.put_frames(documents, **rows)
            fold_of(store).digests()
            put = python_calls(lambda: store.put_frames(documents, **rows))
            fold = fold_of(store)
            return put, python_calls(lambda: (fold.frames(), fold.vectors(), fold.fulltext()))

    small, large = calls(COUNT), calls(2 * COUNT)
    put, folds = ((more - less) / COUNT for less, more in zip(small, large, strict=True))
    assert put < 6.5
    assert folds < 5


def test_a_large_batch_is_sealed_from_memory(disk: Environment) -> None:
    """The seal read the events back that the same process had just written, for their hashes."""
    with cerata.open("a.cera", environment=disk) as store:
        store.put_frames(texts(3), vectors=cerata.Vectors(dense=matrix(3), space="s"))
        with mock.patch.object(Segment, "_read_block", autospec=True, side_effect=AssertionError):
            session_of(store).log.seal()
        assert session_of(store).log.page.sealed_seq == COUNT
        assert store.verify().ok


def workload(store: Store) -> None:
    """Call everything that makes drafts of frames."""
    rows = matrix(4)
    store.put_frames(texts(4), tags=["t"], vectors=cerata.Vectors(dense=rows, space="s"))
    store.put_frames(
        texts(5, 3), vectors=cerata.Vectors(dense=(rows[:3] * 20).astype(np.int8), space="i")
    )
    store.put_frames(
        texts(6, 2),
        metadata=[{"a": [1, {"b": None}]}, {}],
        kind="note",
        options=cerata.PutOptions(expires="2999-01-01"),
    )
    first = store.put_frame(
        "We met on 8 May 2023.",
        role="user",
        title="Title",
        uri="u:1",
        vectors=cerata.Vectors(
            dense=rows[0], space="s", tokens=rows[:4], tokens_space="q/maxsim/i1"
        ),
        options=cerata.PutOptions(created="2024-01-02", labels=["l"], track="line"),
    )
    store.put_frame(
        bytes(ROW_SIZE),
        vectors=cerata.Vectors(dense=rows[1], space="s"),
        options=cerata.PutOptions(search_text="blob"),
    )
    store.put_frame("below", options=cerata.PutOptions(parent=first))
    store.supersede(first, "The new text")
    agents.remember_messages(store, [{"role": "user", "content": "hello", "more": {"x": [1.5]}}])
    store.remember("\n\n".join(texts(7, 90)), uri="doc:1")
    with store.transaction():
        frame = store.put_frame("drafted", vectors=cerata.Vectors(dense=rows[2], space="s"))
        store.put_frame("below", options=cerata.PutOptions(parent=frame))
        store.delete(frame)


def test_drafts_of_calls_pass_the_checks_that_they_are_spared(disk: Environment) -> None:
    """The mark vouches for the whole check: each marked draft is checked here, and must pass."""
    seen: list[Draft] = []
    original = codec._encode_payload

    def encode(draft: Draft, key: str | None, arguments: bytes | None) -> bytes:
        payload = original(draft, key, arguments)
        if draft.is_checked:
            seen.append(draft)
            unmarked = msgspec.structs.replace(draft, is_checked=False)
            assert original(unmarked, key, arguments) == payload
        return payload

    with (
        mock.patch.object(codec, "_encode_payload", encode),
        cerata.open("a.cera", environment=disk) as store,
    ):
        workload(store)
    assert len(seen) > COUNT + 20
    assert sum(bool(draft.attachments) for draft in seen) > COUNT


def test_a_file_is_the_same_without_the_mark() -> None:
    """Bytes of the file, root and digests: the short way changes none of them."""

    def write(disk: Environment) -> tuple[bytes, object]:
        with cerata.open("a.cera", environment=disk) as store:
            workload(store)
            session_of(store).fold.save()
            digests = session_of(store).fold.digests()
            root = store.head.root
        return image(disk), (digests, root)

    def disks() -> Environment:
        return Environment(MemoryStorage(), StandingClock(10**15), Random(7).randbytes)

    short = write(disks())

    def unmarked(*arguments: Any, **options: Any) -> Draft:
        return Draft(*arguments, **{**options, "is_checked": False})

    with mock.patch("cerata.memory.frames.drafts.Draft", unmarked):
        assert write(disks()) == short


@pytest.mark.parametrize("number", [np.nan, 1.0])
def test_a_draft_of_a_caller_is_checked_despite_its_mark(store: Store, number: float) -> None:
    """A caller cannot know what the mark vouches for: it could store a wrong hash, or NaN."""
    data = np.full(4, number, "<f4").tobytes()
    name = hash_bytes(data if np.isnan(number) else b"another")
    embedding = Embedding("s", "f4", 4, Attachment(name, len(data)))
    body = PutFrame(text="text", embedding=embedding)
    with pytest.raises(InvalidInput):
        store.append(Draft(body, attachments=(data,), is_checked=True))
    assert store.head.seq == 0
