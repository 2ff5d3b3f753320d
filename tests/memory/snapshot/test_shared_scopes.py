"""A store with a shared scope reads shared memory beside its own, and changes only its own."""

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

import cerata
from cerata import agents
from cerata.engine.events import (
    Draft,
    PutEmbedding,
    PutFrame,
    RecallContext,
    Scope,
    ScopeValue,
)
from cerata.memory.values.vectors import vectors
from cerata.projections.columnar.names import Names
from cerata.projections.columnar.scopes import AdmittedCodes, Reach, admits, scope_text
from cerata.projections.columnar.times import to_datetime

from ...kinds import cerata_kinds

TENANT = {"tenant": "acme"}
ANNA = {**TENANT, "user_id": "anna"}
BEN = {**TENANT, "user_id": "ben"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with a rulebook of all users, a note of each of two, and another tenant's note."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        store.put_frame("the rule of the house: no shoes", options=cerata.PutOptions(scope=TENANT))
        store.put_frame("anna likes the red house", options=cerata.PutOptions(scope=ANNA))
        store.put_frame("ben likes the blue house", options=cerata.PutOptions(scope=BEN))
        store.put_frame(
            "the house of another tenant", options=cerata.PutOptions(scope={"tenant": "other"})
        )
    return path


def texts(reads: Any, **options: Any) -> list[str]:
    return [frame.text.split()[0] for frame in reads.frames(**options)]


# --- the rule ------------------------------------------------------------------------------------

VALUES: tuple[ScopeValue, ...] = (1, True, "1", "a")


def _scope(source: Random) -> Scope:
    names = [name for name in ("user", "session") if source.random() < 0.6]
    return tuple((name, source.choice(VALUES)) for name in ("tenant", *names))


def _model(scope: Mapping[str, ScopeValue], reach: Reach) -> bool:
    return all(
        repr(scope[name]) == repr(value) if name in scope else reach.shared and name != "tenant"
        for name, value in reach.pairs
    )


def test_codes_are_those_of_the_scopes_that_the_rule_admits(seed: int) -> None:
    """Masks of columns use codes, and events the rule; the codes of later scopes are added."""
    source = Random(seed)
    names = Names("scopes")
    admitted = AdmittedCodes(names)
    admitting = 0
    for seq in range(1, 400):
        names.code(scope_text(_scope(source)), seq)
        reach = Reach(_scope(source)[source.random() < 0.1 :], shared=source.random() < 0.7)
        scopes = {code: admitted.scope(code) for code in range(1, len(names) + 1)}
        expected = {code for code, scope in scopes.items() if _model(dict(scope), reach)}
        assert {code for code, scope in scopes.items() if admits(scope, reach)} == expected
        assert admitted.codes(reach) == expected
        assert admitted.mask(reach).nonzero()[0].tolist() == sorted(expected)
        admitting += len(expected)
    assert admitting > 100


def test_no_shared_reader_sees_an_erased_event_or_another_tenant() -> None:
    reach = Reach((("tenant", "a"), ("user", "x")), shared=True)
    assert not admits(None, reach)
    assert not admits((), reach)
    assert not admits((("user", "x"),), reach)
    assert not admits((("tenant", "b"), ("user", "x")), reach)
    assert admits((("tenant", "a"), ("other", 1)), reach)


# --- reads ---------------------------------------------------------------------------------------


def test_a_shared_scope_reads_what_lacks_its_names(path: Path) -> None:
    """A rulebook beside the notes of a user could not be read through one handle."""
    with cerata.open(path, scope=ANNA) as store:
        assert texts(store) == ["anna"]
        assert not store.shared
    with cerata.open(path, scope=ANNA, options=cerata.OpenOptions(shared=True)) as store:
        assert store.shared
        assert texts(store) == ["anna", "the"]
        assert {hit.text.split()[0] for hit in store.search("house")} == {"anna", "the"}
        assert "blue" not in store.recall("house").text
        assert store.count() == (2, 0)
        assert store.at(1).shared


def test_a_recorded_recall_has_whether_it_showed_shared_frames(path: Path) -> None:
    """Repeated by the scope of its event alone, the recall lost the frames of the rulebook."""
    with cerata.open(path, scope=ANNA, options=cerata.OpenOptions(shared=True)) as store:
        contexts = [
            store.recall("house", record=True),
            store.recall("red house", record=True),
        ]
    with cerata.open(path, scope=ANNA) as store:
        contexts.append(store.recall("house", record=True))
    with cerata.open(path) as reader:
        assert contexts[0].text != contexts[2].text
        for context, shared in zip(contexts, (True, True, False), strict=True):
            [event] = reader.log(context.recorded or 0, context.recorded)
            body = event.body
            assert isinstance(body, RecallContext)
            assert body.now is not None
            assert body.shared is shared
            view = reader.at(body.basis, now=to_datetime(body.now))
            repeated = view.within(event.scope, shared=body.shared).recall(body.query)
            assert repeated.text == context.text


def test_statistics_of_a_shared_search_are_those_of_the_frames_that_it_reads(
    path: Path, tmp_path: Path
) -> None:
    """Scores would reveal how often hidden frames have a word."""
    with cerata.open(tmp_path / "own.cera") as alone:
        alone.put_frame("the rule of the house: no shoes", options=cerata.PutOptions(scope=TENANT))
        alone.put_frame("anna likes the red house", options=cerata.PutOptions(scope=ANNA))
        with cerata.open(path, scope=ANNA, options=cerata.OpenOptions(shared=True)) as store:
            scores = [hit.score for hit in store.search("red house")]
            assert scores == [hit.score for hit in alone.search("red house")]


def test_a_view_is_narrowed_by_a_mapping_and_never_widened(path: Path) -> None:
    """A mapping raised a TypeError in the first read."""
    with cerata.open(path) as store:
        assert texts(store.history.view().within(ANNA)) == ["anna"]
        assert texts(store.history.view().within(tuple(ANNA.items()))) == ["anna"]
        shared = store.history.view().within(ANNA, shared=True)
        assert texts(shared) == ["anna", "the"]
        assert shared.within(ANNA).shared
        assert texts(shared.within(shared=False)) == ["anna"]
        assert texts(shared.within({"session": 1})) == ["anna", "the"]
        assert texts(shared.within({"session": 1}, shared=False)) == []
        with pytest.raises(cerata.InvalidInput, match="cannot become"):
            shared.within(BEN)
        with pytest.raises(cerata.InvalidInput, match="tenant"):
            store.history.view().within({"user_id": "anna"}, shared=True)
        with pytest.raises(cerata.InvalidInput, match="tenant"):
            store.history.view().within(shared=True)
    with cerata.open(path, scope=TENANT) as store:
        assert texts(store.history.view().within({"user_id": "anna"}, shared=True)) == [
            "anna",
            "the",
        ]
    with cerata.open(path, scope=ANNA) as store:
        with pytest.raises(cerata.InvalidInput, match="would widen"):
            store.history.view().within(shared=True)
        with pytest.raises(cerata.InvalidInput, match="must be True or False"):
            store.history.view().within(shared=cast("Any", 1))


def test_a_store_narrows_the_views_of_another_to_what_both_read(path: Path) -> None:
    with (
        cerata.open(path) as every,
        cerata.open(path, scope=TENANT) as tenant,
        cerata.open(path, scope=ANNA, options=cerata.OpenOptions(shared=True)) as shared,
        cerata.open(path, scope=ANNA) as own,
    ):
        assert texts(shared.at(every.history.view())) == ["anna", "the"]
        assert texts(shared.at(tenant.history.view())) == ["anna", "the"]
        assert texts(shared.at(own.history.view())) == ["anna"]
        assert texts(own.at(shared.history.view())) == ["anna"]
        assert texts(tenant.at(shared.history.view())) == ["anna", "the"]
        with pytest.raises(cerata.InvalidInput, match="different scopes"):
            shared.diff(own.history.view(), "HEAD")


def test_a_shared_scope_needs_a_scope(path: Path) -> None:
    with pytest.raises(cerata.InvalidInput, match="needs a scope"):
        cerata.open(path, options=cerata.OpenOptions(shared=True))
    with pytest.raises(cerata.InvalidInput, match="must be True or False"):
        cerata.open(path, scope=ANNA, options=cerata.OpenOptions(shared=cast("Any", "yes")))


# --- writes --------------------------------------------------------------------------------------


def test_writes_have_the_whole_scope_and_drafts_may_not_lack_a_name(path: Path) -> None:
    with cerata.open(path, scope=ANNA, options=cerata.OpenOptions(shared=True)) as store:
        new = store.put_frame("mine")
        assert dict(store.frame(new).scope) == ANNA
        wider = Draft(PutFrame(text="for all"), tuple(TENANT.items()))
        with pytest.raises(cerata.InvalidInput, match="outside"):
            store.append(wider)
        assert dict(store.frame(store.supersede(new, "mine, too")).scope) == ANNA


Write = Callable[[cerata.Store, Mapping[str, cerata.Receipt]], object]

REFUSED: Mapping[str, Write] = {
    "delete": lambda store, its: store.delete(its["rule"]),
    "supersede by a text": lambda store, its: store.supersede(its["rule"], "no rule"),
    "supersede by a frame": lambda store, its: store.supersede(its["rule"], its["note"]),
    "update": lambda store, its: store.update(its["rule"], title="new"),
    "restore": lambda store, its: store.history.restore(its["gone"]),
    "be superseded": lambda store, its: store.supersede(its["note"], its["rule"]),
    "put a vector": lambda store, its: store.append(*_embedded(its["rule"].id)),
    "put a part": lambda store, its: store.append(
        PutFrame(text="part", parent=its["rule"].id, chunk_index=0)
    ),
    "retract": lambda store, its: store.retract_fact(its["fact"]),
    "correct": lambda store, its: store.correct_fact(its["fact"], object="beige"),
    "merge": lambda store, _: store.graph.merge("house", "Anna"),
    "merge an object": lambda store, _: store.graph.merge("town", "Anna"),
    "merge a declared entity": lambda store, _: store.graph.merge("porch", "Anna"),
    "declare a predicate": lambda store, _: store.graph.declare("has colour", functional=True),
    "unmerge": lambda store, its: store.graph.unmerge(its["merge"]),
    "split": lambda store, its: store.graph.split("house", "Anna's house", [its["fact"]]),
    "unsplit": lambda store, its: store.graph.unsplit(its["split"]),
    "unlink": lambda store, its: store.graph.unlink(its["link"]),
}


def _embedded(frame: int) -> list[Draft]:
    [(embedding, data)] = [each for each in vectors([[1.0, 2.0]], 1, "s") if each is not None]
    return [Draft(PutEmbedding(frame=frame, embedding=embedding), attachments=(data,))]


@pytest.fixture
def made(path: Path) -> dict[str, cerata.Receipt]:
    """What the file has for all users, and a note and a fact of one."""
    with cerata.open(path, scope=TENANT) as store:
        made = {"rule": store.put_frame("a rule for all")}
        made["gone"] = store.put_frame("a rule of earlier days")
        store.delete(made["gone"])
        made["fact"] = store.assert_fact("house", "has colour", "white", evidence=[made["rule"]])
        made["in"] = store.assert_fact("house", "is in", cerata.Entity("town"))
        store.graph.name("porch", kind="place")
        store.assert_fact("home", "is", "a house")
        made["merge"] = store.graph.merge("home", "house")
        made["split"] = store.graph.split("house", "the other house", [made["in"]])
        made["link"] = store.graph.link(made["in"], "supports", made["fact"])
    with cerata.open(path, scope=ANNA) as store:
        made["note"] = store.put_frame("a note")
        made["own"] = store.assert_fact("Anna", "lives in", cerata.Entity("house"))
    return made


@pytest.mark.parametrize("name", REFUSED)
def test_a_shared_thing_is_not_changed_through_a_narrower_scope(
    path: Path, made: Mapping[str, cerata.Receipt], name: str
) -> None:
    """The rule is checked at the call, in a transaction too, and nothing is written."""
    write = REFUSED[name]
    with cerata.open(path, scope=ANNA, options=cerata.OpenOptions(shared=True)) as store:
        head = store.head.seq
        with pytest.raises(cerata.ReadOnly, match="shared") as refused:
            write(store, made)
        assert "wider scope" in str(refused.value.remedy)
        with store.transaction(key="k") as block:
            store.put_frame("kept")
            with pytest.raises(cerata.ReadOnly, match="shared"):
                write(store, made)
        assert block.receipt is not None
        assert store.head.seq == head + 1
        assert store.verify().ok
    with cerata.open(path, scope=TENANT) as store:
        write(store, made)


def test_a_change_names_the_lacking_dimensions(
    path: Path, made: Mapping[str, cerata.Receipt]
) -> None:
    with cerata.open(
        path, scope={**ANNA, "session": 4}, options=cerata.OpenOptions(shared=True)
    ) as store:
        with pytest.raises(cerata.ReadOnly, match="has no user_id and no session, so it"):
            store.delete(made["rule"])
        with pytest.raises(cerata.ReadOnly, match="has no session, so it"):
            store.delete(made["note"])


def test_a_shared_thing_is_read_cited_linked_and_used(
    path: Path, made: Mapping[str, cerata.Receipt]
) -> None:
    with cerata.open(path, scope=ANNA, options=cerata.OpenOptions(shared=True)) as store:
        cited = store.assert_fact("Anna", "follows", "the rule", evidence=[made["rule"]])
        assert [place.text for place in store.graph.evidence(cited)] == ["a rule for all"]
        store.graph.link(cited, "depends_on", made["fact"])
        store.graph.link(made["fact"], "supports", cited)
        agents.record_access(store, made["rule"])
        assert agents.access(store, made["rule"]).used == 1
        store.put_frame("below", options=cerata.PutOptions(parent=made["rule"]))
        store.graph.name("house", kind="building")
        store.graph.merge("Anna", "house")
        again = store.assert_fact("house", "has colour", "white")
        assert again.id != made["fact"].id
        store.retract_fact(again)
        store.history.tag("mine")
    for scope in (BEN, {**TENANT, "user_id": "eve"}):
        with cerata.open(path, scope=scope, options=cerata.OpenOptions(shared=True)) as store:
            assert agents.access(store, made["rule"]).used == 0
            assert store.files.children(made["rule"]) == []
            assert store.graph.entity("house").kind is None
            assert [fact.object for fact in store.facts("house", "has colour")] == ["white"]
            assert store.graph.links(made["fact"]) != []
            assert len(store.graph.links()) == 1
            assert store.history.tags() == {}


def test_a_transaction_reads_shared_memory_beside_its_drafts(
    path: Path, made: Mapping[str, cerata.Receipt]
) -> None:
    with cerata.open(path, scope=ANNA, options=cerata.OpenOptions(shared=True)) as store:
        with store.transaction():
            draft = store.put_frame("anna draft house")
            fact = store.assert_fact("house", "has owner", "anna", evidence=[made["rule"], draft])
            assert "anna draft house" in [frame.text for frame in store.frames()]
            assert len(store.facts("house")) == 3
            assert {hit.id for hit in store.search("rule")} >= {made["rule"].id}
            quoted = ["a rule for all", "anna draft house"]
            assert [place.text for place in store.graph.evidence(fact)] == quoted
            assert texts(store.history.view().within(shared=False)) == ["anna", "a", "anna"]
        assert store.verify().ok


def test_a_key_of_shared_memory_is_not_this_users(path: Path) -> None:
    """A first use for all users would have hidden that nothing was written."""
    with cerata.open(path, scope=TENANT) as store:
        store.put_frame("x", options=cerata.PutOptions(key="k"))
    with cerata.open(path, scope=ANNA, options=cerata.OpenOptions(shared=True)) as store:
        first = store.put_frame("x", options=cerata.PutOptions(key="k"))
        assert first.added
        assert store.put_frame("x", options=cerata.PutOptions(key="k")).id == first.id
        with store.transaction(key="k2") as block:
            store.put_frame("y")
        with store.transaction(key="k2") as again:
            store.put_frame("y")
        assert block.receipt is not None
        assert again.receipt is not None
        assert again.receipt.seqs == block.receipt.seqs


def test_remembering_and_extracting_leave_shared_frames_alone(path: Path) -> None:
    """A document of all users with the same URI was found, and would have been replaced."""
    with cerata.open(path, scope=TENANT) as store:
        store.remember("Ann lives in Rome. Bob lives in Oslo.", uri="file:rules")
    with cerata.open(path, scope=ANNA, options=cerata.OpenOptions(shared=True)) as store:
        assert store.remember("Ann lives in Rome. Bob lives in Oslo.", uri="file:rules").added
        store.remember("Ann lives in Paris.", uri="file:rules")
        assert len(store.files.by_uri("file:rules")) == 2
        rules = store.history.view().files.by_uri("file:rules")[0]
        run = store.graph.extract()
        assert rules not in [each.frame for each in run.frames]
        assert run.found == 1
        assert store.graph.extract(rules).found == 2
        assert {dict(fact.scope)["user_id"] for fact in store.facts()} == {"anna"}
        assert store.graph.extract(rules, dry_run=True).found == 0


def test_each_reference_of_an_event_changes_or_only_names_a_thing() -> None:
    """A new event type must say which of the two it does, or a shared thing could be changed."""
    kinds = cerata_kinds()
    named = {(kind.wire_name, name) for kind in kinds for name in kind.references}
    changing = {(kind.wire_name, name) for kind in kinds for name in kind.changes}
    assert changing <= named
    assert named - changing == {
        ("access", "frames"),
        ("assertFact", "evidence"),
        ("endActivity", "activity"),
        ("extractFacts", "frame"),
        ("importBatch", "after"),
        ("linkFacts", "fact"),
        ("linkFacts", "frame"),
        ("linkFacts", "target"),
        ("putEmbedding", "context"),
        ("putFrame", "parent"),
        ("recall", "activity"),
        ("recall", "facts"),
        ("recall", "frames"),
        ("recall", "omitted"),
        ("recall", "omitted_facts"),
        ("recall", "reranked"),
        ("recordCall", "activity"),
        ("recordCall", "facts"),
        ("recordCall", "results"),
        ("recordCall", "used"),
        ("startActivity", "frame"),
        ("startActivity", "parent"),
        ("startActivity", "resumes"),
    }
