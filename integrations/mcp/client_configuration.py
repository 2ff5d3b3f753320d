"""Configurations of clients: the text that tells a client how to start the server.

Owns the form of each client. Prints and never edits a file, since clients rewrite these files while
they run. Leaves out the choice of the command and the file (`cerata.cli`).
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .definitions import NAME, Definition

_PLACES: Final = {
    "claude-code": "run this in a shell",
    "claude-desktop": "this goes to claude_desktop_config.json",
    "cursor": "this goes to .cursor/mcp.json",
    "vscode": "this goes to .vscode/mcp.json",
}


@dataclass(frozen=True, slots=True)
class ClientConfiguration:
    """The text for a client, and its place."""

    text: str
    place: str


def configuration_of(client: str, command: Sequence[str]) -> ClientConfiguration:
    """Return the configuration of a client.

    Args:
        client: A name of `CLIENTS`.
        command: The words that start the server; paths are absolute.
    """
    return ClientConfiguration(_text(client, command), _PLACES[client])


def _text(client: str, command: Sequence[str]) -> str:
    if client == "claude-code":
        return shlex.join(["claude", "mcp", "add", "-s", "user", NAME, "--", *command])
    entry: Definition = {"command": command[0], "args": [*command[1:]]}
    if client == "vscode":
        return _json("servers", {"type": "stdio", **entry})
    return _json("mcpServers", entry)


def _json(key: str, entry: Definition) -> str:
    return json.dumps({key: {NAME: entry}}, indent=2, ensure_ascii=False)
