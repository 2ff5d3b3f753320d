"""Text to terms: pinned results, so that no upgrade moves them unseen."""

import random
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.engine.errors import Unsupported
from cerata.projections.fulltext import english as english_module
from cerata.projections.fulltext import unicode_tables
from cerata.projections.fulltext.analyzer import spans, terms, words
from cerata.projections.fulltext.english import WORD_SIZE_MAX, Rules, english
from cerata.projections.fulltext.script_stems import SCRIPTS
from tools import unicode_tables as unicode_generator

CASES = {
    "The indexes we were running": ["index", "run"],
    "put_frame and don't, 3.11!": ["put", "frame", "3", "11"],
    "Café Straße ÅNGSTRÖM": ["cafe", "strass", "angstrom"],
    "Ελλάδα ΣΊΣΥΦΟΣ Ёлка": ["ελλαδ", "σισυφ", "елк"],
    "e\u0301te\u0301 \ufb01ne \uff21\uff22": ["ete", "fine", "ab"],
    "東京都": ["東", "東京", "京", "京都", "都"],
    "東京tower東": ["東", "東京", "京", "tower", "東"],
    "한국어": ["한", "한국", "국", "국어", "어"],
    "हिन्दी हिँदी हिंदी भाषा": ["हिंद", "हिंद", "हिंद", "भाष"],
    "मूंगफली मूँगफली सम्बन्ध संबंध": ["मूंगफल", "मूंगफल", "संबंध", "संबंध"],
    "चाँद चांद पञ्च पंच कण्ठ कंठ अङ्क अंक": ["चांद", "चांद", "पंच", "पंच", "कंठ", "कंठ", "अंक", "अंक"],
    "ज़रूर जरूर \u0958लम कलम": ["जरूर", "जरूर", "कलम", "कलम"],
    "किराये किराए किराया गयी": ["किर", "किर", "किर", "गय"],
    "सम्मान अन्न जन्म न्त": ["सम्मान", "अन्न", "जन्म", "न्त"],
    "હિન્દી હિંદી ਪੰਜਾਬ ਪਂਜਾਬ": ["હિંદી", "હિંદી", "ਪਂਜਾਬ", "ਪਂਜਾਬ"],
    "సంబన్ధం சந்தை": ["సంబంధం", "சந்தை"],
    "\u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f": ["محمد"],
    "½ ² – “quoted” 🙂": ["1", "2", "2", "quot", "🙂"],
    "": [],
    "of the and": [],
    "\x00\ud800": [],
}


@pytest.mark.parametrize("given_text", CASES)
def test_terms_of_known_texts(given_text: str) -> None:
    assert terms(given_text) == CASES[given_text]


@given(st.text(max_size=60))
def test_spans_are_the_terms_with_their_places(given_text: str) -> None:
    # Highlights cut text by another path than the index; they must find the same terms.
    found = spans(given_text)
    assert [span.term for span in found] == terms(given_text)
    for span in found:
        assert 0 <= span.start < span.end <= len(given_text)
        if given_text[span.start : span.end].isascii():
            assert terms(given_text[span.start : span.end]) == [span.term]


@given(st.text(max_size=60))
def test_folding_twice_changes_nothing(given_text: str) -> None:
    spaced = [word.decode() for word in words(given_text)]
    if not any(unicode_generator.is_unspaced(c) for c in "".join(spaced) if len(c) == 1):
        assert [word for part in spaced for word in words(part)] == [w.encode() for w in spaced]


@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_ascii_is_cut_by_its_own_path_as_any_text_is(given_text: str) -> None:
    beyond = words(given_text + " é")
    assert [*words(given_text), b"e"] == beyond


@pytest.mark.parametrize("word", ["हिन्दी", "मूँगफली", "किराये", "आयी", "सम्\u200dबन्ध", "સમ્બન્ધ"])
def test_a_word_of_two_spellings_is_marked_whole(word: str) -> None:
    # Two letters fold to one: a word that ends with them ends after the second.
    (span,) = spans(f"«{word}»")
    assert (span.start, span.end) == (1, 1 + len(word))


