"""Random acts on a store, and every read of a view as plain values.

An act is a few small numbers; what they mean depends on what is there, so that every list of acts
is a history that a store accepts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec
from hypothesis import strategies as st

import cerata
from cerata.engine.events import JsonValue, PutEmbedding
from cerata.memory.values.arguments import content_hash
from cerata.memory.values.vectors import vectors
from cerata.projections.frames.timeline import TimelineOrder

Act: TypeAlias = tuple[str, int, int]

KINDS = (
    *("put", "put", "below", "remember", "long", "supersede", "replace", "delete", "bytes"),
    *("embed", "embedded"),
)
SPACES = ("small", "large")
WORDS = ("harbour", "bridges", "bridge", "opens", "in", "May", "tea", "日本")
URIS = ("a.md", "b.md")

ACTS: st.SearchStrategy[Act] = st.tuples(
    st.sampled_from(KINDS), st.integers(0, 60), st.integers(0, 60)
)


def text_of(number: int) -> str:
    """A short text; few of them, so that some are the same."""
    first, second = WORDS[number % len(WORDS)], WORDS[number // 7 % len(WORDS)]
    return f"{first} {second} {number % 3}"


def long_text(number: int) -> str:
    """A document of several passages."""
    return "\n\n".join(f"## Part {part}\n{text_of(number + part)} " * 80 for part in range(3))


def perform(store: cerata.Store, act: Act) -> cerata.Receipt | None:
    """Do one act, as far as there is something to do it to."""
    kind, i, j = act
    current = [frame.id for frame in store.frames(include_chunks=True)]
    every = [frame.id for frame in _every(store)]
    text = text_of(i)
    if kind == "remember":
        return store.remember(
            text, uri=URIS[j % 2], options=cerata.PutOptions(created="2026-03-01")
        )
    if kind == "long":
        return store.remember(
            long_text(i % 5), uri=URIS[j % 2], options=cerata.PutOptions(created="2026-03-01")
        )
    if kind == "below" and every:
        return store.put_frame(
            text, options=cerata.PutOptions(parent=every[j % len(every)], created="2026-03-01")
        )
    if kind == "supersede" and current:
        return store.supersede(current[j % len(current)], text)
    if kind == "replace" and len(current) > 1:
        old, new = current[i % len(current)], current[j % len(current)]
        return store.supersede(old, new) if old != new else None
    if kind == "delete" and current:
        return store.delete(current[j % len(current)])
    if kind == "embed" and every:
        [(embedding, data)] = [one for one in vectors([[1.0]], 1, SPACES[i % 2]) if one]
        body = PutEmbedding(frame=every[j % len(every)], embedding=embedding)
        return store.append(cerata.Draft(body, attachments=(data,)))
    if kind == "embedded":
        return store.put_frame(
            text,
            vectors=cerata.Vectors(dense=[0.5], space=SPACES[j % 2]),
            options=cerata.PutOptions(created="2026-03-01"),
        )
    if kind == "bytes":
        return store.put_frame(
            bytes([i % 4]),
            title="Harbour",
            options=cerata.PutOptions(search_text=text_of(j), created="2026-03-01"),
        )
    return store.put_frame(
        text, tags=[WORDS[j % 4]], options=cerata.PutOptions(created="2026-03-01")
    )


def everything(view: cerata.View | cerata.Store) -> dict[str, JsonValue]:
    """Return what every read says."""
    if isinstance(view, cerata.Store):
        view = view.history.view()
    frames = list(_every(view))
    contents = {content_hash(frame.text) for frame in frames}
    said: dict[str, JsonValue] = {
        "count": list(view.count()),
        "every": [frame.to_dict() for frame in frames],
        "current": [frame.id for frame in view.frames()],
        "parts": [frame.id for frame in view.frames(include_chunks=True)],
        "named": [view.frame(frame.id).to_dict() for frame in frames],
        "content": [view.files.content(frame.id).hex() for frame in frames],
        "children": [list(view.files.children(frame.id)) for frame in frames],
        "chunks": [list(view.files.chunks(frame.id).values()) for frame in frames],
        "same": [list(view.files.by_content(one)) for one in sorted(contents)],
        "stored": [
            [[one.id, list(one.ids), list(one.missing), list(one.unembedded)] for one in found]
            for content in sorted(contents)
            for count in (None, 3)
            for space in (None, *SPACES)
            for found in [view.files.stored(content, chunk_count=count, space=space)]
        ],
        "uris": [list(view.files.by_uri(uri)) for uri in URIS],
        "log": [
            [one.seq, one.type, msgspec.to_builtins(one.body, enc_hook=int)] for one in view.log()
        ],
    }
    for word in ("harbour", "bridge tea", "opens in May", "日本", "none such"):
        for old, gone in ((False, False), (True, False), (False, True), (True, True)):
            hits = view.search(
                word, k=7, where=cerata.Filter(include_superseded=old, include_deleted=gone)
            )
            said[f"search {word} {old} {gone}"] = [[hit.id, hit.score, *hit.span] for hit in hits]
        tagged = view.search(word, where=cerata.Filter(tags=["harbour"], include_deleted=True))
        said[f"search tagged {word}"] = [[hit.id, hit.score] for hit in tagged]
        # Whole: the label of a frame that has no seq yet counts other tokens, so a clip may differ.
        context = view.recall(
            word, max_tokens=1_000_000, layout=cerata.Layout(entry_tokens=1_000_000)
        )
        said[f"recall {word}"] = [[item.id, item.source, item.text] for item in context.items]
    orders: tuple[TimelineOrder, ...] = ("content", "recorded")
    for order in orders:
        said[f"timeline {order}"] = _pages(view, order)
    return said


def _every(view: cerata.View | cerata.Store) -> Iterator[cerata.Frame]:
    return view.frames(
        include_chunks=True, where=cerata.Filter(include_superseded=True, include_deleted=True)
    )


def _pages(view: cerata.View, order: TimelineOrder) -> list[int]:
    """Return the frames of the timeline, three a page, which must join without a seam."""
    found: list[int] = []
    after = None
    while True:
        page = view.history.timeline(
            by=order, after=after, limit=3, where=cerata.Filter(include_superseded=True)
        )
        found += [entry.id for entry in page.entries]
        after = page.next
        if after is None:
            break
    whole = view.history.timeline(
        by=order, limit=1_000, where=cerata.Filter(include_superseded=True)
    )
    back = view.history.timeline(
        by=order, limit=1_000, newest_first=False, where=cerata.Filter(include_superseded=True)
    )
    assert found == [entry.id for entry in whole.entries]
    assert found == [entry.id for entry in back.entries][::-1]
    return found


def renamed(said: JsonValue, ids: Mapping[int, int]) -> JsonValue:
    """Return what was said with other ids, and without when it was recorded or taken over."""
    if isinstance(said, Mapping):
        return {
            name: renamed(value, ids)
            for name, value in said.items()
            if name not in ("recorded", "created")
        }
    if isinstance(said, str):
        without_day = re.sub(r" · \d{4}-\d\d-\d\d$", "", said)
        return re.sub(r"^#(-?\d+)", lambda found: f"#{_named(int(found[1]), ids)}", without_day)
    if isinstance(said, Sequence):
        return [renamed(value, ids) for value in said]
    return _named(said, ids) if isinstance(said, int) and not isinstance(said, bool) else said


def _named(number: int, ids: Mapping[int, int]) -> int:
    return ids.get(number, number)
