"""Every past state of a store, computed from the model alone: the expected answers of reads (O9).

Owns an independent fold over the payload bytes that the model holds: which frames are current at an
event, and their texts. The fold decodes MessagePack and uses no code of the engine or its
projections.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from cerata.memory.store import Store
from cerata.memory.values.options import Page

from .model import Model, ModelEvent
from .oracle import Finding


@dataclass(slots=True)
class _Frame:
    text: str | None
    parent: int | None
    kind: str
    closed: bool = False


def current_frames(events: Sequence[ModelEvent], n: int) -> dict[int, str | None]:
    """Return the ids and texts of the frames that are current after the first ``n`` events."""
    frames: dict[int, _Frame] = {}
    for event in events[:n]:
        if event.payload is None:
            continue
        fields: dict[str, Any] = msgspec.msgpack.decode(event.payload)[6]

        def seq(name: str, event: ModelEvent = event, fields: dict[str, Any] = fields) -> int:
            # A reference of −k names the k-th event of the same batch.
            reference = int(fields[name])
            return reference if reference >= 0 else event.seq - event.index - reference - 1

        match event.type:
            case "putFrame":
                parent = seq("parent") if fields.get("parent") is not None else None
                frames[event.seq] = _Frame(
                    fields.get("text"), parent, str(fields.get("kind", "text"))
                )
            case "deleteFrame":
                _close(frames, seq("frame"), None)
            case "supersedeFrame":
                _close(frames, seq("old"), seq("new"))
            case _:
                pass
    return {
        number: frame.text
        for number, frame in frames.items()
        if not frame.closed and frame.kind != "document"
    }


def _close(frames: dict[int, _Frame], number: int, replacement: int | None) -> None:
    """Close a frame and all its descendants, except the frame that replaces it."""
    waiting = [number]
    while waiting:
        frame_id = waiting.pop()
        if frame_id in frames and frame_id != replacement and not frames[frame_id].closed:
            frames[frame_id].closed = True
            waiting += [child for child, frame in frames.items() if frame.parent == frame_id]


def check_past(store: Store, model: Model, n: int, words: Sequence[str] = ()) -> None:
    """Compare the reads at 0, n/2, n and a drawn event with the model's independent fold.

    A search for each of ``words`` must find exactly the current frames that contain the word.

    Raises:
        Finding: a frame is missing, invented or changed; a search finds another set.
    """
    between = Random(f"past/{n}").randint(0, n)
    for k in sorted({0, n // 2, between, n}):
        expected = current_frames(model.events, k)
        view = store.at(k)
        current = {
            frame.id: frame.text
            for frame in view.frames(include_chunks=True)
            if frame.kind != "document"
        }
        # The model has no text of a frame of bytes: take the text of the read.
        texts = {
            number: current.get(number, "") if text is None else text
            for number, text in expected.items()
        }
        if current != texts:
            raise Finding("O9", f"at event {k} of {n} the frames {sorted(current)} are current")
        for word in words:
            hits = {hit.id for hit in view.search(word, k=1_000, page=Page(group_by="frame"))}
            matches = {number for number, text in texts.items() if word in text.casefold()}
            if hits != matches:
                raise Finding("O9", f"at event {k} of {n} {word!r} is found in {sorted(hits)}")
        entries = {entry.id for entry in view.history.timeline(limit=1_000).entries}
        if not entries <= {frame.id for frame in view.frames(include_chunks=True)}:
            raise Finding("O9", f"at event {k} of {n} the timeline shows {sorted(entries)}")
