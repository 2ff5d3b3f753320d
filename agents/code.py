"""The code of runs: which function a run executes, and whether its source is the recorded.

Owns the name of a function and H of its source, and the look-up of names: a name of the caller is
imported, a name of a recording is looked up among the loaded modules. Leaves out the decorator
(`function`).
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.integrity import hash_bytes

_REMEDY: Final = "Pass the function, on the command line as MODULE:FUNCTION."

SameCode = Literal["same", "changed", "unknown"]


class Code(NamedTuple):
    """The function of a run: ``module:name``, and H of its source; None if unknown."""

    function: str | None = None
    digest: bytes | None = None


class AgentCode:
    """A function that `cerata.agent` decorated; ``function`` is the function itself."""

    def __init__(self, function: Callable[..., Any], agent: str) -> None:
        self.function = function
        self.agent = agent


def code_of(function: Callable[..., Any]) -> Code:
    """Return the name and the hash of the source of a function."""
    name = f"{function.__module__}:{function.__qualname__}"
    importable = function.__module__ != "__main__" and "<" not in name
    try:
        source: str | None = inspect.getsource(function)
    except (OSError, TypeError):
        source = None
    digest = None if source is None else hash_bytes(source.encode("utf-8", "replace"))
    return Code(name if importable else None, digest)


def compared(recorded: bytes | None, function: Callable[..., Any]) -> SameCode:
    """Return whether the source of a function is the recorded source."""
    digest = code_of(function).digest
    if recorded is None or digest is None:
        return "unknown"
    return "same" if digest == recorded else "changed"


def function_named(name: str) -> Callable[..., Any] | AgentCode:
    """Return the function with a name ``module:name``. Imports the module, which runs its code.

    Raises:
        InvalidInput: the name has another form, or names no function.
        NotFound: there is no such module or function.
    """
    found = object_named(name, "function", _REMEDY)
    if not callable(found):
        raise InvalidInput(f"{name!r:.120} is no function", remedy=_REMEDY)
    return found


def object_named(name: str, kind: str, remedy: str) -> object:
    """Return the object with a name ``module:name``. Imports the module, which runs its code.

    Args:
        name: The name.
        kind: The kind of the object, for errors.
        remedy: The remedy of errors.

    Raises:
        InvalidInput: the name has another form.
        NotFound: there is no such module or object.
    """
    module_name, colon, path = name.partition(":")
    if not colon or not module_name or not path:
        raise InvalidInput(f"{name!r:.120} names no {kind}", remedy=remedy)
    try:
        target: object = importlib.import_module(module_name)
        for part in path.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError) as error:
        raise NotFound(
            f"The {kind} {name!r:.120} cannot be found: {error}",
            remedy=f"Run it in a folder from which the module can be imported. {remedy}",
        ) from error
    return target


def recorded_function(name: str | None, run: str) -> AgentCode:
    """Return the function that a recording names, if this program has it loaded.

    A file may come from anyone, so its content imports no module, and only a function that
    `cerata.agent` decorates is called.

    Raises:
        NotFound: the recording names none, or no loaded module has it.
        InvalidInput: `cerata.agent` does not decorate it.
    """
    if name is None:
        raise NotFound(f"The recording of the run {run!r} names no function", remedy=_REMEDY)
    module_name, _, path = name.partition(":")
    function: object = sys.modules.get(module_name)
    for part in path.split("."):
        # An attribute that is computed could import a module.
        function = inspect.getattr_static(function, part, None)
    if function is None:
        raise NotFound(
            f"The recorded function {name!r:.120} is not loaded, and a memory imports no code",
            where=f"run {run!r:.120}",
            remedy=f"If you trust this code, name it. {_REMEDY}",
        )
    if not isinstance(function, AgentCode):
        raise InvalidInput(
            f"The recorded function {name!r:.120} is not decorated by cerata.agent",
            remedy=f"Decorate it. {_REMEDY}",
        )
    return function
