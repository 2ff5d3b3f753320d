"""The pack of MCP: the verb that serves a memory to agents.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import ACTOR, Option, Pack, Verb

CLIENTS: Final = ("claude-code", "claude-desktop", "cursor", "vscode")

PACK: Final = Pack(
    name="mcp",
    docs=("mcp.md",),
    verbs=(
        Verb(
            "mcp",
            "admin",
            "serve the memory to agents over the Model Context Protocol",
            "cerata.integrations.mcp.verbs:run_mcp",
            (
                Option("--read-only", "serve only the tools that read; create no file"),
                Option("--record", "write each recall as an event"),
                Option("--http PORT", "serve HTTP on this port of 127.0.0.1; 0 is any", type=int),
                Option("--tokens FILE", "with --http: the tokens of clients, each with its scope"),
                Option(
                    "--print-config CLIENT",
                    "print the configuration of a client, and end: {choices}",
                    choices=CLIENTS,
                ),
                ACTOR,
            ),
            (
                "-f memory.cera",
                "--scope tenant=acme --scope user=anna --read-only",
                "--http 8000 --tokens tokens.json",
                "-f memory.cera --print-config claude-code",
            ),
            page="mcp.md",
        ),
    ),
)
