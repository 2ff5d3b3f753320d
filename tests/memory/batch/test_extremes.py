"""The largest and smallest of everything an event can say: refused, or folded for ever after.

One accepted event with ``created=2**64 - 1`` once made every later call on the file fail. So
what no column holds is refused; and what another writer let through is passed over.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cerata
from cerata.engine.errors import CerataError, InvalidInput
from cerata.engine.events import (
    AssertFact,
    Attachment,
    DeleteFrame,
    Draft,
    Embedding,
    EventBody,
    Gap,
    PutEmbedding,
    PutFrame,
    PutTag,
    RetractFact,
    SupersedeFrame,
    UnknownBody,
)
from cerata.engine.log import Log
from cerata.memory.store import Store

from ...inside import fold_of, log_of

KINDS: Final[tuple[type[EventBody], ...]] = (
    PutFrame,
    DeleteFrame,
    SupersedeFrame,
    PutEmbedding,
    PutTag,
    AssertFact,
    RetractFact,
    Gap,
)

_EDGES = (0, 2**7, 2**15, 2**31, 2**32, 2**40, 2**63, 2**64)
NUMBERS: Final = sorted(
    number
    for number in {one for edge in _EDGES for one in (edge - 1, edge, -edge, 1 - edge)}
    if -(2**63) <= number < 2**64
)
"""Around every width that something is kept in, as far as MessagePack goes."""

TEXTS: Final = ("", "\0", "\n", " ", "1", "\u0301", "\U0010ffff", "tea", "w " * 3_000)
BLOBS: Final = (b"", b"\0", b"\xff" * 15, b"\xff" * 16, b"\xff" * 99)
ATTACHMENTS: Final = tuple(Attachment(data, size) for data in BLOBS for size in (0, 2**64 - 1))
EMBEDDINGS: Final = tuple(
    Embedding(space, dtype, dimension, ATTACHMENTS[-1])
    for space in ("", "s")
    for dtype in ("f4", "?")
    for dimension in (-(2**63), 0, 2**64 - 1)
)


def odd_values() -> Sequence[object]:
    """What metadata or a fact may hold besides numbers and texts, or may not."""
    none: list[object] = []
    return (None, True, 1.5, float("nan"), float("-inf"), b"\xff", none, [[none]], {"": none})


EXTREMES: Mapping[str, Sequence[object]] = {
    "tags": (("",), TEXTS, ("tea",) * 3_000),
    "labels": (("",), TEXTS),
    "metadata": tuple({name: value} for name in TEXTS[:3] for value in (*odd_values(), *NUMBERS)),
    "content_dates": (*((number,) for number in NUMBERS), tuple(NUMBERS)),
    "evidence": tuple((number, number, number) for number in NUMBERS),
    "confidence": (0.0, -1e308, float("nan"), float("inf")),
    "object": (*odd_values(), *NUMBERS, *TEXTS),
    "embedding": EMBEDDINGS,
    "blob": ATTACHMENTS,
    "content_hash": BLOBS,
    "text": TEXTS,
}
"""By field, what is far out and of its type; any other field is a number or a text."""


def required(kind: type[EventBody]) -> dict[str, object]:
    """The fields that an event of a kind cannot do without."""
    given: dict[str, object] = {
        "frame": 1,
        "old": 1,
        "new": 2,
        "fact": 3,
        "at": 1,
        "tag": "t",
        "embedding": EMBEDDINGS[0],
        "object": 1,
    }
    fields = msgspec.structs.fields(kind)
    return {field.name: given.get(field.name, "x") for field in fields if field.required}


def extremes(kind: type[EventBody]) -> Iterator[tuple[str, object]]:
    """Each field of a kind with each extreme of its type."""
    for field in msgspec.structs.fields(kind):
        otherwise: Sequence[object] = NUMBERS if "int" in str(field.type) else TEXTS
        for value in EXTREMES.get(field.name, otherwise):
            yield field.name, value


def plant(store: Store, fields: Mapping[type[EventBody], list[Mapping[str, object]]]) -> None:
    """Append bodies as they are, as a writer without our checks would."""
    drafts = [
        Draft(
            UnknownBody(
                kind=kind.wire_name,
                kind_version=kind.wire_version,
                data=msgspec.msgpack.encode({**required(kind), **one}),
            )
        )
        for kind, every in fields.items()
        for one in every
    ]
    log: Log = log_of(store)
    for first in range(0, len(drafts), 1_000):
        log.append(drafts[first : first + 1_000])


def check_all_works(path: Path) -> None:
    """Every read and write, from the events and from what was saved, and all of it verifies."""
    for _ in range(2):
        with cerata.open(path) as store:
            frame = store.put_frame("tea", tags=["t"]).id
            assert len(store) == len(list(store.frames()))
            store.search("tea")
            store.history.timeline(limit=10_000, include_chunks=True)
            store.history.timeline(by="recorded")
            store.recall("tea")
            store.history.tags()
            assert list(store.frames(include_chunks=True))
            store.delete(frame)
            store.checkpoint()
            assert store.stream.digests() == store.stream.digests(replay=True)
            assert store.verify().ok


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_of_extremes_is_refused_or_folded(kind: type[EventBody], tmp_path: Path) -> None:
    """``created=2**64 - 1`` was acknowledged, and then no call worked for ever."""
    path = tmp_path / "a.cera"
    with cerata.open(path, options=cerata.OpenOptions(sync=1 << 20)) as store:
        store.put_frames(["one", "two"])
        store.append(AssertFact(subject="s", predicate="p", object_kind="text", object="o"))
        for name, value in extremes(kind):
            fields: dict[str, Any] = {**required(kind), name: value}
            try:
                store.append(kind(**fields))
            except CerataError:
                continue
            len(store)
    check_all_works(path)


def test_what_another_writer_let_through_is_folded(tmp_path: Path) -> None:
    """A file comes from anywhere: the folds are total, whatever its events say."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        store.put_frames(["one", "two", "three"])
        plant(store, {kind: [dict([one]) for one in extremes(kind)] for kind in KINDS})
        assert fold_of(store).frames().anomalies(store.head.seq)
    check_all_works(path)


