"""Turns that a context shows: their sessions, as of every event, and the same in two processes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cerata
from cerata import Context, ContextPolicy, Store
from cerata.engine.events import RecallContext
from cerata.engine.salted_hashes import context_hash
from cerata.retrieval.tokenizer import tokenizer

QUESTION = "where is the key of the boat"
WORDS = ("key", "boat", "pot", "harbour", "blue", "shed")
FIELDS: dict[str, Any] = {
    "chat": {"track": "chat"},
    "other": {"track": "other"},
    "monday": {"metadata": {"session": "monday"}},
    "seven": {"metadata": {"session": 7}},
    "scope": {"scope": {"session_id": "s1"}},
    "none": {},
}

Put = tuple[list[str], str | None, str, int, str]
PUTS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), min_size=2, max_size=6),
        st.sampled_from(("Mina", "Olaf", "user", None)),
        st.sampled_from(tuple(FIELDS)),
        st.integers(1, 3),
        st.sampled_from(("put", "put", "put", "delete")),
    ),
    min_size=1,
    max_size=9,
)


Frames = dict[int, tuple[str, str | None, str, str]]
"""The text, role, session and day of each frame, in the order of writing."""


def write(store: Store, puts: list[Put]) -> Frames:
    frames: Frames = {}
    for place, (words, role, session, day, act) in enumerate(puts):
        # Each text is another, so that none is left out as a duplicate.
        text = f"n{place} {' '.join(words)}."
        named = dict(FIELDS[session])
        put = store.put_frame(
            text,
            role=role,
            metadata=named.pop("metadata", None),
            options=cerata.PutOptions(created=f"2024-05-0{day}", **named),
        )
        frames[put.id] = text, role, session, f"2024-05-0{day}"
        if act == "delete":
            store.delete(put)
    return frames


def plainly_shown(context: Context, frames: Frames) -> str:
    """Return the text of the shown frames, their sessions in the order of the first shown."""
    groups: dict[Any, list[int]] = {}
    for item in context.items:
        _, role, session, _ = frames[item.id]
        is_turn = role is not None and session != "none"
        groups.setdefault(session if is_turn else item.id, []).append(item.id)
    blocks: list[str] = []
    for numbers in groups.values():
        lines: list[str] = []
        heading = ""
        for number in sorted(numbers, key=[*frames].index):
            text, role, session, day = frames[number]
            is_turn = role is not None and session != "none"
            shown = f"{day}:" if is_turn else f"[#{number} · {day}]"
            if shown != heading:
                lines += ["", shown] if heading else [shown]
            heading = shown
            name = "" if role is None else f"#{number} {role}: " if is_turn else f"{role}: "
            lines.append(name + text)
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


@settings(max_examples=25, deadline=None)
@given(puts=PUTS, max_tokens=st.integers(60, 400))
def test_a_context_equals_a_plain_reference_as_of_every_event(
    puts: list[Put], max_tokens: int
) -> None:
    """The sessions are those of the conversations, at a basis and inside a transaction."""
    with cerata.open(":memory:") as store:
        frames = write(store, puts)
        bases = range(1, store.head.seq + 1)
        contexts = [store.at(n).recall(QUESTION, max_tokens=max_tokens, floor=False) for n in bases]
        for n, context in zip(bases, contexts, strict=True):
            assert context.tokens == tokenizer().count(context.text) <= max_tokens
            assert context.text == plainly_shown(context, frames)
            assert [context.text[slice(*item.span)] for item in context.items] == [
                frames[item.id][0] for item in context.items
            ]
            assert (
                store.stream.replay(n).recall(QUESTION, max_tokens=max_tokens, floor=False)
                == context
            )
    with cerata.open(":memory:") as store, store.transaction():
        frames = write(store, puts)
        context = store.recall(QUESTION, max_tokens=max_tokens, floor=False)
        assert context.text == plainly_shown(context, frames)


def fill(store: Store) -> None:
    """Two chats, a document, a note without a speaker, and a superseded turn."""
    texts = ("Where is the key of the boat?", "In the blue pot.", "And the harbour?", "Closed.")
    for track, day in (("chat", "2024-05-01"), ("other", "2024-06-01")):
        for place, text in enumerate(texts):
            role = ("Mina", "Olaf")[place % 2]
            store.put_frame(
                f"{text} {track}", role=role, options=cerata.PutOptions(track=track, created=day)
            )
    store.put_frame(
        "Mina sold the boat in the harbour.",
        title="Boat",
        options=cerata.PutOptions(created="2024-07-01"),
    )
    store.remember("# Boat\n\nThe key of the boat is blue. " * 40, title="Manual")
    store.supersede(2, "In the red pot.")


TOLD: tuple[dict[str, Any], ...] = (
    {},
    {"layout": cerata.Layout(form="markdown", framing=True, order="time")},
    {"policy": "tiered", "max_tokens": 120},
    {"policy": "whole 2"},
    {"where": cerata.Filter(include_superseded=True), "layout": cerata.Layout(neighbours=1)},
)


def _chosen(told: dict[str, Any], body: RecallContext) -> dict[str, Any]:
    """Return the recorded profile and policy, the policy unless it was passed by name."""
    chosen: dict[str, Any] = {"profile": f"{body.profile} {body.profile_version}"}
    if "policy" not in told:
        chosen["policy"] = f"{body.policy} {body.policy_version}"
    return chosen


@pytest.mark.parametrize("told", TOLD)
def test_a_recorded_recall_is_made_again(told: dict[str, Any]) -> None:
    """By the basis, and the version of the policy: the earlier ones write as they did."""
    with cerata.open(":memory:") as store:
        fill(store)
        context = store.recall(QUESTION, record=True, **told)
        store.delete(1)
        [event] = store.log(context.recorded or 0, context.recorded)
        body = event.body
        assert isinstance(body, RecallContext)
        again = store.at(body.basis).recall(body.query, **told, **_chosen(told, body))
        salts = [one.salt for seq in (*body.frames, *body.facts) for one in store.log(seq, seq)]
        assert context_hash(salts, again.text) == body.context
        assert again.items == context.items


READ = """
import json, sys
import cerata
from tests.memory.search.test_turns_shown import QUESTION, TOLD
with cerata.open(sys.argv[1], mode="r") as store:
    print(json.dumps([store.recall(QUESTION, **told).to_dict() for told in TOLD]))
