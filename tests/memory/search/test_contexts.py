"""Contexts of a memory: a policy says how each entry is told, and the same basis tells the same."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cerata
from cerata import ContextPolicy, Entity, Omission, Store, agents
from cerata.engine.events import RecallContext
from cerata.engine.salted_hashes import context_hash
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.retrieval.context import framing
from cerata.retrieval.context.packing import Order
from cerata.retrieval.tokenizer import tokenizer

NOTE = (
    "The ferry leaves at nine. It rains in spring, and the crew paints the hull then. "
    "The harbour bridge opens in May. Tickets for the bridge are sold by Anna at the pier. "
    "Lunch is pizza on most days, and soup on Monday. "
) * 2
TOLD: tuple[dict[str, Any], ...] = (
    {},
    {"policy": "tiered"},
    {"policy": "tiered", "layout": cerata.Layout(order="time", framing=True, form="markdown")},
    {"policy": ContextPolicy("mine", 1, shorten=True, gist_tokens=60), "max_tokens": 300},
)

ORDERS: tuple[Order, ...] = ("time", "score")


def fill(store: Store) -> None:
    """Notes of many ages, some of them said twice, one of them used, and a fact."""
    for number in range(12):
        created = f"20{10 + number:02}-03-01"
        store.put_frame(
            f"Note {number}. {NOTE}",
            tags=[f"t{number % 3}"],
            options=cerata.PutOptions(created=created),
        )
    store.put_frame("The bridge is closed today.", options=cerata.PutOptions(created="2011-01-01"))
    store.put_frame("The  bridge is closed TODAY.")
    store.put_frame(b"12345", options=cerata.PutOptions(search_text="bridge"))
    store.put_frame(b"123456", options=cerata.PutOptions(search_text=""))
    store.remember("# Bridge\n\n## When\n" + NOTE * 3, title="Bridge")
    store.assert_fact("bridge", "opens in", Entity("may"), evidence=[1])
    agents.record_access(store, 3, 5)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as opened:
        fill(opened)
        yield opened


TELL = """
import json, sys
import cerata
from tests.memory.search.test_contexts import TOLD
with cerata.open(sys.argv[1], mode="r") as store:
    view = store.at if sys.argv[2] == "saved" else store.stream.replay
    said = [view(int(sys.argv[3])).recall("when does the bridge open?", **told) for told in TOLD]
    print(json.dumps([one.to_dict() for one in said]))
