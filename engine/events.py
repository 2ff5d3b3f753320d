"""Events: what can be said in the log, and the envelope around it.

Owns the typed bodies (one frozen Struct per kind of event), the registry from wire names to them,
`Draft` (an event about to be appended) and `Event` (one read back). Leaves out bytes: `codec`
turns these into deterministic MessagePack and back.

A new kind of event is a subclass of `EventBody` with a wire name::

    @event("spending")
    class Spending(EventBody, frozen=True):
        cents: int

Unknown kinds are carried unchanged and read back as `UnknownBody`. When a body's fields change, its
version goes up, and an `upcaster` lifts what is stored in the old one as it is read::

    @event("spending", version=2)
    class Spending(EventBody, frozen=True):
        cents: int
        currency: str

    @upcaster("spending", 1)
    def with_currency(fields):
        return {**fields, "currency": "EUR"}
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import GenericAlias
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeAlias, TypeVar, cast

import msgspec

from .errors import Corrupt, NotFound, Unsupported
from .integrity import commitment_of, hash_bytes, leaf_of

JsonValue: TypeAlias = (
    "None | bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue]"
)
"""What metadata may hold: JSON's values; maps are stored with their names in order."""

ScopeValue: TypeAlias = str | int | bool
Scope: TypeAlias = tuple[tuple[str, ScopeValue], ...]
"""An open, ordered map of names to values; ``tenant`` comes first and is never absent."""

DEFAULT_SCOPE: Scope = (("tenant", "default"),)


