"""The store: what an agent holds. Writes, and every read of a view at the newest event.

Owns `Store`: how calls become batches, what a transaction gathers, and when projections are
saved. Leaves out reading (`view`), cutting documents (`ingest`) and everything about bytes.
"""

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from cerata.engine.codec import tenant_of
from cerata.engine.environment import Environment
from cerata.engine.errors import (
    Conflict,
    Corrupt,
    InvalidInput,
    Locked,
    ReadOnly,
    StorageFailed,
    Unsupported,
)
from cerata.engine.events import (
    DeleteFrame,
    Draft,
    Event,
    EventBody,
    JsonValue,
    PutFrame,
    PutTag,
    Scope,
    ScopeValue,
    SupersedeFrame,
)
from cerata.engine.head import Appended, Head
from cerata.engine.log import Log, SyncPolicy, Validate
from cerata.engine.recovery import RecoveryReport
from cerata.projections.filters import Filter
from cerata.projections.query import Query
from cerata.projections.registry import Registry
from cerata.projections.row_fold import OwnProjection
from cerata.projections.rows import RowProjection
from cerata.projections.tags import Tags
from cerata.projections.timeline import Position, TimelineOrder
from cerata.projections.times import to_microseconds
from cerata.replay.basis import resolve_basis
from cerata.replay.fold import Fold
from cerata.replay.fold import replay as replayed
from cerata.retrieval.context import ENTRY_TOKENS_MAX

from .drafting import (
    FrameFields,
    arguments_hash,
    check_number,
    content_hash,
    frame_draft,
    frame_fields,
    full_scope,
    listed,
    within_scope,
)
from .layer import DOCUMENT_KIND
from .references import References, is_within
from .tagging import Tagging
from .transaction import Transaction
from .values import Context, Frame, FrameId, Hit, Receipt, TimelinePage, frame_id
from .view import OwnType, View

if TYPE_CHECKING:
    from cerata.replay.verify import Verification

    from .extract.document import Document

Basis = int | str | datetime | Receipt | Head | Context | View
"""A point of the log, however a caller names it; see `Store.at`."""


