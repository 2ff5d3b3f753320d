"""Verification of projections: the first event from which something differs is named."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata.memory.batch.writer import session_of
from cerata.projections.core.projection import FoldedEvent, Projection
from cerata.projections.fulltext.projection import FulltextProjection
from cerata.projections.registry import Registry
from cerata.replay import checkpoint

from ..inside import fold_of, log_of
from .spending import Spending, Spent
from .words import fill, opened


@pytest.mark.parametrize("name", ["frames", "fulltext"])
def test_verify_names_the_first_event_that_diverges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A fold that loses one event's effect is found in its chunk, to the event."""
    path = tmp_path / "a.cera"
    lost = 2_222
    kind: type[Any] = type(Registry().make(name))
    apply = kind.apply

    def forgetful(one: Projection, events: Sequence[FoldedEvent]) -> None:
        apply(one, [event if event.seq != lost else _Emptied(event) for event in events])

    with opened(path) as store:
        fill(store, 3_000)
        while log_of(store).event(lost).type != "putFrame":
            lost += 1
        with monkeypatch.context() as patched:
            patched.setattr(kind, "apply", forgetful)
            store.checkpoint()
    with opened(path, "r") as store:
        found = store.verify()
        assert [(one.projection, one.seq) for one in found.divergences] == [(name, lost)]
        assert not found.ok
        assert f"event {lost:,}" in str(found.divergences[0])
    with opened(path) as store:
        store.upkeep.rebuild()
        assert store.verify().ok


class _Emptied:
    """An event whose kind nobody handles."""

    type = "nothing"

    def __init__(self, event: FoldedEvent) -> None:
        self.seq, self.recorded = event.seq, event.recorded
        self.scope, self.body = event.scope, event.body
        self.causation = event.causation


def test_verify_names_the_event_of_a_user_s_row(tmp_path: Path) -> None:
    """The first event that changes the row that differs."""
    path = tmp_path / "a.cera"

    class Forgetful(Spending):
        def apply(self, events: Sequence[FoldedEvent]) -> None:
            super().apply([one for one in events if getattr(one.body, "tag", "") != "rare"])

    with cerata.open(path, projections=[Forgetful]) as store:
        fill(store, 900)
        rare = session_of(store).write([cerata.Draft(Spent(tag="rare", cents=3))]).id
        fill(store, 300)
        store.checkpoint()
    with opened(path, "r") as store:
        found = store.verify()
        assert [(one.projection, one.seq) for one in found.divergences] == [("spending", rare)]


def test_verify_finds_a_fold_that_went_wrong_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is saved yet; the state that serves is bisected by its digests."""
    with opened(tmp_path / "a.cera") as store:
        fill(store, 150)
        apply = FulltextProjection.apply
        lost = next(event.seq for event in store.log(100) if event.type == "putFrame")

        def forgetful(one: FulltextProjection, events: Sequence[FoldedEvent]) -> None:
            apply(one, [event if event.seq != lost else _Emptied(event) for event in events])

        with monkeypatch.context() as patched:
            patched.setattr(FulltextProjection, "apply", forgetful)
            store.search("wax")
        found = store.verify()
        assert [(one.projection, one.seq) for one in found.divergences] == [("fulltext", lost)]


def _of_other_bytes(_: bytes) -> bytes:
    return bytes(32)


def test_verify_finds_a_chunk_with_the_id_of_other_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading leaves the id alone: the extent's own check holds what is stored."""
    path = tmp_path / "a.cera"
    with opened(path) as store:
        fill(store, 600)
        monkeypatch.setattr(checkpoint, "hash_bytes", _of_other_bytes)
        store.checkpoint()
        monkeypatch.undo()
    with opened(path, "r") as store:
        assert store.stream.digests() == store.stream.digests(replay=True)
        assert {report.bad_chunks for report in fold_of(store).reports.values()} == {()}
        found = store.verify()
        assert not found.ok
        assert {one.text for one in found.divergences} == {"a chunk has the id of other bytes"}
