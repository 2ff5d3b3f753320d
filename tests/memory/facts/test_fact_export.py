"""Facts as JSON Lines: what is carried over, and what is not."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import cerata
from cerata import Entity, InvalidInput, Store

from .json_lines import TEXT, line


def test_ids_and_known_times_are_the_copys_own(store: Store, copy: Store) -> None:
    store.put_frames(["something else", "first"])
    fact = store.assert_fact("ann", "likes", "tea", valid_from="2020-01-01")
    copy.interchange.import_facts(store.interchange.export_facts())
    [here], [there] = store.facts(), copy.facts()
    assert (here.id, there.id) == (fact.id, 2)
    assert here.known != there.known
    assert here.stated == there.stated


def test_a_start_that_the_clock_gave_is_kept(store: Store, copy: Store) -> None:
    """What was true from when it was recorded was so there, not from when it came here."""
    store.assert_fact("ann", "likes", "tea")
    copy.interchange.import_facts(store.interchange.export_facts())
    assert copy.facts()[0].valid == store.facts()[0].valid


@pytest.mark.parametrize(
    "value",
    [
        *("tea", "", "a\nb", "\u2028", "ä", 1, -(1 << 63), (1 << 63) - 1, 1.0, 0.1, 5e-324, 1e308),
        *(True, False, b"", b"\x00\xff", Entity("1"), datetime(1, 1, 1, tzinfo=UTC)),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ],
)
def test_every_kind_of_object_comes_back(store: Store, copy: Store, value: Any) -> None:
    store.assert_fact("ann", "is", value)
    copy.interchange.import_facts(store.interchange.export_facts())
    [found] = copy.facts()
    assert (type(found.object), found.object) == (type(value), value)


def test_evidence_is_found_by_its_content(store: Store, copy: Store) -> None:
    """Ids are others here; what is not here is counted, and the fact comes all the same."""
    frame, gone = store.put_frame(TEXT), store.put_frame("only there")
    store.assert_fact("ann", "lives in", "x", evidence=[(frame, 0, 3), gone])
    copy.put_frame("before")
    here = copy.put_frame(TEXT)
    done = copy.interchange.import_facts(store.interchange.export_facts())
    assert [(one.frame, one.start, one.end) for one in copy.facts()[0].evidence] == [
        (here.id, 0, 3)
    ]
    assert done.missing == 1


def test_evidence_in_a_chunk_is_found_by_its_document(store: Store, copy: Store) -> None:
    text = "\n\n".join(f"# Part {number}\n\n" + "word " * 300 for number in range(4))
    document = store.remember(text)
    chunk = store.files.chunks(document)[2]
    store.assert_fact("part", "has", "words", evidence=[(chunk, 2, 6)])
    copy.put_frame("before")
    lines = list(store.interchange.export_facts())
    other = copy.remember(text)
    assert copy.interchange.import_facts(lines).missing == 0
    assert copy.facts()[0].evidence[0].frame == copy.files.chunks(other)[2]


def test_evidence_of_another_tenant_is_not_taken(store: Store, copy: Store) -> None:
    frame = store.put_frame(TEXT)
    store.assert_fact("ann", "lives in", "x", evidence=[frame])
    copy.put_frame(TEXT, options=cerata.PutOptions(scope={"tenant": "other"}))
    assert copy.interchange.import_facts(store.interchange.export_facts()).missing == 1
    assert copy.facts()[0].evidence == ()


def test_what_was_retracted_comes_with_the_history_alone(store: Store, copy: Store) -> None:
    wrong = store.assert_fact("ann", "likes", Entity("tea"), valid_from="2020-01-01")
    store.correct_fact(wrong, object=Entity("coffee"))
    copy.interchange.import_facts(store.interchange.export_facts())
    assert [str(one) for one in copy.facts(include_retracted=True)] == ["ann · likes · coffee"]
    # Who was named is there in the same order.
    assert [one.name for one in copy.graph.entities()] == ["ann", "tea", "coffee"]
    with cerata.open(":memory:") as whole:
        whole.interchange.import_facts(store.interchange.export_facts(history=True))
        found = whole.facts(include_retracted=True)
        assert [(str(one), one.is_known) for one in found] == [
            ("ann · likes · tea", False),
            ("ann · likes · coffee", True),
        ]


def test_depth_follows_from_the_causes_that_come(store: Store, copy: Store) -> None:
    first = store.assert_fact("ann", "is", "tired")
    second = store.assert_fact("ann", "needs", "tea", options=cerata.FactOptions(because=first))
    store.correct_fact(second, object="coffee")
    copy.interchange.import_facts(store.interchange.export_facts(history=True))
    assert [one.depth for one in copy.facts(include_retracted=True)] == [0, 1, 1]


def test_a_split_of_what_does_not_come_leaves_its_names(store: Store, copy: Store) -> None:
    fact = store.assert_fact("ann", "likes", "tea")
    store.graph.split("ann", "other ann", [fact])
    store.retract_fact(fact)
    copy.interchange.import_facts(store.interchange.export_facts())
    assert [one.name for one in copy.graph.entities()] == [
        one.name for one in store.graph.entities()
    ]
    assert [one.name for one in copy.graph.entities()] == ["ann", "other ann"]


def test_merges_and_splits_that_ended_do_not_come(store: Store) -> None:
    facts = [store.assert_fact(name, "likes", "tea") for name in ("ann", "bob")]
    store.graph.unmerge(store.graph.merge("ann", "bob"))
    store.graph.unsplit(store.graph.split("ann", "carl", facts[:1]))
    assert kinds(store.interchange.export_facts()) == ["export", "fact", "fact"]


def kinds(lines: Iterator[str]) -> list[str]:
    return [json.loads(one)["type"] for one in lines]


def test_a_narrower_view_exports_its_own(store: Store, copy: Store) -> None:
    store.assert_fact("ann", "likes", "tea")
    store.assert_fact("ann", "likes", "milk", options=cerata.FactOptions(scope={"session": "s1"}))
    view = store.history.view().within((("tenant", "default"), ("session", "s1")))
    copy.interchange.import_facts(view.interchange.export_facts())
    [fact] = copy.facts()
    assert (fact.object, dict(fact.scope)) == ("milk", {"tenant": "default", "session": "s1"})


def test_a_narrower_view_says_nothing_of_frames_that_it_hides(store: Store) -> None:
    """Neither the URI of another session's frame nor the hash of its content; all of it does."""
    fact = store.assert_fact(
        "ann", "likes", "tea", options=cerata.FactOptions(scope={"session": "a"})
    )
    shown = store.put_frame(
        "in a", uri="mem://a", options=cerata.PutOptions(scope={"session": "a"})
    )
    hidden = store.put_frame(
        "secret", uri="mem://b", options=cerata.PutOptions(scope={"session": "b"})
    )
    again = store.assert_fact(
        *("ann", "likes", "milk"),
        evidence=[shown, hidden],
        options=cerata.FactOptions(because=fact, scope={"session": "a"}),
    )
    view = store.history.view().within((("tenant", "default"), ("session", "a")))
    assert [one.text for one in view.graph.evidence(again)] == ["in a", None]
    text = "\n".join(view.interchange.export_facts())
    assert "mem://a" in text
    assert "mem://b" not in text
    assert cerata.content_hash("secret").hex() not in text
    assert "mem://b" in "\n".join(store.interchange.export_facts())


def test_what_a_transaction_gathered_is_not_exported(store: Store) -> None:
    with store.transaction():
        store.assert_fact("ann", "likes", "tea")
        with pytest.raises(InvalidInput, match="pending"):
            store.interchange.export_facts()


def test_a_store_of_a_scope_takes_lines_into_it(store: Store) -> None:
    """Those without a scope come under its own; those of another tenant are refused."""
    store.assert_fact("ann", "likes", "tea")
    lines = list(store.interchange.export_facts())
    other = line(id=9, scope={"tenant": "t2"})
    with cerata.open(":memory:", scope={"tenant": "t1", "user_id": "u"}) as own:
        own.interchange.import_facts(lines)
        assert dict(own.facts()[0].scope) == {"tenant": "t1", "user_id": "u"}
        with pytest.raises(InvalidInput, match=r"cannot become 't2' \(line 1\)"):
            own.interchange.import_facts([other])
        assert len(own.facts()) == 1
