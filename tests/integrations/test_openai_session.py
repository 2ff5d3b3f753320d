# Where the extra openai-agents is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""CerataSession: the cases of the SDK's session tests (openai-agents 0.24.0, MIT).

Of ``tests/memory/test_session.py`` 37 cases with this session, and the 15 cases of
``test_session_limit.py``. A case runs with each of the three methods of the runner. Left out, since
they test no session or another session's inside:

- No session: test_await_mutation_*, test_session_memory_disabled_parametrized,
  test_session_settings_resolve.
- Connections, locks and tables of SQLite: *_connections*, *_file_lock_*, *_releases_write_lock of
  pop, *_rolls_back of clear, *_rollback_failure_*, *_quarantined_*, *_close_*, *_closed_*.
- Rows that are no JSON, which a memory cannot hold: *_corrupt_*.
"""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("agents.memory.session_settings", reason="needs the extra openai-agents")

import importlib

import cerata
from cerata.integrations.openai_agents import CerataSession

pytestmark = pytest.mark.openai_agents

# By name, since the checkout has a folder "agents", too.
sdk: Any = importlib.import_module("agents")
testing: Any = importlib.import_module("agents.testing")
SessionSettings: Any = sdk.SessionSettings

each_method = pytest.mark.parametrize("method", ["run", "run_sync", "run_streamed"])


@pytest.fixture(autouse=True)
def _without_traces() -> None:
    sdk.set_tracing_disabled(True)


@pytest.fixture
def memory() -> Iterator[cerata.Store]:
    with cerata.open(":memory:") as store:
        yield store
        assert store.verify().ok


@pytest.fixture
def session(memory: cerata.Store) -> CerataSession:
    return CerataSession("conversation", memory)


class Talk:
    """An agent whose model gives fixed answers, and the input of its last call."""

    def __init__(self, method: str = "run") -> None:
        self.model = testing.ScriptedModel()
        self.agent = sdk.Agent(name="test", model=self.model)
        self._method = method

    def ask(self, question: Any, answer: str, **named: Any) -> str:
        """Return the agent's answer."""
        self.model.enqueue([testing.assistant_message(answer)])
        if self._method == "run_sync":
            result = self._run_sync(question, **named)
        elif self._method == "run":
            result = asyncio.run(sdk.Runner.run(self.agent, question, **named))
        else:
            result = asyncio.run(self._streamed(question, **named))
        return str(result.final_output)

    def _run_sync(self, question: Any, **named: Any) -> Any:
        # The runner leaves a loop that it made open.
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            return sdk.Runner.run_sync(self.agent, question, **named)
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    async def _streamed(self, question: Any, **named: Any) -> Any:
        result = sdk.Runner.run_streamed(self.agent, question, **named)
        async for _ in result.stream_events():
            pass
        return result

    @property
    def input(self) -> list[Any]:
        return list(self.model.calls[-1].input)


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def reply(text: str) -> Any:
    return {"role": "assistant", "content": text}


def add(session: CerataSession, *items: Any) -> None:
    asyncio.run(session.add_items(list(items)))


def items_of(session: CerataSession, limit: int | None = None) -> list[Any]:
    return asyncio.run(session.get_items(limit))


def pop(session: CerataSession) -> Any:
    return asyncio.run(session.pop_item())


def contents(items: list[Any]) -> list[Any]:
    return [item["content"] for item in items]


# --- the runner -----------------------------------------------------------------------------------


@each_method
def test_the_second_turn_has_the_first(method: str, session: CerataSession) -> None:
    """The model gets the whole conversation."""
    talk = Talk(method)
    assert talk.ask("What city has the bridge?", "San Francisco", session=session) == (
        "San Francisco"
    )
    assert talk.ask("What state is it in?", "California", session=session) == "California"
    assert len(talk.input) == 3


@each_method
def test_a_new_handle_of_a_session_goes_on(method: str, memory: cerata.Store) -> None:
    """The id alone names the conversation."""
    talk = Talk(method)
    talk.ask("Hi there", "Hello", session=CerataSession("explicit", memory))
    talk.ask("Do you remember?", "You said hi", session=CerataSession("explicit", memory))
    assert talk.input[0]["content"] == "Hi there"


@each_method
def test_sessions_have_histories_of_their_own(method: str, memory: cerata.Store) -> None:
    """Cats are not in the session of dogs."""
    first, second = (CerataSession(name, memory) for name in ("session_1", "session_2"))
    talk = Talk(method)
    talk.ask("I like cats", "I like cats", session=first)
    talk.ask("I like dogs", "I like dogs", session=second)
    assert talk.ask("What do I like?", "Yes, cats", session=first) == "Yes, cats"
    assert "dogs" not in repr(talk.input)
    assert len(items_of(first)) == 4
    assert len(items_of(second)) == 2


