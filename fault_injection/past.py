"""Every past state of a store, worked out from the model alone: what reads must answer (O9).

Owns a fold of its own over the payload bytes that the model holds: which frames are current at an
event, and what they say. It decodes MessagePack and nothing of the engine or its projections.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from cerata.memory.store import Store

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
        fields: dict[str, Any] = msgspec.msgpack.decode(event.payload)[5]

        def seq(name: str, event: ModelEvent = event, fields: dict[str, Any] = fields) -> int:
            # A reference of −k is to the k-th event of its own batch.
            given = int(fields[name])
            return given if given >= 0 else event.seq - event.index - given - 1

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


def _close(frames: dict[int, _Frame], number: int, kept: int | None) -> None:
    """Close a frame and all below it, but for the one that takes its place."""
    waiting = [number]
    while waiting:
        one = waiting.pop()
        if one in frames and one != kept and not frames[one].closed:
            frames[one].closed = True
            waiting += [child for child, frame in frames.items() if frame.parent == one]


def check_past(store: Store, model: Model, n: int, words: Sequence[str] = ()) -> None:
    """Compare what reads say of 0, n/2, n and an event between with the model's own fold.

    Of ``words`` a search has to find the current frames that contain them, and no others.

    Raises:
        Finding: a frame is missing, invented or other than it was; a search finds another set.
    """
    between = Random(f"past/{n}").randint(0, n)
    for k in sorted({0, n // 2, between, n}):
        expected = current_frames(model.events, k)
        view = store.at(k)
        found = {
            frame.id: frame.text
            for frame in view.frames(include_chunks=True)
            if frame.kind != "document"
        }
        # What bytes say is another's business.
        texts = {
            number: found.get(number, "") if text is None else text
            for number, text in expected.items()
        }
        if found != texts:
            raise Finding("O9", f"at event {k} of {n} the frames {sorted(found)} are current")
        for word in words:
            hits = {hit.id for hit in view.search(word, k=1_000)}
            said = {number for number, text in texts.items() if word in text.casefold()}
            if hits != said:
                raise Finding("O9", f"at event {k} of {n} {word!r} is found in {sorted(hits)}")
        shown = {entry.id for entry in view.timeline(limit=1_000).entries}
        if not shown <= {frame.id for frame in view.frames(include_chunks=True)}:
            raise Finding("O9", f"at event {k} of {n} the timeline shows {sorted(shown)}")
