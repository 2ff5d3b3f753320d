"""The verb that serves the memory over the Model Context Protocol: mcp.

While the server runs, standard output carries protocol messages only; errors go to standard error.
"""

import os
import sys
from argparse import Namespace
from pathlib import Path

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.integrations.mcp.client_configuration import configuration_of
from cerata.integrations.mcp.sdk import check_installed
from cerata.integrations.mcp.service import Service
from cerata.integrations.mcp.shutdown import Gate, Shutdown
from cerata.integrations.mcp.stdio import protocol_streams, serve_stdio

from .output import Output
from .store_options import DEFAULT_FILE, file_of, reading, writing


def run_mcp(options: Namespace, output: Output) -> int:
    """Serve the memory until the client or a signal ends the server, or print a configuration."""
    parent = os.getppid()
    if options.record and options.read_only:
        raise InvalidInput(
            "--record writes, and --read-only does not", remedy="Leave out one of the two."
        )
    if options.print_config is not None:
        return _print_configuration(options, output)
    check_installed()
    streams = protocol_streams()
    store = reading(options) if options.read_only else writing(options, output)
    service = Service(store, is_read_only=options.read_only, is_recording=options.record)
    shutdown = Shutdown(Gate(), store.close, parent)
    shutdown.start(watches_parent=True)
    return serve_stdio(service, shutdown, streams)


def _print_configuration(options: Namespace, output: Output) -> int:
    command = _command(options)
    configuration = configuration_of(options.print_config, command)
    output.line(configuration.text)
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
        start = [sys.executable, "-m", "cerata"]
    path = Path(file_of(options, default=DEFAULT_FILE)).absolute()
    words = [*start, "mcp", "-f", str(path)]
    for pair in options.scope:
        words += ["--scope", pair]
    if options.actor:
        words += ["--actor", options.actor]
    flags = {"--shared": "shared", "--read-only": "read_only", "--record": "record"}
    return words + [flag for flag, name in flags.items() if getattr(options, name)]