@each_method
def test_a_list_as_input_is_appended(method: str, session: CerataSession) -> None:
    """History comes first, as it was stored."""
    history = [user("Earlier message"), reply("Saved reply")]
    add(session, *history)
    talk = Talk(method)
    talk.ask([user("Test message")], "This should run", session=session)
    assert talk.input == [*history, user("Test message")]


@each_method
def test_a_callback_chooses_from_the_history(method: str, session: CerataSession) -> None:
    """The callback gets the stored items."""
    history = [user("Hello there."), reply("Hi, I'm here to assist you.")]
    add(session, *history)

    def without_replies(old: list[Any], new: list[Any]) -> list[Any]:
        return [item for item in old if item["role"] == "user"] + new

    talk = Talk(method)
    config = sdk.RunConfig(session_input_callback=without_replies)
    talk.ask([user("What is your name?")], "I'm gpt-4o", session=session, run_config=config)
    assert talk.input == [history[0], user("What is your name?")]


@each_method
def test_a_callback_that_repeats_history_stores_nothing_twice(
    method: str, session: CerataSession
) -> None:
    """Each turn adds a question and an answer."""

    def repeat_first(old: list[Any], new: list[Any]) -> list[Any]:
        return [*old, old[0], *new] if old else new

    config = sdk.RunConfig(session_input_callback=repeat_first)
    talk = Talk(method)
    for turn in range(3):
        talk.ask(f"user {turn}", f"assistant {turn}", session=session, run_config=config)
    stored = items_of(session)
    assert contents([item for item in stored if item["role"] == "user"]) == [
        "user 0",
        "user 1",
        "user 2",
    ]
    assert len(stored) == 6


