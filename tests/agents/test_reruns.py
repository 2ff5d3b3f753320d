"""Re-runs: the function is executed again from its recording, up to the first difference."""

import asyncio
import functools
import importlib
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import cerata
from cerata import Agent, Conflict, InvalidInput, NotFound, RerunFailed, Run, Store

from . import analyst
from .analyst import analyse, double, undecorated

MADE: list[str] = []
"""The calls that tools really got."""


@pytest.fixture
def store() -> Iterator[Store]:
    MADE.clear()
    with cerata.open(":memory:") as opened:
        yield opened


class Refused(Exception):
    """An exception beside the tools, which a recording can name."""


def fetch(ticker: str, days: int = 1) -> list[int]:
    MADE.append(f"fetch {ticker}")
    return [days, len(ticker)]


def ask(question: str) -> str:
    MADE.append(f"ask {question}")
    return question.upper()


def refuse(reason: str) -> None:
    MADE.append("refuse")
    raise Refused(reason)


def original(run: Run, tickers: list[str]) -> str:
    total, text = 0, ""
    for ticker in tickers:
        prices: Any = run.call("fetch", fetch, ticker=ticker, days=2).value
        total += sum(prices)
    run.put("total", total)
    when = run.now()
    try:
        run.call("refuse", refuse, reason="late")
    except Refused as error:
        text = str(error)
    answer = run.call("ask", ask, question=f"{total} {text}").value
    return f"{answer} {when.year} {run.random() < 2}"


INPUTS = {"tickers": ["AAPL", "NVDA"]}


def recorded(store: Store, function: Callable[..., Any] = original) -> Agent:
    agent = Agent(store, "analyst")
    with agent.run("r1", inputs=INPUTS) as run:
        function(run, **INPUTS)
    MADE.clear()
    return agent


def test_a_run_is_repeated_without_its_tools(store: Store) -> None:
    """Same calls, same answers, same value; and not an event more."""
    agent = recorded(store)
    seq = store.head.seq
    with agent.run("other") as run:
        value = original(run, **INPUTS)
    MADE.clear()
    seq = store.head.seq
    rerun = agent.rerun("r1", original)
    assert (rerun.outcome, rerun.answered, rerun.recorded) == ("same", 7, 7)
    assert rerun.result == value
    assert rerun.divergence is None
    assert MADE == []
    assert store.head.seq == seq


# --- planted changes -----------------------------------------------------------------------------

SOURCE = """
def changed(run, tickers):
    total = 0
    for ticker in tickers:
        total += sum(run.call("fetch", fetch, ticker=ticker, days=2).value)
    run.put("total", total)
    when = run.now()
    try:
        run.call("refuse", refuse, reason="late")
    except Refused as error:
        text = str(error)
    answer = run.call("ask", ask, question=f"{total} {text}").value
    return f"{answer} {when.year} {run.random() < 2}"
"""
"""`original`, to be changed."""

PLANTED: list[tuple[str, str, int, str]] = [
    # The old text, the new text, the place of the first difference, its kind.
    ("days=2", "days=3", 1, "arguments"),
    ("ticker=ticker,", "ticker=ticker.lower(),", 1, "arguments"),
    ("ticker=ticker, days=2", "ticker=ticker", 1, "arguments"),
    ('"fetch"', '"fetch.v2"', 1, "name"),
    ("in tickers:", "in reversed(tickers):", 1, "order"),
    ("in tickers:", "in tickers[:1]:", 2, "order"),
    ("in tickers:", "in [*tickers, 'X']:", 3, "name"),
    ("total = 0", "total = 1", 3, "value"),
    ("total +=", "total =", 3, "value"),
    ('run.put("total", total)', "pass", 3, "order"),
    ('run.put("total", total)', 'run.put("sum", total)', 3, "name"),
    ('run.put("total", total)', 'run.call("total", fetch)', 3, "kind"),
    ("when = run.now()", "import datetime; when = datetime.datetime.now()", 4, "order"),
    ("when = run.now()", "run.random(); when = run.now()", 4, "order"),
    ('reason="late"', 'reason="later"', 5, "arguments"),
    ("except Refused", "except ValueError", 6, "missing"),
    ("text = str(error)", "text = 'none'", 6, "arguments"),
    ("text = str(error)", "raise", 6, "missing"),
    ('"ask", ask,', '"ask", ask, model="m",', 6, "arguments"),
    ("{run.random() < 2}", "", 7, "missing"),
    ("{run.random() < 2}", "{run.random() < 2} {run.random()}", 8, "extra"),
    ("return f", "run.call('ask', ask, question=''); return f", 7, "name"),
]


