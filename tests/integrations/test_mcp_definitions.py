"""The definitions of MCP: their size, and that each tool takes what its schema lists."""

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

import cerata
from cerata.integrations.mcp import arguments
from cerata.integrations.mcp.definitions import INSTRUCTIONS, READING_TOOLS, WRITING_TOOLS
from cerata.integrations.mcp.service import _READING, _WRITING
from cerata.retrieval.tokenizer import tokenizer

TOKENS_MAX = 1_100
TOOLS = [*READING_TOOLS, *WRITING_TOOLS]


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
    values = {
        key: 1 if field["type"] == "integer" else "x" for key, field in schema["properties"].items()
    }
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
