"""Runs: calls are recorded with their results, and the recording is a part of the memory."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata import Agent, Closed, Conflict, InvalidInput, NotFound, ReadOnly, Store


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as opened:
        yield opened


def double(number: int) -> int:
    return 2 * number


def fail(reason: str) -> None:
    raise ValueError(reason)


def test_a_call_is_recorded_with_its_result(store: Store) -> None:
    """The recording has the arguments, the result and the order."""
    agent = Agent(store, "analyst")
    with agent.run("r1", inputs={"rows": [1, 2]}) as run:
        result = run.call("double", double, number=21)
        assert result.value == 42
        assert run.call("double", double, number=1).id is not None
    calls = agent.calls("r1")
    assert [(call.kind, call.name, call.ordinal) for call in calls] == [
        ("input", "input_rows", 1),
        ("tool", "double", 1),
        ("tool", "double", 2),
    ]
    assert calls[1].arguments == '{"number":21}'
    [activity] = agent.runs()
    assert (activity.status, activity.error, activity.calls) == ("done", None, 3)


def test_results_leave_the_present_at_the_end_and_stay_in_the_past(store: Store) -> None:
    """They are below the frame of the run, which its end deletes."""
    agent = Agent(store, "analyst")
    with agent.run() as run:
        frame = run.call("double", double, number=4).id
        before = store.head.seq
        assert frame in [each.id for each in store.frames()]
    assert list(store.frames()) == []
    assert frame in [each.id for each in store.at(before).frames()]
    assert [each.status for each in agent.at(before).runs()] == ["open"]
    with pytest.raises(ReadOnly):
        agent.at(before).run()


def test_an_exception_is_recorded_and_propagates(store: Store) -> None:
    """The agent may catch it; the block that it leaves has failed."""
    agent = Agent(store, "analyst")
    with pytest.raises(ValueError, match="no data"), agent.run("r1") as run:
        run.call("fail", fail, reason="no data")
    assert agent.calls("r1")[0].error == "ValueError: no data"
    [activity] = agent.runs()
    assert (activity.status, activity.error) == ("failed", "ValueError: no data")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_an_interrupt_leaves_the_run_open(store: Store, error: type[BaseException]) -> None:
    """It says nothing of the run, which may go on."""
    agent = Agent(store, "analyst")

    def interrupted() -> None:
        with agent.run("r1") as run:
            run.call("double", double, number=1)
            raise error

    with pytest.raises(error):
        interrupted()
    assert [each.status for each in agent.runs()] == ["open"]
    with agent.run("r1", resume=True) as run:
        run.call("double", double, number=2)
    [activity] = agent.runs()
    assert (activity.status, activity.calls) == ("done", 2)


def test_arguments_that_are_not_json_are_refused_before_the_call(store: Store) -> None:
    """Nothing is converted, and the function must not run."""
    made: list[object] = []
    cyclic: list[object] = []
    cyclic.append(cyclic)
    with Agent(store, "analyst").run() as run:
        seq = store.head.seq
        for value in (b"x", {1: 2}, float("nan"), object(), {1, 2}, 2**70, "\ud800", cyclic):
            with pytest.raises(InvalidInput, match="cannot be recorded"):
                run.call("tool", made.append, value=value)
        with pytest.raises(InvalidInput, match="no argument"):
            run.call("tool", double, number=1, secret=("numbre",))
        with pytest.raises(InvalidInput, match="memo"):
            run.call("tool", double, number=1, memo=True, secret=("number",))
        with pytest.raises(InvalidInput, match="name is"):
            run.call("two words", double, number=1)
        assert made == []
        assert store.head.seq == seq


def test_a_result_that_is_not_json_is_a_failed_call(store: Store) -> None:
    """The tool ran, so the log must have the call."""
    agent = Agent(store, "analyst")
    with agent.run("r1") as run, pytest.raises(InvalidInput, match="result of 'bytes'"):
        run.call("bytes", bytes, secret=())
    assert "InvalidInput" in (agent.calls("r1")[0].error or "")


def test_a_memo_is_not_called_again(store: Store) -> None:
    """Only an equal call of this run, of this kind, that succeeded."""
    made: list[int] = []

    def tool(number: int) -> int:
        made.append(number)
        return number

    agent = Agent(store, "analyst")
    with agent.run("r1") as run:
        assert not run.call("tool", tool, number=1, memo=True).memo
        result = run.call("tool", tool, number=1, memo=True)
        assert (result.value, result.memo) == (1, True)
        run.call("tool", tool, number=2, memo=True)
        run.call("other", tool, number=1, memo=True)
    assert made == [1, 2, 1]
    with agent.run("r2") as run:
        run.call("tool", tool, number=1, memo=True)
    assert made == [1, 2, 1, 1]


def test_an_id_is_one_run(store: Store) -> None:
    """The id of an ended run is used up."""
    agent = Agent(store, "analyst")
    with pytest.raises(NotFound, match="no open run"):
        agent.run("r1", resume=True)
    run = agent.run("r1", inputs={"a": 1})
    with pytest.raises(Conflict, match="is open"):
        agent.run("r1", resume=False)
    with pytest.raises(Conflict, match="has another input_a"):
        agent.run("r1", inputs={"a": 2})
    with agent.run("r1", inputs={"a": 1}):
        pass
    with pytest.raises(Conflict, match="used up"):
        agent.run("r1")
    with pytest.raises(Closed):
        run.call("double", double, number=1)
    assert [call.name for call in agent.calls("r1")] == ["input_a"]
    with pytest.raises(NotFound, match="Did you mean 'r1'"):
        agent.calls("r11")


def test_the_clock_and_randomness_are_recorded(store: Store) -> None:
    """As calls without frames."""
    agent = Agent(store, "analyst")
    with agent.run("r1") as run:
        when, number = run.now(), run.random()
        assert 0 <= number < 1
        assert abs(datetime.now(UTC) - when).total_seconds() < 60
    calls = agent.calls("r1")
    assert [(call.kind, call.value) for call in calls] == [
        ("clock", f'"{when.isoformat()}"'),
        ("random", repr(number)),
    ]
    assert len(list(store.log(type="putFrame"))) == 1


def test_sessions_group_runs_and_stamp_their_names(store: Store) -> None:
    """An ended session may be entered again."""
    agent = Agent(store, "analyst")
    with agent.session("s1", user_id="u1") as session, session.run("r1") as run:
        run.call("double", double, number=1)
    with pytest.raises(Closed):
        session.run()
    with agent.session("s1", user_id="u1") as session, session.run("r2"):
        assert [each.status for each in agent.sessions()] == ["open"]
    [opened] = agent.sessions()
    assert (opened.status, [each.session for each in agent.runs()]) == ("done", [opened.id] * 2)
    scopes = {tuple(sorted(dict(event.scope or ()))) for event in store.log()}
    assert scopes == {("tenant", "user_id")}


def test_scopes_do_not_see_each_other(store: Store) -> None:
    """Two tenants may have runs of one name."""
    agents = [Agent(store.scoped({"tenant": tenant}), "analyst") for tenant in ("a", "b")]
    for number, agent in enumerate(agents):
        with agent.run("r1") as run:
            run.call("double", double, number=number)
    for number, agent in enumerate(agents):
        assert [call.arguments for call in agent.calls("r1")] == [f'{{"number":{number}}}']
        assert len(agent.runs()) == 1
    assert Agent(store, "analyst").runs() == []
    other = agents[0].runs()[0].id
    with pytest.raises(NotFound):
        agents[1].calls(other)
    with pytest.raises(NotFound):
        agents[1].rerun(other, double)


def test_a_transaction_is_refused(store: Store) -> None:
    """Its events may never be appended, and the tool has run."""
    agent = Agent(store, "analyst")
    run = agent.run("r1")
    with store.transaction():
        with pytest.raises(InvalidInput, match="inside a transaction"):
            run.call("double", double, number=1)
        with pytest.raises(InvalidInput, match="inside a transaction"):
            agent.run("r2")


def test_the_decorator_of_a_run_binds_positional_arguments(store: Store) -> None:
    """So a recording has their names; a parameter may be called memo."""
    agent = Agent(store, "analyst")
    with agent.run("r1") as run:

        @run.tool(kind="model", version="2024")
        def ask(question: str, memo: int = 1) -> str:
            return question.upper()

        assert ask("why", memo=3).value == "WHY"
    [call] = agent.calls("r1")
    assert (call.kind, call.name, call.arguments) == (
        "model",
        "ask",
        '{"memo":3,"question":"why"}',
    )


def test_secrets_are_not_recorded(store: Store) -> None:
    """In no event, also not as a hash."""

    def login(user: str, password: object) -> dict[str, Any]:
        return {"token": "t0ken", "user": user}

    with Agent(store, "analyst").run("r1") as run:
        result = run.call(
            "login", login, user="ann", password=object(), secret=("password", "return")
        )
        assert result.value == {"token": "t0ken", "user": "ann"}
        assert result.id is None
    texts = [str(event.to_dict()) for event in store.log()]
    assert not any("t0ken" in text or "object" in text for text in texts)


def test_a_key_is_the_same_after_a_kill(store: Store) -> None:
    """The tool can detect the repetition of a call that was not recorded."""
    agent = Agent(store, "analyst")
    run = agent.run("r1")
    run.call("double", double, number=1)
    key = run.key("double")
    again = agent.run("r1")
    assert again.key("double") == key
    again.call("double", double, number=1)
    assert again.key("double") != key
    assert agent.run("r2").key("double") != run.key("double")


def test_turns_count_from_1_and_go_on(store: Store) -> None:
    """A resumed run continues with its highest recorded turn."""
    agent = Agent(store, "analyst")
    run = agent.run("r1")
    assert (run.turn, run.next_turn()) == (1, 2)
    run.call("double", double, number=1)
    assert agent.run("r1").turn == 2


def test_results_are_never_embedded() -> None:
    """They would crowd the texts out of the space."""
    texts: list[str] = []

    def embed(batch: Sequence[str]) -> list[list[float]]:
        texts.extend(batch)
        return [[1.0, 0.0] for _ in batch]

    embedder = cerata.CallableEmbedder(embed, name="m", revision="1", dimension=2)
    with cerata.open(":memory:", embedder=embedder) as store:
        with Agent(store, "analyst").run() as run:
            run.call("double", double, number=1)
            store.put_frame("a note")
            store.embeddings.fill()
        assert texts == ["a note"]


HIDDEN = "hunter2-zebra"


@pytest.mark.parametrize("secret", [("password",), ("return",)])
def test_the_message_of_an_exception_has_no_secret_in_the_file(
    tmp_path: Path, secret: tuple[str, ...]
) -> None:
    """Neither of the call, nor at the end of the run and session, nor raised from it."""

    def login(password: str) -> None:
        raise ValueError(f"no entry for {password}")

    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        agent = cerata.Agent(store, "bot")

        def fail() -> None:
            with agent.session("s") as session, session.run("r") as run:
                try:
                    run.call("login", login, password=HIDDEN, secret=secret)
                except ValueError as error:
                    raise RuntimeError(f"failed: {error}") from error

        with pytest.raises(RuntimeError, match="no entry for"):
            fail()
        [call] = agent.calls("r")
        assert call.error == "ValueError: (not recorded)"
        assert agent.runs()[0].error == "RuntimeError: (not recorded)"
        texts = [str(event.to_dict()["body"]) for event in store.log()]
        assert not any("no entry for" in text for text in texts)
        if "password" in secret:
            assert not any(HIDDEN in text for text in texts)
    assert b"no entry for" not in path.read_bytes()


def echo(x: object) -> object:
    return x


def test_a_large_integer_is_refused_by_its_size(store: Store) -> None:
    """Python refuses to write a number of thousands of digits, also into an error."""
    with Agent(store, "analyst").run("r1") as run:
        for number in (10**5_000, -(10**5_000), [[10**5_000]], {"a": 2**63}):
            with pytest.raises(InvalidInput, match="over 64"):
                run.call("big", partial(echo, number))
            with pytest.raises(InvalidInput, match="over 64"):
                run.call("echo", echo, x=number)
