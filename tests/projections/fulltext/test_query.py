"""Every shape of query at every past state: the reference, and a fold that stopped, agree."""

import random
import re
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.beside.documents import vocabulary
from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.events import PutFrame
from cerata.projections.columnar.columns import I64, U32, Mask
from cerata.projections.frames.filters import Filter
from cerata.projections.fulltext import occurrences, postings
from cerata.projections.fulltext.analyzer import question_terms, terms, words
from cerata.projections.fulltext.bm25 import FulltextView
from cerata.projections.fulltext.fields import Field
from cerata.projections.fulltext.postings import rows_of_runs
from cerata.projections.fulltext.projection import FulltextProjection
from cerata.projections.fulltext.query import (
    And,
    AnyWord,
    FilterLeaf,
    Maybe,
    Not,
    Or,
    Phrase,
    Prefix,
    Query,
    Term,
    Wildcard,
    plain,
)

from ..histories import WORDS, Folded, Model, events_of, fold, histories
from .reference import THIRDS, expected, passes

_field = st.none() | st.sampled_from(Field)
_word = st.sampled_from((*WORDS, "unseen", "put_index", "memory index"))
_some = st.lists(_word, max_size=3).map(" ".join)
_pattern = st.sampled_from(("*", "?ndex", "i*", "in*s", "*c*i*n", "m?m*y", "*東", "d*s*n", "x?"))
_leaves = st.one_of(
    st.builds(Term, _word, _field),
    st.builds(AnyWord, _some, _field),
    st.builds(Phrase, _some, _field),
    st.builds(
        Prefix, st.sampled_from(("i", "index", "indexe", "decisio", "mem", "東", "z")), _field
    ),
    st.builds(Wildcard, _pattern.filter(lambda pattern: pattern != "*"), _field),
    st.builds(FilterLeaf, st.sampled_from(THIRDS)),
)
queries: st.SearchStrategy[Query] = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Not, inner),
        st.builds(Maybe, inner),
    ),
    max_leaves=5,
)


class Filters:
    """Gives the masks of `reference.passes` for some frames."""

    def __init__(self, ids: I64) -> None:
        self._ids = ids.tolist()

    def __call__(self, where: Filter) -> Mask:
        return np.array([passes(where, frame) for frame in self._ids], np.bool_)


def found_by(
    view: FulltextView, ids: I64, query: Query | str, among: Mask | None = None, k: int = 99
) -> list[tuple[int, float]]:
    ranked = view.search(query, k=k, filters=Filters(ids), among=among)
    return list(zip(ids[ranked.rows].tolist(), ranked.scores.tolist(), strict=True))


@given(histories, queries)
def test_a_query_equals_the_reference_at_every_n(events: list[Folded], query: Query) -> None:
    frames, fulltext = fold(events)
    table, index = frames.snapshot(), fulltext.snapshot()
    for n in range(len(events) + 1):
        model, alive = Model.of(events[:n]), table.alive(n)
        ids = table.ids[: table.rows_at(n)]
        view = index.view(alive)
        whole = expected(model, query, model.alive())
        assert found_by(view, ids, query) == whole
        assert found_by(view, ids, query, k=2) == whole[:2]
        every = np.ones(len(ids), np.bool_)
        assert found_by(view, ids, query, every) == expected(model, query, list(model.tokens))


@given(histories, st.lists(queries, min_size=1, max_size=4), st.data())
def test_a_query_of_the_past_is_that_of_a_fold_that_stopped(
    events: list[Folded], some: list[Query], data: st.DataObject
) -> None:
    frames, fulltext = fold(events)
    n = data.draw(st.integers(0, len(events)))
    stopped_frames, stopped = fold(events[:n])
    table, then = frames.snapshot(), stopped_frames.snapshot()
    ids = then.ids[: then.rows_at(n)]
    view, other = fulltext.snapshot().view(table.alive(n)), stopped.snapshot().view(then.alive(n))
    for query in some:
        assert found_by(view, ids, query) == found_by(other, ids, query)


