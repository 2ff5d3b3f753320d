# Where the extra langchain is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""`CerataVectorStore`: LangChain's documents as frames of a memory.

Owns LangChain's interface of vector stores, with its async twins. Leaves out URIs (`byte_store`),
the meaning of filters in dicts (`filters`) and the search.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, cast

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from cerata.engine.arguments import expect_one_of, expect_positive, expect_string, expect_text
from cerata.engine.errors import EmbedderFailed, InvalidInput
from cerata.engine.limits import BATCH_EVENTS_MAX
from cerata.engine.unreadable import readable
from cerata.memory.store import Store
from cerata.memory.values.frames import Frame, Hit
from cerata.memory.values.options import Vectors
from cerata.memory.view import View
from cerata.projections.frames.filters import Filter

from ..filters import check_filter, holds, superset
from ..frames_of_scope import FramesOfScope
from ..threads import finished
from .byte_store import OTHER_PREFIX, Keys, checked_keys
from .pack import ROLE

DOCUMENT: Final = "langchain.document"

MODES: Final = ("vector", "text", "hybrid")

_DELETED_TOGETHER: Final = 1_000
"""Documents that a batch of `delete` without ids closes."""


class _Question(NamedTuple):
    """The words of a question, its vector, or both."""

    text: str
    vector: Any
    mode: str


class _Draft(NamedTuple):
    id: str
    text: str
    metadata: Mapping[str, Any]


