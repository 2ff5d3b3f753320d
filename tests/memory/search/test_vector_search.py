"""The vectors lane: the nearest, exactly, whatever was deleted, filtered, replaced or is past."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from msgspec.structs import replace

import cerata
from cerata import Filter, Hit, Store
from cerata.engine.events import PutEmbedding, PutFrame
from cerata.engine.limits import EMBEDDING_DIMENSION_MAX, PAGE_SIZE
from cerata.engine.log import Log
from cerata.engine.log_file.file import PAGES_SIZE, choose_page, turned
from cerata.engine.segments.caches import CacheSizes
from cerata.memory.values.vectors import vectors
from cerata.projections.columnar.columns import I64, decode_columns, encode_columns
from cerata.projections.vectors import nearest as nearest_module
from cerata.projections.vectors.columns import Matrix
from cerata.projections.vectors.projection import VectorsProjection
from cerata.replay import vector_store as stored_vectors
from cerata.retrieval.embedders.identity import EmbedderIdentity

from ...embedders import Hashing
from ...inside import fold_of, log_of

Vector = npt.NDArray[np.float32]
DIMENSION = 24


def drawn(source: Random, count: int = 1, dimension: int = DIMENSION) -> Vector:
    numbers = [source.choice((-1, -0.5, 0, 0.25, 1)) for _ in range(count * dimension)]
    return np.array(numbers, np.float32).reshape(count, dimension)


def embed(store: Store, frame: int, vector: Vector, space: str = "s") -> int:
    [made] = vectors([vector], 1, space)
    assert made is not None
    embedding, data = made
    return store.append(
        cerata.Draft(PutEmbedding(frame=frame, embedding=embedding), attachments=(data,))
    ).seqs[0]


def cosine(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
    wide, asked = one.astype(float), other.astype(float)
    lengths = float(np.linalg.norm(wide)) * float(np.linalg.norm(asked))
    return 0.0 if not lengths else float(wide @ asked) / lengths


def said(hits: Sequence[Hit]) -> list[tuple[int, float]]:
    return [(hit.id, hit.score) for hit in hits]


class Model:
    """Every vector by frame, and what is current."""

    def __init__(self) -> None:
        self.vectors: dict[int, Vector] = {}
        self.gone: set[int] = set()
        self.tags: dict[int, str] = {}

    def search(self, query: Vector, k: int, tag: str | None = None) -> list[tuple[int, float]]:
        every = [
            (round(cosine(vector, query), 9) + 0.0, frame)
            for frame, vector in self.vectors.items()
            if frame not in self.gone and tag in (None, self.tags[frame])
        ]
        every.sort(key=lambda item: (-item[0], item[1]))
        return [(frame, score) for score, frame in every[:k]]

    def copy(self) -> "Model":
        other = Model()
        other.vectors, other.gone = dict(self.vectors), set(self.gone)
        other.tags = dict(self.tags)
        return other


def histories(store: Store, source: Random, acts: int) -> dict[int, Model]:
    """Put, embed anew, delete and supersede at random; return what there is after each act."""
    model, found = Model(), dict[int, Model]()
    for _ in range(acts):
        alive = [frame for frame in model.vectors if frame not in model.gone]
        act = source.choice(("put", "put", "plain", "embed", "delete", "supersede"))
        if act == "put" or not alive:
            tag, [vector] = source.choice("ab"), drawn(source)
            frame = store.put_frame(
                "text", tags=[tag], vectors=cerata.Vectors(dense=vector, space="s")
            ).id
            model.vectors[frame], model.tags[frame] = vector, tag
        elif act == "plain":
            frame = store.put_frame("no vector", tags=["a"]).id
            if source.random() < 0.5:
                [vector] = drawn(source)
                embed(store, frame, vector)
                model.vectors[frame], model.tags[frame] = vector, "a"
        elif act == "embed":
            frame, [vector] = source.choice(alive), drawn(source)
            embed(store, frame, vector)
            model.vectors[frame] = vector
        else:
            frame = source.choice(alive)
            if act == "delete":
                store.delete(frame)
            else:
                store.supersede(frame, "instead")
            model.gone.add(frame)
        found[store.head.seq] = model.copy()
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_are_those_of_a_plain_model_as_of_every_event(
    seed: int, tmp_path: Path
) -> None:
    """With deletes, new vectors for old frames and filters; and after a checkpoint and a replay."""
    source, path = Random(seed), tmp_path / "memory.cera"
    with cerata.open(path) as store:
        found = histories(store, source, 60)
        queries = drawn(source, 3)
        store.checkpoint()
    for mode in ("rw", "r"):
        with cerata.open(path, mode=mode) as store:
            for seq, model in found.items():
                view = store.at(seq)
                for query in queries:
                    assert said(
                        view.search(query, k=7, page=cerata.Page(group_by="frame"))
                    ) == model.search(query, 7)
                    tagged = view.search(
                        query, k=5, where=Filter(tags=["a"]), page=cerata.Page(group_by="frame")
                    )
                    assert said(tagged) == model.search(query, 5, "a")
            assert store.verify().ok


def test_signs_find_the_candidates_of_many_and_their_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """Independent numbers are the hardest case; and what is found is what was found then."""
    source = np.random.default_rng(3)
    matrix = source.standard_normal((3_000, 64)).astype(np.float32)
    queries = source.standard_normal((20, 64)).astype(np.float32)
    monkeypatch.setattr(nearest_module, "ALL_ROWS_MAX", 100)
    monkeypatch.setattr(nearest_module, "CANDIDATES_MIN", 900)
    with cerata.open(":memory:") as store, cerata.open(":memory:") as early:
        for start in range(0, 3_000, 500):
            part = matrix[start : start + 500]
            store.put_frames(["text"] * 500, vectors=cerata.Vectors(dense=part, space="s"))
            if start < 1_500:
                early.put_frames(["text"] * 500, vectors=cerata.Vectors(dense=part, space="s"))
        kept = few = 0
        for query in queries:
            scores = [(round(cosine(row, query), 9), -place) for place, row in enumerate(matrix, 1)]
            best = {-place for _, place in sorted(scores, reverse=True)[:10]}
            kept += len(
                best & {hit.id for hit in store.search(query, page=cerata.Page(group_by="frame"))}
            )
            with monkeypatch.context() as fewer:
                fewer.setattr(nearest_module, "CANDIDATES_MIN", 60)
                few += len(
                    best
                    & {hit.id for hit in store.search(query, page=cerata.Page(group_by="frame"))}
                )
            assert said(store.at(1_500).search(query, page=cerata.Page(group_by="frame"))) == said(
                early.search(query, page=cerata.Page(group_by="frame"))
            )
        assert few < 0.7 * 200 < 0.9 * 200 <= kept


def test_equal_vectors_come_by_age_however_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of equals must not hang on blocks of a product, nor on which were candidates."""
    monkeypatch.setattr(nearest_module, "ALL_ROWS_MAX", 10)
    monkeypatch.setattr(nearest_module, "CANDIDATES_MIN", 30)
    with cerata.open(":memory:") as store:
        store.put_frames(["same"] * 200, vectors=cerata.Vectors(dense=np.ones((200, 5)), space="s"))
        store.put_frame("other", vectors=cerata.Vectors(dense=-np.ones(5), space="s"))
        assert [
            hit.id for hit in store.search(np.ones(5), k=12, page=cerata.Page(group_by="frame"))
        ] == list(range(1, 13))
        assert {
            hit.score for hit in store.search(np.ones(5), k=12, page=cerata.Page(group_by="frame"))
        } == {1.0}
        assert len(store.search(np.ones(5), k=500, page=cerata.Page(group_by="frame"))) == 201
        assert [
            hit.score for hit in store.search(np.zeros(5), k=2, page=cerata.Page(group_by="frame"))
        ] == [0.0, 0.0]


