"""Agent functions: the decorator that makes each call of a function a run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from cerata.engine.arguments import expect_type
from cerata.engine.errors import InvalidInput, RerunFailed
from cerata.engine.handle import Handle
from cerata.engine.json_value import type_name
from cerata.memory.store import Store

from .agent import Agent
from .code import AgentCode, code_of
from .declarations import checked_memory
from .replayed import ReplayedJournal, Stopped
from .run import Run, journal_of
from .session import Session
from .spec import MemorySpec
from .text.names import check_name

_TAKEN: Final = ("store", "session", "id")
"""The arguments of a decorated function besides the inputs."""


class AgentFunction(AgentCode, Handle):
    """A function that `agent` decorated: ``f(store, *, session=None, id=None, **inputs)``.

    Each call is a run, with the inputs recorded. With the id of an open run it goes on: the calls
    that are recorded are answered from the recording, and the rest are made.
    """

    _instead = "Import the decorated function there."

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        version: str,
        memory: Mapping[str, MemorySpec] | None,
    ) -> None:
        super().__init__(function, name)
        self._version = version
        self._memory = memory
        functools.update_wrapper(self, function)

    def __call__(
        self,
        store: Store,
        *,
        session: Session | str | None = None,
        id: str | None = None,  # noqa: A002 - the reference's word
        **inputs: object,
    ) -> Any:
        """Run the function; a coroutine function returns a coroutine.

        Args:
            store: The store that records the run.
            session: The session of the run, or the id of one; default none.
            id: The run's id; default 16 random hexadecimal digits.
            inputs: The arguments of the function: JSON values.

        Raises:
            RerunFailed: an open run goes on with other calls than the recorded.
            Conflict, InvalidInput, ReadOnly: as `Agent.run`.
        """
        agent = Agent(store, self.agent, version=self._version, memory=self._memory)
        if inspect.iscoroutinefunction(self.function):
            return self._async_run(agent, session, id, inputs)
        if isinstance(session, str):
            with agent.session(session) as opened:
                return self._run(agent, opened, id, inputs)
        return self._run(agent, session, id, inputs)

    def _started(
        self, agent: Agent, session: Session | None, name: str | None, inputs: dict[str, object]
    ) -> Run:
        start = agent.run_of if session is None else session.run_of
        return start(
            name,
            inputs=inputs,
            resume=None,
            replay=True,
            workflow=None,
            code=code_of(self.function),
        )

    def _run(
        self, agent: Agent, session: Session | None, name: str | None, inputs: dict[str, object]
    ) -> Any:
        run = self._started(agent, session, name, inputs)
        try:
            with run:
                return self.function(run, **inputs)
        except Stopped as error:
            raise _failure(run) from error

    async def _async_run(
        self,
        agent: Agent,
        session: Session | str | None,
        name: str | None,
        inputs: dict[str, object],
    ) -> Any:
        if isinstance(session, str):
            with agent.session(session) as opened:
                return await self._async_run(agent, opened, name, inputs)
        run = self._started(agent, session, name, inputs)
        try:
            with run:
                return await self.function(run, **inputs)
        except Stopped as error:
            raise _failure(run) from error


def _failure(run: Run) -> Exception:
    """Return the reason why a run that goes on was stopped; the run stays open."""
    journal = journal_of(run)
    assert isinstance(journal, ReplayedJournal)
    if journal.failure is not None:
        return journal.failure
    return RerunFailed(
        f"The run {run.id!r} cannot go on, since its function calls something else now:\n"
        f"{journal.divergence}",
        remedy="Restore the function, or start a run with another id.",
        divergence=journal.divergence,
    )


def agent(
    name: str, *, version: str = "1", memory: Mapping[str, MemorySpec] | None = None
) -> Callable[[Callable[..., Any]], AgentFunction]:
    """Return a decorator that makes a function of ``(run, **inputs)`` an agent.

    The decorated function takes ``(store, *, session=None, id=None, **inputs)``. Each call is a run
    of the agent, also of a coroutine function.

    Args:
        name: The agent's name: 1 to 100 letters, digits, "_", "." and "-".
        version: Recorded with every run; default "1".
        memory: The agent's slots by name, as `Agent` takes them; default a `scratchpad`.

    Raises:
        InvalidInput: the name cannot be used, a slot cannot be honoured, or the decorated object is
            no function of a run: a class, a method without its object, a partial, a generator.
    """
    check_name("name", name)
    specs = checked_memory(memory)

    def decorate(function: Callable[..., Any]) -> AgentFunction:
        remedy = "Decorate a function of (run, **inputs)."
        expect_type("The decorated object", function, Callable, "a function", remedy)  # type: ignore[arg-type]
        fault = _fault(function)
        if fault is None:
            return AgentFunction(function, name, version, specs)
        raise InvalidInput(f"The decorated object {fault}", where=f"agent {name!r}", remedy=remedy)

    return decorate


def _fault(function: Callable[..., Any]) -> str | None:
    """Return why a callable object cannot be an agent; None if it can."""
    if inspect.isclass(function):
        return f"must be a function, not the class {function.__name__}"
    if not isinstance(getattr(function, "__qualname__", None), str):
        return f"must be a function, not {type_name(function)}"
    # A call would end the run before the body starts.
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return "must return or await its result, not yield"
    try:
        signature = inspect.signature(function)
        signature.bind_partial(None)
    except TypeError:
        return "takes no run as its first argument"
    except ValueError:
        # A function of another language may have no signature.
        return None
    first, *inputs = signature.parameters.values()
    if first.name in ("self", "cls"):
        return f"is a method, and takes {first.name!r} in place of the run"
    for each in inputs:
        if each.name in _TAKEN and each.default is each.empty:
            return f"has an input {each.name!r}, which is an argument of the decorated function"
    return None
