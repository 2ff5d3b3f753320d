"""Words to numbers: a batch at a time, with any batches, and with hardly any memory."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.engine.events import DeleteFrame, EventBody, PutFrame
from cerata.projections.columnar.columns import ascending_order
from cerata.projections.fulltext import vocabulary, word_table
from cerata.projections.fulltext.analyzer import folded, terms, words
from cerata.projections.fulltext.english import english
from cerata.projections.fulltext.projection import FulltextProjection
from cerata.projections.fulltext.word_table import _PROBES_NEAR, KEY_SIZE, UNKNOWN, WordTable, cut

from ..histories import WORDS, events_of, fold, terms_beside

_some_words = st.sampled_from(
    (*WORDS, "a" * 15, "a" * 16, "a" * 17, "decisions", "é" * 9, "z" * 200)
)
_texts = st.lists(_some_words | st.text(max_size=20), max_size=8).map(" ".join)


@given(st.lists(_texts, max_size=6))
def test_a_buffer_is_cut_as_each_text_is(texts: list[str]) -> None:
    data, sizes = folded(texts)
    found = cut(data)
    cuts = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
    assert [data[start:end] for start, end in cuts] == [w for one in texts for w in words(one)]
    assert sum(sizes) + max(len(texts) - 1, 0) == len(data)


@given(st.lists(_texts, max_size=6), st.integers(1, 3))
def test_distinct_words_are_found_in_the_order_of_the_text(texts: list[str], step: int) -> None:
    """A dictionary of all words is the model; words of one key size and longer words mix."""
    data, _ = folded(texts)
    found = cut(data)
    places = np.arange(0, len(found.starts), step)
    first_places = dict[bytes, int]()
    for place in places.tolist():
        first_places.setdefault(data[found.starts[place] : found.ends[place]], place)
    distinct, repeats = vocabulary._distinct(data, found, places)
    assert distinct.tolist() == [*first_places.values()]
    assert [data[found.starts[p] : found.ends[p]] for p in distinct[repeats].tolist()] == [
        data[found.starts[p] : found.ends[p]] for p in places.tolist()
    ]


@given(st.lists(st.lists(st.binary(min_size=1, max_size=18), max_size=30), max_size=5))
def test_the_table_is_a_dictionary_of_short_words(batches: list[list[bytes]]) -> None:
    table, model = WordTable(), dict[bytes, int]()
    for batch in batches:
        data = b" ".join(word.replace(b"\x00", b"a").replace(b" ", b"b") for word in batch)
        found = cut(data)
        new = {word: place for place, word in enumerate(data.split(b" ")) if word not in model}
        new = {word: place for word, place in new.items() if 0 < len(word) <= KEY_SIZE}
        places = list(new.values())
        ids = np.arange(len(model), len(model) + len(new), dtype=np.int32)
        table.add(found.low[places], found.high[places], ids)
        model.update(zip(new, ids.tolist(), strict=True))
        assert len(table) == len(model)
        short = [word for word in data.split(b" ") if 0 < len(word) <= KEY_SIZE]
        asked = cut(b" ".join(short))
        assert table.find(asked.low, asked.high).tolist() == [model[word] for word in short]
    other = cut(b"never-entered-x")
    assert table.find(other.low, other.high).tolist() == [UNKNOWN]


def test_a_word_that_stands_far_from_its_slot_is_found() -> None:
    """The first probes are taken one by one, the others at once."""
    table, asked = WordTable(), cut(b" ".join(b"w%d" % number for number in range(4_000)))
    ids = np.arange(1_500, dtype=np.int32)
    table.add(asked.low[:1_500], asked.high[:1_500], ids)
    taken = np.flatnonzero(table._keys[:, 0])
    own = table._slots(table._keys[taken, 0], table._keys[taken, 1])
    assert len(table) == 1_500
    assert int(((taken - own) % len(table._keys)).max()) > 2 * _PROBES_NEAR
    found = table.find(asked.low, asked.high)
    assert found.tolist() == [*ids.tolist(), *[UNKNOWN] * 2_500]


@given(st.lists(st.integers(0, 5) | st.integers(65_533, 65_540) | st.integers(0, (1 << 32) - 1)))
def test_tokens_are_ordered_by_number_and_then_by_place(items: list[int]) -> None:
    order = ascending_order(np.array(items, np.uint32)).tolist()
    assert order == sorted(range(len(items)), key=items.__getitem__)


def stream_of(batches: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the terms of each text as the projection has them."""
    projection = FulltextProjection()
    events = events_of([PutFrame(text=text) for batch in batches for text in batch])
    for batch in batches:
        projection.apply(events[projection.seq : projection.seq + len(batch)])
    view = projection.snapshot()
    rows: list[dict[int, str]] = [{} for _ in events]
    for piece in view.pieces:
        place = 0
        piece_rows = piece.first_row + piece.rows()
        for index, term in enumerate(piece.terms.tolist()):
            for posting in range(int(piece.starts[index]), int(piece.starts[index + 1])):
                for _ in range(int(piece.counts[posting])):
                    row = int(piece_rows[posting])
                    rows[row][int(piece.positions[place])] = view.vocabulary.text(term)
                    place += 1
    return [[row[position] for position in sorted(row)] for row in rows]


