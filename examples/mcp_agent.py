# Where the extra mcp is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""An agent with memory over MCP that is killed within its work, and goes on when it starts again.

``python examples/mcp_agent.py --kill-after 2`` ends its own process by SIGKILL when two steps have
finished; its server ends, too. ``python examples/mcp_agent.py`` then runs the remaining steps only.
It needs the extra mcp.
"""

import argparse
import asyncio
import os
import signal
import sys
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

STEPS = ("search", "read", "summarize", "report")


async def call(client: ClientSession, tool: str, **arguments: object) -> str:
    """Return the text of a tool's answer.

    Raises:
        RuntimeError: the answer is an error.
    """
    result: Any = await client.call_tool(tool, arguments)
    text: str = result.content[0].text
    if text.startswith("error: "):
        raise RuntimeError(text)
    return text


async def work(client: ClientSession, kill_after: int | None) -> None:
    """Run the steps that have not finished; each leaves a note, and a fact with it as evidence.

    Args:
        client: The session with the server of the memory.
        kill_after: Kill the process before the step after so many.
    """
    finished = await call(client, "facts", subject="survey", predicate="finished")
    for place, step in enumerate(STEPS):
        if f"finished · {step};" in finished:
            continue
        if place == kill_after:
            os.kill(os.getpid(), signal.SIGKILL)
        print(f"runs {step}", flush=True)
        note = await call(client, "remember", text=f"Result of {step}: bridges last 80 years.")
        await call(
            client,
            "assert_fact",
            subject="survey",
            predicate="finished",
            object=step,
            is_entity=False,
            evidence=note.split()[0],
        )
    context = await call(client, "recall", query="how long do bridges last?")
    print(context.splitlines()[-1])


async def main() -> None:
    """Start a server of the memory, and work."""
    parser = argparse.ArgumentParser(description="An agent that can be killed.")
    parser.add_argument("--file", default="survey.cera")
    parser.add_argument("--kill-after", type=int)
    options = parser.parse_args()
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "cerata", "admin", "mcp", "-f", options.file, "--actor", "surveyor"],
        env=dict(os.environ),
    )
    async with stdio_client(server) as streams, ClientSession(*streams) as client:
        await client.initialize()
        await work(client, options.kill_after)


if __name__ == "__main__":
    asyncio.run(main())
