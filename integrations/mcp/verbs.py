"""The verb that serves a memory over the Model Context Protocol.

While the server runs, standard output carries protocol messages only; errors go to standard error.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cerata.cli.options import DEFAULT_FILE, file_of, reading, writing
from cerata.engine.errors import InvalidInput

from .client_configuration import configuration_of
from .http import bearers_of, listening_socket, serve_http, tokens_in
from .sdk import check_installed
from .service import Service
from .shutdown import Gate, Shutdown
from .stdio import protocol_streams, serve_stdio

if TYPE_CHECKING:
    from argparse import Namespace

    from cerata.cli.output import Output
    from cerata.engine.events import JsonValue
    from cerata.memory.store import Store

LOCK_SECONDS: Final = 30.0
"""The time to wait for another writer that a command has without an option."""


def run_mcp(options: Namespace, output: Output) -> int:
    """Serve the memory until the client or a signal ends the server, or print a configuration."""
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
    command = _command(options)
    configuration = configuration_of(options.print_config, command)
    output.line(configuration.text, wraps=False)
    output.warn(configuration.place)
    words: list[JsonValue] = [*command]
    output.result(
        {
            "client": options.print_config,
            "command": words,
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