@given(histories, st.lists(st.sampled_from(WORDS), max_size=4))
def test_a_plain_question_is_any_of_its_words(events: list[Folded], words: list[str]) -> None:
    # The fast path of plain questions and the general one of trees give one ranking.
    frames, fulltext = fold(events)
    table = frames.snapshot()
    view = fulltext.snapshot().view(table.alive(len(events)))
    text = " ".join(words)
    fast = found_by(view, table.ids, AnyWord(text))
    slow = found_by(view, table.ids, Or((AnyWord(text), AnyWord(text))))
    assert fast == slow == found_by(view, table.ids, text)


def test_a_question_sums_the_rows_of_its_words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of all postings were most of a first answer's load; see docs/measurements.md."""
    texts = PutFrame(text="one two"), PutFrame(text="two three", title="two")
    _, fulltext = fold(events_of(texts))
    restored = FulltextProjection()
    restored.load(fulltext.chunk(0))
    sizes: list[int] = []

    def counted(gaps: U32, run_sizes: I64, bases: I64, end_row: int | I64) -> U32:
        sizes.append(len(gaps))
        return rows_of_runs(gaps, run_sizes, bases, end_row)

    for module in (postings, occurrences):
        monkeypatch.setattr(module, "rows_of_runs", counted)
    view = restored.snapshot().view(np.ones(2, np.bool_))
    past = restored.snapshot().view(np.ones(1, np.bool_))
    for query in (AnyWord("three"), Term("three", Field.TEXT), Phrase("three"), Prefix("thr")):
        assert rows(view, query) == [1]
        assert rows(past, query) == []
    assert max(sizes) == 1


def view_of(*texts: str, title: str | None = None) -> FulltextView:
    events = events_of([PutFrame(text=text, title=title) for text in texts])
    return fold(events)[1].snapshot().view(np.ones(len(texts), np.bool_))


def rows(view: FulltextView, query: Query | str) -> list[int]:
    found: list[int] = view.search(query, k=99).rows.tolist()
    return found


@given(st.lists(st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=6), max_size=8))
def test_every_word_in_one_document_only_finds_it(texts: list[list[str]]) -> None:
    documents = [" ".join(parts) for parts in texts]
    cut = [set(question_terms(document)) for document in documents]
    view = view_of(*documents)
    for row, (document, own) in enumerate(zip(documents, cut, strict=True)):
        others = set[str]().union(*cut[:row], *cut[row + 1 :])
        for word in words(document):
            spelled = word.decode()
            if len(terms(spelled)) == 1 and set(terms(spelled)) <= own - others:
                assert rows(view, spelled) == rows(view, Term(spelled)) == [row]
                assert row in rows(view, Prefix(spelled))


def test_every_word_of_a_corpus_in_one_document_only_finds_it(seed: int) -> None:
    dice = random.Random(seed)
    some = [word for word in vocabulary(4_000, dice) if terms(word)]
    texts = [" ".join(dice.choices(some, k=40)) for _ in range(300)]
    view = view_of(*texts)
    holders: dict[str, list[int]] = {}
    for row, text in enumerate(texts):
        for word in text.split():
            holders.setdefault(terms(word)[0], []).append(row)
    single = [word for text in texts for word in text.split() if len(holders[terms(word)[0]]) == 1]
    assert len(single) > 300
    for word in single:
        assert rows(view, word) == holders[terms(word)[0]]


def test_a_quoted_phrase_comes_first_and_leaves_out_nothing() -> None:
    """A quotation mark emptied an answer whose words were all there."""
    view = view_of("a log of the event", "the event log is long", "log", "events and logs")
    assert rows(view, '"event log"')[:2] == [3, 1]
    assert sorted(rows(view, '"event log" long')) == [0, 1, 2, 3]
    # Stop words do not stand between: positions do not count them.
    assert rows(view, "“event and logs”") == rows(view, '"event log"') == rows(view, "«Event log»")
    for question in ('a 5" event', '"" event', '"the" event', '"event', "event“", '"log"" event'):
        assert rows(view, question) == rows(view, question.replace('"', " ")), question
    assert rows(view, '"no such phrase" event') == rows(view, "event")
    quoted = plain('say "a" twice "b c", “d-e”')
    assert quoted == AnyWord('say "a" twice "b c", “d-e”', phrases=("b c", "d-e"))


