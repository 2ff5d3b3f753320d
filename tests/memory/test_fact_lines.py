"""Facts as JSON Lines: what a copy says is what was said, and no line half taken."""

import json
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import BytesIO, StringIO
from itertools import islice
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

import cerata
from cerata import Allen, Conflict, Entity, Fact, InvalidInput, Store, Unsupported, View
from cerata.engine.events import AssertFact, PutFrame
from cerata.fault_injection.testing import Workload, assert_crash_safe, operation
from cerata.memory import fact_import, fact_lines
from cerata.memory.appending import Appends
from cerata.memory.fact_import import BATCH_LINES
from cerata.memory.fact_lines import LINE_SIZE_MAX
from cerata.projections.scopes import by_name

from .fact_acts import Act
from .fact_answers import plain_period, value_in
from .fact_histories import BATCHES, run
from .fact_world import ALIASES, NAMES, VIEWS, environment, time_of

TEXT = "Ann lives in Big Blue."


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as opened:
        yield opened


@pytest.fixture
def copy() -> Iterator[Store]:
    with cerata.open(":memory:") as opened:
        yield opened


def line(**fields: object) -> str:
    """Return a fact's line with some fields that are not the usual ones."""
    usual = {"type": "fact", "version": 1, "id": 1, "subject": "ann", "predicate": "likes"}
    return json.dumps({**usual, "object": "tea", "object_kind": "string", **fields})


# --- a copy says the same ------------------------------------------------------------------------


class Said:
    """All that a view says, but for what is the copy's own: ids, known times, places of frames.

    What an id names is told by its place in the order of facts.
    """

    def __init__(self, view: View, *, history: bool) -> None:
        self.view = view
        facts = view.facts(include_retracted=history)
        # What is never true is not carried over.
        self.facts = [one for one in facts if not _is_empty(one)]
        self.counts_all = len(self.facts) == len(facts)
        self.place = {one.id: number for number, one in enumerate(self.facts)}
        self.history = history

    def fact(self, fact: Fact) -> tuple[object, ...]:
        return (
            self.place[fact.id],
            fact.subject,
            fact.predicate,
            value_in(fact.object),
            plain_period(fact.valid),
            plain_period(fact.stated),
            fact.confidence,
            fact.source,
            {(self._content(one.frame), one.start, one.end) for one in fact.evidence},
            set(fact.assumptions),
            # What led to a fact that was retracted is there with the history only.
            fact.depth if self.history else None,
            sorted(fact.scope.items(), key=repr),
            None if fact.ended_by is None else self.place[fact.ended_by],
            fact.is_known,
        )

    def _content(self, frame: int) -> bytes:
        return self.view.within(None).content(frame)

    def everything(self) -> dict[str, object]:
        """Return the facts, at instants and in periods too, contradictions and entities."""
        view, said = self.view, dict[str, object]()
        said["facts"] = [self.fact(one) for one in self.facts]
        for number in range(5):
            at = view.facts(valid_at=time_of(number))
            said[f"at {number}"] = [self.fact(one) for one in at]
            period = (time_of(number), time_of(number) + timedelta(seconds=1))
            during = view.facts(allen=(Allen.CONTAINS, period))
            said[f"during {number}"] = [self.fact(one) for one in during]
        said["conflicts"] = [
            (self.fact(one.first), self.fact(one.second), plain_period(one.period))
            for one in view.conflicts()
        ]
        said["entities"] = [(one.name, one.kind, one.aliases, one.names) for one in view.entities()]
        said["mentions"] = [one.mentions for one in view.entities()]
        for name in (*NAMES, *ALIASES, "carl", "dora"):
            said[f"resolve {name}"] = view.resolve(name)
        return said


def _is_empty(fact: Fact) -> bool:
    interval = fact.stated.interval
    return interval.start >= interval.end


