# Where the extra otel is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""Spans of a store: names, attributes, the trace in events, and no content unless asked for."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("opentelemetry.sdk.trace", reason="needs the extras otel and otel-sdk")

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import cerata
import cerata.aio
from cerata import Conflict, Entity, InvalidInput, NotFound, agents
from cerata.integrations.otel import TracedStore, TracedView, names, trace
from cerata.memory.handles import public_names
from cerata.memory.store import Store
from cerata.memory.view import View

from ..test_docs import ROOT, blocks, run_block

pytestmark = pytest.mark.otel

HIDDEN = "zanzibar"


class Spans:
    """The ended spans, and the provider that makes them."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def taken(self) -> list[ReadableSpan]:
        """Return the spans since the last call."""
        spans = [*self._exporter.get_finished_spans()]
        self._exporter.clear()
        return spans

    def attributes(self) -> list[dict[str, Any]]:
        """Return the attributes of these spans, without the store."""
        return [
            {name: value for name, value in (span.attributes or {}).items() if name != STORE}
            for span in self.taken()
        ]


STORE = names.STORE_ID


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
def store(spans: Spans) -> Iterator[Store]:
    with trace(cerata.open(":memory:"), tracer_provider=spans.provider) as store:
        yield store


def test_a_call_is_a_span_with_ids_and_counts(store: Store, spans: Spans) -> None:
    """A call within a call is no span of its own."""
    store.put_frames(["one", "two"])
    store.assert_fact("anna", "lives in", Entity("rome"))
    store.supersede(1, "three")
    store.delete(2)
    store.recall("three")
    assert spans.attributes() == [
        {
            names.OPERATION: operation,
            names.METHOD: method,
            names.BASIS: basis,
            names.RECORD_COUNT: count,
            **({} if number is None else {names.RECORD_ID: number}),
        }
        for operation, method, basis, count, number in (
            ("create_memory", "put_frames", 2, 2, "1"),
            ("create_memory", "assert_fact", 3, 1, "3"),
            ("update_memory", "supersede", 5, 1, "4"),
            ("delete_memory", "delete", 6, 1, "2"),
            ("search_memory", "recall", 6, 1, None),
        )
    ]


def test_a_span_is_internal_and_names_the_log(store: Store, spans: Spans) -> None:
    store.count()
    [span] = spans.taken()
    assert (span.name, span.kind) == ("search_memory", SpanKind.INTERNAL)
    assert span.attributes is not None
    assert span.attributes[STORE] == store.history.view().log_id.hex()


def test_every_public_name_is_a_span_or_named_as_none() -> None:
    """A new call is decided on, not forgotten."""
    public = {*public_names(Store), *public_names(View), *agents.__all__}
    assert public == {*names.OPERATIONS, *names.UNTRACED, *names.VIEWS}
    assert not {*names.OPERATIONS} & {*names.UNTRACED}


def test_events_carry_the_trace_of_their_span(store: Store, spans: Spans) -> None:
    """The correlation id is a traceparent, also within a transaction; a given one stays."""
    tracer = spans.provider.get_tracer("agent")
    with tracer.start_as_current_span("turn") as turn:
        store.put_frame("one")
        with store.transaction():
            store.put_frame("two")
        store.append(cerata.Draft(cerata.events.PutFrame(text="x"), correlation="mine"))
    trace_id = f"{turn.get_span_context().trace_id:032x}"
    by_id = {span.context.span_id: span for span in spans.taken() if span.context is not None}
    first, second, third = (event.correlation for event in store.log())
    for correlation in (first, second):
        assert correlation is not None
        version, of_trace, of_span, _ = correlation.split("-")
        assert (version, of_trace) == ("00", trace_id)
        span = by_id[int(of_span, 16)]
        assert span.name == "create_memory"
        assert span.parent is not None
    assert third == "mine"


def test_a_key_is_known_in_another_trace(store: Store) -> None:
    """The trace is no argument of the call."""
    first = store.put_frame("one", options=cerata.PutOptions(key="k"))
    assert store.put_frame("one", options=cerata.PutOptions(key="k")) == cerata.Receipt(
        first.id, first.ids, first.seqs, first.head, durable=True, added=False
    )


def test_views_and_scoped_stores_are_traced(store: Store, spans: Spans) -> None:
    """A view's basis is that of its span."""
    store.put_frame("one")
    store.put_frame("two")
    spans.taken()
    for view in (
        store.at(1),
        store.at(1).history.view(),
        store.history.view().at(1),
        store.at(1).true_at("now"),
    ):
        assert isinstance(view, TracedView)
        view.search("one")
        assert [span[names.BASIS] for span in spans.attributes()] == [1]
    scoped = store.scoped({"tenant": "acme"})
    assert isinstance(scoped, TracedStore)
    scoped.get("x")
    assert len(spans.taken()) == 1


def test_a_call_of_a_pack_is_a_span(store: Store, spans: Spans) -> None:
    with pytest.raises(InvalidInput):
        agents.judge(store, cast("Any", "no proposal"), "approve", actor="anna")
    assert [span.name for span in spans.taken()] == ["update_memory"]


