"""Lines of facts that come again, after a stop, or twice at once: each is there once."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, ClassVar

import pytest

import cerata
from cerata import Entity, InvalidInput, Store
from cerata.engine.events import Event, ImportBatch
from cerata.fault_injection.testing import Workload, assert_crash_safe, operation
from cerata.memory.batch.session import WriteSession
from cerata.memory.facts import importing as fact_import
from cerata.memory.facts.importing import BATCH_LINES

from ...engine.words import erasing
from .json_lines import line


def said(store: Store) -> list[Event]:
    """Return the events of a memory that lines became."""
    return [event for event in store.log() if not isinstance(event.body, ImportBatch)]


def test_the_same_lines_again_add_nothing(store: Store, copy: Store) -> None:
    for name in ("ann", "bob"):
        store.assert_fact(name, "likes", "tea")
    lines = list(store.interchange.export_facts())
    first = copy.interchange.import_facts(lines)
    again = copy.interchange.import_facts(lines)
    assert (first.added, first.known, again.added, again.known) == (2, 0, 0, 2)
    assert first.head == again.head == copy.head.seq


def test_later_lines_add_what_is_new(store: Store, copy: Store) -> None:
    """The batches that are the same are passed over, and ids in them are still known."""
    first = store.graph.assert_many([(f"n{number}", "is", number) for number in range(BATCH_LINES)])
    copy.interchange.import_facts(store.interchange.export_facts())
    store.assert_fact("x", "follows from", "n0", options=cerata.FactOptions(because=first))
    done = copy.interchange.import_facts(store.interchange.export_facts())
    assert (done.added, done.known) == (1, BATCH_LINES)
    assert copy.facts("x")[0].depth == 1


def test_a_longer_export_adds_its_new_lines_alone(store: Store, copy: Store) -> None:
    """Also within the batch that the last one ended with, and of what cannot be said twice."""
    first = store.assert_fact("ann", "is", Entity("bob"))
    store.graph.merge("ann", "bob")
    wrong = store.assert_fact("ann", "likes", "tea")
    store.retract_fact(wrong)
    known, lines = 0, list[str]()
    for number in range(4):
        lines = list(store.interchange.export_facts(history=True))
        done = copy.interchange.import_facts(lines)
        assert (done.added, done.known) == (len(lines) - 1 - known, known)
        known = len(lines) - 1
        again = copy.interchange.import_facts(lines)
        assert (again.added, again.known, again.head) == (0, known, done.head)
        assert len(said(copy)) == known
        store.assert_fact(
            f"n{number}", "follows from", "it", options=cerata.FactOptions(because=first)
        )
    assert [one.depth for one in copy.facts(include_retracted=True)] == [0, 0, 1, 1, 1]
    # An earlier one again: all of its lines are there.
    assert copy.interchange.import_facts(lines[:-2]).known == known - 2
    # And what is there in two batches goes on into a third.
    store.graph.assert_many([(f"m{number}", "is", number) for number in range(BATCH_LINES)])
    done = copy.interchange.import_facts(store.interchange.export_facts(history=True))
    assert (done.added, done.known) == (BATCH_LINES + 1, known)
    assert len(copy.facts()) == len(store.facts())


def test_a_longer_export_of_several_tenants_is_known_again(copy: Store) -> None:
    """A batch's key is in the tenant of its first line, whichever that was."""
    each = [
        line(id=number, subject=f"n{number}", scope={"tenant": f"t{number % 3}"})
        for number in range(9)
    ]
    for end in (2, 3, 7, 8, 9):
        copy.interchange.import_facts(each[:end])
        assert (copy.interchange.import_facts(each[:end]).known, len(said(copy))) == (end, end)


