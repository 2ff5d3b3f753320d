"""Filters of nested metadata, over memories: saved, searched and as of the past."""

from pathlib import Path
from typing import Any

import cerata
from cerata import Filter


def test_nested_and_list_metadata_is_filtered(tmp_path: Path) -> None:
    """Tests of nested values and lists found nothing, in silence."""
    anna: dict[str, Any] = {
        "user": {"name": "anna", "age": 31},
        "langs": ["en", ["de"]],
        "cups": [{"size": 2}],
    }
    path = tmp_path / "m.cera"
    with cerata.open(path) as store:
        store.put_frame("one", metadata=anna)
        store.put_frame("two", metadata={"user.name": "anna", "langs": "en"})
        store.put_frame("three", metadata={"user": ["anna"], "langs": []})
        store.checkpoint()
    expected: list[tuple[Any, list[str]]] = [
        ({"user.name": "anna"}, ["two", "one"]),
        ({"user": {"name": "anna", "age": (">=", 30)}}, ["one"]),
        ({"user.age": (">", 31)}, []),
        ({"user.age": ("in", [1, 31])}, ["one"]),
        ({"user.name": ("exists", True)}, ["two", "one"]),
        ({"user": ("exists", True)}, ["three", "one"]),
        ({"user": ("contains", "anna")}, ["three"]),
        ({"langs": ("contains", "en")}, ["one"]),
        ({"langs": ("contains", "de")}, ["one"]),
        ({"langs": "en"}, ["two"]),
        ({"cups.size": ("contains", 2)}, ["one"]),
        ({"cups.size": 2}, []),
    ]
    with cerata.open(path) as store:
        for test, texts in expected:
            assert [frame.text for frame in store.frames(Filter(metadata=test))] == texts, test
        assert [hit.text for hit in store.search(cerata.query("metadata.langs:en"))] == [
            "one",
            "two",
        ]
        assert store.verify().ok
        late = Filter(metadata={"langs": ("contains", "en")})
        assert [len(list(store.at(n).frames(late))) for n in range(4)] == [0, 1, 1, 1]
    assert late.to_dict() == {"field": "metadata.langs", "operator": "contains", "value": "en"}
