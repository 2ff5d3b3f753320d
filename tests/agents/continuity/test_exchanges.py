"""Messages and exchanges: what is one exchange, what is a repetition, and how a thread resumes."""

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import cerata
from cerata import Agent, Closed, Conflict, IdempotencyConflict, InvalidInput, ReadOnly, Store
from cerata.agents.activities.columns import ActivityKind
from cerata.agents.activities.values import activities_at
from cerata.agents.continuity.exchanges import Exchange, Talk
from cerata.agents.continuity.resumption import last_entry
from cerata.engine.events import Scope
from cerata.memory.batch.writer import session_of
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.values.frames import Receipt

from ...clocks import StandingClock

MINUTE = 60_000_000


def texts(exchanges: list[Exchange]) -> list[tuple[str | None, str | None]]:
    return [
        (
            None if each.question is None else each.question.text,
            None if each.reply is None else each.reply.text,
        )
        for each in exchanges
    ]


def test_an_exchange_is_one_batch_and_the_reply_names_the_question(store: Store) -> None:
    session = Agent(store, "wyatt").session("s", thread="taxes", mode="booth", user="anna")
    receipt = session.exchange("Did he call?", "He called at nine.")
    question, reply = receipt.ids
    log = session_of(store).log
    events = [log.event(question), log.event(reply)]
    assert {event.header.last_seq for event in events} == {reply}
    assert events[1].causation == question
    frame = store.frame(reply)
    assert (frame.kind, frame.role, frame.track) == ("message", "assistant", "wyatt")
    assert dict(frame.scope) == {
        "tenant": "default",
        "user": "anna",
        "session_id": "s",
        "thread": "taxes",
        "mode": "booth",
    }
    [exchange] = session.exchanges()
    assert (exchange.id, exchange.session, exchange.created) == (question, "s", frame.created)
    assert texts([exchange]) == [("Did he call?", "He called at nine.")]


def test_pairs_follow_causation_then_the_order(store: Store, clock: StandingClock) -> None:
    session = Agent(store, "wyatt").session("s")

    def say(role: str, text: str) -> Receipt:
        clock.time_us += 2 * MINUTE
        return session.message(role, text)

    say("user", "one")
    say("user", "two")
    say("assistant", "to two")
    say("assistant", "unasked")
    say("user", "three")
    assert texts(session.exchanges()) == [
        ("one", None),
        ("two", "to two"),
        (None, "unasked"),
        ("three", None),
    ]
    assert texts(session.exchanges(2)) == [(None, "unasked"), ("three", None)]


def _never(_talk: Talk) -> bool:
    return False


def test_the_usual_case_of_pairs_equals_the_rule(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Agent(store, "wyatt").session("s")
    receipts = [session.exchange(f"question {n}", f"answer {n}") for n in range(5)]
    store.supersede(receipts[1].ids[0], "edited")
    usual = session.exchanges()
    assert len(usual) == 5
    monkeypatch.setattr(Talk, "_alternate", _never)
    assert session.exchanges() == usual


def test_two_sessions_of_a_thread_do_not_mix(store: Store) -> None:
    agent = Agent(store, "wyatt")
    first, second = agent.session("a"), agent.session("b")
    first.message("user", "from a")
    second.message("user", "from b")
    second.message("assistant", "to b")
    first.message("assistant", "to a")
    assert texts(first.exchanges()) == [("from a", "to a")]
    assert texts(second.exchanges()) == [("from b", "to b")]


def test_an_edit_keeps_the_place_and_a_deleted_message_does_not_count(store: Store) -> None:
    session = Agent(store, "wyatt").session("s")
    first = session.exchange("the first", "to the first")
    session.exchange("the second", "to the second")
    store.supersede(first.ids[0], "the first, edited")
    assert texts(session.exchanges()) == [
        ("the first, edited", "to the first"),
        ("the second", "to the second"),
    ]
    store.delete(first.ids[1])
    assert texts(session.exchanges())[0] == ("the first, edited", None)


# --- repetitions ---------------------------------------------------------------------------------


def test_the_same_id_is_the_same_message(store: Store, clock: StandingClock) -> None:
    agent = Agent(store, "wyatt")
    session = agent.session("s")
    receipt = session.exchange("Yes?", "No.", id="m-1")
    clock.time_us += 3_600 * MINUTE
    head = store.head.seq
    again = agent.session("s").exchange("Yes?", "No.", id="m-1")
    assert (again.ids, again.added) == (receipt.ids, False)
    assert store.head.seq == head + 1
    with pytest.raises(IdempotencyConflict):
        session.exchange("Yes?", "Maybe.", id="m-1")
    assert agent.session("other").exchange("Yes?", "Maybe.", id="m-1").added
    assert agent.session("s", user="anna").exchange("Yes?", "Maybe.", id="m-1").added


def test_without_an_id_an_equal_newest_message_of_a_minute_is_the_same(
    store: Store, clock: StandingClock
) -> None:
    agent = Agent(store, "wyatt")
    session = agent.session("s")
    first = session.message("user", "ok")
    clock.time_us += MINUTE
    assert session.message("user", "ok").ids == first.ids
    assert agent.session("s").message("user", "ok").ids == first.ids
    assert session.message("assistant", "ok").added
    assert session.message("user", "ok").added
    clock.time_us += MINUTE + 10
    assert session.message("user", "ok").added
    pair = session.exchange("a", "b")
    assert session.exchange("a", "b").ids == pair.ids
    assert session.exchange("a", "c").added
    assert not session.message("assistant", "c").added


def test_a_message_of_another_handle_ends_a_repetition(store: Store) -> None:
    """The newest message counts, not the last one that this object put."""
    agent = Agent(store, "wyatt")
    first, second = agent.session("s"), agent.session("s")
    assert first.message("user", "ok").added
    assert second.message("user", "x").added
    assert first.message("user", "ok").added
    assert not second.message("user", "ok").added


# --- times and bad input -------------------------------------------------------------------------


def test_a_time_is_that_of_the_message(store: Store) -> None:
    session = Agent(store, "wyatt").session("s")
    session.exchange("then", "yes", created="2026-01-05T10:00:00+01:00")
    [exchange] = session.exchanges()
    assert exchange.created == datetime(2026, 1, 5, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("role", "text", "more"),
    [
        ("system", "x", {}),
        ("", "x", {}),
        ("user", "", {}),
        ("user", 3, {}),
        ("user", "x", {"created": datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)}),
        ("user", "x", {"created": "2026-01-01T10:00:00"}),
        ("user", "x", {"id": ""}),
        ("user", "x", {"id": "i" * 201}),
        ("user", "x", {"id": 7}),
    ],
)
def test_bad_messages_write_nothing(
    store: Store, role: str, text: str, more: dict[str, object]
) -> None:
    session = Agent(store, "wyatt").session("s")
    head = store.head.seq
    with pytest.raises(InvalidInput):
        session.message(role, text, **more)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert store.head.seq == head


