"""A workload as an agent produces it: notes, corrections, documents, deletions, tags, copies.

``cerata crash-test`` runs it if no workload is given, and so does the full engine's part of the
report.
"""

from cerata.memory.store import Store

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
        version = len(list(store.frames(include_superseded=True)))
        store.remember(f"{LONG_TEXT}\nVersion {version}.\n", uri="plan.md")

    @operation
    def correct(self, store: Store) -> None:
        """Supersede the oldest note."""
        for frame in self._notes(store)[:1]:
            store.supersede(frame, f"corrected at {store.head.seq}: tea is at five")

    @operation
    def forget(self, store: Store) -> None:
        """Delete the newest note."""
        for frame in self._notes(store)[-1:]:
            store.delete(frame)

    @operation
    def both(self, store: Store) -> None:
        """Put two frames that are useless alone, in one transaction."""
        with store.transaction():
            first = store.put_frame("the harbour's left half", tags=["half"])
            store.put_frame("the harbour's right half", tags=["half"], parent=first.id)

    @operation
    def mark(self, store: Store) -> None:
        """Tag the head."""
        store.tag(f"mark{store.head.seq}")

    def check(self, store: Store) -> None:
        """Check that halves come in pairs, batches of eight are whole, and tags resolve."""
        halves = sum("half" in frame.tags for frame in store.frames(include_chunks=True))
        assert halves % 2 == 0, f"{halves} halves"
        many = sum("many" in frame.tags for frame in store.frames())
        assert many % 8 == 0, f"{many} frames of batches of eight"
        for name, seq in store.tags().items():
            assert store.at(name).basis == seq, f"tag {name} does not resolve to {seq}"

    @staticmethod
    def _notes(store: Store) -> list[int]:
        return [frame.id for frame in store.frames() if "note" in frame.tags]
