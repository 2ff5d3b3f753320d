"""The expected bytes of a draft on disk, computed without the engine's codec.

Owns the second opinion on payload bytes: an array of scope, actor, correlation, reason, key,
arguments and body; a body's fields in their declared order, without each field that has its
default; every map inside in the order of its names. Digests rely on the rule that equal values have
equal bytes.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec

from cerata.engine.events import Draft, EventBody, UnknownBody

from .model import ModelEvent, Packable, pack
from .oracle import Finding


@dataclass(frozen=True, slots=True)
class Written:
    """One batch that a workload appended, as passed to the log."""

    drafts: tuple[Draft, ...]
    key: str | None = None


def expected_payload(draft: Draft, key: str | None) -> bytes:
    """Return the payload bytes of a draft; no workload passes arguments."""
    envelope: list[Packable] = [
        [list(pair) for pair in draft.scope],
        draft.actor,
        draft.correlation,
        draft.reason,
        key,
        None,
    ]
    return b"\x97" + b"".join(map(pack, envelope)) + _pack_body(draft.body)


def _pack_body(body: EventBody) -> bytes:
    if isinstance(body, UnknownBody):
        return body.data
    pieces: list[bytes] = []
    for field in msgspec.structs.fields(body):
        value: object = getattr(body, field.name)
        default: object = field.default
        if default is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        if value != default or type(value) is not type(default):
            pieces.append(pack(field.encode_name) + pack(_plain(value)))
    # The header has room for all the fields that the type declares, however few are left: msgspec
    # writes it before it knows their number. So it may be longer than necessary, but always the
    # same.
    if len(msgspec.structs.fields(body)) < 16:
        return bytes([0x80 | len(pieces)]) + b"".join(pieces)
    return b"\xde" + len(pieces).to_bytes(2, "big") + b"".join(pieces)


def _plain(value: object) -> Packable:
    """Turn the array-like structs inside a body into lists."""
    if isinstance(value, msgspec.Struct):
        return [_plain(item) for item in msgspec.structs.astuple(value)]
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return {name: _plain(item) for name, item in fields.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[object]", value)]
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    raise TypeError(f"a value in an event must be plain, not {type(value).__name__}")


def check_written(
    events: Sequence[ModelEvent], written: Sequence[Written], pruned: Collection[int] = ()
) -> None:
    """Check that an undisturbed run reads back exactly the events that were appended.

    The contents of the events ``pruned`` were given up.

    Raises:
        Finding: an event is missing, invented, changed, or not encoded deterministically.
    """
    expected = [
        (draft, index, len(batch.drafts), batch)
        for batch in written
        for index, draft in enumerate(batch.drafts)
    ]
    if len(events) != len(expected):
        raise Finding("O1", f"{len(expected)} events were appended, {len(events)} were read")
    recorded = 0
    for event, (draft, index, count, batch) in zip(events, expected, strict=True):
        body = draft.body
        kind = (
            (body.kind, body.kind_version)
            if isinstance(body, UnknownBody)
            else (body.wire_name, body.wire_version)
        )
        header = (event.type, event.version, event.index, event.count, event.causation)
        if header != (*kind, index, count, draft.causation):
            raise Finding("O2", f"event {event.seq} was read as {header}")
        first = index == 0
        payload: bytes | None = expected_payload(draft, batch.key if first else None)
        if event.seq in pruned and event.commitment is not None:
            payload = None
        if event.payload != payload:
            raise Finding(
                "O6", f"event {event.seq} is encoded as {event.payload!r}, not {payload!r}"
            )
        if event.recorded < recorded or (first and event.recorded == recorded):
            raise Finding("O2", f"event {event.seq} was recorded at {event.recorded}, not later")
        recorded = event.recorded
