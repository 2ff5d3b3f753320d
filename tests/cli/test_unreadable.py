"""List verbs with a damaged frame or event: the rest is printed, and a note names the bad one."""

import json

import pytest

import cerata
from cerata import agents

from ..damage import Damage
from .conftest import Run

BAD = 2

VERBS = {
    "frames": ("list",),
    "log": ("log",),
    "audit": ("log", "--who"),
    "history": ("time", "history", "1"),
    "timeline": ("list", "--by", "content"),
    "search": ("search", "note"),
    "show": ("show", "1", "2", "4"),
    "access": ("list", "--by", "access"),
}


@pytest.fixture
def damaged(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A memory whose event 2, a version of frame 1, is damaged."""
    with cerata.open("memory.cera") as store:
        store.put_frame("note one")
        new = store.put_frame("note two")
        store.supersede(1, new)
        store.put_frame("note four")
        agents.record_access(store, 2)
        agents.record_access(store, 4)
        store.put_frame("note seven, the newest")
        # Else the damage is found when the log is folded.
        store.checkpoint()
    Damage(monkeypatch)(BAD)
    return run


@pytest.mark.parametrize("verb", VERBS)
def test_a_list_goes_on_after_a_damaged_item(verb: str, damaged: Run) -> None:
    """Standard error has the note, with --json too."""
    whole = {"history": "note one", "access": "4", "show": "note one"}.get(verb, "note four")
    for options in ((), ("--json",)):
        code, out, err = damaged(*VERBS[verb], *options)
        assert code in (0, 1)
        assert whole in out
        assert f"Event {BAD} is damaged" in err
        assert not options or json.loads(out)


def test_a_damaged_copy_costs_no_other_copy(damaged: Run) -> None:
    """A text whose first copy is damaged was left out, although its others are whole."""
    with cerata.open("memory.cera") as store:
        store.put_frame("note two", uri="file:copy")
        store.put_frame("note two", uri="file:third")
        store.checkpoint()
    for options in (("--superseded",), ("--superseded", "--json")):
        _, out, err = damaged("search", "note two", *options)
        assert "file:copy" in out
        assert "file:third" in out
        assert f"Event {BAD} is damaged" in err