@given(
    histories,
    st.lists(st.sampled_from((*WORDS, '"index memory"', "“memory index”", '"')), max_size=5),
)
def test_a_quoted_question_finds_what_its_words_find(
    events: list[Folded], parts: list[str]
) -> None:
    """A phrase adds to the score of the frames that have it, and changes no other score."""
    frames, fulltext = fold(events)
    table = frames.snapshot()
    view = fulltext.snapshot().view(table.alive(len(events)))
    question = " ".join(parts)
    plainly = re.sub('["“”]', " ", question)
    quoted, unquoted = (dict(found_by(view, table.ids, text)) for text in (question, plainly))
    assert quoted.keys() == unquoted.keys()
    phrases = {" ".join(terms(phrase)) for phrase in plain(question).phrases}
    for row, frame in enumerate(table.ids.tolist()):
        words_of_row = view.words(question, row)
        if frame in quoted:
            added = sum(word.added for word in words_of_row)
            assert quoted[frame] == pytest.approx(added, abs=1e-8)
            has_phrase = any(row in rows(view, Phrase(phrase)) for phrase in phrases)
            assert (quoted[frame] > unquoted[frame]) == has_phrase
    whole = view.search(question, k=99)
    for k in (1, 2, 5):
        best = view.search(question, k=k)
        assert best.rows.tolist() == whole.rows[:k].tolist()
        assert view.asked(question).at(best.rows).tolist() == whole.scores[:k].tolist()
    assert view.asked(question).most == view.asked(plainly).most


def test_the_start_of_a_word_finds_it_however_it_is_stemmed() -> None:
    # The terms are decis, univers, happi: shorter than what a reader types, or other.
    text = "Decisions of universities happily indexed"
    view = view_of(text, "else")
    for word in ("decisions", "universities", "happily", "indexed"):
        for size in range(1, len(word) + 1):
            assert rows(view, Prefix(word[:size])) == [0], word[:size]
    assert rows(view, Prefix("Universit")) == [0]
    assert rows(view, Prefix("universityx")) == []


def test_a_form_that_came_later_finds_nothing_earlier() -> None:
    # "decision" and "decisive" are one term; at 1 nobody had written a word with "decisi-o".
    events = events_of([PutFrame(text="decisive"), PutFrame(text="decision")])
    index = fold(events)[1].snapshot()
    assert rows(index.view(np.ones(1, np.bool_)), Prefix("decisio")) == []
    assert rows(index.view(np.ones(2, np.bool_)), Prefix("decisio")) == [0, 1]
    assert rows(index.view(np.ones(1, np.bool_)), Wildcard("*sion")) == []


def test_a_phrase_stays_within_its_field_and_its_frame() -> None:
    view = view_of("the index", "memory of", "index memory", title="memory loss")
    assert rows(view, Phrase("index memory")) == [2]
    assert sorted(rows(view, Phrase("memory loss"))) == [0, 1, 2]
    assert rows(view, Phrase("memory loss", Field.TEXT)) == []
    assert sorted(rows(view, Term("memory", Field.TEXT))) == [1, 2]


def test_a_word_in_the_title_counts_twice() -> None:
    events = events_of([PutFrame(text="index b c"), PutFrame(text="b c", title="index")])
    view = fold(events)[1].snapshot().view(np.ones(2, np.bool_))
    assert rows(view, "index") == [1, 0]


def test_a_pattern_of_many_stars_is_matched_in_no_time() -> None:
    # Tried naively, each further star would take a hundred times longer.
    view = view_of("a" * 120, "a" * 60 + "b")
    started = time.process_time()
    assert rows(view, Wildcard("*a" * 30 + "*b")) == [1]
    assert rows(view, Wildcard("*a*" * 20 + "c")) == []
    assert time.process_time() - started < 1


@pytest.mark.parametrize("query", [Prefix("put_f"), Prefix(""), Wildcard("*"), Wildcard("a b*")])
def test_a_pattern_is_one_word(query: Query) -> None:
    with pytest.raises(InvalidInput, match="word"):
        view_of("a").search(query)


def test_a_filter_needs_somebody_who_knows_it() -> None:
    with pytest.raises(Unsupported, match="'tag'"):
        view_of("a").search(FilterLeaf(Filter(tags=["x"])))
