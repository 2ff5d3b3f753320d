"""No tool, resource or prompt of MCP reads or changes another scope, whatever its arguments are.

Hypothesis draws arguments from the contents and ids of the other scope, and from the letters that
patterns, paths and patterns of SQL give a meaning.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import cerata
from cerata.engine.errors import CerataError
from cerata.integrations.mcp.definitions import READING_TOOLS, WRITING_TOOLS
from cerata.integrations.mcp.service import Service

SECRET = "zanzibar"  # noqa: S105
"""A word that only the other scope has; it is in no argument."""

OTHER = {"tenant": "acme", "user": "ben"}
SCOPES = ({"tenant": "acme", "user": "anna"}, {"tenant": "acm", "user": "ben"}, {"tenant": "acme%"})

LETTERS = "%_/.*\0#~\\'\"()[]{}:$ -,;"


class Memory:
    """A memory of two scopes, with a service for one of them."""

    def __init__(self) -> None:
        self.store = cerata.open(":memory:")
        other = self.store.scoped(OTHER)
        frame = other.put_frame(
            f"The code is {SECRET}.",
            uri=f"file:///{SECRET}/%_*",
            title=SECRET,
            tags=[SECRET],
            kind=SECRET,
            metadata={SECRET: SECRET},
            options=cerata.PutOptions(labels=[SECRET], track=SECRET),
        )
        fact = other.assert_fact(SECRET, SECRET, SECRET, evidence=[frame.id])
        other.graph.name(SECRET, aliases=["the island"])
        other.history.tag("release", at=fact)
        new = other.supersede(frame.id, f"The code was {SECRET}.", reason=SECRET)
        other.correct_fact(fact.id, object=f"{SECRET} town", reason=SECRET)
        other.remember(f"{SECRET} " * 1_500)
        self.head = self.store.head.seq
        self.other = other
        self.state = self._state()
        self.ids = [frame.id, fact.id, new.id, *range(1, self.head + 1)]

    def _state(self) -> object:
        frames = [
            frame.to_dict()
            for frame in self.other.frames(where=cerata.Filter(include_superseded=True))
        ]
        return frames, [fact.to_dict() for fact in self.other.facts(include_retracted=True)]

    def is_unchanged(self) -> bool:
        return self._state() == self.state


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    made = Memory()
    yield made
    assert made.store.verify().ok
    made.store.close()


def drawn_text(numbers: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = ("tenant", "user", "acme", "ben", "scope", "code", "island", "release", "HEAD", "kind")
    pieces = st.one_of(st.sampled_from(names), st.text(LETTERS, min_size=1, max_size=4), numbers)
    tests = st.sampled_from(
        ("kind:*", "tag:*", "uri:*", "scope.user:ben", "user:ben", "tenant:*", "NOT tag:x",
         "metadata.user:ben", "title:%", "label:_", "track:.", "-kind:text", "id:1", "parent:1")
    )  # fmt: skip
    times = st.sampled_from(("2020-01-01", "now", "yesterday", "HEAD~1", "HEAD~0", "release", "#1"))
    return st.one_of(
        st.lists(pieces, max_size=4).map("".join), st.lists(pieces, max_size=4).map(" ".join),
        tests, times, numbers, st.lists(numbers, max_size=3).map(",".join), st.text(max_size=8),
    )  # fmt: skip


NUMBERS = st.integers(0, 30).map(str)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, object]]:
    tool: Any = draw(st.sampled_from([*READING_TOOLS, *WRITING_TOOLS]))
    schema = tool["inputSchema"]
    arguments: dict[str, object] = {}
    for name, field in schema["properties"].items():
        if name not in schema["required"] and draw(st.booleans()):
            continue
        kind = field["type"]
        value: st.SearchStrategy[object] = drawn_text(NUMBERS)
        if name == "ids" or (name in ("at", "since", "evidence") and draw(st.booleans())):
            value = st.lists(NUMBERS, min_size=1, max_size=3).map(",".join)
        if kind == "integer":
            value = st.integers(1, 100) if "minimum" in field else st.integers(0, 30)
            if name == "max_tokens":
                value = st.integers(100, 8_000)
        elif kind == "boolean":
            value = st.booleans()
        arguments[name] = draw(value)
    return tool["name"], arguments


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(call=calls(), scope=st.sampled_from(SCOPES))
@example(call=("show", {"ids": "1,2,3", "history": True}), scope=SCOPES[0])
@example(call=("recall", {"query": "the code of the island", "where": "kind:*"}), scope=SCOPES[0])
@example(call=("changes", {"since": "0"}), scope=SCOPES[1])
@example(call=("facts", {"question": "the island"}), scope=SCOPES[2])
def test_no_call_reads_or_changes_another_scope(
    memory: Memory, call: tuple[str, dict[str, object]], scope: dict[str, str]
) -> None:
    """The secret word is in no answer, and no event names a thing of the other scope."""
    store = memory.store.scoped(scope)
    answer = Service(store).call(*call)
    assert SECRET not in answer.text.lower(), (call, answer.text)
    assert memory.is_unchanged(), call


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    text=drawn_text(NUMBERS),
    kind=st.sampled_from(("cerata://frame/", "cerata://fact/", "cerata://status", "")),
    scope=st.sampled_from(SCOPES),
)
@example(text="1", kind="cerata://frame/", scope=SCOPES[0])
@example(text="2", kind="cerata://fact/", scope=SCOPES[0])
def test_no_resource_or_prompt_reads_another_scope(
    memory: Memory, text: str, kind: str, scope: dict[str, str]
) -> None:
    """The status counts only the own scope."""
    service = Service(memory.store.scoped(scope))
    reads: tuple[Callable[[], str], ...] = (
        lambda: service.resource(kind + text)[1],
        lambda: service.prompt("recall", {"topic": text}),
        lambda: service.prompt("what_changed", {"since": text}),
        lambda: service.resource("cerata://status")[1],
    )
    for read in reads:
        try:
            answer = read()
        except CerataError as error:
            answer = str(error)
        assert SECRET not in answer.lower(), answer


def test_the_other_scope_is_read_by_its_own_service(memory: Memory) -> None:
    """The rule above, seen failing: the same calls show the secret within the scope."""
    service = Service(memory.other)
    for tool, arguments in (
        ("show", {"ids": "1,2", "history": True}),
        ("recall", {"query": "the code"}),
        ("facts", {"question": "the island"}),
        ("changes", {"since": "0"}),
    ):
        assert SECRET in service.call(tool, arguments).text
    assert SECRET in service.resource("cerata://frame/1")[1]
    assert SECRET in service.prompt("what_changed", {"since": "0"})


def test_ids_of_another_scope_are_not_found(memory: Memory) -> None:
    """The answer is that for an id that does not exist."""
    service = Service(memory.store.scoped(SCOPES[0]))
    for number in memory.ids:
        for tool, arguments in (
            ("show", {"ids": str(number)}),
            ("forget", {"ids": str(number)}),
            ("correct", {"id": number, "text": "x"}),
            ("correct", {"id": number, "object": "x"}),
        ):
            text = service.call(tool, arguments).text
            assert text.startswith(f"error: NotFound: There is no entry or fact #{number}"), text
        evidence = {"subject": "a", "predicate": "b", "object": "c", "evidence": str(number)}
        assert service.call("assert_fact", evidence).is_error
