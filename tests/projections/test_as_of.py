"""As-of statistics: random histories at every event, against a store that stopped there.

    CERATA_HISTORIES=10000 pytest tests/projections/test_as_of.py -n 2    # 30 minutes

Each history is folded twice: whole, then event by event beside it. At every n the view of the past
and the fold that stands at n are asked the same questions; rows must be equal, and scores equal to
the bit after rounding to 9 decimals, as they come.
"""

import os
import random

import pytest

from cerata.engine.events import DeleteFrame, EventBody, PutFrame, SupersedeFrame
from cerata.projections.frames.projection import FramesProjection
from cerata.projections.fulltext.bm25 import FulltextView
from cerata.projections.fulltext.projection import FulltextProjection
from cerata.projections.fulltext.query import And, Not, Or, Phrase, Prefix, Query, Term, Wildcard

from .histories import Folded, events_of, fold

HISTORIES = int(os.environ.get("CERATA_HISTORIES", "60"))
SHARES = max(4, HISTORIES // 100)
WORDS = [
    *("index", "indexes", "indexing", "memory", "the", "of", "HNSW", "café", "東京", "log"),
    *("decision", "decisive", "recall", "a"),
]
QUESTIONS: tuple[str | Query, ...] = (
    "index memory recall",
    '"index memory" log',
    Or((Phrase("the log"), Prefix("decisio"), Term("hnsw"))),
    And((Wildcard("*ind*"), Not(Term("memory")))),
)


def random_history(dice: random.Random) -> list[Folded]:
    """Return 1 to 16 events: puts, and now and then a delete or a supersede of anything."""
    bodies: list[EventBody] = []
    for seq in range(1, dice.randrange(2, 18)):
        draw = dice.random()
        if seq > 2 and draw < 0.15:
            bodies.append(DeleteFrame(frame=dice.randrange(1, seq)))
        elif seq > 2 and draw < 0.3:
            bodies.append(SupersedeFrame(old=dice.randrange(1, seq), new=dice.randrange(1, seq)))
        else:
            text = " ".join(dice.choices(WORDS, k=dice.randrange(9)))
            title = dice.choice((None, dice.choice(WORDS)))
            tags = tuple(dice.choices(WORDS, k=dice.choice((0, 0, 1))))
            bodies.append(PutFrame(text=text, title=title, tags=tags))
    return events_of(bodies)


def answers(view: FulltextView) -> list[bytes]:
    found = [view.search(question) for question in QUESTIONS]
    return [part.tobytes() for one in found for part in (one.rows, one.scores)]


@pytest.mark.parametrize("share", range(SHARES))
def test_a_view_of_the_past_ranks_as_a_store_that_stopped(share: int, seed: int) -> None:
    asked = 0
    for number in range(share, HISTORIES, SHARES):
        events = random_history(random.Random(seed * 1_000_003 + number))
        frames, fulltext = fold(events)
        table, index = frames.snapshot(), fulltext.snapshot()
        stopped_frames, stopped = FramesProjection(), FulltextProjection()
        for n, event in enumerate(events, start=1):
            stopped_frames.apply([event])
            stopped.apply([event])
            then = stopped.snapshot().view(stopped_frames.snapshot().alive(n))
            past = index.view(table.alive(n))
            assert answers(past) == answers(then), f"history {number} at {n}"
            assert (past._scoring.document_count, past._scoring.token_count) == (
                then._scoring.document_count,
                then._scoring.token_count,
            )
            asked += 1
    assert asked >= HISTORIES // SHARES
