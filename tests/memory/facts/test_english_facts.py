"""Facts in plain English: what is understood, what is left alone, and where it stands."""

import pytest

from cerata import Store
from cerata.memory.facts.english import EnglishFacts


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
    store.graph.extract()
    data = store.files.content(1)
    quotes = [
        data[place.start : place.end].decode() for fact in store.facts() for place in fact.evidence
    ]
    assert quotes == ["Anna lives in\nOslo", "Änn lives in Łódź since May 2020"]


@pytest.mark.parametrize("space", ["\u00a0", "\u2003", "\u2028", "\u3000", "\x85", "\t"])
def test_spans_are_bytes_of_the_text_where_its_spaces_are_wide(store: Store, space: str) -> None:
    """White space of two and three bytes, within a fact and before the next one."""
    store.put_frame(f"Bob{space}lives in{space}Cité. Anna lives in{space}Oslo. It rains.")
    store.graph.extract()
    data = store.files.content(1)
    quotes = [
        data[place.start : place.end].decode() for fact in store.facts() for place in fact.evidence
    ]
    assert quotes == [f"Bob{space}lives in{space}Cité", f"Anna lives in{space}Oslo"]


def test_a_text_without_sentences_takes_no_time() -> None:
    """No form looks twice at a long run of what could begin one."""
    for part in ("Anna ", "Dr. ", "A\n", "Anna of of ", "Anna is the aa aa ", "- ", "a. "):
        assert said(part * (20_000 // len(part))) == []
