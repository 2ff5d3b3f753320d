"""From drafts to bytes: everything about an event that can be done before the lock is taken.

Owns validation of values against the limits, the deterministic MessagePack of payloads, and
`Prepared`, a batch that is encoded, salted and committed to, lacking only its seqs and time.
Leaves out decoding of single events (`events`) and where batches are stored.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from .errors import Corrupt, InvalidInput
from .events import (
    DEFAULT_SCOPE,
    Draft,
    Embedding,
    EventBody,
    Payload,
    PutFrame,
    Scope,
    UnknownBody,
)
from .integrity import SALT_SIZE, hash_bytes
from .limits import (
    BATCH_EVENTS_MAX,
    BLOB_SIZE_MAX,
    EMBEDDING_DIMENSION_MAX,
    EVENT_ATTACHMENTS_MAX,
    IDEMPOTENCY_KEY_SIZE_MAX,
    NAME_SIZE_MAX,
    NESTING_MAX,
    SCOPE_NAMES_MAX,
    STRING_SIZE_MAX,
)
from .storage import Buffer


class WireEvent(msgspec.Struct, frozen=True, array_like=True):
    """An event as a ring record holds it; seq, time and place in the batch are the record's.

    ``salt`` is None where the payload was erased: ``payload`` is then the commitment.
    """

    type: str
    version: int
    causation: int | None
    salt: bytes | None
    payload: bytes
    attachments: tuple[bytes, ...] = ()


class Prepared(msgspec.Struct, frozen=True):
    """A batch ready to be written: its events and about how many bytes they take."""

    events: tuple[WireEvent, ...]
    size: int
    key: str | None
    arguments: bytes | None
    tenant: str


_encode = msgspec.msgpack.Encoder(order="deterministic").encode

_DTYPE_SIZES = {"f4": 4, "i1": 1}


def prepare(
    drafts: Sequence[Draft],
    random_bytes: Callable[[int], bytes],
    *,
    key: str | None = None,
    arguments: bytes | None = None,
) -> Prepared:
    """Encode and salt a batch; one random draw of 16 bytes an event.

    ``key`` is the batch's idempotency key and ``arguments`` the hash of what the caller asked
    for; both sit on the first event.

    Raises:
        InvalidInput: a value that cannot be stored; the message names the event and the field.
    """
    if not drafts:
        raise InvalidInput("A batch needs at least one event")
    if len(drafts) > BATCH_EVENTS_MAX:
        raise InvalidInput(
            f"A batch of {len(drafts):,} events is over the limit of {BATCH_EVENTS_MAX:,}",
            remedy="Append it in several batches.",
        )
    if key is not None:
        _check_string(key, "the idempotency key", IDEMPOTENCY_KEY_SIZE_MAX)
        if not key:
            raise InvalidInput("The idempotency key is empty", remedy="Pass None for no key.")
    salts = random_bytes(SALT_SIZE * len(drafts))
    events: list[WireEvent] = []
    size = 0
    for index, draft in enumerate(drafts):
        try:
            payload = (
                _encode_payload(draft, key, arguments)
                if index == 0
                else _encode_payload(draft, None, None)
            )
        except InvalidInput as error:
            raise InvalidInput(
                error.what, where=f"event {index + 1} of the batch", remedy=error.remedy
            ) from error
        name, version = _kind_of(draft.body)
        salt = salts[SALT_SIZE * index : SALT_SIZE * (index + 1)]
        events.append(WireEvent(name, version, draft.causation, salt, payload, draft.attachments))
        size += len(payload) + SALT_SIZE + 32 + sum(map(len, draft.attachments))
    return Prepared(tuple(events), size, key, arguments, tenant_of(drafts[0].scope))


def tenant_of(scope: Scope) -> str:
    """Return the scope's tenant, its first name."""
    return str(scope[0][1])


def _kind_of(body: EventBody) -> tuple[str, int]:
    if isinstance(body, UnknownBody):
        return body.kind, body.kind_version
    if not body.wire_name:
        raise InvalidInput(
            f"{type(body).__name__} has no wire name", remedy="Decorate it with @event(NAME)."
        )
    return body.wire_name, body.wire_version


def _encode_payload(draft: Draft, key: str | None, arguments: bytes | None) -> bytes:
    _check_scope(draft.scope)
    body = draft.body
    _check_body(body)
    _check_attachments(draft)
    try:
        data = body.data if isinstance(body, UnknownBody) else _encode(body)
        payload = _encode(
            Payload(draft.scope, draft.actor, draft.correlation, key, arguments, msgspec.Raw(data))
        )
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"A string is not valid Unicode: {error.reason} at character {error.start}",
            remedy="Decode it with errors='replace', or store bytes.",
        ) from error
    except (TypeError, OverflowError, ValueError, RecursionError) as error:
        raise InvalidInput(f"A value cannot be stored: {error}") from error
    if len(payload) > STRING_SIZE_MAX:
        # Only a payload this large can hold a string over the limit, or a sum of many below it.
        _check_long_strings(body)
    return payload


def _check_body(body: EventBody) -> None:
    """Check what msgspec does not: nesting, finite numbers, dimensions."""
    if isinstance(body, PutFrame):
        if body.metadata:
            _check_nested(body.metadata, "metadata", 1)
        if body.embedding is not None:
            _check_embedding(body.embedding)
        return
    if isinstance(body, UnknownBody):
        return
    for name in body.__struct_fields__:
        value: object = getattr(body, name)
        if isinstance(value, Embedding):
            _check_embedding(value)
        elif isinstance(value, float | dict | list | tuple):
            _check_nested(value, name, 1)


