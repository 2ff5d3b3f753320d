# Where the extra mcp is missing, its types are unknown; SDK 1 and 2 have different ones.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""Both major versions of the MCP SDK: a low-level server over a service.

Owns the differences between the versions: SDK 1 registers handlers by the type of a request, SDK 2
takes them as arguments. Results are made from camelCase dictionaries, which both validate. Leaves
out the transports (`stdio`, `http`) and the answers (`service`).
"""

import importlib
import importlib.util
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from cerata import __version__
from cerata.engine.errors import CerataError
from cerata.engine.late import loading

from ..extras import require
from .answers import Answer, error_text, fitted
from .definitions import INSTRUCTIONS, NAME, PROMPTS, RESOURCE_TEMPLATES, RESOURCES
from .service import Service, check_cursor
from .shutdown import Gate

_INVALID_PARAMS: Final = -32602

Handler = Callable[[Any], Awaitable[Mapping[str, Any]]]
"""From the parameters of a request to the fields of its result."""


def check_installed() -> None:
    """Raise `Unsupported` unless the SDK is installed; imports nothing of it."""
    if importlib.util.find_spec("mcp") is None:
        require("mcp", "mcp")


def server_of(service: Service, gate: Gate) -> Any:
    """Return a low-level server of the installed SDK.

    Args:
        service: The answers.
        gate: Runs each call.

    Raises:
        Unsupported: the SDK is not installed.
    """
    require("mcp", "mcp")
    handlers = _Handlers(service, gate)
    is_second = importlib.util.find_spec("mcp_types") is not None
    return (_second if is_second else _first)(handlers)


class _Handlers:
    """The handler of each request; every call runs in a thread, to its end."""

    def __init__(self, service: Service, gate: Gate) -> None:
        self._service = service
        self._gate = gate

    @property
    def table(self) -> Mapping[str, tuple[str, Handler]]:
        """The name of each request in the SDK, its result and its handler."""
        return {
            "list_tools": ("ListTools", self._list("tools", self._service.tools)),
            "call_tool": ("CallTool", self._call_tool),
            "list_resources": ("ListResources", self._list("resources", RESOURCES)),
            "list_resource_templates": (
                "ListResourceTemplates",
                self._list("resourceTemplates", RESOURCE_TEMPLATES),
            ),
            "read_resource": ("ReadResource", self._read_resource),
            "list_prompts": ("ListPrompts", self._list("prompts", PROMPTS)),
            "get_prompt": ("GetPrompt", self._get_prompt),
        }

    def _list(self, name: str, items: Any) -> Handler:
        async def handler(params: Any) -> Mapping[str, Any]:
            await self._run(lambda: check_cursor(getattr(params, "cursor", None)))
            return {name: items}

        return handler

    async def _call_tool(self, params: Any) -> Mapping[str, Any]:
        try:
            answer: Answer = await _to_the_end(
                lambda: self._gate.run(
                    lambda: self._service.call(params.name, params.arguments or {})
                )
            )
        except CerataError as error:
            # The gate is shut.
            answer = Answer(error_text(error), is_error=True)
        return {"content": [_text_block(answer.text)], "isError": answer.is_error}

    async def _read_resource(self, params: Any) -> Mapping[str, Any]:
        uri = str(params.uri)
        mime_type, text = await self._run(lambda: self._service.resource(uri))
        return {"contents": [{"uri": uri, "mimeType": mime_type, "text": text}]}

    async def _get_prompt(self, params: Any) -> Mapping[str, Any]:
        arguments = params.arguments or {}
        text = await self._run(lambda: self._service.prompt(params.name, arguments))
        return {"messages": [{"role": "user", "content": _text_block(text)}]}

    async def _run(self, call: Callable[[], Any]) -> Any:
        """Run a call through the gate; its error is one of the protocol."""
        try:
            return await _to_the_end(lambda: self._gate.run(call))
        except CerataError as error:
            raise _protocol_error(fitted(error_text(error))) from error


def _text_block(text: str) -> Mapping[str, Any]:
    return {"type": "text", "text": text}


async def _to_the_end(call: Callable[[], Any]) -> Any:
    """Run a call in a thread; a cancelled request waits for its end."""
    with loading("the MCP SDK"):
        import anyio
        import anyio.to_thread

    with anyio.CancelScope(shield=True):
        return await anyio.to_thread.run_sync(call)


def _protocol_error(text: str) -> Exception:
    exceptions: Any = importlib.import_module("mcp.shared.exceptions")
    error: Exception
    if hasattr(exceptions, "MCPError"):
        error = exceptions.MCPError(_INVALID_PARAMS, text)
    else:
        types: Any = importlib.import_module("mcp.types")
        error = exceptions.McpError(types.ErrorData(code=_INVALID_PARAMS, message=text))
    return error


def _first(handlers: _Handlers) -> Any:
    """Return a server of SDK 1."""
    lowlevel = importlib.import_module("mcp.server.lowlevel")
    types = importlib.import_module("mcp.types")
    server = lowlevel.Server(NAME, version=__version__, instructions=INSTRUCTIONS)

    def register(name: str, handler: Handler) -> None:
        result = getattr(types, f"{name}Result")

        async def answer(request: Any) -> Any:
            values = await handler(request.params)
            return types.ServerResult(result.model_validate(values))

        server.request_handlers[getattr(types, f"{name}Request")] = answer

    for name, handler in handlers.table.values():
        register(name, handler)
    return server


def _second(handlers: _Handlers) -> Any:
    """Return a server of SDK 2."""
    lowlevel = importlib.import_module("mcp.server.lowlevel")
    types = importlib.import_module("mcp_types")

    def adapted(name: str, handler: Handler) -> Any:
        result = getattr(types, f"{name}Result")

        async def answer(_context: Any, params: Any) -> Any:
            return result.model_validate(await handler(params))

        return answer

    calls = {f"on_{key}": adapted(*entry) for key, entry in handlers.table.items()}
    return lowlevel.Server(NAME, version=__version__, instructions=INSTRUCTIONS, **calls)
