"""The prose of each room stays plain technical English: rates of bad habits under a ceiling."""

from pathlib import Path

import pytest

from .prose import PATTERNS, ROOMS, VAGUE_SHARE_MAX, files_of, matches, rates, vague_share

BAD = {
    "clause as subject": "What is none is refused.",
    "dialect": "Whoever asks for it anew is nobody.",
    "empty passive": "A caller is told.",
    "say and tell": "The page says which.",
    "what as a clause": "It holds what was put.",
    "who": "A process who writes.",
    "where for if": "Where there are none, it fails.",
    "own": "The file has a lock of its own.",
    "stands for is": "The key stands in the tenant.",
    "one as a pronoun": "The old one is closed.",
    "it": "It is closed.",
}


@pytest.mark.parametrize("name", PATTERNS)
def test_each_pattern_finds_its_habit(name: str) -> None:
    """A pattern that matches nothing would measure nothing."""
    assert matches(BAD[name], name)
    assert not matches(
        "The writer appends a batch if the lock is free. What does a crash leave?", name
    )


@pytest.mark.parametrize("room", ROOMS)
def test_the_prose_of_a_room_is_under_the_ceilings(checkout: Path, room: str) -> None:
    """The dialect came back a comment at a time, since no check looked."""
    found = rates(files_of([checkout / room]))
    assert {name: rate for name, rate in found.items() if rate > PATTERNS[name][1]} == {}


@pytest.mark.parametrize("room", [room for room in ROOMS if room != "docs" and "." not in room])
def test_names_hint_at_their_values(checkout: Path, room: str) -> None:
    """A loop over facts, frames and lanes that all are "one" reads three times."""
    assert vague_share(files_of([checkout / room])) <= VAGUE_SHARE_MAX
