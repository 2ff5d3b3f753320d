"""Packs: the kernel names no feature, and a feature uses the kernel through its doors."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

import cerata
from cerata.engine.events import kind_named
from cerata.engine.packs import packs, target

ROOT: Final = Path(__file__).parents[1]

KERNEL: Final = ("engine", "projections", "replay", "retrieval", "memory", "aio", "cli")

STORED: Final = {("engine/events.py", "startActivity")}
"""The recall of the kernel stores the session that it was shown in: a part of the file format."""

COMMON: Final = {"agents", "growth", "identity", "messages", "summary", "value"}
"""Names of packs and kinds of frames that are everyday words, also in code that means no pack."""


def folders() -> dict[str, Path]:
    """Return the folder of each pack, by its module."""
    return {f"cerata.{name}": ROOT.joinpath(*name.split(".")) for name in cerata.PACKS}


@cache
def kernel() -> list[Path]:
    """Return the files of the kernel."""
    paths = [path for room in KERNEL for path in sorted((ROOT / room).rglob("*.py"))]
    assert len(paths) > 100
    return paths


@cache
def contract() -> dict[str, Any]:
    """Return the contract of import-linter about packs."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts: list[dict[str, Any]] = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return next(each for each in contracts if each["name"].startswith("Packs: "))


# --- the kernel names no pack --------------------------------------------------------------------


def names() -> tuple[set[str], set[str]]:
    """Return the strings and the classes by which code would name a pack."""
    texts, classes = set[str](), set[str]()
    for pack in packs():
        texts |= {pack.name, *pack.events, *pack.importers, *(state.name for state in pack.states)}
        texts |= {state.key for state in pack.states}
        texts |= {name for owned in pack.owns for name in (*owned.kinds, *owned.uris)}
        classes |= {state.target.partition(":")[2] for state in pack.states}
        classes |= {kind.__name__ for kind in map(kind_named, pack.events) if kind is not None}
    return texts - COMMON, classes


def faults_in(text: str) -> Iterator[str]:
    """Yield the names of packs in a module: strings, classes, and modules."""
    texts, classes = names()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and node.value in texts:
            yield str(node.value)
        name = getattr(node, "id", getattr(node, "attr", getattr(node, "name", None)))
        if name in classes:
            yield str(name)
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ({f"{node.module}.{each.name}" for each in node.names} & {*folders()})
    yield from re.findall(rf"(?:{'|'.join(map(re.escape, folders()))})\b", text)


def test_no_kernel_room_names_a_pack() -> None:
    """A feature that the kernel names cannot be left out, and its next part lands there too."""
    faults = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in kernel()
        for name in faults_in(path.read_text(encoding="utf-8"))
    }
    assert faults == STORED


@pytest.mark.parametrize(
    "line",
    [
        'kinds = ("langgraph.putCheckpoint",)',
        "isinstance(body, PutCheckpoint)",
        'states = ("langgraph",)',
        "from cerata.integrations.langgraph.rows import realm_of",
        'rows = late("cerata.integrations.langgraph.rows")',
        "from cerata import agents",
    ],
)
def test_a_name_of_a_pack_is_caught(line: str) -> None:
    """The rule above, seen failing."""
    assert [*faults_in(line)]


# --- a pack uses the doors -----------------------------------------------------------------------


def kernel_imports(text: str) -> set[str]:
    """Return the modules of the kernel that a module imports anywhere."""
    found = set[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found |= {_module(node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    # `late("cerata.memory.store")` is an import too.
    found |= {*re.findall(r'late\("([a-z_.]+)"\)', text)}
    return {name for name in found if name.split(".")[:2][-1] in KERNEL and "cerata." in name}


def _module(package: str, name: str) -> str:
    """Return the module that an import of a name loads: the package, or a module in it."""
    path = ROOT.joinpath(*package.split(".")[1:], name)
    return f"{package}.{name}" if path.with_suffix(".py").is_file() else package


def test_a_pack_uses_the_doors() -> None:
    """A change of the kernel behind the doors then breaks no feature; no door is left open."""
    assert contract()["source_modules"] == [*folders()]
    doors = {line.removeprefix("cerata.** -> ") for line in contract()["ignore_imports"]}
    used = {
        path.relative_to(ROOT).as_posix(): kernel_imports(path.read_text(encoding="utf-8"))
        for folder in folders().values()
        for path in folder.rglob("*.py")
    }
    assert {path: closed for path, modules in used.items() if (closed := modules - doors)} == {}
    assert doors == {module for modules in used.values() for module in modules}


def test_an_import_beside_the_doors_is_caught() -> None:
    """The rule above, seen failing."""
    text = 'from cerata.replay.fold import Fold\nlate("cerata.aio.mirror")\nimport cerata.cli'
    assert kernel_imports(text) == {"cerata.replay.fold", "cerata.aio.mirror", "cerata.cli"}


# --- a pack is cheap to read, and whole ----------------------------------------------------------


def test_reading_packs_loads_nothing() -> None:
    """`cerata --help` reads all packs: no framework, no msgspec, no numpy, no part of a pack."""
    program = (
        "import sys; from cerata.engine.packs import packs; packs(); print(*sorted(sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = {*run.stdout.split()}
    assert not loaded & {"msgspec", "numpy", "dataclasses", "cerata.engine.events"}
    for module, folder in folders().items():
        parts = {f"{module}.{path.stem}" for path in folder.glob("*.py")}
        assert loaded & parts == {f"{module}.pack"}


def test_each_name_in_a_pack_exists() -> None:
    """A misspelt target would fail at the first event or state, months later."""
    for pack in packs():
        for wire_name, module in pack.events.items():
            kind = kind_named(wire_name)
            assert kind is not None
            assert kind.__module__ == module
        assert pack.acts.keys() <= pack.events.keys()
        for name in (
            *pack.rules,
            *pack.importers.values(),
            *filter(None, [pack.moved]),
        ):
            assert callable(target(name))
        for state in pack.states:
            assert target(state.target).name == state.name
        owned = {event for owned in pack.owns for event in owned.events}
        assert owned <= pack.events.keys()