class Attachment(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Large bytes that stand beside a payload and enter it by hash.

    ``hash`` is BLAKE3-256 of the bytes, ``size`` their count.
    """

    hash: bytes
    size: int


TOKENS_SUFFIX: Final = "/maxsim/i1"
"""How the name of a space of token vectors ends, and of no other. On disk: never change it."""


def is_token_space(space: str) -> bool:
    """Tell whether an embedding in a space is a matrix: a vector for each token of a text."""
    return space.endswith(TOKENS_SUFFIX)


class Embedding(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A vector in a space: ``dtype`` is ``f4`` or ``i1``, little-endian, ``dimension`` values.

    In a space of token vectors it is as many of them, end to end, as its bytes hold.
    """

    space: str
    dtype: str
    dimension: int
    data: Attachment


class EventBody(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Base of every typed event body; `event` gives a subclass its wire name.

    ``references`` lists the fields that hold the seq of another event, or a tuple of such or of
    `Evidence`, with the wire name of the kind it must have. A negative reference −k means the k-th
    event of the same batch.
    """

    wire_name: ClassVar[str] = ""
    wire_version: ClassVar[int] = 1
    references: ClassVar[Mapping[str, str]] = {}


BodyType = TypeVar("BodyType", bound=type[EventBody])

_REGISTRY: dict[str, type[EventBody]] = {}


def event(
    name: str, *, version: int = 1, references: Mapping[str, str] | None = None
) -> Callable[[BodyType], BodyType]:
    """Register the decorated `EventBody` under a wire name.

    Raises:
        TypeError: another class already has the name.
    """

    def register(body: BodyType) -> BodyType:
        known = _REGISTRY.get(name)
        if known is not None and known.__qualname__ != body.__qualname__:
            raise TypeError(f"the event name {name!r} is taken by {known.__qualname__}")
        body.wire_name = name
        body.wire_version = version
        body.references = dict(references or {})
        _REGISTRY[name] = body
        return body

    return register


Fields: TypeAlias = dict[str, Any]
"""A body's fields by name, as they are stored."""

Upcast: TypeAlias = Callable[[Fields], Fields]
UpcastType = TypeVar("UpcastType", bound=Upcast)

_UPCASTERS: dict[tuple[str, int], Upcast] = {}


def upcaster(name: str, version: int) -> Callable[[UpcastType], UpcastType]:
    """Register the decorated function: it lifts a body of ``version`` to the next one.

    It is given the fields as they are stored and returns those of the next version; it must be
    pure, since what it returns is folded. Stored bytes never change. A version without one is
    read as it is. Who changes one raises the versions of the projections that it feeds.

    Raises:
        TypeError: another function already lifts this version.
    """

    def register(lift_fields: UpcastType) -> UpcastType:
        known = _UPCASTERS.get((name, version))
        if known is not None and known.__qualname__ != lift_fields.__qualname__:
            raise TypeError(f"version {version} of {name!r} is lifted by {known.__qualname__}")
        _UPCASTERS[name, version] = lift_fields
        return lift_fields

    return register


def _lifted(header: "EventHeader", data: bytes, version: int) -> bytes:
    """Return a stored body as one of ``version``.

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
                remedy="Mend the upcaster; it must take every body of its version.",
            ) from error
    return msgspec.msgpack.encode(fields)


class UnknownBody(EventBody, frozen=True, kw_only=True):
    """The body of a kind of event that this process does not know, carried unchanged."""

    kind: str
    kind_version: int
    data: bytes

    def fields(self) -> Mapping[str, JsonValue]:
        """Return the body's fields by name."""
        decoded: Mapping[str, JsonValue] = msgspec.msgpack.decode(self.data)
        return decoded


def is_known(kind: str, version: int) -> bool:
    """Return whether this process reads bodies of a type and version."""
    body = _REGISTRY.get(kind)
    return body is not None and version <= body.wire_version


@event("putFrame", references={"parent": "putFrame"})
class PutFrame(EventBody, frozen=True, kw_only=True):
    """A frame comes into being; its id is the seq of this event.

    Exactly one of ``text`` and ``blob`` is the content; a document that was split has an empty
    text and ``chunk_count`` chunks, whose texts in order are its own. ``content_hash`` is 16
    bytes of BLAKE3 over the whole content. Times are microseconds since 1970 UTC.
    """

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
    search_text: str | None = None
    content_hash: bytes | None = None
    embedding: Embedding | None = None
    token_embedding: Embedding | None = None

    @property
    def embeddings(self) -> tuple[Embedding, ...]:
        """What there is of a vector, and of a vector for each token."""
        both = self.embedding, self.token_embedding
        return tuple(one for one in both if one is not None)


@event("deleteFrame", references={"frame": "putFrame"})
class DeleteFrame(EventBody, frozen=True, kw_only=True):
    """A frame, and the chunks below it, are no longer current."""

    frame: int


@event("supersedeFrame", references={"old": "putFrame", "new": "putFrame"})
class SupersedeFrame(EventBody, frozen=True, kw_only=True):
    """``new`` takes the place of ``old``; the old one stays readable in the past."""

    old: int
    new: int


@event("putEmbedding", references={"frame": "putFrame"})
class PutEmbedding(EventBody, frozen=True, kw_only=True):
    """A vector for a frame that is already there, as re-embedding makes them, or its tokens'."""

    frame: int
    embedding: Embedding

    @property
    def embeddings(self) -> tuple[Embedding, ...]:
        """As of a `PutFrame`: what it has of them."""
        return (self.embedding,)


@event("putTag")
class PutTag(EventBody, frozen=True, kw_only=True):
    """A name for the end of a batch; a name starts with a letter and is never used again."""

    tag: str
    at: int


class Evidence(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Where a fact is said: a frame, and of its text the UTF-8 bytes [start, end).

    ``quote`` is 16 bytes of BLAKE3 over these bytes, keyed by the salt of the frame's event: they
    show whether the text there is the text that was read, until the frame is erased.
    """

    frame: int
    start: int | None = None
    end: int | None = None
    quote: bytes | None = None


@event("assertFact", references={"evidence": "putFrame"})
class AssertFact(EventBody, frozen=True, kw_only=True):
    """A fact is held true for [valid_from, valid_to), from when it is recorded.

    The object is one typed value: ``object_kind`` is its type's name, ``object`` the value. Without
    ``valid_from`` it is true from when it is recorded, without ``valid_to`` until further notice.
    ``assumptions`` name what a model took for granted.
    """

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


@event("retractFact", references={"fact": "assertFact"})
class RetractFact(EventBody, frozen=True, kw_only=True):
    """A fact is no longer known from here on; its history stays."""

    fact: int


@event("putPredicate")
class PutPredicate(EventBody, frozen=True, kw_only=True):
    """Whether a predicate has one value at a time, from here on."""

    predicate: str
    functional: bool


@event("putEntity")
class PutEntity(EventBody, frozen=True, kw_only=True):
    """An entity has this kind, and these names besides those that it has already."""

    entity: str
    kind: str | None = None
    aliases: tuple[str, ...] = ()


@event("mergeEntities")
class MergeEntities(EventBody, frozen=True, kw_only=True):
    """``entity`` is the same as ``into``, under whose name both are read from here on."""

    entity: str
    into: str


@event("unmergeEntities", references={"merge": "mergeEntities"})
class UnmergeEntities(EventBody, frozen=True, kw_only=True):
    """A merge does not hold from here on."""

    merge: int


@event("splitEntity", references={"facts": "assertFact"})
class SplitEntity(EventBody, frozen=True, kw_only=True):
    """Where these facts name ``entity`` they mean ``into``, from here on."""

    entity: str
    into: str
    facts: tuple[int, ...]


@event("unsplitEntity", references={"split": "splitEntity"})
class UnsplitEntity(EventBody, frozen=True, kw_only=True):
    """A split does not hold from here on."""

    split: int


@event("extractFacts", references={"frame": "putFrame"})
class ExtractFacts(EventBody, frozen=True, kw_only=True):
    """An extractor was run on a frame's text, and found so many facts: the events it is cause of.

    What it found is recorded, so nobody ever runs it again to read them.
    """

    frame: int
    extractor: str
    extractor_version: str
    count: int


@event("linkFacts", references={"fact": "assertFact", "target": "assertFact", "frame": "putFrame"})
class LinkFacts(EventBody, frozen=True, kw_only=True):
    """A fact stands in a relation to another fact, ``target``, or to a frame: one of the two.

    ``kind`` is assumes, contradicts, depends_on, derived_from, generated_from, invalidates,
    supersedes, supports or validated_by.
    """

    fact: int
    kind: str
    target: int | None = None
    frame: int | None = None


@event("unlinkFacts", references={"link": "linkFacts"})
class UnlinkFacts(EventBody, frozen=True, kw_only=True):
    """A link does not hold from here on."""

    link: int


@event(
    "recall",
    references={
        "frames": "putFrame",
        "facts": "assertFact",
        "omitted": "putFrame",
        "omitted_facts": "assertFact",
    },
)
class RecallContext(EventBody, frozen=True, kw_only=True):
    """A context was shown to a model: what was asked as of which event, and what it had.

    ``query`` is as asked; of the full language the tree, written out. ``tokenizer``, ``profile``
    and ``profile_version`` say by what it was made; ``where``, the filter as JSON, ``form`` and the
    two budgets how. ``frames`` and ``facts`` were shown; what was ``omitted`` was found and did not
    fit. ``context`` is H of the salts of ``frames``, of those of ``facts``, and of the text in
    UTF-8; it is 32 zero bytes if a salt was gone. ``policy``, ``policy_version``, ``order`` and
    ``framing`` say how it was told; None where it was before there were policies. ``mode`` and
    ``space`` are those of a search by vectors, and ``vector`` the question's: float32,
    little-endian. ``tokens`` are its token vectors in ``tokens_space``, int8, by which with
    ``rerank`` the best were put in order.
    """

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
    rerank: bool = False
    approximate: bool = False
    frames: tuple[int, ...] = ()
    facts: tuple[int, ...] = ()
    omitted: tuple[int, ...] = ()
    omitted_facts: tuple[int, ...] = ()


@event("access", references={"frames": "putFrame"})
class AccessFrames(EventBody, frozen=True, kw_only=True):
    """Frames were used: opened, cited, or whatever the caller counts as that."""

    frames: tuple[int, ...]


@event("importBatch", references={"after": "importBatch"})
class ImportBatch(EventBody, frozen=True, kw_only=True):
    """The events after this one in the batch were imported; it alone has their idempotency key.

    ``dialect`` names what was imported, and ``count`` how many lines of it. The key is a hash of
    these lines and of those of the importBatch ``after``. So this event is erased with any event
    of its batch, and with that importBatch.
    """

    dialect: str
    count: int | None = None
    after: int | None = None


@event("gap")
class Gap(EventBody, frozen=True, kw_only=True):
    """Stands for an event that was lost, so that later ids stay; ``repair`` writes it."""

    reason: str


class Draft(msgspec.Struct, frozen=True, gc=False):
    """An event about to be appended: a body and what its envelope adds.

    ``causation`` is the seq of the event that led to this one, or −k within the batch.
    ``attachments`` are the bytes that the body's `Attachment` fields name by hash, in order.
    ``salt`` is 16 random bytes; leave it None, and the store draws one.
    """

    body: EventBody
    scope: Scope = DEFAULT_SCOPE
    actor: str | None = None
    correlation: str | None = None
    causation: int | None = None
    attachments: tuple[bytes, ...] = ()
    salt: bytes | None = None


class EventHeader(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What is never erased of an event: it is part of the leaf, and holds no personal data.

    ``recorded`` is microseconds since 1970 UTC, equal within a batch, strictly increasing from
    batch to batch; ``clock`` is the raw clock where it differed. ``index`` is from 0.
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
    """What can be erased of an event; ``body`` is the body's own MessagePack, or what it says."""

    scope: Scope
    actor: str | None
    correlation: str | None
    key: str | None
    arguments: bytes | None
    body: StoredType


class Erased(msgspec.Struct, frozen=True, gc=False):
    """Stands where a payload was erased; ``commitment`` still binds what it was (32 bytes)."""

    commitment: bytes


ValueType = TypeVar("ValueType")


class once(Generic[ValueType]):  # noqa: N801
    """`functools.cached_property` without the lock that Python 3.11 takes for each value.

    Two threads may compute the same value at once; it is a pure function of the instance.
    """

    def __init__(self, compute: Callable[[Any], ValueType]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> ValueType:
        value = self._compute(instance)
        # From here on the instance's own value is found first.
        instance.__dict__[self._name] = value
        return value


Held: TypeAlias = Callable[[int], Sequence[bytes]]
"""Returns the attachments of an event that have a size, in their order."""


class Event(msgspec.Struct, frozen=True, dict=True):
    """One event read back from the log.

    Holds the header, and either (salt, payload bytes) or, after an erasure, the commitment alone.
    Decoding waits until ``body`` or another part of the payload is asked for.
    """

    header: EventHeader
    salt: bytes | None
    payload_bytes: bytes | None
    erased: bytes | None = None

    def __repr__(self) -> str:
        return f"Event({self.header!r})"

    def __reduce__(self) -> tuple[object, ...]:
        # The log stays with its process: a copy has the attachments that the body names.
        held: Held | None = vars(self).get("held")
        sizes = set[int]() if held is None else set(_attached_sizes(self.body))
        attachments = tuple(data for size in sorted(sizes) for data in held(size)) if held else ()
        parts = (self.header, self.salt, self.payload_bytes, self.erased)
        return _copied_event, (parts, attachments)

    def attached(self, attachment: Attachment) -> bytes:
        """Return the bytes that the body names, verified against their hash.

        Cost: a read, where the event is sealed.

        Raises:
            NotFound: the event has no such attachment. Corrupt: its bytes are damaged.
        """
        held: Held | None = vars(self).get("held")
        candidates = () if held is None else held(attachment.size)
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
        """H(salt ‖ payload), recomputed from the payload wherever it is still there."""
        if self.salt is None or self.payload_bytes is None:
            return self.erased or b""
        return commitment_of(self.salt, self.payload_bytes)

    @once
    def leaf(self) -> bytes:
        """The event's leaf hash, from its header and commitment."""
        return leaf_of(_encode(self.header), self.commitment)

    @once
    def payload(self) -> Payload[msgspec.Raw] | None:
        """The decoded envelope, or None where the payload was erased."""
        if self.payload_bytes is None:
            return None
        try:
            return _PAYLOAD.decode(self.payload_bytes)
        except UNDECODABLE as error:
            raise Corrupt(
                f"The payload of event {self.seq} cannot be decoded: {error}",
                remedy="Run 'cerata verify' on the file.",
            ) from error

    @once
    def scope(self) -> Scope | None:
        """Where the event was written; None, which lies within no scope, if it was erased."""
        payload = self.payload
        return None if payload is None else payload.scope

    @once
    def body(self) -> "EventBody | Erased":
        """The typed body, with batch-local references lifted to seqs.

        A kind or version that this process does not know comes back as `UnknownBody`.
        """
        header = self.header
        kind = _REGISTRY.get(header.type)
        if self.payload_bytes and kind is not None and kind.wire_version == header.version:
            try:
                whole = decoders(kind).payload.decode(self.payload_bytes)
            except UNDECODABLE:
                # What is wrong with it is told below.
                pass
            else:
                # Both in one pass: who asks for a body mostly asks for the scope too.
                vars(self)["scope"] = whole.scope
                return lifted_by(whole.body, header.first_seq - 1)
        payload = self.payload
        if payload is None:
            return Erased(self.erased or b"")
        return _decode_body(header, bytes(payload.body))

    @property
    def causation(self) -> int | None:
        """Seq of the event that led to this one."""
        return lift(self.header.causation, self.header)


def _attached_sizes(value: object) -> Iterator[int]:
    """Yield the sizes of the attachments that a body names, wherever in it."""
    if isinstance(value, Attachment):
        yield value.size
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _attached_sizes(getattr(value, name))
    elif isinstance(value, list | tuple | dict):
        for item in cast("Iterable[object]", value.values() if isinstance(value, dict) else value):
            yield from _attached_sizes(item)


def _copied_event(parts: "tuple[Any, ...]", attachments: Sequence[bytes]) -> Event:
    """Make an event of what its copy was given."""
    copied = Event(*parts)
    if attachments:
        vars(copied)["held"] = partial(_of_size, attachments)
    return copied


def _of_size(attachments: Sequence[bytes], size: int) -> Sequence[bytes]:
    return [data for data in attachments if len(data) == size]


def chosen(
    candidates: Sequence[bytes], attachment: Attachment, seq: int, where: str | None = None
) -> bytes:
    """Return that of an event's attachments which a body names; ``where`` is its file.

    Raises:
        NotFound: it is not among them. Corrupt: its bytes are damaged.
    """
    for data in candidates:
        if len(data) == attachment.size and hash_bytes(data) == attachment.hash:
            return data
    if any(len(data) == attachment.size for data in candidates):
        raise Corrupt(
            f"An attachment of event {seq:,} is damaged",
            where=where,
            remedy="Run 'cerata verify' to see what is affected.",
        )
    raise NotFound(
        f"Event {seq:,} has no such attachment",
        remedy="Pass an Attachment that the event's own body has.",
    )


UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises on bytes that are no value of the wanted type: for text, its own error."""

_PAYLOAD = msgspec.msgpack.Decoder(Payload[msgspec.Raw])
_encode = msgspec.msgpack.Encoder().encode
_DECODERS: "dict[type[EventBody], Decoders]" = {}


def lift(reference: int | None, header: EventHeader) -> int | None:
    """Turn a stored reference into a seq: −k is the k-th event of the header's own batch."""
    if reference is None or reference > 0:
        return reference
    return header.first_seq - 1 - reference


class Decoders(NamedTuple):
    """The decoders of one kind of body: of the body alone, and of a payload with it."""

    body: "msgspec.msgpack.Decoder[EventBody]"
    payload: "msgspec.msgpack.Decoder[Payload[EventBody]]"


def decoders(kind: type[EventBody]) -> Decoders:
    """Return the decoders of one kind of body; made once, both when the first is asked for."""
    found = _DECODERS.get(kind)
    if found is None:
        whole = GenericAlias(Payload, kind)
        made = msgspec.msgpack.Decoder(kind), msgspec.msgpack.Decoder(whole)
        found = _DECODERS[kind] = Decoders(*made)
    return found


def _decode_body(header: EventHeader, data: bytes) -> EventBody:
    """Decode a body by the header's type and version, lifting it and its references."""
    kind = _REGISTRY.get(header.type)
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
    """Return the seqs that a body of a later version names in the fields that this process knows.

    A guess, for warnings alone: a later version may name others elsewhere.
    """
    kind = _REGISTRY.get(body.kind)
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
    """Return what a body names of other events: the field, the kind it must have, and the seq."""
    found: list[tuple[str, str, int]] = []
    for name, kind in body.references.items():
        value = getattr(body, name)
        if value is None:
            continue
        if isinstance(value, tuple):
            items = cast("tuple[int | Evidence, ...]", value)
            found += [(name, kind, reference_in(item)) for item in items]
        else:
            found.append((name, kind, value))
    return found
