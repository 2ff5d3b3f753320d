"""Write the signatures of `cerata.aio` from those of `cerata.Store`, `View` and `open`.

``python -m tools.async_stub`` writes ``aio/handles.pyi``; a test compares the file with `stub`.
Each public method is copied with its annotations and without its body: a method is awaited, or
returns an asynchronous iterator, and views and stores are asynchronous ones.
"""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Final

from cerata.aio.mirror import ITERATED, OWN, PLAIN, public_members
from cerata.memory.handles import StoreHandle, Stream, kind_of
from cerata.memory.store import Store
from cerata.memory.view import View, ViewHandle

STUB: Final = Path(__file__).resolve().parents[1] / "aio" / "handles.pyi"

_HEAD: Final = "# Made by `python -m tools.async_stub` from cerata.Store, View and open.\n"

_NAMES: Final = {
    "AbstractContextManager": "AbstractAsyncContextManager",
    "Basis": "AsyncBasis",
    "EventStream": "AsyncEventStream",
    "PointsInTime": "AsyncStore",
    "Self": "AsyncStore",
    "Store": "AsyncStore",
    "View": "AsyncView",
}
"""The asynchronous forms of names in annotations."""

_ASYNC_HOMES: Final = {
    "AbstractAsyncContextManager": "contextlib",
    "AsyncEventStream": "cerata.aio.streams",
    "AsyncIterator": "collections.abc",
    "Callable": "collections.abc",
    "Concatenate": "typing",
    "Handle": "cerata.engine.handle",
    "Opening": "cerata.aio.opening",
    "ParamSpec": "typing",
    "TypeVar": "typing",
    "overload": "typing",
}
_LOCAL: Final = frozenset({"AsyncBasis", "AsyncStore", "AsyncView"})
_GROUPS: Final = (StoreHandle, ViewHandle)

_SHARED: Final = """
    @property
    def sync(self) -> {sync}: ...
    async def run(
        self, function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args, **named: _Arguments.kwargs
    ) -> _Result: ...
"""
_STORE: Final = """
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...
"""


