"""docs/foreign-files.md has the bounds of every parser; a parser that is not there fails."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "foreign-files.md").read_text(encoding="utf-8")
ROOMS = (
    *("engine", "projections", "replay", "retrieval", "memory", "agents", "aio", "integrations"),
    *("cli", "packs"),
)

_PACKAGES = (
    "bz2 cbor2 chromadb configparser csv dateparser email gzip jsonschema lzma marshal ormsgpack"
    " pickle plistlib pypdf ruamel selectolax sqlite3 tarfile tomllib whoosh xml yaml zipfile zlib"
    " zstandard"
)
PACKAGES = frozenset(_PACKAGES.split())
"""Packages that parse; a module that imports one decodes bytes of others, or says why not."""

CALLS = re.compile(
    r"(msgspec\.(json|msgpack|yaml|toml)\.(decode|Decoder)|json\.loads?|ast\.(parse|literal_eval)"
    r"|sqlite3\.connect|zstandard\.ZstdDecompressor)"
)

CHILDREN = {"memory/ingest/formats/sandbox.py", "memory/ingest/formats/sandbox_child.py"}

NO_PARSERS = {
    "engine/segments/segment_writer.py": "zstandard",  # it compresses; its decoder is in the page
    "retrieval/tokenizer.py": "zlib",  # a checksum
    "retrieval/embedders/static.py": "zstandard",  # a table of the package, with its digest
}


def parsers(source: str) -> Iterator[str]:
    """Yield the uses of parsers in a module."""
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [str(name.value) for name in node.args if isinstance(name, ast.Constant)]
        elif isinstance(node, ast.Attribute) and CALLS.fullmatch(ast.unparse(node)):
            yield ast.unparse(node)
        yield from (name for name in names if name.split(".")[0] in PACKAGES)


def found() -> dict[str, set[str]]:
    """Return the parsers of each module of the product."""
    return {
        path.relative_to(ROOT).as_posix(): uses
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        if (uses := {*parsers(path.read_text(encoding="utf-8"))})
    }


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from ruamel.yaml import YAML",
        "importlib.import_module('chromadb.config')",
        "x = msgspec.json.decode(y)",
    ],
)
def test_a_parser_is_found(source: str) -> None:
    """The rule would measure nothing if the scan found nothing."""
    assert [*parsers(source)]


def test_each_parser_is_in_the_page() -> None:
    """A parser without a bound has no place there, and so cannot be added."""
    named = {*re.findall(r"`([a-z_/]+\.py)`", PAGE)}
    modules = found()
    assert len(modules) > 40
    assert sorted(modules.keys() - named - NO_PARSERS.keys()) == []
    tests = {name for name in named if name.startswith("tests/")}
    assert sorted(named - tests - modules.keys() - CHILDREN) == []
    assert sorted(NO_PARSERS.keys() - modules.keys()) == []


def test_each_row_of_the_page_names_a_test() -> None:
    """A bound that no test tries is a wish."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 15
    for row in rows:
        [test] = re.findall(r"`(tests/[a-z_/]+\.py)` \|$", row)
        assert (ROOT / test).is_file(), test