def test_messages_need_an_open_session_and_no_transaction(store: Store) -> None:
    with Agent(store, "wyatt").session("s") as session:
        with store.transaction(), pytest.raises(InvalidInput, match="transaction"):
            session.message("user", "x")
        with pytest.raises(InvalidInput, match="whole number from 1"):
            session.exchanges(0)
    with pytest.raises(Closed):
        session.exchange("x", "y")
    assert session.exchanges() == []


def test_a_message_with_one_half_of_a_failed_batch_is_absent(store: Store) -> None:
    session = Agent(store, "wyatt").session("s")
    with pytest.raises(InvalidInput):
        session.exchange("a question", "")
    assert session.exchanges() == []


# --- threads -------------------------------------------------------------------------------------


def test_a_session_says_how_its_thread_resumes(store: Store) -> None:
    agent = Agent(store, "wyatt")
    with agent.session("a", thread="taxes") as session:
        assert (session.resumed, session.thread, session.mode) == ("new", "taxes", "chat")
    assert agent.session("b", thread="taxes").resumed == "returned"
    assert agent.session("c", thread="taxes", mode="code").resumed == "crashed"
    assert agent.session("d").resumed == "new"
    assert agent.session("d").resumed == "crashed"
    assert agent.session("e", thread="taxes", user="anna").resumed == "new"
    assert Agent(store, "other").session("f", thread="taxes").resumed == "new"


def test_a_thread_of_a_session_never_changes_and_its_mode_may(store: Store) -> None:
    agent = Agent(store, "wyatt")
    with agent.session("s", thread="taxes"):
        pass
    head = store.head.seq
    with pytest.raises(Conflict, match="belongs to the thread 'taxes'"):
        agent.session("s")
    assert store.head.seq == head
    assert agent.session("s", thread="taxes", mode="code").mode == "code"


@pytest.mark.parametrize("label", ["", " taxes", "a\nb", "x" * 101, "\u2028", 7])
def test_unusable_names_of_threads_and_modes_are_refused(store: Store, label: str) -> None:
    agent = Agent(store, "wyatt")
    head = store.head.seq
    for call in ({"thread": label}, {"mode": label}):
        with pytest.raises(InvalidInput):
            agent.session("s", **call)
    for read in (agent.handoff, agent.topics, agent.entropy):
        with pytest.raises(InvalidInput):
            read(label)
    assert store.head.seq == head


def test_slots_of_a_session_get_its_thread_and_mode(store: Store) -> None:
    memory = {"plan": cerata.MemorySpec(scope=("thread", "mode"))}
    agent = Agent(store, "wyatt", memory=memory)
    agent.session("a", thread="taxes").slot("plan").set("step", 1)
    assert agent.session("b", thread="taxes").slot("plan").get("step") == 1
    assert agent.session("c", thread="taxes", mode="code").slot("plan").get("step") is None


