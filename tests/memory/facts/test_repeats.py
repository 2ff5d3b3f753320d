"""The same again: a repeated assertion or declaration appends nothing."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest

import cerata
from cerata import Conflict, Entity, IdempotencyConflict, ReadOnly, Store


@pytest.fixture
def store() -> Store:
    return cerata.open(":memory:")


def _nothing(*_: object, **__: object) -> None:
    return None


def test_an_equal_assertion_appends_nothing(store: Store) -> None:
    """An agent that asserts what it knows grew its log at each start."""
    note = store.put_frame("Alice lives in Paris.")
    arguments: dict[str, Any] = {
        "confidence": 0.5,
        "source": "inferred",
        "evidence": [note, (note, 0, 5)],
        "options": cerata.FactOptions(assumptions=["b", "a"]),
        "valid_from": "2020-01-01",
        "valid_to": "2030-01-01",
    }
    first = store.assert_fact("alice", "lives in", Entity("Paris"), **arguments)
    again = store.assert_fact("alice", "lives in", Entity("Paris"), **arguments)
    assert (again.id, again.ids, again.added, again.seqs) == (first.id, (first.id,), False, ())
    fewer: dict[str, Any] = {
        **arguments,
        "evidence": [note],
        "options": cerata.FactOptions(assumptions=["a"]),
    }
    assert not store.assert_fact("alice", "lives in", Entity("Paris"), **fewer).added
    assert store.head.seq == 2


@pytest.mark.parametrize(
    "change",
    [
        {"confidence": 0.5},
        {"source": "inferred"},
        {"evidence": [1]},
        {"options": cerata.FactOptions(assumptions=["new"])},
        {"valid_from": "2020-01-01"},
        {"valid_to": "2099-01-01"},
        {"options": cerata.FactOptions(scope={"user": "ann"})},
        {"options": cerata.FactOptions(because=2)},
    ],
)
def test_any_news_is_appended(store: Store, change: dict[str, Any]) -> None:
    """And is no news when it is asserted once more."""
    store.put_frame("A note.")
    store.assert_fact("a", "is", "b")
    store.assert_fact("a", "is", "c")
    assert store.assert_fact("a", "is", "c", **change).added
    assert not store.assert_fact("a", "is", "c", **change).added
    assert store.head.seq == 4


def test_a_stated_confidence_is_compared_with_the_last(store: Store) -> None:
    for confidence in (1.0, 0.5, 1.0):
        assert store.assert_fact("a", "is", 1, confidence=confidence).added
    assert not store.assert_fact("a", "is", 1).added


def test_a_retracted_fact_and_a_value_that_came_back_are_new(store: Store) -> None:
    first = store.assert_fact("a", "is", 1)
    store.retract_fact(first)
    assert store.assert_fact("a", "is", 1).added
    store.graph.declare("lives in", functional=True)
    for place, is_added in (("rome", True), ("rome", False), ("oslo", True), ("rome", True)):
        assert store.assert_fact("a", "lives in", place).added is is_added
    assert len(store.graph.versions("a", "lives in")) == 3


def test_a_batch_writes_only_what_is_new_and_names_every_fact(store: Store) -> None:
    old = store.assert_fact("a", "is", 1)
    receipt = store.graph.assert_many([("a", "is", 2), ("a", "is", 1), ("a", "is", 3)])
    assert receipt.ids == (2, old.id, 3)
    assert [store.graph.fact(number).object for number in receipt.ids] == [2, 1, 3]
    again = store.graph.assert_many([("a", "is", 2), ("a", "is", 1), ("a", "is", 3)])
    assert (again.ids, again.added) == (receipt.ids, False)


def test_the_second_of_two_equal_facts_of_a_batch_is_a_repeat(store: Store) -> None:
    receipt = store.graph.assert_many(
        [("a", "is", 1), ("a", "is", 2), ("a", "is", 1), ("a", "is", 1.0)]
    )
    assert (receipt.ids, store.head.seq) == ((1, 2, 1, 3), 3)
    keyed = store.graph.assert_many([("b", "is", 1), ("b", "is", 1)], key="k")
    assert len(keyed.seqs) == 2


@pytest.mark.parametrize("is_one_batch", [True, False])
def test_a_repeat_after_news_in_the_same_batch_is_news(store: Store, is_one_batch: bool) -> None:
    """Asserting [oslo, rome] over rome lost the return to rome."""
    store.graph.declare("lives in", functional=True)
    store.assert_fact("a", "lives in", "rome")
    store.assert_fact("a", "is", 1)
    facts = [
        cerata.Assertion("a", "lives in", "oslo"),
        cerata.Assertion("a", "lives in", "rome"),
        cerata.Assertion("a", "is", 1, confidence=0.5),
        cerata.Assertion("a", "is", 1),
    ]
    for batch in [facts] if is_one_batch else [[fact] for fact in facts]:
        assert store.graph.assert_many(batch).added
    assert store.graph.versions("a", "lives in")[-1].object == "rome"
    assert store.facts("a", "is")[0].confidence == 1.0
    assert store.head.seq == 7


@pytest.mark.parametrize("is_known_first", [True, False])
def test_values_of_other_subjects_leave_a_known_fact_known(
    store: Store, is_known_first: bool
) -> None:
    """A batch with a new value of any subject appended all known values after it again."""
    store.graph.declare("lives in", functional=True)
    known = store.assert_fact("alice", "lives in", "rome")
    store.assert_fact("carl", "lives in", "bonn", valid_from="2020-01-01")
    facts = [("bob", "lives in", "paris"), ("alice", "lives in", "rome")]
    receipt = store.graph.assert_many(facts[::-1] if is_known_first else facts)
    assert receipt.ids == ((known.id, 4) if is_known_first else (4, known.id))
    dated = cerata.Assertion("carl", "lives in", "bonn", valid_from="2020-01-01")
    assert store.graph.assert_many([("carl", "lives in", "oslo"), dated]).ids == (5, 3)
    fresh = [("dora", "lives in", "a"), ("eva", "lives in", "b"), ("dora", "lives in", "a")]
    assert store.graph.assert_many(fresh).ids == (6, 7, 6)
    assert store.head.seq == 7


def test_only_a_value_since_the_last_equal_fact_of_a_batch_makes_news(store: Store) -> None:
    store.graph.declare("is", functional=True)
    names = "abaaacbb"
    receipt = store.graph.assert_many([("k", "is", name) for name in names])
    assert (receipt.ids, store.head.seq) == ((2, 3, 4, 4, 4, 5, 6, 6), 6)


def test_a_value_under_a_merged_or_split_name_is_a_rival(store: Store) -> None:
    """The fact of alice is read as anna's, so that anna's value ends it."""
    store.graph.declare("is", functional=True)
    known = store.assert_fact("alice", "is", "x")
    store.graph.name("anna")
    merge = store.graph.merge("alice", "anna")
    batch = [("anna", "is", "y"), ("bob", "is", "z"), ("alice", "is", "x"), ("bob", "is", "z")]
    receipt = store.graph.assert_many(batch)
    assert receipt.ids == (5, 6, 7, 6)
    store.graph.unmerge(merge)
    store.graph.name("amy")
    store.graph.split("alice", "amy", [known, receipt.ids[2]])
    head = store.head.seq
    split = store.graph.assert_many([("amy", "is", "y"), ("alice", "is", "x")])
    assert split.ids == (head + 1, head + 2)


def test_new_facts_fold_nothing_and_repeats_of_them_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fold before each write took longer than the write."""
    from cerata.replay.fold import Fold

    path = str(tmp_path / "m.cera")
    folds: list[object] = []
    facts = Fold.facts

    def noted(fold: Fold, through: int | None = None) -> Any:
        folds.append(through)
        return facts(fold, through)

    monkeypatch.setattr(Fold, "facts", noted)
    with cerata.open(path) as store, cerata.open(path) as other:
        first = store.assert_fact("a", "is", 0)
        folds.clear()
        for number in range(1, 20):
            store.assert_fact("a", "is", number)
        store.graph.assert_many([("b", "is", number) for number in range(100)])
        assert not folds
        assert not store.assert_fact("a", "is", 19).added
        assert folds
        other.retract_fact(first)
        assert store.assert_fact("a", "is", 0).added
        assert not other.assert_fact("a", "is", 0).added
        assert other.assert_fact("a", "is", 99).added
        assert not store.assert_fact("a", "is", 99).added