def test_numbers_too_large_for_float32_sums_are_ordered_all_the_same() -> None:
    large = np.full(40, 3e38, np.float32)
    rows = np.stack([large * sign for sign in (1, -1, 0.5)] * 9)
    with cerata.open(":memory:") as store:
        store.put_frames(["x"] * 27, vectors=cerata.Vectors(dense=rows, space="s"))
        found = store.search(large, k=10, page=cerata.Page(group_by="frame"))
        assert [hit.score for hit in found] == [1.0] * 10
        assert [hit.id for hit in found][:4] == [1, 3, 4, 6]


def test_numbers_too_small_for_float32_products_are_ordered_all_the_same() -> None:
    """Their products are 0 in float32, which would put the nearest behind what is only near."""
    with cerata.open(":memory:") as store:
        nearest = store.put_frame("a", vectors=cerata.Vectors(dense=[1e-25, 0], space="s")).id
        store.put_frame("b", vectors=cerata.Vectors(dense=[1, 1], space="s"))
        store.put_frame("c", vectors=cerata.Vectors(dense=[0, 0], space="s"))
        every = said(store.search(np.array([1e-25, 0]), k=3))
        assert every[0] == (nearest, 1.0)
        for k in (1, 2):
            assert said(store.search(np.array([1e-25, 0]), k=k)) == every[:k]


