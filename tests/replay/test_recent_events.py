"""A fold takes what its process has just appended from memory; the state is that of the file."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from enum import Enum, IntEnum
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pytest

import cerata
from cerata import Store, agents
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.events import Attachment, Draft, Embedding, PutFrame
from cerata.engine.integrity import hash_bytes
from cerata.engine.segments.caches import SegmentCache
from cerata.engine.segments.reader import Reader
from cerata.engine.segments.recent import RecentBatch, RecentBatches
from cerata.engine.segments.segment_reader import Segment
from cerata.memory.batch.writer import session_of
from cerata.projections.core.projection import FoldedEvent
from cerata.replay.fold import Fold

from ..clocks import StandingClock
from ..inside import fold_of, state_of
from .spending import Spending, Spent

COUNT = 120


def disk() -> Environment:
    return Environment(MemoryStorage(), StandingClock(1_700_000_000_000_000), Random(7).randbytes)


def put(store: Store, seed: int, **options: Any) -> None:
    """Put a batch that goes beside the ring."""
    source = np.random.default_rng(seed)
    matrix = source.standard_normal((COUNT, 96)).astype(np.float32)
    texts = [f"text {seed} of word{number} and others" for number in range(COUNT)]
    store.put_frames(texts, vectors=cerata.Vectors(dense=matrix, space="s"), **options)


@contextmanager
def unread() -> Generator[None]:
    """Refuse every read of events from the file."""
    refused = AssertionError("an event was read from the file")
    with (
        mock.patch.object(Reader, "events", side_effect=refused),
        mock.patch.object(Reader, "event_batches", side_effect=refused),
        mock.patch.object(Segment, "_read_block", side_effect=refused),
    ):
        yield


def check_equal(store: Store) -> None:
    """Compare each projection with the fold of the file."""
    fold = fold_of(store)
    log = session_of(store).log
    alone = Fold(log, fold.registry, use_checkpoints=False)
    with mock.patch.object(log, "recent_in_sequences", log.read_in_sequences):
        expected = alone.digests()
    assert fold.digests() == expected


def test_a_fold_reads_nothing_that_was_just_appended() -> None:
    """Each projection read, decompressed and decoded the events that were still in memory."""
    with cerata.open("a.cera", environment=disk(), projections=[Spending]) as store:
        put(store, 1, tags=["t"])
        put(store, 2, metadata=[{"number": number} for number in range(COUNT)])
        store.append(Spent(tag="food", cents=5))
        with unread():
            assert len(store.search("word7", k=5)) > 0
            assert len(store.search(np.ones(96, np.float32), k=3)) == 3
            assert store.stream.projection("spending").rows["food"] == 5
            fold_of(store).digests()
            fold_of(store).save()
        check_equal(store)


@pytest.mark.parametrize("metadata", [None, [{"number": n} for n in range(COUNT)]])
def test_a_fold_of_frames_in_memory_makes_no_events(metadata: list[dict[str, int]] | None) -> None:
    """An event, a header and a map for each frame took a twentieth of an ingest."""
    with cerata.open("a.cera", environment=disk()) as store:
        put(store, 1, metadata=metadata)
        with mock.patch.object(RecentBatch, "event", side_effect=AssertionError):
            fold_of(store).digests()
        check_equal(store)


@pytest.mark.parametrize("number", [1.0, np.nan])
def test_vectors_that_are_not_alike_are_folded_as_from_the_file(number: float) -> None:
    """Two spaces, a blob beside a vector, token vectors, frames without a vector, not a number."""
    row = np.ones(96, np.float32)
    with cerata.open("a.cera", environment=disk()) as store:
        put(store, 1)
        store.put_frames([f"no vector {n}" for n in range(70)])
        check_equal(store)
        data = np.full(4, number, "<f4").tobytes()
        named = Embedding("t", "f4", 4, Attachment(hash_bytes(data), len(data)))
        draft = Draft(PutFrame(text="a", embedding=named), attachments=(data,), is_checked=True)
        session_of(store).log.append([draft] * 70)
        check_equal(store)
        rows = (
            store.search(
                np.ones(4, np.float32),
                vectors=cerata.Vectors(space="t"),
                page=cerata.Page(group_by="frame"),
            )
            if number == 1.0
            else ()
        )
        assert len(rows) == (10 if number == 1.0 else 0)
        put(store, 2)
        store.put_frame(
            b"bytes",
            vectors=cerata.Vectors(dense=row, space="s"),
            options=cerata.PutOptions(search_text="bytes"),
        )
        put(store, 3)
        store.put_frame(
            "tokens", vectors=cerata.Vectors(tokens=[row[:4]], tokens_space="q/maxsim/i1")
        )
        put(store, 4)
        store.put_frames(
            ["other space"] * 70, vectors=cerata.Vectors(dense=np.ones((70, 8)), space="u")
        )
        check_equal(store)


def test_a_checkpoint_of_batches_in_memory_reads_no_index() -> None:
    """The place of each vector was looked up in an index that the process had just written."""
    with cerata.open("a.cera", environment=disk()) as store:
        put(store, 1)
        store.put_frame(
            "in the ring", vectors=cerata.Vectors(dense=np.ones(96, np.float32), space="s")
        )
        put(store, 2)
        log = session_of(store).log
        space = fold_of(store).vectors().spaces(log.head.seq)[0]
        with mock.patch.object(SegmentCache, "get", side_effect=AssertionError):
            recent = [*log.embedding_columns(space.key, space.seqs)]
            fold_of(store).save()
        log.forget()
        stored = [*log.embedding_columns(space.key, space.seqs)]
    assert [events.tolist()[0] for events, _ in recent] == [1, COUNT + 2]
    places = {offset: events.tolist() for events, offset in stored}
    assert all(places[offset] == events.tolist() for events, offset in recent)


def test_vectors_between_batches_in_memory_have_their_places() -> None:
    """A large batch of another process lies between two of this process, and one comes first."""
    environment = disk()
    with (
        cerata.open("a.cera", environment=environment) as store,
        cerata.open("a.cera", environment=environment) as other,
    ):
        for writer in (other, store, other, store, other):
            put(writer, 1)
        log = session_of(store).log
        log.refresh()
        space = fold_of(store).vectors().spaces(log.head.seq)[0]
        for first in (0, COUNT, COUNT + 1):
            columns = log.embedding_columns(space.key, space.seqs[first:])
            seqs = {seq for events, _ in columns for seq in events.tolist()}
            assert seqs == {*range(1 + first // COUNT * COUNT, 5 * COUNT + 1)}
        columns = log.embedding_columns(space.key, space.seqs[: COUNT + 1])
        assert {seq for events, _ in columns for seq in events.tolist()} == {
            *range(1, 2 * COUNT + 1)
        }


def test_events_of_another_process_are_read_from_the_file() -> None:
    """Only this handle's batches are in memory, with the other ones between them."""
    environment = disk()
    with (
        cerata.open("a.cera", environment=environment) as store,
        cerata.open("a.cera", environment=environment) as other,
    ):
        for seed in range(0, 6, 2):
            put(store, seed)
            put(other, seed + 1)
            other.put_frame("small")
        for each in (store, other):
            each.stream.refresh()
            check_equal(each)
            assert each.head.seq == 3 * (2 * COUNT + 1)


