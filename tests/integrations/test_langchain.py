# Where the extra langchain is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""LangChain's classes beyond its standard tests: options, isolation, hostile input, processes."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("langchain_core.vectorstores", reason="needs the extra langchain")

from langchain_core.embeddings import Embeddings

import cerata
from cerata import Filter
from cerata.integrations.langchain import CerataByteStore, CerataRetriever, CerataVectorStore

pytestmark = pytest.mark.langchain

LETTERS = "abcdefghijklmnopqrstuvwxyz"
HOSTILE = "ab%_/.*\0:"


class LetterCounts(Embeddings):
    """Texts of the same letters are near."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [0.1 + text.count(letter) for letter in LETTERS]


@pytest.fixture
def memory() -> Iterator[cerata.Store]:
    with cerata.open(":memory:") as store:
        yield store
        assert store.verify().ok


@pytest.fixture
def documents(memory: cerata.Store) -> CerataVectorStore:
    return CerataVectorStore(memory, LetterCounts())


def ids(found: Any) -> list[str]:
    return [document.id for document in found]


# --- the vector store -----------------------------------------------------------------------------


def test_documents_are_found_by_filters_of_both_kinds(documents: CerataVectorStore) -> None:
    """A dict has LangChain's operators, a `Filter` all of Cerata's."""
    metadatas = [{"year": 2020 + n, "tag": "odd" if n % 2 else "even"} for n in range(6)]
    documents.add_texts(["tea"] * 6, metadatas, ids=[str(n) for n in range(6)])
    cases: list[tuple[Any, list[str]]] = [
        ({"tag": "odd"}, ["1", "3", "5"]),
        ({"tag": "odd", "year": {"$gt": 2021, "$lte": 2023}}, ["3"]),
        ({"year": {"$ne": 2020}, "tag": "even"}, ["2", "4"]),
        ({"year": {"$gte": 2024.5}}, ["5"]),
        ({"none": None}, ["0", "1", "2", "3", "4", "5"]),
        (Filter(metadata={"year": ("in", [2020, 2025])}), ["0", "5"]),
        (Filter(metadata={"tag": "odd"}) & ~Filter(metadata={"year": 2021}), ["3", "5"]),
    ]
    for filters, expected in cases:
        for mode in ("vector", "text", "hybrid"):
            found = documents.similarity_search("tea", k=10, filter=filters, mode=mode)
            assert sorted(ids(found)) == expected, (filters, mode)


def test_scores_are_cosines_and_relevance_is_from_0_to_1(documents: CerataVectorStore) -> None:
    """More is better; words alone have no relevance."""
    documents.add_texts(["abc", "abx", "xyz"], ids=["same", "near", "far"])
    scored = documents.similarity_search_with_score("abc", k=3)
    assert [document.id for document, _ in scored] == ["same", "near", "far"]
    assert scored[0][1] == pytest.approx(1.0)
    relevant = documents.similarity_search_with_relevance_scores("abc", k=3, score_threshold=0.5)
    assert [document.id for document, _ in relevant] == ["same", "near"]
    hybrid = documents.similarity_search_with_relevance_scores("abc", k=1, mode="hybrid")
    assert hybrid[0][1] == pytest.approx(1.0)
    with pytest.raises(cerata.InvalidInput, match="no relevance"):
        documents.similarity_search_with_relevance_scores("abc", mode="text")
    vector = LetterCounts().embed_query("xyz")
    assert ids(documents.similarity_search_by_vector(vector, k=1)) == ["far"]
    assert ids(asyncio.run(documents.asimilarity_search_by_vector(vector, k=1))) == ["far"]


def test_diverse_documents_leave_repetitions_out(documents: CerataVectorStore) -> None:
    """The second is not the copy of the first."""
    documents.add_texts(["abc", "abcc", "abx"], ids=["a", "copy", "differs"])
    named: dict[str, Any] = {"k": 2, "fetch_k": 3, "lambda_mult": 0.1}
    vector = LetterCounts().embed_query("abc")
    assert ids(documents.max_marginal_relevance_search("abc", **named)) == ["a", "differs"]
    for found in (
        documents.max_marginal_relevance_search("abc", mode="text", **named | {"k": 1}),
        documents.max_marginal_relevance_search_by_vector(vector, **named | {"k": 1}),
        asyncio.run(documents.amax_marginal_relevance_search("abc", **named | {"k": 1})),
        asyncio.run(documents.amax_marginal_relevance_search_by_vector(vector, **named | {"k": 1})),
    ):
        assert ids(found) == ["a"]
    assert documents.max_marginal_relevance_search("abc", filter={"x": 1}) == []


def test_the_words_of_a_vector_search_are_no_operators(documents: CerataVectorStore) -> None:
    """A question with quotes or NOT is a text to embed."""
    documents.add_texts(["tea"], ids=["1"])
    for question in ('"coffee"', "NOT tea", "kind:x", ""):
        assert ids(documents.similarity_search(question)) == ["1"]


def test_a_call_is_one_batch_and_the_last_of_an_id_counts(memory: cerata.Store) -> None:
    """All documents of a call, or none; the old version stays in the past."""
    documents = CerataVectorStore(memory, LetterCounts())
    documents.add_texts(["old", "b"], ids=["a", "b"])
    before = memory.head.seq
    assert documents.add_texts(["x", "new", "c"], ids=["a", "a", "c"]) == ["a", "a", "c"]
    assert len({event.header.last_seq for event in memory.log() if event.seq > before}) == 1
    assert [each.page_content for each in documents.get_by_ids(["c", "a", "c"])] == ["c", "new"]
    frame = memory.at(before).get("lc:a")
    assert frame is not None
    assert frame.text == "old"


def test_all_documents_of_a_prefix_are_deleted_and_no_longer_prefix(memory: cerata.Store) -> None:
    """Not those of the tenant's other users, nor other frames."""
    short, long = (
        CerataVectorStore(memory, LetterCounts(), prefix=prefix) for prefix in ("lc:", "lc:x:")
    )
    user = CerataVectorStore(
        memory.scoped({"tenant": "default", "user": "anna"}), LetterCounts(), prefix="lc:"
    )
    for store in (short, long, user):
        store.add_texts(["tea"] * 3, ids=["a", "x:a", "%"])
    memory.put_frame("a note", uri="lc:note")
    assert short.delete() is True
    assert short.similarity_search("tea") == []
    assert len(long.similarity_search("tea")) == len(user.similarity_search("tea")) == 3
    assert memory.get("lc:note") is not None
    assert asyncio.run(long.adelete(["x:a", "none"])) is True
    assert sorted(ids(long.similarity_search("tea"))) == ["%", "a"]


