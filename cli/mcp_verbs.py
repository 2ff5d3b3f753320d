"""The parser of mcp."""

from .choices import CLIENTS
from .verb_parser import Adding, add_verb


def add_verbs(adding: Adding) -> None:
    """Add mcp."""
    mcp = add_verb(
        adding,
        "mcp",
        "serve the memory to agents over the Model Context Protocol",
        "mcp.run_mcp",
        examples=(
            "mcp -f memory.cera",
            "mcp --scope tenant=acme --scope user=anna --read-only",
            "mcp --http 8000 --tokens tokens.json",
            "mcp -f memory.cera --print-config claude-code",
        ),
        writes=True,
    )
    mcp.add_argument(
        "--read-only", action="store_true", help="serve only the tools that read; create no file"
    )
    mcp.add_argument("--record", action="store_true", help="write each recall as an event")
    mcp.add_argument(
        "--http", type=int, metavar="PORT", help="serve HTTP on this port of 127.0.0.1; 0 is any"
    )
    mcp.add_argument(
        "--tokens", metavar="FILE", help="with --http: the tokens of clients, each with its scope"
    )
    mcp.add_argument(
        "--print-config",
        choices=CLIENTS,
        metavar="CLIENT",
        help=f"print the configuration of a client, and end: {', '.join(CLIENTS)}",
    )
