"""What is said of a fact besides: confidence, source, evidence and assumptions.

docs/facts.md says what each of them means; whole histories are `test_facts_model`'s.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any, cast

import pytest
from blake3 import blake3

import cerata
from cerata import Store
from cerata.engine.errors import InvalidInput
from cerata.engine.events import AssertFact, Draft, Evidence
from cerata.memory.batch.writer import session_of

from .edges import T, edge_store


def quote_of(store: Store, frame: int, text: str) -> bytes:
    """Return the salted hash of a quote, as docs/format.md says it."""
    [event] = store.log(frame, frame)
    assert event.salt is not None
    return blake3(text.encode(), key=event.salt + bytes(16)).digest(16)


@pytest.fixture
def store() -> Iterator[Store]:
    with edge_store() as opened:
        yield opened


class TestSayings:
    """What is said of a fact besides."""

    @pytest.mark.parametrize(
        "given",
        [
            *product(["confidence"], (-0.1, 1.1, float("nan"), True, "1", None)),
            *product(["source"], ("", "Observed", None, [])),
            *product(["evidence"], ([(1, 2, 2)], [(1, 3, 2)], [(1, -1, 2)], [(1, None, 2)])),
            *product(["evidence"], (1, "1", [None], [(1,)], [1.5])),
            *product(
                ["options"],
                (cerata.FactOptions(assumptions=bad) for bad in cast("Any", ("one", [1], 1))),
            ),
        ],
    )
    def test_what_cannot_be_is_refused(self, store: Store, given: tuple[str, Any]) -> None:
        """Of evidence the range of bytes too; frame 1 is there."""
        store.put_frame("Ann lives in Paris.")
        with pytest.raises(InvalidInput):
            store.assert_fact("a", "p", 1, **{given[0]: given[1]})
        assert store.history.view().basis == 1

    def test_confidence_is_kept_in_millionths(self, store: Store) -> None:
        said = [0, 1, 0.5, 1 / 3, 0.000_000_4]
        found = [store.graph.fact(store.assert_fact("a", "p", 1, confidence=one)) for one in said]
        assert [fact.confidence for fact in found] == [0.0, 1.0, 0.5, 0.333333, 0.0]

    def test_evidence_that_was_given_before_is_not_given_twice(self, store: Store) -> None:
        frame = store.put_frame("Ann lives in Paris.")
        part = cerata.FactEvidence(frame.id, 0, 3)
        whole = cerata.FactEvidence(frame.id)
        for places in ([part], [part, whole], [whole, whole]):
            store.assert_fact("ann", "p", 1, valid_from=T[0], evidence=places)
        [fact] = store.facts("ann")
        assert fact.evidence == (
            cerata.FactEvidence(frame.id, 0, 3),
            cerata.FactEvidence(frame.id),
        )

    def test_evidence_comes_back_as_the_text_that_was_read(self, store: Store) -> None:
        frame = store.put_frame("Ann lives in Orléans. She likes it.", title="Notes").id
        fact = store.assert_fact("ann", "lives in", "x", evidence=[(frame, 13, 21), frame])
        part, whole = store.graph.evidence(fact)
        assert (part.text, part.is_intact, part.is_current) == ("Orléans", True, True)
        assert part.place.quote == quote_of(store, frame, "Orléans")
        assert part.source.startswith(f"#{frame} · Notes · ")
        assert (whole.text, whole.is_intact) == ("Ann lives in Orléans. She likes it.", None)
        new = store.supersede(frame, "Ann lives in Rome.")
        assert [one.is_current for one in store.graph.evidence(fact)] == [False, False]
        assert store.at(new).graph.evidence(fact)[0].text == "Orléans"

    def test_evidence_of_a_transaction_is_read_in_it(self, store: Store) -> None:
        with store.transaction():
            frame = store.put_frame("Ann lives in Paris.")
            fact = store.assert_fact("ann", "lives in", "x", evidence=[(frame, 13, 18)])
            [said] = store.graph.evidence(fact)
            assert (said.text, said.is_intact) == ("Paris", True)
        [said] = store.graph.evidence(store.facts("ann")[0])
        assert (said.place.frame, said.text, said.is_intact) == (1, "Paris", True)
        assert said.place.quote == quote_of(store, 1, "Paris")

    @pytest.mark.parametrize(
        ("span", "message"),
        [((0, 99), "ends at byte 99 of a text of 22"), ((13, 17), "cuts a character in two")],
    )
    def test_evidence_that_is_no_part_of_its_text_is_refused(
        self, store: Store, span: tuple[int, int], message: str
    ) -> None:
        frame = store.put_frame("Ann lives in Orléans.").id
        with pytest.raises(InvalidInput, match=message):
            store.assert_fact("ann", "lives in", "x", evidence=[(frame, *span)])
        assert store.history.view().basis == frame

    def test_evidence_that_another_text_stands_in_is_told(self, store: Store) -> None:
        """Another writer's hash, or a frame whose bytes were exchanged: what was read is gone."""
        frame = store.put_frame("Ann lives in Paris.").id
        wrong = Evidence(frame, 13, 18, cerata.content_hash("Rome"))
        body = AssertFact(
            subject="ann", predicate="p", object_kind="integer", object=1, evidence=(wrong,)
        )
        fact = session_of(store).write([Draft(body)]).id
        [said] = store.graph.evidence(fact)
        assert (said.text, said.is_intact) == ("Paris", False)

    def test_a_correction_keeps_the_evidence_and_its_hash(self, store: Store) -> None:
        frame = store.put_frame("Ann lives in Paris.").id
        fact = store.assert_fact("ann", "lives in", "paris", evidence=[(frame, 13, 18)])
        store.delete(frame)
        right = store.correct_fact(fact, object="Paris")
        [said] = store.graph.evidence(right)
        assert (said.text, said.is_intact, said.is_current) == ("Paris", True, False)