class Store:
    """A memory in one file. Any thread may call it; several processes may have the file open.

    `cerata.open` makes one. Reads see everything that was acknowledged, by any process, before
    they began; `at` gives a view that stands still.
    """

    def __init__(self, log: Log, scope: Scope | None, registry: Registry | None = None) -> None:
        self._log = log
        self._scope = scope
        self._fold = Fold(log, registry)
        self._transaction: ContextVar[Transaction | None] = ContextVar("transaction", default=None)

    # --- the handle ------------------------------------------------------------------------------

    @property
    def scope(self) -> Scope | None:
        """The scope given at open, which every write has and every read is narrowed to."""
        return self._scope

    @property
    def path(self) -> str:
        """The file's path, or ``:memory:``."""
        return self._log.path

    @property
    def report(self) -> RecoveryReport:
        """What opening the file found and did."""
        return self._log.report

    @property
    def head(self) -> Head:
        """The newest point of the log; its chain hash and Merkle root can be kept elsewhere."""
        return self._log.refresh()

    def refresh(self) -> Head:
        """Take in what other processes wrote, as every read does, and return the head."""
        return self._log.refresh()

    def commit(self) -> None:
        """Make everything durable that was written under a sync policy of so many bytes."""
        self._log.commit()

    def checkpoint(self) -> None:
        """Save the state of every projection, so that the next opener need not replay.

        Raises:
            ReadOnly: the store was opened for reading.
        """
        if not self._log.is_writable:
            raise ReadOnly(
                "The store was opened for reading",
                where=self.path,
                remedy="Open it with mode='rw'.",
            )
        self._fold.save()

    def salvaged(self) -> Iterator[Event]:
        """Yield every event that is still readable, also past damage; lost seqs are left out."""
        return self._log.salvaged()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the memory as it stands now into a new file, while others may write.

        The copy has the same events, chain and root; its indexes are rebuilt on first use. It
        appears whole or not at all. Durable on return.

        Raises:
            Conflict: something is at ``path``. Corrupt: an event cannot be read.
        """
        self._log.backup(os.fspath(path))

    def close(self) -> None:
        """Make everything durable and release the file; calling it twice is harmless.

        State is saved for the next opener if that is worth it and the disk takes it.
        """
        try:
            # A checkpoint saves time and nothing else. On a full disk, over a damaged log, or
            # beside a writer that never ends, an error here would follow writes that were
            # acknowledged and are there.
            with suppress(StorageFailed, Corrupt, Locked):
                if self._log.is_writable and self._log.is_open and self._fold.is_worth_saving():
                    self._fold.save()
        finally:
            self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- reading ---------------------------------------------------------------------------------

    def at(self, basis: Basis) -> View:
        """Return the memory as it was at a basis; it stands still while others write.

        A number is a seq: exactly the first n events, also inside a batch. A receipt or head is
        the end of its batch; a context, its own basis; a view
        too, within its scope; a time (an aware datetime, or an
        ISO string, of which a date is 00:00 UTC), the last batch recorded by then. ``"HEAD"`` is
        the newest event and ``"HEAD~2"`` two batches before; a tag is what `tag` gave it.

        Raises:
            NotFound: the log does not reach that far. InvalidInput: it cannot be understood, or
            is of another memory.
        """
        head = self._log.refresh()
        now: int | None = None
        if isinstance(basis, View):
            self._check_own(basis.log_id)
            return View(self._log, self._fold, basis.basis, self._narrower(basis), basis.now_us)
        if isinstance(basis, Receipt):
            if basis.head is None:
                raise InvalidInput("The receipt is of a transaction that has not ended")
            basis = basis.head
        if isinstance(basis, Context):
            self._check_own(basis.log_id)
            now = to_microseconds(basis.now)
            basis = basis.basis
        elif isinstance(basis, Head):
            self._check_own(basis.log_id)
            basis = basis.seq
        elif basis == "HEAD":
            now = self._log.environment.clock.now_us()
            basis = head.seq
        seq = resolve_basis(self._log, basis, self._tagged)
        return View(self._log, self._fold, seq, self._scope, now)

    def _tagged(self, name: str) -> int | None:
        return self._newest().tags().get(name)

    def tags(self) -> dict[str, int]:
        """Return what each tag stands for; see `View.tags`."""
        return self._newest().tags()

    def _narrower(self, view: View) -> Scope | None:
        """Return the scope of a view where it lies within the store's, else the store's."""
        own, given = self._scope, view.scope
        if given is None or (own is not None and is_within(own, given)):
            return own
        if own is None or is_within(given, own):
            return given
        raise InvalidInput(
            f"The view is of the scope {dict(given)!r}, and the store of {dict(own)!r}",
            remedy="Give a view of this store, or a seq.",
        )

    def _check_own(self, log_id: bytes) -> None:
        if log_id != self._log.log_id:
            raise InvalidInput(
                "The basis is a point of another memory",
                where=self.path,
                remedy="Give a seq, or what this store has returned.",
            )

    def view(self) -> View:
        """Return the memory as a read sees it now: the newest, as ``at("HEAD")`` gives it.

        Inside a transaction it is the memory as it stood at the block's first read, and over it
        what the block has gathered. Cost: that of folding the drafts that came since the last.
        """
        transaction = self._transaction.get()
        if transaction is None:
            return self._newest()
        first = transaction.first
        if first is None:
            return transaction.view(self._newest)
        return transaction.view(lambda: self.at(first.appended.first_seq - 1))

    def _newest(self) -> View:
        now = self._log.environment.clock.now_us()
        return View(self._log, self._fold, self._log.refresh().seq, self._scope, now)

    def search(
        self,
        query: str | Query,
        *,
        k: int = 10,
        where: Filter | None = None,
        include_superseded: bool = False,
        include_deleted: bool = False,
    ) -> list[Hit]:
        """Return the best ``k`` frames for a question; see `View.search`."""
        return self.view().search(
            query,
            k=k,
            where=where,
            include_superseded=include_superseded,
            include_deleted=include_deleted,
        )

    def recall(
        self,
        query: str | Query,
        *,
        max_tokens: int = 1500,
        entry_tokens: int = ENTRY_TOKENS_MAX,
        where: Filter | None = None,
    ) -> Context:
        """Return what to tell a model about a question within a budget; see `View.recall`."""
        view = self.view()
        return view.recall(query, max_tokens=max_tokens, entry_tokens=entry_tokens, where=where)

    def frame(self, frame: FrameId) -> Frame:
        """Return a frame, current or not; see `View.frame`."""
        return self.view().frame(frame)

    def content(self, frame: FrameId) -> bytes:
        """Return a frame's content as bytes; see `View.content`."""
        return self.view().content(frame)

    def frames(
        self,
        where: Filter | None = None,
        *,
        include_superseded: bool = False,
        include_deleted: bool = False,
        include_chunks: bool = False,
    ) -> Iterator[Frame]:
        """Yield frames, newest first; see `View.frames`."""
        return self.view().frames(
            where,
            include_superseded=include_superseded,
            include_deleted=include_deleted,
            include_chunks=include_chunks,
        )

    def timeline(
        self,
        *,
        by: TimelineOrder = "content",
        start: datetime | str | None = None,
        end: datetime | str | None = None,
        where: Filter | None = None,
        after: Position | None = None,
        limit: int = 50,
        newest_first: bool = True,
        include_superseded: bool = False,
        include_deleted: bool = False,
        include_chunks: bool = False,
    ) -> TimelinePage:
        """Return a page of frames in order of time; see `View.timeline`."""
        return self.view().timeline(
            by=by,
            start=start,
            end=end,
            where=where,
            after=after,
            limit=limit,
            newest_first=newest_first,
            include_superseded=include_superseded,
            include_deleted=include_deleted,
            include_chunks=include_chunks,
        )

    @overload
    def projection(self, which: str) -> OwnProjection: ...

    @overload
    def projection(self, which: type[OwnType]) -> OwnType: ...

    def projection(self, which: str | type[RowProjection[Any, Any]]) -> RowProjection[Any, Any]:
        """Return one of your own projections, by name or class; see `View.projection`."""
        return self.view().projection(which)

    def log(self, first: int = 1, last: int | None = None) -> Iterator[Event]:
        """Yield events in seq order; see `View.log`."""
        return self.view().log(first, last)

    def __len__(self) -> int:
        """Return how many frames are current."""
        return len(self.view())

    def info(self, at: Basis | None = None) -> dict[str, JsonValue]:
        """Return what is in the file and where it stands, as plain values; folds frames.

        Head and frames are as of ``at``; sizes are those of the file as it is.
        """
        from .info import info

        return info(self._log, self.view() if at is None else self.at(at))

    def digests(self, *, replay: bool = False) -> dict[str, bytes]:
        """Return each projection's digest (32 bytes) at the head.

        From checkpoint plus tail, or with ``replay`` from the log alone, every checkpoint
        ignored: they are equal.
        """
        self._log.refresh()
        fold = replayed(self._log, registry=self._fold.registry) if replay else self._fold
        return fold.digests()

    def verify(self, progress: Callable[[str, int, int], None] | None = None) -> "Verification":
        """Recompute every hash and projection from the log and compare; writes nothing."""
        from cerata.replay.verify import verify

        return verify(self._log, self._fold, progress)

    def rebuild(
        self,
        projection: str | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        """Fold a projection anew from the log, by default every one; the old one serves meanwhile.

        A rebuild that was killed goes on from where it was saved. Durable on return.

        Raises:
            NotFound: no projection has this name.
        """
        from cerata.replay.rebuild import rebuild

        names = self._fold.registry.names if projection is None else (projection,)
        for name in names:
            rebuild(self._log, self._fold, name, progress)

    # --- writing ---------------------------------------------------------------------------------

    def put_frame(
        self,
        content: str | bytes,
        *,
        kind: str = "text",
        role: str | None = None,
        uri: str | None = None,
        title: str | None = None,
        tags: Sequence[str] = (),
        labels: Sequence[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        track: str | None = None,
        parent: FrameId | None = None,
        content_dates: Sequence[datetime | str] = (),
        created: datetime | str | None = None,
        search_text: str | None = None,
        scope: Mapping[str, ScopeValue] | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Put one frame as it is: no splitting, no deduplication. Durable on return.

        A str is searched by its words; of bytes only ``search_text``, title and tags are.
        ``key`` makes the call idempotent.

        Raises:
            InvalidInput: a value that cannot be stored. NotFound: no such parent.
            IdempotencyConflict: the key was used with other arguments.
        """
        fields = frame_fields(
            kind=kind,
            role=role,
            uri=uri,
            title=title,
            tags=tags,
            labels=labels,
            metadata=metadata,
            track=track,
            parent=None if parent is None else frame_id(parent),
            content_dates=content_dates,
            created=created,
            search_text=search_text,
        )
        stamped = full_scope(scope, self._scope)
        drafts = [frame_draft(content, fields, stamped)]
        self._called(stamped, "put_frame", _asked(drafts))
        return self.write(drafts, key=key)

    def put_frames(
        self,
        texts: Sequence[str],
        *,
        metadata: Sequence[Mapping[str, JsonValue]] | None = None,
        kind: str = "text",
        tags: Sequence[str] = (),
        scope: Mapping[str, ScopeValue] | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Put many frames as one batch: all of them or none. Durable on return.

        ``metadata`` has one mapping a text. At most 10,000 texts.
        """
        texts = listed("texts", texts)
        if metadata is not None and len(metadata := listed("metadata", metadata)) != len(texts):
            raise InvalidInput(f"{len(texts):,} texts came with {len(metadata):,} metadata")
        stamped = full_scope(scope, self._scope)
        fields = frame_fields(kind=kind, tags=tags)
        if metadata is None:
            drafts = [frame_draft(text, fields, stamped) for text in texts]
        else:
            drafts = [
                frame_draft(text, frame_fields(kind=kind, tags=tags, metadata=own), stamped)
                for text, own in zip(texts, metadata, strict=True)
            ]
        self._called(stamped, "put_frames", _asked(drafts))
        return self.write(drafts, key=key)

    def remember(
        self,
        text: "str | Path | Document",
        *,
        kind: str = "text",
        role: str | None = None,
        uri: str | None = None,
        title: str | None = None,
        tags: Sequence[str] = (),
        labels: Sequence[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        track: str | None = None,
        parent: FrameId | None = None,
        content_dates: Sequence[datetime | str] = (),
        created: datetime | str | None = None,
        scope: Mapping[str, ScopeValue] | None = None,
    ) -> Receipt:
        """Remember a text, or the file at a path: split into passages, stored once.

        A str is always text, of Markdown or without any marks; a file is read by what it is
        (docs/ingest.md). What is there already, under the same URI, is not stored again
        (``added`` is False); other text under a URI supersedes the old. A long document takes
        several batches, its document frame first; called again after a crash, it goes on where
        it stopped.

        Raises:
            InvalidInput: not text. NotFound: no such file. StorageFailed: it cannot be read.
        """
        from .ingest import remember

        fields = frame_fields(
            kind=kind,
            role=role,
            uri=uri,
            title=title,
            tags=tags,
            labels=labels,
            metadata=metadata,
            track=track,
            parent=None if parent is None else frame_id(parent),
            content_dates=content_dates,
            created=created,
        )
        stamped = full_scope(scope, self._scope)
        said = replace(fields, metadata=dict(metadata or {}))
        source = str(text) if isinstance(text, Path) else text
        self._called(stamped, "remember", source, said, stamped)
        return remember(self, text, fields, stamped)

    def supersede(self, old: FrameId, new: str | FrameId) -> Receipt:
        """Put ``new``, a text or a frame already there, in the place of ``old``.

        The old frame, and the chunks below it, stay readable in the past. A new text takes over
        the old frame's scope, kind, role, URI, title, tags, labels and metadata. Durable on
        return.

        Raises:
            NotFound: no such frame. Conflict: one of them is closed already.
        """
        old_id = frame_id(old)
        if not isinstance(new, str):
            scope = full_scope(None, self._scope)
            new_id = frame_id(new)
            self._called(scope, "supersede", old_id, new_id)
            return self.write([Draft(SupersedeFrame(old=old_id, new=new_id), scope)])
        fields, scope = self._fields_of(old_id)
        self._called(scope, "supersede", old_id, new)
        frame = frame_draft(new, fields, scope, hashed=content_hash(new))
        place = self.next_place()
        return self.write([frame, Draft(SupersedeFrame(old=old_id, new=-place), scope)])

    def delete(self, frame: FrameId) -> Receipt:
        """Close a frame, and the chunks below it; it stays readable in the past.

        Raises:
            NotFound: no such frame. Conflict: it is closed already.
        """
        scope = full_scope(None, self._scope)
        number = frame_id(frame)
        self._called(scope, "delete", number)
        return self.write([Draft(DeleteFrame(frame=number), scope)])

    def tag(self, name: str, at: Basis = "HEAD") -> Receipt:
        """Name the end of a batch, by default the newest, for good; `at` takes the name.

        A name starts with a letter and is never used again. Inside a transaction it names what
        is in the log. Durable on return.

        Raises:
            Conflict: the name is taken. InvalidInput: it cannot be a name, or ``at`` lies inside a
            batch. NotFound: the log does not reach that far.
        """
        scope = full_scope(None, self._scope)
        seq = self.at(at).basis
        self._called(scope, "tag", name, at if isinstance(at, str | datetime) else seq)
        return self.write([Draft(PutTag(tag=name, at=seq), scope)])

    def append(
        self, *events: EventBody | Draft, expect: int | None = None, key: str | None = None
    ) -> Receipt:
        """Append events of any kind as one batch. Durable on return.

        ``expect`` is the seq of the head that the caller saw; if the log moved on it is refused.
        A body, and a draft without a scope of its own, get the store's scope.

        Raises:
            Conflict: the log is not at ``expect``, or a target is closed. InvalidInput: an event
            that cannot be stored, or a draft's scope outside the store's. NotFound.
        """
        for one in events:
            if not isinstance(one, Draft | EventBody):
                raise InvalidInput(
                    f"A {type(one).__name__} is no event", remedy="Pass event bodies or drafts."
                )
        drafts = within_scope(
            [one if isinstance(one, Draft) else Draft(one) for one in events], self._scope
        )
        if drafts:
            self._called(drafts[0].scope, "append", _asked(drafts))
        return self.write(drafts, expect=expect, key=key)

    @contextmanager
    def transaction(
        self, *, expect: int | None = None, key: str | None = None
    ) -> Generator[Transaction]:
        """Gather the writes of this thread or task into one batch: all of them or none.

        Inside, receipts carry ids −1, −2, …, which later calls inside may name; afterwards
        ``tx.receipt`` has the real ones. Reads of frames (`search`, `recall`, `frame`, `content`,
        `frames`, `timeline`, `len`) see what the block has gathered over the memory as it stood
        at the first of them; `at` gives what is in the log alone, and so do `log`, `tags` and
        `projection`, of what stands in no log yet. No lock is held
        while the block runs; an exception in it writes nothing. What others closed meanwhile,
        or ``expect``, is a `Conflict` at the end.

        ``key`` makes the block idempotent: it stands for the calls in it and what they were
        given. Run again, the block reads the memory as it was before its first run, writes
        nothing, and ``tx.receipt`` is the first one, with ``added`` False. A block that gathers
        nothing leaves no key.

        Raises:
            IdempotencyConflict: the key was used for other calls.
        """
        if expect is not None:
            check_number("expect", expect)
        if self._transaction.get() is not None:
            raise Conflict("A transaction is open already", remedy="Use the open one.")
        transaction = Transaction(None if key is None else partial(self._log.find_key, key))
        transaction.look_up(tenant_of(full_scope(None, self._scope)))
        token = self._transaction.set(transaction)
        try:
            yield transaction
        finally:
            self._transaction.reset(token)
        if not transaction.drafts:
            transaction.look_up_again()
        if transaction.first is not None and key is not None:
            if transaction.drafts:
                asked = transaction.arguments or arguments_hash(_asked(transaction.drafts))
                transaction.first.check(key, asked)
            elif transaction.arguments is not None:
                transaction.first.check(key, transaction.arguments)
            transaction.receipt = self._receipt((), transaction.first.appended)
        elif transaction.drafts:
            drafts = within_scope(transaction.drafts, self._scope)
            transaction.receipt = self._append(
                drafts, expect=expect, key=key, arguments=transaction.arguments
            )

    # --- how writes happen -----------------------------------------------------------------------

    @property
    def in_transaction(self) -> bool:
        """Whether this thread or task has a transaction open."""
        return self._transaction.get() is not None

    def _called(self, scope: Scope, *arguments: object) -> None:
        """Take down a call in a keyed transaction, by what the caller gave."""
        transaction = self._transaction.get()
        if transaction is not None and transaction.is_keyed:
            transaction.look_up(tenant_of(scope))
            transaction.called(*arguments)

    def next_place(self) -> int:
        """Return the place, from 1, that the next event will have in its batch."""
        transaction = self._transaction.get()
        return 1 if transaction is None else len(transaction.drafts) + 1

    def _fields_of(self, frame: int) -> tuple[FrameFields, Scope]:
        """Return what a new version takes over from a frame, there or about to be put."""
        found = self.view().frame(frame)
        fields = FrameFields(
            kind="text" if found.kind == DOCUMENT_KIND else found.kind,
            role=found.role,
            uri=found.uri,
            title=found.title,
            tags=found.tags,
            labels=found.labels,
            metadata=found.metadata,
        )
        return fields, tuple(found.scope.items())

    def write(
        self, drafts: Sequence[Draft], *, expect: int | None = None, key: str | None = None
    ) -> Receipt:
        """Append drafts as one batch, or add them to the open transaction.

        Drafts without a scope of their own get the store's.

        Raises:
            InvalidInput: the scope of one is outside the store's.
        """
        drafts = within_scope(drafts, self._scope)
        transaction = self._transaction.get()
        if transaction is None:
            return self._append(drafts, expect=expect, key=key)
        if expect is not None or key is not None:
            raise InvalidInput(
                "expect and key belong to the transaction", remedy="Pass them to transaction()."
            )
        return transaction.add(drafts)

    def _append(
        self,
        drafts: Sequence[Draft],
        *,
        expect: int | None,
        key: str | None,
        arguments: bytes | None = None,
    ) -> Receipt:
        references = References(drafts)
        if key is not None and arguments is None:
            arguments = arguments_hash(_asked(drafts))
        tagging = Tagging(drafts)
        checks: list[Validate] = []
        known = self._log.refresh().seq if references or references.causes or tagging else 0
        references.check_causes(self._log, self._scope)
        if references:
            references.check_exist(self._log, self._scope)
            frames = self._fold.frames(known)
            checks.append(partial(references.check_open, frames))
        if tagging:
            tagging.check(self._log)
            checks.append(partial(tagging.check_free, self._fold.own(Tags.name, known).rows))

        def validate(delta: Sequence[Event]) -> None:
            for check in checks:
                check(delta)

        appended = self._log.append(
            drafts,
            expect=expect,
            key=key,
            arguments=arguments,
            validate=validate if checks else None,
            known=known,
        )
        self._fold.save_if_due()
        return self._receipt(drafts, appended)

    def _receipt(self, drafts: Sequence[Draft], appended: Appended) -> Receipt:
        seqs = tuple(range(appended.first_seq, appended.last_seq + 1))
        if appended.replayed:
            # What was asked for again may not be what was put then: the log says.
            self._log.refresh()
            kinds = [event.type for event in self._log.read(seqs[0], seqs[-1])]
        else:
            kinds = [draft.body.wire_name for draft in drafts]
        made = tuple(
            seq for seq, kind in zip(seqs, kinds, strict=True) if kind == PutFrame.wire_name
        )
        return Receipt(
            id=made[0] if made else appended.first_seq,
            ids=made,
            seqs=seqs,
            head=appended.head,
            durable=appended.durable,
            added=not appended.replayed,
        )


def _asked(drafts: Sequence[Draft]) -> list[tuple[str, Scope, EventBody]]:
    """Return what drafts say, where they are all that a caller gave."""
    return [(draft.body.wire_name, draft.scope, draft.body) for draft in drafts]


def open_store(
    path: str | os.PathLike[str],
    *,
    mode: Literal["r", "rw"] = "rw",
    scope: Mapping[str, ScopeValue] | None = None,
    embedder: None = None,
    sync: SyncPolicy = "commit",
    lock_timeout: float | None = 30.0,
    ring_bytes: int | None = None,
    salvage: bool = False,
    environment: Environment | None = None,
    projections: Sequence[Callable[[], RowProjection[Any, Any]]] = (),
) -> Store:
    """Open the memory in a file; a missing one is created, unless ``mode="r"``.

    ``":memory:"`` is a store without a file. ``scope`` is stamped on every event and filters
    every read. ``sync``: "commit" makes each call durable before it returns, "always" also
    proves it with a second sync, a number of bytes syncs only that often. ``lock_timeout`` is in
    seconds: 0 fails at once, None waits. ``ring_bytes`` sizes a new file's ring. ``salvage``
    reads what a damaged file still holds. ``environment`` stands in for disk, clock and chance.
    ``projections`` are your own folds, subclasses of `cerata.RowProjection`.

    Raises:
        NotFound: no such file (mode "r"), naming the nearest. Corrupt: acknowledged data is
        damaged. Locked: somebody held it too long. Unsupported: not a Cerata file, or newer.
    """
    if embedder is not None:
        raise Unsupported("Embedders are not there yet", remedy="Leave embedder out.")
    name = os.fspath(path)
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidInput(f"{path!r} is not a path")
    registry = Registry(projections)
    log = Log.open(
        name,
        mode=mode,
        environment=environment,
        sync=sync,
        lock_timeout=lock_timeout,
        ring_bytes=ring_bytes,
        salvage=salvage,
    )
    return Store(log, None if scope is None else full_scope(scope, None), registry)
