"""Forged lineage: a `branch` event or an entry of the TOC that the log does not bear out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import cerata
from cerata.engine.events import Branch, Draft, PutFrame
from cerata.engine.format.toc import Toc
from cerata.engine.log_file.writer import Writer
from cerata.memory.batch.writer import session_of
from cerata.memory.store import Store


def forked(tmp_path: Path) -> Path:
    """Return a file with a branch as event 3."""
    with cerata.open(tmp_path / "parent.cera") as parent:
        parent.put_frames(["a", "b"])
        parent.upkeep.fork(path=tmp_path / "fork.cera").close()
    return tmp_path / "fork.cera"


def problems(store: Store) -> list[str]:
    return [problem.text for problem in store.verify().log.problems]


FORGED: list[Callable[[Branch], Branch]] = [
    lambda body: replace(body, seq=1),
    lambda body: replace(body, chain=b"c" * 32),
    lambda body: replace(body, root=b"r" * 32),
    lambda body: replace(body, before=1),
]


@pytest.mark.unwatched("the file is damaged")
@pytest.mark.parametrize("is_sealed", [True, False])
@pytest.mark.parametrize("forge", FORGED)
def test_a_forged_branch_event_is_reported(
    tmp_path: Path, forge: Callable[[Branch], Branch], is_sealed: bool
) -> None:
    """Its point is not that of the events before it; the bytes themselves are whole."""
    with cerata.open(forked(tmp_path)) as store:
        log = session_of(store).log
        store.put_frame("c")
        head = log.head
        body = Branch(id=b"x" * 16, seq=head.seq, chain=head.chain, root=head.root, before=3)
        log.append([Draft(forge(body))])
        if is_sealed:
            log.seal()
        expected = f"The branch of event {head.seq + 1} does not continue the event before it"
        assert problems(store) == [expected]


@pytest.mark.unwatched("the file is damaged")
def test_a_branch_inside_a_batch_is_reported(tmp_path: Path) -> None:
    """Only the first event of a batch was compared, so a forged branch behind it stayed unseen."""
    with cerata.open(forked(tmp_path)) as store:
        body = Branch(id=b"x" * 16, seq=3, chain=b"c" * 32, root=b"r" * 32)
        session_of(store).log.append([Draft(PutFrame(text="c")), Draft(body)])
        assert problems(store) == ["The branch of event 5 does not begin its batch"]


@pytest.mark.unwatched("the file is damaged")
@pytest.mark.parametrize("branch", [0, 1, 2])
def test_a_toc_that_names_another_branch_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, branch: int
) -> None:
    """A missing entry would hide the fork, and another would name a wrong identity."""
    path = forked(tmp_path)
    add_segment = Writer._add_segment

    def forged(writer: Writer, *arguments: Any) -> Toc:
        return replace(add_segment(writer, *arguments), branch=branch)

    with cerata.open(path) as store:
        assert problems(store) == []
        store.put_frame("c")
        monkeypatch.setattr(Writer, "_add_segment", forged)
        session_of(store).log.seal()
        monkeypatch.undo()
        assert problems(store) == [f"The newest branch is event 3, not {branch} as in the TOC"]
