"""Planting: a bug put into the engine at run time, to show that the harness would notice it.

A plant replaces a few characters of one function and recompiles it in its module; the engine itself
has no hooks. A plant whose text is no longer there raises `PlantOutdated`, so that none passes
without an effect. Leaves out the catalogue of bugs (tests/crash/mutants.py).
"""

import importlib
import inspect
import sys
import textwrap
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FunctionType


class PlantOutdated(LookupError):
    """The engine no longer contains the text that a plant replaces."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in a function's source; targets are module:function, module:Class.method."""

    target: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Plant:
    """A bug: its name, the edits that plant it, and the part of the harness that must notice it.

    ``detector`` is one of stories, damage, schedules, promises; or cases, for a saved case.
    """

    name: str
    detector: str
    edits: tuple[Edit, ...]

    @contextmanager
    def planted(self) -> Generator[None, None, None]:
        """Keep the bug in the engine for the duration of a with block."""
        with ExitStack() as stack:
            for edit in self.edits:
                stack.enter_context(_edited(edit))
            yield


@contextmanager
def _edited(edit: Edit) -> Generator[None, None, None]:
    module_name, _, path = edit.target.partition(":")
    module = importlib.import_module(module_name)
    owner: object = module
    *classes, name = path.split(".")
    for part in classes:
        owner = getattr(owner, part)
    original = inspect.getattr_static(owner, name, None)
    function: object = original.fget if isinstance(original, property) else original
    if not isinstance(function, FunctionType):
        raise PlantOutdated(f"{edit.target} is not a plain function")
    source = textwrap.dedent(inspect.getsource(function))
    old = textwrap.dedent(edit.old).strip("\n")
    new = textwrap.dedent(edit.new).strip("\n")
    if source.count(old) != 1:
        raise PlantOutdated(f"{edit.target} contains {source.count(old)} times: {old}")
    # The scope holds only the new function, which keeps seeing its module's globals.
    scope: dict[str, object] = {}
    code = compile(source.replace(old, new), inspect.getsourcefile(function) or "?", "exec")
    exec(code, module.__dict__, scope)  # noqa: S102 - our own source, edited
    changed = scope[name]
    with ExitStack() as stack:
        if owner is module:
            for importer in _importers(name, function):
                stack.callback(setattr, importer, name, function)
                setattr(importer, name, changed)
        else:
            stack.callback(setattr, owner, name, original)
            setattr(owner, name, changed)
        yield


def _importers(name: str, function: FunctionType) -> list[object]:
    """Return the modules of the rooms that hold the function under its name."""
    return [
        module
        for module_name, module in sorted(sys.modules.items())
        if module_name.startswith("cerata.") and getattr(module, name, None) is function
    ]