class CerataVectorStore(VectorStore):
    """Keeps documents with their vectors in a memory; any thread or task may use it.

    - Reads and writes exactly the scope of its store.
    - The documents of a call are one durable batch. The same id replaces a document.
    - Replaced and deleted documents stay in the log, and in earlier views.
    - A score is the cosine of the question and the document, in other modes the score of
      `Store.search`; more is better.
    """

    def __init__(
        self,
        store: Store,
        embedding: Embeddings,
        *,
        prefix: str = "lc:",
        space: str | None = None,
        mode: str = "vector",
    ) -> None:
        """Keep the documents in a store.

        Args:
            store: An open store; a `scoped` store for the documents of a tenant or user.
            embedding: LangChain's embedder of texts and questions.
            prefix: The start of the documents' URIs, which ends with ":" or "/".
            space: The name of the space of vectors; default names the embedder and its dimension.
            mode: The default of searches: "vector", "text" for words alone, or "hybrid".

        Raises:
            InvalidInput: an argument has another type, or is unknown.
        """
        self._frames = FramesOfScope(store, DOCUMENT, ROLE)
        self._keys = Keys(prefix)
        if not isinstance(embedding, Embeddings):
            raise InvalidInput(
                f"embedding must be LangChain's Embeddings, not {type(embedding).__name__}",
                remedy="Pass an object such as OpenAIEmbeddings().",
            )
        self._embedding = embedding
        self._space = None if space is None else expect_text("space", space)
        self._mode = _checked_mode(mode)

    @property
    def embeddings(self) -> Embeddings:
        return self._embedding

    @property
    def store(self) -> Store:
        """The memory that keeps the documents."""
        return self._frames.of_scope

    # --- writing ---------------------------------------------------------------------------------

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
    ) -> list[str]:
        """Add texts as one batch, and return their ids. Durable on return.

        Args:
            texts: The texts, none of them empty.
            metadatas: JSON values by name for each text; default none.
            ids: An id for each text, which replaces its document; None for a random id.

        Raises:
            InvalidInput: a value cannot be stored, or a list has another length; nothing was
                written.
            EmbedderFailed: the embedder returned another number of vectors.
        """
        drafts = self._drafts(texts, metadatas, ids)
        contents = [draft.text for draft in drafts]
        return self._put(drafts, self._embedding.embed_documents(contents) if drafts else [])

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
    ) -> list[str]:
        drafts = self._drafts(texts, metadatas, ids)
        contents = [draft.text for draft in drafts]
        vectors = await self._embedding.aembed_documents(contents) if drafts else []
        return await finished(self._put, drafts, vectors)

    def delete(self, ids: list[str] | None = None) -> bool:
        """Hide documents; an id without a document is no error. Durable on return.

        Returns True: no document has one of the ids, whether it had one before or not.

        Args:
            ids: The documents, as one batch. None is all documents of the prefix at the call, in
                batches of 1,000.

        Raises:
            InvalidInput: the ids are no list of texts; nothing was written.
        """
        if ids is not None:
            self._delete([self._keys.uri_of(key) for key in checked_keys("ids", ids)])
            return True
        frames = self._frames.below(self.store.history.view(), self._keys.prefix)
        uris = [*dict.fromkeys(str(frame.uri) for frame in frames if self._is_document(frame))]
        for start in range(0, len(uris), _DELETED_TOGETHER):
            self._delete(uris[start : start + _DELETED_TOGETHER])
        return True

    async def adelete(self, ids: list[str] | None = None) -> bool:
        return await finished(self.delete, ids)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        store: Store | None = None,
        ids: list[str] | None = None,
        **named: Any,
    ) -> "CerataVectorStore":
        """Return a vector store to which texts were added.

        Args:
            texts: The texts.
            embedding: As for the class.
            metadatas: As for `add_texts`.
            store: As for the class; needed.
            ids: As for `add_texts`.
            **named: As for the class.
        """
        vector_store = cls(_needed(store), embedding, **named)
        vector_store.add_texts(texts, metadatas, ids=ids)
        return vector_store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        store: Store | None = None,
        ids: list[str] | None = None,
        **named: Any,
    ) -> "CerataVectorStore":
        vector_store = cls(_needed(store), embedding, **named)
        await vector_store.aadd_texts(texts, metadatas, ids=ids)
        return vector_store

    def _drafts(self, texts: object, metadatas: Any, ids: Any) -> list[_Draft]:
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise InvalidInput(
                f"texts must be a list of texts, not {texts!r:.60}", remedy="Pass a list of str."
            )
        contents = list(texts)
        if len(contents) > BATCH_EVENTS_MAX:
            raise InvalidInput(
                f"A call adds at most {BATCH_EVENTS_MAX:,} events, not {len(contents):,}",
                remedy="Add the documents in several calls.",
            )
        for name, values in (("metadatas", metadatas), ("ids", ids)):
            if values is None:
                continue
            if isinstance(values, str) or not isinstance(values, Sequence):
                raise InvalidInput(
                    f"{name} must be a list, not {values!r:.60}",
                    remedy=f"Pass a list with an item for each text, or leave {name} out.",
                )
            if len(values) != len(contents):
                raise InvalidInput(
                    f"{name} must have an item for each of {len(contents):,} texts, "
                    f"not {len(values):,}",
                    remedy=f"Pass {name} of the same length, or None.",
                )
        drafts: list[_Draft] = []
        for place, text in enumerate(contents):
            key = None if ids is None else ids[place]
            metadata = (metadatas[place] if metadatas is not None else None) or {}
            if not expect_text(f"texts[{place}]", text):
                raise InvalidInput(f"texts[{place}] is empty", remedy="Leave empty texts out.")
            if key is None or key == "":
                key = self._frames.drawn_id()
            expect_text(f"ids[{place}]", key)
            drafts.append(_Draft(key, text, metadata))
        return drafts

    def _put(self, drafts: Sequence[_Draft], vectors: Sequence[Any]) -> list[str]:
        if len(vectors) != len(drafts):
            raise EmbedderFailed(
                f"The embedder returned {len(vectors):,} vectors for {len(drafts):,} texts",
                remedy="Use an embedder that returns a vector for each text.",
            )
        last = {draft.id: (draft, vector) for draft, vector in zip(drafts, vectors, strict=True)}

        frames = [
            {
                "content": draft.text,
                "uri": self._keys.uri_of(draft.id),
                "metadata": draft.metadata,
                "vectors": Vectors(
                    dense=np.asarray(vector, np.float32), space=self._space_of(vector)
                ),
            }
            for draft, vector in last.values()
        ]
        self._frames.put(frames, OTHER_PREFIX)
        return [draft.id for draft in drafts]

    def _delete(self, uris: Sequence[str]) -> None:
        def delete(view: View) -> None:
            for uri in uris:
                self._frames.delete(view, uri)

        self._frames.write(delete)

    # --- reading ---------------------------------------------------------------------------------

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents of ids, in this order, without missing ones.

        Args:
            ids: The ids.
        """
        view = self.store.history.view()
        uris = [self._keys.uri_of(key) for key in checked_keys("ids", ids)]
        frames = readable(uris, partial(self._frames.current, view), str)
        return [self._document(frame) for frame in frames if frame is not None]

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        return await finished(self.get_by_ids, ids)

    def similarity_search(self, query: str, k: int = 4, **options: Any) -> list[Document]:
        """Return the ``k`` best documents for a question.

        Args:
            query: The question.
            k: Most documents.
            **options: ``filter``, a dict or `Filter` of the documents; ``mode``, as for the class;
                ``profile``, as for `Store.search`.

        Raises:
            InvalidInput: an argument is unknown or invalid.
        """
        return [document for document, _ in self.similarity_search_with_score(query, k, **options)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, **options: Any
    ) -> list[tuple[Document, float]]:
        return self._scored(self._hits(self._question(query, options), k, **options))

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **options: Any
    ) -> list[Document]:
        hits = self._hits(_Question("", embedding, "vector"), k, **_of_vector(options))
        return [document for document, _ in self._scored(hits)]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **options: Any,
    ) -> list[Document]:
        """Return ``k`` documents that are near a question and differ from each other.

        Args:
            query: The question.
            k: Most documents.
            fetch_k: The best documents to choose from.
            lambda_mult: From 0, as different as possible, to 1, as near as possible.
            **options: As for `similarity_search`.
        """
        question = self._question(query, options, needs_vector=True)
        return self._diverse(question, k, fetch_k, lambda_mult, **options)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **options: Any,
    ) -> list[Document]:
        question = _Question("", embedding, "vector")
        return self._diverse(question, k, fetch_k, lambda_mult, **_of_vector(options))

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **options: Any
    ) -> list[tuple[Document, float]]:
        return self._relevant(self._question(query, options), k, options)

    async def asimilarity_search(self, query: str, k: int = 4, **options: Any) -> list[Document]:
        scored = await self.asimilarity_search_with_score(query, k, **options)
        return [document for document, _ in scored]

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, **options: Any
    ) -> list[tuple[Document, float]]:
        question = await self._aquestion(query, options)
        return self._scored(await finished(self._hits, question, k, **options))

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **options: Any
    ) -> list[Document]:
        return await finished(self.similarity_search_by_vector, embedding, k, **options)

    async def amax_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **options: Any,
    ) -> list[Document]:
        question = await self._aquestion(query, options, needs_vector=True)
        return await finished(self._diverse, question, k, fetch_k, lambda_mult, **options)

    async def amax_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **options: Any,
    ) -> list[Document]:
        search = self.max_marginal_relevance_search_by_vector
        return await finished(search, embedding, k, fetch_k, lambda_mult, **options)

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **options: Any
    ) -> list[tuple[Document, float]]:
        question = await self._aquestion(query, options)
        return await finished(self._relevant, question, k, options)

    # --- the search ------------------------------------------------------------------------------

    def _question(
        self, query: str, options: Mapping[str, Any], *, needs_vector: bool = False
    ) -> _Question:
        mode = self._mode_of(query, options)
        has_vector = needs_vector or mode != "text"
        return _Question(query, self._embedding.embed_query(query) if has_vector else None, mode)

    async def _aquestion(
        self, query: str, options: Mapping[str, Any], *, needs_vector: bool = False
    ) -> _Question:
        mode = self._mode_of(query, options)
        has_vector = needs_vector or mode != "text"
        vector = await self._embedding.aembed_query(query) if has_vector else None
        return _Question(query, vector, mode)

    def _mode_of(self, query: object, options: Mapping[str, Any]) -> str:
        expect_string("query", query)
        _check_options(options)
        return _checked_mode(self._mode if options.get("mode") is None else options["mode"])

    def _hits(self, question: _Question, k: int, **options: Any) -> list[Hit]:
        """Return the best hits; in the mode "vector" the words of a question do not count."""
        _check_options(options)
        k = expect_positive("k", k)
        query: Any = question.text
        vectors = Vectors()
        if question.mode != "text":
            vector = np.asarray(question.vector, np.float32)
            vectors = Vectors(space=self._space_of(question.vector))
            if question.mode == "vector":
                query = vector
            else:
                vectors = replace(vectors, dense=vector)
        filters = options.get("filter")
        where = filters if isinstance(filters, Filter) else None
        exact: Mapping[str, Any] | None = None
        if filters is not None and where is None:
            exact = check_filter(filters)
            where = superset(exact)
        return self._frames.search(
            self.store.history.view(),
            query,
            k=k,
            prefix=self._keys.prefix,
            where=where,
            admits=lambda frame: (
                self._is_document(frame) and (exact is None or holds(frame.metadata, exact))
            ),
            mode=question.mode,
            profile=options.get("profile"),
            vectors=vectors,
        )

    def _diverse(
        self, question: _Question, k: int, fetch_k: int, lambda_mult: float, **options: Any
    ) -> list[Document]:
        k = expect_positive("k", k)
        fetch_k = expect_positive("fetch_k", fetch_k)
        space = self._space_of(question.vector)
        view = self.store.history.view()
        pairs = [
            (hit, vector)
            for hit in self._hits(question, max(k, fetch_k), **options)
            if (vector := view.embeddings.of(hit.id, space)) is not None
        ]
        chosen = maximal_marginal_relevance(
            np.asarray(question.vector, np.float32), [vector for _, vector in pairs], lambda_mult, k
        )
        return [self._document(pairs[place][0].frame) for place in chosen]

    def _relevant(
        self, question: _Question, k: int, options: Mapping[str, Any]
    ) -> list[tuple[Document, float]]:
        if question.mode == "text":
            raise InvalidInput(
                'A search with mode "text" has no relevance from 0 to 1',
                remedy='Pass mode="vector" or mode="hybrid".',
            )
        hits = self._hits(question, k, **options)
        return [(self._document(hit.frame), min(1.0, max(0.0, hit.cosine or 0.0))) for hit in hits]

    def _scored(self, hits: Iterable[Hit]) -> list[tuple[Document, float]]:
        return [(self._document(hit.frame), hit.score) for hit in hits]

    def _is_document(self, frame: Frame) -> bool:
        return self._keys.key_of(frame.uri) is not None

    def _document(self, frame: Frame) -> Document:
        return Document(
            id=self._keys.key_of(frame.uri),
            page_content=frame.text,
            metadata=dict(frame.metadata),
        )

    def _space_of(self, vector: Sequence[float]) -> str:
        """Return the space of a vector: vectors of two embedders or dimensions never meet."""
        if self._space is not None:
            return self._space
        model = getattr(self._embedding, "model", None) or getattr(
            self._embedding, "model_name", None
        )
        return f"langchain:{type(self._embedding).__name__}:{model or ''}:{len(vector)}"


def _checked_mode(mode: Any) -> str:
    expect_one_of("mode", mode, MODES, 'Pass mode="vector", "text" or "hybrid".')
    return cast("str", mode)


def _check_options(options: Mapping[str, Any]) -> None:
    unknown = [name for name in options if name not in ("filter", "mode", "profile")]
    if unknown:
        raise InvalidInput(
            f"There is no option {unknown[0]!r:.60} of a search",
            remedy="Pass filter=, mode= or profile=.",
        )


def _of_vector(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options of a search by a vector, which has no words."""
    if options.get("mode") not in (None, "vector"):
        raise InvalidInput(
            "A search by a vector has no words", remedy='Leave mode out, or pass "vector".'
        )
    return options


def _needed(store: Store | None) -> Store:
    if store is None:
        raise InvalidInput(
            "from_texts has no store", remedy='Pass store=cerata.open("brain.cera").'
        )
    return store
