# Where the extra openai-agents is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""CerataSession beyond the SDK's tests: isolation, hostile input, poppers, and the page."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("agents.memory.session_settings", reason="needs the extra openai-agents")

import cerata
from cerata.integrations.openai_agents import CerataSession

from ..test_docs import ROOT, blocks

pytestmark = pytest.mark.openai_agents

HELLO: Any = {"role": "user", "content": "Hello"}

# Without types, for wrong arguments.
Session: Any = CerataSession


@pytest.fixture
def memory() -> Iterator[cerata.Store]:
    with cerata.open(":memory:") as store:
        yield store
        assert store.verify().ok


def add(session: CerataSession, *items: Any) -> None:
    asyncio.run(session.add_items(list(items)))


def items_of(session: CerataSession, limit: int | None = None) -> list[Any]:
    return asyncio.run(session.get_items(limit))


def test_items_are_one_batch_and_recall_finds_their_words(memory: cerata.Store) -> None:
    """Also those of calls of tools; what was cleared stays in the past."""
    parts = [{"type": "input_text", "text": "The pond is deep."}]
    items = [
        {"role": "user", "content": parts},
        {"type": "function_call", "name": "measure", "arguments": '{"place": "mill"}'},
        {"type": "function_call_output", "output": "three metres"},
        {"type": "reasoning", "summary": [], "id": "r1"},
    ]
    session = CerataSession("anna", memory)
    add(session, *items)
    assert len({event.header.last_seq for event in memory.log()}) == 1
    for word in ("pond", "mill", "metres"):
        assert word in memory.recall(word).text
    frame = memory.frame(1)
    assert (frame.kind, frame.role, frame.uri) == ("openai.item", "user", "openai:anna/")
    assert frame.metadata == {"item": items[0]}
    assert memory.frame(4).text == "reasoning"
    before = memory.head.seq
    asyncio.run(session.clear_session())
    assert len(memory) == 0
    assert len(memory.at(before)) == 4
    asyncio.run(session.clear_session())
    asyncio.run(session.add_items([]))
    assert memory.head.seq == before + 4


def test_a_changed_result_changes_no_stored_item(memory: cerata.Store) -> None:
    """Each read returns items of its own."""
    session = CerataSession("anna", memory)
    add(session, {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]})
    items_of(session)[0]["content"].append("changed")
    assert len(items_of(session)[0]["content"]) == 1


names = st.text(st.sampled_from("ab%_/.*\0:?#"), min_size=1, max_size=4)
places = st.tuples(st.sampled_from(["t", "t2", "%"]), names)


@settings(max_examples=40, deadline=None)
@given(st.lists(places, min_size=1, max_size=6, unique=True))
def test_no_call_sees_or_changes_another_session_or_scope(drawn: list[tuple[str, str]]) -> None:
    """Narrower and wider scopes have no items, and a name is no pattern."""
    with cerata.open(":memory:") as memory:

        def session(tenant: str, name: str, **more: str) -> CerataSession:
            return CerataSession(name, memory.scoped({"tenant": tenant, **more}))

        for tenant, name in drawn:
            add(session(tenant, name, user="u"), {"place": [tenant, name]}, {"last": name})
        for tenant, name in drawn:
            for foreign in (session(tenant, name), session(tenant, name, user="v")):
                assert items_of(foreign) == []
                assert asyncio.run(foreign.pop_item()) is None
                asyncio.run(foreign.clear_session())
            own = session(tenant, name, user="u")
            assert items_of(own) == [{"place": [tenant, name]}, {"last": name}]
            assert asyncio.run(own.pop_item()) == {"last": name}
            assert items_of(own, 5) == [{"place": [tenant, name]}]
        asyncio.run(session(*drawn[0], user="u").clear_session())
        assert len(memory) == len(drawn) - 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda store: Session("", store), "session_id is empty"),
        (lambda store: Session(3, store), "session_id must be a string"),
        (lambda store: Session("\ud800", store), "not valid Unicode"),
        (lambda _: Session("a", "brain.cera"), "store must be"),
        (lambda store: add(Session("a", store), HELLO, "Hello"), "items\\[1\\] must be a dict"),
        (lambda store: asyncio.run(Session("a", store).add_items(HELLO)), "items must be a list"),
        (lambda store: add(Session("a", store), {"content": "\ud800"}), "not valid Unicode"),
        (lambda store: add(Session("a", store), HELLO, {1: "a"}), "not a string"),
        (lambda store: add(Session("a", store), *([HELLO] * 10_001)), "10,000"),
        (lambda store: asyncio.run(Session("a", store).get_items(1.5)), "limit must be"),
        (lambda store: asyncio.run(Session("a", store).get_items("2")), "limit must be"),
    ],
)
def test_bad_input_is_refused_and_writes_nothing(
    memory: cerata.Store, call: Any, message: str
) -> None:
    """Each error is typed and has a remedy."""
    with pytest.raises(cerata.InvalidInput, match=message) as caught:
        call(memory)
    assert caught.value.remedy
    assert memory.head.seq == 0


POPS = """
import asyncio, json, sys
import cerata
from cerata.integrations.openai_agents import CerataSession
async def pop(session):
    popped = []
    while (item := await session.pop_item()) is not None:
        popped.append(item["number"])
    return popped
with cerata.open(sys.argv[1]) as store:
    print(json.dumps(asyncio.run(pop(CerataSession("s", store)))))
"""


def test_each_item_is_popped_once(tmp_path: Path) -> None:
    """By three tasks on two handles and another process at the same time: 60 distinct items."""
    path = str(tmp_path / "brain.cera")

    async def pop(session: CerataSession) -> list[int]:
        popped: list[int] = []
        while (item := await session.pop_item()) is not None:
            popped.append(item["number"])
        return popped

    with cerata.open(path) as first, cerata.open(path) as second:
        add(CerataSession("s", first), *({"number": number} for number in range(60)))
        # In a folder without "agents", which would hide the SDK.
        command = [sys.executable, "-c", POPS, path]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
            with ThreadPoolExecutor(3) as executor:
                poppers = [
                    executor.submit(asyncio.run, pop(CerataSession("s", store)))
                    for store in (first, second, second)
                ]
                popped = [number for popper in poppers for number in popper.result()]
            popped += json.loads(process.communicate(timeout=60)[0])
        assert sorted(popped) == list(range(60))
        assert first.verify().ok


def test_the_first_program_of_the_page_runs(tmp_path: Path) -> None:
    """Ten lines, from nothing; the second run continues the conversation of the first."""
    page = ROOT / "docs" / "openai-agents.md"
    program = next(block for block in blocks(page) if block.language == "python")
    assert len([line for line in program.text.splitlines() if line.strip()]) <= 10
    for items in (2, 4):
        # Not by `run_block`, whose path begins with the checkout and its folder "agents".
        command = [sys.executable, "-c", program.text]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert run.stdout == f"{items}\n"
