"""Marks of turns: against a plain reference, and only for frames with a role."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata.projections.fulltext.analyzer import folded, words
from cerata.projections.fulltext.fields import PROTOCOL_ROLES
from cerata.projections.fulltext.marks import Mark, marks_of
from cerata.projections.fulltext.word_table import cut

TEXTS = {
    "We met in 2019": Mark.TIME | Mark.NUMBER,
    "Room 2512, please": Mark.NUMBER,
    "it was yesterday": Mark.TIME,
    "I may come": 0,
    "two cats": Mark.NUMBER,
    "at 5pm": Mark.NUMBER,
    "version v2": 0,
    "We met Anna, and Olaf": Mark.NAME,
    "Anna met us. Then we left": 0,
    "so I think": 0,
    "I left, so that it ends": Mark.CAUSE,
    "so it is that": 0,
    "because": Mark.CAUSE,
    "Really? ": Mark.QUESTION,
    "本当?": Mark.QUESTION,
    "Really? Yes": 0,
    "since Monday?": Mark.TIME | Mark.CAUSE | Mark.NAME | Mark.QUESTION,
    "": 0,
    "?": Mark.QUESTION,
    "\ud800".encode("utf-8", "replace").decode(): Mark.QUESTION,
}


def marked(texts: list[str]) -> list[int]:
    """Return the marks of texts that are folded together."""
    data, sizes = folded(texts)
    found = cut(data)
    ends = np.searchsorted(found.starts, np.cumsum(np.array(sizes, np.int64) + 1))
    starts = np.concatenate([[0], ends[:-1]])
    marks: list[int] = marks_of(texts, data, found, np.stack([starts, ends], axis=1)).tolist()
    return marks


def test_each_text_has_its_marks() -> None:
    assert dict(zip(TEXTS, marked([*TEXTS]), strict=True)) == TEXTS
    assert marked([""]) == [0]


PIECES = ("so", "that", "since", "Monday", "in", "Rome", ",", "7", "v7", "two", "?", "1999", "é")


@given(texts=st.lists(st.lists(st.sampled_from(PIECES)).map(" ".join), min_size=1, max_size=6))
def test_marks_do_not_depend_on_the_batch(texts: list[str]) -> None:
    """A turn is folded alone or with hundreds."""
    assert marked(texts) == [marked([text])[0] for text in texts]
    for text, mark in zip(texts, marked(texts), strict=True):
        folds = [word.decode() for word in words(text)]
        digits = any(word[0].isdigit() for word in folds)
        assert bool(mark & Mark.NUMBER) == (digits or "two" in folds)
        assert bool(mark & Mark.TIME) == bool({"monday", "1999", "since"}.intersection(folds))
        assert bool(mark & Mark.CAUSE) == ("since" in folds or "so that" in " ".join(folds))
        assert bool(mark & Mark.QUESTION) == text.endswith("?")
        assert bool(mark & Mark.NAME) == bool(re.search("[a-z,] [A-Z][a-z]", text))


@pytest.mark.parametrize("rebuilt", [False, True])
def test_only_frames_with_a_role_are_marked(tmp_path: Path, *, rebuilt: bool) -> None:
    """Also after the file is read again, and after a replay."""
    path = tmp_path / "m.cera"
    with cerata.open(path) as store:
        store.put_frame("When, in Rome?", role="mina")
        store.put_frame("When, in Rome?")
        store.put_frame("Only the text counts", role="mina", title="In 1999?", tags=["monday"])
    with cerata.open(path) as store:
        if rebuilt:
            store.upkeep.rebuild()
        ranking = store.history.view()._snapshot().layers.ranking
        rows = np.arange(3)
        assert ranking.marks[rows].tolist() == [Mark.NAME | Mark.QUESTION, 0, 0]
        assert ranking.text_lengths[rows].tolist() == [1, 1, 2]


@pytest.mark.parametrize("role", sorted(PROTOCOL_ROLES))
def test_a_role_of_a_protocol_is_no_word_and_has_no_marks(role: str) -> None:
    """A question with the word "user" matched each turn of that role."""
    with cerata.open(":memory:") as store:
        store.put_frame("When, in Rome?", role=role.title())
        named = store.put_frame("When, in Rome?", role=f"{role} one")
        assert [
            hit.id for hit in store.search(f"the {role}", page=cerata.Page(group_by="frame"))
        ] == [named.id]
        ranking = store.history.view()._snapshot().layers.ranking
        assert ranking.marks[np.arange(2)].tolist() == [0, Mark.NAME | Mark.QUESTION]
        assert store.count(where=cerata.Filter(role=role.title()))[0] == 1