def test_two_who_import_at_once_say_each_line_once(
    copy: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One finds nothing there, and then the other was quicker and had cut the batch in two."""
    each = [line(id=number, subject=f"n{number}") for number in range(6)]
    each.append(line(id=9, subject="last", because=5))
    whole = WriteSession.transaction

    @contextmanager
    def late(*given: Any, **how: Any) -> Generator[Any]:
        monkeypatch.setattr(WriteSession, "transaction", whole)
        copy.interchange.import_facts(each[:4])
        copy.interchange.import_facts(each)
        with whole(*given, **how) as transaction:
            yield transaction

    monkeypatch.setattr(WriteSession, "transaction", late)
    done = copy.interchange.import_facts(each)
    assert (done.added, done.known, len(said(copy))) == (0, 7, 7)


def test_a_merge_that_holds_is_no_conflict_for_other_lines(copy: Store) -> None:
    """A later export may have other lines before it, where something was retracted since."""
    merge = '{"type":"merge","version":1,"entity":"ann","into":"bob"}'
    facts = [line(id=number, object=f"o{number}") for number in range(3)]
    copy.interchange.import_facts([line(id=9, subject="bob"), *facts, merge])
    done = copy.interchange.import_facts([line(id=9, subject="bob"), *facts[1:], merge])
    assert (done.added, done.known) == (4, 0)
    assert len(copy.facts()) == 4
    assert copy.graph.entity("ann").name == "bob"


class Stopped(Exception):
    """The lines end in the middle."""


def broken(lines: Sequence[str], count: int) -> Iterator[str]:
    yield from islice(lines, count)
    raise Stopped


def test_an_import_that_was_stopped_goes_on(store: Store, copy: Store) -> None:
    """Whole batches are there, the last one not begun; the second call adds the rest once."""
    store.graph.assert_many(
        [(f"n{number}", "is", number) for number in range(2 * BATCH_LINES + 500)]
    )
    lines = list(store.interchange.export_facts())
    told = list[tuple[int, int]]()
    with pytest.raises(Stopped):
        copy.interchange.import_facts(
            broken(lines, 2200), progress=lambda lines, size: told.append((lines, size))
        )
    assert len(copy.facts()) == 2 * BATCH_LINES
    assert [one[0] for one in told] == [BATCH_LINES + 1, 2 * BATCH_LINES + 1]
    done = copy.interchange.import_facts(lines)
    assert (done.added, done.known) == (500, 2 * BATCH_LINES)
    assert [one.object for one in copy.facts()] == list(range(2 * BATCH_LINES + 500))


class Imports(Workload):
    """Imports the same lines, over and over."""

    lines: ClassVar = [
        *(line(id=number, subject=f"n{number}", object=str(number)) for number in range(7)),
        '{"type":"retraction","version":1,"id":90,"fact":5}',
        line(id=91, subject="n7", object="7", because=0),
    ]

    @operation
    def bring(self, store: Store) -> None:
        """Whatever was there before, all of it is there afterwards, and once."""
        store.interchange.import_facts(self.lines)
        assert [one.object for one in store.facts()] == ["0", "1", "2", "3", "4", "6", "7"]
        assert store.facts("n7")[0].depth == 1

    def check(self, store: Store) -> None:
        """Whole batches are there, in order, and nothing of the next."""
        there = [one.subject for one in store.facts(include_retracted=True)]
        assert there == [f"n{number}" for number in range(8)][: len(there)]
        # Batches end after the lines 2, 4, 6, 8 and 9, of which the eighth is no fact.
        assert len(there) in (0, 2, 4, 6, 7, 8)
        assert len(there) < 7 or not store.graph.versions("n5")[0].is_known


def test_a_crash_leaves_whole_batches_of_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """At every point of every write, in batches of two lines."""
    monkeypatch.setattr(fact_import, "BATCH_LINES", 2)
    report = assert_crash_safe(Imports, stories=6)
    assert report.states > 100


def test_the_key_of_a_batch_stands_in_an_event_that_goes_with_it(
    copy: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a hash of the lines, and of those of the batches before: an erasure takes it along."""
    monkeypatch.setattr(fact_import, "BATCH_LINES", 2)
    each = [line(id=number, subject=f"n{number}") for number in range(5)]
    copy.interchange.import_facts(each)
    events = list(copy.log())
    payloads = [event.payload for event in events]
    keyed = [one.seq for one, what in zip(events, payloads, strict=True) if what and what.key]
    assert keyed == [1, 4, 7]
    assert [event.body for event in events if event.seq in keyed] == [
        ImportBatch(dialect="cerata-facts", count=2),
        ImportBatch(dialect="cerata-facts", count=2, after=1),
        ImportBatch(dialect="cerata-facts", count=1, after=4),
    ]
    assert copy.interchange.import_facts(each).known == 5
    # The next one goes on from the last that is there.
    copy.interchange.import_facts([*each, line(id=5, subject="n5"), line(id=6, subject="n6")])
    later = [event.body for event in copy.log(9) if isinstance(event.body, ImportBatch)]
    assert [one.after for one in later] == [7, 9]


def test_after_an_erasure_the_same_lines_are_new(copy: Store) -> None:
    """The key went with the importBatch."""
    each = [line(id=number, subject=f"n{number}") for number in range(3)]
    with erasing():
        copy.interchange.import_facts(each)
    done = copy.interchange.import_facts(each)
    assert (done.added, done.known, len(copy.facts())) == (3, 0, 3)


def test_two_exports_after_each_other_keep_their_ids_apart(store: Store, copy: Store) -> None:
    store.assert_fact("ann", "likes", "tea")
    with cerata.open(":memory:") as other:
        cause = other.assert_fact("bob", "likes", "tea")
        other.assert_fact("bob", "buys", "tea", options=cerata.FactOptions(because=cause))
        lines = [*store.interchange.export_facts(), *other.interchange.export_facts()]
    copy.interchange.import_facts(lines)
    assert [(str(one), one.depth) for one in copy.facts("bob")] == [
        ("bob · likes · tea", 0),
        ("bob · buys · tea", 1),
    ]


def test_the_same_fact_is_not_there_twice(store: Store, copy: Store) -> None:
    """Another file that says it adds what it knows of it."""
    copy.interchange.import_facts(
        [line(valid={"start": "2020-01-01", "end": None}, confidence=0.5)]
    )
    copy.interchange.import_facts(
        [line(valid={"start": "2020-01-01", "end": None}, assumptions=["a"])]
    )
    [fact] = copy.facts()
    assert (fact.confidence, fact.assumptions) == (1.0, ("a",))


def test_an_import_is_not_part_of_a_transaction(store: Store) -> None:
    with store.transaction(), pytest.raises(InvalidInput, match="cannot run in a transaction"):
        store.interchange.import_facts([line()])
