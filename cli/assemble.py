"""The verb assemble: the context that the next turn of an agent's session would get."""

from __future__ import annotations

from argparse import Namespace

from cerata.agents.contexts.preview import preview_of
from cerata.agents.text.zones import check_timezone
from cerata.memory.snapshot.reader import snapshot_of

from .agent_options import agent_in, agent_scope
from .output import Output
from .store_options import reading, view_of


def run_assemble(options: Namespace, output: Output) -> int:
    """Print the context and its tokens; as JSON also the source and the rule of each part."""
    timezone = check_timezone(options.timezone)
    blocks: str = options.blocks
    with reading(options) as store:
        snapshot = snapshot_of(view_of(store, options))
        agent = agent_in(store, snapshot, options.agent)
        preview = preview_of(
            agent_scope(snapshot),
            agent.name,
            " ".join(options.query),
            session=options.session,
            thread=options.thread,
            mode=options.mode,
            max_tokens=options.max_tokens,
            blocks=blocks if blocks in ("default", "all") else blocks.split(","),
            titles=options.titles,
            timezone=timezone,
        )
        context = preview.assembly
        output.line(str(context))
        output.line()
        output.line(
            f"{context.tokens:,} of {context.max_tokens:,} tokens; thread {preview.thread}, "
            f"mode {preview.mode}, {preview.resumed}",
            style="dim",
        )
        output.result({"agent": agent.name, **preview.to_dict()})
    return 0