def test_opposite_in_every_sign_is_farthest_at_the_highest_dimension(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """65,536 differing signs are one more than 16 bits count."""
    monkeypatch.setattr(nearest_module, "ALL_ROWS_MAX", 2)
    monkeypatch.setattr(nearest_module, "CANDIDATES_MIN", 1)
    rows = np.ones((3, EMBEDDING_DIMENSION_MAX), np.float32)
    rows[0], rows[1, :10] = -1, -1
    with cerata.open(":memory:") as store:
        store.put_frames(["x"] * 3, vectors=cerata.Vectors(dense=rows, space="s"))
        assert said(store.search(rows[2], k=1)) == [(3, 1.0)]


def test_inner_products_where_the_space_says_so() -> None:
    space = EmbedderIdentity("e", "1", 2, metric="dot").space
    with cerata.open(":memory:") as store:
        store.put_frames(["a", "b"], vectors=cerata.Vectors(dense=[[1, 0], [3, 3]], space=space))
        assert said(store.search(np.array([2.0, 0.0]))) == [(2, 6.0), (1, 2.0)]


def test_int8_spaces_are_searched_as_they_were_stored() -> None:
    rows = np.array([[127, 0, -3], [0, 127, 5], [90, 90, 0]], np.int8)
    query = np.array([1.0, 0.5, 0.0], np.float32)
    with cerata.open(":memory:") as store:
        store.put_frames(["a", "b", "c"], vectors=cerata.Vectors(dense=rows, space="s"))
        expected = sorted(((round(cosine(row, query), 9), -at) for at, row in enumerate(rows, 1)))
        assert said(store.search(query)) == [(-at, score) for score, at in reversed(expected)]
        vector = store.embeddings.of(2)
        assert vector is not None
        assert vector.dtype.str == "|i1"
        assert vector.tolist() == rows[1].tolist()


def test_a_caller_may_change_a_vector_without_changing_the_memory() -> None:
    """The vectors of a question are views of those in memory; a returned vector is a copy."""
    with cerata.open(":memory:") as store:
        store.put_frames(["a", "b"], vectors=cerata.Vectors(dense=[[1, 0], [0, 1]], space="s"))
        before = said(store.search(np.array([1, 0])))
        vector = store.embeddings.of(1)
        assert vector is not None
        vector[:] = 7
        assert said(store.search(np.array([1, 0]))) == before


# --- which space ---------------------------------------------------------------------------------


def test_spaces_do_not_mix() -> None:
    with cerata.open(":memory:") as store:
        one = store.put_frame("a", vectors=cerata.Vectors(dense=[1, 0], space="one")).id
        two = store.put_frame("b", vectors=cerata.Vectors(dense=[1, 0], space="two")).id
        embed(store, one, np.array([0, 1], np.float32), "two")
        store.put_frame("c", vectors=cerata.Vectors(dense=[1, 0, 0], space="three"))
        with pytest.raises(cerata.InvalidInput, match="2 spaces have vectors of 2 dimensions"):
            store.search(np.array([1, 0]))
        assert said(store.search(np.array([1, 0]), vectors=cerata.Vectors(space="one"))) == [
            (one, 1.0)
        ]
        assert said(store.search(np.array([1, 0]), vectors=cerata.Vectors(space="two"))) == [
            (two, 1.0),
            (one, 0.0),
        ]
        assert len(store.search(np.array([1, 0, 0]))) == 1
        with pytest.raises(cerata.InvalidInput, match="has vectors in 2 spaces"):
            store.embeddings.of(one)
        found = store.embeddings.of(one, "two")
        assert found is not None
        assert found.tolist() == [0, 1]
        assert store.embeddings.of(store.put_frame("d").id) is None


REFUSED: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    (np.zeros((2, 2)), {}, cerata.InvalidInput, "shape"),
    (np.array([]), {}, cerata.InvalidInput, "shape"),
    (np.array([1.0, np.nan]), {}, cerata.InvalidInput, "not finite"),
    (np.array(["a", "b"]), {}, cerata.InvalidInput, "<U1"),
    (np.ones(3), {}, cerata.InvalidInput, "3 dimensions"),
    (
        np.ones(2),
        {"vectors": cerata.Vectors(dense=np.ones(2))},
        cerata.InvalidInput,
        "query must be text",
    ),
    (np.ones(2), {"mode": "text"}, cerata.InvalidInput, "query must be text"),
    (np.ones(2), {"mode": "both"}, cerata.InvalidInput, "'both'"),
    (np.array([1e300, 0]), {}, cerata.InvalidInput, "not finite"),
    (
        "words",
        {"vectors": cerata.Vectors(dense=np.ma.array([1, 2]))},
        cerata.InvalidInput,
        "masked",
    ),
    (
        "words",
        {"vectors": cerata.Vectors(dense=cast("Any", [1, None]))},
        cerata.InvalidInput,
        "object",
    ),
    (
        "words",
        {"vectors": cerata.Vectors(dense=cast("Any", [1, [2]]))},
        cerata.InvalidInput,
        "unequal",
    ),
    ("words", {"mode": "vector"}, cerata.InvalidInput, "no vector"),
    ("words", {"mode": "both"}, cerata.InvalidInput, "'both'"),
    ("words", {"vectors": cerata.Vectors(space="s")}, cerata.InvalidInput, "no vector"),
]


