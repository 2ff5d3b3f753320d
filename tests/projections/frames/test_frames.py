"""Frames: life, death and what hangs together, in histories that read as sentences."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cerata.engine.events import (
    Attachment,
    DeleteFrame,
    Embedding,
    Erased,
    Gap,
    PutEmbedding,
    PutFrame,
    ScopeValue,
    SupersedeFrame,
)
from cerata.projections.frames.attributes import DATE
from cerata.projections.frames.columns import ClosingKind, FrameAnomaly
from cerata.projections.frames.projection import FramesProjection
from cerata.projections.fulltext.projection import FulltextProjection

from ..histories import Folded, Model, events_of, fold, histories, predecessors, successors


def test_a_superseded_document_takes_its_chunks_along() -> None:
    document = PutFrame(text="", chunk_count=2)
    chunks = [PutFrame(text=t, parent=1, chunk_index=i) for i, t in enumerate(("one", "two"))]
    events = events_of([document, *chunks, PutFrame(text="new"), SupersedeFrame(old=1, new=4)])
    frames = fold(events)[0].snapshot()
    assert frames.alive(4).tolist() == [True, True, True, True]
    assert frames.alive(5).tolist() == [False, False, False, True]
    closing = frames.closing_of(2, 5)
    assert closing is not None
    assert (closing.kind, closing.superseded_by) == (ClosingKind.WITH_SUPERSEDED, 4)
    assert frames.closing_of(2, 4) is None
    assert frames.supersedes_of(4, 5) == [1]
    assert frames.children(1, 2) == [2]


def test_times_of_rows_are_those_of_each_in_any_order() -> None:
    """A row has no date, or several; other attributes are between them."""
    dates = [(), (5, 9), (), (7,), (1, 2, 3)]
    puts = [
        PutFrame(text="a", title="b", content_dates=each, uri="c" if each else None)
        for each in dates
    ]
    frames = fold(events_of(puts))[0].snapshot()
    for rows in ([4, 0, 1, 3, 2], [2, 0], [1], []):
        times, places = frames._attributes.times_of(np.array(rows, np.int64), DATE)
        pairs = [*zip(places.tolist(), times.tolist(), strict=True)]
        assert pairs == [(place, time) for place, row in enumerate(rows) for time in dates[row]]


def test_the_first_closing_wins() -> None:
    events = events_of(
        [PutFrame(text="a"), PutFrame(text="b"), DeleteFrame(frame=1), SupersedeFrame(old=1, new=2)]
    )
    frames = fold(events)[0].snapshot()
    closing = frames.closing_of(1, 4)
    assert closing is not None
    assert closing.kind is ClosingKind.DELETE
    assert frames.anomalies(4) == {FrameAnomaly.ALREADY_CLOSED: 1}


_few = st.integers(1, 7)
_storms = st.tuples(
    st.lists(st.none() | _few, min_size=7, max_size=7),
    st.lists(st.builds(SupersedeFrame, old=_few, new=_few) | st.builds(DeleteFrame, frame=_few)),
).map(lambda drawn: events_of([*(PutFrame(text="", parent=p) for p in drawn[0]), *drawn[1]]))


@given(_storms)
def test_no_frame_ever_takes_its_own_place_by_a_detour(events: list[Folded]) -> None:
    # Seven frames below each other, closed in every order: chains end, and are the reference's.
    frames = fold(events)[0].snapshot()
    for n in range(7, len(events) + 1):
        model = Model.of(events[:n])
        for frame in range(1, 8):
            closing = frames.closing_of(frame, n)
            assert (closing and (closing.seq, closing.by)) == model.closing_of(frame)
            chain = successors(frames, frame, n)
            assert chain == model.successors(frame)
            assert predecessors(frames, frame, n) == model.predecessors(frame)
            assert frame not in chain
            assert not chain or successors(frames, chain[-1], n) == []


def test_a_frame_superseded_by_what_it_replaced_is_an_anomaly() -> None:
    events = events_of(
        [
            PutFrame(text="a"),
            PutFrame(text="b"),
            SupersedeFrame(old=1, new=2),
            SupersedeFrame(old=2, new=1),
            SupersedeFrame(old=2, new=2),
        ]
    )
    frames = fold(events)[0].snapshot()
    assert frames.anomalies(5) == {FrameAnomaly.CYCLE: 2}
    assert frames.alive(5).tolist() == [False, True]
    assert (successors(frames, 1, 5), predecessors(frames, 2, 5)) == ([2], {1})


@given(histories)
def test_a_row_says_what_its_event_said(events: list[Folded]) -> None:
    frames = fold(events)[0].snapshot()
    for event in events:
        if event.type != "putFrame":
            continue
        body, row = event.body, frames.frame(event.seq)
        assert row is not None
        assert (row.frame, row.recorded, row.scope) == (event.seq, event.recorded, event.scope)
        if not isinstance(body, PutFrame):
            assert (row.kind, row.uri, row.tags, row.has_text) == (None, None, (), False)
            continue
        for name in _SAID:
            assert getattr(row, name) == getattr(body, name), name
        assert row.parent == (body.parent or None)
        assert (row.has_text, row.has_blob) == (body.text is not None, body.blob is not None)
        assert row.has_search_text == (body.search_text is not None)


_SAID = (
    *("kind", "role", "uri", "title", "tags", "labels", "track"),
    *("chunk_index", "chunk_count", "content_dates", "created", "expires"),
)


def in_space(space: str) -> Embedding:
    return Embedding(space, "f4", 1, Attachment(bytes(32), 4))


def test_spaces_are_numbered_by_the_event_that_names_them_first() -> None:
    # Births of a batch are folded before the rest; numbered as they were met, digests differed.
    events = events_of(
        [
            PutFrame(text="a"),
            PutEmbedding(frame=1, embedding=in_space("later")),
            PutFrame(text="b", embedding=in_space("own")),
        ]
    )
    assert fold(events)[0].digest() == fold(events, [1, 2])[0].digest()


def test_a_scope_with_true_is_not_one_with_1_however_it_is_folded() -> None:
    """They are equal in Python: taken for each other, a fold and one restored would differ."""
    values: tuple[ScopeValue, ...] = (True, 1, True, 1, "1")
    events = [
        replace(event, scope=(("tenant", "t"), ("a", value)))
        for event, value in zip(events_of([PutFrame(text="x")] * 5), values, strict=True)
    ]
    whole, first, restored = FramesProjection(), FramesProjection(), FramesProjection()
    whole.apply(events)
    first.apply(events[:1])
    restored.load(first.chunk(0))
    restored.apply(events[1:])
    assert whole._columns.scope.view().tolist() == [1, 2, 1, 2, 3]
    assert restored.digest() == whole.digest()


def test_embeddings_are_known_by_space_and_from_when_they_came() -> None:
    events = events_of(
        [
            PutFrame(text="a", embedding=in_space("small")),
            PutFrame(text="b"),
            PutEmbedding(frame=2, embedding=in_space("large")),
            PutEmbedding(frame=1, embedding=in_space("large")),
            PutEmbedding(frame=9, embedding=in_space("large")),
        ]
    )
    frames = fold(events)[0].snapshot()
    assert frames.embedded(2).tolist() == [True, False]
    assert frames.embedded(3).tolist() == [True, True]
    assert frames.embedded(3, "large").tolist() == [False, True]
    assert frames.embedded(5, "large").tolist() == [True, True]
    assert frames.embedded(5, "unheard of").tolist() == [False, False]
    assert frames.anomalies(5) == {FrameAnomaly.UNKNOWN_REFERENCE: 1}


def test_what_cannot_be_followed_is_counted_and_passed_over() -> None:
    events = events_of(
        [Erased(bytes(32)), PutFrame(text="a", parent=9), DeleteFrame(frame=3), Gap(reason="lost")]
    )
    frames = fold(events)[0].snapshot()
    assert frames.anomalies(4) == {FrameAnomaly.ERASED: 1, FrameAnomaly.UNKNOWN_REFERENCE: 2}
    # Only closed frames are erased.
    assert frames.alive(4).tolist() == [False, True]
    assert frames.children(9, 4) == []


def test_equal_content_is_found_while_it_is_current() -> None:
    content = bytes(range(16))
    events = events_of(
        [
            PutFrame(text="a", content_hash=content),
            PutFrame(text="b", content_hash=content[:8] + bytes(8)),
            PutFrame(text="a", content_hash=content),
            DeleteFrame(frame=1),
        ]
    )
    frames = fold(events)[0].snapshot()
    assert frames.find_content(content, 3) == [1, 3]
    assert frames.find_content(content, 4) == [3]
    assert frames.find_content(bytes(16), 4) == []


def test_a_snapshot_is_not_moved_by_the_fold_that_goes_on() -> None:
    # Views hold snapshots while other threads fold.
    first = [PutFrame(text="index one"), PutFrame(text="index two", parent=1)]
    events = events_of([*first, *(PutFrame(text="index", parent=1) for _ in range(50))])
    events += events_of([*(e.body for e in events), DeleteFrame(frame=1)])[-1:]
    frames, fulltext = FramesProjection(), FulltextProjection()
    frames.apply(events[:2])
    fulltext.apply(events[:2])
    table, index = frames.snapshot(), fulltext.snapshot()
    frames.apply(events[2:])
    fulltext.apply(events[2:])
    fulltext.snapshot()
    assert table.alive(2).tolist() == [True, True]
    assert table.children(1, 2) == [2]
    assert table.closing_of(1, 2) is None
    assert len(index.view(table.alive(2)).search("index")) == 2


def test_readers_in_other_threads_see_one_state_while_the_fold_goes_on() -> None:
    # Columns grow, pieces merge and hashes are sorted under the readers' hands.
    bodies = [
        PutFrame(text=f"index w{i % 89}", content_hash=bytes([i % 7]) * 16) for i in range(9_000)
    ]
    events = events_of([*bodies, *(DeleteFrame(frame=i) for i in range(1, 3_000))])
    frames, fulltext = FramesProjection(), FulltextProjection()
    frames.apply(events[:5_000])
    fulltext.apply(events[:5_000])
    table, index = frames.snapshot(), fulltext.snapshot()

    def read() -> tuple[list[int], list[int], int]:
        view = index.view(table.alive(5_000))
        found = view.search("w7 w30", k=20).rows.tolist()
        return found, table.find_content(b"\x03" * 16, 5_000), len(table.children(1, 5_000))

    expected = read()
    with ThreadPoolExecutor(3) as pool:
        readings = [pool.submit(read) for _ in range(200)]
        for start in range(5_000, len(events), 50):
            frames.apply(events[start : start + 50])
            fulltext.apply(events[start : start + 50])
            fulltext.snapshot()
        assert [reading.result() for reading in readings] == [expected] * 200


def test_ranking_admits_what_it_is_told_to_and_keeps_its_scores() -> None:
    # A filter must not change statistics, only who may be returned.
    events = events_of([PutFrame(text=f"index {'memory ' * i}") for i in range(1, 30)])
    frames, fulltext = fold([*events])
    alive = frames.snapshot().alive(29)
    view = fulltext.snapshot().view(alive)
    everything = view.search("index", k=29)
    odd = alive.copy()
    odd[::2] = False
    some = view.search("index", k=29, among=odd)
    scores = dict(zip(everything.rows.tolist(), everything.scores.tolist(), strict=True))
    assert dict(zip(some.rows.tolist(), some.scores.tolist(), strict=True)) == {
        row: score for row, score in scores.items() if row % 2
    }
    assert view.search("the of", k=5).rows.tolist() == []
    assert len(view.search("index", k=99).rows) == 29
