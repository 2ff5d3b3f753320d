"""The fold of facts: what any writer may say, how it is cut into batches, what a look-up costs."""

import pytest

from cerata.engine.events import (
    DEFAULT_SCOPE,
    AssertFact,
    EventBody,
    Evidence,
    RetractFact,
    SplitEntity,
    UnmergeEntities,
)
from cerata.projections.facts.projection import FactsProjection
from cerata.projections.facts.reader import FactsAt

from ...timing import seconds
from ..histories import Folded

LARGEST, LEAST = (1 << 64) - 1, -(1 << 63)


def folded(*bodies: EventBody, causation: int | None = None) -> FactsProjection:
    """Return what the events fold to, which is the same in one batch as one by one."""
    events = [
        Folded(seq, body.wire_name, 100 + seq, DEFAULT_SCOPE, body, causation)
        for seq, body in enumerate(bodies, start=1)
    ]
    whole, single = FactsProjection(), FactsProjection()
    whole.apply(events)
    for event in events:
        single.apply([event])
    assert whole.digest() == single.digest()
    return whole


def test_numbers_that_no_column_holds_count_as_the_nearest() -> None:
    """Another writer may store what ours refuses; the fold of the whole log stopped at it."""
    bodies: list[EventBody] = [
        AssertFact(
            subject="a",
            predicate="is",
            object_kind="integer",
            object=value,
            valid_from=start,
            valid_to=end,
            confidence=float("nan"),
            evidence=(Evidence(LARGEST, LEAST, LARGEST),),
        )
        for value in (1, LARGEST)
        for start, end in ((LEAST, LARGEST), (LARGEST, LEAST))
    ]
    view = FactsAt(folded(*bodies).snapshot(), 4)
    assert [(span.valid.start < 0, span.valid.end > 0) for span in view.spans(view.find("a"))] == [
        (True, True),
        (False, False),
    ]


def test_references_to_what_cannot_be_there_are_passed_over() -> None:
    for number in (LARGEST, LEAST, 5, -5):
        bodies = (
            AssertFact(subject="a", predicate="is", object_kind="bool", object=True),
            RetractFact(fact=number),
            SplitEntity(entity="a", into="b", facts=(number, 1)),
            UnmergeEntities(merge=number),
        )
        view = FactsAt(folded(*bodies, causation=number).snapshot(), 4)
        assert [view.depth_of(row) for row in view.find("b")] == [0]


@pytest.fixture(scope="module")
def many() -> FactsAt:
    """20,000 facts of 10,000 subjects."""
    bodies = [
        AssertFact(subject=f"s{number // 2}", predicate="is", object_kind="integer", object=number)
        for number in range(20_000)
    ]
    events = [
        Folded(seq, body.wire_name, 100 + seq, DEFAULT_SCOPE, body)
        for seq, body in enumerate(bodies, start=1)
    ]
    whole = FactsProjection()
    whole.apply(events)
    return FactsAt(whole.snapshot(), len(events))


def test_a_reader_that_others_fold_beyond_names_no_later_fact() -> None:
    """An append is checked by a reader whose columns another thread may fold on: IndexError."""

    def asserted(subject: str) -> AssertFact:
        return AssertFact(subject=subject, predicate="is", object_kind="integer", object=1)

    projection = folded(asserted("a"))
    reader = projection.snapshot()
    projection.apply([Folded(2, "assertFact", 102, DEFAULT_SCOPE, asserted("b"), None)])
    assert (reader.fact_named(1), reader.fact_named(2)) == (1, 2)
    assert (reader.is_closed(2, 2), reader.scope_of_fact(2)) == (False, None)


def look_up_ratio(facts: FactsAt) -> float:
    """Return how many look-ups by subject cost as much as one pass over the columns."""

    def look_up() -> None:
        for number in range(100):
            assert facts.find(f"s{number}") == [2 * number, 2 * number + 1]

    return seconds(facts.find) / (seconds(look_up) / 100)


def test_a_look_up_costs_what_it_finds(many: FactsAt) -> None:
    """Measured 20 to 30, and the more the more facts there are."""
    assert look_up_ratio(many) > 5


def test_a_look_up_that_passes_over_all_is_seen(
    many: FactsAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    def every(
        self: FactsAt, name: str, predicates: object = None, *, folded: bool = False
    ) -> list[int]:
        assert not folded
        return [row for row in self.find() if self.subject_of(row) == name]

    monkeypatch.setattr(FactsAt, "_of_subject", every)
    assert look_up_ratio_of_one(many) < 0.5


def look_up_ratio_of_one(facts: FactsAt) -> float:
    """Return `look_up_ratio` by one look-up: many would take minutes."""

    def look_up() -> None:
        assert facts.find("s7") == [14, 15]

    return seconds(facts.find, 1) / seconds(look_up, 1)