@pytest.mark.parametrize(("old", "new", "place", "difference"), PLANTED)
def test_each_planted_change_shows_its_first_difference(
    store: Store, old: str, new: str, place: int, difference: str
) -> None:
    """The report names the place, the kind, and both sides."""
    agent = recorded(store)
    assert len(PLANTED) >= 20
    assert SOURCE.count(old) == 1
    names: dict[str, Any] = dict(globals())
    exec(SOURCE.replace(old, new), names)  # noqa: S102 - the text above
    seq = store.head.seq
    rerun = agent.rerun("r1", names["changed"])
    assert rerun.outcome == "diverged"
    found = rerun.divergence
    assert found is not None
    assert (found.place, found.difference) == (place, difference)
    assert (found.recorded is None) is (difference == "extra")
    assert (found.new is None) is (difference == "missing")
    assert f"call {place} differs: {difference}" in str(rerun)
    assert MADE == []
    assert store.head.seq == seq


def test_the_unchanged_text_is_the_same(store: Store) -> None:
    """Else the planted changes would show a difference of the text."""
    agent = recorded(store)
    names: dict[str, Any] = dict(globals())
    exec(SOURCE, names)  # noqa: S102 - the text above
    assert agent.rerun("r1", names["changed"]).outcome == "same"


def test_another_end_is_a_difference(store: Store) -> None:
    """A function that raised after its last call must raise again."""
    agent = Agent(store, "analyst")

    def raising(run: Run) -> None:
        run.now()
        raise Refused("at the end")

    with pytest.raises(Refused), agent.run("r1") as run:
        raising(run)
    assert agent.rerun("r1", raising).outcome == "same"
    rerun = agent.rerun("r1", Run.now)
    assert rerun.divergence is not None
    assert rerun.divergence.difference == "end"


def test_a_difference_cannot_be_caught(store: Store) -> None:
    """An agent that catches every exception must not go on with wrong answers."""
    agent = recorded(store)

    def stubborn(run: Run, tickers: list[str]) -> None:
        for _ in range(3):
            try:
                run.call("fetch", fetch, ticker="wrong")
            except Exception:  # noqa: BLE001, S112 - the point of the test
                continue

    rerun = agent.rerun("r1", stubborn)
    assert rerun.divergence is not None
    assert (rerun.divergence.place, rerun.result) == (1, None)


# --- live ----------------------------------------------------------------------------------------


def test_live_goes_on_in_a_fork(store: Store, tmp_path: Path) -> None:
    """From the first difference on tools are called; the memory itself does not change."""
    agent = recorded(store)
    path = tmp_path / "fork.cera"

    def changed(run: Run, tickers: list[str]) -> object:
        run.call("fetch", fetch, ticker="AAPL", days=2)
        run.call("fetch", fetch, ticker="AMD", days=2)
        return run.call("ask", ask, question="now").value

    seq = store.head.seq
    rerun = agent.rerun("r1", changed, live=str(path))
    assert (rerun.outcome, rerun.live, rerun.result) == ("diverged", str(path), "NOW")
    assert MADE == ["fetch AMD", "ask now"]
    assert store.head.seq == seq
    with cerata.open(path) as fork:
        there = Agent(fork, "analyst")
        assert [call.arguments for call in there.calls("r1")] == [
            "{}",
            '{"days":2,"ticker":"AAPL"}',
            '{"days":2,"ticker":"AMD"}',
            '{"question":"now"}',
        ]
        assert [each.status for each in there.runs()] == ["done"]
        assert there.rerun("r1", changed).outcome == "same"
        assert fork.verify().divergences == ()
        # The fork records where it left the memory.
        (branch,) = fork.upkeep.branches()
        assert branch.seq - 1 == store.history.compare(fork).point < seq
        assert fork.actor == store.actor
    with pytest.raises(Conflict):
        agent.rerun("r1", changed, live=str(path))


