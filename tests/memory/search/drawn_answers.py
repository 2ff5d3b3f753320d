"""Searches, facts, frames and bytes of a drawn memory: what a faster path must not change.

Owns the memory, which has vectors, facts, merged names and sessions beside the frames of
`drawn_contexts`, and the drawn questions and options. ``python -m
tests.memory.search.drawn_answers SEED COUNT`` prints a line for each answer: run it on two commits
and compare.
"""

import sys
import warnings
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from itertools import chain
from json import dumps
from random import Random
from typing import Any, NamedTuple

import cerata
from cerata import Agent, Filter, Hit, Store, View, agents
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.projections.fulltext.query import Query

from ...embedders import HashingTokens
from ...format.specimen import counted_bytes
from . import drawn_contexts as contexts

QUESTIONS = (
    *contexts.QUESTIONS,
    "what did Alice say last week",
    "who owns the boat of Bob?",
    "why is the plan in Porto, and when did mina reply?",
    "Ally",
    "How many tax receipts has the user",
    '"harbour plan"',
)
QUERIES = ('"harbour plan" OR boat', "plan NOT harbour", "title:Harbour", "tide OR (quay boat)")
FILTERS = (
    *(None,) * 8,
    Filter(role="user"),
    Filter(kind="note") & ~Filter(uri_prefix="doc/"),
    Filter(metadata={"session": "first"}) | Filter(track="chat"),
    Filter(content=("2024-01-10", None)),
    Filter(scope={"user": "anna"}),
    Filter(kind="image"),
)
NAMES = ("Alice", "alice", "Ally", "Bob", "Bobby", "boat", "Lisbon", "nobody", "")
PREDICATES = (None, None, "lives in", "owns", "LIVES  IN", "sails")


class Case(NamedTuple):
    """A question with the options of `search`, a subject with those of `facts`, and frames."""

    question: str | Query
    options: dict[str, Any]
    subject: str
    of_facts: dict[str, Any]
    ids: tuple[int, ...]


def fill(store: Store, clock: contexts.Clock, draw: Random) -> None:
    """Fill a memory: that of contexts, and facts, merged names, sessions and an unsealed tail."""
    contexts.fill(store, clock, draw)
    notes = [frame.id for frame in store.frames()]
    for number in range(40):
        store.assert_fact(
            draw.choice(("Alice", "Bob", "Bobby", "crane", f"boat {number}")),
            draw.choice(("lives in", "owns", "sails", "plans")),
            draw.choice(("Lisbon", "Porto", "the harbour plan", number, True)),
            evidence=draw.sample(notes, draw.randrange(3)),
            valid_from=clock.go_on(draw) if draw.random() < 0.4 else None,
            confidence=draw.choice((1.0, 0.5)),
        )
    facts = store.facts()
    store.retract_fact(draw.choice(facts).id)
    store.graph.merge("Bobby", "Bob")
    store.graph.name("Alice", aliases=["Ally"])
    with Agent(store, "helper").session("s-1", thread="harbour") as session:
        session.exchange("When is the harbour plan due?", "On Tuesday, in Porto.")
        session.exchange("And the tax receipts?", "In the blue folder of Alice.")
    store.graph.link(facts[1].id, "supports", facts[2].id)
    store.checkpoint()
    contexts.put_notes(store, clock, draw, 8)
    store.assert_fact("Bob", "lives in", "Porto", evidence=[notes[2]])
    for frame in draw.sample(notes, 5):
        agents.record_access(store, frame)


def drawn_case(view: View | Store, draw: Random) -> Case:
    """Draw the questions of a case."""
    mode = draw.choice(("hybrid", "hybrid", "hybrid", "text", "vector"))
    options: dict[str, Any] = {
        "mode": mode,
        "k": draw.choice((1, 3, 10, 10, 40)),
        "where": draw.choice(FILTERS),
        "when": draw.choice((None, None, None, "question", ("2024-01-06", "2024-01-20"))),
        "profile": draw.choice((None, None, "words", "continuity", "used")),
        "include_superseded": draw.random() < 0.3,
        "include_deleted": draw.random() < 0.2,
        "offset": draw.choice((0, 0, 0, 0, 0, 2, 130)),
        "group_by": draw.choice(("content", "content", "content", "document", "frame")),
        "min_score": draw.choice((None, None, 0.3)),
        "min_cosine": None if mode == "text" else draw.choice((None, None, None, None, 0.2)),
        "rerank": draw.choice((None, None, {9: 2.0, 3: 1.0})),
    }
    embedding = [draw.random() for _ in range(8)] if draw.random() < 0.2 else None
    options = as_values(options, embedding)
    question: str | Query = draw.choice(QUESTIONS)
    if draw.random() < 0.15:
        question = cerata.query(draw.choice(QUERIES))
    of_facts = {
        "predicate": draw.choice(PREDICATES),
        "valid_at": draw.choice((None, None, "now", "2024-01-12")),
        "include_ended": draw.random() < 0.3,
        "include_retracted": draw.random() < 0.3,
    }
    ids = tuple(draw.sample(range(-14, contexts.IDS_END), 4))
    return Case(question, options, draw.choice(NAMES), of_facts, ids)