def test_a_transaction_compares_with_its_drafts(store: Store) -> None:
    logged = store.assert_fact("a", "is", 1)
    with store.transaction() as block:
        assert store.assert_fact("a", "is", 1).id == logged.id
        new = store.assert_fact("a", "is", 2)
        assert store.assert_fact("a", "is", 2).ids == new.ids
        store.retract_fact(logged)
        assert store.assert_fact("a", "is", 1).added
        store.graph.name("a", kind="letter")
        assert not store.graph.name("a", kind="letter").added
        store.graph.declare("is", functional=False)
        assert not store.graph.declare("is", functional=False).added
    assert block.receipt is not None
    assert len(block.receipt.seqs) == 5
    assert store.graph.fact(new).object == 2


def test_a_key_is_recorded_with_its_facts_or_not_at_all(store: Store) -> None:
    first = store.graph.assert_many([("a", "is", 1)], key="k")
    assert store.graph.assert_many([("a", "is", 1)], key="k").ids == first.ids
    with pytest.raises(IdempotencyConflict):
        store.graph.assert_many([("a", "is", 2)], key="k")
    assert not store.graph.assert_many([("a", "is", 1)], key="free").added
    assert store.graph.assert_many([("a", "is", 9)], key="free").added
    retried = store.assert_fact("c", "is", 1)
    assert not store.assert_fact("c", "is", 1, options=cerata.FactOptions(key="retried")).added
    store.retract_fact(retried)
    assert store.assert_fact("c", "is", 1, options=cerata.FactOptions(key="retried")).added
    both = store.graph.assert_many([("a", "is", 1), ("a", "is", 3)], key="both")
    repeated = store.graph.assert_many([("a", "is", 1), ("a", "is", 3)], key="both")
    assert (repeated.ids, repeated.added) == (both.ids, False)
    for _ in range(2):
        with store.transaction(key="block"):
            store.assert_fact("a", "is", 4)
            store.assert_fact("a", "is", 4)
    assert len(store.facts("a")) == 4


