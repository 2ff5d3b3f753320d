"""Contexts: never over the budget, whole entries first, at least the best one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata.retrieval.context import Entry, count_tokens, fill

ENTRIES = st.lists(
    st.builds(
        Entry,
        id=st.integers(1, 99),
        source=st.text(max_size=20).map(lambda text: text.encode(errors="ignore").decode()),
        text=st.text(min_size=1, max_size=300).map(
            lambda text: "x" + text.encode(errors="ignore").decode()
        ),
    ),
    max_size=6,
)


def start(_text: str) -> tuple[int, int]:
    return 0, 1


@given(ENTRIES, st.integers(1, 600))
def test_a_context_never_passes_its_budget(entries: list[Entry], budget: int) -> None:
    """A model's window is a hard limit."""
    items, text = fill(entries, budget, start)
    assert count_tokens(text) <= budget
    assert bool(items) == bool(entries)


def test_entries_come_whole_and_smaller_ones_fill_the_rest() -> None:
    """Half a memory misleads; a later one that fits is worth showing."""
    entries = [
        Entry(1, "a", "first"),
        Entry(2, "b", "x" * 500),
        Entry(3, "c", "third"),
    ]
    items, text = fill(entries, 40, start)
    assert [item.id for item in items] == [1, 3]
    assert text == "[a]\nfirst\n\n[c]\nthird"


def test_the_best_entry_is_clipped_around_its_span() -> None:
    """A budget smaller than the best memory still shows why it is the best."""
    entry = Entry(1, "s", "a " * 300 + "NEEDLE" + " b" * 300)
    items, text = fill([entry], 100, lambda _text: (600, 606))
    assert items[0].clipped
    assert "NEEDLE" in text
    assert count_tokens(text) <= 100


def test_a_budget_of_nothing_is_refused() -> None:
    """Silence would look like an empty memory."""
    with pytest.raises(cerata.InvalidInput, match="budget of 0"):
        fill([], 0, start)
