"""A write does what its receipt says, or raises and writes nothing: each with each kind of id."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from random import Random
from typing import Any, Final

import pytest

import cerata
from cerata import Store, agents
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.events import DeleteFrame
from cerata.integrations.mcp.service import Service

from ...clocks import StandingClock
from .test_owners import WRITES as STORE_WRITES

Ids = Mapping[str, Any]


def in_transaction(store: Store, each: Any, ids: Ids) -> object:
    with store.transaction() as transaction:
        store.retract_fact(ids["cause"])
        store.delete(each)
    return transaction.receipt


WRITES: Final[Mapping[str, Callable[[Store, Any, Ids], object]]] = {
    "append": lambda store, each, _: store.append(DeleteFrame(frame=each)),
    "assert_fact": lambda store, each, _: store.assert_fact("a", "b", "c", evidence=[each]),
    "graph.assert_many": lambda store, each, _: store.graph.assert_many(
        [cerata.Assertion("a", "b", "c", evidence=(each,))]
    ),
    "correct_fact": lambda store, each, _: store.correct_fact(each, object="water"),
    "delete": lambda store, each, _: store.delete(each),
    "graph.extract": lambda store, each, _: store.graph.extract([each]),
    "graph.link": lambda store, each, ids: store.graph.link(ids["fact"], "depends_on", each),
    "graph.link from": lambda store, each, ids: store.graph.link(each, "depends_on", ids["fact"]),
    "put_frame": lambda store, each, _: store.put_frame(
        "A part.", options=cerata.PutOptions(parent=each)
    ),
    "record_access": lambda store, each, _: agents.record_access(store, each),
    "history.restore": lambda store, each, _: store.history.restore(each),
    "retract_fact": lambda store, each, _: store.retract_fact(each),
    "graph.retract_many": lambda store, each, _: store.graph.retract_many([each]),
    "graph.retract_many, and another": lambda store, each, ids: store.graph.retract_many(
        [ids["cause"], each]
    ),
    "graph.retract_many, twice": lambda store, each, _: store.graph.retract_many([each, each]),
    "graph.split": lambda store, each, _: store.graph.split("eve", into="eva", facts=[each]),
    "supersede": lambda store, each, _: store.supersede(each, "A newer text."),
    "supersede by": lambda store, each, ids: store.supersede(ids["frame"], store.frame(each)),
    "transaction": in_transaction,
    "graph.unlink": lambda store, each, _: store.graph.unlink(each),
    "graph.unmerge": lambda store, each, _: store.graph.unmerge(each),
    "graph.unsplit": lambda store, each, _: store.graph.unsplit(each),
    "update": lambda store, each, _: store.update(each, title="Ports"),
}

NO_IDS: Final = {
    *("put_frames", "remember", "files.remember", "remember_messages"),
    *("upkeep.sweep", "history.tag"),
    *("graph.declare", "embeddings.fill", "upkeep.fork", "upkeep.apply"),
    *("interchange.import_events", "interchange.import_facts"),
    *("graph.merge", "graph.name"),
}
"""The writes that take names, texts or a whole memory."""

CURRENT: Final = {"superseded": "frame", "corrected": "fact"}
"""For each kind of id with a later version, the kind of the current id."""

CHANGES: Final = {
    "superseded": ("append", "delete", "supersede", "transaction", "update"),
    "corrected": ("correct_fact", "retract_fact", "graph.retract_many"),
}
"""The writes that change a current thing alone, and name the current id of an earlier version."""


def test_each_write_is_in_a_table() -> None:
    """A new write is tried with bad ids, or a person decided that it takes none."""
    assert {name.split(" ")[0].rstrip(",") for name in WRITES} | NO_IDS == {*STORE_WRITES}


def made() -> tuple[Store, dict[str, Any]]:
    """Return a memory with a thing of each kind, and their ids."""
    clock = StandingClock(1_772_355_600_000_000)
    environment = Environment(MemoryStorage(), clock, Random(1).randbytes)
    store = cerata.open(":memory:", environment=environment)
    ids: dict[str, Any] = {"superseded": store.put_frame("old door code").id}
    ids["frame"] = store.supersede(ids["superseded"], "new door code").id
    ids["deleted"] = store.put_frame("gone").id
    store.delete(ids["deleted"])
    expiry = store.history.view().now + timedelta(hours=1)
    ids["expired"] = store.put_frame("milk", options=cerata.PutOptions(expires=expiry)).id
    clock.time_us += 7_200_000_000
    ids["corrected"] = store.assert_fact("anna", "likes", "tea").id
    ids["fact"] = store.correct_fact(ids["corrected"], object="coffee").id
    ids["retracted"] = store.assert_fact("bob", "likes", "tea").id
    store.retract_fact(ids["retracted"])
    ids["cause"] = store.assert_fact("eve", "likes", "tea").id
    ids["link"] = store.graph.link(ids["fact"], "supports", ids["cause"]).id
    ids["unlinked"] = store.graph.link(ids["cause"], "supports", ids["fact"]).id
    store.graph.unlink(ids["unlinked"])
    ids["merge"] = store.graph.merge("anna", "eve").id
    ids["unmerged"] = store.graph.merge("bob", "eve").id
    store.graph.unmerge(ids["unmerged"])
    ids["split"] = store.graph.split("eve", into="mia", facts=[ids["cause"]]).id
    ids["unsplit"] = store.graph.split("bob", into="max", facts=[ids["retracted"]]).id
    store.graph.unsplit(ids["unsplit"])
    other: dict[str, Any] = {"zero": 0, "unknown": 9_999, "pending": -1, "huge": 1 << 70}
    return store, {**ids, **other, "text": "x", "empty": "", "bool": True, "list": []}


def answered(write: Callable[[Store, Any, Ids], object], *arguments: Any) -> object:
    """Return the answer of a write, or its error."""
    try:
        return write(*arguments)
    except cerata.CerataError as error:
        return error


@pytest.mark.parametrize("write", WRITES)
def test_a_write_does_what_its_receipt_says_or_raises(write: str) -> None:
    """Added is True if an event was written; else nothing was, also before the bad id."""
    outcomes = set[bool]()
    for name in made()[1]:
        store, ids = made()
        with store:
            head, facts = store.head, store.facts(include_ended=True)
            answer = answered(WRITES[write], store, ids[name], ids)
            is_refused = isinstance(answer, cerata.CerataError)
            outcomes.add(not is_refused)
            if is_refused:
                assert (store.head, store.facts(include_ended=True)) == (head, facts), name
            else:
                assert getattr(answer, "added", store.head != head) == (store.head != head), name
                assert not isinstance(ids[name], str | bool | list), name
            if name in CURRENT and write in CHANGES[name]:
                assert isinstance(answer, cerata.Conflict), name
                assert f"{CURRENT[name]} {ids[CURRENT[name]]}" in str(answer), name
            assert is_refused or store.verify().ok
    assert outcomes == ({False} if write == "graph.retract_many, twice" else {True, False})


TOOLS: Final[Mapping[str, Mapping[str, object]]] = {
    "forget": {"ids": "ID"},
    "forget, twice": {"ids": "ID,ID"},
    "forget, and another": {"ids": "CAUSE,ID"},
    "correct": {"id": "ID", "text": "A newer text."},
    "correct, a fact": {"id": "ID", "object": "water"},
    "assert_fact": {"subject": "a", "predicate": "b", "object": "c", "evidence": "ID"},
}


def test_each_tool_that_writes_is_in_a_table() -> None:
    """Remember takes a text alone."""
    store, _ = made()
    with store:
        reading = {str(tool["name"]) for tool in Service(store, is_read_only=True).tools}
        names = {str(tool["name"]) for tool in Service(store).tools} - reading
    assert names == {name.split(",")[0] for name in TOOLS} | {"remember"}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_does_what_it_answers_or_is_an_error(tool: str) -> None:
    """An answer without an event says that the ids were hidden before; an error names the id."""
    for name in made()[1]:
        store, ids = made()
        with store:
            named = {"ID": f"{ids[name]}", "CAUSE": f"{ids['cause']}"}
            arguments = dict(TOOLS[tool])
            for key, value in arguments.items():
                text = str(value)
                for word, number in named.items():
                    text = text.replace(word, number)
                arguments[key] = text
            head = store.head
            answer = Service(store).call(tool.partition(",")[0], arguments)
            if answer.is_error:
                assert store.head == head, name
                assert answer.text.startswith("error: "), name
                assert "InternalError" not in answer.text, (name, answer.text)
                assert "\nremedy: " in answer.text, name
            elif store.head == head:
                assert f"(#{ids[name]}: already)" in answer.text, (name, answer.text)
            if name in CURRENT and tool.startswith("forget"):
                assert answer.is_error, name
                assert f"#{ids[CURRENT[name]]} is current" in answer.text, name


def test_an_expired_frame_is_not_called_current() -> None:
    """It is not closed, so there is nothing to restore; the remedy is a later time."""
    store, ids = made()
    with store:
        with pytest.raises(cerata.Conflict, match="has expired, and is not closed") as refused:
            store.history.restore(ids["expired"])
        assert refused.value.remedy == "Call update(), with a later time or None as expires=."
        assert store.update(ids["expired"], expires=None).added


@pytest.mark.parametrize("name", ["tags", "labels", "absent"])
def test_an_empty_name_selects_nothing_by_chance(name: str) -> None:
    """`Filter(absent=[""])` admitted every frame, and a delete closed all of them."""
    named: dict[str, Any] = {name: ["", "x"]}
    with pytest.raises(cerata.InvalidInput, match=f"{name} has an empty string"):
        cerata.Filter(**named)
