"""The size of a file over its raw texts and vectors, and each mechanism that keeps it small."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks import size_bench
from cerata.engine import codec
from cerata.engine import open as opening
from cerata.engine.events import Draft, PutFrame, Scope
from cerata.engine.segments import segment_writer
from cerata.memory.frames import commands
from cerata.memory.frames.drafts import text_drafts
from cerata.memory.values.arguments import content_hash
from cerata.replay import checkpoint

COUNT = 1_000


def ratio(folder: Path) -> float:
    """Return the bytes of a file of 1,000 documents with vectors over the raw bytes."""
    texts, vectors = size_bench.documents(COUNT)
    path = folder / "a.cera"
    size_bench.written(path, texts, vectors, "f4")
    parts = size_bench.parts(path)
    assert sum(parts.values()) == path.stat().st_size
    raw = sum(len(text.encode()) for text in texts) + vectors.nbytes
    return sum(parts.values()) / raw


RATIO_MAX = 1.051
"""Measured 1.0494, of which the ring and the header pages are 0.077, and 0.008 at 10,000."""


def test_a_file_is_hardly_larger_than_its_texts_and_vectors(tmp_path: Path) -> None:
    """Measured by benchmarks.size_bench at 10,000 and 100,000."""
    assert ratio(tmp_path) < RATIO_MAX


def large_ring(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(opening, "RING_SIZE_DEFAULT", 512 << 10)


def salts_one_by_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(codec, "SEEDED_EVENTS_MIN", 1 << 20)


def hashes_of_vectors(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(segment_writer, "without_hash", whole)


def hashes_of_contents(patch: pytest.MonkeyPatch) -> None:
    def hashed_drafts(
        texts: Sequence[str], fields: Sequence[PutFrame], scope: Scope, **more: Any
    ) -> list[Draft]:
        hashed = [
            msgspec.structs.replace(body, content_hash=content_hash(text))
            for text, body in zip(texts, fields, strict=True)
        ]
        return text_drafts(texts, hashed, scope, **more)

    patch.setattr(commands, "text_drafts", hashed_drafts)


def chunks_without_effects(patch: pytest.MonkeyPatch) -> None:
    def keep(_chunk: bytes) -> bool:
        return False

    patch.setattr(checkpoint, "is_idle", keep)


def whole(payload: bytes, _: bytes) -> tuple[bytes, None]:
    return payload, None


@pytest.mark.parametrize(
    "turn_off",
    [
        large_ring,
        salts_one_by_one,
        hashes_of_vectors,
        hashes_of_contents,
        chunks_without_effects,
    ],
)
def test_a_mechanism_that_is_off_is_noticed(
    turn_off: Callable[[pytest.MonkeyPatch], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bound above is below the size without any one of them."""
    turn_off(monkeypatch)
    assert ratio(tmp_path) > RATIO_MAX
