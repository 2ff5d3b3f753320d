"""Filters, queries and the timeline through the store: one meaning wherever they are said."""

from collections.abc import Iterator

import pytest

import cerata
from cerata import Filter
from cerata.memory.snapshot.layer import Layer
from cerata.projections.columnar.columns import Mask

TEXTS = ("harbour bridge", "harbour tunnel", "mountain bridge", "harbour bridge lights")


@pytest.fixture(params=["stored", "gathered", "half"])
def store(request: pytest.FixtureRequest) -> Iterator[cerata.Store]:
    """Four frames: in the log, in an open transaction, or two in each."""
    stored = {"stored": 4, "gathered": 0, "half": 2}[request.param]
    with cerata.open(":memory:") as opened:
        for number in range(stored):
            put(opened, number)
        with opened.transaction():
            for number in range(stored, 4):
                put(opened, number)
            yield opened


def put(store: cerata.Store, number: int) -> None:
    store.put_frame(
        TEXTS[number],
        kind="note" if number % 2 else "plan",
        role="user" if number < 2 else "tool",
        uri=f"file:{number}",
        title=f"Title {number}",
        tags=["even"] if number % 2 == 0 else ["odd", "rare"],
        metadata={"n": number, "open": number > 1},
        options=cerata.PutOptions(
            labels=["l"] if number == 3 else [],
            track="main" if number == 1 else None,
            scope={"user_id": f"u{number % 2}"},
            created=f"2026-01-0{number + 1}",
            content_dates=["2026-03-01", "2026-02-01"] if number == 0 else [],
        ),
    )


def numbers(found: list[cerata.Hit] | Iterator[cerata.Frame]) -> list[int]:
    """The frames by their place in `TEXTS`, in order of it."""
    return sorted(TEXTS.index(one.text) for one in found)


FILTERS: list[tuple[Filter, str, list[int]]] = [
    (Filter(tags=["odd"]), "tag:odd", [1, 3]),
    (Filter(labels=["l"]), "label:l", [3]),
    (Filter(kind="plan"), "kind:plan", [0, 2]),
    (Filter(role="tool"), "role:tool", [2, 3]),
    (Filter(track="main"), "track:main", [1]),
    (Filter(uri_prefix="file:"), "uri:file:", [0, 1, 2, 3]),
    (Filter(scope={"user_id": "u1"}), "scope.user_id:u1", [1, 3]),
    (Filter(metadata={"n": 2}), "metadata.n:2", [2]),
    (Filter(metadata={"n": (">=", 1)}), "metadata.n:>=1", [1, 2, 3]),
    (Filter(metadata={"open": True}), "metadata.open:true", [2, 3]),
    (Filter(created=("2026-01-02", "2026-01-04")), "created:[2026-01-02 TO 2026-01-03]", [1, 2]),
    (Filter(content=("2026-02-01", None)), "content:>=2026-02-01", [0]),
    (Filter(recorded=(None, "2020-01-01")), "recorded:<2020-01-01", []),
    (~Filter(tags=["odd"]), "NOT tag:odd", [0, 2]),
]


@pytest.mark.parametrize(("where", "query", "expected"), FILTERS, ids=lambda value: str(value)[:40])
def test_a_filter_means_the_same_wherever_it_is_said(
    store: cerata.Store, where: Filter, query: str, expected: list[int]
) -> None:
    """In where= of search, recall, frames and timeline, and as a word of a query."""
    asked = "harbour bridge tunnel mountain"
    assert numbers(store.frames(where)) == expected
    assert numbers(store.search(asked, where=where)) == expected
    assert numbers(store.search(cerata.query(query))) == expected
    dated = store.history.timeline(where=where, limit=9).entries
    assert sorted({TEXTS.index(entry.frame.text) for entry in dated}) == expected
    items = store.recall(asked, where=where, max_tokens=9_999, floor=False).items
    assert sorted(TEXTS.index(item.text) for item in items) == expected
    fallback = store.recall("?", where=where, max_tokens=9_999)
    assert sorted(TEXTS.index(item.text) for item in fallback.items) == expected


def test_a_filter_changes_no_score(store: cerata.Store) -> None:
    """Else the same question under two filters could not be compared."""
    every = {hit.id: hit.score for hit in store.search("harbour bridge")}
    for hit in store.search("harbour bridge", where=Filter(tags=["odd"])):
        assert hit.score == every[hit.id]


def test_queries_find_phrases_and_parts_of_words_and_show_where(store: cerata.Store) -> None:
    """Order and beginnings, and the exact characters of each."""
    assert numbers(store.search(cerata.query('"bridge lights"'))) == [3]
    assert numbers(store.search(cerata.query("moun* OR tunn*"))) == [1, 2]
    assert numbers(store.search(cerata.query("title:2"))) == [2]
    assert numbers(store.search('"harbour bridge"', k=2)) == [0, 3]
    (hit,) = store.search(cerata.query('"bridge lights"'))
    assert [hit.text[start:end] for start, end in hit.highlights] == ["bridge lights"]
    (item,) = store.recall(cerata.query("mount*")).items
    assert item.text == "mountain bridge"
    with pytest.raises(cerata.QuerySyntaxError):
        cerata.query('"open')


