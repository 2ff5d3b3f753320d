"""No plain hash of content is stored beside it: a guess at erased content cannot be tested.

The formulas are those of docs/format.md, computed here without Cerata.
"""

from collections.abc import Sequence

import pytest
from blake3 import blake3
from msgspec.structs import replace

import cerata
from cerata import IdempotencyConflict, InvalidInput, Store
from cerata.engine.events import AssertFact, Draft, Erased, Event, Evidence, PutFrame, RecallContext
from cerata.engine.log import Log
from cerata.memory.batch.transaction import block_of

from ..engine.words import erasing

PIN = "The PIN of Ann is 4711."


def plain_hashes(*contents: bytes) -> list[bytes]:
    return [blake3(content).digest()[:16] for content in contents]


def holds(event: Event, hashes: Sequence[bytes]) -> bool:
    return any(one in (event.payload_bytes or b"") for one in hashes)


def test_no_event_holds_a_plain_hash_of_what_another_says(store: Store) -> None:
    """Each of the three did: the quote, the arguments of a batch, and the text of a recall."""
    frame = store.put_frame(PIN).id
    store.assert_fact("ann", "has the PIN", "4711", evidence=[(frame, 18, 22)])
    context = store.recall("PIN", record=True)
    with store.transaction(key="k"):
        store.put_frame("first")
        store.assert_fact("bob", "has the PIN", "4712")
    guesses = plain_hashes(PIN.encode(), b"4711", context.text.encode())
    assert [holds(event, guesses) for event in store.log()] == [False] * 5
    # A hash that a caller stores beside the content is seen.
    store.append(PutFrame(text=PIN, content_hash=cerata.content_hash(PIN)))
    assert holds([*store.log()][-1], guesses)


def test_the_formulas_are_those_of_the_page(store: Store) -> None:
    with store.transaction(key="k") as tx:
        frame = store.put_frame(PIN)
        store.assert_fact("ann", "has the PIN", "4711", evidence=[(frame, 18, 22)])
        store.recall("ann PIN", record=True)
        arguments = block_of(tx).arguments
        text = store.recall("ann PIN").text
    events = list(store.log())
    salts = [event.salt or b"" for event in events]
    payload, fact, recall = events[0].payload, events[1].body, events[2].body
    assert payload is not None
    assert arguments is not None
    assert payload.arguments == blake3(arguments + b"".join(salts)).digest()
    assert isinstance(fact, AssertFact)
    assert fact.evidence[0].quote == blake3(b"4711", key=salts[0] + bytes(16)).digest(16)
    assert isinstance(recall, RecallContext)
    assert (recall.frames, recall.facts) == ((1,), (2,))
    assert recall.context == blake3(salts[0] + salts[1] + text.encode()).digest()


def test_a_block_that_quotes_itself_is_known_again(store: Store) -> None:
    """Its frame has another salt each time it is run, and so has the quote of it."""

    def run() -> cerata.Receipt:
        with store.transaction(key="k") as tx:
            frame = store.put_frame(PIN)
            store.assert_fact("ann", "has the PIN", "4711", evidence=[(frame, 18, 22)])
        return tx.receipt

    assert (run().added, run().added, store.head.seq) == (True, False, 2)


def test_evidence_in_a_frame_that_is_erased_is_neither_intact_nor_changed(store: Store) -> None:
    """The key of its quote is gone."""
    with erasing():
        store.put_frame(PIN)
    store.append(
        AssertFact(
            subject="ann",
            predicate="has the PIN",
            object_kind="integer",
            object=4711,
            evidence=(Evidence(1, 18, 22, bytes(range(16))),),
        )
    )
    [said] = store.graph.evidence(store.facts("ann")[0])
    assert (said.text, said.is_intact) == (None, None)


def test_a_recall_of_what_is_erased_meanwhile_cannot_be_compared(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash over the salts that are left would confirm a guess at the rest of the text."""
    store.put_frame(PIN)
    store.put_frame("A PIN has four digits.")
    events_at = Log.events_at

    def erased(log: Log, seqs: Sequence[int]) -> list[Event]:
        return [
            replace(event, salt=None) if event.seq == 1 else event for event in events_at(log, seqs)
        ]

    monkeypatch.setattr(Log, "events_at", erased)
    store.recall("PIN", record=True)
    recall = list(store.log())[-1].body
    assert isinstance(recall, RecallContext)
    assert set(recall.frames) == {1, 2}
    assert recall.context == bytes(32)


def test_a_key_of_a_batch_that_lost_an_event_is_refused(store: Store) -> None:
    """By every way to use it; and the error says that it is for an erasure."""

    def put(text: str) -> None:
        with store.transaction(key="k"):
            store.put_frame("first")
            store.put_frame(text)

    with erasing(2):
        put(PIN)
    assert isinstance(list(store.log())[1].body, Erased)
    for text in (PIN, "The PIN of Ann is 4712."):
        with pytest.raises(IdempotencyConflict, match="lost event 2 to an erasure"):
            put(text)
    assert store.head.seq == 2


def test_a_salt_is_not_the_callers(store: Store) -> None:
    """The salt of an event that stays would give away one that was erased and had the same."""
    with pytest.raises(InvalidInput, match="must have no salt"):
        store.append(Draft(PutFrame(text="a"), salt=bytes(16)))
    with store.transaction(), pytest.raises(InvalidInput, match="must have no salt"):
        store.append(Draft(PutFrame(text="a"), salt=bytes(16)))


def test_the_salts_of_one_block_differ(store: Store) -> None:
    """Also if one draft is appended twice."""
    draft = Draft(PutFrame(text="a"))
    with store.transaction():
        store.append(draft, draft)
        store.append(draft)
    assert len({event.salt for event in store.log()}) == 3
