"""The lexicon: each sign and pattern has its example, and counts what a plain search counts."""

import re

import pytest
from blake3 import blake3

from cerata.agents.turns import lexicon
from cerata.agents.turns.lexicon import (
    COUNT_MAX,
    PATTERNS,
    SIGNS,
    Lexicon,
    Section,
    english_lexicon,
    lexicon_file,
)
from cerata.projections.fulltext.analyzer import words
from tools import signs_page

FILE = lexicon_file()
SPEAKERS = {"user": (True,), "assistant": (False,), "both": (True, False)}


def signs_of(text: str, *, is_users: bool) -> dict[str, int]:
    """Return the signs that a message has."""
    counts = english_lexicon().counts(text, words(text), is_users=is_users)
    return {name: count for name, count in zip(SIGNS, counts.signs, strict=True) if count}


def patterns_of(text: str, *, is_users: bool = True) -> set[str]:
    """Return the patterns that a message has."""
    bits = english_lexicon().counts(text, words(text), is_users=is_users).patterns
    return {name for place, name in enumerate(PATTERNS) if bits >> place & 1}


def test_the_file_has_every_sign_and_pattern_and_no_more() -> None:
    assert (set(FILE.signs), set(FILE.patterns)) == (set(SIGNS), set(PATTERNS))
    assert (len(SIGNS), len(PATTERNS)) == (24, 22)
    assert {section.of for section in FILE.signs.values()} == set(SPEAKERS)


def test_another_lexicon_has_another_version() -> None:
    """The stored counts come from these phrases: raise the version with each change."""
    phrases = sorted(
        (name, section.of, phrase)
        for name, section in [*FILE.signs.items(), *FILE.patterns.items()]
        for phrase in section.phrases
    )
    found = blake3(repr(phrases).encode()).hexdigest(8)
    assert (f"english/{FILE.version}", found) == (lexicon.LEXICON, "32b915d8de099119")


@pytest.mark.parametrize("name", SIGNS)
def test_a_sign_is_in_its_sentence_and_not_in_the_other(name: str) -> None:
    section = FILE.signs[name]
    for is_users in SPEAKERS[section.of]:
        assert signs_of(section.has, is_users=is_users)[name] > 0
        assert name not in signs_of(section.lacks, is_users=is_users)
    if section.of != "both":
        assert name not in signs_of(section.has, is_users=section.of == "assistant")


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_is_in_its_sentence_and_not_in_the_other(name: str) -> None:
    section = FILE.patterns[name]
    assert name in patterns_of(section.has)
    assert name not in patterns_of(section.lacks)
    assert not patterns_of(section.has, is_users=False)


def starts_of(section: Section, text: str) -> int:
    """Return the places at which a phrase starts, by regular expressions."""
    folded = " ".join(word.decode() for word in words(text))
    starts: set[int] = set()
    for phrase in set(section.phrases) - {"?"}:
        expression = " ".join("[^ ]+" if word == "*" else f"(?:{word})" for word in phrase.split())
        found = re.finditer(rf"(?=(?<![^ ]){expression}(?![^ ]))", folded)
        starts.update(match.start() for match in found)
    return len(starts) + (text.count("?") if "?" in section.phrases else 0)


SENTENCES = [
    sentence
    for section in [*FILE.signs.values(), *FILE.patterns.values()]
    for sentence in (section.has, section.lacks, f"{section.has} {section.lacks} {section.has}")
]


def test_counts_equal_a_plain_search() -> None:
    assert len(SENTENCES) == 3 * (24 + 22)
    for text in [*SENTENCES, " ".join(SENTENCES)]:
        counts = signs_of(text, is_users=True)
        for name in SIGNS:
            if FILE.signs[name].of != "assistant":
                assert counts.get(name, 0) == min(COUNT_MAX, starts_of(FILE.signs[name], text))
        expected = {name for name in PATTERNS if starts_of(FILE.patterns[name], text)}
        assert patterns_of(text) == expected


def test_a_count_ends_at_255() -> None:
    assert signs_of("I " * 1_000, is_users=True) == {"self": 255}


def test_punctuation_case_and_accents_do_not_matter() -> None:
    assert signs_of("I DON’T know…", is_users=True)["gap"] == 1
    assert signs_of("i don't know", is_users=True)["gap"] == 1


def test_a_phrase_of_one_word_with_an_apostrophe_is_refused() -> None:
    with pytest.raises(ValueError, match="no single word"):
        Lexicon({"gap": Section(phrases=["don't know"], has="", lacks="")}, {})


def test_the_page_of_signs_is_that_of_the_lexicon() -> None:
    """``python -m tools.signs_page`` writes it again."""
    assert signs_page.PAGE.read_text(encoding="utf-8") == signs_page.page()
