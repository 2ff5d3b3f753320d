"""Payloads of lines: the checks that the chain hash does not replace, and their scope."""

from typing import Final

import msgspec

from cerata.engine.draft_validation import check_key, check_scope
from cerata.engine.errors import InvalidInput
from cerata.engine.events import UNDECODABLE, Payload, Scope

from .line_blocks import refusal

_PAYLOAD: Final = msgspec.msgpack.Decoder(Payload[msgspec.Raw])


def scope_of(payload: bytes) -> Scope:
    """Return the scope of a checked payload."""
    return _PAYLOAD.decode(payload).scope


def check_payload(payload: bytes, number: int) -> None:
    """Refuse a payload that no writer makes: the chain covers its bytes, not their meaning.

    Raises:
        InvalidInput: with the number of its line.
    """
    try:
        envelope = _PAYLOAD.decode(payload)
    except UNDECODABLE as error:
        raise refusal(number, f"The payload cannot be decoded: {error}") from error
    scope = envelope.scope
    if len(scope) == 1 and scope[0][0] == "tenant" and envelope.key is None:
        # Most payloads: the decoder has checked the types.
        return
    try:
        check_scope(scope)
        if envelope.key is not None:
            check_key(envelope.key)
    except InvalidInput as error:
        raise refusal(number, error.what) from error