def test_texts_make_a_vector_store(memory: cerata.Store) -> None:
    """The store is needed, since there is no default file."""
    made = CerataVectorStore.from_texts(["tea"], LetterCounts(), [{"n": 1}], store=memory)
    later = asyncio.run(
        CerataVectorStore.afrom_texts(["tea"], LetterCounts(), store=memory, prefix="b:")
    )
    assert made.similarity_search("tea")[0].metadata == {"n": 1}
    assert later.similarity_search("tea")[0].metadata == {}
    with pytest.raises(cerata.InvalidInput, match="has no store"):
        CerataVectorStore.from_texts(["tea"], LetterCounts())


def test_embedders_of_another_dimension_have_another_space(memory: cerata.Store) -> None:
    """A search returns nothing, and no error, if all vectors are another embedder's."""

    class First(LetterCounts):
        def embed_query(self, text: str) -> list[float]:
            return super().embed_query(text)[:3]

    CerataVectorStore(memory, LetterCounts()).add_texts(["tea"])
    assert CerataVectorStore(memory, First()).similarity_search("tea") == []
    named = CerataVectorStore(memory, LetterCounts(), space="mine")
    named.add_texts(["tea"], ids=["mine"])
    assert ids(named.similarity_search("tea")) == ["mine"]


# --- the retriever --------------------------------------------------------------------------------


