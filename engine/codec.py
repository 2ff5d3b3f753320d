"""From drafts to bytes: all work on an event that precedes the lock.

Owns the deterministic MessagePack of payloads, and `Prepared`, a batch that is encoded, salted and
committed to, and lacks only its seqs and time. Leaves out the checks of values
(`draft_validation`), the decoding of single events (`events`) and the storage of batches.
"""

from collections.abc import Callable, Sequence

import msgspec

from .arguments import expect_type
from .disk.storage import Buffer
from .draft_validation import (
    check_attachments,
    check_body,
    check_envelope,
    check_frame_widths,
    check_integer,
    check_key,
    check_long_strings,
    check_metadata,
    check_scope,
    check_string,
    check_widths,
)
from .errors import Corrupt, InvalidInput
from .events import (
    DEFAULT_SCOPE,
    UNDECODABLE,
    Draft,
    EventBody,
    Payload,
    PutFrame,
    Scope,
    ScopeValue,
    UnknownBody,
    decoders,
)
from .integrity import SALT_SIZE, SEED_SIZE, derived_salts, hash_bytes
from .json_value import exact_or_fail
from .limits import BATCH_EVENTS_MAX, BLOB_SIZE_MAX, NAME_SIZE_MAX, RECORDED_MAX, STRING_SIZE_MAX
from .salted_hashes import salted_arguments


