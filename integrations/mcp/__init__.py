"""MCP: a memory served to agents over the Model Context Protocol (docs/mcp.md).

Owns the tools, resources and prompts, the two transports and the end of a server. Runs on the
SDK's versions 1 and 2; only `sdk`, `stdio` and `http` import it, when a server starts. Leaves out
the command line (`cerata.cli`) and the memory.

Read first: `service`.
"""
