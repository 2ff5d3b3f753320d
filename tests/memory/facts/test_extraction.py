"""Extraction: what an extractor found is in the log, once, and nobody runs it to read it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

import cerata
from cerata import Candidate, Entity, ExtractorFailed, Filter, Store
from cerata.engine.events import AssertFact, ExtractFacts, PutFrame
from cerata.memory.facts.english import EnglishFacts

from .extractors import TEXT, Model, first_word, raising

# --- what is recorded ----------------------------------------------------------------------------


def test_who_read_what_is_recorded_and_the_facts_follow_from_it(store: Store) -> None:
    """One batch: the event that names extractor and version, then the facts, with it as cause."""
    frame = store.put_frame(TEXT)
    done = store.graph.extract(extractor=Model(first_word))
    said, fact = store.log(2)
    assert said.body == ExtractFacts(
        frame=frame.id, extractor="model", extractor_version="7b", count=1
    )
    assert isinstance(fact.body, AssertFact)
    assert (fact.causation, fact.header.first_seq) == (said.seq, said.seq)
    assert [(one.frame, one.facts, one.added) for one in done.frames] == [
        (frame.id, (fact.seq,), True)
    ]
    [found] = store.facts()
    assert (found.source, found.confidence, found.depth) == ("inferred", 0.5, 0)
    [place] = found.evidence
    assert store.files.content(place.frame)[place.start : place.end] == b"Anna"


def test_what_an_extractor_says_of_time_and_assumptions_is_kept(store: Store) -> None:
    store.put_frame("from May to June")
    one = Candidate(
        *("it", "is", "open", 0, 4),
        valid_from="2026-05-01",
        valid_to=datetime(2026, 6, 1, tzinfo=UTC),
        assumptions=("this year",),
    )
    store.graph.extract(extractor=Model(lambda _: [one]))
    [fact] = store.facts(include_ended=True)
    assert str(fact.valid) == "[2026-05-01T00:00:00+00:00, 2026-06-01T00:00:00+00:00)"
    assert fact.assumptions == ("this year",)


def test_a_frame_that_says_nothing_is_read_once_too(store: Store) -> None:
    store.put_frame("nothing of note")
    model = Model(lambda _: ())
    assert [store.graph.extract(extractor=model).frames[0].added for _ in range(2)] == [True, False]
    assert len(model.asked) == 1


def test_the_same_in_two_frames_is_one_fact_with_the_evidence_of_both(store: Store) -> None:
    store.put_frames([TEXT, f"We heard this. {TEXT}"])
    done = store.graph.extract()
    assert done.found == 4
    assert [len(fact.evidence) for fact in store.facts()] == [2, 2]


def test_facts_are_of_the_scope_of_their_frame(store: Store) -> None:
    store.put_frame(TEXT, options=cerata.PutOptions(scope={"tenant": "t1", "session": "s"}))
    store.graph.extract()
    assert {tuple(fact.scope.items()) for fact in store.facts()} == {
        (("tenant", "t1"), ("session", "s"))
    }


def test_the_event_is_read_by_who_does_not_know_it(store: Store) -> None:
    """It names a frame, and is passed over by every fold."""
    store.put_frame(TEXT)
    store.graph.extract()
    assert ExtractFacts.references == {"frame": PutFrame.wire_name}
    assert store.verify().ok
    assert [fact.object for fact in store.facts("Anna")] == [Entity("Paris")]


def test_a_fact_without_a_date_is_true_since_its_frame_was_created(store: Store) -> None:
    store.put_frame(TEXT, options=cerata.PutOptions(created="2020-05-01"))
    store.graph.extract()
    assert [fact.valid.start for fact in store.facts()] == [datetime(2020, 5, 1, tzinfo=UTC)] * 2


# --- again ---------------------------------------------------------------------------------------


def test_the_same_extractor_reads_a_frame_once_and_a_new_version_anew(store: Store) -> None:
    store.put_frame(TEXT)
    old, new = Model(first_word), Model(first_word, version="8b")
    first = store.graph.extract(extractor=old)
    head = store.head.seq
    again = store.graph.extract(extractor=old)
    assert (again.found, again.frames[0].added, store.head.seq) == (0, False, head)
    assert again.frames[0].facts == first.frames[0].facts
    assert store.graph.extract(extractor=new).frames[0].added
    # It found the same: there is no second fact, nor a second place that says so.
    assert len(store.facts()) == len(store.facts()[0].evidence) == 1
    assert (len(old.asked), len(new.asked)) == (1, 1)


def test_what_was_retracted_does_not_come_back(store: Store) -> None:
    store.put_frame(TEXT)
    store.graph.extract()
    store.graph.retract_many(store.facts())
    store.graph.extract()
    assert store.facts() == []


def test_a_dry_run_says_what_would_be_and_writes_nothing(store: Store) -> None:
    store.put_frame(TEXT)
    done = store.graph.extract(dry_run=True)
    assert [str(one) for one in done.frames[0].candidates] == [
        "Anna · lives in · Paris",
        "Bob · works at · Acme",
    ]
    assert (done.to_dict()["read"], store.head.seq) == (0, 1)
    assert store.graph.extract().frames[0].added


def test_a_dry_run_after_a_run_says_that_nothing_would_be_written(store: Store) -> None:
    first, second = store.put_frames([TEXT, "Eve works at Acme."]).ids
    done = store.graph.extract(first)
    store.graph.extract(second, extractor=Model(first_word))
    model = Model(first_word, "english-facts", EnglishFacts.version)
    again = store.graph.extract(extractor=model, dry_run=True)
    assert [(one.candidates, one.facts, one.added) for one in again.frames] == [
        ((), done.frames[0].facts, False),
        (tuple(first_word("Eve works at Acme.")), (), False),
    ]
    assert model.asked == ["Eve works at Acme."]
    assert store.graph.extract(dry_run=True).found == 1


def test_what_an_extractor_writes_itself_is_no_part_of_what_it_found(store: Store) -> None:
    """It keeps notes in the same memory: they come before, and the facts still have their cause."""

    def noting(text: str) -> list[Candidate]:
        store.put_frame(f"asked about: {text}")
        return first_word(text)

    frame = store.put_frame(TEXT)
    [one] = store.graph.extract(frame, extractor=Model(noting)).frames
    note, said, fact = store.log(2)
    assert isinstance(note.body, PutFrame)
    assert isinstance(said.body, ExtractFacts)
    assert (said.body.frame, fact.causation, one.facts) == (frame.id, said.seq, (fact.seq,))
    assert fact.header.first_seq == said.seq
    head = store.head.seq
    assert not store.graph.extract(frame, extractor=Model(raising)).frames[0].added
    assert store.head.seq == head


def test_two_who_read_a_frame_at_once_record_it_once(store: Store) -> None:
    """The one who ends later adds nothing."""

    def slow(text: str) -> list[Candidate]:
        store.graph.extract(extractor=Model(first_word))
        return first_word(text)

    store.put_frame(TEXT)
    [one] = store.graph.extract(extractor=Model(slow)).frames
    assert (one.added, one.facts, store.head.seq) == (False, (3,), 3)


def test_an_extraction_that_was_stopped_goes_on(store: Store) -> None:
    """Frame by frame: what was read is not read again."""
    store.put_frames(["one", "two", "bad", "four"])
    model = Model(lambda text: raising(text) if text == "bad" else first_word(text))
    with pytest.raises(ExtractorFailed, match="frame 3"):
        store.graph.extract(extractor=model)
    assert [str(fact.subject) for fact in store.facts()] == ["one", "two"]
    mended = Model(first_word)
    assert [one.added for one in store.graph.extract(extractor=mended).frames] == [
        False,
        False,
        True,
        True,
    ]
    assert mended.asked == ["bad", "four"]


def test_nobody_runs_an_extractor_to_read_what_it_found(tmp_path: Path) -> None:
    """It is gone after its first run; rebuild, replay, verify and the past do not miss it."""
    path = tmp_path / "memory.cera"
    model = Model(first_word)
    with cerata.open(path) as store:
        store.put_frames(["one", "two"])
        store.graph.extract(extractor=model)
        before = [fact.to_dict() for fact in store.facts()]
    model._say = raising
    with cerata.open(path) as store:
        assert store.verify().ok
        store.upkeep.rebuild()
        assert [fact.to_dict() for fact in store.facts()] == before
        assert [fact.to_dict() for fact in store.stream.replay().facts()] == before
        assert [fact.subject for fact in store.at(4).facts()] == ["one"]
        assert store.graph.extract(extractor=model).found == 0
    assert len(model.asked) == 2


def test_a_new_version_moves_nobody(store: Store) -> None:
    """Each version said again where Anna lives, from when it was run: she moved there and back."""

    def last_word(text: str) -> list[Candidate]:
        name, *_, place = text.split()
        return [Candidate(name, "lives in", Entity(place), 0, len(text.encode()))]

    store.graph.declare("lives in", functional=True)
    notes: list[int] = []
    for text in ("Anna is in Oslo", "Anna is in Rome"):
        notes.append(store.put_frame(text).id)
        store.graph.extract(extractor=Model(last_word, version="1"))
    said = [(str(fact), fact.valid) for fact in store.facts("Anna", include_ended=True)]
    assert [text for text, _ in said] == ["Anna · lives in · Oslo", "Anna · lives in · Rome"]
    store.graph.extract(extractor=Model(last_word, version="2"))
    store.graph.extract(notes[0], extractor=Model(last_word, version="3"))
    assert [(str(fact), fact.valid) for fact in store.facts("Anna", include_ended=True)] == said
    assert [str(fact) for fact in store.facts("Anna", valid_at="now")] == ["Anna · lives in · Rome"]


# --- which frames --------------------------------------------------------------------------------


def test_frames_are_named_or_filtered_or_all(store: Store) -> None:
    one, two, three = (
        store.put_frame(word, tags=["even"] if word == "two" else [])
        for word in ("one", "two", "three")
    )
    store.put_frame(b"\x00", options=cerata.PutOptions(search_text="bytes say nothing"))
    model = Model(first_word)
    store.graph.extract(one, extractor=model)
    store.graph.extract([three], extractor=model)
    store.graph.extract(where=Filter(tags=("even",)), extractor=model)
    assert model.asked == ["one", "three", "two"]
    assert len(store.graph.extract(extractor=model).frames) == 3
    assert two.id == 2


def test_a_document_is_read_by_its_parts(store: Store) -> None:
    text = "\n\n".join(f"# Part {number}\n\n" + "word " * 300 for number in range(3))
    document = store.remember(text)
    model = Model(first_word)
    done = store.graph.extract(document, extractor=model)
    assert [one.frame for one in done.frames] == list(store.files.chunks(document).values())
    assert len(model.asked) > 1


def test_what_was_superseded_is_read_only_where_it_is_named(store: Store) -> None:
    old = store.put_frame("Anna lives in Paris.")
    store.supersede(old, "Anna lives in Rome.")
    store.graph.extract()
    assert [str(fact.object) for fact in store.facts()] == ["Rome"]
    store.graph.extract(old)
    assert [str(fact.object) for fact in store.facts()] == ["Rome", "Paris"]


def test_each_frame_is_told_as_it_is_done(store: Store) -> None:
    store.put_frames(["one", "two"])
    told = list[tuple[int, int, int]]()
    store.graph.extract(
        extractor=Model(first_word),
        report=lambda one, at, total: told.append((one.frame, at, total)),
    )
    assert told == [(1, 1, 2), (2, 2, 2)]