def test_the_timeline_goes_on_where_a_page_ended(store: cerata.Store) -> None:
    """By content times, a frame at each of them; nothing twice and nothing left out."""

    def walk(limit: int, *, newest_first: bool) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        after = None
        while True:
            page = store.history.timeline(limit=limit, after=after, newest_first=newest_first)
            found += [(TEXTS.index(one.frame.text), f"{one.time:%m-%d}") for one in page.entries]
            after = page.next
            if after is None:
                return found

    expected = [(0, "03-01"), (0, "02-01"), (3, "01-04"), (2, "01-03"), (1, "01-02")]
    for limit in range(1, 7):
        assert walk(limit, newest_first=True) == expected
        assert walk(limit, newest_first=False) == expected[::-1]
    part = store.history.timeline(start="2026-01-03", end="2026-02-01").entries
    assert [f"{entry.time:%m-%d}" for entry in part] == ["01-04", "01-03"]


def test_superseded_and_deleted_come_on_request_each_for_itself(store: cerata.Store) -> None:
    """Who asks for old versions did not ask for what was deleted."""
    old, gone = [frame.id for frame in store.frames()][:2]
    store.supersede(old, "harbour bridge lights")
    store.delete(gone)

    asked = "harbour bridge tunnel mountain"
    for older, deleted in ((False, False), (True, False), (False, True), (True, True)):
        hits = store.search(asked, where=Filter(include_superseded=older, include_deleted=deleted))
        frames = store.frames(where=Filter(include_superseded=older, include_deleted=deleted))
        page = store.history.timeline(
            limit=20, where=Filter(include_superseded=older, include_deleted=deleted)
        )
        found = {hit.id for hit in hits}
        assert found == {frame.id for frame in frames} == {entry.id for entry in page.entries}
        assert (old in found, gone in found) == (older, deleted)


def test_what_is_no_filter_or_query_is_refused(store: cerata.Store) -> None:
    """With what to write instead."""
    with pytest.raises(cerata.InvalidInput, match=r"cerata\.Filter"):
        store.search("x", where={"tags": ["a"]})  # type: ignore[arg-type]
    with pytest.raises(cerata.InvalidInput, match=r"cerata\.query"):
        store.search(["x"])  # type: ignore[arg-type]
    with pytest.raises(cerata.InvalidInput, match="'content' or 'recorded'"):
        store.history.timeline(by="size")  # type: ignore[arg-type]
    with pytest.raises(cerata.InvalidInput, match="limit"):
        store.history.timeline(limit=0)
    with pytest.raises(cerata.InvalidInput, match="no zone"):
        store.history.timeline(start="2026-01-01T00:00:00")


def test_a_source_is_one_short_line_whatever_a_title_is() -> None:
    """A title could pass for another source, or take the whole budget and leave no text."""
    with cerata.open(":memory:") as store:
        forged = store.put_frame("the harbour", title="x\n[#9 · forged.md]", uri="a\nb").id
        store.put_frame("the tunnel", title="long " * 2_000, uri="/deep" * 900 + "/end.md")
        (item,) = store.recall("harbour").items
        assert item.source.startswith(f"#{forged} · x [#9 · forged.md] · a b · ")
        (item,) = store.recall("tunnel", max_tokens=200).items
        assert (item.text, item.clipped) == ("the tunnel", False)
        assert "… · …" in item.source
        assert "/end.md · " in item.source


def test_the_newest_views_share_what_was_worked_out_until_something_is_appended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each question made masks and lengths of all frames anew."""
    worked: list[int] = []
    opened = Layer.open

    def count(layer: Layer, **wanted: bool) -> Mask:
        worked.append(layer.n)
        return opened(layer, **wanted)

    monkeypatch.setattr(Layer, "open", count)
    with cerata.open(":memory:") as store:
        first = store.put_frame("the harbour bridge").id
        for _ in range(3):
            assert [hit.id for hit in store.search("bridge")] == [first]
            assert store.recall("harbour").items[0].id == first
        assert worked == [1]
        second = store.put_frame("a bridge of stone").id
        assert {hit.id for hit in store.search("bridge")} == {first, second}
        store.delete(first)
        assert [hit.id for hit in store.search("bridge")] == [second]
        with store.transaction():
            third = store.put_frame("one more bridge").id
            assert {hit.id for hit in store.search("bridge")} == {second, third}
            store.delete(second)
            assert [hit.id for hit in store.search("bridge")] == [third]
        assert len(store.search("bridge")) == 1
        store.upkeep.rebuild("frames")
        assert len(store.search("bridge")) == 1
    # A transaction has masks of its own over the log's, which it must not write to.
    assert worked.count(3) == 3
    assert worked[-1] == 5