class WireEvent(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """An event in a ring record, which holds its seq, time and index in the batch.

    ``salt`` is None if the payload was erased: ``payload`` is then the commitment.
    """

    type: str
    version: int
    causation: int | None
    salt: bytes | None
    payload: bytes
    attachments: tuple[bytes, ...] = ()


class Prepared(msgspec.Struct, frozen=True):
    """A batch ready to be written: its events, their drafts, and an upper bound of their bytes."""

    events: tuple[WireEvent, ...]
    size: int
    key: str | None
    arguments: bytes | None
    tenant: ScopeValue
    drafts: Sequence[Draft] = ()
    seed: bytes | None = None
    """The seed of the events' salts; None if they were drawn one by one."""


_encode = msgspec.msgpack.Encoder(enc_hook=exact_or_fail, order="deterministic").encode

SEEDED_EVENTS_MIN = 4
"""Events of a batch whose salts come from one seed; it takes the space of two salts."""

_EVENT_OVERHEAD = 48
_ATTACHMENT_OVERHEAD = 5
"""Upper bounds of MessagePack's overhead per event (type, payload, salt) and per attachment."""


def prepare(
    drafts: Sequence[Draft],
    random_bytes: Callable[[int], bytes],
    *,
    payloads: Sequence[bytes] | None = None,
    key: str | None = None,
    arguments: bytes | None = None,
) -> Prepared:
    """Encode and salt a batch; one random draw gives all missing salts.

    The ``size`` of the result is an upper bound of the batch's bytes in a ring record. ``payloads``
    are those of the drafts, if `encode_payloads` has encoded them already.

    ``key`` is the batch's idempotency key and ``arguments`` the hash of the call's arguments; the
    first event stores both, the hash bound to the salts of the batch.

    Raises:
        InvalidInput: a value cannot be stored; the message names the event and the field.
    """
    if not drafts:
        raise InvalidInput("A batch needs at least one event", remedy="Pass one draft or more.")
    if len(drafts) > BATCH_EVENTS_MAX:
        raise InvalidInput(
            f"A batch of {len(drafts):,} events is over the limit of {BATCH_EVENTS_MAX:,}",
            remedy="Append it in several batches.",
        )
    if arguments is not None:
        remedy = "Pass 16 bytes or more of a hash, or None."
        expect_type("arguments", arguments, bytes, "a hash in bytes", remedy)
    if key is not None:
        check_key(key)
    seed = None
    if len(drafts) >= SEEDED_EVENTS_MIN and all(draft.salt is None for draft in drafts):
        seed = random_bytes(SEED_SIZE)
        salts = seeded_salts(seed, len(drafts))
    else:
        salts = salts_of(drafts, random_bytes)
    salted = None if arguments is None else salted_arguments(arguments, salts)
    if payloads is None:
        payloads = encode_payloads(drafts, key=key, arguments=salted)
    elif key is not None or arguments is not None:
        payloads = [_encode_payload(drafts[0], key, salted), *payloads[1:]]
    events: list[WireEvent] = []
    size = 0 if seed is None else SEED_SIZE
    kind: type[EventBody] | None = None
    name, version = "", 0
    for draft, payload, salt in zip(drafts, payloads, salts, strict=True):
        body = draft.body
        if type(body) is not kind or kind is UnknownBody:
            kind = type(body)
            name, version = kind_of(body)
        attachments = draft.attachments
        events.append(WireEvent(name, version, draft.causation, salt, payload, attachments))
        # An upper bound, never an estimate: a record that does not fit its ring must be a spill.
        size += _EVENT_OVERHEAD + 4 * len(name) + len(payload)
        for data in attachments:
            size += len(data) + _ATTACHMENT_OVERHEAD
    tenant = tenant_of(drafts[0].scope)
    return Prepared(tuple(events), size, key, arguments, tenant, drafts, seed)


def seeded_salts(seed: bytes, count: int) -> list[bytes]:
    """Return the salts of a batch of ``count`` events with this seed."""
    salts = derived_salts(seed, 0, count)
    return [salts[at : at + SALT_SIZE] for at in range(0, len(salts), SALT_SIZE)]


def salts_of(drafts: Sequence[Draft], random_bytes: Callable[[int], bytes]) -> list[bytes]:
    """Return the salts of drafts; one draw gives all missing salts.

    Raises:
        InvalidInput: a draft has a salt that is not 16 bytes.
    """
    salts: list[bytes | None] = []
    for draft in drafts:
        salts.append(draft.salt)
    drawn = random_bytes(SALT_SIZE * salts.count(None))
    if salts == [None] and len(drawn) == SALT_SIZE:
        return [drawn]
    fresh = [drawn[at : at + SALT_SIZE] for at in range(0, len(drawn), SALT_SIZE)]
    if len(fresh) == len(salts):
        return fresh
    for salt in salts:
        if salt is not None and (not isinstance(salt, bytes) or len(salt) != SALT_SIZE):
            raise InvalidInput(
                f"A draft's salt must be {SALT_SIZE} bytes, not {salt!r:.60}",
                remedy="Pass None, and the store draws a salt.",
            )
    rest = iter(fresh)
    return [next(rest) if salt is None else salt for salt in salts]


def encode_payloads(
    drafts: Sequence[Draft],
    *,
    first: int = 1,
    key: str | None = None,
    arguments: bytes | None = None,
) -> list[bytes]:
    """Encode the payloads of drafts; ``first`` is the place of the first draft in the batch.

    Raises:
        InvalidInput: a value cannot be stored; the message names the event and the field.
    """
    payloads: list[bytes] = []
    scope: Scope = DEFAULT_SCOPE
    try:
        for draft in drafts:
            if type(draft.body) is not PutFrame:
                kind_of(draft.body)
            if draft.scope is not scope:
                # The drafts of a call mostly share one scope object.
                check_scope(draft.scope)
                scope = draft.scope
            payloads.append(_encode_payload(draft, key, arguments))
            key = arguments = None
    except InvalidInput as error:
        place = first + len(payloads)
        raise InvalidInput(
            error.what, where=f"event {place} of the batch", remedy=error.remedy
        ) from error
    return payloads


def tenant_of(scope: Scope) -> ScopeValue:
    """Return the scope's tenant, the value of its first name."""
    return scope[0][1]


def kind_of(body: EventBody) -> tuple[str, int]:
    """Return the wire name and version of a body. Raises `InvalidInput` if it has none."""
    if isinstance(body, UnknownBody):
        check_string(body.kind, "the event's type", NAME_SIZE_MAX)
        if not body.kind:
            raise InvalidInput("The event's type is empty", remedy="Name the type.")
        check_integer(body.kind_version, "the event's version", 0)
        return body.kind, body.kind_version
    if not body.wire_name:
        raise InvalidInput(
            f"{type(body).__name__} has no wire name", remedy="Decorate it with @event(NAME)."
        )
    return body.wire_name, body.wire_version


def _encode_payload(draft: Draft, key: str | None, arguments: bytes | None) -> bytes:
    check_envelope(draft)
    body = draft.body
    if not draft.is_checked:
        check_body(body)
        check_attachments(draft)
    elif type(body) is PutFrame and body.metadata:
        check_metadata(body)
    envelope = draft.scope, draft.actor, draft.correlation, draft.reason, key, arguments
    try:
        if draft.is_checked:
            if type(body) is PutFrame:
                check_frame_widths(body)
            else:
                check_widths(body)
            payload = _encode(Payload(*envelope, body))
        else:
            payload = _encode(Payload(*envelope, msgspec.Raw(_encoded_body(body))))
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"A string is not valid Unicode: {error.reason} at character {error.start}",
            remedy="Decode it with errors='replace', or store bytes.",
        ) from error
    except (TypeError, OverflowError, ValueError, RecursionError) as error:
        kind = body.kind if isinstance(body, UnknownBody) else body.wire_name
        raise InvalidInput(
            f"A value of {kind!r} cannot be stored: {error}",
            remedy="Use strings, bytes, numbers, bools, None, lists and maps of them.",
        ) from error
    if len(payload) > STRING_SIZE_MAX:
        if len(payload) > BLOB_SIZE_MAX:
            raise InvalidInput(
                f"An event of {len(payload):,} bytes is over the limit of {BLOB_SIZE_MAX:,}",
                remedy="Split it, or store its large parts as attachments.",
            )
        # Only a payload this large can hold a string over the limit, or a sum of many below it.
        check_long_strings(body)
    return payload


