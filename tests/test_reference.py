"""The reference: every public name has a docstring and is named in docs/api.md."""

import inspect
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import cerata
from cerata.memory.handles import public_names
from cerata.memory.values.renamed import functions

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api.md"

TOLD_BY_THEIR_NAME = {"recorded", "scope", "seq", "to_dict", "type"}
"""Attributes and methods that mean the same wherever they stand."""


def own_members(name: str, owner: type) -> Iterator[tuple[str, object]]:
    """Yield the public methods and properties that a class, or a room of ours above it, defines."""
    for above in owner.__mro__:
        if above.__module__.startswith("cerata"):
            for member, value in vars(above).items():
                shown = inspect.isfunction(value) or isinstance(value, property)
                if shown and not member.startswith("_"):
                    yield f"{name}.{member}", value


def public() -> dict[str, object]:
    """Return everything public by its dotted name."""
    found: dict[str, object] = {}
    for name in cerata.__all__:
        value: object = getattr(cerata, name)
        if name.startswith("__"):
            continue
        found[name] = value
        if isinstance(value, type):
            found.update(own_members(name, value))
    return found


def test_every_public_name_says_what_it_is() -> None:
    """The reference is made of docstrings: what has none is a blank in it."""
    names = public()
    assert len(names) > 100
    silent = [
        name
        for name, value in names.items()
        if not inspect.getdoc(value) and name.rpartition(".")[2] not in TOLD_BY_THEIR_NAME
    ]
    assert silent == []


def test_the_page_names_everything_and_nothing_else() -> None:
    """A name that is not on the page is found by nobody; one that is gone misleads."""
    written = PAGE.read_text(encoding="utf-8")
    names = public()
    said = set(re.findall(r"`(?:(?:Store|View)\.)?([A-Za-z_]+)(?:\([^`]*\))?`", written))
    wanted = {name for name in names if "." not in name}
    for owner in ("Store", "View"):
        wanted |= {name.partition(".")[2] for name in names if name.startswith(f"{owner}.")}
    surface = {*public_names(cerata.Store), *public_names(cerata.View)}
    handles = {part for name in surface if "." in name for part in name.split(".")}
    assert wanted - said == set()
    assert said - wanted - handles - functions().keys() == set()


def test_the_reference_is_made_from_the_docstrings(tmp_path: Path) -> None:
    """By the command of the page; every public name is in it."""
    (command,) = re.findall(r"^python (-W.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    done = subprocess.run(
        [sys.executable, *shlex.split(command), "--output-directory", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "cerata.html").read_text(encoding="utf-8")
    missing = [
        name
        for name, value in public().items()
        if f'id="{name}"' not in page and not isinstance(value, ModuleType)
    ]
    assert missing == []
