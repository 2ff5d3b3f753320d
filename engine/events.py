"""Events: the typed bodies of the log, and the envelope around them.

Owns the bodies (a frozen Struct per kind of event), the registry from wire names to them, `Draft`
(an event about to be appended) and `Event` (an event read back). Leaves out bytes: `codec` converts
these to deterministic MessagePack and back.

A new kind of event is a subclass of `EventBody` with a wire name::

    @event("spending")
    class Spending(EventBody, frozen=True):
        cents: int

Unknown kinds are carried unchanged and read back as `UnknownBody`. When a body's fields change, its
version is raised, and an `upcaster` lifts stored bodies of the old version when they are read::

    @event("spending", version=2)
    class Spending(EventBody, frozen=True):
        cents: int
        currency: str

    @upcaster("spending", 1)
    def with_currency(fields):
        return {**fields, "currency": "EUR"}
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from types import GenericAlias
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeAlias, TypeVar, cast

import msgspec

from .errors import Corrupt, NotFound, Unsupported
from .instants import to_datetime
from .integrity import commitment_of, hash_bytes, leaf_of
from .json_value import JsonValue as JsonValue  # noqa: PLC0414 - re-exported
from .packs import load_kind
from .plain_value import plain
from .words import bytes_text, counted

ScopeValue: TypeAlias = str | int | bool
Scope: TypeAlias = tuple[tuple[str, ScopeValue], ...]
"""An open, ordered map of names to values; ``tenant`` comes first and is always present."""

DEFAULT_SCOPE: Scope = (("tenant", "default"),)


class Attachment(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Large bytes beside a payload, which holds their hash.

    ``hash`` is BLAKE3-256 of the bytes, ``size`` their count.
    """

    hash: bytes
    size: int


TOKENS_SUFFIX: Final = "/maxsim/i1"
"""The suffix that marks a space of token vectors. On disk: never change it."""


def is_token_space(space: str) -> bool:
    """Return whether an embedding in a space is a matrix: a vector for each token of a text."""
    return space.endswith(TOKENS_SUFFIX)


