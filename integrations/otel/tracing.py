# Where the extra otel is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""`trace`: a store whose calls are spans.

Owns the spans and their attributes. A traced store is a `Store` of the same file and transactions,
so every integration takes it. A call within a call is no span. Content is in no attribute unless it
is asked for; an exception never is in an event or a status without that, since its message may
quote content. Leaves out the names (`names`).
"""

from collections.abc import Callable, Sized
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ClassVar, Final, TypeVar, cast

import msgspec
from opentelemetry.trace import (
    Span,
    SpanKind,
    Status,
    StatusCode,
    TracerProvider,
    get_current_span,
    get_tracer,
    use_span,
)

from cerata.aio.handles import AsyncStore
from cerata.aio.mirror import public_members, threads_of
from cerata.engine.arguments import expect_type
from cerata.engine.errors import CerataError, InvalidInput
from cerata.memory.batch.session import WriteSession
from cerata.memory.batch.writer import Writer, session_of
from cerata.memory.handles import StoreHandle
from cerata.memory.snapshot.reader import Reader, snapshot_of
from cerata.memory.store import Store
from cerata.memory.values.frames import Context, Frame, Hit, Receipt
from cerata.memory.view import OfView, View, ViewHandle

from . import names

_Result = TypeVar("_Result")

_RECORDS_MAX: Final = 50
"""Records whose content an attribute has."""

_INSIDE: ContextVar[bool] = ContextVar("cerata_span", default=False)
"""True in a call that is a span."""


class Tracing:
    """The spans of a store; a call returns the traceparent, which its events carry."""

    def __init__(self, store_id: str, provider: TracerProvider | None, *, content: bool) -> None:
        self._tracer = get_tracer(names.TRACER, tracer_provider=provider)
        self._store_id = store_id
        self._content = content

    def __call__(self) -> str | None:
        """Return the traceparent of the current span; None without a trace."""
        context = get_current_span().get_span_context()
        if not context.is_valid:
            return None
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"

    def run(
        self,
        method: str,
        handle: Writer | Reader,
        call: Callable[..., _Result],
        *given: Any,
        **named: Any,
    ) -> _Result:
        """Return the result of a call, which is a span unless it is within another."""
        if _INSIDE.get():
            return call(handle, *given, **named)
        operation = names.OPERATIONS[method]
        attributes = {
            names.OPERATION: operation,
            names.STORE_ID: self._store_id,
            names.METHOD: method,
        }
        if self._content and method in names.QUERIES and given and isinstance(given[0], str):
            attributes[names.QUERY_TEXT] = given[0]
        span = self._tracer.start_span(operation, kind=SpanKind.INTERNAL, attributes=attributes)
        mark = _INSIDE.set(True)
        try:
            with use_span(span, record_exception=False, set_status_on_exception=False):
                result = call(handle, *given, **named)
            if span.is_recording():
                # The call is done: an error of its description must not hide that.
                with suppress(CerataError):
                    self._describe(span, handle, result)
        except BaseException as error:
            span.set_attribute(names.ERROR_TYPE, type(error).__name__)
            span.set_status(Status(StatusCode.ERROR, str(error) if self._content else None))
            raise
        finally:
            _INSIDE.reset(mark)
            span.end()
        return result

    def _describe(self, span: Span, handle: Writer | Reader, result: object) -> None:
        basis = _basis_of(handle, result)
        if basis is not None:
            span.set_attribute(names.BASIS, basis)
        number = _number_of(result)
        if number is not None:
            span.set_attribute(names.RECORD_ID, str(number))
        count = _count_of(result)
        if count is not None:
            span.set_attribute(names.RECORD_COUNT, count)
        records = _contents_of(result) if self._content else []
        if records:
            text = msgspec.json.encode(records[:_RECORDS_MAX]).decode()
            span.set_attribute(names.RECORDS, text)


def _basis_of(handle: Writer | Reader, result: object) -> int | None:
    """Return the seq after a write, or of the state that was read."""
    if isinstance(handle, View | OfView):
        return snapshot_of(handle).basis
    if isinstance(result, Context):
        return result.basis
    if isinstance(result, Receipt):
        return None if result.head is None else result.head.seq
    # No read of the file: the call has just read it.
    return session_of(cast("Writer", handle)).log.head.seq


def _number_of(result: object) -> int | None:
    """Return the id of the first thing that was written, or of the thing that was read."""
    if isinstance(result, Receipt):
        return next(iter(result.ids or result.deleted), None)
    number = getattr(result, "id", None)
    return number if isinstance(number, int) else None


def _count_of(result: object) -> int | None:
    if isinstance(result, Receipt):
        return len(result.ids or result.deleted)
    if isinstance(result, Context):
        return len(result.items)
    if result is None or isinstance(result, str | bytes | int):
        return None
    return len(result) if isinstance(result, Sized) else None


def _contents_of(result: object) -> list[dict[str, object]]:
    if isinstance(result, Context):
        return [{"content": result.text}]
    items = result if isinstance(result, list) else [result]
    return [
        {"id": item.id, "content": item.text} for item in items if isinstance(item, Hit | Frame)
    ]


def _around(
    handle: Any, name: str, call: Callable[..., _Result], *given: Any, **named: Any
) -> _Result:
    """Return the result of a function of a pack over a traced store or view, as a span."""
    tracing: Tracing = handle._tracing
    return tracing.run(name, handle, call, *given, **named)


class TracedStore(Store):
    """A store whose calls are spans: `trace`.

    - It has the file, the scope, the transactions and the errors of the store that it traces, and
      closes that file.
    - Its views, and stores of narrower scopes, are traced too.
    """

    around_call = _around

    def __init__(self, session: WriteSession) -> None:
        super().__init__(session)
        tracing = session.request_id
        if not isinstance(tracing, Tracing):
            raise InvalidInput("A TracedStore comes from trace()", remedy="Call trace(store).")
        self._tracing = tracing


@dataclass(frozen=True, repr=False)
class TracedView(View):
    """A view whose reads are spans."""

    around_call: ClassVar[Callable[..., Any]] = _around

    _tracing: Tracing = field(compare=False, kw_only=True)


def _viewing(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call that returns a traced view."""

    @wraps(call)
    def run(handle: Any, /, *given: Any, **named: Any) -> Any:
        view = call(handle, *given, **named)
        return TracedView(snapshot_of(view), _tracing=handle._tracing)

    return run