def test_declarations_entities_and_merges_are_recorded_once(store: Store) -> None:
    first = store.graph.declare("lives in", functional=True)
    again = store.graph.declare("lives in", functional=True)
    assert (again.id, again.added, again.ids) == (first.id, False, ())
    assert store.graph.declare("lives in", functional=False).added
    assert store.graph.declare("lives in", functional=True).added
    put = store.graph.name("alice", kind="person", aliases=["Ally", "Al"])
    assert store.graph.name("alice", kind="person", aliases=["Al"]).id == put.id
    assert not store.graph.name("alice").added
    assert store.graph.name("alice", kind="robot").added
    assert store.graph.name("alice", aliases=["A."]).added
    assert store.graph.name("alice", scope={"user": "ann"}).added
    store.graph.name("anna")
    merge = store.graph.merge("alice", "anna")
    assert store.graph.merge("alice", "anna").ids == (merge.id,)
    store.graph.name("bea")
    with pytest.raises(Conflict):
        store.graph.merge("alice", "bea")
    store.graph.unmerge(merge)
    assert store.graph.merge("alice", "anna").added


def test_a_declaration_of_another_scope_in_between_makes_a_repeat_news(store: Store) -> None:
    """A reader of the tenant sees the newest declaration of any scope."""
    store.graph.declare("is", functional=True)
    store.graph.declare("is", functional=False, scope={"user": "ann"})
    assert store.graph.declare("is", functional=True).added
    assert store.graph.declare("is", functional=True, scope={"user": "ann"}).added
    assert not store.graph.declare("is", functional=True).added