class _Source:
    """The tree of a module, and the homes of the names in it."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.package = module.rpartition(".")[0]
        self.tree = ast.parse(inspect.getsource(importlib.import_module(module)))
        self.homes: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.homes[alias.asname or alias.name] = f"import {ast.unparse(alias)}"
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self.homes[alias.asname or alias.name] = self._absolute(node)
        for node in self.tree.body:
            names = [node.name] if isinstance(node, ast.ClassDef) else _assigned(node)
            self.homes.update(dict.fromkeys(names, module))

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.package.split(".")
        return ".".join([*parts[: len(parts) - node.level + 1], node.module or ""])

    def methods(self, kind: str, name: str) -> list[ast.FunctionDef]:
        """Return the definitions of a method: its overloads, or else itself."""
        [body] = [
            node.body
            for node in self.tree.body
            if isinstance(node, ast.ClassDef) and node.name == kind
        ]
        nodes = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
        return nodes[:-1] or nodes

    def function(self, name: str) -> ast.FunctionDef:
        [node] = [
            node
            for node in self.tree.body
            if isinstance(node, ast.FunctionDef) and node.name == name
        ]
        return node


def _assigned(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []


class _Writer:
    """The text of the stub, and the names that it imports."""

    def __init__(self) -> None:
        self.imports: dict[str, set[str]] = defaultdict(set)
        self.modules: set[str] = set()
        self._homes: dict[str, str] = {}
        self._sources: dict[str, _Source] = {}

    def source(self, module: str) -> _Source:
        """Return the source of a module, read once."""
        if module not in self._sources:
            self._sources[module] = _Source(module)
        return self._sources[module]

    def add_import(self, name: str, home: str) -> str:
        """Import a name, unless the stub defines it; return its name there."""
        if name in _LOCAL:
            return name
        if home.startswith("import "):
            self.modules.add(home)
            return name
        home = _ASYNC_HOMES.get(name, home)
        if self._homes.setdefault(name, home) == home:
            self.imports[home].add(name)
            return name
        alias = f"{home.rpartition('.')[2].title().replace('_', '')}{name}"
        self.imports[home].add(f"{name} as {alias}")
        return alias

    def annotation(self, node: ast.expr | None, source: _Source) -> str:
        """Return an annotation in its asynchronous form, and import its names."""
        assert node is not None
        text = ast.unparse(_Unquoted().visit(node))

        def own(match: re.Match[str]) -> str:
            name = match[0]
            if name not in source.homes:
                return name
            return self.add_import(_NAMES.get(name, name), source.homes[name])

        return re.sub(r"(?<![\w.'\"])[A-Za-z_]\w*", own, text)

    def arguments(self, node: ast.FunctionDef, source: _Source) -> str:
        """Return the parameters of a function; a default that is no plain value is left out."""
        given = node.args
        for parameter in (
            *given.posonlyargs,
            *given.args,
            *given.kwonlyargs,
            given.vararg,
            given.kwarg,
        ):
            if parameter is not None and parameter.annotation is not None:
                text = self.annotation(parameter.annotation, source)
                parameter.annotation = ast.parse(text, mode="eval").body
        given.defaults = [_plain_default(default) for default in given.defaults]
        given.kw_defaults = [default and _plain_default(default) for default in given.kw_defaults]
        return ast.unparse(given)

    def method(self, kind: type, name: str, member: object) -> str:
        """Return a public name of a class as asynchronous methods, or as a property."""
        function = member.fget if isinstance(member, property) else member
        assert inspect.isfunction(function)
        function = inspect.unwrap(function)
        source = self.source(function.__module__)
        owner = function.__qualname__.rpartition(".")[0]
        nodes = source.methods(owner, name)
        lines: list[str] = []
        for node in nodes:
            arguments = self.arguments(node, source)
            result = self.annotation(node.returns, source)
            is_sync = name in ITERATED | PLAIN | {"follow", "scoped", "transaction"}
            if name in ITERATED:
                result = re.sub(r"^Iterator\b", "AsyncIterator", result)
                self.add_import("AsyncIterator", "")
            if len(nodes) > 1:
                self.add_import("overload", "")
                lines.append("    @overload")
            if name in PLAIN:
                lines.append("    @property")
            verb = "def" if is_sync else "async def"
            lines.append(f"    {verb} {name}({arguments}) -> {result}: ...")
        return "\n".join(lines)

    def handle(self, kind: type, more: str) -> str:
        """Return the asynchronous class of a class."""
        sync = kind.__name__
        self.add_import(sync, kind.__module__)
        groups: list[str] = []
        methods: list[str] = []
        for name, member in public_members(kind):
            if isinstance(member, _GROUPS):
                own = kind_of(member)
                groups.append(self.handle(own, ""))
                methods.append(f"    @property\n    def {name}(self) -> Async{own.__name__}: ...")
            else:
                methods.append(self.method(kind, name, member))
        return "\n".join(
            [*groups, f"class Async{sync}(Handle):", _SHARED.format(sync=sync), more, *methods, ""]
        )

    def opening(self) -> str:
        """Return the function that opens a file."""
        source = self.source("cerata.memory.store")
        node = source.function("open_store")
        arguments = self.arguments(node, source).replace("*,", "*, workers: int = 4,", 1)
        return f"def open_store({arguments}) -> Opening[AsyncStore]: ..."


class _Unquoted(ast.NodeTransformer):
    """Replaces quoted annotations by their expressions, except in `Literal`."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if ast.unparse(node.value) == "Literal":
            return node
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.parse(node.value, mode="eval").body if isinstance(node.value, str) else node


def _plain_default(node: ast.expr) -> ast.expr:
    is_plain = isinstance(node, ast.Constant) or (isinstance(node, ast.Tuple) and not node.elts)
    return node if is_plain else ast.Constant(...)


def stub() -> str:
    """Return the text of the stub, formatted."""
    assert set(OWN) <= {*dir(Store), *dir(Stream)}
    writer = _Writer()
    for name in ("Callable", "Handle", "Opening", "ParamSpec", "TypeVar"):
        writer.add_import(name, "")
    writer.add_import("Basis", "cerata.memory.view")
    writer.add_import("View", "cerata.memory.view")
    writer.add_import("Store", "cerata.memory.store")
    for name in ("Self", "TypeAlias"):
        writer.add_import(name, "typing")
    classes = [writer.handle(View, ""), writer.handle(Store, _STORE), writer.opening()]
    imports = [
        f"from {home} import {', '.join(sorted(names))}"
        for home, names in sorted(writer.imports.items())
    ]
    text = "\n".join(
        [
            _HEAD,
            *sorted(writer.modules),
            *imports,
            '_Arguments = ParamSpec("_Arguments")',
            '_Result = TypeVar("_Result")',
            *classes,
            "AsyncBasis: TypeAlias = Basis | AsyncView",
        ]
    )
    for command in (["check", "--select", "I,UP,F401", "--fix", "--quiet"], ["format", "--quiet"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(STUB), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        text = done.stdout
    return text


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