def test_a_memory_without_a_file_goes_on_in_a_fork_too(tmp_path: Path) -> None:
    """A fork in memory is written to the file, with its branch."""
    path = tmp_path / "fork.cera"

    def changed(run: Run, tickers: list[str]) -> object:
        return run.call("ask", ask, question="now").value

    with cerata.open(":memory:") as store:
        assert recorded(store).rerun("r1", changed, live=str(path)).live == str(path)
        with cerata.open(path) as fork:
            (branch,) = fork.upkeep.branches()
            assert branch.seq - 1 == store.history.compare(fork).point
            assert Agent(fork, "analyst").rerun("r1", changed).outcome == "same"
            assert fork.verify().ok


def test_live_makes_no_file_without_a_difference(store: Store, tmp_path: Path) -> None:
    """There is nothing to go on with."""
    path = tmp_path / "fork.cera"
    assert recorded(store).rerun("r1", original, live=str(path)).live is None
    assert not path.exists()


# --- refusals ------------------------------------------------------------------------------------


def test_a_call_without_a_recorded_answer_refuses(store: Store) -> None:
    """The result was a secret."""

    def logging_in(run: Run) -> None:
        run.now()
        run.call("ask", ask, question="token", secret=("return",))

    agent = Agent(store, "analyst")
    with agent.run("r1") as run:
        logging_in(run)
    MADE.clear()
    with pytest.raises(RerunFailed, match=r"ask\.1 has no recorded answer"):
        agent.rerun("r1", logging_in)
    assert MADE == []


def test_an_exception_beside_a_secret_is_raised_again_by_its_type(store: Store) -> None:
    """Its message was left out."""

    def login(run: Run) -> str:
        try:
            run.call("login", refuse, password="open", secret=("password",))  # noqa: S106
        except ValueError as error:
            return type(error).__name__
        return "in"

    def refuse(password: str) -> None:
        raise ValueError(f"not {password}")

    agent = Agent(store, "bot")
    with agent.run("r1") as run:
        assert login(run) == "ValueError"
    assert agent.rerun("r1", login).outcome == "same"


def test_a_secret_argument_does_not_hinder(store: Store) -> None:
    """The answer is recorded."""

    def logging_in(run: Run) -> object:
        return run.call("ask", ask, question="token", secret=("question",)).value

    agent = Agent(store, "analyst")
    with agent.run("r1") as run:
        logging_in(run)
    assert agent.rerun("r1", logging_in).result == "TOKEN"


def test_a_function_of_other_code_is_reported(store: Store) -> None:
    """Of another agent, with other inputs, or with another source."""
    agent = recorded(store)
    with pytest.raises(InvalidInput, match="cannot take the recorded inputs"):
        agent.rerun("r1", double)
    other = cerata.agent("other")(original)
    with pytest.raises(InvalidInput, match="belongs to 'other'"):
        agent.rerun("r1", other)
    with pytest.raises(NotFound, match="names no function"):
        agent.rerun("r1")
    analyse(store, id="r2", start=3)
    rerun = agent.rerun("r2")
    assert (rerun.outcome, rerun.result, rerun.code) == ("same", 6, "same")

    def moved(run: Run, start: int) -> object:
        return run.call("double", double, number=start).value

    assert agent.rerun("r2", moved).code == "changed"


