"""Blame names the event since which a field has its value, as a scan of the versions finds it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata import Blame, Entity, NotFound, Store

FIELDS = ("text", "title", "tags", "metadata.colour", "expires")
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from(("Mill", "Ferry", None)),
        "tags": st.sampled_from((["a"], ["a", "b"], [])),
        "metadata": st.sampled_from(({}, {"colour": "red"}, {"colour": "blue", "size": 3})),
        "text": st.sampled_from(("one", "two")),
    },
)


def by_field(blame: Blame) -> dict[str, Any]:
    return {each.field: None if each.act is None else each.act.seq for each in blame.fields}


def value_of(frame: cerata.Frame, field: str) -> Any:
    if field.startswith("metadata."):
        return frame.metadata.get(field.removeprefix("metadata."))
    return getattr(frame, field)


@given(changes=st.lists(CHANGES, max_size=6))
def test_each_field_has_the_event_since_which_it_has_its_value(
    changes: list[dict[str, Any]],
) -> None:
    """At every version, also inside the transaction that writes it."""
    with cerata.open(":memory:") as store:
        frame = store.put_frame("zero", title="Start", metadata={"colour": "green"}).id
        versions = [frame]
        for change in changes:
            text = change.pop("text", None)
            if text is not None:
                frame = store.supersede(frame, text).id
            elif change:
                frame = store.update(frame, **change).id
            versions.append(frame)
        with store.transaction():
            pending = store.update(frame, title="Pending")
            assert by_field(store.history.blame(pending))["title"] == pending.id
        line = list(dict.fromkeys(versions))
        for place, version in enumerate(line):
            frames = [store.frame(each) for each in line[: place + 1]]
            found = by_field(store.history.blame(version))
            for field in FIELDS:
                value = value_of(frames[-1], field)
                since = place
                while since and value_of(frames[since - 1], field) == value:
                    since -= 1
                if field in found:
                    assert found[field] == line[since], field
                else:
                    assert not value


def test_the_writer_the_reason_and_the_batch_of_each_field() -> None:
    with cerata.open(":memory:", actor="anna") as store:
        note = store.put_frame("Monday.", title="Deploys")
        with store.transaction(actor="ben", reason="moved"):
            new = store.supersede(note, "Tuesday.")
            store.put_frame("beside")
        blame = store.history.blame(new)
        fields = {each.field: each for each in blame.fields}
        text, title = fields["text"], fields["title"]
        assert (text.value, text.batch) == ("Tuesday.", (2, 4))
        assert text.act is not None
        assert text.act.credit == "by ben (moved)"
        assert title.act is not None
        assert (title.act.seq, title.act.credit, title.batch) == (1, "by anna", (1, 1))
        store.delete(new, actor="cara", reason="old")
        ended = store.history.blame(new).ended
        assert ended is not None
        assert ended.credit == "by cara (old)"
        assert store.at(4).history.blame(new).ended is None
        assert blame.to_dict()["kind"] == "frame"


def test_a_correction_keeps_the_blame_of_the_rest() -> None:
    with cerata.open(":memory:", actor="anna") as store:
        note = store.put_frame("Alice moved to Rome.")
        first = store.assert_fact("alice", "lives in", Entity("paris"), valid_from="2020-01-01")
        again = store.assert_fact(
            "alice",
            "lives in",
            Entity("paris"),
            valid_from="2020-01-01",
            evidence=[note.id],
            confidence=0.5,
            options=cerata.FactOptions(actor="ben"),
        )
        found = by_field(store.history.blame(first))
        assert (found["object"], found["confidence"]) == (first.id, again.id)
        assert found["evidence"] == again.id
        fact = store.facts("alice")[0]
        assert store.history.blame(fact).kind == "fact"
        right = store.correct_fact(fact, object=Entity("rome"), actor="cara", reason="typo")
        found = by_field(store.history.blame(right.id))
        assert (found["subject"], found["object"]) == (first.id, right.id)
        assert (found["stated"], found["confidence"]) == (first.id, again.id)
        ended = store.history.blame(first).ended
        assert ended is not None
        assert ended.credit == "by cara (typo)"


def test_what_a_scope_hides_is_not_blamed() -> None:
    with cerata.open(":memory:") as store:
        shared = store.put_frame("rule", title="Rules", options=cerata.PutOptions(scope={}))
        mine = store.scoped({"user_id": "anna"}, shared=True)
        assert by_field(mine.history.blame(shared))["title"] == shared.id
        with pytest.raises(NotFound, match="no frame, fact or link 1"):
            store.scoped({"user_id": "anna"}).history.blame(shared)
        with pytest.raises(NotFound, match="no frame, fact or link 9"):
            store.history.blame(9)


def test_of_several_superseded_frames_the_newest_counts(store: Store) -> None:
    old = store.put_frame("one", title="T").id
    newer = store.put_frame("two", title="T").id
    both = store.put_frame("one and two", title="T").id
    store.supersede(old, both)
    store.supersede(newer, both)
    assert by_field(store.history.blame(both))["title"] == newer
