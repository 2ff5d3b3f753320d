"""The definitions of MCP: their size, and that each tool takes what its schema lists."""

import itertools
import json
from collections.abc import Mapping
from typing import Any, cast, get_type_hints

import pytest

import cerata
from cerata.integrations.mcp import arguments
from cerata.integrations.mcp.definitions import INSTRUCTIONS, READING_TOOLS, WRITING_TOOLS
from cerata.integrations.mcp.service import _READING, _WRITING
from cerata.retrieval.tokenizer import tokenizer

TOKENS_MAX = 1_100
TOOLS = [*READING_TOOLS, *WRITING_TOOLS]

_TEXT: Any = [
    *(((text,), text) for text in ("x", "null and void")),
    *[((5, "5"), "5"), ((0.5,), "0.5"), ((True,), "true"), ((False,), "false")],
]
_IDS: Any = [
    (([12, 15], ["12", "#15"], [12.0, "15.0", 12], "[12, 15]", '["12","#15"]'), (12, 15)),
    (("12,15", "12, 15", "#12 #15", "12\n15\n", "[12,15,]", "12,15,12", "['12', '15']"), (12, 15)),
    ((12, "12", "#12", 12.0, [12], "[12]"), (12,)),
]
_NAMES: Any = [
    ((["a", "b c"], '["a", "b c"]', "a,b c", "a\nb c", "a, b c,\n", "['a', 'b c']"), ("a", "b c")),
    ((["a,b"], '["a,b"]'), ("a,b",)),
    (("a", ["a"], ["a", "a", "", None], '"a"'), ("a",)),
    (([5, True], "[5, true]", "5,true"), ("5", "true")),
]
_VALUES: Any = [(("x",), "x"), (("5",), "5"), ((5,), 5), ((0.5,), 0.5), ((True,), True)]
FORMS: Mapping[Any, Any] = {
    **dict.fromkeys((str, str | None), _TEXT),
    **dict.fromkeys((arguments.Value, arguments.Value | None), _VALUES),
    bool: [((True, "true", "True", "yes", 1), True), ((False, "false", "FALSE", "no", 0), False)],
    int: [((100, "100", 100.0, " 100", "100.0"), 100)],
    arguments.Id: [(given, ids[0]) for given, ids in _IDS if len(ids) == 1],
    arguments.Ids: _IDS,
    arguments.Names: _NAMES,
}
"""For each type of an argument: the forms in which models send a value, and the value."""

EMPTY: Any = (None, "", " ", "null", "Null", "None", "N/A", "nil", "undefined", [], {}, "[]", "{}")


def test_the_tools_take_few_tokens() -> None:
    """A client shows them to its model at every turn."""
    text = json.dumps(TOOLS, separators=(",", ":"))
    assert tokenizer().name.startswith("cl100k_base")
    assert 900 < tokenizer().count(text) <= TOKENS_MAX
    assert tokenizer().count(INSTRUCTIONS) <= 60


def test_the_tools_are_the_eight() -> None:
    """Names and hints are those that clients allow or ask about."""
    assert [tool["name"] for tool in READING_TOOLS] == list(_READING)
    assert [tool["name"] for tool in WRITING_TOOLS] == list(_WRITING)
    hints = {str(tool["name"]): cast("dict[str, bool]", tool["annotations"]) for tool in TOOLS}
    reads = ("recall", "show", "facts", "changes")
    assert [name for name, hint in hints.items() if hint["readOnlyHint"]] == [*reads]
    assert [name for name, hint in hints.items() if hint["destructiveHint"]] == ["forget"]
    assert [name for name, hint in hints.items() if not hint["idempotentHint"]] == ["correct"]
    assert not any(hint["openWorldHint"] for hint in hints.values())
    assert not any("outputSchema" in tool for tool in TOOLS)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool["name"])
def test_a_tool_takes_what_its_schema_lists(tool: Mapping[str, Any]) -> None:
    """Schema and struct are written twice, since a generated schema is longer."""
    name = tool["name"]
    kind = {**_READING, **_WRITING}[name].kind
    schema = tool["inputSchema"]
    assert list(schema["properties"]) == list(kind.__struct_fields__)
    assert schema["additionalProperties"] is False
    hints = get_type_hints(kind)
    values = {key: FORMS[hints[key]][0][0][0] for key in schema["properties"]}
    required = {key: values[key] for key in schema["required"]}
    struct = arguments.converted(kind, required, name)
    for key, field in schema["properties"].items():
        if "default" in field:
            assert getattr(struct, key) == field["default"]
        if "minimum" in field:
            for bound in (field["minimum"] - 1, field["maximum"] + 1):
                with pytest.raises(cerata.InvalidInput, match=key):
                    arguments.converted(kind, {**required, key: bound}, name)
    for key in required:
        short = {other: value for other, value in required.items() if other != key}
        with pytest.raises(cerata.InvalidInput, match=f"{name} needs {key}"):
            arguments.converted(kind, short, name)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool["name"])
def test_every_argument_takes_every_form_of_a_value(tool: Mapping[str, Any]) -> None:
    """Models send lists and numbers as texts, and texts as numbers; a new type needs its forms."""
    name = tool["name"]
    kind = {**_READING, **_WRITING}[name].kind
    hints = get_type_hints(kind)
    required = {key: FORMS[hints[key]][0][0][0] for key in tool["inputSchema"]["required"]}
    for key, hint in hints.items():
        for given, expected in itertools.chain.from_iterable(
            zip(forms, itertools.repeat(value)) for forms, value in FORMS[hint]
        ):
            decoded = getattr(arguments.converted(kind, {**required, key: given}, name), key)
            assert (decoded, type(decoded)) == (expected, type(expected)), (key, given)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool["name"])
def test_an_empty_argument_is_absent_or_refused_by_name(tool: Mapping[str, Any]) -> None:
    """Models fill each argument of a schema; a required one is the text that it is, if any."""
    name = tool["name"]
    kind = {**_READING, **_WRITING}[name].kind
    hints = get_type_hints(kind)
    required = {key: FORMS[hints[key]][0][0][0] for key in tool["inputSchema"]["required"]}
    plain = arguments.converted(kind, required, name)
    for key, empty in itertools.product(hints, EMPTY):
        given = {**required, key: empty}
        if key not in required:
            assert arguments.converted(kind, given, name) == plain, (key, empty)
        elif isinstance(empty, str) and empty.strip() and hints[key] in (str, arguments.Value):
            assert getattr(arguments.converted(kind, given, name), key) == empty
        else:
            with pytest.raises(cerata.InvalidInput, match=rf"{key}\b") as caught:
                arguments.converted(kind, given, name)
            assert caught.value.remedy
    unknowns: Any = ({"x": None}, {"x": ""}, {"x": []})
    for unknown in unknowns:
        with pytest.raises(cerata.InvalidInput, match="has no argument 'x'"):
            arguments.converted(kind, {**required, **unknown}, name)
