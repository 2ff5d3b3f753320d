"""Runs: the block in which an agent calls its tools, each recorded with its result.

Owns `Run` and the calls of functions, coroutines, the clock and randomness. Leaves out the record
itself (`journal`) and answers from a recording (`replayed`).
"""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol, Self, cast

from blake3 import blake3

from cerata.engine.arguments import expect_text, expect_type
from cerata.engine.errors import Closed, Corrupt, InvalidInput, value_text
from cerata.engine.events import JsonValue, ScopeValue
from cerata.engine.handle import Handle
from cerata.engine.log import Log
from cerata.memory.batch.writer import session_of
from cerata.memory.store import Store
from cerata.memory.values.frames import Receipt
from cerata.projections.columnar.times import to_datetime, to_microseconds

from .activities.values import Activity, Lineage, Reference, Result
from .journal import RETURN, Answer, Journal, Request, request_of
from .prompt import RunContext, context_of
from .references import ParsedReference, resolved
from .slot import Slot
from .text.names import check_name
from .text.summaries import NOT_RECORDED, canonical, decoded, encoded, hide_message

_RANDOM_BITS: Final = 53
_RANDOM_SIZE: Final = 7
"""Random bytes of a number: 56 bits, of which 53 are used."""

_TOOL_KINDS: Final = ("tool", "model", "function")


class Ending(Protocol):
    """Ends the activity of a run: status, and the exception if it failed."""

    def __call__(self, status: str, error: Exception | None) -> None: ...


class Context(NamedTuple):
    """The surroundings of a run: its log, its store, a check before each call, and its slots."""

    log: Log
    store: Callable[[], Store]
    check: Callable[[], None]
    slot: Callable[[str, Mapping[str, ScopeValue]], Slot]