def test_the_retriever_reads_the_past(memory: cerata.Store) -> None:
    """The metadata names score, source and basis, beside that of the frame."""
    old = memory.put_frame("The index is Annoy.", metadata={"team": "search"})
    memory.supersede(old, "The index is HNSW.")
    [now] = CerataRetriever(memory).invoke("Which index?")
    assert now.page_content == "The index is HNSW."
    assert now.metadata["team"] == "search"
    assert now.metadata["basis"] == memory.head.seq
    assert now.metadata["source"].startswith(f"#{now.id} · ")
    assert now.metadata["score"] > 0
    past = CerataRetriever(memory, at=old)
    assert [each.page_content for each in past.invoke("Which index?")] == ["The index is Annoy."]
    assert asyncio.run(past.ainvoke("Which index?", at="HEAD"))[0].id == now.id
    where = Filter(metadata={"team": "else"})
    assert CerataRetriever(memory, where=where).invoke("Which index?") == []
    assert past.invoke("Which index?", where=where) == []


def test_the_retriever_returns_a_text_once(memory: cerata.Store) -> None:
    """Three copies of a text filled the four documents that a model reads."""
    best = memory.put_frame("The index is HNSW.", uri="note:1")
    for place in ("note:2", "note:3"):
        memory.put_frame("The index is HNSW.", uri=place)
    memory.put_frame("The index is of another day.", uri="note:4")
    documents = CerataRetriever(memory, k=2).invoke("Which index is HNSW?")
    assert [each.page_content for each in documents] == [
        "The index is HNSW.",
        "The index is of another day.",
    ]
    assert documents[0].id == str(best.id)
    assert [source.split(" · ")[1] for source in documents[0].metadata["also"]] == [
        "note:2",
        "note:3",
    ]
    assert "also" not in documents[1].metadata


# --- the store of bytes ---------------------------------------------------------------------------


def test_bytes_of_any_key_come_back(memory: cerata.Store) -> None:
    """Empty values and keys, NUL and Unicode; a pair that is set twice has its last value."""
    store = CerataByteStore(memory)
    pairs = [("", b""), ("a\0%/", bytes(range(256))), ("é", b"x"), ("é", b"y")]
    store.mset(pairs)
    assert store.mget(["é", "", "a\0%/", "none", ""]) == [b"y", b"", bytes(range(256)), None, b""]
    assert list(store.yield_keys()) == ["", "a\0%/", "é"]
    assert list(store.yield_keys(prefix="a\0")) == ["a\0%/"]
    assert memory.head.seq == 3
    store.mset([])
    store.mdelete(["none"])
    assert memory.head.seq == 3
    CerataByteStore(memory, prefix="kv:%:").mset([("é", b"z")])
    assert list(store.yield_keys(prefix="%")) == []


def test_a_frame_of_another_kind_is_never_replaced(memory: cerata.Store) -> None:
    """Two stores with the same prefix, or a user's note, would hide each other's frames."""
    memory.put_frame("a note", uri="kv:a")
    with pytest.raises(cerata.InvalidInput, match='kind "text" has the URI kv:a') as caught:
        CerataByteStore(memory).mset([("b", b"x"), ("a", b"x")])
    assert caught.value.remedy == "Pass another prefix."
    with pytest.raises(cerata.InvalidInput, match='kind "text" has the URI kv:a'):
        CerataVectorStore(memory, LetterCounts(), prefix="kv:").add_texts(["tea"], ids=["a"])
    assert memory.head.seq == 1


# --- isolation ------------------------------------------------------------------------------------

keys = st.text(st.sampled_from(HOSTILE), max_size=3)
prefixes = st.sampled_from(["kv:", "kv:a:", "kv:%:", "a/", "a//"])
places = st.tuples(st.sampled_from(["t", "t2", "%"]), prefixes, keys)