def test_an_error_of_the_session_ends_a_stream(
    session: CerataSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream raises, and does not wait for ever (openai-agents issue 2130)."""

    async def fail(_: Any) -> None:
        raise cerata.StorageFailed("The disk is full", remedy="Free space.")

    monkeypatch.setattr(session, "add_items", fail)
    with pytest.raises(cerata.StorageFailed):
        Talk("run_streamed").ask("Hello", "none", session=session)


def test_the_run_overrides_the_settings_of_the_session(memory: cerata.Store) -> None:
    """The limit of the run counts."""
    session = CerataSession("override", memory, SessionSettings(limit=100))
    add(session, *(user(f"Turn {number}") for number in range(10)))
    talk = Talk()
    config = sdk.RunConfig(session_settings=SessionSettings(limit=2))
    talk.ask("New question", "Got it", session=session, run_config=config)
    assert contents(talk.input) == ["Turn 8", "Turn 9", "New question"]


# --- the methods ----------------------------------------------------------------------------------


def test_items_are_added_returned_and_cleared(session: CerataSession) -> None:
    """In their order, as they were."""
    items = [user("Hello"), reply("Hi there!")]
    add(session, *items)
    assert items_of(session) == items
    asyncio.run(session.clear_session())
    assert items_of(session) == []


def test_the_newest_item_is_popped(session: CerataSession) -> None:
    """Until the session is empty."""
    assert pop(session) is None
    items = [user("Hello"), reply("Hi there!"), user("How are you?")]
    add(session, *items)
    for count in (2, 1, 0):
        assert pop(session) == items[count]
        assert items_of(session) == items[:count]
    assert pop(session) is None


def test_a_pop_leaves_other_sessions_alone(memory: cerata.Store) -> None:
    """Each session has items of its own."""
    first, second = (CerataSession(name, memory) for name in ("session_1", "session_2"))
    add(first, user("Session 1 message"))
    add(second, user("Session 2 message 1"), user("Session 2 message 2"))
    assert pop(second) == user("Session 2 message 2")
    assert items_of(first) == [user("Session 1 message")]
    assert items_of(second) == [user("Session 2 message 1")]


def test_a_limit_counts_from_the_newest(session: CerataSession) -> None:
    """The result is in the order of time; 0 is none, and a negative limit all."""
    items = [user(f"Message {number}") for number in range(6)]
    add(session, *items)
    for limit, count in ((None, 6), (2, 2), (4, 4), (10, 6), (0, 0), (-1, 6)):
        assert items_of(session, limit) == items[6 - count :]


def test_text_of_any_language_comes_back(session: CerataSession) -> None:
    """No letter is lost."""
    items = [user("こんにちは"), reply("😊👍"), user("Привет")]
    add(session, *items)
    assert items_of(session) == items


def test_no_letter_has_a_meaning(memory: cerata.Store) -> None:
    """Neither in items nor in names of sessions."""
    texts = ("O'Reilly", "DROP TABLE sessions;", '"SELECT * FROM users"', "Robert');--", "Normal")
    for text in texts:
        add(CerataSession(text, memory), user(text), reply(text))
    for text in texts:
        assert contents(items_of(CerataSession(text, memory))) == [text, text]


def test_threads_add_to_a_session(session: CerataSession) -> None:
    """Each in a loop of its own, and no item is lost."""
    with ThreadPoolExecutor(max_workers=5) as executor:
        for future in [executor.submit(add, session, user(f"{n}")) for n in range(10)]:
            future.result()
    assert sorted(contents(items_of(session))) == [f"{number}" for number in range(10)]


def test_an_item_that_cannot_be_stored_adds_none(session: CerataSession) -> None:
    """The session works afterwards."""
    with pytest.raises(cerata.InvalidInput, match="JSON cannot hold"):
        add(session, user("before"), {"role": "user", "content": object()})
    assert items_of(session) == []
    add(session, user("after failure"))
    assert items_of(session) == [user("after failure")]


@pytest.mark.parametrize("operation", ["add", "pop", "clear"])
def test_a_cancelled_call_ends_before_the_error(
    session: CerataSession, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """A retry after `CancelledError` would run the call twice."""
    if operation != "add":
        add(session, user("once"))
    committed, go_on = threading.Event(), threading.Event()
    name = f"_{operation}"
    run = getattr(session, name)

    def paused(*arguments: Any) -> Any:
        result = run(*arguments)
        committed.set()
        assert go_on.wait(10)
        return result

    monkeypatch.setattr(session, name, paused)

    async def cancel() -> None:
        calls = {
            "add": lambda: session.add_items([user("once")]),
            "pop": session.pop_item,
            "clear": session.clear_session,
        }
        task = asyncio.create_task(calls[operation]())
        assert await asyncio.to_thread(committed.wait, 10)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert items_of(session) == ([user("once")] if operation == "add" else [])


# --- settings -------------------------------------------------------------------------------------


def test_there_is_no_limit_by_default(session: CerataSession) -> None:
    """The settings are the SDK's, and so is the protocol."""
    assert isinstance(session, sdk.Session)
    assert isinstance(session.session_settings, SessionSettings)
    assert session.session_settings.limit is None


def test_settings_are_taken(memory: cerata.Store) -> None:
    """As the SDK's class."""
    session = CerataSession("settings", memory, SessionSettings(limit=5))
    assert session.session_settings.limit == 5


def test_settings_as_a_dict_are_taken(memory: cerata.Store) -> None:
    """As in the SDK."""
    session = CerataSession("settings", memory, {"limit": 0})
    assert session.session_settings.limit == 0
    assert session.session_settings.resolve({"limit": 4}).limit == 4


def test_unknown_settings_are_refused(memory: cerata.Store) -> None:
    """With the SDK's error."""
    with pytest.raises(TypeError, match="Unknown session settings: limitt"):
        CerataSession("settings", memory, {"limitt": 1})


def test_the_limit_of_the_settings_counts(memory: cerata.Store) -> None:
    """If the call has none."""
    session = CerataSession("settings", memory, SessionSettings(limit=3))
    items = [user(f"Message {number}") for number in range(5)]
    add(session, *items)
    assert items_of(session) == items[2:]


def test_the_limit_of_the_call_counts_first(memory: cerata.Store) -> None:
    """Also if that of the settings is smaller."""
    session = CerataSession("settings", memory, SessionSettings(limit=5))
    items = [user(f"Message {number}") for number in range(10)]
    add(session, *items)
    assert items_of(session, 2) == items[8:]
    assert items_of(session, 7) == items[3:]


# --- test_session_limit.py ------------------------------------------------------------------------


def talked(method: str, session: CerataSession, turns: int) -> Talk:
    """Return an agent that has talked some turns."""
    talk = Talk(method)
    for turn in range(1, turns + 1):
        talk.ask(f"Message {turn}", f"Reply {turn}", session=session)
    return talk


@each_method
@pytest.mark.parametrize(
    ("limit", "start"), [(2, 4), (0, 6), (None, 0), (100, 0)], ids=["2", "zero", "none", "larger"]
)
def test_a_run_has_at_most_the_limit_of_the_history(
    method: str, session: CerataSession, limit: int | None, start: int
) -> None:
    """And its new input."""
    talk = talked(method, session, 3)
    history = items_of(session)
    assert len(history) == 6
    config = sdk.RunConfig(session_settings=SessionSettings(limit=limit))
    talk.ask("Message 4", "Reply 4", session=session, run_config=config)
    assert len(talk.input) == len(history[start:]) + 1
    assert [item["role"] for item in talk.input[:-1]] == [item["role"] for item in history[start:]]
    assert talk.input[-1]["content"] == "Message 4"


@each_method
def test_an_output_without_its_call_is_left_out(method: str, session: CerataSession) -> None:
    """The runner drops it, and finds the whole call in the items."""
    text = [{"type": "output_text", "text": "It is sunny.", "annotations": []}]
    history: list[Any] = [
        user("What is the weather?"),
        {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
        {"type": "message", "role": "assistant", "content": text},
    ]
    add(session, *history)
    assert items_of(session, 2) == history[-2:]
    talk = Talk(method)
    config = sdk.RunConfig(session_settings=SessionSettings(limit=2))
    talk.ask("What about tomorrow?", "Sunny, too.", session=session, run_config=config)
    assert talk.input == [history[-1], user("What about tomorrow?")]