@pytest.mark.parametrize(("query", "more", "error", "what"), REFUSED)
def test_what_is_no_vector_is_refused_with_what_is_there(
    query: Any, more: dict[str, Any], error: type[Exception], what: str
) -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("a", vectors=cerata.Vectors(dense=[1, 0], space="s"))
        with pytest.raises(error, match=what):
            store.search(query, **more)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_a_space_without_vectors_has_no_hits(dimension: int) -> None:
    """A space is made by its first vector: until then a search in it finds nothing."""
    with cerata.open(":memory:") as store:
        empty = store.search(np.ones(dimension), vectors=cerata.Vectors(space="new"))
        store.put_frame("tea", vectors=cerata.Vectors(dense=[1, 0], space="s"))
        before = store.head.seq
        assert (
            list(empty)
            == list(store.search(np.ones(dimension), vectors=cerata.Vectors(space="new")))
            == []
        )
        hits = store.search("tea", vectors=cerata.Vectors(dense=np.ones(dimension), space="new"))
        assert [hit.text for hit in hits] == ["tea"]
        store.put_frame("b", vectors=cerata.Vectors(dense=[1.0] * dimension, space="new"))
        assert [
            hit.text
            for hit in store.search(np.ones(dimension), vectors=cerata.Vectors(space="new"))
        ] == ["b"]
        assert not store.at(before).search(np.ones(dimension), vectors=cerata.Vectors(space="new"))
        with pytest.raises(cerata.InvalidInput, match="dimensions"):
            store.search(np.ones(dimension + 1), vectors=cerata.Vectors(space="new"))


def test_a_memory_without_vectors_says_so() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("a")
        with pytest.raises(cerata.NotFound, match="no vectors"):
            store.search(np.ones(2))


