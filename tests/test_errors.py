"""The error tree: the classes, the picture in the docstring and docs/errors.md say the same."""

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cerata.engine import errors
from cerata.engine.errors import CerataError, Corrupt


def tree() -> list[type[CerataError]]:
    """Return every class of the tree, root first, in the order of the module."""
    return [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, CerataError)
    ]


def parents(kind: type[CerataError]) -> tuple[str, str | None]:
    """Return (parent in the tree, the built-in that it specialises or None)."""
    names = [base.__name__ for base in kind.__bases__]
    return names[0], names[1] if len(names) > 1 else None


def drawn() -> dict[str, tuple[str, str | None]]:
    """Read the picture in the docstring: name → (parent, built-in)."""
    picture: dict[str, tuple[str, str | None]] = {"CerataError": ("Exception", None)}
    above: list[str] = ["CerataError"]
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"^    ([│ ]*)[├└]── (\w+)(?:\((\w+)\))?", line)
        if match:
            depth = 1 + len(match[1]) // 4
            above[depth:] = [match[2]]
            picture[match[2]] = (above[depth - 1], match[3])
    return picture


def documented(checkout: Path) -> dict[str, tuple[int, str]]:
    """Read docs/errors.md: heading → (exit code, the section's text)."""
    text = (checkout / "docs" / "errors.md").read_text(encoding="utf-8")
    sections: dict[str, tuple[int, str]] = {}
    for section in text.split("\n## ")[1:]:
        name, _, body = section.partition("\n")
        code = re.search(r"^Exit code (\d+)\.$", body, re.MULTILINE)
        if code:
            sections[name.strip()] = (int(code[1]), body)
    return sections


def test_picture_in_the_docstring_is_the_tree() -> None:
    """A reader trusts the picture."""
    assert len(tree()) >= 14
    assert drawn() == {kind.__name__: parents(kind) for kind in tree()}


def test_every_class_has_a_section_with_its_exit_code(checkout: Path) -> None:
    """The page is where a message's reader looks next; scripts rely on the codes."""
    found = {name: code for name, (code, _) in documented(checkout).items()}
    assert found == {kind.__name__: kind.exit_code for kind in tree()}


@pytest.mark.parametrize("kind", tree(), ids=lambda kind: kind.__name__)
def test_every_section_gives_cause_and_remedy(kind: type[CerataError], checkout: Path) -> None:
    """An error without a next step is a complaint."""
    _, body = documented(checkout)[kind.__name__]
    for label in ("**Cause.**", "**Remedy.**"):
        assert label in body
    base = parents(kind)[1]
    assert base is None or f"`{base}`" in body


@pytest.mark.parametrize("kind", tree(), ids=lambda kind: kind.__name__)
def test_an_error_says_what_where_and_what_to_do(kind: type[CerataError]) -> None:
    """Both in the message and as plain values."""
    error = kind("The page is torn", where="offset 4,096", remedy="Run verify.")
    assert str(error) == "The page is torn (offset 4,096). Run verify."
    assert error.to_dict() == {
        "error": kind.__name__,
        "what": "The page is torn",
        "where": "offset 4,096",
        "remedy": "Run verify.",
        "exit_code": kind.exit_code,
    }


@pytest.mark.parametrize("kind", tree(), ids=lambda kind: kind.__name__)
def test_an_error_survives_the_way_between_processes(kind: type[CerataError]) -> None:
    """Worker processes send errors to their parents by pickling them."""
    error = kind("The page is torn", where="offset 4,096")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert copy.to_dict() == error.to_dict()


def test_corruption_carries_its_place() -> None:
    """The place is a number too, for tools."""
    error = Corrupt("The header check fails", offset=8192)
    assert error.offset == 8192
    assert "offset 8,192" in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert copy.offset == 8192


def test_exit_codes_of_kinds_that_differ_differ() -> None:
    """A script tells kinds apart by the code; a subclass may share its parent's."""
    codes: dict[int, str] = {}
    for kind in tree():
        parent = kind.__mro__[1]
        if "exit_code" in vars(kind) and parent is not object:
            assert kind.exit_code not in codes, (kind, codes[kind.exit_code])
            codes[kind.exit_code] = kind.__name__
    assert len(codes) >= 10
    assert 0 not in codes


def rooms(checkout: Path) -> list[Path]:
    """Return every module of the rooms."""
    folders = sorted(link.name for link in (checkout / "cerata").iterdir() if link.is_symlink())
    return [path for folder in folders for path in sorted((checkout / folder).rglob("*.py"))]


def without_remedy(text: str) -> Iterator[str]:
    """Yield the calls of error classes that say what is wrong, and not what to do."""
    kinds = {kind.__name__: kind for kind in tree()}
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        kind = kinds.get(ast.unparse(node.func).rpartition(".")[2])
        given = {word.arg: word.value for word in node.keywords}
        remedy = given.get("remedy")
        is_none = remedy is None or (isinstance(remedy, ast.Constant) and not remedy.value)
        if kind is not None and is_none and None not in given and kind.usual_remedy is None:
            yield f"line {node.lineno}: {ast.unparse(node)}"


def test_every_error_says_what_to_do(checkout: Path) -> None:
    """128 of 378 ended with the complaint."""
    modules = rooms(checkout)
    assert len(modules) > 200
    faults = [
        f"{path.relative_to(checkout)} {place}"
        for path in modules
        for place in without_remedy(path.read_text(encoding="utf-8"))
    ]
    assert faults == []


def test_an_error_without_remedy_is_caught() -> None:
    """The rule above reads code, so it is tried on code."""
    assert list(without_remedy("raise InvalidInput('The index is torn')")) != []
    assert list(without_remedy("raise errors.NotFound('a', where='b', remedy=None)")) != []
    assert list(without_remedy("raise InvalidInput('a', remedy='Call again.')")) == []
    # A class may have a remedy for all.
    assert list(without_remedy("raise Corrupt('The page is torn', offset=1)")) == []
    assert "cerata file doctor" in str(Corrupt("The page is torn", offset=1))