@pytest.mark.parametrize("size_max", [0, 10_000, 100_000])
def test_a_full_list_drops_its_oldest_batches(size_max: int) -> None:
    """The fold then reads these from the file, and the list stays below its limit."""
    with cerata.open("a.cera", environment=disk()) as store:
        recent = state_of(session_of(store).log).recent = RecentBatches(size_max)
        for seed in range(4):
            put(store, seed)
            store.put_frame("small")
            assert recent.size_bytes <= size_max
        check_equal(store)


def test_a_body_that_its_caller_changes_is_folded_as_stored() -> None:
    """The log has the bytes of the call; a map that the caller still holds is no part of it."""
    with cerata.open("a.cera", environment=disk()) as store:
        metadata: dict[str, Any] = {"colour": "red", "sizes": [1, 2]}
        store.append(PutFrame(text="a", metadata=metadata), PutFrame(text="b"))
        metadata["colour"] = "blue"
        metadata["sizes"].append(3)
        [frame] = store.frames(where=cerata.Filter(metadata={"colour": "red"}))
        assert frame.metadata == {"colour": "red", "sizes": [1, 2]}
        check_equal(store)


def test_a_saved_checkpoint_frees_the_events() -> None:
    """No fold needs them again, and the seal has taken their hashes."""
    with cerata.open("a.cera", environment=disk()) as store:
        put(store, 1)
        recent = state_of(session_of(store).log).recent
        assert recent.size_bytes > COUNT * 96 * 4
        fold_of(store).save()
        assert recent.size_bytes == 0
        put(store, 2)
        check_equal(store)