def test_a_hit_of_the_vectors_explains_itself() -> None:
    with cerata.open(":memory:") as store:
        tea = store.put_frame(
            "green tea", tags=["a"], vectors=cerata.Vectors(dense=[1, 0], space="s")
        ).id
        store.put_frame("tea", tags=["b"], vectors=cerata.Vectors(dense=[0.5, 1], space="s"))
        gone = store.put_frame("a cup", tags=["a"], vectors=cerata.Vectors(dense=[1, 0], space="s"))
        store.delete(gone)
        [hit] = store.search("tea", where=Filter(tags=["a"]), vectors=cerata.Vectors(dense=[1, 0]))
        found = store.history.explain(hit)
        words, vectors = (one for one in found.lanes if one.added)
        assert (hit.id, words.lane, vectors.lane) == (tea, "text", "vectors")
        assert (vectors.rank, vectors.score, vectors.found) == (1, 1.0, 1)
        assert found.score == round(words.added + vectors.added, 9)
        assert "1 deleted" in str(found)
        with store.transaction():
            store.put_frame("new", vectors=cerata.Vectors(dense=[1, 0], space="s"))
            [_, _, last] = store.search(np.array([1, 0]))
            assert store.history.explain(last).lanes[0].found == 3


# --- with words ----------------------------------------------------------------------------------


def test_words_and_vectors_are_two_lanes_of_one_search() -> None:
    with cerata.open(":memory:") as store:
        tea = store.put_frame("green tea", vectors=cerata.Vectors(dense=[1, 0], space="s")).id
        cup = store.put_frame(
            "a cup of something", vectors=cerata.Vectors(dense=[0.9, 0.1], space="s")
        ).id
        far = store.put_frame("trains", vectors=cerata.Vectors(dense=[-1, 0], space="s")).id
        both = store.search("tea", vectors=cerata.Vectors(dense=[1, 0]))
        assert [(hit.id, hit.lanes) for hit in both] == [
            (tea, ("text", "vectors")),
            (cup, ("vectors",)),
            (far, ("vectors",)),
        ]
        assert [
            hit.id for hit in store.search("tea", mode="text", vectors=cerata.Vectors(dense=[1, 0]))
        ] == [tea]
        only = store.search("tea", mode="vector", k=2, vectors=cerata.Vectors(dense=[1, 0]))
        assert [(hit.id, hit.lanes) for hit in only] == [(tea, ("vectors",)), (cup, ("vectors",))]
        assert "cup" in store.recall("tea", vectors=cerata.Vectors(dense=[1, 0])).text


def test_what_a_question_demands_holds_for_what_vectors_find() -> None:
    with cerata.open(":memory:") as store:
        a = store.put_frame(
            "red tea", tags=["x"], vectors=cerata.Vectors(dense=[1, 0], space="s")
        ).id
        store.put_frame("blue tea", tags=["y"], vectors=cerata.Vectors(dense=[1, 0], space="s"))
        for asked in (cerata.query("tea NOT blue"), cerata.query("tea tag:x")):
            assert [
                hit.id for hit in store.search(asked, vectors=cerata.Vectors(dense=[1, 0]))
            ] == [a]
            assert [
                hit.id
                for hit in store.search(asked, mode="vector", vectors=cerata.Vectors(dense=[1, 0]))
            ] == [a]


@pytest.mark.parametrize("question", ['a 5" pot', 'a pot ""', '"no" such "pot of Ann"'])
def test_quotes_demand_nothing(question: str) -> None:
    with cerata.open(":memory:") as store:
        tea = store.put_frame("green tea", vectors=cerata.Vectors(dense=[1, 0], space="s")).id
        pot = store.put_frame("a pot of Ann's", vectors=cerata.Vectors(dense=[-1, 0], space="s")).id
        store.assert_fact("pot", "holds", "tea", evidence=[tea])
        found = {
            hit.id: hit.lanes
            for hit in store.search(question, vectors=cerata.Vectors(dense=[1, 0]))
        }
        assert found == {tea: ("facts", "vectors"), pot: ("text", "vectors")}


# --- transactions, scopes, damage ----------------------------------------------------------------