def _encoded_body(body: EventBody) -> bytes:
    """Return the bytes of a body of which only `check_body` is known."""
    if isinstance(body, UnknownBody):
        msgspec.msgpack.decode(body.data)
        return body.data
    data = _encode(body)
    # A struct accepts any value; refuse a value here that cannot be read back.
    check_widths(decoders(type(body)).body.decode(data))
    return data


class SpillRef(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A reference to the extent of a large batch's events: file offset and body bytes."""

    offset: int
    length: int


class WireBatch(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """The MessagePack value in a record's body: time, and the events or their spill."""

    recorded: int
    clock: int | None
    events: tuple[WireEvent, ...] | None
    spill: SpillRef | None = None
    seed: bytes | None = None


class Batch(msgspec.Struct, frozen=True, gc=False):
    """A batch read back or just written: its place in the log and its events.

    ``events`` is empty if a spill holds them. With a ``seed``, a segment stores the seed in place
    of the salts.
    """

    first_seq: int
    count: int
    recorded: int
    clock: int | None
    events: tuple[WireEvent, ...]
    spill: SpillRef | None = None
    seed: bytes | None = None

    @property
    def last_seq(self) -> int:
        return self.first_seq + self.count - 1


_BATCH = msgspec.msgpack.Decoder(WireBatch)
encode_content = _encode


def decode_content(first_seq: int, count: int, content: Buffer, offset: int) -> Batch:
    """Decode the MessagePack value of a verified record. Raises `Corrupt`."""
    try:
        wire = _BATCH.decode(content)
    except UNDECODABLE as error:
        raise Corrupt(f"A ring record cannot be decoded: {error}", offset=offset) from error
    if (wire.events is None) == (wire.spill is None):
        raise Corrupt("A ring record must have either events or a spill", offset=offset)
    if wire.seed is not None and (wire.events is None or len(wire.seed) != SEED_SIZE):
        raise Corrupt("A ring record has a seed that is not one of its events", offset=offset)
    if wire.events is not None and len(wire.events) != count:
        raise Corrupt(
            f"A ring record has {len(wire.events):,} events; its prefix names {count:,}",
            offset=offset,
        )
    # An earlier version wrote times of faulty clocks that exceed 64 bits.
    recorded = min(wire.recorded, RECORDED_MAX)
    return Batch(first_seq, count, recorded, wire.clock, wire.events or (), wire.spill, wire.seed)


def key_hash(tenant: ScopeValue, key: str) -> int:
    """Return the u64 of an idempotency key within its tenant; tenants 1, "1" and True differ."""
    return int.from_bytes(hash_bytes(_encode([tenant, key]))[:8], "little")
