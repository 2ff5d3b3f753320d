"""An erased event has no scope that anyone could see it by: a view with a scope hides it.

Nothing erases yet; the events here lose their payloads as an erasure will leave them.
"""

import json
from pathlib import Path

import pytest

import cerata
from cerata import Entity, Filter, NotFound, Store
from cerata.cli.main import main
from cerata.engine.events import AssertFact, Draft, LinkFacts, PutFrame
from cerata.projections.columnar.scopes import Reach, admits

from ...engine.words import erasing

ACME = {"tenant": "acme"}
SCOPE = (("tenant", "acme"),)


def erased(store: Store) -> None:
    """Events 1 to 3: a frame and a fact of acme without payload, then a frame that is whole."""
    with erasing():
        store.append(
            Draft(PutFrame(text="the PIN is 4711"), SCOPE),
            Draft(
                AssertFact(subject="a", predicate="p", object_kind="integer", object=1),
                SCOPE,
            ),
        )
    store.put_frame("an index", options=cerata.PutOptions(scope=ACME))


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "a.cera")


@pytest.mark.parametrize("tenant", ["default", "acme"])
def test_a_view_with_a_scope_hides_an_erased_event(path: str, tenant: str) -> None:
    """Tenant default saw it, and the tenant whose event it was did not."""
    with cerata.open(path) as store:
        erased(store)
        assert [event.seq for event in store.log()] == [1, 2, 3]
    with cerata.open(path, scope={"tenant": tenant}) as store:
        assert [event.seq for event in store.log()] == ([3] if tenant == "acme" else [])
        assert [event.seq for event in store.history.view().log(1, 2)] == []
        with pytest.raises(NotFound):
            store.frame(1)
        assert 1 not in {frame.id for frame in store.frames(where=Filter(include_deleted=True))}
        with pytest.raises(NotFound):
            store.append(LinkFacts(fact=2, kind="supports", frame=1))
        with pytest.raises(NotFound):
            store.put_frame("below it", options=cerata.PutOptions(parent=1))
        with pytest.raises(NotFound):
            store.append(Draft(PutFrame(text="after it"), causation=2))


def test_a_view_without_a_scope_shows_it_as_of_no_scope(path: str) -> None:
    """Neither the default tenant nor any other: not at the head, nor after a checkpoint."""
    with cerata.open(path) as store:
        erased(store)
        before = store.frame(1), store.stream.digests()
        store.checkpoint()
    with cerata.open(path) as store:
        assert (store.frame(1), store.stream.digests(replay=True)) == before
        frame = store.frame(1)
        assert (frame.scope, frame.kind, frame.text) == ({}, "erased", "")
        assert [event.scope for event in store.log()] == [None, None, SCOPE]
        for tenant in ("default", "acme"):
            found = store.frames(where=Filter(scope={"tenant": tenant}))
            assert 1 not in {one.id for one in found}
        # Only closed frames are erased.
        assert not frame.active
        assert [one.id for one in store.frames(where=~Filter(scope=ACME))] == []
        assert store.verify().ok


def test_nothing_takes_over_a_scope_that_is_unknown(store: Store) -> None:
    """A new version, or a link, would be written under another tenant."""
    erased(store)
    with pytest.raises(NotFound, match="was erased"):
        store.supersede(1, "the PIN is 4712")
    fact = store.assert_fact("a", "is", Entity("b"))
    with pytest.raises(NotFound, match="was erased"):
        store.append(LinkFacts(fact=fact.id, kind="depends_on", frame=1))
    assert store.head.seq == 4


def test_an_unknown_scope_lies_within_no_scope() -> None:
    assert not admits(None, Reach(SCOPE))
    assert not admits(None, Reach(()))


def test_the_command_line_shows_no_scope_of_it(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with cerata.open(path) as store:
        erased(store)
    assert main(["log", "-f", path, "--json"]) == 0
    events = json.loads(capsys.readouterr().out)["events"]
    assert {event["seq"]: event["scope"] for event in events} == {1: None, 2: None, 3: ACME}
    assert main(["log", "-f", path]) == 0
    assert "(erased)" in capsys.readouterr().out