def test_what_a_transaction_gathered_is_searched_too() -> None:
    with cerata.open(":memory:") as store:
        old = store.put_frame("old", vectors=cerata.Vectors(dense=[1, 0], space="s")).id
        moved = store.put_frame("moved", vectors=cerata.Vectors(dense=[0.9, 0.1], space="s")).id
        gone = store.put_frame("gone", vectors=cerata.Vectors(dense=[1, 0], space="s")).id
        with store.transaction() as transaction:
            new = store.put_frame("new", vectors=cerata.Vectors(dense=[1, 0], space="s")).id
            embed(store, moved, np.array([-1, 0], np.float32))
            store.delete(gone)
            inside = said(store.search(np.array([1, 0])))
            assert inside == [(old, 1.0), (new, 1.0), (moved, -1.0)]
            vector = store.embeddings.of(moved)
            assert vector is not None
            assert vector.tolist() == [-1, 0]
        ids = {new: transaction.receipt.ids[0]}
        assert said(store.search(np.array([1, 0]))) == [
            (ids.get(frame, frame), score) for frame, score in inside
        ]


def test_a_scope_hides_vectors_as_it_hides_frames(tmp_path: Path) -> None:
    path = tmp_path / "memory.cera"
    for tenant in ("alice", "bob"):
        with cerata.open(path, scope={"tenant": tenant}) as store:
            store.put_frame(tenant, vectors=cerata.Vectors(dense=[1, 0], space="s"))
    with cerata.open(path, scope={"tenant": "bob"}) as store:
        assert [hit.text for hit in store.search(np.array([1, 0]))] == ["bob"]


def test_a_changed_vector_is_noticed_and_never_ranked(tmp_path: Path) -> None:
    path, rows = tmp_path / "memory.cera", np.random.default_rng(1).random((300, 200), np.float32)
    with cerata.open(path, options=cerata.OpenOptions(ring_bytes=1 << 16)) as store:
        store.put_frames(
            [f"text {row}" for row in range(300)], vectors=cerata.Vectors(dense=rows, space="s")
        )
        store.checkpoint()
    data, changed = path.read_bytes(), np.float32(-1).tobytes()
    at = data.index(rows[7].tobytes())
    path.write_bytes(data[:at] + changed + data[at + 4 :])
    with cerata.open(path, mode="r") as store:
        # The second search names it, too.
        for _ in range(2):
            with pytest.warns(cerata.UnreadableItem, match="The vector of event 8 cannot be read"):
                found = said(store.search(rows[0], k=300))
            assert sorted(each[0] for each in found) == [*range(1, 8), *range(9, 301)]
        assert len(store.search("text", k=300)) == 300
        assert not store.verify().ok


def test_a_changed_vector_is_in_the_way_of_nothing_before_it(tmp_path: Path) -> None:
    """Nor is it of another frame's, which is read alone."""
    path, rows = tmp_path / "memory.cera", np.random.default_rng(1).random((300, 200), np.float32)
    with cerata.open(path, options=cerata.OpenOptions(ring_bytes=1 << 16)) as store:
        for start in range(0, 300, 50):
            part = rows[start : start + 50]
            store.put_frames(["text"] * 50, vectors=cerata.Vectors(dense=part, space="s"))
        then = said(store.at(200).search(rows[0]))
        store.checkpoint()
    whole, changed = rows[250].tobytes(), np.float32(-1).tobytes() + rows[250].tobytes()[4:]
    path.write_bytes(path.read_bytes().replace(whole, changed))
    for salvage in (False, True):
        with cerata.open(path, mode="r", options=cerata.OpenOptions(salvage=salvage)) as store:
            assert said(store.at(200).search(rows[0])) == then
            found = store.embeddings.of(300)
            assert found is not None
            assert found.tolist() == rows[299].tolist()
            with pytest.raises(cerata.Corrupt, match="event 251 is damaged"):
                store.embeddings.of(251)
            with pytest.warns(cerata.UnreadableItem, match="The vector of event 251 cannot be"):
                hits = store.search(rows[0], k=300, page=cerata.Page(group_by="frame"))
            assert {*range(1, 301)} - {hit.id for hit in hits} == {251}