def _spanned(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def run(handle: Any, /, *given: Any, **named: Any) -> Any:
        return handle._tracing.run(name, handle, call, *given, **named)

    return run


def _trace_calls(kind: Any, base: type, prefix: str = "") -> None:
    """Give a class the calls of its base as spans, and handles whose calls are spans."""
    for name, member in public_members(base):
        if isinstance(member, StoreHandle | ViewHandle):
            own = type(f"Traced{member.kind.__name__}", (_OfTraced, member.kind), {})
            _trace_calls(own, member.kind, f"{name}.")
            handle = type(member)(cast("Any", own))
            handle.__set_name__(kind, name)
            setattr(kind, name, handle)
        elif prefix + name in names.OPERATIONS:
            setattr(kind, name, _spanned(prefix + name, getattr(base, name)))
        elif prefix + name in names.VIEWS:
            setattr(kind, name, _viewing(getattr(base, name)))


class _OfTraced:
    """A handle of a traced store or view."""

    @property
    def _tracing(self) -> Tracing:
        handle: Any = self
        tracing: Tracing = (
            handle._view._tracing if isinstance(self, OfView) else handle._session.request_id
        )
        return tracing


_trace_calls(TracedStore, Store)
_trace_calls(TracedView, View)


_Store = TypeVar("_Store", Store, AsyncStore)


def trace(
    store: _Store, *, capture_content: bool = False, tracer_provider: TracerProvider | None = None
) -> _Store:
    """Return a store of the same file whose calls are spans, and whose events carry the trace.

    Args:
        store: An open store, also one for asyncio; the returned store closes its file.
        capture_content: Put questions and texts of results into attributes, and messages of errors
            into the status. Default False.
        tracer_provider: Makes the spans; default the global provider.

    Raises:
        InvalidInput: ``store`` is no store.
    """
    if isinstance(store, AsyncStore):
        traced = trace(store.sync, capture_content=capture_content, tracer_provider=tracer_provider)
        handle: Any = store
        # The stub of the class hides its base, its threads and its parameters.
        made = cast("Callable[..., AsyncStore]", type(store))
        return made(traced, *threads_of(handle))
    expect_type("store", store, Store, "a cerata.Store", "Pass the store of cerata.open.")
    expect_type("capture_content", capture_content, bool, "True or False", "Pass True or False.")
    store_id = snapshot_of(store).log_id.hex()
    tracing = Tracing(store_id, tracer_provider, content=capture_content)
    return TracedStore(session_of(store).correlated(tracing))
