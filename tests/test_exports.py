"""The public face: what is exported is listed, sorted, documented, and quick to import."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import cerata
from cerata.memory.handles import public_names

HEAVY = ("dateparser", "whoosh", "rich", "hnswlib", "hypothesis", "matplotlib", "onnxruntime")
"""Modules that wait until they are first needed."""

IMPORT_SECONDS_MAX = 0.25  # of processor time


def packages() -> list[ModuleType]:
    """Return the front door and every room behind it."""
    found = [cerata]
    for info in pkgutil.iter_modules(cerata.__path__):
        if info.ispkg:
            found.append(importlib.import_module(f"cerata.{info.name}"))
    return found


def exported(module: ModuleType) -> list[str]:
    names: list[str] = list(getattr(module, "__all__", []))
    return names


def rank(name: str) -> tuple[int, str]:
    """Return the order that the linter keeps too: constants, then classes, then the rest."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def test_there_are_rooms_to_check() -> None:
    """Guards the tests below against an empty list."""
    assert len(packages()) >= 6
    assert "__version__" in cerata.__all__


@pytest.mark.parametrize("module", packages(), ids=lambda module: module.__name__)
def test_exports_are_sorted_and_unique(module: ModuleType) -> None:
    """A sorted list shows a missing or doubled name in review."""
    names = exported(module)
    assert names == sorted(set(names), key=rank)


def test_type_checkers_see_the_same_names_from_the_same_modules(checkout: Path) -> None:
    """A name that the stub lacks is an error only in a user's editor."""
    stub = ast.parse((checkout / "cerata" / "__init__.pyi").read_text(encoding="utf-8"))
    homes = {
        "open" if alias.name == "open_store" else alias.name: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert homes == vars(cerata)["_HOME_OF"]


@pytest.mark.parametrize("module", packages(), ids=lambda module: module.__name__)
def test_every_export_exists_and_says_what_it_is(module: ModuleType) -> None:
    """An undocumented name is not yet public."""
    assert module.__doc__
    missing = [
        name
        for name in exported(module)
        if (inspect.isclass(value := getattr(module, name)) or callable(value))
        and not (value.__doc__ and _is_own_docstring(value))
    ]
    assert missing == []


def _is_own_docstring(value: object) -> bool:
    """Tell a written docstring from the signature that dataclasses put in its place."""
    name = getattr(value, "__name__", "")
    return not (value.__doc__ or "").startswith(f"{name}(")


def _member_of(kind: type, name: str) -> Any:
    """Return a member of a class, or of its handle; a property of an instance gives None."""
    try:
        return attrgetter(name)(kind)
    except AttributeError:
        return None


def test_every_public_method_of_an_export_is_documented() -> None:
    """Users read the front door's classes with help(); every public method there says something."""
    missing = [
        f"{name}.{attribute}"
        for name in cerata.__all__
        if inspect.isclass(value := getattr(cerata, name)) and not issubclass(value, Exception)
        for attribute in public_names(value)
        if callable(member := _member_of(value, attribute))
        and attribute != "to_dict"  # plain values, everywhere
        and (getattr(member, "__module__", None) or "").startswith("cerata")
        and not member.__doc__
    ]
    assert missing == []


def imported(checkout: Path, names: str = "cerata") -> tuple[float, set[str]]:
    """Import modules in processes of their own; the best seconds of five, and all it loaded.

    Processor time: the machine may be busy with other tests.
    """
    program = (
        f"import sys, time; start = time.process_time(); import {names}; "
        "print(time.process_time() - start, *sorted(sys.modules))"
    )
    best = float("inf")
    loaded: set[str] = set()
    for _ in range(5):
        run = subprocess.run(
            [sys.executable, "-c", program],
            cwd=checkout,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        seconds, *modules = run.stdout.split()
        best = min(best, float(seconds))
        loaded = set(modules)
    return best, loaded


def test_import_is_quick_and_loads_nothing_heavy(checkout: Path) -> None:
    """A command-line call pays for the import each time."""
    seconds, loaded = imported(checkout)
    assert "cerata" in loaded
    assert not loaded.intersection(HEAVY)
    assert seconds < IMPORT_SECONDS_MAX


def test_an_import_of_what_is_needed_later_would_be_seen(checkout: Path) -> None:
    """Whoosh's stemmer waits for the first text; with it, the import is neither quick nor lean."""
    seconds, _ = imported(checkout)
    eager, loaded = imported(checkout, "cerata, rich.console, hypothesis, whoosh.index")
    assert loaded.intersection(HEAVY) == {"rich", "hypothesis", "whoosh"}
    assert eager > 1.5 * seconds


def test_version_is_a_release_number() -> None:
    """The one place of the version; the build reads it from there."""
    major, minor, patch = cerata.__version__.split(".")[:3]
    assert (major + minor).isdigit()
    assert patch[0].isdigit()


def test_every_built_in_event_body_is_public() -> None:
    """Without its body an event could be read and not written."""
    bodies = {
        name
        for name, value in vars(importlib.import_module("cerata.engine.events")).items()
        if inspect.isclass(value) and issubclass(value, cerata.EventBody)
    }
    assert bodies <= set(cerata.events.__all__)
    assert list(cerata.events.__all__) == sorted(cerata.events.__all__)