def test_a_damaged_vector_of_another_tenant_is_in_nobodys_way(tmp_path: Path) -> None:
    """The second question read all of the space, and failed by what it did not compare."""
    path, rows = tmp_path / "memory.cera", np.random.default_rng(1).random((40, 8), np.float32)
    for place, tenant in enumerate("ab"):
        with cerata.open(path, scope={"tenant": tenant}) as store:
            part = rows[20 * place : 20 * place + 20]
            store.put_frames(["text"] * 20, vectors=cerata.Vectors(dense=part, space="s"))
            store.checkpoint()
    whole, changed = rows[7].tobytes(), np.float32(-1).tobytes() + rows[7].tobytes()[4:]
    path.write_bytes(path.read_bytes().replace(whole, changed))
    with cerata.open(path, mode="r", scope={"tenant": "b"}) as store:
        assert len(store.at(30).search(rows[20], k=40, page=cerata.Page(group_by="frame"))) == 10
        for _ in range(2):
            assert len(store.search(rows[20], k=40, page=cerata.Page(group_by="frame"))) == 20
    with (
        cerata.open(path, mode="r", scope={"tenant": "a"}) as store,
        pytest.warns(cerata.UnreadableItem, match="The vector of event 8 cannot be read"),
    ):
        assert len(store.search(rows[20], k=40, page=cerata.Page(group_by="frame"))) == 19


def test_vectors_are_found_where_a_moved_file_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compactor puts another file in its place, where they stand elsewhere."""
    path, new = tmp_path / "memory.cera", tmp_path / "new.cera"
    rows = np.random.default_rng(1).standard_normal((40, 8)).astype(np.float32)
    for name in ("ALL_ROWS_MAX", "CANDIDATES_MIN", "CANDIDATES_MAX"):
        monkeypatch.setattr(nearest_module, name, 4)
    with cerata.open(path) as store:
        for place in range(40):
            store.put_frame("text", vectors=cerata.Vectors(dense=rows[place], space="s"))
            if place % 10 == 9:
                store.checkpoint()
        store.search(rows[3], k=2)
        store.backup(new)
        with path.open("r+b") as file:
            page, _ = choose_page(file.read(PAGES_SIZE), str(path))
            moved = replace(turned(page), moved=True)
            file.seek(moved.number * PAGE_SIZE)
            file.write(moved.encode())
        new.rename(path)
        found = said(store.search(rows[20], k=2))
        with cerata.open(path) as other:
            assert found == said(other.search(rows[20], k=2))


def test_of_a_space_too_large_to_keep_each_vector_is_read_where_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question looked through the segments of all that it compared: ten times the time."""
    path, source = tmp_path / "memory.cera", np.random.default_rng(2)
    rows = source.standard_normal((330, 200)).astype(np.float32)
    asked, looked = rows[7], list[int]()
    embeddings = Log.embeddings

    def look(log: Log, key: tuple[str, str, int], seqs: I64) -> npt.NDArray[np.uint8]:
        looked.append(len(seqs))
        return embeddings(log, key, seqs)

    with cerata.open(path, options=cerata.OpenOptions(ring_bytes=1 << 16)) as store:
        for start in range(0, 300, 50):
            part = rows[start : start + 50]
            store.put_frames(["text"] * 50, vectors=cerata.Vectors(dense=part, space="s"))
        for row in rows[300:320]:
            store.put_frame("text", vectors=cerata.Vectors(dense=row, space="s"))
        store.checkpoint()
        # These stay in the ring.
        store.put_frames(["text"] * 10, vectors=cerata.Vectors(dense=rows[320:], space="s"))
        kept = [
            said(view.search(asked, k=400, page=cerata.Page(group_by="frame")))
            for view in (store, store.at(310))
        ]
        fold_of(store)._stored.clear()
        monkeypatch.setattr(CacheSizes, "vectors", 1)
        monkeypatch.setattr(Log, "embeddings", look)
        for _ in range(2):
            assert [
                said(view.search(asked, k=400, page=cerata.Page(group_by="frame")))
                for view in (store, store.at(310))
            ] == kept
        assert looked == [10, 10]
        store.checkpoint()
        assert said(store.search(asked, k=400, page=cerata.Page(group_by="frame"))) == kept[0]
        assert said(store.search(asked, k=400, page=cerata.Page(group_by="frame"))) == kept[0]
        # What is sealed meanwhile is found there from the next question on.
        assert looked[2:] == []
    whole, changed = rows[250].tobytes(), np.float32(-1).tobytes() + rows[250].tobytes()[4:]
    path.write_bytes(path.read_bytes().replace(whole, changed))
    with (
        cerata.open(path, mode="r") as store,
        pytest.raises(cerata.Corrupt, match="event 251 is damaged"),
    ):
        store.search(asked, page=cerata.Page(group_by="frame"))


