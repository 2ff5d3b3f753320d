"""The parsers of sessions, threads, topics, standing, handoff, summaries, assemble, reflect."""

from .verb_parser import Adding, Parser, add_embedder, add_verb


def add_verbs(adding: Adding) -> None:
    """Add sessions, threads, topics, standing, handoff, summaries, assemble and reflect."""
    sessions = add_verb(
        adding,
        "sessions",
        "list the sessions of agents, newest first",
        "conversations.run_sessions",
        lists=True,
        examples=("sessions", "sessions --agent wyatt --at yesterday"),
    )
    sessions.add_argument("--agent", metavar="NAME", help="only the sessions of this agent")
    threads = add_verb(
        adding,
        "threads",
        "list the threads of an agent, the most recent first",
        "conversations.run_threads",
        lists=True,
        examples=("threads --agent wyatt", "threads --agent wyatt --jsonl"),
    )
    _add_agent(threads)
    topics = add_verb(
        adding,
        "topics",
        "list the topics of a thread's newest messages",
        "conversations.run_topics",
        lists=True,
        examples=("topics --agent wyatt", "topics --agent wyatt --thread taxes --mode code"),
    )
    _add_agent(topics)
    _add_thread(topics)
    standing = add_verb(
        adding,
        "standing",
        "print four scores of how the user of an agent talks",
        "conversations.run_standing",
        lists=True,
        examples=("standing --agent wyatt", "standing --agent wyatt --at 2026-03-01"),
    )
    _add_agent(standing)
    handoff = add_verb(
        adding,
        "handoff",
        "print the state of a thread for an agent that comes back",
        "conversations.run_handoff",
        reads=True,
        examples=("handoff --agent wyatt", "handoff --agent wyatt --thread taxes --at yesterday"),
    )
    _add_agent(handoff)
    _add_thread(handoff)
    _add_timezone(handoff)
    summaries = add_verb(
        adding,
        "summaries",
        "list the summaries of a thread by day, week, month and year",
        "conversations.run_summaries",
        lists=True,
        examples=("summaries --agent wyatt", "summaries --agent wyatt --thread taxes --json"),
    )
    _add_agent(summaries)
    _add_thread(summaries)
    _add_assemble(adding)
    _add_reflect(adding)


def _add_assemble(adding: Adding) -> None:
    assemble = add_verb(
        adding,
        "assemble",
        "print the context of an agent's next turn, within a budget of tokens",
        "assemble.run_assemble",
        reads=True,
        examples=(
            "assemble 'did he call?' --agent wyatt --thread taxes",
            "assemble 'did he call?' --session s-18 --max-tokens 2000 --json",
            "assemble 'did he call?' --blocks identity,continuity --at yesterday",
        ),
    )
    assemble.add_argument("query", nargs="+", help="the question")
    _add_agent(assemble)
    assemble.add_argument("--session", metavar="ID", help="the session (a new session)")
    _add_thread(assemble)
    assemble.add_argument(
        "--max-tokens", type=int, default=6_000, metavar="N", help="most tokens (6000)"
    )
    assemble.add_argument(
        "--blocks", default="default", metavar="NAMES", help="default, all, or names with commas"
    )
    assemble.add_argument(
        "--titles", choices=("own", "plain"), default="own", help="plain: neutral titles (own)"
    )
    _add_timezone(assemble)
    add_embedder(assemble)


def _add_reflect(adding: Adding) -> None:
    reflect = add_verb(
        adding,
        "reflect",
        "write the summaries and reflections that are due",
        "reflect.run_reflect",
        writes=True,
        examples=(
            "reflect --agent wyatt --dry-run",
            "reflect --agent wyatt --limit 10",
            "reflect --agent wyatt --model writers:MyModel",
        ),
    )
    _add_agent(reflect)
    reflect.add_argument("--dry-run", action="store_true", help="only list the tasks")
    reflect.add_argument("--limit", type=int, metavar="N", help="try at most N tasks")
    reflect.add_argument("--model", metavar="MODULE:NAME", help="the writer, imported (Extractive)")


def _add_agent(verb: Parser) -> None:
    verb.add_argument("--agent", metavar="NAME", help="the agent; by default the only one")


def _add_thread(verb: Parser) -> None:
    verb.add_argument("--thread", metavar="NAME", help="the thread (main)")
    verb.add_argument("--mode", metavar="NAME", help="a mode, of whose group it is (chat)")


def _add_timezone(verb: Parser) -> None:
    verb.add_argument(
        "--timezone", default="UTC", metavar="NAME", help="the zone of printed times (UTC)"
    )
