"""Audits: who changed what, when, on whose request; and the filter of causes."""

import pytest

import cerata
from cerata import Draft
from cerata.engine.events import PutFrame


def test_an_audit_names_actor_reason_request_and_cause() -> None:
    """Every change once, oldest first; what was only read is left out."""
    with cerata.open(":memory:", actor="anna") as store:
        first = store.put_frame("one")
        store.recall("one", record=True)
        store.delete(first, actor="ben", reason="a | pipe\nand a line")
        store.append(Draft(PutFrame(text="two"), correlation="run 7", causation=first.id))
        audit = store.history.audit()
        assert [
            (entry.seq, entry.who, entry.act, entry.summary, entry.request, entry.caused_by)
            for entry in audit
        ] == [
            (1, "anna", "put", "one", None, None),
            (3, "ben", "delete", "#1", None, None),
            (4, "anna", "put", "two", "run 7", 1),
        ]
        assert audit.actors == {"anna": {"put": 2}, "ben": {"delete": 1}}
        assert str(audit).endswith("3 changes by 2 actors")
        assert "anna, on request run 7" in str(audit)
        assert "| a \\| pipe and a line |" in audit.markdown
        assert [entry.seq for entry in store.history.audit(causation=1)] == [4]
        assert [event.seq for event in store.log(causation=1)] == [4]
        assert [entry.seq for entry in store.at(3).history.audit(actor="ben")] == [3]
        assert not store.history.audit(since="2999-01-01")
        with pytest.raises(cerata.InvalidInput, match="causation"):
            store.history.audit(causation="one")  # type: ignore[arg-type]


def test_an_audit_stays_within_the_scope() -> None:
    """The actors and the counts of another tenant are not shown."""
    with cerata.open(":memory:") as store:
        store.put_frame("a", options=cerata.PutOptions(scope={"tenant": "a"}, actor="ann"))
        store.put_frame("b", options=cerata.PutOptions(scope={"tenant": "b"}, actor="bob"))
        audit = store.scoped({"tenant": "b"}).history.audit()
        assert audit.actors == {"bob": {"put": 1}}
        assert "ann" not in audit.markdown + str(audit)


def test_speculative_changes_are_audited() -> None:
    """A view shows what its speculative events would change."""
    with cerata.open(":memory:") as store:
        view = store.upkeep.speculate(Draft(PutFrame(text="x"), actor="cleo"))
        assert [(entry.seq, entry.who) for entry in view.history.audit()] == [(-1, "cleo")]