def test_the_samples_of_the_stemmers_are_folded_words() -> None:
    for script in SCRIPTS:
        assert [word.decode() for word in words(script.probe)] == script.probe.split()


def test_a_long_word_counts_by_its_beginning() -> None:
    # A megabyte of base64 must not become a megabyte of dictionary.
    long = "a" * 1_000
    assert terms(long) == ["a" * WORD_SIZE_MAX]
    assert terms("é" * 1_000 + " ü") == ["e" * WORD_SIZE_MAX, "u"]
    assert terms("я" * 1_000) == ["я" * (WORD_SIZE_MAX // 2)]


def test_the_fast_stemmer_is_whooshs_own() -> None:
    """Rules are left out for words that they cannot change; Whoosh asks each of every word."""
    from whoosh.lang import porter2

    rules = cast("Rules", porter2)
    fast = english()._stem
    sources = sorted(Path(random.__file__).parent.glob("*.py"))[:50]
    found = set(re.findall("[a-z]+", " ".join(p.read_text("utf-8") for p in sources).lower()))
    endings = [*rules.s4_delete_list, "s", "ed", "ing", "y", "sses", "ied", "sion", "ll", "eed"]
    endings += [suffix for suffix, *_ in (*rules.s2_triples, *rules.s3_triples)]
    dice = random.Random(1)
    for _ in range(20_000):
        start = "".join(dice.choices("abcdeilnosty", k=dice.randrange(6)))
        found.add(start + "".join(dice.choices(endings, k=dice.randrange(1, 4))))
    assert len(found) > 20_000
    assert [word for word in found if fast(word) != rules.stem(word)] == []


_LETTERS = st.text("abcdefghijklmnopqrstuvwxyz", max_size=8)
_ENDINGS = st.sampled_from(
    (
        "ational",
        "tion",
        "sion",
        "ion",
        "ement",
        "ousli",
        "logi",
        "li",
        "eed",
        "edly",
        "y",
        "ll",
        "e",
    )
)


@given(_LETTERS, st.lists(_ENDINGS | _LETTERS, min_size=1, max_size=3))
def test_the_fast_stemmer_stems_any_letters_as_whoosh_does(start: str, ends: list[str]) -> None:
    from whoosh.lang import porter2

    word = start + "".join(ends)
    assert english()._stem(word) == cast("Rules", porter2).stem(word)


@pytest.mark.parametrize("change", ["other probe", "no rules"])
def test_the_stemmer_is_checked_when_it_is_loaded(
    monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    # Another stemmer would give other terms for the same log, silently.
    from whoosh.lang import porter2

    english.cache_clear()
    if change == "other probe":
        monkeypatch.setattr(english_module, "_PROBE_DIGEST", "0" * 16)
    else:
        monkeypatch.delattr(porter2, "s2_triples")
    with pytest.raises(Unsupported, match="cuts English words differently"):
        english()
    monkeypatch.undo()
    assert english().term(b"running") == b"run"


def test_terms_of_a_column_are_those_of_each_word() -> None:
    """Stop words, words that are no English, and words of each limit."""
    words = [b"the", b"running", b"x", b"311", b"a1", "\u6771".encode()]
    words += [size * b"s" for size in (40, 41, 128, 129)]
    assert english().terms(words) == [english().term(word) for word in words]


def test_the_tables_are_what_the_generator_writes() -> None:
    if unicodedata.unidata_version != unicode_tables.UNICODE_VERSION:
        pytest.skip("this Python has another Unicode version")
    committed = Path(unicode_tables.__file__ or "").read_text(encoding="utf-8")
    assert unicode_generator.tables() == committed


def test_importing_the_projections_loads_no_whoosh() -> None:
    # It costs 10 ms that most commands never need.
    root = Path(__file__).parents[3]
    code = (
        f"import sys; sys.path.insert(0, {str(root)!r});"
        "import cerata.projections.fulltext.projection;"
        "assert not [name for name in sys.modules if name.startswith('whoosh')];"
        "from cerata.projections.fulltext.analyzer import terms; terms('running');"
        "assert 'whoosh.analysis' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)