def _check_nested(value: object, name: str, depth: int) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(f"{name} holds {value}, which JSON cannot", remedy="Use None.")
        return
    if not isinstance(value, dict | list | tuple):
        return
    if depth > NESTING_MAX:
        raise InvalidInput(f"{name} is nested deeper than {NESTING_MAX} levels")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise InvalidInput(f"{name} has the key {key!r}, which is not a string")
            _check_nested(item, name, depth + 1)
        return
    for item in value:
        _check_nested(item, name, depth + 1)


def _check_embedding(embedding: Embedding) -> None:
    item_size = _DTYPE_SIZES.get(embedding.dtype)
    if item_size is None:
        raise InvalidInput(
            f"The embedding's dtype {embedding.dtype!r} is not known", remedy="Use 'f4' or 'i1'."
        )
    if not 0 < embedding.dimension <= EMBEDDING_DIMENSION_MAX:
        raise InvalidInput(
            f"An embedding of {embedding.dimension:,} dimensions; "
            f"1 to {EMBEDDING_DIMENSION_MAX:,} can be stored"
        )
    if embedding.data.size != item_size * embedding.dimension:
        raise InvalidInput(
            f"The embedding's {embedding.data.size:,} bytes are not "
            f"{embedding.dimension:,} values of {item_size} bytes"
        )


def _check_attachments(draft: Draft) -> None:
    if len(draft.attachments) > EVENT_ATTACHMENTS_MAX:
        raise InvalidInput(
            f"An event with {len(draft.attachments)} attachments; "
            f"the limit is {EVENT_ATTACHMENTS_MAX}"
        )
    for data in draft.attachments:
        if len(data) > BLOB_SIZE_MAX:
            raise InvalidInput(
                f"An attachment of {len(data):,} bytes is over the limit of {BLOB_SIZE_MAX:,}",
                remedy="Split it into several frames.",
            )


def _check_scope(scope: Scope) -> None:
    if not scope or scope[0][0] != "tenant":
        raise InvalidInput("A scope must start with 'tenant'")
    if scope is DEFAULT_SCOPE:
        return
    if len(scope) > SCOPE_NAMES_MAX:
        raise InvalidInput(f"A scope of {len(scope)} names; the limit is {SCOPE_NAMES_MAX}")
    names = [name for name, _ in scope]
    if len(set(names)) != len(names):
        raise InvalidInput("A scope has the same name twice")
    for name, value in scope:
        _check_string(name, "a scope name", NAME_SIZE_MAX)
        if not isinstance(value, str | int):
            raise InvalidInput(f"The scope's {name!r} must be a string, a number or a bool")


def _check_string(value: object, name: str, limit: int) -> None:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a string, not {type(value).__name__}")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{name} is not valid Unicode: {error.reason}") from error
    if size > limit:
        raise InvalidInput(f"{name} takes {size:,} bytes; the limit is {limit:,}")


def _check_long_strings(value: object) -> None:
    if isinstance(value, str):
        if len(value) > STRING_SIZE_MAX or len(value.encode()) > STRING_SIZE_MAX:
            raise InvalidInput(
                f"A string of {len(value):,} characters is over the limit of "
                f"{STRING_SIZE_MAX:,} bytes",
                remedy="Split it, or store it as bytes.",
            )
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _check_long_strings(key)
            _check_long_strings(item)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            _check_long_strings(getattr(value, name))
    elif isinstance(value, list | tuple):
        for item in value:
            _check_long_strings(item)


class SpillRef(msgspec.Struct, frozen=True, array_like=True):
    """Names the extent that holds a large batch's events: file offset and body bytes."""

    offset: int
    length: int


class WireBatch(msgspec.Struct, frozen=True, array_like=True):
    """The MessagePack value in a record's body: time, and the events or where they stand."""

    recorded: int
    clock: int | None
    events: tuple[WireEvent, ...] | None
    spill: SpillRef | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch read back or just written: its place in the log and its events.

    ``events`` is empty where a spill holds them.
    """

    first_seq: int
    count: int
    recorded: int
    clock: int | None
    events: tuple[WireEvent, ...]
    spill: SpillRef | None = None

    @property
    def last_seq(self) -> int:
        return self.first_seq + self.count - 1


_BATCH = msgspec.msgpack.Decoder(WireBatch)
encode_content = _encode


def decode_content(first_seq: int, count: int, content: Buffer, offset: int) -> Batch:
    """Decode the MessagePack value of a verified record. Raises `Corrupt`."""
    try:
        wire = _BATCH.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Corrupt(f"A ring record cannot be decoded: {error}", offset=offset) from error
    if (wire.events is None) == (wire.spill is None):
        raise Corrupt("A ring record has no events or has them twice", offset=offset)
    if wire.events is not None and len(wire.events) != count:
        raise Corrupt("A ring record has another number of events than it says", offset=offset)
    return Batch(first_seq, count, wire.recorded, wire.clock, wire.events or (), wire.spill)


def key_hash(tenant: str, key: str) -> int:
    """Return the u64 by which an idempotency key is looked up within its tenant."""
    return int.from_bytes(hash_bytes(_encode([tenant, key]))[:8], "little")