class Embedding(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A vector in a space: ``dtype`` is ``f4`` or ``i1``, little-endian, ``dimension`` values.

    In a space of token vectors the data is a sequence of such vectors, end to end.
    """

    space: str
    dtype: str
    dimension: int
    data: Attachment


class EventBody(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Base of every typed event body; `event` gives a subclass its wire name.

    ``references`` maps each field that holds a reference to the wire name of the kind that the
    reference must have. Such a field holds the seq of another event, a tuple of seqs, or a tuple of
    `Evidence`. A negative reference −k means the k-th event of the same batch.

    The other members say how the kernel treats the event; a subclass sets those that differ.
    """

    wire_name: ClassVar[str] = ""
    wire_version: ClassVar[int] = 1
    references: ClassVar[Mapping[str, str]] = {}
    changes: ClassVar[tuple[str, ...]] = ()
    """The references by which the event changes a thing for all its readers."""
    needs_actor: ClassVar[str | None] = None
    """The remedy if the event has no person as its actor; None if it needs no actor."""
    keeps_run: ClassVar[bool] = False
    """True if the event changes no run and closes no frame, so that an open run stays open."""
    makes_id: ClassVar[bool] = False
    """True if the event makes a thing whose id is the seq of the event, such as a frame."""

    def check(self) -> None:
        """Raise `InvalidInput` for a value that decoding accepts and the event must not have."""

    def is_copied(self, point: int) -> bool:
        """Return whether a fork's change is applied to its parent, which it left at ``point``."""
        del point
        return True

    def describe(self) -> str:
        """Return the content of the event in a few words for people; "" for its fields."""
        return ""


BodyType = TypeVar("BodyType", bound=type[EventBody])

_REGISTRY: dict[str, type[EventBody]] = {}
MAKERS: Final[set[str]] = set()
"""The wire names of the events that make a thing; its id is the event's seq."""
_MEMBERS: Final = frozenset(name for name in vars(EventBody) if not name.startswith("_"))


def event(
    name: str, *, version: int = 1, references: Mapping[str, str] | None = None
) -> Callable[[BodyType], BodyType]:
    """Register the decorated `EventBody` under a wire name.

    Args:
        name: the wire name of the kind.
        version: the version of the body's fields, from 1.
        references: the kind of event that each reference field must name, by field.

    Raises:
        TypeError: another class already has the name, or a field has the name of a member of
            `EventBody`.
    """

    def register(body: BodyType) -> BodyType:
        if taken := _MEMBERS & {*body.__struct_fields__}:
            raise TypeError(f"a field of {body.__qualname__} is named {min(taken)!r}, a member")
        earlier = _REGISTRY.get(name)
        if earlier is not None and earlier.__qualname__ != body.__qualname__:
            raise TypeError(f"the event name {name!r} is taken by {earlier.__qualname__}")
        body.wire_name = name
        body.wire_version = version
        body.references = dict(references or {})
        _REGISTRY[name] = body
        if body.makes_id:
            MAKERS.add(name)
        return body

    return register


Fields: TypeAlias = dict[str, Any]
"""A body's fields by name, as stored."""

Upcast: TypeAlias = Callable[[Fields], Fields]
UpcastType = TypeVar("UpcastType", bound=Upcast)

_UPCASTERS: dict[tuple[str, int], Upcast] = {}


def upcaster(name: str, version: int) -> Callable[[UpcastType], UpcastType]:
    """Register the decorated function: it lifts a body of ``version`` to the next version.

    The function gets the stored fields and returns those of the next version. It must be pure,
    since its result is folded. Stored bytes never change. A version without an upcaster is read
    unchanged. After changing an upcaster, raise the versions of the projections that read the
    event.

    Args:
        name: the wire name of the kind.
        version: the version that the function lifts.

    Raises:
        TypeError: another function already lifts this version.
    """

    def register(lift_fields: UpcastType) -> UpcastType:
        earlier = _UPCASTERS.get((name, version))
        if earlier is not None and earlier.__qualname__ != lift_fields.__qualname__:
            raise TypeError(f"version {version} of {name!r} is lifted by {earlier.__qualname__}")
        _UPCASTERS[name, version] = lift_fields
        return lift_fields

    return register


def _lifted(header: "EventHeader", data: bytes, version: int) -> bytes:
    """Return a stored body lifted to ``version``.

    Raises:
        Unsupported: an upcaster raised.
    """
    steps = [
        (step, _UPCASTERS[header.type, step])
        for step in range(header.version, version)
        if (header.type, step) in _UPCASTERS
    ]
    if not steps:
        return data
    fields: Fields = msgspec.msgpack.decode(data)
    for step, lift_fields in steps:
        try:
            fields = lift_fields(fields)
        except MemoryError:
            raise
        except Exception as error:
            raise Unsupported(
                f"Event {header.seq:,} ({header.type}) cannot be lifted from version {step}: "
                f"{type(error).__name__}: {error}",
                remedy="Fix the upcaster; it must accept every body of its version.",
            ) from error
    return msgspec.msgpack.encode(fields)


class UnknownBody(EventBody, frozen=True, kw_only=True):
    """The body of an event whose kind this process does not know, carried unchanged."""

    kind: str
    kind_version: int
    data: bytes

    def fields(self) -> Mapping[str, JsonValue]:
        """Return the body's fields by name."""
        decoded: Mapping[str, JsonValue] = msgspec.msgpack.decode(self.data)
        return decoded

    def describe(self) -> str:
        return f"(version {self.kind_version} of {self.kind}: kept, not applied by this Cerata)"


def is_known(kind: str, version: int) -> bool:
    """Return whether this process reads bodies of a type and version."""
    body = kind_named(kind)
    return body is not None and version <= body.wire_version


@event("putFrame", references={"parent": "putFrame"})
class PutFrame(EventBody, frozen=True, kw_only=True):
    """A new frame; its id is the seq of this event.

    Exactly one of ``text`` and ``blob`` is the content. A document that was split has an empty text
    and ``chunk_count`` chunks, whose texts in order are its content. ``content_hash`` is 16 bytes
    of BLAKE3 over the whole content of a document; that of any other frame follows from its content
    (`salted_hashes`). Times are microseconds since 1970 UTC. From ``expires`` on,
    reads of many frames leave the frame out.
    """

    makes_id = True
    keeps_run = True

    text: str | None = None
    blob: Attachment | None = None
    kind: str = "text"
    role: str | None = None
    uri: str | None = None
    title: str | None = None
    tags: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    track: str | None = None
    parent: int | None = None
    chunk_index: int | None = None
    chunk_count: int | None = None
    content_dates: tuple[int, ...] = ()
    created: int | None = None
    expires: int | None = None
    search_text: str | None = None
    content_hash: bytes | None = None
    embedding: Embedding | None = None
    token_embedding: Embedding | None = None

    @property
    def embeddings(self) -> tuple[Embedding, ...]:
        """The frame's vector and its token vectors, as far as present."""
        if self.token_embedding is None:
            return () if self.embedding is None else (self.embedding,)
        if self.embedding is None:
            return (self.token_embedding,)
        return self.embedding, self.token_embedding

    def describe(self) -> str:
        name = self.title or self.uri
        if self.chunk_count is not None:
            return f"{name or 'a document'} ({counted(self.chunk_count, 'passage')})"
        if self.blob is not None:
            return f"{name or 'bytes'} ({bytes_text(self.blob.size)})"
        return f"{name}: {self.text}" if name else self.text or ""


@event("deleteFrame", references={"frame": "putFrame"})
class DeleteFrame(EventBody, frozen=True, kw_only=True):
    """A frame, and the chunks below it, are no longer current."""

    changes = ("frame",)

    frame: int

    def describe(self) -> str:
        return f"#{self.frame}"


@event("supersedeFrame", references={"old": "putFrame", "new": "putFrame"})
class SupersedeFrame(EventBody, frozen=True, kw_only=True):
    """``new`` replaces ``old``, which stays readable in the past."""

    # Both frames: readers of the new version would see which private frame it replaced.
    changes = ("old", "new")

    old: int
    new: int

    def describe(self) -> str:
        return f"#{self.old} by #{self.new}"


@event("putEmbedding", references={"frame": "putFrame", "context": "putFrame"})
class PutEmbedding(EventBody, frozen=True, kw_only=True):
    """A vector, or token vectors, for an existing frame, for example after re-embedding.

    ``context`` are the frames that the embedder read beside the frame, in order: the vector depends
    on their texts, too, and is erased with any of them.
    """

    changes = ("frame",)
    keeps_run = True

    frame: int
    embedding: Embedding
    context: tuple[int, ...] = ()

    @property
    def embeddings(self) -> tuple[Embedding, ...]:
        """The embedding, in a tuple as in `PutFrame.embeddings`."""
        return (self.embedding,)


@event("putTag")
class PutTag(EventBody, frozen=True, kw_only=True):
    """A name for the end of a batch; a name starts with a letter and is never reused."""

    keeps_run = True

    tag: str
    at: int

    def is_copied(self, point: int) -> bool:
        """Return whether the tag names a point that both logs have."""
        return self.at <= point

    def describe(self) -> str:
        return f"{self.tag} names event {self.at}"


@event("useEmbedder")
class UseEmbedder(EventBody, frozen=True, kw_only=True):
    """From here on an embedder computes the vectors of the tenant's texts.

    ``identity`` is the model's name and revision, ``name@revision``, with which ``space`` begins.
    ``name`` is that of a built-in embedder, which later openers use without naming it; None for any
    other. ``tokens_space`` is the space of its token vectors.
    """

    keeps_run = True

    identity: str
    space: str
    name: str | None = None
    tokens_space: str | None = None

    def describe(self) -> str:
        return f"{self.name}, {self.space}" if self.name else self.space


class Evidence(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The source of a fact: a frame, and the range [start, end) of its text in UTF-8 bytes.

    ``quote`` is 16 bytes of BLAKE3 over this range, keyed by the salt of the frame's event: it
    shows whether the text has changed since it was read, until the frame is erased.
    """

    frame: int
    start: int | None = None
    end: int | None = None
    quote: bytes | None = None


@event("assertFact", references={"evidence": "putFrame"})
class AssertFact(EventBody, frozen=True, kw_only=True):
    """A fact is held true for [valid_from, valid_to), from the time it is recorded.

    The object is one typed value: ``object_kind`` is its type's name, ``object`` the value. Without
    ``valid_from`` the fact is true from the time it is recorded, without ``valid_to`` until further
    notice. ``assumptions`` name the premises that a model took for granted.
    """

    makes_id = True
    keeps_run = True

    subject: str
    predicate: str
    object_kind: str
    object: Any
    valid_from: int | None = None
    valid_to: int | None = None
    confidence: float = 1.0
    source: str = "observed"
    evidence: tuple[Evidence, ...] = ()
    assumptions: tuple[str, ...] = ()

    def describe(self) -> str:
        return f"{self.subject} · {self.predicate} · {self.object}"


@event("retractFact", references={"fact": "assertFact"})
class RetractFact(EventBody, frozen=True, kw_only=True):
    """A fact is no longer known from here on; its history stays."""

    changes = ("fact",)
    keeps_run = True

    fact: int

    def describe(self) -> str:
        return f"#{self.fact}"


@event("putPredicate")
class PutPredicate(EventBody, frozen=True, kw_only=True):
    """From here on a predicate has one value at a time, or any number."""

    predicate: str
    functional: bool

    def describe(self) -> str:
        return f"{self.predicate} has {'one value' if self.functional else 'values'} at a time"


@event("putEntity")
class PutEntity(EventBody, frozen=True, kw_only=True):
    """An entity has this kind, and these names in addition to its earlier names."""

    entity: str
    kind: str | None = None
    aliases: tuple[str, ...] = ()

    def describe(self) -> str:
        return ", ".join((self.entity, *self.aliases))


@event("mergeEntities")
class MergeEntities(EventBody, frozen=True, kw_only=True):
    """``entity`` is the same as ``into``; from here on both are read under the name of ``into``."""

    makes_id = True

    entity: str
    into: str

    def describe(self) -> str:
        return f"{self.entity} is read as {self.into}"


@event("unmergeEntities", references={"merge": "mergeEntities"})
class UnmergeEntities(EventBody, frozen=True, kw_only=True):
    """A merge ends here."""

    changes = ("merge",)

    merge: int

    def describe(self) -> str:
        return f"#{self.merge}"


@event("splitEntity", references={"facts": "assertFact"})
class SplitEntity(EventBody, frozen=True, kw_only=True):
    """From here on ``entity`` means ``into`` in these facts."""

    makes_id = True
    changes = ("facts",)

    entity: str
    into: str
    facts: tuple[int, ...]

    def describe(self) -> str:
        return f"{self.entity} is {self.into} in {', '.join(f'#{fact}' for fact in self.facts)}"


@event("unsplitEntity", references={"split": "splitEntity"})
class UnsplitEntity(EventBody, frozen=True, kw_only=True):
    """A split ends here."""

    changes = ("split",)

    split: int

    def describe(self) -> str:
        return f"#{self.split}"


@event("extractFacts", references={"frame": "putFrame"})
class ExtractFacts(EventBody, frozen=True, kw_only=True):
    """An extractor was run on a frame's text and found ``count`` facts, whose cause is this event.

    The facts are recorded, so reading them never runs the extractor again.
    """

    frame: int
    extractor: str
    extractor_version: str
    count: int

    def describe(self) -> str:
        by = f"{self.extractor} {self.extractor_version}"
        return f"{counted(self.count, 'fact')} in #{self.frame} by {by}"


@event("linkFacts", references={"fact": "assertFact", "target": "assertFact", "frame": "putFrame"})
class LinkFacts(EventBody, frozen=True, kw_only=True):
    """A relation of a fact to another fact, ``target``, or to a ``frame``: exactly one of the two.

    ``kind`` is assumes, contradicts, depends_on, derived_from, generated_from, invalidates,
    supersedes, supports or validated_by.
    """

    makes_id = True
    keeps_run = True

    fact: int
    kind: str
    target: int | None = None
    frame: int | None = None

    def describe(self) -> str:
        target = self.target if self.target is not None else self.frame
        return f"#{self.fact} {self.kind.replace('_', ' ')} #{target}"


@event("unlinkFacts", references={"link": "linkFacts"})
class UnlinkFacts(EventBody, frozen=True, kw_only=True):
    """A link ends here."""

    changes = ("link",)
    keeps_run = True

    link: int

    def describe(self) -> str:
        return f"#{self.link}"


class TimeInterval(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A range of times [start, end) that a question asks for; None is open.

    ``time`` is created, recorded or content. Both bounds are microseconds since 1970 UTC.
    """

    time: str
    start: int | None
    end: int | None


@event(
    "recall",
    references={
        "frames": "putFrame",
        "facts": "assertFact",
        "omitted": "putFrame",
        "omitted_facts": "assertFact",
        "reranked": "putFrame",
        "activity": "startActivity",
    },
)
class RecallContext(EventBody, frozen=True, kw_only=True):
    """A context was shown to a model: the question, its basis, and the content of the answer.

    ``query`` is the question; in the full language, its tree in text form. ``tokenizer``,
    ``profile`` and ``profile_version`` name the code that built the context; ``where`` (the filter
    as JSON), ``form`` and the two budgets are its parameters. ``frames`` and ``facts`` were shown;
    ``omitted`` matched and did not fit. ``context`` is H of the salts of ``frames``, of those of
    ``facts``, and of the text in UTF-8; or 32 zero bytes if a salt was erased. ``policy``,
    ``policy_version``, ``order`` and ``framing`` describe the layout; ``policy`` is None in events
    older than policies. ``mode`` and ``space`` are those of a search by vectors, and ``vector`` is
    the question's: float32, little-endian. ``tokens`` are the question's token vectors in
    ``tokens_space``, int8; with ``rerank`` they ordered the best results. ``token_weights`` are the
    weights of these: float64, little-endian. ``now`` is the meaning of "now", by which frames
    expire; ``times`` are the intervals that the question's filters name.
    ``neighbours`` of each result on either side were candidates too.
    The vectors count ``trust`` and ``vector_weight`` times their weight in the profile. With
    ``floor`` an unrelated question is shown nothing; ``floor_clear`` and ``floor_least`` are the
    marks on the best score, if the caller passed any. With ``shared`` the reader's scope admitted
    shared events, too. The frames ``reranked`` were sorted by ``reranked_scores``, a float64 of
    each, little-endian, which the model ``reranker`` returned; it is None if the caller passed the
    scores.
    An assembled context has ``assembly``, its arguments as JSON, the session ``activity`` that it
    was shown in, and the names of its ``blocks`` in their order; ``form`` is then "text", and
    ``entry_tokens`` is 0.
    """

    keeps_run = True

    query: str
    basis: int
    tokenizer: str
    profile: str
    profile_version: int
    max_tokens: int
    entry_tokens: int
    form: str
    context: bytes
    policy: str | None = None
    policy_version: int | None = None
    order: str = "score"
    framing: bool = False
    where: str | None = None
    mode: str = "hybrid"
    space: str | None = None
    vector: bytes | None = None
    tokens_space: str | None = None
    tokens: bytes | None = None
    token_weights: bytes | None = None
    trust: float = 1.0
    vector_weight: float = 1.0
    rerank: bool = False
    approximate: bool = False
    include_superseded: bool = False
    neighbours: int = 0
    floor: bool = False
    floor_clear: float | None = None
    floor_least: float | None = None
    frames: tuple[int, ...] = ()
    facts: tuple[int, ...] = ()
    omitted: tuple[int, ...] = ()
    omitted_facts: tuple[int, ...] = ()
    now: int | None = None
    times: tuple[TimeInterval, ...] = ()
    shared: bool = False
    reranker: str | None = None
    reranked: tuple[int, ...] = ()
    reranked_scores: bytes | None = None
    assembly: str | None = None
    activity: int | None = None
    blocks: tuple[str, ...] = ()

    def is_copied(self, point: int) -> bool:
        """Return False: the recall read the fork's state, which its parent never had."""
        del point
        return False

    def describe(self) -> str:
        facts = f", {counted(len(self.facts), 'fact')}" if self.facts else ""
        return f"{counted(len(self.frames), 'frame')}{facts} for {self.query}"


@event("access", references={"frames": "putFrame"})
class AccessFrames(EventBody, frozen=True, kw_only=True):
    """Frames were used: opened, cited, or used in any way that the caller counts."""

    frames: tuple[int, ...]

    def describe(self) -> str:
        return ", ".join(f"#{frame}" for frame in self.frames)


@event("importBatch", references={"after": "importBatch"})
class ImportBatch(EventBody, frozen=True, kw_only=True):
    """The events after this event in the batch were imported; it alone has their idempotency key.

    ``dialect`` names the format of the imported lines, and ``count`` their number. The key is a
    hash of these lines and of those of the importBatch ``after``. So this event is erased with any
    event of its batch, and with that importBatch.

    In the dialect cerata-events the lines are ``count`` events of the log ``log`` (16 bytes) from
    ``first`` on. The key names these two, holds no content, and is never erased.
    """

    dialect: str
    count: int | None = None
    after: int | None = None
    log: bytes | None = None
    first: int | None = None

    def describe(self) -> str:
        return self.dialect if self.count is None else f"{counted(self.count, 'line')} of facts"


@event("branch")
class Branch(EventBody, frozen=True, kw_only=True):
    """The first event after a fork: from here on the log is another one than its parent.

    ``id`` is 16 random bytes. ``seq``, ``chain`` and ``root`` are the point of the parent that the
    log continues, which is the event before. ``before`` is the seq of the previous branch, 0
    without one.
    """

    id: bytes
    seq: int
    chain: bytes
    root: bytes
    before: int = 0

    def is_copied(self, point: int) -> bool:
        """Return False: a branch belongs to the fork."""
        del point
        return False

    def describe(self) -> str:
        return f"after event {self.seq:,}, as {self.id.hex()}"


@event("erase")
class Erase(EventBody, frozen=True, kw_only=True):
    """The payloads of earlier events of one tenant were left out of the file, for a reason.

    ``targets`` are ranges of events, first seq and count, in ascending order and apart from each
    other. Their headers, commitments and hashes stay. ``reason`` is "retention" if the frames had
    died by the event ``horizon``, the newest horizon of the log. Before the horizon only the points
    in ``kept``, which had tags, can still be read.
    """

    targets: tuple[tuple[int, int], ...]
    reason: str
    horizon: int = 0
    kept: tuple[int, ...] = ()


@event("gap")
class Gap(EventBody, frozen=True, kw_only=True):
    """Replaces a lost event, so that later ids stay; ``repair`` writes it."""

    reason: str


class Draft(msgspec.Struct, frozen=True, gc=False):
    """An event about to be appended: a body and the rest of its envelope.

    ``actor`` is who writes the event, ``correlation`` the request or run that it belongs to, and
    ``reason`` why it is written; None leaves each out.
    ``causation`` is the seq of the event that led to this event, or −k within the batch.
    ``attachments`` are the bytes that the body's `Attachment` fields name by hash, in order.
    ``salt`` is 16 random bytes; None lets the store draw them.
    ``is_checked`` is True only if the maker of the draft has checked the type of each field, the
    shape and the numbers of its vectors, and has hashed the attachments itself: none of that is
    done again.
    """

    body: EventBody
    scope: Scope = DEFAULT_SCOPE
    actor: str | None = None
    correlation: str | None = None
    causation: int | None = None
    attachments: tuple[bytes, ...] = ()
    salt: bytes | None = None
    reason: str | None = None
    is_checked: bool = False

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the draft as plain values, with attachments by hash, as ``--json`` prints it."""
        return {
            "type": self.body.wire_name,
            "version": self.body.wire_version,
            "causation": self.causation,
            "scope": dict(self.scope),
            "actor": self.actor,
            "correlation": self.correlation,
            "reason": self.reason,
            "body": _plain_body(self.body),
        }


class EventHeader(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The part of an event that is never erased: it enters the leaf, and holds no personal data.

    ``recorded`` is microseconds since 1970 UTC, equal within a batch, strictly increasing from
    batch to batch; ``clock`` is the raw clock if it differed. ``index`` is from 0.
    """

    seq: int
    recorded: int
    clock: int | None
    type: str
    version: int
    index: int
    count: int
    causation: int | None

    @property
    def first_seq(self) -> int:
        """Seq of the first event of the batch."""
        return self.seq - self.index

    @property
    def last_seq(self) -> int:
        """Seq of the last event of the batch."""
        return self.first_seq + self.count - 1


StoredType = TypeVar("StoredType")


class Payload(msgspec.Struct, Generic[StoredType], frozen=True, gc=False, array_like=True):
    """The part of an event that can be erased; ``body`` is MessagePack or the decoded body."""

    scope: Scope
    actor: str | None
    correlation: str | None
    reason: str | None
    key: str | None
    arguments: bytes | None
    body: StoredType


class Erased(msgspec.Struct, frozen=True, gc=False):
    """Replaces an erased payload, which ``commitment`` (32 bytes) still binds."""

    commitment: bytes


ValueType = TypeVar("ValueType")


class once(Generic[ValueType]):  # noqa: N801
    """`functools.cached_property` without the lock that Python 3.11 takes for each value.

    Two threads may compute the same value at once; the value is a pure function of the instance.
    """

    def __init__(self, compute: Callable[[Any], ValueType]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> ValueType:
        value = self._compute(instance)
        # Later look-ups find the value in the instance first.
        instance.__dict__[self._name] = value
        return value


Held: TypeAlias = Callable[[int], Sequence[bytes]]
"""Returns the attachments of an event that have the given size, in order."""


class Event(msgspec.Struct, frozen=True, dict=True):
    """An event read back from the log.

    Holds the header, and either (salt, payload bytes) or, after an erasure, only the commitment.
    The payload is decoded on the first access to ``body`` or another part of it.
    """

    header: EventHeader
    salt: bytes | None
    payload_bytes: bytes | None
    erased: bytes | None = None

    def __repr__(self) -> str:
        notes = ""
        with suppress(Corrupt):
            named = {"actor": self.actor, "reason": self.reason}
            notes = "".join(f", {name}={text!r}" for name, text in named.items() if text)
        return f"Event({self.header!r}{notes})"

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the event as plain values, with its leaf hash and its body as stored.

        A body has all its fields, times in microseconds since 1970 UTC and bytes in hexadecimal;
        that of an erased event is None.

        Raises:
            Corrupt: the payload cannot be decoded.
        """
        header, body = self.header, self.body
        return {
            "seq": header.seq,
            "type": header.type,
            "version": header.version,
            "recorded": to_datetime(header.recorded).isoformat(),
            "batch": [header.first_seq, header.last_seq],
            "causation": self.causation,
            "scope": None if self.scope is None else dict(self.scope),
            "actor": self.actor,
            "correlation": self.correlation,
            "reason": self.reason,
            "leaf": self.leaf.hex(),
            "body": None if isinstance(body, Erased) else _plain_body(body),
        }

    def __reduce__(self) -> tuple[object, ...]:
        # The log stays in its process: a copy holds the attachments that the body names.
        of_size: Held | None = vars(self).get("held")
        sizes = set[int]() if of_size is None else set(_attached_sizes(self.body))
        attachments = (
            tuple(data for size in sorted(sizes) for data in of_size(size)) if of_size else ()
        )
        parts = (self.header, self.salt, self.payload_bytes, self.erased)
        return _copied_event, (parts, attachments)

    def attached(self, attachment: Attachment) -> bytes:
        """Return the bytes of an attachment that the body names, verified against their hash.

        Cost: a read, if the event is sealed.

        Args:
            attachment: a value of the body.

        Raises:
            NotFound: the event has no such attachment.
            Corrupt: its bytes are damaged.
        """
        parts = vars(self)
        hashed: Sequence[bytes] = parts.get("hashed", ())
        if len(hashed) == 1 and len(hashed[0]) == attachment.size:
            # The maker of the draft has hashed these bytes for the body, in this process.
            return hashed[0]
        of_size: Held | None = parts.get("held")
        candidates = () if of_size is None else of_size(attachment.size)
        return chosen(candidates, attachment, self.seq)

    @property
    def seq(self) -> int:
        return self.header.seq

    @property
    def type(self) -> str:
        return self.header.type

    @property
    def recorded(self) -> int:
        return self.header.recorded

    @once
    def commitment(self) -> bytes:
        """H(salt ‖ payload), recomputed from the payload unless that was erased."""
        if self.salt is None or self.payload_bytes is None:
            return self.erased or b""
        return commitment_of(self.salt, self.payload_bytes, self.seq)

    @once
    def leaf(self) -> bytes:
        """The event's leaf hash, from its header and commitment."""
        return leaf_of(_encode(self.header), self.commitment)

    @once
    def payload(self) -> Payload[msgspec.Raw] | None:
        """The decoded envelope, or None if the payload was erased."""
        if self.payload_bytes is None:
            return None
        try:
            return _PAYLOAD.decode(self.payload_bytes)
        except UNDECODABLE as error:
            raise Corrupt(
                f"The payload of event {self.seq} cannot be decoded: {error}",
                remedy="Run 'cerata file verify' on the file.",
            ) from error

    @once
    def scope(self) -> Scope | None:
        """The event's scope; None, which lies within no scope, if the payload was erased."""
        payload = self.payload
        return None if payload is None else payload.scope

    @once
    def actor(self) -> str | None:
        """The name of the person or program that wrote the event; None if not recorded."""
        return None if self.payload is None else self.payload.actor

    @property
    def correlation(self) -> str | None:
        """The id of the request or run that the event belongs to; None if not recorded."""
        return None if self.payload is None else self.payload.correlation

    @once
    def reason(self) -> str | None:
        """Why the event was written; None if not recorded."""
        return None if self.payload is None else self.payload.reason

    @once
    def body(self) -> "EventBody | Erased":
        """The typed body, with batch-local references lifted to seqs.

        The body of a kind or version that this process does not know is an `UnknownBody`.
        """
        header = self.header
        kind = _REGISTRY.get(header.type) or kind_named(header.type)
        if self.payload_bytes and kind is not None and kind.wire_version == header.version:
            pair = _DECODERS.get(kind) or decoders(kind)
            try:
                whole = pair.payload.decode(self.payload_bytes)
            except UNDECODABLE:
                # The decoding below reports the fault.
                pass
            else:
                # In one pass: callers that read a body mostly read these, too.
                parts = vars(self)
                parts["scope"] = whole.scope
                parts["actor"] = whole.actor
                parts["reason"] = whole.reason
                body = whole.body
                if pair.references is None or pair.references(body) is None:
                    return body
                return lifted_by(body, header.seq - header.index - 1)
        payload = self.payload
        if payload is None:
            return Erased(self.erased or b"")
        return _decode_body(header, bytes(payload.body))

    @property
    def causation(self) -> int | None:
        """Seq of the event that led to this event."""
        return lift(self.header.causation, self.header)


def _attached_sizes(value: object) -> Iterator[int]:
    if isinstance(value, Attachment):
        yield value.size
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _attached_sizes(getattr(value, name))
    elif isinstance(value, list | tuple | dict):
        for item in cast("Iterable[object]", value.values() if isinstance(value, dict) else value):
            yield from _attached_sizes(item)


def _plain_body(value: object) -> JsonValue:
    if isinstance(value, msgspec.Struct):
        return {name: _plain_body(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple | list):
        return [_plain_body(item) for item in cast("Sequence[object]", value)]
    return plain(value)


def _copied_event(parts: "tuple[Any, ...]", attachments: Sequence[bytes]) -> Event:
    """Rebuild an event from the state of its copy."""
    copied = Event(*parts)
    if attachments:
        vars(copied)["held"] = partial(attachments_of_size, attachments)
    return copied


def attachments_of_size(attachments: Sequence[bytes], size: int) -> Sequence[bytes]:
    """Return the attachments of ``size`` bytes."""
    return [data for data in attachments if len(data) == size]


def chosen(
    candidates: Sequence[bytes], attachment: Attachment, seq: int, where: str | None = None
) -> bytes:
    """Return the candidate that matches a body's attachment; ``where`` is the file of the event.

    Raises:
        NotFound: no candidate has the size.
        Corrupt: candidates have the size, but not the hash.
    """
    for data in candidates:
        if len(data) == attachment.size and hash_bytes(data) == attachment.hash:
            return data
    if any(len(data) == attachment.size for data in candidates):
        raise Corrupt(
            f"An attachment of event {seq:,} is damaged",
            where=where,
            remedy="Run 'cerata file verify' to see what is affected.",
        )
    raise NotFound(
        f"Event {seq:,} has no such attachment",
        remedy="Pass an Attachment from the body of this event.",
    )


UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of msgspec for bytes that are not a value of the type; invalid UTF-8 differs."""

_PAYLOAD = msgspec.msgpack.Decoder(Payload[msgspec.Raw])
_encode = msgspec.msgpack.Encoder().encode
_DECODERS: "dict[type[EventBody], Decoders]" = {}


def kind_named(name: str) -> type[EventBody] | None:
    """Return the class of the bodies of a type in this process, or None.

    The first event of a pack loads the module that registers its body.
    """
    kind = _REGISTRY.get(name)
    if kind is None and load_kind(name):
        kind = _REGISTRY.get(name)
    return kind


def lift(reference: int | None, header: EventHeader) -> int | None:
    """Convert a stored reference to a seq: −k is the k-th event of the header's batch."""
    if reference is None or reference > 0:
        return reference
    return header.first_seq - 1 - reference


class Decoders(NamedTuple):
    """The decoders of one kind of body: for the body alone, and for a payload with it."""

    body: "msgspec.msgpack.Decoder[EventBody]"
    payload: "msgspec.msgpack.Decoder[Payload[EventBody]]"
    references: "Callable[[EventBody], object] | None"
    """Returns the reference of a body, or a tuple of its references; None for a kind without."""


def decoders(kind: type[EventBody]) -> Decoders:
    """Return the decoders of a kind of body; both are built and cached on first use."""
    pair = _DECODERS.get(kind)
    if pair is None:
        whole = GenericAlias(Payload, kind)
        references = attrgetter(*kind.references) if kind.references else None
        built = msgspec.msgpack.Decoder(kind), msgspec.msgpack.Decoder(whole)
        pair = _DECODERS[kind] = Decoders(*built, references)
    return pair


def _decode_body(header: EventHeader, data: bytes) -> EventBody:
    """Decode a body by the header's type and version, lifting it and its references."""
    kind = kind_named(header.type)
    if kind is None or header.version > kind.wire_version:
        return UnknownBody(kind=header.type, kind_version=header.version, data=data)
    try:
        if header.version < kind.wire_version:
            data = _lifted(header, data, kind.wire_version)
        body = decoders(kind).body.decode(data)
    except UNDECODABLE:
        return UnknownBody(kind=header.type, kind_version=header.version, data=data)
    return lifted_by(body, header.first_seq - 1)


def lifted_by(body: EventBody, base: int) -> EventBody:
    """Return a body whose references −k are lifted to the seq ``base`` + k."""
    for name in body.references:
        value = getattr(body, name)
        if value is None:
            continue
        if isinstance(value, tuple):
            items = cast("tuple[int | Evidence, ...]", value)
            if items and any(reference_in(item) < 0 for item in items):
                lifted = tuple(_lifted_item(item, base) for item in items)
                body = msgspec.structs.replace(body, **{name: lifted})
        elif value < 0:
            body = msgspec.structs.replace(body, **{name: base - value})
    return body


def reference_in(item: "int | Evidence") -> int:
    """Return the seq, or −k, that an item of a tuple of references names."""
    return item.frame if isinstance(item, Evidence) else item


def _lifted_item(item: "int | Evidence", base: int) -> "int | Evidence":
    reference = reference_in(item)
    if reference > 0:
        return item
    seq = base - reference
    return msgspec.structs.replace(item, frame=seq) if isinstance(item, Evidence) else seq


def names_unread(header: EventHeader, body: UnknownBody) -> list[int]:
    """Return the seqs that a body of a later version names in fields known to this process.

    A guess, for warnings only: a later version may name further events in other fields.
    """
    kind = kind_named(body.kind)
    try:
        fields = body.fields()
    except UNDECODABLE:
        return []
    if kind is None or not isinstance(fields, dict):
        return []
    seqs: list[int] = []
    for name in kind.references:
        value: object = fields.get(name)
        # Evidence is stored as a list that starts with its frame.
        for item in cast("list[object]", value) if isinstance(value, list) else [value]:
            first = cast("list[object]", item)[:1] if isinstance(item, list) else [item]
            seqs += [lift(seq, header) or 0 for seq in first if type(seq) is int]
    return seqs


def named_by(body: EventBody) -> list[tuple[str, str, int]]:
    """Return a body's references: the field, the kind that it must name, and the seq."""
    named: list[tuple[str, str, int]] = []
    if type(body) is PutFrame and body.parent is None:
        return named
    for name, kind in body.references.items():
        value = getattr(body, name)
        if value is None:
            continue
        if isinstance(value, tuple):
            items = cast("tuple[int | Evidence, ...]", value)
            named += [(name, kind, reference_in(item)) for item in items]
        else:
            named.append((name, kind, value))
    return named