def test_an_agent_of_the_past_reads_and_does_not_talk(store: Store) -> None:
    agent = Agent(store, "wyatt")
    session = agent.session("s")
    receipt = session.exchange("one", "two")
    session.exchange("three", "four")
    past = agent.at(receipt)
    assert [message.text for message in past.handoff().messages] == ["one", "two"]
    with pytest.raises(ReadOnly):
        past.session("s")


def remember_lines(store: Store, folder: Path, text: str) -> None:
    path = folder / "talk.jsonl"
    path.write_text(text)
    store.remember(path, options=cerata.PutOptions(track="wyatt"))


def test_messages_remembered_with_a_track_belong_to_the_agent(store: Store, tmp_path: Path) -> None:
    """A transcript has its session in the metadata, and is of the thread main."""
    turns = [
        {"role": "user", "content": "Where is it?", "timestamp": "2026-01-02T10:00:00Z"},
        {"role": "assistant", "content": "In the drawer.", "timestamp": "2026-01-02T10:00:05Z"},
    ]
    lines = [json.dumps({**turn, "session": "old"}) for turn in turns]
    remember_lines(store, tmp_path, "\n".join(lines))
    handoff = Agent(store, "wyatt").handoff()
    assert [message.text for message in handoff.messages] == ["Where is it?", "In the drawer."]
    assert handoff.session == "old"


def test_a_long_turn_in_chunks_is_one_message(store: Store, tmp_path: Path) -> None:
    long = " ".join(f"word{number}" for number in range(900))
    line = json.dumps({"role": "user", "content": long, "session": "old"})
    remember_lines(store, tmp_path, line)
    [thread] = Agent(store, "wyatt").threads()
    assert (thread.messages, thread.sessions) == (1, 1)
    [message] = Agent(store, "wyatt").handoff().messages
    assert long.startswith(message.text)
    assert message.created - datetime.now(UTC) < timedelta(days=1)


def test_the_evidence_of_a_score_is_plain(store: Store) -> None:
    """Its day was a date, which JSON refuses."""
    agent = Agent(store, "wyatt")
    with agent.session("s") as session:
        session.message("user", "I am scared of it.", created="2026-01-07T10:00:00Z")
    [score] = [each for each in agent.standing() if each.evidence]
    [match] = json.loads(json.dumps(score.to_dict()))["evidence"]
    assert (match["pattern"], match["day"]) == ("names-fear", "2026-01-07")


def test_the_newest_entry_is_that_of_a_search_at_every_event(store: Store) -> None:
    """The index of starts answers as a walk over all sessions; entries come again and end."""
    drawn = random.Random(7)
    agent = Agent(store, "wyatt")
    for _ in range(30):
        name, thread = drawn.choice("abcd"), drawn.choice(("main", "taxes"))
        session = agent.session(f"{name}-{thread}", thread=thread)
        if drawn.random() < 0.5:
            session.__exit__(None, None, None)
    main: Scope = (("tenant", "default"),)
    for basis in range(store.head.seq + 1):
        activities = activities_at(snapshot_of(store.at(basis)).within({"tenant": "default"}))
        for scope in (main, (*main, ("thread", "taxes"))):
            entries = [
                (last_entry(activities, row), row)
                for row in activities.all_activities(ActivityKind.SESSION, "wyatt")
                if activities.scope_of(row.row) == scope
            ]
            newest = activities.newest_entry(ActivityKind.SESSION, "wyatt", scope)
            assert newest == max(entries, default=None)
        assert activities.newest_entry(ActivityKind.RUN, "wyatt", main) is None
        assert activities.newest_entry(ActivityKind.SESSION, "wyat", main) is None


def test_a_session_keeps_its_project_in_a_slot(store: Store) -> None:
    agent = Agent(store, "wyatt")
    with agent.session("s") as session:
        assert session.project is None
    with agent.session("s", project="taxes 2025") as session:
        assert session.project == "taxes 2025"
        assert session.slot("project").get() == "taxes 2025"
        before = store.head.seq
    with Agent(store, "wyatt").session("s") as session:
        assert session.project == "taxes 2025", "kept without a ttl"
    with Agent(store, "wyatt").session("t") as session:
        assert session.project is None, "of its session alone"
    with agent.session("s", project="garden") as session:
        assert session.project == "garden"
    assert agent.at(before).slot("project", session_id="s").get() == "taxes 2025"
    head = store.head.seq
    agent.session("s", project="garden")
    assert store.head.seq == head + 1, "the entry alone"
    with pytest.raises(InvalidInput, match="project"):
        agent.session("s", project="")