def as_values(drawn: dict[str, Any], embedding: list[float] | None) -> dict[str, Any]:
    """Return drawn options as the arguments of `search`."""
    more = Filter(
        content=drawn["when"],
        include_superseded=drawn["include_superseded"],
        include_deleted=drawn["include_deleted"],
    )
    where: Filter | None = drawn["where"]
    return {
        **{name: drawn[name] for name in ("mode", "k", "profile", "rerank")},
        "where": more if where is None else where & more,
        "page": cerata.Page(offset=drawn["offset"], group_by=drawn["group_by"]),
        "floor": drawn["min_score"],
        "vectors": cerata.Vectors(dense=embedding, min_cosine=drawn["min_cosine"]),
    }


def plain_hit(view: View | Store, hit: Hit) -> Any:
    """Return all that a caller can see of a hit."""
    grouped = contexts.attempt(lambda: {"hits": [each.id for each in hit.grouped]})
    explained = contexts.attempt(lambda: view.history.explain(hit).to_dict())
    read = contexts.attempt(lambda: {"span": hit.span, "highlights": hit.highlights})
    return hit.id, hit.score, hit.lanes, hit.cosine, grouped, explained, read


def answer(view: View | Store, case: Case) -> dict[str, Any]:
    """Return the answers of a case as plain values, or their errors."""

    def found() -> dict[str, Any]:
        hits = view.search(case.question, **case.options)
        shown = [plain_hit(view, hit) for hit in hits]
        return {"hits": shown, "notices": hits.notices}

    def known() -> dict[str, Any]:
        facts = view.facts(case.subject or None, **case.of_facts)
        return {"facts": [str(fact.to_dict()) for fact in facts]}

    def near() -> dict[str, Any]:
        hits = view.graph.search(str(case.question))
        return {"near": [(hit.fact.id, hit.score, hit.named) for hit in hits]}

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answers = [*map(contexts.attempt, (found, known, near))]
        reads = [partial(contexts.plain_frame, view, number) for number in case.ids]
        frames = [*map(contexts.attempt, reads)]
    return {"answers": answers, "frames": frames, "warnings": [str(w.message) for w in caught]}


def answers(seed: int, count: int) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Yield drawn cases and their answers, half of them from a memory without vectors."""
    for embedder in (None, HashingTokens()):
        options = {} if embedder is None else {"embedder": embedder}
        yield from contexts.in_states(seed, count // 2, fill, drawn_case, answer, **options)


def line_of(shown: dict[str, Any]) -> str:
    """Return the answers of a case in a line: the best hits, and the hash of all."""
    whole = dumps(shown, ensure_ascii=False, default=str)
    best = [hit[0] for hit in shown["answers"][0].get("hits", ())][:4]
    return f"{best}, {sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def byte_lines(seed: int, count: int) -> Iterator[str]:
    """Yield the hash of a file after each of some rounds of drawn writes and a checkpoint."""
    draw = Random(seed)
    clock = contexts.Clock(int(contexts.START.timestamp() * 1e6))
    place = Environment(MemoryStorage(), clock, counted_bytes())
    for number in range(count):
        with cerata.open("a.cera", environment=place, embedder=HashingTokens()) as store:
            fill(store, clock, draw) if not number else contexts.put_notes(store, clock, draw, 30)
            store.assert_fact(f"Bob {number}", "lives in", "Porto")
            store.checkpoint()
            store.put_frame("the boat of Bob")
            store.checkpoint()
            store.checkpoint()
            store.delete(next(iter(store.frames())).id)
            digests = sorted(map(str, store.stream.digests().items()))
        file = place.storage.open("a.cera", mode="r")
        data = file.read_at(0, file.size())
        whole = sha256(data + "".join(digests).encode()).hexdigest()
        yield f"{len(data):,} bytes, {whole[:16]}"


def lines(seed: int, count: int) -> Iterator[str]:
    """Yield a line for each case, and for each round of writes."""
    found = (line_of(shown) for _, shown in answers(seed, count))
    return chain(found, byte_lines(seed, max(3, count // 30)))


def main() -> None:
    """Print a line for each of COUNT cases from SEED; with a third argument all of each."""
    seed, count = map(int, sys.argv[1:3])
    if len(sys.argv) > 3:
        for case, shown in answers(seed, count):
            print(case, dumps(shown, ensure_ascii=False, indent=1, default=str))  # noqa: T201
    for number, line in enumerate(lines(seed, count)):
        print(f"{seed} {number}: {line}")  # noqa: T201


if __name__ == "__main__":
    main()
