"""Questions to the graph over facts, and the answers of a view and of the model."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeAlias

from cerata import FactPath, View

from ...projections.facts.fact_model import FactModel
from ...projections.facts.graph_model import GraphModel
from ...projections.links.link_model import LinkedModel
from ..facts.questions import times_in
from ..facts.world import NAMES, PREDICATES, START_US, events_of, time_at

Question: TypeAlias = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A read, its arguments, and which edges it goes by; times are microseconds."""

_EVERYONE = (*NAMES, "carl", "dora", "nobody")


def questions(view: View, times: Sequence[int]) -> list[Question]:
    """Return every question of every shape, at some instants and at none."""
    edges: list[dict[str, Any]] = [
        {"valid_at": time, "predicate": predicate, "direction": direction}
        for time in (None, *times)
        for predicate in (None, *PREDICATES)
        for direction in ("both", "out", "in")
    ]
    found: list[Question] = []
    for edge in edges:
        found += [("neighbours", (name,), edge) for name in _EVERYONE]
        found += [("walk", ((name,), hops, 60), edge) for name in _EVERYONE for hops in (1, 2, 4)]
        found += [("walk", (pair, 2, 1), edge) for pair in (("ann", "bob"), ("bob", "dora", "ann"))]
        found += [
            ("paths", (one, other, hops, limit), edge)
            for one in _EVERYONE
            for other in _EVERYONE
            for hops, limit in ((4, 50), (2, 2))
        ]
    found += [
        ("cooccurring", (name,), {"valid_at": time})
        for time in (None, *times)
        for name in _EVERYONE
    ]
    return found


def drawn(view: View, count: int, seed: int) -> list[Question]:
    """Return some questions by chance, of every shape."""
    dice = Random(seed)
    times = times_in(events_of(view)) or [START_US]
    return dice.sample(questions(view, dice.sample(times, 1)), count)


def answer_of(view: View, question: Question) -> object:
    """Return what a view says to a question, as plain values."""
    name, given, how = question
    edge: dict[str, Any] = dict(how)
    if how["valid_at"] is not None:
        edge["valid_at"] = time_at(how["valid_at"])
    if name == "neighbours":
        return [(one.entity, one.fact_ids) for one in view.graph.neighbours(given[0], **edge)]
    if name == "walk":
        names, hops, k = given
        found = view.graph.walk(names[0] if len(names) == 1 else names, hops=hops, k=k, **edge)
        return [(one.entity, one.hop, round(one.score, 12), one.fact_ids) for one in found]
    if name == "paths":
        start, end, hops, limit = given
        return [
            _plain(path)
            for path in view.graph.paths(start, end, hops_max=hops, limit=limit, **edge)
        ]
    return [(one.entity, one.frames) for one in view.graph.cooccurring(given[0], **edge)]


def _plain(path: FactPath) -> object:
    return path.start, [(step.entity, step.fact_ids) for step in path.steps]


def model_answer(model: FactModel, question: Question, shown: Callable[[int], int]) -> object:
    """Return what the model says to a question, as plain values."""
    name, given, how = question
    graph = GraphModel(model, **how)

    def ids(numbers: Sequence[int]) -> tuple[int, ...]:
        return tuple(map(shown, numbers))

    if name == "neighbours":
        return [(entity, ids(facts)) for entity, facts in graph.neighbours(*given)]
    if name == "walk":
        return [
            (entity, hop, round(score, 12), ids(facts))
            for entity, hop, score, facts in graph.walk(*given)
        ]
    if name == "paths":
        return [
            (start, [(entity, ids(facts)) for entity, facts in steps])
            for start, steps in graph.paths(*given)
        ]
    return [(entity, ids(frames)) for entity, frames in graph.cooccurring(*given)]


def ask(view: View, asked: Sequence[Question]) -> int:
    """Hold a view against the model of its events by some questions; return how many said much."""
    model, told = LinkedModel(events_of(view), view.scope), 0

    def shown(seq: int) -> int:
        return seq if seq <= view.basis else view.basis - seq

    for question in asked:
        said, expected = answer_of(view, question), model_answer(model, question, shown)
        assert said == expected, f"{question} at {view.basis} in {view.scope}"
        told += bool(said)
    return told