"""


def test_another_process_writes_the_same(tmp_path: Path) -> None:
    """Byte for byte, under another seed of hashes."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        fill(store)
        view = store.at("HEAD")
        expected = json.dumps([view.recall(QUESTION, **told).to_dict() for told in TOLD])
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", READ, path],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            check=True,
            text=True,
        )
        found = json.loads(done.stdout)
        for one in (found, again := json.loads(expected)):
            for context in one:
                del context["now"]
        assert found == again


def test_an_old_version_of_a_turn_has_its_own_heading() -> None:
    """The reader sees that another text replaced it."""
    with cerata.open(":memory:") as store:
        fill(store)
        text = store.recall(
            "the blue pot", max_tokens=3_000, where=cerata.Filter(include_superseded=True)
        ).text
        assert "2024-05-01 · superseded by #13:\n#2 Olaf: In the blue pot. chat\n" in text


def test_turns_with_a_title_or_place_keep_them() -> None:
    """A mail is a turn of its thread, and its subject is part of its source."""
    with cerata.open(":memory:") as store:
        for text, title in (("The key is lost.", "Key"), ("The key is here.", "Re: Key")):
            store.put_frame(
                text,
                role="Ann",
                title=title,
                options=cerata.PutOptions(track="mail", created="2024-05-01"),
            )
        context = store.recall("key", layout=cerata.Layout(order="time"))
        assert context.text == (
            "2024-05-01 · Key:\n#1 Ann: The key is lost.\n\n"
            "2024-05-01 · Re: Key:\n#2 Ann: The key is here."
        )
        assert [item.source for item in context.items] == [
            "#1 · Key · 2024-05-01",
            "#2 · Re: Key · 2024-05-01",
        ]


def test_bytes_and_names_of_several_lines_stay_on_one_line() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame(
            b"123", role="Ann\n[#9 · x]", options=cerata.PutOptions(search_text=" ", track="mail")
        )
        context = store.recall("?")
        assert context.text.splitlines()[1] == "#1 Ann [#9 · x]: (3 bytes)"


def test_the_policy_switches_sessions_off() -> None:
    """A policy of a user's own keeps a line of source for each turn."""
    with cerata.open(":memory:") as store:
        fill(store)
        mine = ContextPolicy("mine", 1, by_session=False)
        grouped, apart = (
            store.recall(QUESTION, policy=policy, max_tokens=3_000, floor=False)
            for policy in (None, mine)
        )
        assert apart.text.count("[#1 ·") == 1
        assert "#1 Mina:" in grouped.text
        assert grouped.tokens < apart.tokens
        assert {item.id for item in grouped.items} == {item.id for item in apart.items}
        assert [item.speaker for item in apart.items] == [None] * len(apart.items)
