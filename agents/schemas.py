"""Schemas of slot values: checked and lifted to the version of the declaration.

Owns validation, upcasting, and the JSON Schema that the log keeps, which is enforced where the
class is missing. Leaves out the declaration (`spec`) and the storage (`slot`).
"""

from __future__ import annotations

from typing import Final, cast

import msgspec

from cerata.engine.draft_validation import check_not_pending
from cerata.engine.errors import CerataError, Corrupt, InvalidInput, Unsupported
from cerata.engine.events import JsonValue
from cerata.engine.json_value import exact_or_fail
from cerata.engine.late import install_command
from cerata.memory.ingest.formats.sandbox import Unparsed, is_installed, isolated

from .json_schema import SchemaCheck
from .spec import MemorySpec

_SECONDS_MAX: Final = 10
"""Most processor time of a check."""

VERSION_KEY: Final = "schema_version"
"""The name of the version in the metadata of a value. On disk: never change it."""


def json_schema(spec: MemorySpec) -> str | None:
    """Return the JSON Schema of a slot's values, as canonical JSON; None without a schema."""
    if spec.schema is None:
        return None
    return msgspec.json.encode(msgspec.json.schema(spec.schema), order="deterministic").decode()


def stored_value(spec: MemorySpec, value: object, where: str) -> object:
    """Return a value as plain JSON values, after a check against the schema.

    Raises:
        InvalidInput: the value does not match the schema, or holds an id of a transaction.
    """
    if spec.schema is None:
        return value
    plain = _plain(value, where)
    _converted(spec, plain, where, spec.schema_version or 1)
    return plain


def _plain(value: object, where: str) -> object:
    """Return a value as JSON's types. Raises `InvalidInput` if it has no such form."""

    def exactly(part: object) -> object:
        check_not_pending("The value", part)
        return exact_or_fail(part)

    try:
        return msgspec.to_builtins(value, enc_hook=exactly)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        if isinstance(error, CerataError):
            raise
        raise InvalidInput(
            f"The value cannot be stored: {error}",
            where=where,
            remedy="Pass a value of the schema.",
        ) from error


def check_json(schema: str, value: bytes, where: str) -> None:
    """Check a value against the JSON Schema of a slot, whose class this program lacks.

    Cost: the start of a child process, since the schema is of a file (`json_schema`).

    Args:
        schema: The schema of the log.
        value: The value as JSON.
        where: The place of the value, for errors.

    Raises:
        InvalidInput: the value does not match; the place in the value is in the error.
        Unsupported: the extra ``schemas`` is not installed.
        Corrupt: the schema cannot be used, or takes too much time or memory.
    """
    if not is_installed("jsonschema"):
        raise Unsupported(
            "The slot has a JSON Schema, and jsonschema is not installed",
            remedy=f"Run {install_command('schemas')}, or declare the slot with the class of its "
            "values.",
        )
    data = msgspec.msgpack.encode((schema, value))
    try:
        check = isolated(
            data,
            where,
            module="cerata.agents.json_schema",
            answer=SchemaCheck,
            seconds=_SECONDS_MAX,
        )
    except Unparsed as error:
        raise Corrupt(
            f"The JSON Schema of the slot cannot be used: {error}",
            where=where,
            remedy="Declare the slot again, with its class and a higher schema_version.",
        ) from error
    if check.fault is not None:
        raise InvalidInput(
            f"The value does not match the schema of the slot: {check.fault}",
            where=f"{where}, {check.path}",
            remedy="Pass a value of the schema, which 'cerata agents slots --json' prints.",
        )


def read_value(spec: MemorySpec, value: JsonValue, version: int, where: str) -> object:
    """Return a stored value, lifted to the version of the slot, as the schema's Struct.

    Raises:
        InvalidInput: an upcaster is missing or failed, or the value does not match the schema.
        Unsupported: the value is newer than the slot's schema.
    """
    if spec.schema is None:
        return value
    current = spec.schema_version or 1
    if version > current:
        raise Unsupported(
            f"The value has version {version} of the schema, and this program has {current}",
            where=where,
            remedy="Update the program, or read the stored value with raw().",
        )
    lifted: object = value
    for each in range(version, current):
        upcaster = (spec.upcasters or {}).get(each)
        if upcaster is None:
            raise InvalidInput(
                f"No upcaster lifts version {each} of the schema to {each + 1}",
                where=where,
                remedy=f"Declare upcasters={{{each}: ...}}, or read the stored value with raw().",
            )
        try:
            lifted = upcaster(cast("dict[str, object]", lifted))
        except Exception as error:
            raise InvalidInput(
                f"The upcaster of version {each} raised {type(error).__name__}: {error}",
                where=where,
                remedy="Correct the upcaster, or read the stored value with raw().",
            ) from error
    return _converted(spec, lifted, where, version)


def _converted(spec: MemorySpec, value: object, where: str, version: int) -> msgspec.Struct:
    assert spec.schema is not None
    try:
        return msgspec.convert(value, spec.schema)
    except msgspec.ValidationError as error:
        raise InvalidInput(
            f"The value of version {version} does not match {spec.schema.__name__}: {error}",
            where=where,
            remedy="Pass a value of the schema; raw() returns a stored value as it is.",
        ) from error
