"""The pack of agents: the frames that their sessions write beside messages.

Owns the names of the pack's parts. Reading it loads no other module of the pack. Activities,
messages, slots and growth are packs of their own.
"""

from typing import Final

from cerata.engine.packs import (
    ACTOR,
    AT,
    EMBEDDER,
    LISTS,
    Addition,
    Arg,
    Option,
    Owned,
    Pack,
    Role,
    Verb,
)

_AGENT: Final = Option("--agent NAME", "the agent; by default the only one")
_THREAD: Final = (
    Option("--thread NAME", "the thread (main)"),
    Option("--mode NAME", "a mode, of whose group it is (chat)"),
)
_SHOWN: Final = ("sessions", "threads", "topics", "standing", "handoff", "summaries")

PACK: Final = Pack(
    name="agents",
    docs=("continuity.md",),
    owns=(
        Owned("reflections", Role.AGENT, ("reflection",), is_memory=False),
        Owned("summaries", Role.AGENT, ("summary",)),
    ),
    functions={
        name: f"cerata.agents.{name}"
        for name in ("access", "accesses", "messages", "record_access", "remember_messages")
    },
    verbs=(
        Verb(
            "talk",
            "agents",
            "list the sessions of agents, or print a reading of a conversation",
            "cerata.agents.verbs.talk:run_talk",
            (
                Option(
                    "--show",
                    "sessions, newest first; threads; topics of the newest messages; standing: "
                    "four scores of how the user talks; handoff: the state of a thread for an "
                    "agent that comes back; summaries by day, week, month and year (sessions)",
                    choices=_SHOWN,
                    default="sessions",
                ),
                _AGENT,
                *_THREAD,
                Option("--timezone NAME", "with handoff: the zone of printed times (UTC)"),
                *LISTS,
            ),
            (
                "",
                "--agent wyatt --at yesterday",
                "--show threads --agent wyatt --jsonl",
                "--show topics --thread taxes --mode code",
                "--show standing --at 2026-03-01",
                "--show handoff --thread taxes",
                "--show summaries --thread taxes --json",
            ),
            page="continuity.md#readings",
        ),
        Verb(
            "assemble",
            "agents",
            "print the context of an agent's next turn, within a budget of tokens",
            "cerata.agents.verbs.talk:run_assemble",
            (
                Arg("query", "the question", "+"),
                _AGENT,
                Option("--session ID", "the session (a new session)"),
                *_THREAD,
                Option("--max-tokens N", "most tokens (6000)", type=int, default=6_000),
                Option("--blocks NAMES", "default, all, or names with commas", default="default"),
                Option(
                    "--titles",
                    "plain: neutral titles (own)",
                    choices=("own", "plain"),
                    default="own",
                ),
                Option("--timezone NAME", "the zone of printed times (UTC)", default="UTC"),
                EMBEDDER,
                AT,
            ),
            (
                "'did he call?' --agent wyatt --thread taxes",
                "'did he call?' --session s-18 --max-tokens 2000",
                "'did he call?' --blocks identity,continuity",
            ),
            page="continuity.md#the-context-of-a-turn",
        ),
        Verb(
            "reflect",
            "agents",
            "write the summaries and reflections that are due",
            "cerata.agents.verbs.talk:run_reflect",
            (
                _AGENT,
                Option("--dry-run", "only list the tasks"),
                Option("--limit N", "try at most N tasks", type=int),
                Option("--model MODULE:NAME", "the writer, imported (Extractive)"),
                ACTOR,
            ),
            (
                "--agent wyatt --dry-run",
                "--agent wyatt --limit 10",
                "--agent wyatt --model writers:MyModel",
            ),
            page="continuity.md#summaries-and-reflection",
        ),
    ),
    groups={"agents": "runs, slots, conversations and proposals of agents"},
    additions=(
        Addition(
            "file export",
            "cerata.agents.verbs.archive:run_archive",
            (
                Option(
                    "--archive DIR",
                    "write a file for each UTC day with messages of an agent, and replace none",
                    either="kind",
                ),
                Option("--agent NAME", "with --archive: the agent; by default the only one"),
            ),
            ("--archive days --agent wyatt --at 2026-11-26",),
            "or an agent's messages by day",
        ),
    ),
    renamed={
        name: f"agents talk --show {name}"
        for name in ("handoff", "sessions", "standing", "summaries", "threads", "topics")
    },
)
