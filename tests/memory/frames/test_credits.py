"""Where actor and reason are shown: events, frames, explanations, and the filters of the log."""

import json

import pytest

import cerata
from cerata.engine.events import UnknownBody

from ...inside import log_of
from ..facts.world import environment, time_at


def test_a_version_names_who_put_it_and_who_closed_it() -> None:
    """The history of a frame answers who changed it, when and why."""
    with cerata.open(":memory:", actor="agent") as store:
        old = store.put_frame("tea at four", options=cerata.PutOptions(actor="ann"))
        new = store.supersede(old, "tea at five", actor="ben", reason="moved")
        store.delete(new, reason="no tea")
        first, second = store.history.of(old)
        assert (first.actor, first.reason) == ("ann", None)
        assert first.closed is not None
        assert (first.closed.seq, first.closed.type) == (3, "supersedeFrame")
        assert first.closed.credit == "by ben (moved)"
        assert (second.actor, second.reason) == ("ben", "moved")
        assert second.closed is not None
        assert (second.closed.seq, second.closed.actor, second.closed.reason) == (
            *(4, "agent", "no tea"),
        )
        assert store.at(2).frame(1).closed is None
        assert json.loads(json.dumps(first.to_dict()))["closed"]["reason"] == "moved"


def test_pending_versions_name_them_too() -> None:
    """What is read in a transaction is what is there after it."""
    with cerata.open(":memory:", actor="agent") as store:
        old = store.put_frame("tea at four")
        with store.transaction(reason="tidying"):
            new = store.supersede(old, "tea at five")
            first, second = store.history.of(old)
            assert first.closed is not None
            assert (first.closed.seq, first.closed.credit) == (-2, "by agent (tidying)")
            assert (second.actor, second.reason) == ("agent", "tidying")
            events = list(store.log(type="supersedeFrame"))
            assert [(event.seq, event.reason) for event in events] == [(-2, "tidying")]
        assert store.frame(new).reason == "tidying"


def test_a_closing_outside_the_scope_shows_no_name() -> None:
    """The reader of a narrower scope must not learn who wrote outside of it."""
    with cerata.open(":memory:") as store:
        frame = store.put_frame("a", options=cerata.PutOptions(scope={"user": "u"}))
        store.delete(frame, actor="admin", reason="audit 7")
        narrow = store.history.view().within({"user": "u"}).frame(frame)
        assert (narrow.active, narrow.closed) == (False, None)
        assert store.frame(frame).closed is not None


def test_an_explanation_names_who_asserted_and_who_retracted() -> None:
    """One line for a fact, with the names on that line whatever they contain."""
    with cerata.open(":memory:") as store:
        fact = store.assert_fact("tea", "is at", "four", options=cerata.FactOptions(actor="ann"))
        plain = store.assert_fact("tea", "is", "hot")
        assert str(store.graph.why(plain)) == f"#{plain.id} tea · is · hot: stands"
        assert str(store.graph.why(fact)) == "#1 tea · is at · four: stands, asserted by ann"
        store.retract_fact(fact, actor="ben", reason="a\nlie")
        why = store.graph.why(fact)
        assert str(why) == (
            "#1 tea · is at · four: invalid, asserted by ann, retracted by #3 by ben (a lie)"
        )
        assert why.retracted is not None
        assert why.to_dict()["retracted"] == why.retracted.to_dict()


def test_the_log_is_filtered_by_type_actor_correlation_scope_and_time() -> None:
    """An audit reads a part of the log, and needs no code for that."""
    place, clock = environment()
    with cerata.open(":memory:", environment=place) as store:
        store.put_frame("a", options=cerata.PutOptions(actor="ann"))
        clock.sleep(60)
        store.put_frame("b", options=cerata.PutOptions(actor="ben", scope={"user": "u"}))
        clock.sleep(60)
        store.assert_fact("c", "is", 1, options=cerata.FactOptions(actor="ann"))
        clock.sleep(60)
        store.append(
            cerata.Draft(cerata.events.PutFrame(text="d"), actor="ann", correlation="run 1")
        )
        log_of(store).append(
            [cerata.Draft(UnknownBody(kind="later", kind_version=1, data=b"\x80"))]
        )
        since = [time_at(event.recorded) for event in store.log()]

        def seqs(**options: object) -> list[int]:
            return [event.seq for event in store.log(**options)]  # type: ignore[arg-type]

        assert seqs(type="putFrame") == seqs(type=cerata.events.PutFrame) == [1, 2, 4]
        assert seqs(type="later") == [5]
        assert seqs(actor="ann") == [1, 3, 4]
        assert seqs(actor="ann", type="putFrame", first=2) == [4]
        assert seqs(correlation="run 1") == [4]
        assert seqs(scope={"user": "u"}) == [2]
        assert seqs(since=since[2]) == [3, 4, 5]
        assert seqs(until=since[2]) == [1, 2]
        assert seqs(since=since[1], until=since[3]) == [2, 3]
        assert seqs(since=since[3], last=3) == []
        for options in ({"type": 5}, {"actor": 5}, {"since": "soon"}, {"correlation": b"x"}):
            with pytest.raises(cerata.InvalidInput):
                seqs(**options)
        with pytest.raises(cerata.InvalidInput, match="before its start"):
            seqs(since=since[3], until=since[1])


def test_an_event_as_plain_values_is_whole() -> None:
    """An export of the log lost the actor, the reason and most of the body."""
    with cerata.open(":memory:") as store:
        store.put_frame(
            "a",
            title="t",
            metadata={"n": [1]},
            options=cerata.PutOptions(actor="ann", created="2026-03-01"),
        )
        [event] = store.log()
        plain = json.loads(json.dumps(event.to_dict()))
        assert (plain["seq"], plain["type"], plain["actor"]) == (1, "putFrame", "ann")
        assert (plain["reason"], plain["correlation"], plain["batch"]) == (None, None, [1, 1])
        assert plain["body"]["metadata"] == {"n": [1]}
        assert plain["body"]["created"] == 1_772_323_200_000_000
        assert repr(event).endswith("causation=None), actor='ann')")
