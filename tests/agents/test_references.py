"""References: results by name, resolved before the call, and never inside results."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata import Agent, InvalidInput, NotFound, Run, Store, scratchpad
from cerata.agents.references import DEPTH_MAX, parsed, resolved
from cerata.engine.disk.environment import Environment

from ..clocks import StandingClock

MINUTE = 60_000_000

HOSTILE = {
    "key": "$ref:input_key.1",
    "list": ["$ref:fetch.1", "$ref:fetch.1#/list/0"],
    "$ref:fetch.1": "$$ref:fetch.1",
}
"""A result that imitates references."""


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as opened:
        yield opened


@pytest.fixture
def run(store: Store) -> Iterator[Run]:
    agent = Agent(store, "analyst")
    with agent.run("r1", inputs={"key": "secret", "rows": [1, 2]}) as opened:
        yield opened


def same(**values: object) -> object:
    return values


def fetch() -> object:
    return HOSTILE


def test_results_of_a_name_are_numbered_in_the_order_of_the_log(run: Run) -> None:
    """A call that failed has no number, and an input is the first of its name."""

    def fail() -> None:
        raise ValueError

    assert run.call("a", fetch).ref == "$ref:a.1"
    with pytest.raises(ValueError, match=r"^$"):
        run.call("a", fail)
    assert run.put("a", 3).ref == "$ref:a.2"
    assert run.call("a", fetch, secret=("return",)).ref is None
    assert [item.ref for item in run.refs()] == [
        "$ref:input_key.1",
        "$ref:input_rows.1",
        "$ref:a.1",
        "$ref:a.2",
    ]
    assert [item.turn for item in run.refs()] == [0, 0, 1, 1]
    assert run.get("$ref:a.2") == 3


def test_a_tool_gets_the_values_that_its_arguments_name(run: Run) -> None:
    run.call("fetch", fetch)
    result = run.call(
        "use",
        same,
        whole="$ref:input_rows.1",
        parts=({"deep": ["$ref:fetch.1#/list/1"]}, "see $ref:fetch.1"),
        name={"$ref:input_key.1": "$$ref:fetch.1"},
    )
    assert result.value == {
        "whole": [1, 2],
        # Data that replaces a reference is not searched.
        "parts": [{"deep": ["$ref:fetch.1#/list/0"]}, "see $ref:fetch.1"],
        "name": {"$ref:input_key.1": "$ref:fetch.1"},
    }
    calls = run.activity, Agent(run.store, "analyst").calls("r1")
    assert '"whole":"$ref:input_rows.1"' in calls[1][-1].arguments


def test_a_hostile_result_resolves_nothing(run: Run) -> None:
    """A fetched page that names an input must not get it into the next call."""
    run.call("fetch", fetch)
    assert run.call("use", same, page="$ref:fetch.1").value == {"page": HOSTILE}
    assert run.resolve("$ref:fetch.1#/key") == "$ref:input_key.1"


def test_each_call_gets_a_fresh_copy(run: Run) -> None:
    def spoil(rows: list[int], again: list[int]) -> int:
        rows.clear()
        return len(again)

    assert run.call("spoil", spoil, rows="$ref:input_rows.1", again="$ref:input_rows.1").value == 2
    assert run.get("$ref:input_rows.1") == [1, 2]


def test_a_decorated_tool_resolves_each_kind_of_parameter(run: Run) -> None:
    @run.tool()
    def many(first: object, *rest: object, memo: object, **named: object) -> object:
        return [first, rest, memo, named]

    row = "$ref:input_rows.1#/0"
    assert many(row, row, 5, memo=row, x=row).value == [1, [1, 5], 1, {"x": 1}]


def test_a_secret_argument_is_passed_as_it_is(run: Run) -> None:
    """An error would show a password that begins like a reference."""
    assert run.call("use", same, key="$ref:x", secret=("key",)).value == {"key": "$ref:x"}


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("$ref:", InvalidInput, "is not a reference"),
        ("$ref:fetch", InvalidInput, "is not a reference"),
        ("$ref:fetch.0", InvalidInput, "is not a reference"),
        ("$ref:fetch.1 ", InvalidInput, "is not a reference"),
        ("$ref:fetch.1#list", InvalidInput, "must begin with '/'"),
        ("$ref:fetch.1#/a~2", InvalidInput, "expected '~0' or '~1'"),
        ("$ref:fetch.2", NotFound, "nearest reference is '\\$ref:fetch.1'"),
        ("$ref:fetsh.1", NotFound, "nearest reference is '\\$ref:fetch.1'"),
        ("$ref:fetch.1#/list/2", NotFound, "/list: a list of 2 items"),
        (f"$ref:fetch.1#/list/{'1' * 5_000}", NotFound, "/list: a list of 2 items"),
        ("$ref:fetch.1#/list/-1", NotFound, "/list: a list of 2 items"),
        ("$ref:fetch.1#/list/00", NotFound, "/list: a list of 2 items"),
        ("$ref:fetch.1#/key/0", NotFound, "/key: a str"),
        ("$ref:fetch.1#/x", NotFound, "the whole value: a map of 'key', 'list'"),
    ],
)
def test_a_bad_reference_is_refused_before_the_call(
    run: Run, text: str, error: type[Exception], words: str
) -> None:
    run.call("fetch", fetch)
    seq = run.store.head.seq
    made: list[object] = []
    with pytest.raises(error, match=words):
        run.call("use", made.append, object=["deep", {"x": text}])
    assert (made, run.store.head.seq) == ([], seq)


def test_a_reference_of_another_run_is_unknown(run: Run) -> None:
    run.put("mine", 1)
    agent = Agent(run.store, "analyst")
    with agent.run("r2") as other, pytest.raises(NotFound, match="run 'r2'"):
        other.get("$ref:mine.1")
    assert agent.get("r1", "$ref:mine.1") == 1


def test_lineage_follows_uses_both_ways(run: Run) -> None:
    run.call("a", same, rows="$ref:input_rows.1")
    run.call("b", same, a="$ref:a.1", again=["$ref:a.1#/rows"])
    run.call("c", same, b="$ref:b.1")
    run.call("d", same, key="$ref:input_key.1")
    lineage = run.lineage("$ref:b.1")
    assert [item.ref for item in lineage.sources] == ["$ref:input_rows.1", "$ref:a.1"]
    assert [item.ref for item in lineage.derived] == ["$ref:c.1"]


def test_numbers_go_on_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        run = Agent(store, "analyst").run("r1")
        assert run.put("a", 1).ref == "$ref:a.1"
    with cerata.open(path) as store, Agent(store, "analyst").run("r1", resume=True) as run:
        assert run.put("a", 2).ref == "$ref:a.2"
        assert [run.get("$ref:a.1"), run.get("$ref:a.2")] == [1, 2]


def test_a_re_run_has_the_references_of_the_recording(store: Store) -> None:
    """Though the results left with the end of the run, also one that was evicted later."""
    seen: list[object] = []

    def work(run: Run) -> object:
        ref = run.put("a", "x" * 600).ref
        seen.append([ref, run.get("$ref:a.1"), [item.ref for item in run.refs()]])
        run.put("b", "y" * 600)
        with pytest.raises(NotFound, match="evicted"):
            run.get("$ref:a.1")
        return run.call("use", same, b="$ref:b.1").value

    agent = Agent(store, "analyst", memory={"pad": scratchpad(max_size_mb=0.0012)})
    with agent.run("r1") as run:
        value = work(run)
    rerun = agent.rerun("r1", work)
    assert (rerun.outcome, rerun.result) == ("same", value)
    assert seen[0] == seen[1]


def test_results_end_at_their_expiry_and_their_cap() -> None:
    clock = StandingClock(1_700_000_000_000_000)
    with cerata.open(":memory:", environment=replace(Environment(), clock=clock)) as store:
        memory = {"pad": scratchpad(ttl="2m", max_size_mb=0.001)}
        agent = Agent(store, "analyst", memory=memory)
        with agent.run("r1", inputs={"rows": "x" * 300}) as run:
            run.put("a", "y" * 300)
            run.call("fetch", fetch, memo=True)
            run.put("b", "z" * 720)
            assert [item.ref for item in run.refs()] == ["$ref:fetch.1", "$ref:b.1"]
            with pytest.raises(NotFound, match="was evicted"):
                run.get("$ref:a.1")
            with pytest.raises(InvalidInput, match="1,000 at most"):
                run.put("c", "x" * 1000)
            assert run.call("fetch", fetch, memo=True).memo
            clock.time_us += 2 * MINUTE
            with pytest.raises(NotFound, match="expired at"):
                run.get("$ref:b.1")
            assert run.refs() == []
            assert not run.call("fetch", fetch, memo=True).memo


def test_without_capture_calls_are_recorded_alone(store: Store) -> None:
    memory = {"pad": scratchpad(auto_capture=False)}
    with Agent(store, "analyst", memory=memory).run("r1") as run:
        result = run.call("fetch", fetch)
        assert (result.ref, result.id, result.value) == (None, None, HOSTILE)
        with pytest.raises(NotFound, match="no results that references name"):
            run.get("$ref:fetch.1")


def test_another_syntax(store: Store) -> None:
    memory = {"pad": scratchpad(reference_syntax="@mem")}
    with Agent(store, "analyst", memory=memory).run("r1") as run:
        assert run.put("a", 1).ref == "@mem:a.1"
        assert run.resolve(["@mem:a.1", "$ref:a.1", "@@mem:a.1"]) == [1, "$ref:a.1", "@mem:a.1"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["$ref:a.1", "$$ref:"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_escaped_text_reaches_the_tool_unchanged(value: object) -> None:
    def escape(item: object) -> object:
        if isinstance(item, str):
            return f"${item}" if item.lstrip("$").startswith("ref:") and item[:1] == "$" else item
        if isinstance(item, dict):
            pairs = cast("dict[str, object]", item).items()
            return {key: escape(part) for key, part in pairs}
        return (
            [escape(part) for part in cast("list[object]", item)]
            if isinstance(item, list)
            else item
        )

    def lookup(_: object) -> object:
        raise AssertionError

    assert resolved(escape(value), "$ref", lookup) == value


def test_references_deeper_than_the_limit_are_text() -> None:
    value: object = "$ref:a.1"
    for _ in range(DEPTH_MAX):
        value = [value]
    expected: object = 1
    for _ in range(DEPTH_MAX):
        expected = [expected]
    assert resolved(value, "$ref", lambda _: 1) == expected
    assert resolved([value], "$ref", lambda _: 1) == [value]
    assert parsed("$ref:a.b.12#/x", "$ref") == ("a.b", 12, "/x")
