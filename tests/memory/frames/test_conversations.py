"""Conversations: messages in and out, the last turns, and the neighbours of a frame."""

from typing import Any

import pytest

import cerata
from cerata import Filter, Store, agents
from cerata.engine.events import RecallContext
from cerata.memory.snapshot.snapshot import Snapshot

TOOLS: list[dict[str, Any]] = [
    {"role": "user", "content": "What is the weather?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "Rain."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "And this sky?"},
            {"type": "image_url", "image_url": {"url": "https://example.org/sky.png"}},
        ],
    },
    {"role": "assistant", "content": "It clears up.", "name": "forecaster"},
]


def chat(store: Store, *texts: str, track: str = "chat") -> cerata.Receipt:
    roles = ("user", "assistant")
    return agents.remember_messages(
        store,
        [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)],
        track=track,
    )


def test_messages_come_back_as_they_were(store: Store) -> None:
    """Calls of tools, images and names are members that a text alone would lose."""
    receipt = agents.remember_messages(store, TOOLS, track="chat", tags=["weather"])
    assert len(receipt.ids) == len(TOOLS)
    assert agents.messages(store) == TOOLS
    assert agents.messages(store, 2) == TOOLS[-2:]
    frame = store.frame(receipt.ids[3])
    assert (frame.text, frame.kind, frame.tags) == ("And this sky?", "message", ("weather",))
    assert next(iter(store.search("sky"))).id == receipt.ids[3]


def test_a_key_stores_messages_once(store: Store) -> None:
    first = agents.remember_messages(store, TOOLS, key="turn 1")
    again = agents.remember_messages(store, TOOLS, key="turn 1")
    assert (again.ids, again.added) == (first.ids, False)
    with pytest.raises(cerata.IdempotencyConflict):
        agents.remember_messages(store, TOOLS[:1], key="turn 1")
    assert len(store) == len(TOOLS)


@pytest.mark.parametrize(
    ("message", "what"),
    [
        ("Hello.", "message 2 must be a mapping"),
        ({"content": "Hello."}, "The role of message 2 must be a string"),
        ({"role": " ", "content": "Hello."}, "The role of message 2"),
        ({"role": "user"}, "The content of message 2 is empty"),
        ({"role": "user", "content": "  "}, "The content of message 2 is empty"),
        ({"role": "user", "content": []}, "The content of message 2 is empty"),
        ({"role": "user", "content": 3}, "a string or a list of parts, not int"),
        ({"role": "user", "content": [3]}, "A part of message 2 must be a mapping"),
        ({"role": "user", "content": [{"text": "Hello."}]}, "a mapping with a type"),
        ({"role": "user", "content": "\ud800"}, "The content of message 2 is not valid Unicode"),
    ],
)
def test_a_message_that_is_none_is_refused_with_its_place(
    store: Store, message: Any, what: str
) -> None:
    """Nothing of the batch is written."""
    with pytest.raises(cerata.InvalidInput, match=what):
        agents.remember_messages(store, [{"role": "user", "content": "Hello."}, message])
    nothing: list[Any] = [[], "Hello.", None]
    for none in nothing:
        with pytest.raises(cerata.InvalidInput):
            agents.remember_messages(store, none)
    assert store.head.seq == 0


def test_the_last_turns_are_in_order(store: Store) -> None:
    """The last four turns needed newest_first and reversed()."""
    chat(store, "one", "two", "three")
    chat(store, "other", track="elsewhere")
    chat(store, "four")
    assert [frame.text for frame in store.history.last(2, track="chat")] == ["three", "four"]
    assert [frame.text for frame in store.history.last(2)] == ["other", "four"]
    assert [frame.text for frame in store.history.last(9, where=Filter(role="assistant"))] == [
        "two"
    ]
    assert [frame.text for frame in store.at(3).history.last(2)] == ["two", "three"]
    assert agents.messages(store, 1, track="chat") == [{"role": "user", "content": "four"}]
    with pytest.raises(cerata.InvalidInput):
        store.history.last(0)
    with pytest.raises(cerata.InvalidInput):
        agents.messages(store, -1)


def test_the_last_turns_include_those_of_a_transaction(store: Store) -> None:
    chat(store, "one", "two")
    with store.transaction():
        chat(store, "three")
        assert [frame.text for frame in store.history.last(2, track="chat")] == ["two", "three"]
        assert [
            frame.text for frame in store.history.around(store.history.last(1)[0], before=5)
        ] == [
            "one",
            "two",
            "three",
        ]
        assert [frame.text for frame in store.history.around(2, after=5)] == ["one", "two", "three"]


