"""Chunks: damage is refused and changes nothing; what is loaded is what was folded."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.agents.activities.events import EndActivity, RecordCall, StartActivity
from cerata.agents.activities.projection import ActivitiesProjection
from cerata.agents.activities.reader import Activities, ActivitiesAt
from cerata.agents.turns.lexicon import SIGNS
from cerata.agents.turns.projection import MessagesProjection
from cerata.agents.turns.reader import Messages, MessagesAt
from cerata.engine.errors import Corrupt
from cerata.engine.events import (
    DEFAULT_SCOPE,
    AssertFact,
    Attachment,
    DeleteFrame,
    Embedding,
    EventBody,
    Evidence,
    LinkFacts,
    MergeEntities,
    PutEntity,
    PutFrame,
    PutPredicate,
    RetractFact,
    SplitEntity,
    SupersedeFrame,
    UnlinkFacts,
    UnsplitEntity,
)
from cerata.projections.columnar.columns import (
    Column,
    decode_columns,
    encode_columns,
    has_items,
    narrow,
)
from cerata.projections.columnar.hash_index import HashIndex
from cerata.projections.facts.entities import Entities
from cerata.projections.facts.entity_resolution import Act
from cerata.projections.facts.history import Facts
from cerata.projections.facts.objects import ObjectKind, Standing
from cerata.projections.facts.projection import FactsProjection
from cerata.projections.facts.reader import FactsAt
from cerata.projections.frames.projection import FramesProjection
from cerata.projections.frames.reader import Frames
from cerata.projections.fulltext.bm25 import Fulltext
from cerata.projections.fulltext.fields import Field
from cerata.projections.fulltext.projection import FulltextProjection
from cerata.projections.fulltext.query import AnyWord, Phrase, Prefix, Term
from cerata.projections.links.labelling import Labelling
from cerata.projections.links.projection import LinksProjection
from cerata.projections.links.reader import Links, LinksAt

from ..histories import FILTERS, Folded, events_of, fold

EMBEDDING = Embedding("small", "f4", 1, Attachment(bytes(32), 4))

EVENTS = events_of(
    [
        PutFrame(
            text="the index of memory",
            uri="file:a",
            tags=("decision",),
            metadata={"n": 1.5, "year": "a"},
            content_dates=(20_000,),
            content_hash=b"a" * 16,
            chunk_count=2,
        ),
        PutFrame(text="a chunk below", parent=1, chunk_index=0, embedding=EMBEDDING),
        PutFrame(text="recall of an index index", role="user"),
        SupersedeFrame(old=1, new=3),
        DeleteFrame(frame=3),
        DeleteFrame(frame=77),
    ]
)


BODIES: list[EventBody] = [
    PutPredicate(predicate="is", functional=True),
    AssertFact(subject="ann", predicate="is", object_kind="string", object="é", valid_to=9_000),
    AssertFact(
        subject="bob",
        predicate="knows",
        object_kind="entity",
        object="ann",
        valid_from=7,
        evidence=(Evidence(1, 0, 2),),
        assumptions=("sober",),
    ),
    AssertFact(subject="ann", predicate="is", object_kind="integer", object=-3),
    AssertFact(subject="bob", predicate="knows", object_kind="entity", object="ann", valid_from=7),
    PutEntity(entity="ann", kind="person", aliases=("Annie",)),
    MergeEntities(entity="bob", into="eve"),
    SplitEntity(entity="ann", into="zoe", facts=(3,)),
    UnsplitEntity(split=8),
    RetractFact(fact=4),
    MergeEntities(entity="eve", into="bob"),
]
"""Every kind of event that says something of facts; the last one would make a circle."""
FACTS = [
    Folded(seq, body.wire_name, 100 + seq, DEFAULT_SCOPE, body)
    for seq, body in enumerate(BODIES, start=1)
]

LINK_BODIES: list[EventBody] = [
    AssertFact(subject="ann", predicate="is", object_kind="string", object="here"),
    AssertFact(subject="bob", predicate="is", object_kind="string", object="here"),
    LinkFacts(fact=2, kind="depends_on", target=1),
    LinkFacts(fact=1, kind="invalidates", target=2),
    LinkFacts(fact=2, kind="depends_on", target=1),
    UnlinkFacts(link=5),
    LinkFacts(fact=2, kind="generated_from", frame=3),
    LinkFacts(fact=2, kind="likes", target=1),
    UnlinkFacts(link=3),
    UnlinkFacts(link=1),
]
"""Every kind of event about links, a repetition, and what is passed over."""
LINKS = [
    Folded(seq, body.wire_name, 100 + seq, DEFAULT_SCOPE, body)
    for seq, body in enumerate(LINK_BODIES, start=1)
]

AGENT_BODIES: list[EventBody] = [
    PutFrame(text="a run"),
    StartActivity(kind="run", name="r", agent="a", agent_version="1", frame=1),
    RecordCall(activity=2, kind="tool", name="t", arguments="{}", digest=b"d" * 32, results=(1,)),
    RecordCall(activity=2, kind="input", name="i", arguments="{}", digest=b"e" * 32, used=(1,)),
    StartActivity(kind="run", name="r", agent="a", agent_version="1", resumes=2),
    EndActivity(activity=2, status="done"),
    EndActivity(activity=2, status="left"),
    StartActivity(kind="session", name="s", agent="a", agent_version="1"),
    EndActivity(activity=8, status="failed"),
    StartActivity(kind="session", name="s", agent="a", agent_version="1", resumes=8),
]
"""Every kind of event about activities, a reopening, and what is passed over."""
AGENTS = [
    Folded(seq, body.wire_name, 100 + seq, DEFAULT_SCOPE, body)
    for seq, body in enumerate(AGENT_BODIES, start=1)
]

MESSAGES = events_of(
    [
        PutFrame(text=text, kind="message", role=role, track="a", metadata={"session": "s"})
        for text, role in (
            ("Is the deadline the deadline?", "user"),
            ("I am scared of the deadline", "user"),
            ("I have sent the letter", "assistant"),
        )
    ]
    + [PutFrame(text="no session", kind="message", track="a"), PutFrame(text="a note", track="a")]
)
"""Messages with signs, patterns and topics, and what is passed over."""

Kind: TypeAlias = (
    type[ActivitiesProjection]
    | type[MessagesProjection]
    | type[FramesProjection]
    | type[FulltextProjection]
    | type[FactsProjection]
    | type[LinksProjection]
)
KINDS = [
    (FramesProjection, EVENTS),
    (FulltextProjection, EVENTS),
    (FactsProjection, FACTS),
    (LinksProjection, LINKS),
    (ActivitiesProjection, AGENTS),
    (MessagesProjection, MESSAGES),
]


@pytest.mark.parametrize(("kind", "events"), KINDS)
def test_any_damaged_byte_is_refused_or_harmless(kind: Kind, events: Sequence[Folded]) -> None:
    # The caller's checksum finds damage first; without it, nothing may crash or half load.
    whole = kind()
    whole.apply(events)
    chunk = whole.chunk(0)
    empty_digest = kind().digest()
    refused = 0
    for offset in range(len(chunk)):
        for change in (0x01, 0x80, 0xFF):
            damaged = bytearray(chunk)
            damaged[offset] ^= change
            target = kind()
            try:
                target.load(bytes(damaged))
            except Corrupt:
                refused += 1
                assert (target.seq, target.digest()) == (0, empty_digest)
            else:
                read = target.snapshot()
                if isinstance(read, Frames):
                    ask_everything(read)
                elif isinstance(read, Facts):
                    ask_all_facts(read)
                elif isinstance(read, Links):
                    ask_all_links(read)
                elif isinstance(read, Activities):
                    ask_all_activities(read)
                elif isinstance(read, Messages):
                    ask_all_messages(read)
                elif isinstance(read, Fulltext):
                    ask_fulltext(read)
    assert refused > len(chunk)


def ask_everything(frames: Frames) -> None:
    """Every read: what was accepted must answer, whatever it says."""
    for n in (frames.seq // 2, frames.seq):
        masks = [frames.mask(where, n) for where in FILTERS]
        assert {len(mask) for mask in masks} == {frames.rows_at(n)}
        for frame in frames.ids[: frames.rows_at(n)].tolist():
            frames.frame(frame)
            frames.children(frame, n)
            frames.closing_of(frame, n)
            frames.supersedes_of(frame, n)
        frames.find_content(b"a" * 16, n)
        frames.find_uri("file:a", n)
        frames.anomalies(n)
        frames.embedded(n, "small")
        for by in ("content", "recorded"):
            frames.timeline(n, by).page(limit=3)


def ask_all_facts(facts: Facts) -> None:
    """Every read: what was accepted must answer, whatever it says."""
    for n in (facts.seq // 2, facts.seq):
        view = FactsAt(facts, n)
        rows = view.find(closed=True)
        known = [row for row in rows if view.is_known(row)]
        assert [span.row for span in view.spans(known)] == known
        for row in rows:
            assert isinstance(view.subject_of(row), str)
            assert isinstance(view.predicate_of(row), str)
            assert view.object_of(row)[0] in ObjectKind
            assert 0 <= view.last_assertion_of(row)[0] <= 4_295
            assert isinstance(view.scope_of(row), tuple)
            assert (view.known_period_of(row)[1] is None) == view.is_known(row)
            assert all(isinstance(place.frame, int) for place in view.evidence_of(row))
            assert all(isinstance(text, str) for text in view.assumptions_of(row))
        for name in ("ann", "bob", "eve"):
            view.find(name)
            view.find(object_=(ObjectKind.ENTITY, name))
        entities = Entities(view)
        entities.resolve("annie")
        assert len([entities.find(one.name) for one in entities.all()]) < 9


def ask_all_links(links: Links) -> None:
    """Every read, with facts that the links may name."""
    facts = FactsProjection()
    facts.apply(LINKS)
    for n in (links.seq // 2, links.seq):
        found = FactsAt(facts.snapshot(), n)
        labelling = Labelling(found, LinksAt(links, n), lambda frame: frame == 3)
        for row in found.find():
            assert labelling.label(row) in Standing
            labelling.of([row])
            labelling.to([row])
        for link in labelling.links.all_links(closed=True):
            assert labelling.links.link(link.seq) == link
            labelling.links.closing_of(link.row)
            labelling.links.scope_of(link.row)
        list(labelling.contradictions())


def ask_all_activities(activities: Activities) -> None:
    """Every read: what was accepted must answer, whatever it says."""
    for n in (activities.seq // 2, activities.seq):
        view = ActivitiesAt(activities, n)
        for row in [*view.all_activities(), *view.open_activities()]:
            assert view.activity(row.seq) == row
            assert isinstance(view.scope_of(row.row), tuple)
            assert 0 <= len(view.further_starts(row.row)) <= 2
            view.last_seq(row.row)
            view.last_turn(row.row)
            for call in view.calls(row.row):
                assert view.nth(row.row, call.name, call.ordinal) == call
                view.used_by(call.seq)
            view.equal_calls(row.row, b"d" * 32)
            view.named(row.kind, "r", "a", DEFAULT_SCOPE)
        view.calls_using(1)
        view.call_that_made(1)


def ask_all_messages(messages: Messages) -> None:
    """Every read: what was accepted must answer, whatever it says."""
    for n in (messages.seq // 2, messages.seq):
        view = MessagesAt(messages, n)
        for agent in messages.columns.names.texts():
            rows = view.rows_of(agent)
            assert view.signs(rows).shape == (len(rows), len(SIGNS))
            assert len(view.topics(rows)) == len(rows)
            for row in rows.tolist():
                assert view.line(row).agent == agent
                view.name(view.columns.session.item(row))
        view.of_session("a", "s")


def ask_fulltext(fulltext: Fulltext) -> None:
    """Every kind of question; the rows of a word are summed when it is asked for."""
    count = len(fulltext.lengths.total)
    for rows in {count // 2, count}:
        view = fulltext.view(np.ones(rows, np.bool_))
        for query in (
            AnyWord("index memory"),
            Phrase("the index"),
            Prefix("in"),
            Term("index", Field.TAGS),
        ):
            with suppress(Corrupt):
                view.search(query)


def test_a_chunk_whose_merges_make_a_circle_is_refused() -> None:
    """Who wrote it may have known the checksum; looking a name up would never end."""
    whole = FactsProjection()
    whole.apply(FACTS)
    columns = decode_columns(whole.chunk(0))
    for change in ("circle", "no such merge"):
        said = {name: columns.like(name, columns._array(name)).copy() for name in columns.names()}
        if change == "circle":
            merge = int(np.flatnonzero(said["acts.what"] == Act.MERGE)[0])
            said["acts.other"][merge] = said["acts.one"][merge]
        else:
            end = int(np.flatnonzero(said["acts.what"] == Act.END)[0])
            said["acts.number"][end] = 2
        target = FactsProjection()
        with pytest.raises(Corrupt, match="cycle"):
            target.load(encode_columns(said))
        assert (target.seq, target.digest()) == (0, FactsProjection().digest())


@pytest.mark.parametrize(("kind", "events"), KINDS)
def test_every_truncation_is_refused(kind: Kind, events: Sequence[Folded]) -> None:
    whole = kind()
    whole.apply(events)
    chunk = whole.chunk(0)
    for size in range(len(chunk)):
        with pytest.raises(Corrupt):
            kind().load(chunk[:size])
    with pytest.raises(Corrupt, match="follow the last column"):
        kind().load(chunk + bytes(8))


def test_a_chunk_of_another_projection_or_place_is_refused() -> None:
    frames, fulltext = fold(EVENTS)
    with pytest.raises(Corrupt, match="another projection"):
        FramesProjection().load(fulltext.chunk(0))
    with pytest.raises(Corrupt, match="follow seq 0"):
        FramesProjection().load(frames.chunk(2))
    with pytest.raises(Corrupt, match="follow seq 6"):
        frames.load(frames.chunk(0))


def test_events_that_do_not_follow_are_refused() -> None:
    frames, _ = fold(EVENTS[:3])
    with pytest.raises(ValueError, match="do not follow"):
        frames.apply(EVENTS[4:])
    with pytest.raises(ValueError, match="are no range"):
        frames.chunk(2, 9)


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.integers(0, 1 << 40)), max_size=6))
def test_columns_come_back_as_they_were(columns: dict[str, list[int]]) -> None:
    arrays = {name: np.array(items, np.uint64) for name, items in columns.items()}
    data = encode_columns(arrays)
    read = decode_columns(data)
    assert {name: read.u64(name).tolist() for name in read.names()} == columns
    assert encode_columns({name: read.u64(name) for name in read.names()}) == data


def test_columns_take_the_least_width() -> None:
    sizes = [narrow(np.array([value])).itemsize for value in (0, 255, 256, 65_535, 65_536)]
    assert sizes == [1, 1, 2, 2, 4]
    with pytest.raises(OverflowError):
        narrow(np.array([1 << 32]))


def test_a_view_of_a_column_never_changes() -> None:
    # Readers in other threads hold views while the fold appends.
    column = Column(np.int64)
    column.extend([1, 2, 3])
    view = column.view()
    for value in range(1_000):
        column.extend([value])
    assert view.tolist() == [1, 2, 3]


def test_a_column_leaves_alone_what_it_adopted() -> None:
    column = Column(np.int64)
    given = np.array([1, 2, 3])
    column.adopt(given)
    assert np.shares_memory(column.view(), given)
    column.adopt(np.array([4]))
    column.reserve(100)
    column.extend([5])
    assert (given.tolist(), column.view().tolist()) == ([1, 2, 3], [1, 2, 3, 4, 5])
    readonly = Column(np.uint8)
    readonly.adopt(np.frombuffer(b"wax", np.uint8))
    readonly.extend([])
    readonly.extend([33])
    assert readonly.view().tobytes() == b"wax!"


def test_a_hash_index_finds_every_row_of_every_prefix() -> None:
    # Sorting is put off and done in pieces; prefixes shorter than a piece must not see beyond.
    source = np.random.default_rng(5)
    hashes = source.integers(0, 500, 20_000).astype(np.uint64)
    index = HashIndex()
    for size in (10, 5_000, 9_000, 20_000, 3_000, 0):
        prefix = hashes[:size]
        for wanted in (0, 7, 499, 500):
            assert index.find(prefix, wanted) == np.flatnonzero(prefix == wanted).tolist()


# --- chunks without an effect --------------------------------------------------------------------


def facts_of(events: Sequence[Folded]) -> FactsProjection:
    projection = FactsProjection()
    projection.apply(events)
    return projection


def test_a_chunk_without_an_effect_is_loaded_by_its_head_alone() -> None:
    """Most logs have no event of most kinds, and every process loads the chunks of them all."""
    whole = facts_of(EVENTS)
    chunk = whole.chunk(0)
    assert not has_items(chunk, but={"salt", "range", "blocks"})
    loaded = FactsProjection()
    loaded.load(chunk)
    assert (loaded.seq, loaded.digest()) == (whole.seq, whole.digest())
    assert loaded.chunk(0) == chunk
    assert FactsAt(loaded.snapshot(), len(EVENTS)).is_empty


def test_chunks_with_and_without_effects_are_loaded_together() -> None:
    """A chunk without an effect between two with effects changes neither of them."""
    knows = AssertFact(subject="ann", predicate="knows", object_kind="string", object="lisp")
    events = events_of([PutFrame(text="a"), knows, PutFrame(text="b"), knows, PutFrame(text="c")])
    whole = facts_of(events)
    loaded = FactsProjection()
    loaded.load(*[whole.chunk(seq, seq + 1) for seq in range(len(events))])
    assert (loaded.seq, loaded.digest()) == (whole.seq, whole.digest())
    assert loaded.chunk(0) == whole.chunk(0)
    assert [FactsAt(loaded.snapshot(), n).is_empty for n in (1, 2, 5)] == [True, False, False]
