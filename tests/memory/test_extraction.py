"""Extraction: what an extractor found is in the log, once, and nobody runs it to read it."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

import cerata
from cerata import (
    Candidate,
    Entity,
    ExtractorFailed,
    Filter,
    InvalidInput,
    NotFound,
    ReadOnly,
    Store,
)
from cerata.engine.events import AssertFact, ExtractFacts, PutFrame
from cerata.memory.english_facts import EnglishFacts

TEXT = "Anna lives in Paris. Bob works at Acme."


class Model:
    """A model in the place of one: says what it is told to say, and counts how often."""

    def __init__(
        self, say: Callable[[str], Iterable[Any]], name: str = "model", version: str = "7b"
    ) -> None:
        self.name = name
        self.version = version
        self.asked: list[str] = []
        self._say = say

    def extract(self, text: str) -> Iterable[Candidate]:
        self.asked.append(text)
        return self._say(text)


def first_word(text: str) -> list[Candidate]:
    """Say that the first word is the first word."""
    word = text.split(maxsplit=1)[0]
    return [Candidate(word, "comes first in", text, 0, len(word.encode()), confidence=0.5)]


def raising(text: str) -> list[Candidate]:
    raise RuntimeError("the model has gone away")


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as opened:
        yield opened


# --- what is recorded ----------------------------------------------------------------------------


def test_who_read_what_is_recorded_and_the_facts_follow_from_it(store: Store) -> None:
    """One batch: the event that names extractor and version, then the facts, with it as cause."""
    frame = store.put_frame(TEXT)
    done = store.extract(extractor=Model(first_word))
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
    assert store.content(place.frame)[place.start : place.end] == b"Anna"


def test_what_an_extractor_says_of_time_and_assumptions_is_kept(store: Store) -> None:
    store.put_frame("from May to June")
    one = Candidate(
        *("it", "is", "open", 0, 4),
        valid_from="2026-05-01",
        valid_to=datetime(2026, 6, 1, tzinfo=UTC),
        assumptions=("this year",),
    )
    store.extract(extractor=Model(lambda _: [one]))
    [fact] = store.facts()
    assert str(fact.valid) == "[2026-05-01T00:00:00+00:00, 2026-06-01T00:00:00+00:00)"
    assert fact.assumptions == ("this year",)


def test_a_frame_that_says_nothing_is_read_once_too(store: Store) -> None:
    store.put_frame("nothing of note")
    model = Model(lambda _: ())
    assert [store.extract(extractor=model).frames[0].added for _ in range(2)] == [True, False]
    assert len(model.asked) == 1


def test_the_same_in_two_frames_is_one_fact_with_the_evidence_of_both(store: Store) -> None:
    store.put_frames([TEXT, f"We heard this. {TEXT}"])
    done = store.extract()
    assert done.found == 4
    assert [len(fact.evidence) for fact in store.facts()] == [2, 2]


def test_facts_are_of_the_scope_of_their_frame(store: Store) -> None:
    store.put_frame(TEXT, scope={"tenant": "t1", "session": "s"})
    store.extract()
    assert {tuple(fact.scope.items()) for fact in store.facts()} == {
        (("tenant", "t1"), ("session", "s"))
    }


# --- again ---------------------------------------------------------------------------------------


def test_the_same_extractor_reads_a_frame_once_and_a_new_version_anew(store: Store) -> None:
    store.put_frame(TEXT)
    old, new = Model(first_word), Model(first_word, version="8b")
    first = store.extract(extractor=old)
    head = store.head.seq
    again = store.extract(extractor=old)
    assert (again.found, again.frames[0].added, store.head.seq) == (0, False, head)
    assert again.frames[0].facts == first.frames[0].facts
    assert store.extract(extractor=new).frames[0].added
    # It found the same: there is no second fact, nor a second place that says so.
    assert len(store.facts()) == len(store.facts()[0].evidence) == 1
    assert (len(old.asked), len(new.asked)) == (1, 1)


def test_what_was_retracted_does_not_come_back(store: Store) -> None:
    store.put_frame(TEXT)
    store.extract()
    store.retract_facts(store.facts())
    store.extract()
    assert store.facts() == []


def test_a_dry_run_says_what_would_be_and_writes_nothing(store: Store) -> None:
    store.put_frame(TEXT)
    done = store.extract(dry_run=True)
    assert [str(one) for one in done.frames[0].candidates] == [
        "Anna · lives in · Paris",
        "Bob · works at · Acme",
    ]
    assert (done.to_dict()["read"], store.head.seq) == (0, 1)
    assert store.extract().frames[0].added


def test_a_dry_run_after_a_run_says_that_nothing_would_be_written(store: Store) -> None:
    first, second = store.put_frames([TEXT, "Eve works at Acme."]).ids
    done = store.extract(first)
    store.extract(second, extractor=Model(first_word))
    model = Model(first_word, "english-facts", EnglishFacts.version)
    again = store.extract(extractor=model, dry_run=True)
    assert [(one.candidates, one.facts, one.added) for one in again.frames] == [
        ((), done.frames[0].facts, False),
        (tuple(first_word("Eve works at Acme.")), (), False),
    ]
    assert model.asked == ["Eve works at Acme."]
    assert store.extract(dry_run=True).found == 1


def test_what_an_extractor_writes_itself_is_no_part_of_what_it_found(store: Store) -> None:
    """It keeps notes in the same memory: they come before, and the facts still have their cause."""

    def noting(text: str) -> list[Candidate]:
        store.put_frame(f"asked about: {text}")
        return first_word(text)

    frame = store.put_frame(TEXT)
    [one] = store.extract(frame, extractor=Model(noting)).frames
    note, said, fact = store.log(2)
    assert isinstance(note.body, PutFrame)
    assert isinstance(said.body, ExtractFacts)
    assert (said.body.frame, fact.causation, one.facts) == (frame.id, said.seq, (fact.seq,))
    assert fact.header.first_seq == said.seq
    head = store.head.seq
    assert not store.extract(frame, extractor=Model(raising)).frames[0].added
    assert store.head.seq == head


def test_two_who_read_a_frame_at_once_record_it_once(store: Store) -> None:
    """The one who ends later adds nothing."""

    def slow(text: str) -> list[Candidate]:
        store.extract(extractor=Model(first_word))
        return first_word(text)

    store.put_frame(TEXT)
    [one] = store.extract(extractor=Model(slow)).frames
    assert (one.added, one.facts, store.head.seq) == (False, (3,), 3)


def test_an_extraction_that_was_stopped_goes_on(store: Store) -> None:
    """Frame by frame: what was read is not read again."""
    store.put_frames(["one", "two", "bad", "four"])
    model = Model(lambda text: raising(text) if text == "bad" else first_word(text))
    with pytest.raises(ExtractorFailed, match="frame 3"):
        store.extract(extractor=model)
    assert [str(fact.subject) for fact in store.facts()] == ["one", "two"]
    mended = Model(first_word)
    assert [one.added for one in store.extract(extractor=mended).frames] == [
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
        store.extract(extractor=model)
        before = [fact.to_dict() for fact in store.facts()]
    model._say = raising
    with cerata.open(path) as store:
        assert store.verify().ok
        store.rebuild()
        assert [fact.to_dict() for fact in store.facts()] == before
        assert [fact.to_dict() for fact in store.replay().facts()] == before
        assert [fact.subject for fact in store.at(4).facts()] == ["one"]
        assert store.extract(extractor=model).found == 0
    assert len(model.asked) == 2


# --- which frames --------------------------------------------------------------------------------


def test_frames_are_named_or_filtered_or_all(store: Store) -> None:
    one, two, three = (
        store.put_frame(word, tags=["even"] if word == "two" else [])
        for word in ("one", "two", "three")
    )
    store.put_frame(b"\x00", search_text="bytes say nothing")
    model = Model(first_word)
    store.extract(one, extractor=model)
    store.extract([three], extractor=model)
    store.extract(where=Filter(tags=("even",)), extractor=model)
    assert model.asked == ["one", "three", "two"]
    assert len(store.extract(extractor=model).frames) == 3
    assert two.id == 2


def test_a_document_is_read_by_its_parts(store: Store) -> None:
    text = "\n\n".join(f"# Part {number}\n\n" + "word " * 300 for number in range(3))
    document = store.remember(text)
    model = Model(first_word)
    done = store.extract(document, extractor=model)
    assert [one.frame for one in done.frames] == list(store.chunks(document).values())
    assert len(model.asked) > 1


def test_what_was_superseded_is_read_only_where_it_is_named(store: Store) -> None:
    old = store.put_frame("Anna lives in Paris.")
    store.supersede(old, "Anna lives in Rome.")
    store.extract()
    assert [str(fact.object) for fact in store.facts()] == ["Rome"]
    store.extract(old)
    assert [str(fact.object) for fact in store.facts()] == ["Rome", "Paris"]


def test_each_frame_is_told_as_it_is_done(store: Store) -> None:
    store.put_frames(["one", "two"])
    told = list[tuple[int, int, int]]()
    store.extract(
        extractor=Model(first_word),
        report=lambda one, at, total: told.append((one.frame, at, total)),
    )
    assert told == [(1, 1, 2), (2, 2, 2)]


# --- what is refused -----------------------------------------------------------------------------

WRONG: dict[str, tuple[Any, str]] = {
    "no candidate": (("anna", "lives in", "paris"), "gave a tuple, not a Candidate"),
    "beyond": (Candidate("a", "is", "b", 0, 100), r"bytes \[0, 100\), which are no part"),
    "before": (Candidate("a", "is", "b", -1, 1), r"bytes \[-1, 1\)"),
    "empty": (Candidate("a", "is", "b", 1, 1), r"bytes \[1, 1\)"),
    "cut": (Candidate("a", "is", "b", 0, 1), r"bytes \[0, 1\)"),
    "float": (Candidate("a", "is", "b", 0, 2.0), r"bytes \[0, 2.0\)"),  # type: ignore[arg-type]
    "bool": (Candidate("a", "is", "b", False, 2), r"bytes \[False, 2\)"),
    "long object": (Candidate("a", "is", "b" * (16 << 20) + "b", 0, 2), "over the limit of"),
    "long name": (Candidate("a" * (16 << 20) + "a", "is", "b", 0, 2), "over the limit of"),
    "subject": (Candidate("", "is", "b", 0, 2), "The subject is empty"),
    "nan": (Candidate("a", "is", float("nan"), 0, 2), "The object is nan"),
    "confidence": (Candidate("a", "is", "b", 0, 2, confidence=2), "confidence is 2"),
    "period": (
        Candidate("a", "is", "b", 0, 2, valid_from="2020-01-01", valid_to="2019-01-01"),
        "would end at 2019",
    ),
}


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_fact_is_refused_with_all_of_its_frame(
    store: Store, name: str, dry_run: bool
) -> None:
    wrong, said = WRONG[name]
    store.put_frame("é and more")
    right = Candidate("a", "is", "b", 0, 2)
    with pytest.raises(ExtractorFailed, match=said) as caught:
        store.extract(extractor=Model(lambda _: [right, wrong]), dry_run=dry_run)
    assert (caught.value.extractor, caught.value.frame) == ("model", 1)
    assert caught.value.where == "frame 1, candidate 2"
    assert store.head.seq == 1
    assert store.extract(extractor=Model(first_word)).frames[0].added


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), cerata.Conflict("no")])
def test_an_extractor_that_raises_is_told_from_the_memory(
    store: Store, error: BaseException
) -> None:
    def half(_: str) -> Iterator[Candidate]:
        yield Candidate("a", "is", "b", 0, 1)
        raise error

    store.put_frame(TEXT)
    with pytest.raises(ExtractorFailed, match=rf"'model' raised {type(error).__name__}") as caught:
        store.extract(extractor=Model(half))
    assert caught.value.__cause__ is error
    assert store.head.seq == 1


def test_an_extractor_that_never_ends_is_stopped(store: Store) -> None:
    def endless(_: str) -> Iterator[Candidate]:
        while True:
            yield Candidate("a", "is", "b", 0, 1)

    store.put_frame(TEXT)
    with pytest.raises(ExtractorFailed, match="found more than 9,999 facts"):
        store.extract(extractor=Model(endless))


@pytest.mark.parametrize(
    ("name", "version"),
    [("", "1"), ("model", " "), ("model", 1), ("m" * 256, "1"), ("\ud800", "1")],
)
def test_an_extractor_has_a_name_and_a_version(store: Store, name: Any, version: Any) -> None:
    store.put_frame(TEXT)
    with pytest.raises(InvalidInput, match="The extractor's"):
        store.extract(extractor=Model(first_word, name, version))


@pytest.mark.parametrize("given", [object(), 7, "english-facts"])
def test_what_is_no_extractor_is_refused(store: Store, given: Any) -> None:
    with pytest.raises(InvalidInput, match="The extractor's name is None"):
        store.extract(extractor=given)


def test_an_extractor_that_gives_nothing_to_go_through_is_at_fault(store: Store) -> None:
    store.put_frame("nothing of note")
    with pytest.raises(ExtractorFailed, match="raised TypeError"):
        store.extract(extractor=Model(lambda _: cast("Any", None)))


def test_name_and_version_do_not_run_together(store: Store) -> None:
    """Whoever is called "a b", version c, is not "a", version b c."""
    store.put_frame(TEXT)
    for name, version in (("a b", "c"), ("a", "b c"), ("a b c", "1")):
        assert store.extract(extractor=Model(first_word, name, version)).frames[0].added


def test_calls_that_cannot_be_are_refused(store: Store, tmp_path: Path) -> None:
    store.put_frame(TEXT)
    with pytest.raises(NotFound):
        store.extract(7)
    with pytest.raises(InvalidInput, match="not both"):
        store.extract(1, where=Filter(kind="text"))
    with store.transaction(), pytest.raises(InvalidInput, match="not in a transaction"):
        store.extract()
    path = tmp_path / "memory.cera"
    with cerata.open(path) as other:
        other.put_frame(TEXT)
    with cerata.open(path, mode="r") as reader:
        assert reader.extract(dry_run=True).found == 2
        with pytest.raises(ReadOnly):
            reader.extract()


# --- English -------------------------------------------------------------------------------------


def said(text: str) -> list[tuple[str, str | None]]:
    """Return what is found, each with the day from which it is so."""
    return [
        (str(one), None if one.valid_from is None else str(one.valid_from)[:10])
        for one in EnglishFacts().extract(text)
    ]


@pytest.mark.parametrize(
    ("text", "fact", "since"),
    [
        ("Anna lives in Paris.", "Anna · lives in · Paris", None),
        ("Anna lives in New York since 2020.", "Anna · lives in · New York", "2020-01-01"),
        ("Bob works for Acme & Sons", "Bob · works at · Acme & Sons", None),
        ("Bob works at Acme since May 2021.", "Bob · works at · Acme", "2021-05-01"),
        ("Eve moved to Lyon in 2024.", "Eve · lives in · Lyon", "2024-01-01"),
        ("Eve moved to Lyon in June 3, 2024.", "Eve · lives in · Lyon", "2024-06-03"),
        ("Eve moved to Lyon in 3 June 2024!", "Eve · lives in · Lyon", "2024-06-03"),
        ("Eve moved to Lyon in 2024-06-03; it rained.", "Eve · lives in · Lyon", "2024-06-03"),
        ("Paris is the capital of France.", "Paris · is capital of · France", None),
        ("Eve is a co-founder of Acme.", "Eve · is co-founder of · Acme", None),
        ("Ann is the CEO of Bank of Spain.", "Ann · is CEO of · Bank of Spain", None),
        ("Ann is married to Bob.", "Ann · is married to · Bob", None),
        ("Acme is located in Łódź and grows.", "Acme · is located in · Łódź", None),
        ("Dr. Ann Lee lives in Oslo, with a dog.", "Dr. Ann Lee · lives in · Oslo", None),
        ("## Ann lives in Oslo", "Ann · lives in · Oslo", None),
        ("12. Ann lives\nin Oslo.", "Ann · lives in · Oslo", None),
        ("Hope lives in Oslo.", "Hope · lives in · Oslo", None),
        ("Will Smith lives in Oslo.", "Will Smith · lives in · Oslo", None),
    ],
)
def test_plain_sentences_are_understood(text: str, fact: str, since: str | None) -> None:
    assert said(text) == [(fact, since)]


@pytest.mark.parametrize(
    "text",
    [
        "Does Anna live in Paris?",
        "Anna lives in Paris?",
        "Anna does not live in Paris.",
        "Anna might live in Paris.",
        "Anna lived in Paris.",
        "If Anna lives in Paris, she is happy.",
        "Bob says Anna lives in Paris.",
        "Anna lives in Paris if Bob does.",
        "Anna lives in Paris, I think.",
        "Anna lives in Paris's suburbs.",
        "Anna lives in Paris until 2020.",
        "Anna lives in a house.",
        "She lives in Paris.",
        "The mayor lives in Paris.",
        "Nobody lives in Paris.",
        "Today is the day of Judgement.",
        "anna lives in Paris.",
        "Anna moved to Paris.",
        "Anna moved to Paris in 2024-13-45.",
        "Anna is the mother of Bob's friend.",
        "Anna is the mother of him.",
        'He said: "Anna lives in Paris."',
        "Suppose Anna lives in Oslo.",
        "Probably Anna lives in Oslo.",
        "Not Anna lives in Oslo.",
        "Never Anna lives in Oslo.",
        "Since Anna lives in Oslo and works there, she is happy.",
        "Is Anna married to Bob or is Anna a friend of Eve!",
        "In Paris Anna lives in Montmartre.",
        "Anna lives in Oslo and Bob in Rome, Carl says.",
        "Anna lives in Oslo, but not for long.",
        "Anna lives in Oslo and doesn’t like it.",
        "Anna lives in Oslo and Bob in Rome if rents are low.",
        "Eve moved to Lyon in 2024 and back to Paris in 2025.",
        "Eve moved to Lyon in 2024, but left.",
        "",
    ],
)
def test_what_may_mean_something_else_is_left_alone(text: str) -> None:
    assert said(text) == []


def test_spans_are_bytes_of_the_text(store: Store) -> None:
    """Past characters of several bytes, marks, and lines that go on."""
    store.put_frame(
        "Ö! Ünder: nö.\n\n- Anna lives in\nOslo.\n- Änn lives in Łódź since May 2020. Bob is mad."
    )
    store.extract()
    data = store.content(1)
    quotes = [
        data[place.start : place.end].decode() for fact in store.facts() for place in fact.evidence
    ]
    assert quotes == ["Anna lives in\nOslo", "Änn lives in Łódź since May 2020"]


@pytest.mark.parametrize("space", ["\u00a0", "\u2003", "\u2028", "\u3000", "\x85", "\t"])
def test_spans_are_bytes_of_the_text_where_its_spaces_are_wide(store: Store, space: str) -> None:
    """White space of two and three bytes, within a fact and before the next one."""
    store.put_frame(f"Bob{space}lives in{space}Cité. Anna lives in{space}Oslo. It rains.")
    store.extract()
    data = store.content(1)
    quotes = [
        data[place.start : place.end].decode() for fact in store.facts() for place in fact.evidence
    ]
    assert quotes == [f"Bob{space}lives in{space}Cité", f"Anna lives in{space}Oslo"]


def test_a_text_without_sentences_takes_no_time() -> None:
    """No form looks twice at a long run of what could begin one."""
    for part in ("Anna ", "Dr. ", "A\n", "Anna of of ", "Anna is the aa aa ", "- ", "a. "):
        assert said(part * (20_000 // len(part))) == []


def test_the_event_is_read_by_who_does_not_know_it(store: Store) -> None:
    """It names a frame, and is passed over by every fold."""
    store.put_frame(TEXT)
    store.extract()
    assert ExtractFacts.references == {"frame": PutFrame.wire_name}
    assert store.verify().ok
    assert [fact.object for fact in store.facts("Anna")] == [Entity("Paris")]


def test_a_new_version_moves_nobody(store: Store) -> None:
    """Each version said again where Anna lives, from when it was run: she moved there and back."""

    def last_word(text: str) -> list[Candidate]:
        name, *_, place = text.split()
        return [Candidate(name, "lives in", Entity(place), 0, len(text.encode()))]

    store.declare_predicate("lives in", functional=True)
    notes: list[int] = []
    for text in ("Anna is in Oslo", "Anna is in Rome"):
        notes.append(store.put_frame(text).id)
        store.extract(extractor=Model(last_word, version="1"))
    said = [(str(fact), fact.valid) for fact in store.facts("Anna")]
    assert [text for text, _ in said] == ["Anna · lives in · Oslo", "Anna · lives in · Rome"]
    store.extract(extractor=Model(last_word, version="2"))
    store.extract(notes[0], extractor=Model(last_word, version="3"))
    assert [(str(fact), fact.valid) for fact in store.facts("Anna")] == said
    assert [str(fact) for fact in store.facts("Anna", valid_at="now")] == ["Anna · lives in · Rome"]


def test_a_fact_without_a_date_is_true_since_its_frame_was_created(store: Store) -> None:
    store.put_frame(TEXT, created="2020-05-01")
    store.extract()
    assert [fact.valid.start for fact in store.facts()] == [datetime(2020, 5, 1, tzinfo=UTC)] * 2