def test_an_erasure_empties_the_list() -> None:
    """`Log.forget` drops all that a process holds of the events."""
    with cerata.open("a.cera", environment=disk()) as store:
        put(store, 1)
        log = session_of(store).log
        log.forget()
        assert state_of(log).recent.size_bytes == 0
        check_equal(store)


def test_references_within_a_batch_are_lifted_as_in_the_file() -> None:
    """A parent named by its place is the same frame in memory and in the file."""
    with cerata.open("a.cera", environment=disk()) as store:
        store.put_frame("first")
        with store.transaction():
            above = store.put_frame("above")
            store.put_frame("below", options=cerata.PutOptions(parent=above))
        events = list(session_of(store).log.recent(1, 3))
        stored = list(session_of(store).log.read(1, 3))
        assert [event.body for event in events] == [event.body for event in stored]
        assert [event.scope for event in events] == [event.scope for event in stored]
        assert [event.leaf for event in events] == [event.leaf for event in stored]
        check_equal(store)


class Word(str, Enum):  # noqa: UP042 - a `StrEnum` has the format of its string
    """Strings with another hash and another format than their text."""

    NOTE = "note"
    USER = "user"
    SPACE = "space/1"
    TOKENS = "q/maxsim/i1"
    TEXT = "A long text"


class Number(IntEnum):
    """Integers with another name than their number."""

    ONE = 1


class Written(cerata.RowProjection[str, str]):
    """The values of frames, as a format writes them."""

    name = "written"
    handles = (PutFrame,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            self.rows[f"{event.seq}"] = f"{event.body} {event.scope}"


def test_members_of_an_enum_are_folded_as_the_strings_that_are_stored() -> None:
    """A fold from memory gave a user's projection the member: the rows differed after a restart."""
    row = np.ones(4, np.float32)
    with cerata.open("a.cera", environment=disk(), projections=[Written]) as store:
        store.put_frame("above")
        store.put_frame(
            Word.TEXT,
            kind=Word.NOTE,
            role=Word.USER,
            uri=Word.NOTE,
            title=Word.TEXT,
            tags=[Word.NOTE],
            vectors=cerata.Vectors(
                dense=row, space=Word.SPACE, tokens=[row], tokens_space=Word.TOKENS
            ),
            options=cerata.PutOptions(
                labels=[Word.USER],
                track=Word.NOTE,
                parent=Number.ONE,
                scope={"user_id": Word.USER, Word.NOTE: Number.ONE, "is_new": True},
            ),
        )
        store.put_frame(b"bytes", options=cerata.PutOptions(search_text=Word.TEXT))
        store.put_frames([Word.TEXT], kind=Word.NOTE, tags=[Word.NOTE])
        agents.remember_messages(
            store, [{"role": Word.USER, "content": Word.TEXT}], track=Word.NOTE
        )
        store.remember(Word.TEXT, tags=[Word.USER], uri=Word.USER)
        log = session_of(store).log
        recent, stored = list(log.recent(1, log.head.seq)), list(log.read())
        assert [repr(event.body) for event in recent] == [repr(event.body) for event in stored]
        assert [repr(event.scope) for event in recent] == [repr(event.scope) for event in stored]
        check_equal(store)


def test_a_scope_with_a_name_of_another_string_type_is_stored() -> None:
    """A NumPy string, as an array has it, ended in a `TypeError` of the encoder."""
    with cerata.open("a.cera", environment=disk()) as store:
        receipt = store.put_frame(
            "text", options=cerata.PutOptions(scope={"tenant": np.str_("acme")})
        )
        assert store.frame(receipt).scope == {"tenant": "acme"}
        check_equal(store)