"""


def test_the_same_basis_tells_the_same_in_another_process_without_any_checkpoint(
    tmp_path: Path,
) -> None:
    """Byte for byte, under another seed of hashes; from what was saved, and from the log alone."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        fill(store)
        basis = store.head.seq
        contexts = [store.at(basis).recall("when does the bridge open?", **told) for told in TOLD]
        store.put_frame("The bridge opened long ago.")
        store.checkpoint()
    expected = json.dumps([one.to_dict() for one in contexts])
    assert len({one.text for one in contexts}) == len(TOLD)
    for seed, state in (("1", "saved"), ("2", "replayed")):
        shutil.copy(path, tmp_path / "b.cera")
        done = subprocess.run(
            [sys.executable, "-c", TELL, tmp_path / "b.cera", state, str(basis)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            check=True,
            text=True,
        )
        assert done.stdout.strip() == expected


@settings(max_examples=60)
@given(
    max_tokens=st.integers(1, 900),
    told=st.sampled_from(TOLD),
    query=st.sampled_from(["when does the bridge open?", "bridge", "zebra", "note"]),
    lead=st.booleans(),
)
def test_within_any_budget_all_that_was_found_is_told_once_or_left_out_for_a_reason(
    store: Store, max_tokens: int, told: dict[str, Any], query: str, lead: bool
) -> None:
    layout = dataclasses.replace(told.get("layout", cerata.Layout()), framing=lead)
    told = told | {"max_tokens": max_tokens, "layout": layout}
    context = store.recall(query, **told)
    assert context.tokens == tokenizer().count(context.text) <= max_tokens
    shown = [one for item in context.items for one in (item.id, *item.joined)]
    told["max_tokens"] = 99_999
    every = store.recall(query, **told)
    found = {one for item in every.items for one in (item.id, *item.joined)} | {*every.omitted}
    found -= {fact.id for fact in store.facts()}
    assert sorted(shown) == sorted(set(shown))
    assert not {*shown} & {*context.omitted}
    assert {*shown, *context.omitted} - {fact.id for fact in store.facts()} == found
    assert all(one.duplicate_of in (None, *shown) for one in context.omissions)


def test_a_context_without_room_for_an_entry_is_empty_and_says_so(store: Store) -> None:
    """A budget of one token gave a model the text "[#"."""
    context = store.recall("bridge", max_tokens=1, floor=False)
    assert (context.text, context.tokens, context.items) == ("", 0, ())
    assert context.omitted
    assert context.confidence == "clear"
    assert context.notices == ("no entry fits max_tokens=1: pass a larger budget",)
    assert store.recall("bridge", max_tokens=100).notices == ()
    assert store.recall("bridge", max_tokens=1, layout=cerata.Layout(framing=True)).text == ""


@pytest.mark.parametrize("told", TOLD)
def test_what_was_shown_is_made_again_from_the_event(told: dict[str, Any]) -> None:
    """By its basis and its policy, whatever the clock says."""
    with cerata.open(":memory:") as store:
        fill(store)
        context = store.recall("when does the bridge open?", record=True, **told)
        store.delete(1)
        [event] = store.log(context.recorded or 0, context.recorded)
        body = event.body
        assert isinstance(body, RecallContext)
        policy = told.get("policy", "whole")
        label = f"{body.policy} {body.policy_version}"
        assert label == context.policy
        again = store.at(body.basis).recall(
            body.query,
            max_tokens=body.max_tokens,
            policy=policy if isinstance(policy, ContextPolicy) else label,
            profile=body.profile,
            layout=cerata.Layout(
                entry_tokens=body.entry_tokens,
                form=cast("Any", body.form),
                order=cast("Any", body.order),
                framing=body.framing,
            ),
        )
        shown = (*body.frames, *body.facts)
        salts = [one.salt for seq in shown for one in store.log(seq, seq)]
        assert context_hash(salts, again.text) == body.context
        assert body.omitted == tuple(again.omitted)


def test_a_tier_follows_from_age_and_use(store: Store) -> None:
    """All are years old; two were used today."""
    context = store.recall("note", policy="tiered 1", max_tokens=5_000)
    tiers = {item.id: item.tier for item in context.items}
    assert (tiers[1], tiers[3], tiers[5]) == ("line", "full", "full")
    exactly = store.recall("which note?", policy="tiered 1", max_tokens=5_000)
    assert {item.id for item in exactly.items} == set(tiers)
    whole = store.recall("note", max_tokens=5_000)
    assert {item.tier for item in whole.items} == {"full"}
    assert context.tokens < whole.tokens / 2
    # The newer version shortens only for lack of room.
    newer = store.recall("note", policy="tiered", max_tokens=5_000)
    assert (newer.tokens, {item.tier for item in newer.items}) == (whole.tokens, {"full"})


def test_ages_are_counted_to_the_last_event_and_not_to_the_clock() -> None:
    """Else the same basis would tell another thing next week."""
    with cerata.open(":memory:") as store:
        store.put_frame(f"Note. {NOTE}", options=cerata.PutOptions(created="2020-01-01"))
        store.put_frame(f"Other note. {NOTE}", options=cerata.PutOptions(created="2020-01-02"))
        then = store.at("HEAD").recall("note", policy="tiered 1")
        assert [item.tier for item in then.items] == ["line", "line"]
        assert store.at(2).recall("note", policy="tiered 1").text == then.text


def test_what_is_said_twice_is_told_once(store: Store) -> None:
    """The better one stays; of two equally good ones the older."""
    context = store.recall("bridge closed today")
    assert Omission(14, duplicate_of=13) in context.omissions
    assert 14 in context.omitted
    assert context.text.lower().count("closed today") == 1
    said = {one.id: one.to_dict() for one in context.omissions}
    assert said[14] == {"id": 14, "duplicate_of": 13, "reason": "duplicate of #13"}
    sizes = store.recall(cerata.query("NOT zebra"), max_tokens=90_000)
    assert {15, 16} <= {item.id for item in sizes.items}


def test_framing_stands_first_and_is_counted(store: Store) -> None:
    plain, framed = (
        store.recall("bridge", layout=cerata.Layout(framing=one)) for one in (False, True)
    )
    assert framed.text.startswith(framing.FOUND)
    assert (plain.framed, framed.framed) == (False, True)
    assert framed.tokens == tokenizer().count(framed.text) <= 1_500
    assert store.recall("?", layout=cerata.Layout(framing=True)).text.startswith(framing.FALLBACK)
    for query in ("zebra", "of the"):
        assert store.recall(query, layout=cerata.Layout(framing=True)).text == framing.EMPTY
    with cerata.open(":memory:") as empty:
        nothing = empty.recall("zebra", layout=cerata.Layout(framing=True))
        assert (nothing.text, nothing.items) == (framing.EMPTY, ())
        assert nothing.tokens == tokenizer().count(framing.EMPTY)
    small = store.recall("bridge", max_tokens=80, layout=cerata.Layout(framing=True))
    assert not small.framed
    assert small.items


def test_order_by_time_is_by_when_it_was_said(store: Store) -> None:
    """The newest stand in for what was not found, and then the earliest of them comes first."""
    by_time, by_score = (
        store.recall("?", max_tokens=9_999, layout=cerata.Layout(order=one)) for one in ORDERS
    )
    assert by_time.fallback
    times = [store.frame(item.id).created for item in by_time.items]
    assert times == sorted(times)
    assert by_time.items != by_score.items
    assert {item.id for item in by_time.items} == {item.id for item in by_score.items}


def test_a_policy_order_or_form_that_there_is_not_is_refused(store: Store) -> None:
    with pytest.raises(cerata.InvalidInput, match="no context policy 'tierd'"):
        store.recall("x", policy="tierd")
    with pytest.raises(cerata.InvalidInput, match=r"order must be .* not 'newest'"):
        store.recall("x", layout=cerata.Layout(order="newest"))  # type: ignore[arg-type]


def test_a_keyed_block_that_recalls_what_it_put_can_be_run_again() -> None:
    """What came of the recall was held against the first run's, where days were others."""
    with cerata.open(":memory:") as store:
        days = set[int]()
        for _ in range(2):
            with store.transaction(key="turn-1"):
                put = store.put_frame("the tea house")
                days.add(store.frame(put).created.year)
                store.recall("tea", record=True)
        assert store.head.seq == 2
    assert len(days) == 1
    assert 1970 not in days


def test_children_of_one_frame_with_spans_of_their_own_do_not_join() -> None:
    """Of two that both began at 0 one was taken for a part of the other, and not told."""
    with cerata.open(":memory:") as store:
        parent = store.put_frame("dialogue").id
        for text in ("Alpha tea is green.", "Gamma tea is black."):
            store.put_frame(
                text, metadata={"span": [0, len(text)]}, options=cerata.PutOptions(parent=parent)
            )
        assert "Gamma" in store.recall("tea").text


def test_accesses_in_a_transaction_are_folded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were for each frame: a second for 2,000."""
    folded, own = list[str](), Snapshot.user_projection

    def count(view: Snapshot, name: str) -> Any:
        folded.append(name)
        return own(view, name)

    monkeypatch.setattr(Snapshot, "user_projection", count)
    with cerata.open(":memory:") as store:
        store.put_frames([f"tea {number}" for number in range(30)])
        agents.record_access(store, *range(1, 31))
        with store.transaction():
            store.put_frame("tea")
            agents.accesses(store)
            store.recall("tea", policy="tiered")
    assert len(folded) <= 4


@pytest.mark.hnsw
def test_an_approximate_recall_says_so() -> None:
    """It could not be made again: nothing said that a graph had chosen."""
    with cerata.open(":memory:") as store:
        store.put_frame("tea", vectors=cerata.Vectors(dense=[1.0, 0.0], space="toy"))
        context = store.recall(
            "tea", record=True, vectors=cerata.Vectors(dense=[1.0, 0.0], approximate=True)
        )
        assert context.recorded is not None
        [event] = store.log(context.recorded, context.recorded)
        assert isinstance(event.body, RecallContext)
        assert event.body.approximate


def test_a_policy_of_ones_own_does_not_pass_for_one_that_comes_with_it() -> None:
    with cerata.open(":memory:") as store, pytest.raises(cerata.InvalidInput, match="differs from"):
        store.recall("tea", policy=ContextPolicy("tiered", 1))