@pytest.mark.parametrize("memory", ["all", "three words", "one probe"])
@given(batches=st.lists(st.lists(_texts, min_size=1, max_size=4), max_size=5))
def test_the_postings_are_the_terms_whatever_is_remembered(
    memory: str, batches: list[list[str]]
) -> None:
    # Forgotten words are found among all strings; a word without a place in the table, in a dict.
    with pytest.MonkeyPatch.context() as patch:
        if memory == "three words":
            patch.setattr(vocabulary, "_WORDS_KEPT_MAX", 3)
        if memory == "one probe":
            patch.setattr(word_table, "_PROBES_MAX", 1)
            patch.setattr(word_table, "_SLOTS_MIN", 2)
        found = stream_of(batches)
    texts = [text for batch in batches for text in batch]
    seen: dict[str, None] = {}
    for text, row in zip(texts, found, strict=True):
        beside = terms_beside([text])
        seen.update(dict.fromkeys([*terms(text), *beside]))
        # Those beside words follow in the order of the vocabulary.
        assert row == [*terms(text), *sorted(beside, key=[*seen].index)]


def test_a_word_that_loses_its_place_as_the_table_grows_is_not_entered_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its form stood twice in a fold that went on, and once in one that was restored."""
    monkeypatch.setattr(word_table, "_PROBES_MAX", 2)
    monkeypatch.setattr(word_table, "_SLOTS_MIN", 2)
    source = Random(0)
    words = [
        "".join(source.choices("bcdfghklmnprstvw", k=2)) + f"{middle}ing"
        for middle in ("ark", "end", "ust", "old", "imp", "eck")
        for _ in range(30)
    ]
    words = list(dict.fromkeys(words))
    source.shuffle(words)
    texts = [" ".join(words[at : at + 4]) for at in range(0, len(words), 4)]
    events = events_of([PutFrame(text=text) for text in [*texts, *texts]])
    live, restored = FulltextProjection(), FulltextProjection()
    for event in events[: len(texts)]:
        live.apply([event])
    restored.load(live.chunk(0))
    for event in events[len(texts) :]:
        live.apply([event])
        restored.apply([event])
    assert live.digest() == restored.digest()


def test_each_distinct_word_is_stemmed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # What makes the fold fast: a stem takes longer than all else that is done for a word.
    asked: list[bytes] = []
    real = english()

    class Counting:
        def terms(self, words: Sequence[bytes]) -> list[bytes | None]:
            asked.extend(words)
            return real.terms(words)

        def stop_number(self, word: bytes) -> int | None:
            return real.stop_number(word)

    monkeypatch.setattr(vocabulary, "english", Counting)
    stream_of([["running dogs and a very-long-hyphenated antidisestablishmentarianism"] * 3] * 4)
    assert len(asked) == len(set(asked)) == 8


def test_every_term_that_occurs_in_exactly_one_document_finds_it() -> None:
    """Over two blocks of events, scripts without spaces, deletes, and a state that was loaded."""
    source = Random(3)
    stems = ("wax", "running", "ice", "東")
    known = [f"{stem}{number}" for stem in stems for number in range(1_200)]
    texts = [
        " ".join([*source.choices(known, k=6), "京都", f"only{number}s", f"{'é' * 70}{number}"])
        for number in range(4_300)
    ]
    bodies: list[EventBody] = [PutFrame(text=text) for text in texts]
    bodies += [DeleteFrame(frame=frame) for frame in source.sample(range(1, 4_300), 40)]
    frames, fulltext = fold(events_of(bodies))
    loaded = FulltextProjection()
    for after, through in ((0, 4_096), (4_096, 4_340)):
        loaded.load(fulltext.chunk(after, through))
    alive = frames.snapshot().alive(4_340)
    rows_of: dict[str, set[int]] = {}
    for row in alive.nonzero()[0].tolist():
        for term in terms(texts[row]):
            rows_of.setdefault(term, set()).add(row)
    alone = {term: rows for term, rows in rows_of.items() if len(rows) == 1}
    assert len(alone) > 8_000
    for projection in (fulltext, loaded):
        view = projection.snapshot().view(alive)
        found = {term: {*view.rank([term], k=2).rows.tolist()} for term in alone}
        assert found == alone