def test_long_vectors_are_read_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their lengths are summed in float64: thousands of rows at once would take gigabytes."""
    measured: list[int] = []

    def measure(vectors: Matrix) -> npt.NDArray[np.float64]:
        measured.append(vectors.size)
        return nearest_module.lengths_of(vectors)

    monkeypatch.setattr(stored_vectors, "lengths_of", measure)
    monkeypatch.setattr(stored_vectors, "STEP_NUMBERS", 2_000)
    with cerata.open(":memory:") as store:
        store.put_frames(["x"] * 5, vectors=cerata.Vectors(dense=np.eye(5, 1_000), space="s"))
        store.put_frame("x", vectors=cerata.Vectors(dense=np.ones(3_000), space="t"))
        assert len(store.search(np.ones(1_000), page=cerata.Page(group_by="frame"))) == 5
        assert len(store.search(np.ones(3_000), page=cerata.Page(group_by="frame"))) == 1
    assert measured == [2_000, 2_000, 1_000, 3_000]


def test_what_is_kept_of_vectors_is_of_the_rows_that_a_view_reads() -> None:
    """After a rebuild rows may be others; a view from before it keeps to those that it had."""
    with cerata.open(":memory:") as store:
        one, two = store.put_frame("one", tags=["a"]).id, store.put_frame("two").id
        embed(store, one, np.array([1, 0], np.float32))
        embed(store, two, np.array([0, 1], np.float32))
        columns = decode_columns(fold_of(store).using("vectors", None, lambda fold: fold.chunk(0)))
        read = {name: columns._array(name) for name in columns.names()}
        read["vectors.frame"] = read["vectors.frame"][::-1]
        wrong = VectorsProjection()
        wrong.load(encode_columns(read))
        fold_of(store).replace(wrong)
        before, where = store.at("HEAD"), Filter(tags=["a"])
        for _ in range(2):
            assert said(before.search(np.array([1, 0]), where=where)) == [(one, 0.0)]
            store.upkeep.rebuild("vectors")
            assert said(store.search(np.array([1, 0]), where=where)) == [(one, 1.0)]


def test_erased_or_unknown_frames_have_no_row() -> None:
    """The fold never fails: a vector for what is no frame is passed over by every search."""
    with cerata.open(":memory:") as store:
        store.put_frame("a", vectors=cerata.Vectors(dense=[1, 0], space="s"))
        with pytest.raises(cerata.NotFound):
            embed(store, 99, np.array([1, 0], np.float32))
        assert isinstance(log_of(store).event(1).body, PutFrame)
        assert len(store.search(np.array([1, 0]))) == 1


# --- with an embedder ----------------------------------------------------------------------------


def test_a_store_with_an_embedder_makes_the_questions_vectors() -> None:
    embedder = Hashing()
    with cerata.open(":memory:", embedder=embedder) as store:
        assert store.search("tea") == []
        assert store.search("tea", mode="vector") == []
        first = store.put_frame("green tea").id
        then = store.head
        store.put_frame("a train")
        assert [hit.lanes for hit in store.search("tea", k=1)] == [("text", "vectors")]
        assert [hit.lanes for hit in store.search("tea", k=1, mode="text")] == [("text",)]
        [best, _] = store.search("green tea", mode="vector")
        assert (best.id, best.score) == (first, 1.0)
        assert [hit.lanes for hit in store.at(then).search("tea")] == [("text", "vectors")]
        assert store.recall("tea").lanes == ("text", "facts", "vectors")
        asked = len(embedder.asked)
        store.search(cerata.query("tea"))
        assert len(embedder.asked) == asked
        with pytest.raises(cerata.InvalidInput, match="no vector"):
            store.search("tea", vectors=cerata.Vectors(space="another"))