def test_an_error_is_its_type_alone(store: Store, spans: Spans) -> None:
    """Its message may have content."""
    with pytest.raises(NotFound):
        store.frame(9)
    [span] = spans.taken()
    assert span.attributes is not None
    assert span.attributes[names.ERROR_TYPE] == "NotFound"
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
    assert span.events == ()


def everything(store: Store) -> None:
    """Calls with a secret in every argument, also refused ones."""
    frame = store.put_frame(HIDDEN, title=HIDDEN, tags=[HIDDEN], metadata={HIDDEN: HIDDEN})
    store.put_frames([HIDDEN])
    store.remember(f"{HIDDEN} again", uri=HIDDEN)
    agents.remember_messages(store, [{"role": "user", "content": HIDDEN}])
    fact = store.assert_fact(HIDDEN, HIDDEN, Entity(HIDDEN), evidence=[frame])
    store.history.tag(HIDDEN)
    for read in (store, store.at("HEAD")):
        read.recall(HIDDEN)
        read.search(HIDDEN)
        read.graph.search(HIDDEN)
        read.facts(HIDDEN)
        read.frame(frame)
        read.get(HIDDEN)
        read.history.of(frame)
        read.graph.evidence(fact)
        read.graph.why(fact)
        read.graph.entity(HIDDEN)
        read.files.values("tag")
    store.supersede(frame, HIDDEN * 2, reason=HIDDEN)
    store.retract_fact(fact, reason=HIDDEN)
    with pytest.raises(Conflict):
        store.history.tag(HIDDEN)
    with pytest.raises(InvalidInput):
        store.put_frame(HIDDEN, options=cerata.PutOptions(created=HIDDEN))
    with pytest.raises(NotFound):
        store.graph.merge(HIDDEN, f"no {HIDDEN}")


def test_no_content_is_anywhere_by_default(store: Store, spans: Spans) -> None:
    """Neither in a name, an attribute, an event, a status nor a resource."""
    everything(store)
    taken = spans.taken()
    assert len(taken) > 30
    assert [span.to_json() for span in taken if HIDDEN in span.to_json()] == []


def test_content_is_captured_on_request(spans: Spans) -> None:
    """Questions, texts of results, and messages of errors."""
    store = trace(cerata.open(":memory:"), capture_content=True, tracer_provider=spans.provider)
    store.put_frame("The index is HNSW.")
    spans.taken()
    store.search("index")
    with pytest.raises(NotFound):
        store.frame(9)
    found, missing = spans.taken()
    assert found.attributes is not None
    assert found.attributes[names.QUERY_TEXT] == "index"
    assert found.attributes[names.RECORDS] == '[{"id":1,"content":"The index is HNSW."}]'
    assert "9" in (missing.status.description or "")
    store.close()


def test_an_asynchronous_store_is_traced(spans: Spans) -> None:
    """The spans of its threads have the parent of its task."""

    async def run() -> None:
        tracer = spans.provider.get_tracer("agent")
        async with trace(
            await cerata.aio.open(":memory:"), tracer_provider=spans.provider
        ) as store:
            with tracer.start_as_current_span("turn"):
                await store.put_frame("one")
                await (await store.at(1)).search("one")

    asyncio.run(run())
    write, read, turn = spans.taken()
    assert [span.name for span in (write, read, turn)] == ["create_memory", "search_memory", "turn"]
    assert turn.context is not None
    for span in (write, read):
        assert span.parent is not None
        assert span.parent.span_id == turn.context.span_id


def test_no_sdk_is_needed(tmp_path: Path) -> None:
    """With the API alone no span is recorded, and no event carries a trace."""
    program = """
import sys
sys.modules["opentelemetry.sdk"] = None
import cerata
from cerata.integrations.otel import trace
with trace(cerata.open(":memory:")) as store:
    store.put_frame("one")
    print(store.recall("one").items[0].text, [event.correlation for event in store.log()])
"""
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout == "one [None]\n"


def test_calls_that_cannot_be_traced_are_refused() -> None:
    """A handle of another kind has no calls to trace."""
    with cerata.open(":memory:") as store:
        with pytest.raises(InvalidInput):
            trace("memory.cera")  # type: ignore[type-var]
        with pytest.raises(InvalidInput):
            trace(store, capture_content=1)  # type: ignore[arg-type]


def test_the_benchmark_runs() -> None:
    """The figures of the page of measurements have a command that works."""
    command = [sys.executable, "-m", "benchmarks.otel_bench", "--tiny"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert "a span" in run.stdout


def test_the_first_program_of_the_page_runs(tmp_path: Path) -> None:
    """Ten lines, from nothing."""
    page = ROOT / "docs" / "opentelemetry.md"
    program = next(block for block in blocks(page) if block.language == "python")
    assert len([line for line in program.text.splitlines() if line.strip()]) <= 10
    assert '"gen_ai.operation.name": "search_memory"' in run_block(program, tmp_path)
