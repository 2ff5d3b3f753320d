"""Speakers: two people of a chat have two names, wherever a turn is shown."""

import json
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata.integrations.mcp.service import Service

CHATS: dict[str, list[dict[str, Any]]] = {
    "name": [
        {"role": "user", "name": "Anna", "content": "Where is the spare key?"},
        {"role": "user", "name": "Ben", "content": "The spare key is under the pot."},
        {"role": "tool", "name": "search", "content": "No key was found."},
    ],
    "author": [
        {"author": {"role": "user", "name": "Anna"}, "content": "Where is the spare key?"},
        {"author": {"role": "human", "name": "Ben"}, "content": "The spare key is under the pot."},
        {"author": {"role": "tool", "name": "search"}, "content": "No key was found."},
    ],
}


@pytest.mark.parametrize("shape", CHATS)
def test_two_people_are_shown_with_their_names(shape: str, tmp_path: Path) -> None:
    """Both were "user:", and an answer was taken for the question's."""
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(CHATS[shape]))
    with cerata.open(":memory:") as store:
        store.remember(path)
        turns = [frame for frame in store.frames(include_chunks=True) if frame.role]
        assert {frame.role for frame in turns} == {"Anna", "Ben", "tool"}
        texts = (
            str(store.recall("spare key")),
            Service(store).call("recall", {"query": "spare key"}).text,
        )
        for text in texts:
            assert "Anna" in text
            assert "Ben" in text
            assert "user" not in text
        assert {hit.frame.role for hit in store.search("spare key")} >= {"Anna", "Ben"}