def test_a_number_that_no_column_holds_counts_as_not_given(tmp_path: Path) -> None:
    """The frame is there, at the time when it was recorded, and says nothing of the rest."""
    far = 2**64 - 1
    fields = {
        "text": "tea",
        "created": far,
        "content_dates": [5, far],
        "chunk_index": 2**40,
        "chunk_count": 2**63,
        "parent": far,
    }
    with cerata.open(tmp_path / "a.cera") as store:
        plant(store, {PutFrame: [fields], SupersedeFrame: [{"new": far}]})
        frames = fold_of(store).frames()
        row = frames.frame(1)
        assert row is not None
        assert (row.created, row.content_dates) == (None, (5,))
        assert (row.chunk_index, row.chunk_count) == (None, None)
        assert {kind.name: count for kind, count in frames.anomalies(2).items()} == {
            "OUT_OF_RANGE": 4,
            "UNKNOWN_REFERENCE": 2,
        }
        assert len(store) == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"created": 2**63},
        {"created": -(2**63)},
        {"content_dates": (1, 2**64 - 1)},
        {"chunk_index": 2**31},
        {"chunk_index": -1},
        {"chunk_count": -5},
        {"chunk_count": 2**63},
    ],
)
def test_what_no_column_holds_is_refused(fields: dict[str, Any]) -> None:
    """With the field and what can be stored; nothing is written."""
    with cerata.open(":memory:") as store:
        name = next(iter(fields))
        with pytest.raises(InvalidInput, match=rf"{name} is -?[\d,]+; -?[\d,]+ to [\d,]+ can be"):
            store.append(PutFrame(text="x", **fields))
        assert store.head.seq == 0


@st.composite
def planted(draw: st.DrawFn) -> tuple[type[EventBody], dict[str, object]]:
    kind = draw(st.sampled_from(KINDS))
    every = list(extremes(kind))
    return kind, dict(draw(st.lists(st.sampled_from(every), max_size=6)))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(planted(), min_size=1, max_size=8))
def test_extremes_of_several_fields_are_folded_together(
    bodies: list[tuple[type[EventBody], dict[str, object]]],
) -> None:
    """No combination of them stops a fold, and replay agrees with it."""
    with cerata.open(":memory:") as store:
        store.put_frames(["one", "two"])
        for kind, fields in bodies:
            plant(store, {kind: [fields]})
            len(store)
        store.search("tea")
        store.history.timeline(include_chunks=True)
        assert store.stream.digests() == store.stream.digests(replay=True)
