"""Options that take a name and a value, such as ``--metadata lang=en``."""

import json
from argparse import Namespace
from collections.abc import Sequence
from typing import cast

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue, ScopeValue


def pairs_of(option: str, values: Sequence[str]) -> dict[str, JsonValue]:
    """Return the pairs of an option: ``name=text``, or ``name:=JSON`` for other values.

    Args:
        option: the option, named in errors.
        values: the option's values, one for each time that it was given.

    Raises:
        InvalidInput: a value has no "=", its JSON is invalid, or a name is given twice.
    """
    pairs: dict[str, JsonValue] = {}
    for text in values:
        name, sign, value = text.partition("=")
        is_json = name.endswith(":")
        name = name.removesuffix(":")
        if not sign or not name:
            raise InvalidInput(
                f"{option} must be NAME=VALUE, not {text!r}",
                remedy=f"Pass {option} NAME=VALUE, or {option} 'NAME:=JSON' for a number or list.",
            )
        if name in pairs:
            raise InvalidInput(
                f"{option} names {name!r} twice", remedy=f"Pass {option} {name}=… once."
            )
        if is_json:
            remedy = f"Pass JSON, such as {option} 'pages:=12', or a text after '='."
            pairs[name] = json_of(value, f"{option} {text!r} is not valid JSON after ':='", remedy)
        else:
            pairs[name] = value
    return pairs


def json_of(text: str, fault: str, remedy: str) -> JsonValue:
    """Return the value of a JSON text; else raise `InvalidInput` with the fault and its place."""
    try:
        decoded: JsonValue = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{fault} ({error})", remedy=remedy) from error
    return decoded


def scope_of(options: Namespace) -> dict[str, ScopeValue] | None:
    """Return the scope of the options, or None; the store checks the types of its values."""
    pairs = pairs_of("--scope", options.scope)
    return cast("dict[str, ScopeValue]", pairs) if pairs else None