@settings(max_examples=60, deadline=None)
@given(st.lists(places, min_size=1, max_size=6, unique=True), keys, keys)
def test_no_read_sees_another_scope_prefix_or_key(
    drawn: list[tuple[str, str, str]], start: str, word: str
) -> None:
    """By every read of each class; narrower and wider scopes have no items."""
    with cerata.open(":memory:") as memory:

        def stores(scope: Any, prefix: str) -> tuple[CerataByteStore, CerataVectorStore]:
            scoped = memory.scoped(scope)
            return (
                CerataByteStore(scoped, prefix),
                CerataVectorStore(scoped, LetterCounts(), prefix=f"docs:{prefix}"),
            )

        for tenant, prefix, key in drawn:
            pairs, documents = stores({"tenant": tenant, "user": "u"}, prefix)
            place = repr((tenant, prefix, key))
            pairs.mset([(key, place.encode())])
            documents.add_texts([f"tea {place}"], [{"tenant": tenant}], ids=[key or "empty"])
        for tenant, prefix, key in drawn:
            pairs, documents = stores({"tenant": tenant, "user": "u"}, prefix)
            mine = [each[2] for each in drawn if each[:2] == (tenant, prefix)]
            assert list(pairs.yield_keys()) == sorted(mine)
            starting = sorted(each for each in mine if each.startswith(start))
            assert list(pairs.yield_keys(prefix=start)) == starting
            assert pairs.mget([key]) == [repr((tenant, prefix, key)).encode()]
            assert pairs.mget([start])[0] in (None, repr((tenant, prefix, start)).encode())
            mine = sorted(each or "empty" for each in mine)
            for mode in ("vector", "text", "hybrid"):
                for query in ("tea", f"tea {word}"):
                    assert sorted(ids(documents.similarity_search(query, k=20, mode=mode))) == mine
            assert documents.similarity_search("tea", filter={"tenant": f"{tenant}2"}) == []
            assert len(documents.max_marginal_relevance_search("tea", k=20)) == len(mine)
            whole = len([each for each in drawn if each[0] == tenant])
            retriever = CerataRetriever(memory.scoped({"tenant": tenant, "user": "u"}), k=20)
            assert len(retriever.invoke("tea")) == whole
        tenant, prefix, key = drawn[0]
        for scope in ({"tenant": tenant}, {"tenant": tenant, "user": "v"}, {"tenant": "else"}):
            pairs, documents = stores(scope, prefix)
            assert list(pairs.yield_keys()) == []
            assert pairs.mget([key]) == [None]
            assert documents.get_by_ids([key or "empty"]) == []
            assert documents.similarity_search("tea", filter=Filter(metadata={})) == []
            assert CerataRetriever(memory.scoped(scope)).invoke(f"tea {word}") == []
            pairs.mdelete([key])
            documents.delete()
        assert len(memory) == 2 * len(drawn)


# --- hostile input --------------------------------------------------------------------------------