class Run(Handle):
    """A run of an agent, from `Agent.run`; a context manager.

    - Each call is recorded with its result before it returns; an exception is recorded too.
    - Leaving the block ends the run: "done", or "failed" if it raised an `Exception`. After
      KeyboardInterrupt, SystemExit, a cancellation or a kill the run stays open, and
      ``agent.run(id)`` goes on with it.
    - Several threads or tasks may call.
    """

    _instead = "Pass the run's id, and go on with agent.run(id) there."

    def __init__(
        self,
        context: Context,
        activity: Callable[[], Activity],
        identity: tuple[str, int],
        journal: Journal,
        ending: Ending,
    ) -> None:
        self._context = context
        self._activity = activity
        self._name, self._seq = identity
        self._journal = journal
        self._log = context.log
        self._ending = ending
        self._ended = False
        self._turn = journal.turn

    def __repr__(self) -> str:
        return f"<cerata run {self._name!r}>"

    # --- the block -------------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """The store of the agent, for functions that the run calls.

        Raises:
            RerunFailed: the run is a re-run, which makes no calls.
        """
        return self._context.store()

    @property
    def id(self) -> str:
        """The run's id, with which it can go on after a kill."""
        return self._name

    @property
    def activity(self) -> Activity:
        """The run as `Agent.runs` lists it."""
        return self._activity()

    @property
    def turn(self) -> int:
        """The number of the turn, from 1."""
        return self._turn

    def next_turn(self) -> int:
        """Return the next turn's number; a resumed run continues with its highest."""
        self._turn += 1
        return self._turn

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._ended or (error is not None and not isinstance(error, Exception)):
            self._ended = True
            return
        self._ended = True
        self._ending("done" if error is None else "failed", error)

    # --- calls -----------------------------------------------------------------------------------

    def call(
        self,
        name: str,
        function: Callable[..., object],
        /,
        *,
        memo: bool = False,
        secret: Collection[str] = (),
        **arguments: object,
    ) -> Result:
        """Call a function with the arguments, record the call, and return its result.

        Durable on return. An exception of the function is recorded and propagates.

        Args:
            name: The name of the call: 1 to 100 letters, digits, "_", "." and "-".
            function: The function; a coroutine function needs `acall`.
            memo: Return the result of an equal earlier call of this run instead; default False.
            secret: Names of arguments that are not recorded; "return" leaves out the result.
            arguments: The arguments: JSON values, or any value if secret.

        Raises:
            InvalidInput: an argument is not JSON, so the function was not called; or the result is
                not, and the call is recorded as failed.
            Closed: the run has ended.
        """
        request = self._request(("tool", name, None), function, arguments, secret, memo=memo)
        return self._perform(request, arguments, lambda values: function(**values))

    async def acall(
        self,
        name: str,
        function: Callable[..., Awaitable[object]],
        /,
        *,
        memo: bool = False,
        secret: Collection[str] = (),
        **arguments: object,
    ) -> Result:
        """Await a coroutine function, as `call`; several calls may run at the same time.

        Args:
            name: The name of the call: 1 to 100 letters, digits, "_", "." and "-".
            function: The coroutine function.
            memo: Return the result of an equal earlier call of this run instead; default False.
            secret: Names of arguments that are not recorded; "return" leaves out the result.
            arguments: The arguments: JSON values, or any value if secret.

        Raises:
            InvalidInput: an argument or the result is not JSON, as in `call`.
            Closed: the run has ended.
        """
        request = self._request(("tool", name, None), function, arguments, secret, memo=memo)
        return await self._async_perform(request, arguments, lambda values: function(**values))

    def tool(
        self,
        name: str | None = None,
        *,
        kind: str = "tool",
        version: str | None = None,
        memo: bool = False,
        secret: Collection[str] = (),
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator: each call of the decorated function is a call of this run.

        The function may be a coroutine function, and have parameters of any name. Positional
        arguments are recorded by their names.

        Args:
            name: The name of the calls; default that of the function.
            kind: "tool", "model" or "function".
            version: The version of the tool or model, recorded with each call; default none.
            memo: As in `call`.
            secret: As in `call`.
        """
        if kind not in _TOOL_KINDS:
            raise InvalidInput(
                f"kind is {value_text(kind):.40}, expected one of {', '.join(_TOOL_KINDS)}",
                remedy="Pass kind='tool', or kind='model' for a model.",
            )

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            label = (kind, function.__name__ if name is None else name, version)
            signature = inspect.signature(function)

            def made(values: dict[str, object]) -> Any:
                bound = inspect.BoundArguments(signature, OrderedDict(values))
                return function(*bound.args, **bound.kwargs)

            def bound(
                arguments: tuple[object, ...], named: dict[str, object]
            ) -> tuple[Request, dict[str, object]]:
                taken = dict(signature.bind(*arguments, **named).arguments)
                return self._request(label, function, taken, secret, memo=memo), taken

            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def awaiting(*arguments: object, **named: object) -> Result:
                    return await self._async_perform(*bound(arguments, named), made)

                return awaiting

            @functools.wraps(function)
            def calling(*arguments: object, **named: object) -> Result:
                return self._perform(*bound(arguments, named), made)

            return calling

        return decorate

    def put(self, name: str, value: object, *, slot: str | None = None) -> Result:
        """Record a value that the program computed itself. A re-run compares the value.

        Args:
            name: The name, as in `call`.
            value: A JSON value.
            slot: The working slot that captures the value; default that of calls.

        Raises:
            InvalidInput: the value is not JSON, or too large.
            NotFound: the agent has no such working slot.
        """
        self._check_open()
        check_name("name", name)
        data = encoded(value, f"The value {name!r}")
        request = request_of("function", name, "{}", turn=self._turn, data=data, slot=slot)
        answer = self._journal.answer(request)
        if answer is not None and answer.result is not None:
            return answer.result
        return self._journal.record(request, value, self._journal.start())

    # --- references ------------------------------------------------------------------------------

    def get(self, ref: str) -> JsonValue:
        """Return a fresh copy of the value that a reference names.

        Args:
            ref: A reference, such as ``$ref:market.fetch.1`` or ``$ref:market.fetch.1#/AAPL``, in
                which a JSON pointer (RFC 6901) names a part.

        Raises:
            InvalidInput: the text is no reference.
            NotFound: this run has no such result, or has it no more; or the pointer has no target.
        """
        self._check_open()
        return self._journal.results().get(ref)

    def refs(self) -> list[Reference]:
        """Return all references of this run, in order. Cost: a read of each result's frame."""
        self._check_open()
        return self._journal.results().references()

    def resolve(self, value: object) -> object:
        """Return a value with its references replaced, without recording a use.

        Args:
            value: A JSON value.

        Raises:
            InvalidInput, NotFound: as `get`.
        """
        self._check_open()
        return self._journal.results().resolve(value).value

    def lineage(self, ref: str) -> Lineage:
        """Return the results that a result was made from, and those made from it.

        Args:
            ref: A reference, as in `get`.

        Raises:
            InvalidInput, NotFound: as `get`.
        """
        self._check_open()
        return self._journal.results().lineage(ref)

    def context(self, question: str, *, max_tokens: int, reserved: int = 0) -> RunContext:
        """Return a prompt: the references of this run, its last turns, and the question.

        A reference is shown with its summary, never its value, so the prompt stays flat however
        long the run. The list of references folds its oldest beyond 1,500 tokens.

        Args:
            question: The last message.
            max_tokens: Tokens of the whole prompt, in the tokenizer that `Context` names.
            reserved: Tokens of text that the program adds itself; default 0.

        Raises:
            InvalidInput: the question and the shortest list of references need more tokens.
        """
        self._check_open()
        return context_of(self._journal.results(), question, max_tokens, reserved)

    # --- slots -----------------------------------------------------------------------------------

    def slot(self, name: str, **dimensions: ScopeValue) -> Slot:
        """Return an instance of a slot, with the dimensions of the session and the run.

        Args:
            name: The slot's name.
            dimensions: Further values of the names in the slot's scope.

        Raises:
            Closed: the run has ended.
            RerunFailed: the run is a re-run, which has no store.
            NotFound, InvalidInput: as `Agent.slot`.
        """
        self._check_open()
        return self._context.slot(name, dimensions)

    def keep(
        self, ref: str, slot: str, key: str | None = None, **dimensions: ScopeValue
    ) -> Receipt:
        """Write the value of a reference to a slot, so that it outlives the run.

        Args:
            ref: A reference, as in `get`.
            slot: The slot's name.
            key: The key in a map; left out for a list or a single value.
            dimensions: Further values of the names in the slot's scope.

        Raises:
            InvalidInput, NotFound: as `get` and `slot`; or the slot is a map and has no key.
        """
        self._check_open()
        kept = self._journal.results().kept(ref)
        return self.slot(slot, **dimensions).keep(kept.value, key, because=kept.call)

    # --- the clock and randomness ----------------------------------------------------------------

    def now(self) -> datetime:
        """Return the time in UTC, of the store's clock; a re-run returns the recorded time."""
        value = self._drawn("clock", "now", lambda: to_datetime(self._log.environment.now_us()))
        try:
            return to_datetime(to_microseconds(str(value)))
        except InvalidInput as error:
            raise Corrupt(f"The recorded time {value!r:.60} is not a time") from error

    def random(self) -> float:
        """Return a random number, 0 ≤ x < 1; a re-run returns the recorded number."""
        value = self._drawn("random", "random", self._random)
        if not isinstance(value, float | int):
            raise Corrupt(f"The recorded number {value!r:.60} is not a number")
        return float(value)

    def _random(self) -> float:
        bits = int.from_bytes(self._log.environment.random_bytes(_RANDOM_SIZE), "little")
        return (bits >> (8 * _RANDOM_SIZE - _RANDOM_BITS)) / (1 << _RANDOM_BITS)

    def _drawn(self, kind: str, name: str, draw: Callable[[], datetime | float]) -> JsonValue:
        self._check_open()
        request = request_of(kind, name, "{}", turn=self._turn)
        answer = self._journal.answer(request)
        if answer is not None and answer.value is not None:
            return decoded(answer.value)
        drawn = draw()
        value = drawn.isoformat() if isinstance(drawn, datetime) else drawn
        self._journal.record_value(request, value)
        return value

    def key(self, name: str) -> str:
        """Return an idempotency key for the next call of a name.

        A tool that gets the key can detect a repetition: after a kill before the record of the
        call, the resumed run has the same key.

        Args:
            name: The name of the call.
        """
        self._check_open()
        expect_text("name", name)
        number = self._journal.count(name) + 1
        text = f"{self._log.log_id.hex()} {self._seq} {name} {number}"
        return blake3(text.encode()).hexdigest(16)

    # --- the parts of a call ---------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._ended:
            raise Closed(
                f"The run {self._name!r} has ended",
                remedy="Call it inside its block, or start another with agent.run().",
            )
        self._context.check()

    def _request(
        self,
        label: tuple[str, str, str | None],
        function: Callable[..., object],
        arguments: dict[str, object],
        secret: Collection[str],
        *,
        memo: bool,
    ) -> Request:
        self._check_open()
        kind, name, version = label
        check_name("name", name)
        if isinstance(secret, str):
            raise InvalidInput(
                f"secret is {secret!r}, expected a collection of names",
                remedy=f"Pass secret=({secret!r},).",
            )
        if memo and secret:
            raise InvalidInput(
                "memo=True cannot be combined with secret",
                remedy="Leave out one: two calls that differ in a secret look equal.",
            )
        if not callable(function):
            expect_type("function", function, Callable, "a function", "Pass the function itself.")
        unknown = [each for each in secret if each != RETURN and each not in arguments]
        if unknown:
            raise InvalidInput(
                f"secret names {unknown[0]!r}, which is no argument of the call",
                remedy=f"Pass one of {', '.join([*arguments, RETURN])}.",
            )
        recorded = {key: value for key, value in arguments.items() if key not in secret}
        return request_of(
            kind,
            name,
            canonical(recorded, f"An argument of {name!r}"),
            version=version,
            turn=self._turn,
            memo=memo,
            keeps_result=RETURN not in secret,
            secret=tuple(secret),
            function=function,
        )

    def _perform(
        self,
        request: Request,
        arguments: dict[str, object],
        function: Callable[[dict[str, object]], object],
    ) -> Result:
        answer = self._journal.answer(request)
        if answer is not None and not answer.is_made_again:
            return _result(answer)
        request, values = self._resolved(request, arguments)
        ticket = self._journal.start()
        try:
            value = function(values)
            if inspect.iscoroutine(value):
                value.close()
                raise InvalidInput(
                    f"{request.name!r} is a coroutine function", remedy="Call it with acall()."
                )
        except Exception as error:
            self._record_error(request, error, ticket, answer)
            raise
        return self._recorded(request, value, ticket, answer)

    async def _async_perform(
        self,
        request: Request,
        arguments: dict[str, object],
        function: Callable[[dict[str, object]], Awaitable[object]],
    ) -> Result:
        answer = await self._journal.async_answer(request)
        if answer is not None and not answer.is_made_again:
            return _result(answer)
        request, values = self._resolved(request, arguments)
        ticket = self._journal.start()
        try:
            value = await function(values)
        except Exception as error:
            self._record_error(request, error, ticket, answer)
            raise
        return self._recorded(request, value, ticket, answer)

    def _resolved(
        self, request: Request, arguments: dict[str, object]
    ) -> tuple[Request, dict[str, object]]:
        """Return a request with the results that it uses, and the arguments of the function.

        A secret argument is passed as it is: an error would show a text that begins like a
        reference.
        """
        recorded = {name: value for name, value in arguments.items() if name not in request.secret}
        if f"{self._journal.prefix}:" in request.arguments:
            values, used = self._journal.results().resolve(recorded)
        else:
            # The copies of containers, without a look at the memory.
            values, used = resolved(recorded, self._journal.prefix, _named), ()
        return request._replace(used=used), {**arguments, **cast("dict[str, object]", values)}

    def _record_error(
        self, request: Request, error: Exception, ticket: int, answer: Answer | None
    ) -> None:
        if request.secret:
            # Its message may have the secret.
            hide_message(error)
        if answer is None:
            self._journal.record_error(request, error, ticket)

    def _recorded(
        self, request: Request, value: object, ticket: int, answer: Answer | None
    ) -> Result:
        if answer is not None:
            # The log has this call; only its result was left out.
            return Result(None, NOT_RECORDED, None, 0, memo=False, _data=None, _value=value)
        return self._journal.record(request, value, ticket)


def check_outside_transaction(store: Store) -> None:
    """Refuse to record inside a transaction, whose events may never be appended.

    Raises:
        InvalidInput: this thread or task has a transaction of the store open.
    """
    if session_of(store).in_transaction:
        raise InvalidInput(
            "A run cannot record inside a transaction", remedy="Leave the transaction first."
        )


def _named(parts: ParsedReference) -> object:
    raise AssertionError(f"{parts} is not in the recorded arguments")


def journal_of(run: Run) -> Journal:
    """Return the journal of a run."""
    return run._journal  # pyright: ignore[reportPrivateUsage]


def _result(answer: Answer) -> Result:
    if answer.error is not None:
        raise answer.error
    assert answer.result is not None
    return answer.result