def alike(view: View) -> bool:
    """Tell whether two facts differ only in that one was given what the other had from the clock.

    They are one in a copy (docs/facts.md).
    """
    seen = set[object]()
    for fact in view.facts(include_retracted=True):
        event = next(view.log(fact.id, fact.id))
        assert isinstance(event.body, AssertFact)
        body = event.body
        triple = (body.subject, body.predicate, body.object_kind, repr(body.object))
        # A line that follows its retraction is of another fact in any case.
        key = (by_name(event.scope), triple, plain_period(fact.stated))
        if fact.is_known or key in seen:
            if key in seen:
                return True
            seen.add(key)
    return False


def copied(view: View, *, history: bool) -> Store:
    """Return a memory with the same texts that has imported what a view exports."""
    clean, clock = environment()
    clock.time_us += 1_000_000_000
    opened = cerata.open(":memory:", environment=clean)
    texts = [event.body.text for event in view.log() if isinstance(event.body, PutFrame)]
    for text in dict.fromkeys(texts):
        opened.put_frame(text or "")
    opened.import_facts(view.export_facts(history=history))
    return opened


histories = settings(
    max_examples=int(os.environ.get("CERATA_HISTORIES", "10")),
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@histories
@given(batches=BATCHES)
def test_a_copy_says_what_was_said(batches: Sequence[Sequence[Act]]) -> None:
    """Also a copy of the past, in every scope, with and without what was retracted."""
    with run(batches, lambda _: None).open() as store:
        assume(not alike(store.view()))
        end = store.view().basis
        for basis in (end, end // 2):
            for history in (False, True):
                view = store.at(basis)
                with copied(view, history=history) as again:
                    for scope in VIEWS:
                        first = Said(view.within(scope), history=history)
                        other = Said(again.view().within(scope), history=history)
                        here, there = first.everything(), other.everything()
                        if not first.counts_all:
                            # What is never true is known where it was said, and mentions too.
                            del here["mentions"], there["mentions"]
                        assert there == here, (basis, history, scope)


# --- what is carried over, and what is not -------------------------------------------------------


def test_ids_and_known_times_are_the_copys_own(store: Store, copy: Store) -> None:
    store.put_frame("something else first")
    fact = store.assert_fact("ann", "likes", "tea", valid_from="2020-01-01")
    copy.import_facts(store.export_facts())
    [here], [there] = store.facts(), copy.facts()
    assert (here.id, there.id) == (fact.id, 1)
    assert here.known != there.known
    assert here.stated == there.stated


def test_a_start_that_the_clock_gave_is_kept(store: Store, copy: Store) -> None:
    """What was true from when it was recorded was so there, not from when it came here."""
    store.assert_fact("ann", "likes", "tea")
    copy.import_facts(store.export_facts())
    assert copy.facts()[0].valid == store.facts()[0].valid


@pytest.mark.parametrize(
    "value",
    [
        *("tea", "", "a\nb", "\u2028", "ä", 1, -(1 << 63), (1 << 63) - 1, 1.0, 0.1, 5e-324, 1e308),
        *(True, False, b"", b"\x00\xff", Entity("1"), datetime(1, 1, 1, tzinfo=UTC)),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ],
)
def test_every_kind_of_object_comes_back(store: Store, copy: Store, value: Any) -> None:
    store.assert_fact("ann", "is", value)
    copy.import_facts(store.export_facts())
    [found] = copy.facts()
    assert (type(found.object), found.object) == (type(value), value)


def test_evidence_is_found_by_its_content(store: Store, copy: Store) -> None:
    """Ids are others here; what is not here is counted, and the fact comes all the same."""
    frame, gone = store.put_frame(TEXT), store.put_frame("only there")
    store.assert_fact("ann", "lives in", "x", evidence=[(frame, 0, 3), gone])
    copy.put_frame("before")
    here = copy.put_frame(TEXT)
    done = copy.import_facts(store.export_facts())
    assert [(one.frame, one.start, one.end) for one in copy.facts()[0].evidence] == [
        (here.id, 0, 3)
    ]
    assert done.missing == 1


def test_evidence_in_a_chunk_is_found_by_its_document(store: Store, copy: Store) -> None:
    text = "\n\n".join(f"# Part {number}\n\n" + "word " * 300 for number in range(4))
    document = store.remember(text)
    chunk = store.chunks(document)[2]
    store.assert_fact("part", "has", "words", evidence=[(chunk, 2, 6)])
    copy.put_frame("before")
    lines = list(store.export_facts())
    other = copy.remember(text)
    assert copy.import_facts(lines).missing == 0
    assert copy.facts()[0].evidence[0].frame == copy.chunks(other)[2]


def test_evidence_of_another_tenant_is_not_taken(store: Store, copy: Store) -> None:
    frame = store.put_frame(TEXT)
    store.assert_fact("ann", "lives in", "x", evidence=[frame])
    copy.put_frame(TEXT, scope={"tenant": "other"})
    assert copy.import_facts(store.export_facts()).missing == 1
    assert copy.facts()[0].evidence == ()


def test_what_was_retracted_comes_with_the_history_alone(store: Store, copy: Store) -> None:
    wrong = store.assert_fact("ann", "likes", Entity("tea"), valid_from="2020-01-01")
    store.correct_fact(wrong, object=Entity("coffee"))
    copy.import_facts(store.export_facts())
    assert [str(one) for one in copy.facts(include_retracted=True)] == ["ann · likes · coffee"]
    # Who was named is there in the same order.
    assert [one.name for one in copy.entities()] == ["ann", "tea", "coffee"]
    with cerata.open(":memory:") as whole:
        whole.import_facts(store.export_facts(history=True))
        found = whole.facts(include_retracted=True)
        assert [(str(one), one.is_known) for one in found] == [
            ("ann · likes · tea", False),
            ("ann · likes · coffee", True),
        ]


def test_depth_follows_from_the_causes_that_come(store: Store, copy: Store) -> None:
    first = store.assert_fact("ann", "is", "tired")
    second = store.assert_fact("ann", "needs", "tea", because=first)
    store.correct_fact(second, object="coffee")
    copy.import_facts(store.export_facts(history=True))
    assert [one.depth for one in copy.facts(include_retracted=True)] == [0, 1, 1]


def test_a_split_of_what_does_not_come_leaves_its_names(store: Store, copy: Store) -> None:
    fact = store.assert_fact("ann", "likes", "tea")
    store.split_entity("ann", "other ann", [fact])
    store.retract_fact(fact)
    copy.import_facts(store.export_facts())
    assert [one.name for one in copy.entities()] == [one.name for one in store.entities()]
    assert [one.name for one in copy.entities()] == ["ann", "other ann"]


def test_merges_and_splits_that_ended_do_not_come(store: Store) -> None:
    facts = [store.assert_fact(name, "likes", "tea") for name in ("ann", "bob")]
    store.unmerge(store.merge_entities("ann", "bob"))
    store.unsplit(store.split_entity("ann", "carl", facts[:1]))
    assert kinds(store.export_facts()) == ["export", "fact", "fact"]


def kinds(lines: Iterator[str]) -> list[str]:
    return [json.loads(one)["type"] for one in lines]


def test_a_narrower_view_exports_its_own(store: Store, copy: Store) -> None:
    store.assert_fact("ann", "likes", "tea")
    store.assert_fact("ann", "likes", "milk", scope={"session": "s1"})
    view = store.view().within((("tenant", "default"), ("session", "s1")))
    copy.import_facts(view.export_facts())
    [fact] = copy.facts()
    assert (fact.object, dict(fact.scope)) == ("milk", {"tenant": "default", "session": "s1"})


def test_a_narrower_view_says_nothing_of_frames_that_it_hides(store: Store) -> None:
    """Neither the URI of another session's frame nor the hash of its content; all of it does."""
    fact = store.assert_fact("ann", "likes", "tea", scope={"session": "a"})
    shown = store.put_frame("in a", uri="mem://a", scope={"session": "a"})
    hidden = store.put_frame("secret", uri="mem://b", scope={"session": "b"})
    again = store.assert_fact(
        *("ann", "likes", "milk"), evidence=[shown, hidden], because=fact, scope={"session": "a"}
    )
    view = store.view().within((("tenant", "default"), ("session", "a")))
    assert [one.text for one in view.evidence(again)] == ["in a", None]
    text = "\n".join(view.export_facts())
    assert "mem://a" in text
    assert "mem://b" not in text
    assert cerata.content_hash("secret").hex() not in text
    assert "mem://b" in "\n".join(store.export_facts())


def test_what_a_transaction_gathered_is_not_exported(store: Store) -> None:
    with store.transaction():
        store.assert_fact("ann", "likes", "tea")
        with pytest.raises(InvalidInput, match="gathered"):
            store.export_facts()


def test_a_store_of_a_scope_takes_lines_into_it(store: Store) -> None:
    """Those without a scope come under its own; those of another tenant are refused."""
    store.assert_fact("ann", "likes", "tea")
    lines = list(store.export_facts())
    other = line(id=9, scope={"tenant": "t2"})
    with cerata.open(":memory:", scope={"tenant": "t1", "user_id": "u"}) as own:
        own.import_facts(lines)
        assert dict(own.facts()[0].scope) == {"tenant": "t1", "user_id": "u"}
        with pytest.raises(InvalidInput, match=r"cannot become 't2' \(line 1\)"):
            own.import_facts([other])
        assert len(own.facts()) == 1


# --- again, and after a stop ---------------------------------------------------------------------


def test_the_same_lines_again_add_nothing(store: Store, copy: Store) -> None:
    for name in ("ann", "bob"):
        store.assert_fact(name, "likes", "tea")
    lines = list(store.export_facts())
    first = copy.import_facts(lines)
    again = copy.import_facts(lines)
    assert (first.added, first.known, again.added, again.known) == (2, 0, 0, 2)
    assert first.head == again.head == copy.head.seq


def test_later_lines_add_what_is_new(store: Store, copy: Store) -> None:
    """The batches that are the same are passed over, and ids in them are still known."""
    first = store.assert_facts([(f"n{number}", "is", number) for number in range(BATCH_LINES)])
    copy.import_facts(store.export_facts())
    store.assert_fact("x", "follows from", "n0", because=first)
    done = copy.import_facts(store.export_facts())
    assert (done.added, done.known) == (1, BATCH_LINES)
    assert copy.facts("x")[0].depth == 1


def test_a_longer_export_adds_its_new_lines_alone(store: Store, copy: Store) -> None:
    """Also within the batch that the last one ended with, and of what cannot be said twice."""
    first = store.assert_fact("ann", "is", Entity("bob"))
    store.merge_entities("ann", "bob")
    wrong = store.assert_fact("ann", "likes", "tea")
    store.retract_fact(wrong)
    known, lines = 0, list[str]()
    for number in range(4):
        lines = list(store.export_facts(history=True))
        done = copy.import_facts(lines)
        assert (done.added, done.known) == (len(lines) - 1 - known, known)
        known = len(lines) - 1
        again = copy.import_facts(lines)
        assert (again.added, again.known, again.head) == (0, known, done.head)
        assert len(list(copy.log())) == known
        store.assert_fact(f"n{number}", "follows from", "it", because=first)
    assert [one.depth for one in copy.facts(include_retracted=True)] == [0, 0, 1, 1, 1]
    # An earlier one again: all of its lines are there.
    assert copy.import_facts(lines[:-2]).known == known - 2
    # And what is there in two batches goes on into a third.
    store.assert_facts([(f"m{number}", "is", number) for number in range(BATCH_LINES)])
    done = copy.import_facts(store.export_facts(history=True))
    assert (done.added, done.known) == (BATCH_LINES + 1, known)
    assert len(copy.facts()) == len(store.facts())


def test_a_longer_export_of_several_tenants_is_known_again(copy: Store) -> None:
    """A batch's key is in the tenant of its first line, whichever that was."""
    each = [
        line(id=number, subject=f"n{number}", scope={"tenant": f"t{number % 3}"})
        for number in range(9)
    ]
    for end in (2, 3, 7, 8, 9):
        copy.import_facts(each[:end])
        assert (copy.head.seq, copy.import_facts(each[:end]).known) == (end, end)


def test_two_who_import_at_once_say_each_line_once(
    copy: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One finds nothing there, and then the other was quicker and had cut the batch in two."""
    each = [line(id=number, subject=f"n{number}") for number in range(6)]
    each.append(line(id=9, subject="last", because=5))
    whole = Appends.transaction

    @contextmanager
    def late(*given: Any, **how: Any) -> Generator[Any]:
        monkeypatch.setattr(Appends, "transaction", whole)
        copy.import_facts(each[:4])
        copy.import_facts(each)
        with whole(*given, **how) as transaction:
            yield transaction

    monkeypatch.setattr(Appends, "transaction", late)
    done = copy.import_facts(each)
    assert (done.added, done.known, done.head) == (0, 7, 7)


def test_a_merge_that_holds_is_no_conflict_for_other_lines(copy: Store) -> None:
    """A later export may have other lines before it, where something was retracted since."""
    merge = '{"type":"merge","version":1,"entity":"ann","into":"bob"}'
    facts = [line(id=number, object=f"o{number}") for number in range(3)]
    copy.import_facts([line(id=9, subject="bob"), *facts, merge])
    done = copy.import_facts([line(id=9, subject="bob"), *facts[1:], merge])
    assert (done.added, done.known) == (4, 0)
    assert len(copy.facts()) == 4
    assert copy.entity("ann").name == "bob"


class Stopped(Exception):
    """The lines end in the middle."""


def broken(lines: Sequence[str], count: int) -> Iterator[str]:
    yield from islice(lines, count)
    raise Stopped


def test_an_import_that_was_stopped_goes_on(store: Store, copy: Store) -> None:
    """Whole batches are there, the last one not begun; the second call adds the rest once."""
    store.assert_facts([(f"n{number}", "is", number) for number in range(2 * BATCH_LINES + 500)])
    lines = list(store.export_facts())
    told = list[tuple[int, int]]()
    with pytest.raises(Stopped):
        copy.import_facts(
            broken(lines, 2200), progress=lambda lines, size: told.append((lines, size))
        )
    assert len(copy.facts()) == 2 * BATCH_LINES
    assert [one[0] for one in told] == [BATCH_LINES + 1, 2 * BATCH_LINES + 1]
    done = copy.import_facts(lines)
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
        store.import_facts(self.lines)
        assert [one.object for one in store.facts()] == ["0", "1", "2", "3", "4", "6", "7"]
        assert store.facts("n7")[0].depth == 1

    def check(self, store: Store) -> None:
        """Whole batches are there, in order, and nothing of the next."""
        there = [one.subject for one in store.facts(include_retracted=True)]
        assert there == [f"n{number}" for number in range(8)][: len(there)]
        # Batches end after the lines 2, 4, 6, 8 and 9, of which the eighth is no fact.
        assert len(there) in (0, 2, 4, 6, 7, 8)
        assert len(there) < 7 or not store.fact_history("n5")[0].is_known


def test_a_crash_leaves_whole_batches_of_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """At every point of every write, in batches of two lines."""
    monkeypatch.setattr(fact_import, "BATCH_LINES", 2)
    report = assert_crash_safe(Imports, stories=6)
    assert report.states > 100


def test_two_exports_after_each_other_keep_their_ids_apart(store: Store, copy: Store) -> None:
    store.assert_fact("ann", "likes", "tea")
    with cerata.open(":memory:") as other:
        cause = other.assert_fact("bob", "likes", "tea")
        other.assert_fact("bob", "buys", "tea", because=cause)
        lines = [*store.export_facts(), *other.export_facts()]
    copy.import_facts(lines)
    assert [(str(one), one.depth) for one in copy.facts("bob")] == [
        ("bob · likes · tea", 0),
        ("bob · buys · tea", 1),
    ]


def test_the_same_fact_is_not_there_twice(store: Store, copy: Store) -> None:
    """Another file that says it adds what it knows of it."""
    copy.import_facts([line(valid={"start": "2020-01-01", "end": None}, confidence=0.5)])
    copy.import_facts([line(valid={"start": "2020-01-01", "end": None}, assumptions=["a"])])
    [fact] = copy.facts()
    assert (fact.confidence, fact.assumptions) == (1.0, ("a",))


def test_an_import_is_not_part_of_a_transaction(store: Store) -> None:
    with store.transaction(), pytest.raises(InvalidInput, match="not in a transaction"):
        store.import_facts([line()])


# --- lines that are none -------------------------------------------------------------------------

DEEP = "[" * 100_000

BAD: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("{}", "missing required field `type`"),
    "no object": ("[1]", "Expected `object`"),
    "half": (line()[:-5], "cannot be read"),
    "two": (line() + line(), "malformed"),
    "deep": ('{"type": "fact", "version": 1, "x": ' + DEEP, "cannot be read"),
    "NaN": (line(object_kind="float").replace('"tea"', "NaN"), "cannot be read"),
    "infinity": (line(object_kind="float").replace('"tea"', "1e999"), "out of range"),
    "Unicode": (b'{"type": "fact\xff"}', "cannot be read"),
    "surrogate": (line().replace("ann", "\\ud800"), "cannot be read"),
    "type": (line(type="facts"), "'facts' is no type of line"),
    "field": (line(colour="red"), "unknown field `colour`"),
    "wrong": (line(subject=1), r"Expected `str`, got `int` - at `\$.subject`"),
    "null": (line(subject=None), "Expected `str`, got `null`"),
    "empty": (line(subject=" "), "The subject is empty"),
    "kind": (line(object_kind="thing"), "'thing' is no kind of object"),
    "value": (line(object=1), "The object of kind string is a int"),
    "bool": (line(object=True, object_kind="integer"), "of kind integer is a bool"),
    "large": (line(object=1 << 63, object_kind="integer"), "does not fit in 64 bits"),
    "larger": (line(object=10**400, object_kind="integer"), "does not fit in 64 bits"),
    "reach": (line(object=10**400, object_kind="float"), "that no float reaches"),
    "digits": (line(object_kind="float").replace('"tea"', "1" * 5_000), "cannot be read"),
    "start": (line(valid={"start": ""}), "not an ISO time"),
    "open": (line(valid={"start": "open"}), "not an ISO time"),
    "end": (line(valid={"start": None, "end": ""}), "not an ISO time"),
    "base": (line(object="é", object_kind="bytes"), "not Base64"),
    "time": (line(object="today", object_kind="timestamp"), "not an ISO time"),
    "zone": (line(object="2026-01-01T00:00:00", object_kind="timestamp"), "has no zone"),
    "period": (line(valid={"start": "2020-01-01", "end": "2019-01-01"}), "would end at 2019"),
    "confidence": (line(confidence=1.5), "confidence is 1.5"),
    "source": (line(source="rumour"), "source is 'rumour'"),
    "cause": (line(because=7), "No line before it has the id 7"),
    "hash": (line(evidence=[{"content": "xy"}]), "'xy' is no hash of a content"),
    "span": (
        line(evidence=[{"content": cerata.content_hash(TEXT).hex(), "start": 3, "end": 3}]),
        "is no range of bytes",
    ),
    "scope": (line(scope={"tenant": [1]}), r"at `\$.scope\[...\]`"),
    "scope's name": (line(scope={"": "x" * 3, "n" * 300: 1}), "the limit is 255"),
    "retraction": ('{"type":"retraction","version":1,"id":2,"fact":1}', "No line before"),
    "split": ('{"type":"split","version":1,"entity":"a","into":"b","facts":[]}', "No facts"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_named_and_its_batch_refused(copy: Store, name: str) -> None:
    """Nothing of it is half written, and what was there before stays."""
    copy.put_frame(TEXT)
    before = copy.head.seq
    bad, said = BAD[name]
    with pytest.raises(InvalidInput, match=said) as caught:
        copy.import_facts([line(id=100, subject="good"), "", bad, line(id=101, subject="late")])
    assert caught.value.where is not None
    assert caught.value.where.startswith("line 3")
    assert copy.head.seq == before
    assert copy.import_facts([line(subject="good")]).added == 1


def test_a_newer_version_is_told_from_a_bad_line(copy: Store) -> None:
    with pytest.raises(Unsupported, match=r"of version 2, and this Cerata reads 1 \(line 1\)"):
        copy.import_facts([line(version=2, object={"new": "form"})])


def test_an_id_stands_for_one_line(copy: Store) -> None:
    with pytest.raises(InvalidInput, match=r"The id 1 is that of an earlier line \(line 2\)"):
        copy.import_facts([line(), line(subject="bob")])


def test_what_the_memory_refuses_is_told_with_its_line(copy: Store) -> None:
    """Entities that are merged here already cannot be merged into others by a file."""
    copy.assert_facts([("ann", "is", Entity("bob")), ("carl", "is", "here")])
    copy.merge_entities("ann", "bob")
    merge = '{"type":"merge","version":1,"entity":"ann","into":"carl"}'
    before = copy.head.seq
    with pytest.raises(Conflict, match=r"merged into 'bob' already \(line 2\)"):
        copy.import_facts([line(), merge])
    assert copy.head.seq == before


def test_a_huge_line_is_refused_before_it_is_read_whole(
    copy: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    class File(BytesIO):
        """A file that tells how much of it was asked for at once."""

        most = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            File.most = max(File.most, size)
            return super().readline(size)

    file = File(line().encode() + b"\n" + b" " * (LINE_SIZE_MAX + 10) + line(id=2).encode())
    with pytest.raises(InvalidInput, match=r"over the limit of 67,108,864 bytes \(line 2\)"):
        copy.import_facts(file)
    assert File.most <= LINE_SIZE_MAX + 2
    monkeypatch.setattr(fact_lines, "LINE_SIZE_MAX", 100)
    copy.assert_fact("ann", "likes", "x" * 100)
    with pytest.raises(InvalidInput, match="limit of 100 bytes"):
        list(copy.export_facts())


@pytest.mark.parametrize("given", ["one string", b"bytes", 7, None])
def test_lines_are_many(copy: Store, given: Any) -> None:
    with pytest.raises(InvalidInput, match="The lines are a"):
        copy.import_facts(given)


def test_an_item_that_is_no_line_is_refused(copy: Store) -> None:
    lines: Any = [line(), {"type": "fact"}]
    with pytest.raises(InvalidInput, match=r"It is a dict, not a str or bytes \(line 2\)"):
        copy.import_facts(lines)
    with pytest.raises(InvalidInput, match="not valid Unicode"):
        copy.import_facts(["\ud800"])


def test_a_file_is_read_as_text_or_bytes_with_any_line_end(store: Store) -> None:
    text = f"{line()}\r\n\r\n{line(id=2, subject='bob')}"
    assert store.import_facts(StringIO(text, newline="")).added == 2
    assert store.import_facts(BytesIO(text.encode())).known == 2
    assert store.import_facts(BytesIO(b"")).added == 0


def test_lines_by_hand_need_little(copy: Store) -> None:
    """Without a period it is true from when it is recorded, as `assert_fact` has it."""
    copy.import_facts([line()])
    [fact] = copy.facts()
    assert fact.valid.start == fact.known.start
    assert (fact.confidence, fact.source, fact.valid.end) == (1.0, "observed", None)
