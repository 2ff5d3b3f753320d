"""The verbs of servers and shells: mcp, tune and completion.

While an MCP server runs, standard output carries protocol messages only; errors go to standard
error.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import InvalidInput

from .files import check_new, new_file, opened_input
from .options import CLIENTS, DEFAULT_FILE, file_of, profile_from, reading, view_of, writing
from .verb import ACTOR, AT, EMBEDDER, Arg, Option, Verb

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Generator, Iterator

    from cerata.memory.store import Store
    from cerata.memory.tuning.tuning import Tuning
    from cerata.retrieval.ranking.profile import Profile

    from .output import Output

VERBS: Final = (
    Verb(
        "mcp",
        "admin",
        "serve the memory to agents over the Model Context Protocol",
        "admin:run_mcp",
        (
            Option("--read-only", "serve only the tools that read; create no file"),
            Option("--record", "write each recall as an event"),
            Option("--http PORT", "serve HTTP on this port of 127.0.0.1; 0 is any", type=int),
            Option("--tokens FILE", "with --http: the tokens of clients, each with its scope"),
            Option(
                "--print-config CLIENT",
                f"print the configuration of a client, and end: {', '.join(CLIENTS)}",
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
    Verb(
        "tune",
        "admin",
        "learn the weights of a profile from judged queries",
        "admin:run_tune",
        (
            Arg(
                "judgements",
                "queries with their relevant frames as JSON Lines, or - for standard input",
                "?",
                metavar="JUDGEMENTS",
            ),
            Option("--recalls", "learn from recorded recalls whose frames were used later"),
            Option("--to FILE", "write the profile into a new file if it gains"),
            Option("--anyway", "with --to: write the profile without a gain, too"),
            Option("--name NAME", "the name of the learned profile (tuned)", default="tuned"),
            Option("--profile NAME", "the profile in use, by name or file (that of the memory)"),
            EMBEDDER,
            AT,
        ),
        ("judged.jsonl", "judged.jsonl --to mine.json", "--recalls --to mine.json"),
        page="tune.md",
    ),
    Verb(
        "completion",
        "admin",
        "print the script that completes verbs and options in a shell",
        "admin:run_completion",
        (Arg("shell", "the shell", choices=("bash", "zsh", "fish")),),
        (
            "bash > ~/.bash_completion",
            'zsh > "${fpath[1]}/_cerata"',
            "fish > ~/.config/fish/completions/cerata.fish",
        ),
        scoped=False,
    ),
)

LOCK_SECONDS: Final = 30.0
"""The time to wait for another writer that a command has without an option."""


def run_mcp(options: Namespace, output: Output) -> int:
    """Serve the memory until the client or a signal ends the server, or print a configuration."""
    from cerata.integrations.mcp.sdk import check_installed
    from cerata.integrations.mcp.service import Service
    from cerata.integrations.mcp.shutdown import Gate, Shutdown
    from cerata.integrations.mcp.stdio import protocol_streams, serve_stdio

    parent = os.getppid()
    _check(options)
    if options.print_config is not None:
        return _print_configuration(options, output)
    check_installed()
    if options.http is not None:
        return _serve_http(options, output, parent)
    streams = protocol_streams()
    store = _opened(options, output)
    service = Service(store, is_read_only=options.read_only, is_recording=options.record)
    shutdown = Shutdown(Gate(), store.close, parent)
    shutdown.start(watches_parent=True)
    return serve_stdio(service, shutdown, streams)


def _check(options: Namespace) -> None:
    """Raise `InvalidInput` for options that exclude or need each other."""
    exclusions = (
        ("--record", options.record, "--read-only", options.read_only),
        ("--print-config", options.print_config, "--http", options.http is not None),
    )
    for first, is_first, second, is_second in exclusions:
        if is_first and is_second:
            raise InvalidInput(
                f"{first} does not go with {second}", remedy="Leave out one of the two."
            )
    if (options.http is None) != (options.tokens is None):
        raise InvalidInput(
            "--http and --tokens go together",
            where="--http" if options.http is not None else "--tokens",
            remedy="Pass --http PORT --tokens FILE, or neither for standard input and output.",
        )


def _opened(options: Namespace, output: Output) -> Store:
    return reading(options) if options.read_only else writing(options, output)


def _serve_http(options: Namespace, output: Output, parent: int) -> int:
    from cerata.integrations.mcp.http import bearers_of, listening_socket, serve_http
    from cerata.integrations.mcp.shutdown import Gate, Shutdown
    from cerata.integrations.mcp.tokens import tokens_in

    entries = tokens_in(options.tokens)
    listener = listening_socket(options.http)
    store = _opened(options, output)
    bearers = bearers_of(
        entries, store, options.tokens, is_read_only=options.read_only, is_recording=options.record
    )
    shutdown = Shutdown(Gate(), store.close, parent)
    shutdown.start(watches_parent=False)
    return serve_http(bearers, shutdown, listener)


def _print_configuration(options: Namespace, output: Output) -> int:
    from cerata.engine.events import JsonValue
    from cerata.integrations.mcp.client_configuration import configuration_of

    command = _command(options)
    configuration = configuration_of(options.print_config, command)
    output.line(configuration.text, wraps=False)
    output.warn(configuration.place)
    output.result(
        {
            "client": options.print_config,
            "command": list[JsonValue](command),
            "configuration": configuration.text,
            "place": configuration.place,
        }
    )
    return 0


def _command(options: Namespace) -> list[str]:
    """Return the words that start this server from any folder."""
    program = Path(sys.argv[0])
    start = [str(program.absolute())]
    if program.name != "cerata" or not program.exists():
        # A client starts the server in the folder of any project.
        start = [sys.executable, "-P", "-m", "cerata"]
    path = Path(file_of(options, default=DEFAULT_FILE)).absolute()
    words = [*start, "admin", "mcp", "-f", str(path)]
    for pair in options.scope:
        words += ["--scope", pair]
    if options.actor:
        words += ["--actor", options.actor]
    if options.lock_timeout != LOCK_SECONDS:
        words += ["--lock-timeout", f"{options.lock_timeout:g}"]
    flags = {"--shared": "shared", "--read-only": "read_only", "--record": "record"}
    return words + [flag for flag, name in flags.items() if getattr(options, name)]


def run_tune(options: Namespace, output: Output) -> int:
    """Learn weights, print their gain on held-out queries, and write a profile that gains."""
    from cerata.memory.tuning.tuning import tune

    if (options.judgements is None) != options.recalls:
        raise InvalidInput(
            "tune needs a file of judgements or --recalls, and not both",
            remedy="Pass JUDGEMENTS, or --recalls for the recorded recalls.",
        )
    if options.to is not None:
        # Before the work, which takes two searches for each query.
        check_new(options.to)
    profile = profile_from(options.profile)
    with (
        reading(options) as store,
        _lines(options.judgements) as lines,
        output.progress("asking", 0) as steps,
    ):
        tuning = tune(
            view_of(store, options),
            lines,
            profile=profile,
            name=options.name,
            source=options.judgements or "",
            progress=steps.stand,
        )
    for notice in tuning.notices:
        output.warn(notice)
    _print_tuning(tuning, output)
    to: str | None = options.to if tuning.improves or options.anyway else None
    if to is not None:
        _write(tuning.profile, to, store.path)
    _print_end(tuning, to, output)
    output.result(
        {**tuning.to_dict(), "improves": tuning.improves, "sure": tuning.is_sure, "to": to}
    )
    return 0 if tuning.improves or to is not None else 1


@contextmanager
def _lines(name: str | None) -> Generator[Iterator[bytes] | None]:
    from cerata.memory.tuning.judged_lines import LINE_SIZE_MAX

    if name is None:
        yield None
        return
    remedy = "Pass a file of judgements, a JSON object on each line."
    with opened_input(name, remedy) as (file, _):
        yield iter(lambda: file.readline(LINE_SIZE_MAX + 1), b"")


def _print_tuning(tuning: Tuning, output: Output) -> None:
    from cerata.memory.values.words import counted

    queries = "query" if tuning.questions == 1 else "queries"
    output.line(
        f"{tuning.questions:,} {queries} in {counted(tuning.groups, 'group')}, "
        f"each measured without its group"
    )
    output.line("           in use  learned  change            95 %  better  worse", style="dim")
    for gain in tuning.gains:
        output.line(
            f"{gain.metric:<8} {100 * gain.before:8.1f} {100 * gain.after:8.1f} "
            f"{100 * gain.change:+7.1f}  [{100 * gain.low:+5.1f}, {100 * gain.high:+5.1f}] "
            f"{gain.better:7,} {gain.worse:6,}"
        )
    profile = tuning.profile
    weights = {**profile.weights, **profile.signals}
    parts = ", ".join(f"{name} {weight}" for name, weight in weights.items())
    output.line(f"in use: {tuning.base}")
    output.notice(f"{profile.label}: {parts}", lines=6)


def _print_end(tuning: Tuning, to: str | None, output: Output) -> None:
    if not tuning.improves:
        written = "; nothing was written" if to is None else ""
        output.line(f"The learned profile is no better on held-out queries{written}.")
    elif not tuning.is_sure:
        output.line("The interval of nDCG@10 contains 0, so the gain may be chance.")
    if to is not None:
        output.line(f"Use the profile with --profile {to}")
    elif tuning.improves:
        output.line("Pass --to FILE to keep the profile.", style="dim")


def _write(profile: Profile, name: str, memory: str) -> None:
    text = json.dumps(profile.to_dict(), indent=2)
    with new_file(name, memory) as file:
        file.write(f"{text}\n".encode())


def run_completion(options: Namespace, output: Output) -> int:
    """Print the shell's script."""
    from argcomplete.shell_integration import shellcode

    script = shellcode(["cerata"], shell=options.shell)
    output.line(script.strip(), wraps=False)
    output.result({"shell": options.shell, "script": script})
    return 0
