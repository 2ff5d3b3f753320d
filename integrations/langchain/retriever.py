# Where the extra langchain is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""`CerataRetriever`: a search of the whole memory, also at a past point, as LangChain's retriever.

Owns LangChain's interface of retrievers. Leaves out the search.
"""

from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from cerata.engine.arguments import expect_positive, expect_string, expect_type
from cerata.engine.unreadable import readable
from cerata.memory.values.options import Page
from cerata.memory.view import View
from cerata.projections.frames.filters import Filter

from ..frames_of_scope import FramesOfScope, hit_place, with_frame
from ..threads import finished
from .pack import ROLE


class CerataRetriever(BaseRetriever):
    """Returns the best frames for a question as documents.

    - The metadata of a document is that of its frame, with "score", "source" (the frame's id,
      title, place and day) and "basis" (the seq of the state that was searched); "also" has the
      sources of further frames of the same text, if there are any.
    - Reads exactly the scope of its store, of all kinds of frames.
    """

    store: Any
    k: int = 4
    at: Any = None
    where: Any = None

    def __init__(
        self,
        store: Any,
        k: int = 4,
        at: Any = None,
        where: Filter | None = None,
        **named: Any,
    ) -> None:
        """Search a store.

        Args:
            store: An open store; a `scoped` store for the frames of a tenant or user.
            k: Most documents; default 4. `invoke` takes it, too, and ``at`` and ``where``.
            at: The point to search, as for `Store.at`; default the newest state of each call.
            where: A `Filter`; default none.
            **named: Tags, metadata and callbacks, as for LangChain's retrievers.

        Raises:
            InvalidInput: ``store`` is no store, ``k`` not positive, or ``where`` no `Filter`.
        """
        FramesOfScope(store, None, ROLE)
        _check(k, where)
        super().__init__(store=store, k=k, at=at, where=where, **named)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **changed: Any
    ) -> list[Document]:
        return self._documents(query, **changed)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **changed: Any
    ) -> list[Document]:
        return await finished(self._documents, query, **changed)

    def _documents(
        self, query: str, *, k: int | None = None, at: Any = None, where: Filter | None = None
    ) -> list[Document]:
        expect_string("query", query)
        k = self.k if k is None else k
        at = self.at if at is None else at
        where = self.where if where is None else where
        _check(k, where)
        frames = FramesOfScope(self.store, None, ROLE)
        view = frames.store.history.view() if at is None else frames.store.at(at)
        hits = frames.search(view, query, k=k, where=where, page=Page(group_by="content"))
        return [_document(frames, view, hit) for hit in hits]


def _check(k: object, where: object) -> None:
    expect_positive("k", k)
    if where is not None:
        expect_type("where", where, Filter, "a Filter", "Pass a cerata.Filter.")


def _document(frames: FramesOfScope, view: View, hit: Any) -> Document:
    frame = hit.frame
    further = (frame for _, frame in readable(hit.grouped, with_frame, hit_place))
    also = [view.files.source(frame) for frame in further if frames.owns(frame)]
    return Document(
        id=str(frame.id),
        page_content=hit.text,
        metadata={
            **frame.metadata,
            "score": hit.score,
            "source": view.files.source(frame),
            "basis": view.basis,
            **({"also": also} if also else {}),
        },
    )
