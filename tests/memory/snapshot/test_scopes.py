"""A store that was opened with a scope neither writes nor reads outside it."""

from pathlib import Path

import numpy as np
import pytest

import cerata
from cerata.engine.events import DEFAULT_SCOPE, PutFrame, Scope
from cerata.memory.batch.writer import session_of

ALICE: Scope = (("tenant", "alice"),)
BOB: Scope = (("tenant", "bob"),)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.cera"


@pytest.mark.parametrize(
    "scope", [ALICE, (("tenant", "alice"), ("user", "bob")), DEFAULT_SCOPE[:0]]
)
def test_a_draft_does_not_write_into_another_tenant(path: Path, scope: Scope) -> None:
    """A draft brought its scope along, and so bob's store wrote what alice then read as hers."""
    with cerata.open(path, scope={"tenant": "bob"}) as bob:
        forged = cerata.Draft(PutFrame(text="forged"), scope)
        with pytest.raises(cerata.InvalidInput, match="scope"):
            bob.append(forged)
        with pytest.raises(cerata.InvalidInput, match="scope"), bob.transaction():
            bob.append(forged)
        with pytest.raises(cerata.InvalidInput, match="scope"), bob.transaction():
            session_of(bob).write([forged])
        assert bob.head.seq == 0


def test_a_draft_without_a_scope_gets_the_stores_and_may_narrow_it(path: Path) -> None:
    """It was stamped with the tenant 'default', and bob never saw it again."""
    with cerata.open(path, scope={"tenant": "bob"}) as bob:
        bob.append(cerata.Draft(PutFrame(text="plain")))
        bob.append(cerata.Draft(PutFrame(text="narrow"), (*BOB, ("user", 7))))
        with bob.transaction():
            bob.append(cerata.Draft(PutFrame(text="gathered")))
            assert len(bob) == 3
        assert [frame.scope for frame in bob.frames()] == [
            {"tenant": "bob"},
            {"tenant": "bob", "user": 7},
            {"tenant": "bob"},
        ]


def test_true_does_not_pass_for_one(path: Path) -> None:
    """They are equal in Python and not in a scope, so the write left the store's scope."""
    with cerata.open(path, scope={"n": True}) as store:
        with pytest.raises(cerata.InvalidInput, match="cannot become"):
            store.put_frame("x", options=cerata.PutOptions(scope={"n": 1}))
        assert store.head.seq == 0


def test_what_is_below_a_frame_of_another_tenant_is_not_told(path: Path) -> None:
    """Bob was given the ids of what alice keeps below a frame of hers."""
    text = "\n\n".join(f"## Part {number}\n" + "w " * 400 for number in range(6))
    with cerata.open(path) as store, cerata.open(path, scope={"tenant": "bob"}) as bob:
        document = store.remember(text, options=cerata.PutOptions(scope={"tenant": "alice"}))
        assert store.history.view().files.chunks(document)
        for read in (bob.history.view().files.children, bob.history.view().files.chunks):
            for frame in (document.id, document.id + 1, 1_000, -1):
                with pytest.raises(cerata.NotFound):
                    read(frame)
        own = bob.put_frame("bob's")
        store.put_frame(
            "alice's, below bob's", options=cerata.PutOptions(parent=own, scope={"tenant": "alice"})
        )
        assert store.history.view().files.children(own) == [own.id + 1]
        assert bob.history.view().files.children(own) == []


@pytest.mark.parametrize(
    "asked",
    [
        cerata.Vectors(dense=[1, 0], space="no"),
        cerata.Vectors(dense=[1, 0], space="secret"),
        cerata.Vectors(dense=[1]),
        cerata.Vectors(tokens=[[1, 0]]),
    ],
)
def test_a_space_of_another_tenant_is_not_told(tmp_path: Path, asked: cerata.Vectors) -> None:
    """It was named in an error, and a vector that fitted both spaces was refused."""
    path = tmp_path / "memory.cera"
    with cerata.open(path, scope={"tenant": "a"}) as store:
        store.put_frame("x", vectors=cerata.Vectors(dense=[1, 0], space="secret"))
        store.put_frame(
            "x", vectors=cerata.Vectors(tokens=[[1, 0]], tokens_space="secret@1/2/maxsim/i1")
        )
    with cerata.open(path, scope={"tenant": "b"}) as store:
        store.put_frame("mine", vectors=cerata.Vectors(dense=[1, 0], space="s"))
        assert [hit.text for hit in store.search(np.array([1, 0]))] == ["mine"]
        if asked.space is not None:
            # A space without vectors gives no hits, whether another tenant has it or not.
            assert list(store.search("x", vectors=asked)) == []
            return
        with pytest.raises(cerata.CerataError) as told:
            store.search("x", vectors=asked)
        assert "secret" not in str(told.value)