def test_a_reader_refuses_a_repeat_like_any_write(tmp_path: Path) -> None:
    path = str(tmp_path / "m.cera")
    with cerata.open(path) as store:
        store.assert_fact("a", "is", 1)
    with cerata.open(path, mode="r") as reader, pytest.raises(ReadOnly):
        reader.assert_fact("a", "is", 1)


def test_concurrent_writers_of_equal_facts_leave_one_of_each(tmp_path: Path) -> None:
    """A lost race appends a repeat, which is the same fact, or finds the other's merge."""
    path = str(tmp_path / "m.cera")
    with cerata.open(path) as store:
        store.graph.name("a")
        store.graph.name("b")

    def write(_: int) -> None:
        with cerata.open(path) as store:
            for number in range(10):
                store.assert_fact("a", "is", number)
            store.graph.merge("a", "b")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    with cerata.open(path) as store:
        assert sorted(str(fact.object) for fact in store.facts("b")) == list("0123456789")
        store.verify()


@pytest.mark.parametrize("seed", range(8))
def test_a_memory_that_skips_repeats_answers_like_one_that_writes_them(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of random batches, transactions, declarations, merges and retractions."""
    from cerata.projections.facts.repeats import Repeats

    def none_repeated(_session: object, _read: object, drafts: list[Any], *_: int) -> list[None]:
        return [None] * len(drafts)

    def run(*, checks: bool) -> tuple[list[Any], int]:
        with monkeypatch.context() as patched:
            if not checks:
                patched.setattr("cerata.memory.facts.commands.fact_repeats.repeated", none_repeated)
                for name in ("declaration", "entity", "merge"):
                    patched.setattr(Repeats, name, _nothing)
            with cerata.open(":memory:") as store:
                _write_randomly(store, Random(seed))
                views = [
                    store.history.view(),
                    store.history.view().within({"tenant": "default", "user": "ann"}),
                ]
                answers = [_answers(view) for view in views]
                return answers, store.head.seq

    skipped, short = run(checks=True)
    written, long = run(checks=False)
    assert skipped == written
    assert short < long


def _write_randomly(store: Store, dice: Random) -> None:
    scopes: list[dict[str, Any]] = [{}, {"user": "ann"}]
    starts = (None, None, None, "2020-01-01", "2030-01-01")
    merge: cerata.Receipt | None = None
    for _ in range(80):
        act = dice.randrange(12)
        subject, value = dice.choice("ab"), dice.choice("xy")
        scope = dice.choice(scopes)
        facts = [
            cerata.Assertion(
                dice.choice("ab"),
                "is",
                dice.choice("xy"),
                valid_from=dice.choice(starts),
                confidence=dice.choice((1, 1, 0.5)),
            )
            for _ in range(dice.choice((1, 1, 1, 2, 5)))
        ]
        if act < 5:
            store.graph.assert_many(facts, scope=scope)
        elif act < 7:
            with store.transaction():
                store.graph.assert_many([*facts, facts[0]], scope=scope)
                for fact in facts:
                    store.graph.assert_many([fact], scope=scope)
        elif act == 7:
            store.graph.declare("is", functional=dice.random() < 0.6, scope=scope)
        elif act == 8:
            store.graph.name(subject, kind=dice.choice((None, value)), scope=scope)
        elif act == 9:
            store.graph.name("a")
            store.graph.name("b")
            if merge is None:
                merge = store.graph.merge("a", "b")
            else:
                store.graph.unmerge(merge)
                merge = None
        elif known := store.facts(subject):
            store.retract_fact(known[dice.randrange(len(known))])


def _answers(view: Any) -> list[Any]:
    facts = [
        (str(fact), fact.confidence, fact.is_known, fact.valid.end is None, dict(fact.scope))
        for name in "ab"
        for fact in view.graph.versions(name)
    ]
    entities = [(entity.name, entity.kind, entity.mentions) for entity in view.graph.entities()]
    return [facts, entities, len(view.graph.conflicts())]
