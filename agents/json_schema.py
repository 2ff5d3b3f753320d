"""The check of a value against a JSON Schema of the log; `parse` runs in a child process.

A schema comes with a file, and may have a regular expression or references without an end. It
resolves no reference outside of itself, so no address is fetched.
"""

from __future__ import annotations

from typing import Any

import msgspec


class SchemaCheck(msgspec.Struct, frozen=True):
    """The first fault of a value and its place; None if it matches."""

    fault: str | None = None
    path: str = ""
    error: str | None = None


def parse(data: bytes) -> SchemaCheck:
    """Check a value: ``data`` is msgpack of the schema as text, and of the value as JSON."""
    import jsonschema
    import referencing
    from referencing.exceptions import Unresolvable

    schema, value = msgspec.msgpack.decode(data, type=tuple[str, bytes])
    kind = jsonschema.Draft202012Validator
    try:
        decoded = msgspec.json.decode(schema)
        kind.check_schema(decoded)
        validator: Any = kind(decoded, registry=referencing.Registry())
        fault = next(validator.iter_errors(msgspec.json.decode(value)), None)
    except (msgspec.DecodeError, jsonschema.SchemaError, Unresolvable) as error:
        return SchemaCheck(error=f"{error!s:.300}")
    if fault is None:
        return SchemaCheck()
    return SchemaCheck(f"{fault.message:.200}", f"{fault.json_path:.100}")
