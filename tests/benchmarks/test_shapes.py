"""The shapes of data: a ranking that fails on one of them fails here, beside SQLite FTS5.

Each line of `LIMITS` is a shape. The shapes are made so that a missing mechanism costs far more
than a limit allows.
"""

from functools import cache
from typing import Final, NamedTuple

import pytest

from benchmarks.retrieval.asking import Asking, Row, peer_row
from benchmarks.retrieval.guard import EMBEDDER_LOSS, GUARDED, PEER_LOSS
from benchmarks.retrieval.judged_set import JudgedSet
from benchmarks.retrieval.sqlite_peer import TOKENIZERS

from .concepts import Vague
from .shapes import shapes


class Limits(NamedTuple):
    """The least nDCG@10 of a shape, and the largest losses to FTS5 and by an embedder."""

    least: float = 0.0
    peer: float = PEER_LOSS
    embedder: float = EMBEDDER_LOSS


LIMITS: Final = {
    # One of 25 questions in second place is 1.5 points; without the length of turns 35 are lost.
    "chat": Limits(peer=0.04, embedder=0.03),
    "files": Limits(embedder=0.01),
    # FTS5 has no words here, and finds less than any cut into runs of letters.
    "thai": Limits(least=0.93),
    "han": Limits(least=0.83),
    # Each root is of rare letters, so runs of three letters find all.
    "arabic": Limits(peer=0.08),
    "russian": Limits(),
    "vietnamese": Limits(),
    "code": Limits(),
    "quotes": Limits(least=0.9),
}

SETS: Final = {judged.name: judged for judged in shapes()}
EMBEDDED: Final = {"none": None, "vague": Vague()}


@cache
def row(shape: str, system: str) -> Row:
    judged = SETS[shape]
    if system in TOKENIZERS:
        return peer_row(judged, shape, system)
    return Asking(judged, shape, quick=True).row(system, EMBEDDED[system], lambda _: None)


def lost(shape: str, system: str, beside: str, most: float) -> list[str]:
    """Return the metrics that are lower than those of another system by more than a limit."""
    scores, least = row(shape, system).scores, row(shape, beside).scores
    return [
        f"{metric} {scores[metric]:.3f}, {beside} {least[metric]:.3f}"
        for metric in GUARDED
        if scores[metric] < least[metric] - most
    ]


def test_every_shape_has_its_limits_and_is_the_same_each_time() -> None:
    """A random number from elsewhere would make a limit a matter of luck."""
    assert [*SETS] == [*LIMITS]
    again: list[JudgedSet] = [*shapes()]
    assert [judged.digest for judged in again] == [judged.digest for judged in SETS.values()]


@pytest.mark.parametrize("system", EMBEDDED)
@pytest.mark.parametrize("shape", LIMITS)
def test_no_shape_is_searched_worse_than_by_fts5(shape: str, system: str) -> None:
    """Nor below its least score, with an embedder that knows little or without one."""
    limits = LIMITS[shape]
    assert [fault for peer in TOKENIZERS for fault in lost(shape, system, peer, limits.peer)] == []
    assert row(shape, system).scores["nDCG@10"] >= limits.least


@pytest.mark.parametrize("shape", LIMITS)
def test_an_embedder_that_knows_little_lowers_no_shape(shape: str) -> None:
    """Words decide if all texts are alike to the embedder, or if it knows no word."""
    assert lost(shape, "vague", "none", LIMITS[shape].embedder) == []
