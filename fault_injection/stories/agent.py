"""A workload as an agent produces it: notes, corrections, documents, deletions, tags, copies.

``cerata admin crash-test`` runs it if no workload is given, and so does the full engine's part of
the report.
"""

from contextlib import suppress
from datetime import timedelta

from cerata import agents
from cerata.engine.errors import Conflict
from cerata.engine.events import UseEmbedder
from cerata.memory.store import Store
from cerata.memory.values.options import PutOptions, Vectors
from cerata.projections.frames.filters import Filter

from .workload import Workload, operation

LONG_TEXT = "".join(f"# Part {part}\n\nWhat was said in part {part}.\n" for part in range(8))


class Agent(Workload):
    """Remembers, corrects and forgets, and checks that related frames stay together."""

    words = ("harbour",)

    def prepare(self, store: Store) -> None:
        """Put three notes, save a checkpoint, and put a fourth note."""
        for text in ("tea is at four", "the bridge opens in May", "the harbour is closed"):
            store.put_frame(text, tags=["note"])
        store.checkpoint()
        store.put_frame("the harbour master is Ann", tags=["note"])

    @operation
    def note(self, store: Store) -> None:
        """Put one small frame."""
        store.put_frame(f"note {store.head.seq} on the bridge", tags=["note"])

    @operation
    def many(self, store: Store) -> None:
        """Put eight frames as one batch."""
        store.put_frames([f"{number} of eight harbours" for number in range(8)], tags=["many"])

    @operation
    def large(self, store: Store) -> None:
        """Put a text larger than a quarter of the ring."""
        store.put_frame(f"tea and bridges {store.head.seq} " * 700, tags=["note"])

    @operation
    def document(self, store: Store) -> None:
        """Remember a document, or its next version in place of the previous version."""
        version = len(list(store.frames(where=Filter(include_superseded=True))))
        store.remember(
            f"{LONG_TEXT}\nVersion {version}.\n", uri="plan.md", options=PutOptions(actor="ann")
        )

    @operation
    def correct(self, store: Store) -> None:
        """Supersede the oldest note."""
        for frame in self._notes(store)[:1]:
            text = f"corrected at {store.head.seq}: tea is at five"
            store.supersede(frame, text, actor="ann", reason="the time has changed")

    @operation
    def forget(self, store: Store) -> None:
        """Delete the newest note."""
        for frame in self._notes(store)[-1:]:
            store.delete(frame, actor="ann", reason="no longer needed")

    @operation
    def replace(self, store: Store) -> None:
        """Put the frame of a URI in place of the previous frame."""
        store.put_frame(
            f"the ferry leaves at {store.head.seq}",
            uri="ferry",
            options=PutOptions(replace=True, actor="ann"),
        )

    @operation
    def label(self, store: Store) -> None:
        """Put a new version of the newest note, or of the plan with its chunks."""
        for frame in (self._notes(store) or store.files.by_uri("plan.md"))[:1]:
            store.update(frame, title=f"seen at {store.head.seq}", actor="ann")

    @operation
    def restore(self, store: Store) -> None:
        """Bring back the newest deleted note."""
        for frame in store.frames(Filter(tags=["note"], include_deleted=True)):
            if not frame.active:
                with suppress(Conflict):
                    store.history.restore(frame, actor="ann")
                return

    @operation
    def expire(self, store: Store) -> None:
        """Close the frames that have expired, and put a frame that soon will."""
        store.upkeep.sweep(actor="ann")
        expires = store.history.view().now + timedelta(milliseconds=1)
        store.put_frame("a boat passes", tags=["boat"], options=PutOptions(expires=expires))

    @operation
    def both(self, store: Store) -> None:
        """Put two frames that are useless alone, in one transaction."""
        with store.transaction(actor="agent", reason="a pair"):
            first = store.put_frame("the harbour's left half", tags=["half"])
            store.put_frame(
                "the harbour's right half", tags=["half"], options=PutOptions(parent=first.id)
            )

    @operation
    def converse(self, store: Store) -> None:
        """Remember two messages of a conversation as one batch."""
        said = f"Is the bridge open at {store.head.seq}?"
        messages = [{"role": "user", "content": said}, {"role": "assistant", "content": "In May."}]
        agents.remember_messages(store, messages, track="talk", tags=["message"], actor="ann")

    @operation
    def embed(self, store: Store) -> None:
        """Put a frame with a vector and record its embedder, as the first vectors of a model do."""
        identity = f"letters@{store.head.seq}"
        space = f"{identity}/2/cosine"
        with store.transaction(actor="ann"):
            store.put_frame(
                "a tide table", tags=["vector"], vectors=Vectors(dense=[1.0, 2.0], space=space)
            )
            store.append(UseEmbedder(identity=identity, space=space))

    @operation
    def mark(self, store: Store) -> None:
        """Tag the head."""
        store.history.tag(f"mark{store.head.seq}")

    def check(self, store: Store) -> None:
        """Check pairs, batches, messages, the URI, expiry, the embedder, actors and tags."""
        halves = sum("half" in frame.tags for frame in store.frames(include_chunks=True))
        assert halves % 2 == 0, f"{halves} halves"
        many = sum("many" in frame.tags for frame in store.frames())
        assert many % 8 == 0, f"{many} frames of batches of eight"
        assert len(store.files.by_uri("ferry")) <= 1, "two ferries"
        now = store.history.view().now
        for frame in store.frames(Filter(tags=["boat"])):
            assert frame.expires is not None, "a boat without an expiry"
            assert frame.expires > now, "an expired boat is read"
        self._check_messages(store)
        self._check_embedder(store)
        self._check_log(store)
        for name, seq in store.history.tags().items():
            assert store.at(name).basis == seq, f"tag {name} does not resolve to {seq}"

    @staticmethod
    def _check_log(store: Store) -> None:
        for event in store.log():
            if event.type in ("supersedeFrame", "deleteFrame"):
                assert event.actor == "ann", f"event {event.seq} has the actor {event.actor}"
            if event.type == "deleteFrame":
                assert event.reason in ("no longer needed", "expired"), (
                    f"event {event.seq}: {event.reason}"
                )

    @staticmethod
    def _check_messages(store: Store) -> None:
        messages = agents.messages(store, track="talk")
        roles = ["user", "assistant"] * (len(messages) // 2)
        assert [message["role"] for message in messages] == roles, "half a conversation"

    @staticmethod
    def _check_embedder(store: Store) -> None:
        tables = [frame.id for frame in store.frames(Filter(tags=["vector"]))]
        used = store.embeddings.used()
        assert (used is None) == (not tables), "a vector without its embedder, or the reverse"
        if used is not None:
            assert store.embeddings.of(max(tables), used.space) is not None, (
                "the newest has no vector"
            )

    @staticmethod
    def _notes(store: Store) -> list[int]:
        return [frame.id for frame in store.frames() if "note" in frame.tags]