# Without types, for wrong arguments.
VectorStore: Any = CerataVectorStore
Retriever: Any = CerataRetriever
ByteStore: Any = CerataByteStore


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda docs: docs.add_texts("tea"), "texts must be a list"),
        (lambda docs: docs.add_texts(["a", 3]), "texts\\[1\\]"),
        (lambda docs: docs.add_texts(["a", ""]), "texts\\[1\\] is empty"),
        (lambda docs: docs.add_texts(["a", "\ud800"]), "not valid Unicode"),
        (lambda docs: docs.add_texts(["a", "b"], [{}]), "metadatas must have an item"),
        (lambda docs: docs.add_texts(["a", "b"], ids=["1"]), "ids must have an item"),
        (lambda docs: docs.add_texts(["a", "b"], ids=["1", 2]), "ids\\[1\\]"),
        (lambda docs: docs.add_texts(["a", "b"], [{}, {"x": {1}}]), "JSON cannot hold"),
        (lambda docs: docs.add_texts(["a"] * 10_001), "10,000 events"),
        (lambda docs: docs.delete("a"), "ids must be a list"),
        (lambda docs: docs.get_by_ids([1]), "ids\\[0\\]"),
        (lambda docs: docs.similarity_search("tea", k=0), "k must be"),
        (lambda docs: docs.similarity_search(3), "query must be"),
        (lambda docs: docs.similarity_search("tea", mode="late"), "mode must be one of"),
        (lambda docs: docs.similarity_search("tea", fliter={}), "no option 'fliter'"),
        (lambda docs: docs.similarity_search("tea", profile="none"), "profile"),
        (lambda docs: docs.similarity_search("tea", filter=lambda _: True), "filter must be"),
        (lambda docs: docs.similarity_search("tea", filter={"a b": 1}), "Invalid filter key"),
        (lambda docs: docs.similarity_search("tea", filter={"a": {"$in": [1]}}), "no operator"),
        (lambda docs: docs.similarity_search_by_vector([1.0], mode="text"), "no words"),
        (lambda docs: docs.similarity_search_by_vector([float("nan")] * 26), "finite"),
        (lambda docs: VectorStore(docs.store, None), "embedding must be"),
        (lambda _: VectorStore("brain.cera", LetterCounts()), "store must be"),
        (lambda docs: VectorStore(docs.store, LetterCounts(), prefix="lc"), "must end with"),
        (lambda docs: VectorStore(docs.store, LetterCounts(), mode="x"), "mode must be"),
        (lambda _: Retriever("brain.cera"), "store must be"),
        (lambda docs: Retriever(docs.store, k=0), "k must be"),
        (lambda docs: Retriever(docs.store, where={}), "where must be"),
        (lambda docs: Retriever(docs.store, at=object()).invoke("tea"), "basis"),
        (lambda docs: ByteStore(docs.store).mset([("a", b"x"), ("b", "x")]), "\\[1\\]"),
        (lambda docs: ByteStore(docs.store).mset([("a", b"x"), "b"]), "must be a pair"),
        (lambda docs: ByteStore(docs.store).mset([(1, b"x")]), "must be a string"),
        (lambda docs: ByteStore(docs.store).mset({"a": b"x"}), "list of pairs"),
        (lambda docs: ByteStore(docs.store).mget("ab"), "keys must be a list"),
        (lambda docs: list(ByteStore(docs.store).yield_keys(prefix=1)), "prefix must be"),
        (lambda docs: ByteStore(docs.store, prefix=""), "must end with"),
    ],
)
def test_bad_input_is_refused_and_writes_nothing(
    documents: CerataVectorStore, call: Any, message: str
) -> None:
    """Each error is typed and has a remedy."""
    documents.add_texts(["tea"])
    before = documents.store.head.seq
    with pytest.raises(cerata.InvalidInput, match=message) as caught:
        call(documents)
    assert caught.value.remedy
    assert documents.store.head.seq == before


def test_an_embedder_with_too_few_vectors_fails(memory: cerata.Store) -> None:
    """Nothing is written; texts must not get the vectors of their neighbours."""

    class Short(LetterCounts):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return super().embed_documents(texts)[1:]

    with pytest.raises(cerata.EmbedderFailed, match="1 vectors for 2 texts"):
        CerataVectorStore(memory, Short()).add_texts(["a", "b"])
    assert memory.head.seq == 0


# --- processes ------------------------------------------------------------------------------------

UPSERTS = """
import sys
import cerata
from cerata.integrations.langchain import CerataByteStore
with cerata.open(sys.argv[1]) as memory:
    store = CerataByteStore(memory)
    for number in range(int(sys.argv[2])):
        store.mset([(f"{number // 2}", sys.argv[3].encode()), ("all", sys.argv[3].encode())])
"""


def test_two_processes_that_set_the_same_keys_leave_one_value_each(tmp_path: Path) -> None:
    """Each conflict is tried again with the frames of the newest state."""
    path, count = str(tmp_path / "brain.cera"), 40
    cerata.open(path).close()
    commands = [[sys.executable, "-c", UPSERTS, path, str(count), name] for name in "ab"]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    assert [process.communicate(timeout=120)[1] for process in running] == ["", ""]
    with cerata.open(path) as memory:
        assert len(memory) == count // 2 + 1
        assert len(list(CerataByteStore(memory).yield_keys())) == count // 2 + 1
        assert len(list(memory.frames(where=Filter(include_superseded=True)))) == 4 * count
        assert memory.verify().ok


def test_a_cancelled_write_is_whole(memory: cerata.Store) -> None:
    """The task is cancelled while its batch is written, and the batch is there afterwards."""
    documents = CerataVectorStore(memory, LetterCounts())

    async def cancel() -> None:
        writing = asyncio.create_task(documents.aadd_texts(["tea"] * 300))
        while memory.head.seq == 0 and not writing.done():
            await asyncio.sleep(0)
            writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing

    asyncio.run(cancel())
    assert len(memory) in (0, 300)
