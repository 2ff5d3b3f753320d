# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""`CerataStore`: the long-term items of LangGraph as frames of a memory.

Owns LangGraph's store interface: batches, vectors, and lifetimes. Leaves out URIs (`addresses`) and
the meaning of filters (`filters`). An item is a frame: its value is the metadata and,
as JSON, the text. A frame has one vector in a space, so each further indexed text of an item is a
frame beside it, which opens and closes with the item.
"""

import concurrent.futures
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final, NamedTuple, cast

import numpy as np
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from cerata.engine.errors import Conflict, Corrupt, InvalidInput
from cerata.engine.unreadable import UNREADABLE, leave_out, readable
from cerata.memory.store import Store, open_store
from cerata.memory.values import options
from cerata.memory.values.frames import Frame
from cerata.memory.values.options import Page, PutOptions
from cerata.memory.view import View
from cerata.projections.frames.filters import Filter

from ..filters import check_filter, holds, superset
from ..frames_of_scope import FramesOfScope, hit_place, with_frame
from ..threads import finished
from .addresses import ITEM, PATH_MARK, Namespace, address_of, matches, prefix_of, uri_of
from .pack import ROLE
from .threads import text_of

PATH: Final = "langgraph.path"

_OTHER_KEY: Final = "Delete the frame with the memory, or put the item under another key."

_SWEEP_MINUTES: Final = 5

Address = tuple[Namespace, str]
Vectors = Mapping[str, Sequence[float]]
"""The vector of each text."""


class _Scored(NamedTuple):
    frame: Frame
    score: float | None


class CerataStore(BaseStore):
    """Keeps items in a memory; any thread or task may use it.

    - Reads and writes exactly the scope of its store.
    - The puts of a batch are durable on return, and all there or all absent after a crash.
    - Deleted and replaced items stay in the log, and in earlier views.
    """

    supports_ttl = True

    def __init__(
        self,
        store: Store,
        *,
        index: Mapping[str, Any] | None = None,
        ttl: Mapping[str, Any] | None = None,
        space: str | None = None,
    ) -> None:
        """Keep the items in a store.

        Args:
            store: An open store; a `scoped` store for the items of a tenant or user.
            index: LangGraph's IndexConfig: dims, embed, fields. Default None: no search by meaning.
            ttl: LangGraph's TTLConfig: default_ttl and sweep_interval_minutes in minutes, and
                refresh_on_read.
            space: The name of the space of vectors; default names the embedder and its dimension.

        Raises:
            InvalidInput: ``store`` is no store.
        """
        self._items = FramesOfScope(store, ITEM, ROLE)
        self._paths = FramesOfScope(store, PATH, ROLE)
        self.index_config: Any = dict(index) if index else None
        self.ttl_config: Any = dict(ttl) if ttl else None
        self.embeddings: Any = ensure_embeddings(index["embed"]) if index else None
        self._space = space or self._default_space()
        self._sweeper: threading.Thread | None = None
        self._stopped = threading.Event()

    @classmethod
    @contextmanager
    def from_conn_string(
        cls,
        path: str,
        *,
        index: Mapping[str, Any] | None = None,
        ttl: Mapping[str, Any] | None = None,
    ) -> Iterator["CerataStore"]:
        """Open a file for the block, and return a store of items over it.

        Args:
            path: The file; created if it does not exist.
            index: As for the class.
            ttl: As for the class.
        """
        with open_store(path) as store:
            made = cls(store, index=index, ttl=ttl)
            try:
                yield made
            finally:
                made.stop_ttl_sweeper()

    @property
    def store(self) -> Store:
        """The memory that keeps the items."""
        return self._items.of_scope

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: first all reads, then all puts in one batch.

        Args:
            ops: Get, search, put and list operations; the last put of a key counts.

        Raises:
            InvalidInput: an operation, value or filter is invalid; nothing was written.
        """
        checked = [_checked(op) for op in ops]
        puts = _last_puts(checked)
        texts, questions = self._texts(puts.values()), _questions(checked)
        vectors: dict[str, Sequence[float]] = {}
        if self.embeddings is not None:
            if texts:
                vectors |= zip(texts, self.embeddings.embed_documents(texts), strict=True)
            asked = {text: self.embeddings.embed_query(text) for text in questions}
        else:
            asked = {}
        return self._run(checked, puts, vectors, asked)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        checked = [_checked(op) for op in ops]
        puts = _last_puts(checked)
        texts, questions = self._texts(puts.values()), _questions(checked)
        vectors: dict[str, Sequence[float]] = {}
        asked: dict[str, Sequence[float]] = {}
        if self.embeddings is not None:
            if texts:
                vectors |= zip(texts, await self.embeddings.aembed_documents(texts), strict=True)
            for text in questions:
                asked[text] = await self.embeddings.aembed_query(text)
        return await finished(self._run, checked, puts, vectors, asked)

    # --- lifetimes -------------------------------------------------------------------------------

    def sweep_ttl(self) -> int:
        """Close the expired items, and return their number. Reads leave them out anyway."""
        self._paths.sweep()
        return self._items.sweep()

    def start_ttl_sweeper(
        self, sweep_interval_minutes: float | None = None
    ) -> concurrent.futures.Future[None]:
        """Sweep every few minutes in a thread, until `stop_ttl_sweeper`.

        Args:
            sweep_interval_minutes: Minutes between two sweeps; default that of the TTL config,
                else 5.
        """
        future: concurrent.futures.Future[None] = concurrent.futures.Future()
        if not self.ttl_config:
            future.set_result(None)
            return future
        if self._sweeper is not None and self._sweeper.is_alive():
            future.add_done_callback(self._stop_if_cancelled)
            return future
        self._stopped.clear()
        minutes = sweep_interval_minutes or self.ttl_config.get("sweep_interval_minutes")
        seconds = 60 * float(minutes or _SWEEP_MINUTES)

        def sweep() -> None:
            while not self._stopped.wait(seconds) and not future.cancelled():
                try:
                    self.sweep_ttl()
                except Exception as error:  # noqa: BLE001  # the future has the error
                    future.set_exception(error)
                    return
            if not future.cancelled():
                future.set_result(None)

        self._sweeper = threading.Thread(target=sweep, name="cerata-sweeper", daemon=True)
        self._sweeper.start()
        return future

    def _stop_if_cancelled(self, future: "concurrent.futures.Future[None]") -> None:
        if future.cancelled():
            self._stopped.set()

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the thread of sweeps, and return whether it has ended.

        Args:
            timeout: Most seconds to wait; None for no limit.
        """
        sweeper = self._sweeper
        if sweeper is None:
            return True
        self._stopped.set()
        sweeper.join(timeout)
        if sweeper.is_alive():
            return False
        self._sweeper = None
        return True

    # --- reading ---------------------------------------------------------------------------------

    def _run(
        self,
        ops: Sequence[Op],
        puts: Mapping[Address, PutOp],
        vectors: Vectors,
        asked: Vectors,
    ) -> list[Result]:
        view = self.store.history.view()
        results: list[Result] = []
        read: list[Frame] = []
        for op in ops:
            if isinstance(op, GetOp):
                frame, item = self._got(view, op, is_alone=len(ops) == 1)
                results.append(item)
                read += [frame] if frame is not None and op.refresh_ttl else []
            elif isinstance(op, SearchOp):
                found = self._search(view, op, asked)
                results.append([item for _, item in found])
                read += [frame for frame, _ in found] if op.refresh_ttl else []
            elif isinstance(op, ListNamespacesOp):
                results.append(self._namespaces(view, op))
            else:
                results.append(None)
        self._refresh(view, read, puts)
        if puts:
            self._write(puts, vectors)
        return results

    def _got(self, view: View, op: GetOp, *, is_alone: bool) -> tuple[Frame | None, Item | None]:
        """Return an item; one that cannot be read raises, or is None beside further operations."""
        uri = uri_of(op.namespace, op.key)
        try:
            frame = self._items.current(view, uri)
            return frame, None if frame is None else _item(frame)
        except UNREADABLE as error:
            if is_alone:
                raise
            leave_out(f"The item {uri}", error)
            return None, None

    def _search(self, view: View, op: SearchOp, asked: Vectors) -> list[tuple[Frame, SearchItem]]:
        """Return the page of a search: the items that can be read, each with its frame."""
        items = readable(
            self._scored(view, op, asked),
            lambda each: (each.frame, _search_item(each)),
            lambda each: f"The item {each.frame.uri}",
        )
        return [*islice(items, op.offset, op.offset + op.limit)]

    def _scored(self, view: View, op: SearchOp, asked: Vectors) -> Iterator[_Scored]:
        """Yield the items of a search, best first."""
        filters = op.filter or {}
        where = superset(filters)
        prefix = prefix_of(op.namespace_prefix)
        last = op.offset + op.limit
        vector = asked.get(op.query) if op.query else None
        passing = (
            _Scored(frame, None)
            for frame in self._items.below(view, prefix, where)
            if holds(frame.metadata, filters)
        )
        if vector is None:
            yield from sorted(passing, key=lambda each: _updated(each.frame), reverse=True)
            return
        best = self._nearest(view, vector, prefix, where, filters, last)
        yield from best.values()
        if len(best) < last:
            # Every item with a vector is among the best, so the rest has none.
            yield from (each for each in passing if each.frame.uri not in best)

    def _nearest(
        self,
        view: View,
        vector: Sequence[float],
        prefix: str,
        where: Filter | None,
        filters: Mapping[str, Any],
        count: int,
    ) -> dict[str, _Scored]:
        """Return the items nearest to a vector by URI, best first; at least ``count`` if there are.

        Several vectors of an item are hits of their own, so more hits than items are read.
        """
        every = Filter(kind=[ITEM, PATH], uri_prefix=prefix)
        question = np.asarray(vector, np.float32)
        k = 2 * max(count, 1) + 8
        while True:
            hits = view.search(
                question,
                k=k,
                mode="vector",
                where=every if where is None else every & where,
                vectors=options.Vectors(space=self._space),
                page=Page(group_by="frame"),
            )
            best: dict[str, _Scored] = {}
            for hit, frame in readable(hits, with_frame, hit_place):
                is_own = self._items.owns(frame) or self._paths.owns(frame)
                if not is_own or not holds(frame.metadata, filters):
                    continue
                uri = cast("str", frame.uri).partition(PATH_MARK)[0]
                if uri not in best:
                    item = frame if frame.kind == ITEM else self._items.current(view, uri)
                    if item is not None:
                        best[uri] = _Scored(item, hit.score)
            if len(best) >= count or len(hits) < k:
                return best
            k *= 4

    def _namespaces(self, view: View, op: ListNamespacesOp) -> list[Namespace]:
        found = {
            address_of(cast("str", frame.uri))[0]
            for frame in self._items.below(view, prefix_of(()))
        }
        for condition in op.match_conditions or ():
            is_suffix = condition.match_type == "suffix"
            found = {each for each in found if matches(each, condition.path, is_suffix=is_suffix)}
        if op.max_depth is not None:
            found = {each[: op.max_depth] for each in found}
        return sorted(found)[op.offset : op.offset + op.limit]

    # --- writing ---------------------------------------------------------------------------------

    def _write(self, puts: Mapping[Address, PutOp], vectors: Vectors) -> None:
        """Write the puts as one batch, again if another writer was first."""

        def write(view: View) -> None:
            for (namespace, key), op in puts.items():
                self._put(view, uri_of(namespace, key), op, vectors)

        self._items.write(write)

    def _put(self, view: View, uri: str, op: PutOp, vectors: Vectors) -> None:
        writer = self._items.store
        for frame in self._paths.below(view, uri + PATH_MARK):
            writer.delete(frame)
        if op.value is None:
            self._items.delete(view, uri)
            return
        self._items.check_free(view, uri, _OTHER_KEY)
        old = self._items.current(view, uri)
        now = view.now
        texts = list(dict.fromkeys(self._texts([op])))
        fields = PutOptions(
            created=now if old is None else old.created,
            # The time of the update, which a later version with another lifetime keeps.
            content_dates=[now],
            expires=None if op.ttl is None else now + timedelta(minutes=op.ttl),
        )
        for number, text in enumerate(texts or [None]):
            computed = options.NO_VECTORS
            if text is not None and self.index_config is not None:
                computed = options.Vectors(dense=self._vector(vectors[text]), space=self._space)
            writer.put_frame(
                (text or "") if number else _json_text(op.value),
                kind=PATH if number else ITEM,
                uri=f"{uri}{PATH_MARK}{number}" if number else uri,
                metadata=op.value,
                vectors=computed,
                options=fields if number else replace(fields, replace=True),
            )

    def _refresh(self, view: View, frames: Sequence[Frame], puts: Mapping[Address, PutOp]) -> None:
        """Begin the lifetime of read items again, if more than half of it is over."""
        now = view.now
        for frame in {each.id: each for each in frames}.values():
            if frame.expires is None or address_of(cast("str", frame.uri)) in puts:
                continue
            lifetime = frame.expires - frame.recorded
            if now < frame.recorded + lifetime / 2:
                continue
            uri = cast("str", frame.uri)
            try:
                with self._items.store.transaction():
                    for each in (frame, *self._paths.below(view, uri + PATH_MARK)):
                        self._items.store.update(each, expires=now + lifetime)
            except Conflict:
                # Another writer replaced or refreshed the item, which has a new lifetime.
                continue

    def _texts(self, puts: Iterable[PutOp]) -> list[str]:
        """Return the distinct texts of items to embed."""
        if self.index_config is None:
            return []
        texts: dict[str, None] = {}
        for op in puts:
            if op.value is None or op.index is False:
                continue
            for path in op.index or self.index_config.get("fields") or ["$"]:
                tokens = path if path == "$" else tokenize_path(path)
                texts |= dict.fromkeys(get_text_at_path(op.value, tokens))
        return list(texts)

    def _vector(self, vector: Sequence[float]) -> Any:
        dims = self.index_config.get("dims")
        if dims is not None and len(vector) != dims:
            raise InvalidInput(
                f"The embedder returned {len(vector):,} numbers, and the index has {dims:,} dims",
                remedy="Set dims to the embedder's dimension.",
            )
        return np.asarray(vector, np.float32)

    def _default_space(self) -> str:
        if self.embeddings is None:
            return "langgraph"
        model = getattr(self.embeddings, "model", None) or getattr(
            self.embeddings, "model_name", None
        )
        name = type(self.embeddings).__name__
        return f"langgraph:{name}:{model or ''}:{self.index_config.get('dims')}"


def _checked(op: Op) -> Op:
    """Return an operation, or refuse it before anything is read or written."""
    if not isinstance(op, GetOp | SearchOp | PutOp | ListNamespacesOp):
        raise InvalidInput(
            f"There is no operation {type(op).__name__}",
            remedy="Pass GetOp, SearchOp, PutOp or ListNamespacesOp.",
        )
    validate_op_namespace(op)
    for label in _labels(op):
        text_of(label, "a label")
    if isinstance(op, PutOp):
        _check_put(op)
    elif isinstance(op, SearchOp):
        check_filter(op.filter or {})
        _check_page(op.limit, op.offset)
    elif isinstance(op, ListNamespacesOp):
        _check_page(op.limit, op.offset)
        for condition in op.match_conditions or ():
            if condition.match_type not in ("prefix", "suffix"):
                raise InvalidInput(
                    f"There is no match type {condition.match_type!r:.60}",
                    remedy="Pass prefix or suffix.",
                )
    if isinstance(op, GetOp | PutOp) and not isinstance(op.key, str):
        raise InvalidInput(f"key must be a text, not {op.key!r:.60}", remedy="Pass a str.")
    if isinstance(op, GetOp | PutOp):
        text_of(op.key, "key")
    return op


def _labels(op: Op) -> Sequence[str]:
    if isinstance(op, GetOp | PutOp):
        return tuple(op.namespace)
    return tuple(op.namespace_prefix) if isinstance(op, SearchOp) else ()


def _check_put(op: PutOp) -> None:
    if op.value is not None and not isinstance(op.value, dict):
        raise InvalidInput(
            f"value must be a dict or None, not {op.value!r:.60}",
            remedy="Pass a dict of JSON values.",
        )
    if op.value is not None:
        _json_text(op.value)
    if op.ttl is not None and not (isinstance(op.ttl, int | float) and op.ttl > 0):
        raise InvalidInput(
            f"ttl must be minutes above 0, not {op.ttl!r:.60}", remedy="Pass None for no end."
        )


def _check_page(limit: object, offset: object) -> None:
    for name, value in (("limit", limit), ("offset", offset)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidInput(
                f"{name} must be a whole number of at least 0, not {value!r:.60}",
                remedy=f"Pass {name}=10.",
            )


def _json_text(value: Mapping[str, Any]) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"An item's value is no JSON: {error}",
            remedy="Use strings, finite numbers, bools, None, lists and dicts of them.",
        ) from error


def _last_puts(ops: Sequence[Op]) -> dict[Address, PutOp]:
    return {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}


def _questions(ops: Sequence[Op]) -> list[str]:
    return list(dict.fromkeys(op.query for op in ops if isinstance(op, SearchOp) and op.query))


def _updated(frame: Frame) -> tuple[datetime, int]:
    return (frame.content_dates or (frame.recorded,))[0], frame.id


def _fields(frame: Frame) -> dict[str, Any]:
    namespace, key = address_of(cast("str", frame.uri))
    return {
        "value": _value_of(frame),
        "key": key,
        "namespace": namespace,
        "created_at": frame.created,
        "updated_at": _updated(frame)[0],
    }


def _value_of(frame: Frame) -> dict[str, Any]:
    try:
        value = json.loads(frame.text)
    except (ValueError, RecursionError) as error:
        value = error
    if not isinstance(value, dict):
        raise Corrupt(
            f"The text of the item is no object of JSON: {frame.text!r:.60}",
            where=f"frame {frame.id:,}",
            remedy="Put the item again, or delete it.",
        )
    return cast("dict[str, Any]", value)


def _item(frame: Frame) -> Item:
    return Item(**_fields(frame))


def _search_item(scored: _Scored) -> SearchItem:
    return SearchItem(**_fields(scored.frame), score=scored.score)