def test_only_a_decorated_function_is_called_by_its_recorded_name(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may come from anyone, and name any function of this machine."""
    agent = Agent(store, "analyst")
    analyse(store, id="r1", start=3)
    monkeypatch.setattr(analyst, "analyse", undecorated)
    with pytest.raises(InvalidInput, match="not decorated"):
        agent.rerun("r1")


def without_a_run() -> int:
    return 1


def with_a_named_run(*, run: Run) -> Run:
    return run


def of_a_run(run: Run, start: int) -> int:
    return start


def yielding(run: Run) -> Iterator[int]:
    yield 1


async def yielding_later(run: Run) -> AsyncIterator[int]:
    yield 1


def with_an_id(run: Run, id: str) -> str:  # noqa: A002
    return id


class Caller:
    def __call__(self, run: Run) -> int:
        return 1

    def method(self, run: Run) -> int:
        return 1


NO_AGENTS: list[tuple[object, str]] = [
    (yielding, "not yield"),
    (yielding_later, "not yield"),
    (functools.partial(of_a_run, start=1), "must be a function, not partial"),
    (Caller(), "must be a function, not .*Caller"),
    (Caller.method, "takes 'self' in place of the run"),
    (with_an_id, "an input 'id'"),
    (type("Planner", (), {}), "not the class Planner"),
    (without_a_run, "takes no run"),
    (with_a_named_run, "takes no run"),
    ("analyse", "must be a function, not str"),
]


@pytest.mark.parametrize(("decorated", "fault"), NO_AGENTS)
def test_the_decorator_refuses_all_but_a_function_of_a_run(decorated: Any, fault: str) -> None:
    """A class failed at its first call, with a TypeError."""
    with pytest.raises(InvalidInput, match=fault) as caught:
        cerata.agent("planner")(decorated)
    assert "Decorate a function of (run, **inputs)" in str(caught.value)


def test_run_store_belongs_into_calls(store: Store) -> None:
    """A re-run must not write."""

    def writing(run: Run) -> None:
        run.store.put_frame("a note")

    def calling(run: Run) -> object:
        return run.call("put", lambda: run.store.put_frame("a note").id).value

    agent = Agent(store, "analyst")
    with agent.run("r1"):
        pass
    rerun = agent.rerun("r1", writing)
    assert rerun.divergence is not None
    assert "RerunFailed" in str(rerun.divergence)
    with agent.run("r2") as run:
        frame = calling(run)
    assert agent.rerun("r2", calling).result == frame


# --- kill and resume -----------------------------------------------------------------------------


class Killed(BaseException):
    """Ends a process of these tests."""


def test_a_killed_function_goes_on_at_every_call(tmp_path: Path) -> None:
    """No recorded call is made again, and the whole run can be repeated."""
    path = tmp_path / "firm.cera"
    calls = 6
    left = [0]

    def tool(number: int) -> int:
        if not left[0]:
            raise Killed
        left[0] -= 1
        MADE.append(f"tool {number}")
        return number

    @cerata.agent("worker")
    def work(run: Run, start: int) -> list[object]:
        return [run.call("tool", tool, number=start + place).value for place in range(calls)]

    for kills in range(1, 4):
        MADE.clear()
        name = f"r{kills}"
        for _ in range(kills):
            left[0] = 1
            with pytest.raises(Killed), cerata.open(path) as store:
                work(store, id=name, start=10)
        left[0] = calls
        with cerata.open(path) as store:
            assert work(store, id=name, start=10) == [10, 11, 12, 13, 14, 15]
            agent = Agent(store, "worker")
            assert len(agent.calls(name)) == calls + 1
            assert [f"tool {10 + place}" for place in range(calls)] == MADE
            assert agent.rerun(name, work).outcome == "same"
    with cerata.open(path) as store:
        assert store.verify().divergences == ()


def test_an_open_run_is_incomplete(store: Store) -> None:
    """Its recording ends before its function does."""
    agent = Agent(store, "analyst")
    run = agent.run("r1")
    run.call("double", double, number=1)

    def function(run: Run) -> None:
        run.call("double", double, number=1)
        run.call("double", double, number=2)

    rerun = agent.rerun("r1", function)
    assert rerun.outcome == "incomplete"
    assert rerun.answered == 1


def test_a_run_goes_on_with_its_own_calls_only(store: Store) -> None:
    """Other code would mix two executions; the run stays open."""
    number = [1]

    @cerata.agent("worker")
    def work(run: Run) -> None:
        run.call("double", double, number=number[0])
        if number[0] == 1:
            raise Killed
        run.call("double", double, number=9)

    with pytest.raises(Killed):
        work(store, id="r1")
    number[0] = 2
    seq = store.head.seq
    with pytest.raises(RerunFailed, match="calls something else") as caught:
        work(store, id="r1")
    assert caught.value.divergence is not None
    assert [each.status for each in Agent(store, "worker").runs()] == ["open"]
    assert store.head.seq == seq + 1


def test_memos_of_a_resumed_run_are_repeated(store: Store) -> None:
    """Without replay a resumed run begins again, and memos spare their calls."""

    def function(run: Run) -> list[object]:
        return [
            run.call("fetch", fetch, memo=True, ticker="A").value,
            run.call("ask", ask, question="q").value,
        ]

    agent = Agent(store, "analyst")
    function(agent.run("r1"))
    with agent.run("r1", resume=True) as run:
        function(run)
    assert MADE == ["fetch A", "ask q", "ask q"]
    assert agent.rerun("r1", function).outcome == "same"


def test_a_secret_result_is_fetched_again_by_a_resumed_run(store: Store) -> None:
    """And recorded once."""

    @cerata.agent("worker")
    def work(run: Run, ends: list[bool]) -> object:
        token = run.call("ask", ask, question="token", secret=("return",)).value
        run.call("double", double, number=1)
        if len(MADE) == 1:
            raise Killed
        run.call("double", double, number=2)
        return token

    with pytest.raises(Killed):
        work(store, id="r1", ends=[])
    assert work(store, id="r1", ends=[]) == "TOKEN"
    assert MADE == ["ask token"] * 2
    assert len(Agent(store, "worker").calls("r1")) == 4


# --- coroutines ----------------------------------------------------------------------------------


async def slow(name: str, seconds: float) -> str:
    MADE.append(name)
    await asyncio.sleep(seconds)
    return name.upper()


@cerata.agent("gatherer")
async def gather(run: Run, seconds: list[float]) -> list[object]:
    async def chain(name: str, wait: float) -> object:
        await run.acall("slow", slow, name=name, seconds=wait)
        return (await run.acall("slow", slow, name=name * 2, seconds=0.0)).value

    pairs = zip("abc", seconds, strict=True)
    return list(await asyncio.gather(*(chain(name, wait) for name, wait in pairs)))


@pytest.mark.parametrize("seconds", [[0.03, 0.02, 0.01], [0.01, 0.03, 0.02], [0.0, 0.0, 0.02]])
def test_coroutines_that_overlap_are_repeated(store: Store, seconds: list[float]) -> None:
    """Whatever the order in which their calls finished."""
    value = asyncio.run(gather(store, id="r1", seconds=seconds))
    assert value == ["AA", "BB", "CC"]
    MADE.clear()
    rerun = Agent(store, "gatherer").rerun("r1", gather)
    assert (rerun.outcome, rerun.result, rerun.answered) == ("same", value, 6)
    assert MADE == []


def test_a_cancelled_coroutine_goes_on(store: Store) -> None:
    """A cancellation leaves the run open, with the calls that finished."""

    async def cancelled() -> None:
        task = asyncio.create_task(gather(store, id="r1", seconds=[0.0, 5.0, 0.0]))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    agent = Agent(store, "gatherer")
    assert [each.status for each in agent.runs()] == ["open"]
    done = len(agent.calls("r1")) - 1
    assert 0 < done < 6
    MADE.clear()


def test_other_arguments_of_a_coroutine_are_a_difference(store: Store) -> None:
    """Also if the calls overlap."""
    asyncio.run(gather(store, id="r1", seconds=[0.01, 0.0, 0.0]))

    async def changed(run: Run, seconds: list[float]) -> None:
        await asyncio.gather(
            run.acall("slow", slow, name="a", seconds=0.01),
            run.acall("slow", slow, name="z", seconds=0.0),
        )

    rerun = Agent(store, "gatherer").rerun("r1", changed)
    assert rerun.divergence is not None
    assert rerun.divergence.difference == "arguments"
    assert '"z"' in str(rerun.divergence.new)


# --- speed ---------------------------------------------------------------------------------------


def test_a_run_of_1000_calls_is_repeated_in_under_a_second(store: Store) -> None:
    """About 0.1 s of processor time: see docs/measurements.md."""

    def many(run: Run) -> None:
        for number in range(1_000):
            run.call("double", double, number=number)

    agent = Agent(store, "analyst")
    with agent.run("r1") as run:
        many(run)
    seconds: list[float] = []
    for _ in range(3):
        start = time.process_time()
        assert agent.rerun("r1", many).outcome == "same"
        seconds.append(time.process_time() - start)
    assert min(seconds) < 1


def test_a_recorded_name_loads_no_module(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory chooses no code: not by its name, nor by an attribute that is computed."""
    (tmp_path / "far_away.py").write_text(
        "import cerata\n@cerata.agent('analyst')\ndef f(run): return 1\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    far_away: Any = importlib.import_module("far_away")
    far_away.f(store, id="r1")
    assert Agent(store, "analyst").rerun("r1").outcome == "same"
    computed: list[str] = []
    hollow: Any = ModuleType("far_away")
    hollow.__getattr__ = computed.append
    monkeypatch.setitem(sys.modules, "far_away", hollow)
    with pytest.raises(NotFound, match="not loaded"):
        Agent(store, "analyst").rerun("r1")
    monkeypatch.delitem(sys.modules, "far_away")
    with pytest.raises(NotFound, match="not loaded"):
        Agent(store, "analyst").rerun("r1")
    assert "far_away" not in sys.modules
    assert computed == []