def test_a_turn_has_neighbours_in_its_track(store: Store) -> None:
    first = chat(store, "one", "two", "three")
    chat(store, "other", track="elsewhere")
    last = chat(store, "four")
    two = first.ids[1]
    assert [frame.text for frame in store.history.around(two)] == ["one", "two", "three"]
    assert [frame.text for frame in store.history.around(two, before=0, after=2)] == [
        "two",
        "three",
        "four",
    ]
    assert [frame.text for frame in store.history.around(last, after=9)] == ["three", "four"]
    store.delete(first.ids[2])
    assert [frame.text for frame in store.history.around(last)] == ["two", "four"]
    assert [frame.text for frame in store.at(5).history.around(two)] == ["one", "two", "three"]
    alone = store.put_frame("alone")
    assert [frame.text for frame in store.history.around(alone)] == ["alone"]
    with pytest.raises(cerata.InvalidInput, match="before must be"):
        store.history.around(two, before=-1)
    with pytest.raises(cerata.NotFound):
        store.history.around(99)


def document(store: Store) -> list[int]:
    """Return the chunks of a document of many paragraphs."""
    paragraphs = [f"Part {place} is about {word}. " * 60 for place, word in enumerate(WORDS)]
    return [*store.files.chunks(store.remember("\n\n".join(paragraphs))).values()]


WORDS = ("iron", "copper", "silver", "gold", "lead", "tin")


def test_a_chunk_has_neighbours_in_its_document(store: Store) -> None:
    chunks = document(store)
    assert len(chunks) > 3
    assert [frame.id for frame in store.history.around(chunks[1])] == chunks[:3]
    assert [frame.id for frame in store.history.around(chunks[0], after=2)] == chunks[:3]
    assert [frame.id for frame in store.history.around(chunks[-1], before=99)] == chunks


def test_a_context_lists_the_chunks_of_a_document_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred hits of one document listed its thousands of chunks a hundred times."""
    text = "\n\n".join(f"## Part {number}\n" + "spare key " * 300 for number in range(8))
    documents = [store.remember(text + mark, uri=mark).ids[0] for mark in "ab"]
    expected = store.recall("key", layout=cerata.Layout(neighbours=2))
    listed: list[int] = []
    chunks_of = Snapshot.chunks_of

    def counted(snapshot: Snapshot, document: int) -> dict[int, int]:
        listed.append(document)
        return chunks_of(snapshot, document)

    monkeypatch.setattr(Snapshot, "chunks_of", counted)
    assert store.recall("key", layout=cerata.Layout(neighbours=2)).text == expected.text
    assert sorted(listed) == documents


PARTS = ("paint", "anchor chain", "rope", "tools", "sails")


def test_a_context_may_have_the_neighbours_of_its_hits(store: Store) -> None:
    """The answer to a question is often the next turn, which shares no word with the question."""
    chat(store, "Where is the spare key?", "Under the blue pot.", "Thanks!")
    chat(store, "Something else entirely.", track="elsewhere")
    manual = "\n\n".join(
        f"Part {number} is about {word}. " * 90 for number, word in enumerate(PARTS)
    )
    store.remember(manual, title="Manual")
    alone = store.recall("anchor chain", max_tokens=9_999)
    context = store.recall(
        "anchor chain", max_tokens=9_999, record=True, layout=cerata.Layout(neighbours=1)
    )
    ids, more = (
        {number for item in each.items for number in (item.id, *item.joined)}
        for each in (alone, context)
    )
    assert ids < more
    assert context.recorded is not None
    event = next(store.log(context.recorded, context.recorded)).body
    assert isinstance(event, RecallContext)
    assert event.neighbours == 1
    users = store.recall(
        "the spare key", where=Filter(role="user"), layout=cerata.Layout(neighbours=1)
    )
    assert "blue pot" not in users.text
    with pytest.raises(cerata.InvalidInput, match="neighbours"):
        store.recall("key", layout=cerata.Layout(neighbours=-1))


def test_a_recall_may_show_superseded_frames(store: Store) -> None:
    """An audit asks what was known; the old version is marked, and the event repeats it."""
    old = store.put_frame("The index is Annoy.")
    new = store.supersede(old, "The choice is HNSW.")
    assert "Annoy" not in store.recall("Annoy index").text
    context = store.recall("Annoy index", record=True, where=Filter(include_superseded=True))
    assert f"superseded by #{new.ids[0]}" in context.text
    assert context.recorded is not None
    event = next(store.log(context.recorded, context.recorded)).body
    assert isinstance(event, RecallContext)
    assert event.include_superseded
    again = store.at(event.basis).recall(
        event.query, where=Filter(include_superseded=event.include_superseded)
    )
    assert again.text == context.text
